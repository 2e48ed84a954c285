//! YAML as stock tools read it.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::Value as Plain;

use crate::document::Site;
use crate::document::tree::{NodeId, NodeKind, Tree};
use crate::error::{ParseError, PathError};
use crate::format::{Copied, Insertion, Replacement, Syntax};
use crate::secret::SecretText;
use crate::value::{Value, ValueType};

mod block;
mod comments;
mod insert;
mod lines;
mod print;
mod read;
mod remove;
mod scalar;
mod sops_block;
mod timestamp;
pub(crate) mod write;

/// RFC 3339 text in the one form that the MAC is bound to: whole seconds, `Z` for no offset.
pub(crate) fn canonical_time(text: &str) -> Option<String> {
    let whole = timestamp::canonical(text).filter(|_| text.contains('T'))?;
    let Some((seconds, rest)) = whole.split_once('.') else { return Some(whole) };
    Some(format!("{seconds}{}", rest.trim_start_matches(|next: char| next.is_ascii_digit())))
}

/// Whether `text` without quotes is text, and neither a number nor any other word with a meaning.
pub(crate) fn reads_as_yaml_text(text: &str) -> bool {
    scalar::resolve(text, None, true).is_ok_and(|value| value.kind() == Some(ValueType::Str))
}

/// Plain data as a YAML document of its own.
pub(crate) fn print_yaml(object: &Plain) -> String {
    let printer = print::Printer { indent: 2, blocks: false };
    let mut lines = String::new();
    for (key, value) in object.as_object().into_iter().flatten() {
        printer.entry(&mut lines, 0, key, value);
    }
    lines
}

/// The format's implementation.
pub(super) struct Yaml;

impl Syntax for Yaml {
    fn read(&self, text: &SecretText) -> Result<Tree, ParseError> {
        read::read(text)
    }

    fn attach_comments(&self, text: &str, tree: &mut Tree, written_out: &HashSet<NodeId>) {
        let places: Vec<_> = tree.comments.iter().map(|comment| comment.place.clone()).collect();
        comments::attach(text, tree, &places, written_out);
    }

    fn sealed<'a>(&self, text: &str, site: &Site, enc: &'a str, one_line: bool) -> Replacement<'a> {
        write::sealed(text, site, enc, one_line)
    }

    fn opened<'a>(&self, text: &str, site: &Site, value: &'a Value) -> Replacement<'a> {
        write::opened(text, site, value)
    }

    fn copied(&self, tree: &Tree, node: NodeId, next: &mut dyn FnMut() -> Copied) -> String {
        let node = tree.resolved(node);
        let tag = node.tag.as_deref().map(|tag| format!("!<{tag}> ")).unwrap_or_default();
        match &node.kind {
            NodeKind::Map { entries, .. } => {
                let entries = entries.iter().map(|entry| {
                    let key = match entry.name.as_str() {
                        "<<" => "<<".to_owned(),
                        name => write::double_quoted(name),
                    };
                    format!("{key}: {}", self.copied(tree, entry.value, next))
                });
                format!("{tag}{{{}}}", entries.collect::<Vec<_>>().join(", "))
            }
            NodeKind::List { items, .. } => {
                let items = items.iter().map(|item| self.copied(tree, *item, next));
                format!("{tag}[{}]", items.collect::<Vec<_>>().join(", "))
            }
            _ => match next() {
                Copied::Clear(value) => format!("{tag}{}", write::scalar(&value, false, true)),
                Copied::Sealed(enc) => format!("{tag}\"{enc}\""),
            },
        }
    }

    fn block_insertions(
        &self,
        text: &str,
        tree: &Tree,
        first: &Plain,
        others: &Plain,
    ) -> (Vec<Insertion>, bool) {
        sops_block::insertions(text, tree, first, others)
    }

    fn block_places(&self, text: &str, tree: &Tree) -> Vec<Range<usize>> {
        sops_block::places(text, tree)
    }

    fn insertion(
        &self,
        text: &str,
        tree: &Tree,
        collection: NodeId,
        key: Option<&str>,
        json: &Plain,
    ) -> Result<Insertion, PathError> {
        insert::insertion(text, tree, collection, key, json)
    }

    fn replacement(
        &self,
        text: &str,
        tree: &Tree,
        node: NodeId,
        json: &Plain,
    ) -> Result<Replacement<'static>, PathError> {
        insert::replacement(text, tree, node, json)
    }

    fn removal(
        &self,
        text: &str,
        tree: &Tree,
        collection: NodeId,
        index: usize,
    ) -> Result<Vec<Replacement<'static>>, PathError> {
        Ok(remove::removal(text, tree, collection, index))
    }
}

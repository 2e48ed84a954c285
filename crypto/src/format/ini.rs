//! INI as stock tools read it: texts under keys under sections, and comments.
//!
//! Stock readers attach comments in blocks: all lines above a key and what stands behind its value are one comment of
//! that key, sealed as one. Keys before the first section are in `DEFAULT`. What such a reader silently drops, or cuts
//! off a value as a comment, is refused here with its place. `ini/read.rs` reads, `ini/value.rs` knows how a value is
//! written on its line.

use std::ops::Range;

use serde_json::Value as Plain;

use crate::document::tree::{NodeId, NodeKind, Style, Tree};
use crate::document::{BLOCK_KEY, Site};
use crate::error::{ParseError, PathError};
use crate::format::{Insertion, Replacement, Syntax, flat};
use crate::secret::SecretText;
use crate::value::Value;

mod read;
mod value;

pub(crate) use value::is_printable;

/// The section of keys that stand before every section.
const DEFAULT_SECTION: &str = "DEFAULT";

/// The format's implementation.
pub(super) struct Ini;

impl Syntax for Ini {
    fn read(&self, text: &SecretText) -> Result<Tree, ParseError> {
        let text = text.expose_secret();
        read::tree(text)
    }

    fn sealed<'a>(&self, _text: &str, site: &Site, enc: &'a str, _one_line: bool) -> Replacement<'a> {
        let sign = if site.style == Style::Comment { "; " } else { "" };
        Replacement { place: site.inner.clone(), text: format!("{sign}{enc}").into() }
    }

    fn opened<'a>(&self, _text: &str, site: &Site, value: &'a Value) -> Replacement<'a> {
        let text = flat::untyped(value);
        let text = match site.style {
            Style::Comment => commented(&text),
            _ => value::written(&text),
        };
        Replacement { place: site.inner.clone(), text: text.into() }
    }

    fn block_insertions(
        &self,
        text: &str,
        _tree: &Tree,
        first: &Plain,
        _others: &Plain,
    ) -> (Vec<Insertion>, bool) {
        let line_break = line_break(text);
        let is_open = !text.is_empty() && !text.ends_with('\n');
        let end = if is_open { line_break } else { "" };
        let blank = if text.is_empty() { "" } else { line_break };
        let mut block = format!("{end}{blank}[{BLOCK_KEY}]{line_break}");
        for (name, text) in flat::flatten(first) {
            block.extend([&name, " = ", &value::written(&flat::escaped(&text)), line_break]);
        }
        (vec![Insertion { offset: text.len(), text: block }], is_open)
    }

    /// With the empty line before it, which stock tools write as well.
    fn block_places(&self, text: &str, tree: &Tree) -> Vec<Range<usize>> {
        let Some(block) = tree.root_entry(0, BLOCK_KEY) else { return Vec::new() };
        let mut place = tree.nodes[block.value].outer.clone();
        let before = &text[..place.start];
        let above = before.strip_suffix('\n').map(|above| above.strip_suffix('\r').unwrap_or(above));
        if let Some(above) = above.filter(|above| above.is_empty() || above.ends_with('\n')) {
            place.start = above.len();
        }
        vec![place]
    }

    fn insertion(
        &self,
        text: &str,
        tree: &Tree,
        collection: NodeId,
        key: Option<&str>,
        json: &Plain,
    ) -> Result<Insertion, PathError> {
        let key = key.ok_or_else(|| PathError("there are no lists in an INI file".into()))?;
        let is_root = tree.documents.first().and_then(|part| part.root) == Some(collection);
        let offset = if is_root { text.len() } else { tree.nodes[collection].inner.end };
        let line_break = line_break(text);
        let is_open = offset > 0 && !text[..offset].ends_with('\n');
        let mut added = String::from(if is_open { line_break } else { "" });
        match (is_root, json) {
            (false, _) => added.push_str(&entry(key, json, line_break)?),
            (true, Plain::Object(entries)) if is_section_name(key) => {
                added.extend(["[", key, "]", line_break]);
                for (key, value) in entries {
                    added.push_str(&entry(key, value, line_break)?);
                }
            }
            (true, Plain::Object(_)) => {
                return Err(PathError(format!("`{key}` cannot be a section of an INI file")));
            }
            (true, _) => return Err(PathError("a value of an INI file stands in a section".into())),
        }
        Ok(Insertion { offset, text: added })
    }

    fn replacement(
        &self,
        _text: &str,
        tree: &Tree,
        node: NodeId,
        json: &Plain,
    ) -> Result<Replacement<'static>, PathError> {
        match tree.nodes[node].kind {
            NodeKind::Scalar { .. } => {
                let place = tree.nodes[node].inner.clone();
                Ok(Replacement { place, text: value::written(&text_of(json)?).into() })
            }
            _ => Err(PathError("the path leads to a whole section: set its values one by one".into())),
        }
    }

    fn removal(
        &self,
        text: &str,
        tree: &Tree,
        collection: NodeId,
        index: usize,
    ) -> Result<Vec<Replacement<'static>>, PathError> {
        let NodeKind::Map { entries, .. } = &tree.nodes[collection].kind else {
            return Err(PathError("the path leads to the whole file".into()));
        };
        let is_section = tree.documents.iter().any(|part| part.root == Some(collection));
        if is_section && entries.len() == 1 {
            return Err(PathError("it is the last section, and an INI file needs one".into()));
        }
        let value = tree.nodes[entries[index].value].inner.clone();
        let (first, end) = match is_section {
            true => (value.start, value.end),
            false => (entries[index].place.start, value::line_end(text, value.end)),
        };
        let start = flat::comments_above(text, tree, first);
        Ok(vec![Replacement { place: start..end, text: String::new().into() }])
    }
}

/// A comment with a sign on each of its lines; all but the first have theirs already, if stock readers had them.
fn commented(text: &str) -> String {
    let mut lines = String::from("; ");
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let needs_sign = index > 0 && !line.trim_start().starts_with(['#', ';']);
        lines.push_str(if needs_sign { "; " } else { "" });
        lines.push_str(line);
    }
    lines
}

fn line_break(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

fn is_section_name(name: &str) -> bool {
    !name.is_empty() && name != DEFAULT_SECTION && name != BLOCK_KEY && !name.contains([']', '\n', '\r'])
}

/// The line for a new key.
fn entry(key: &str, json: &Plain, line_break: &str) -> Result<String, PathError> {
    let is_name = !key.is_empty()
        && key != "-"
        && key.trim() == key
        && !key.starts_with(['#', ';', '[', '"', '`'])
        && !key.contains(['=', ':', '\n', '\r']);
    match is_name {
        true => Ok(format!("{key} = {}{line_break}", value::written(&text_of(json)?))),
        false => Err(PathError(format!("`{key}` cannot be a key of an INI file"))),
    }
}

fn text_of(json: &Plain) -> Result<String, PathError> {
    let text = match json {
        Plain::String(text) => text.clone(),
        Plain::Bool(_) | Plain::Number(_) => json.to_string(),
        _ => return Err(PathError("a value of an INI file is text".into())),
    };
    match value::reads_back(&text) {
        true => Ok(text),
        false => {
            Err(PathError("an INI file cannot hold this text, with all three kinds of quotes in it".into()))
        }
    }
}

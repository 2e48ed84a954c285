//! dotenv as stock tools read it: lines of `KEY=value`, and comments.
//!
//! A line ends at a line feed and nowhere else, so a carriage return belongs to the value; nothing is trimmed, no
//! quote and no `export` means anything. `\\n` in a value stands for a line feed, and nothing stands for `\\n`. The
//! `sops` block is the lines whose keys start with `sops_`.

use std::ops::Range;

use serde_json::Value as Plain;

use crate::document::tree::{Comment, Entry, Node, NodeId, NodeKind, Part, Style, Tree};
use crate::document::{BLOCK_KEY, Site};
use crate::error::{ParseError, PathError};
use crate::format::flat::{self, Unflattened};
use crate::format::{Insertion, Replacement, Syntax};
use crate::secret::SecretText;
use crate::value::Value;

/// What the keys of the `sops` block start with.
const BLOCK_PREFIX: &str = "sops_";

/// The format's implementation.
pub(super) struct Dotenv;

impl Syntax for Dotenv {
    fn read(&self, text: &SecretText) -> Result<Tree, ParseError> {
        let text = text.expose_secret();
        let mut reader = Reader { text, tree: Tree::default(), entries: Vec::new(), block: None };
        for place in lines(text) {
            reader.line(place)?;
        }
        reader.finish()
    }

    fn sealed<'a>(&self, _text: &str, site: &Site, enc: &'a str, _one_line: bool) -> Replacement<'a> {
        let sign = if site.style == Style::Comment { "#" } else { "" };
        Replacement { place: site.inner.clone(), text: format!("{sign}{enc}").into() }
    }

    fn opened<'a>(&self, _text: &str, site: &Site, value: &'a Value) -> Replacement<'a> {
        let text = match site.style {
            Style::Comment => format!("#{}", flat::untyped(value)),
            _ => flat::escaped(&flat::untyped(value)),
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
        let is_open = !text.is_empty() && !text.ends_with('\n');
        let mut block = String::from(if is_open { "\n" } else { "" });
        for (name, value) in flat::flatten(first) {
            block.extend([BLOCK_PREFIX, &name, "=", &flat::escaped(&value), "\n"]);
        }
        (vec![Insertion { offset: text.len(), text: block }], is_open)
    }

    fn block_places(&self, text: &str, _tree: &Tree) -> Vec<Range<usize>> {
        let is_block = |place: &Range<usize>| text[place.clone()].starts_with(BLOCK_PREFIX);
        let with_break = |place: Range<usize>| place.start..(place.end + 1).min(text.len());
        lines(text).filter(is_block).map(with_break).collect()
    }

    fn insertion(
        &self,
        text: &str,
        _tree: &Tree,
        _collection: NodeId,
        key: Option<&str>,
        json: &Plain,
    ) -> Result<Insertion, PathError> {
        let key = key.ok_or_else(|| PathError("there are no lists in a dotenv file".into()))?;
        if key.is_empty() || key.starts_with(['#', '\u{feff}']) || key.contains(['=', '\n']) {
            return Err(PathError(format!("`{key}` cannot be a key of a dotenv file")));
        }
        if key.starts_with(BLOCK_PREFIX) {
            return Err(PathError(format!("keys that start with `{BLOCK_PREFIX}` are for the sops block")));
        }
        let line_break = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let text_added = format!("{line_break}{key}={}\n", written(json)?);
        Ok(Insertion { offset: text.len(), text: text_added })
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
                Ok(Replacement { place: tree.nodes[node].inner.clone(), text: written(json)?.into() })
            }
            _ => Err(PathError("the path leads to the whole file".into())),
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
        if entries.len() == 1 {
            return Err(PathError("it is the last value, and a dotenv file needs one".into()));
        }
        // A byte order mark is a part of its key.
        let first = entries[index].place.start;
        let start = flat::comments_above(text, tree, first).min(first);
        let end = (tree.nodes[entries[index].value].inner.end + 1).min(text.len());
        Ok(vec![Replacement { place: start..end, text: String::new().into() }])
    }
}

/// The places of all lines that are not empty, without their line feeds.
fn lines(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    let places = text.split('\n').map(move |line| {
        let place = start..start + line.len();
        start = place.end + 1;
        place
    });
    places.filter(|place| !place.is_empty())
}

/// `json` as a value's text on its line.
fn written(json: &Plain) -> Result<String, PathError> {
    match json {
        Plain::String(text) if text.contains("\\n") => {
            Err(PathError("a dotenv value cannot hold a backslash before an n: it means a line break".into()))
        }
        Plain::String(text) => Ok(flat::escaped(text)),
        Plain::Bool(_) | Plain::Number(_) => Ok(json.to_string()),
        _ => Err(PathError("a value of a dotenv file is text".into())),
    }
}

struct Reader<'a> {
    text: &'a str,
    tree: Tree,
    entries: Vec<Entry>,
    /// The block as far as it was read, and where it stands.
    block: Option<(Unflattened, Range<usize>)>,
}

impl Reader<'_> {
    fn line(&mut self, place: Range<usize>) -> Result<(), ParseError> {
        let (start, line) = (place.start, &self.text[place.clone()]);
        if let Some(comment) = line.strip_prefix('#') {
            let text = SecretText::from(comment);
            let slot = self.entries.len();
            // The root is made last; its number is put in then.
            self.tree.comments.push(Comment { place, text, container: None, slot });
            return Ok(());
        }
        let Some((key, value)) = line.split_once('=') else {
            let reason = match line.trim_start() {
                "" => {
                    "a line of blanks alone stops other readers: empty it, and end lines with a line feed alone"
                }
                comment if comment.starts_with('#') => "a comment starts in the first column",
                _ => "a line is a comment, or a key with `=` and a value",
            };
            return Err(ParseError::at(self.text, start, reason));
        };
        if key == BLOCK_KEY {
            let reason = "the key `sops` is kept for the sops block: rename it";
            return Err(ParseError::at(self.text, start, reason));
        }
        let value_place = start + key.len() + 1..place.end;
        if let Some(name) = key.strip_prefix(BLOCK_PREFIX) {
            let (block, whole) = self.block.get_or_insert_with(|| (Unflattened::default(), place.clone()));
            whole.end = place.end;
            let refuse = |reason| ParseError::at(self.text, start, reason);
            return block.add(name, flat::unescaped(value)).map_err(refuse);
        }
        let value = Value::text(&flat::unescaped(value));
        let kind = NodeKind::Scalar { value, style: Style::Plain { flow: false } };
        let (name, value) = (key.to_owned(), self.node(kind, value_place));
        self.entries.push(Entry { name: name.into(), place: start..start + key.len(), value });
        Ok(())
    }

    fn finish(mut self) -> Result<Tree, ParseError> {
        if self.entries.is_empty() && self.tree.comments.is_empty() && self.block.is_none() {
            return Err(ParseError::at(self.text, 0, "there is nothing in it"));
        }
        if let Some((block, place)) = self.block.take() {
            let block = block.finish().map_err(|reason| ParseError::at(self.text, place.start, reason))?;
            let value = flat::graft(&mut self.tree, &block, &place);
            self.entries.push(Entry { name: BLOCK_KEY.into(), place, value });
        }
        let entries = std::mem::take(&mut self.entries);
        let root = self.node(NodeKind::Map { entries, flow: false }, 0..self.text.len());
        self.tree.comments.iter_mut().for_each(|comment| comment.container = Some(root));
        self.tree.documents.push(Part { root: Some(root), end: self.text.len() });
        Ok(self.tree)
    }

    fn node(&mut self, kind: NodeKind, place: Range<usize>) -> NodeId {
        self.tree.nodes.push(Node { kind, tag: None, outer: place.clone(), inner: place, core_tag: None });
        self.tree.nodes.len() - 1
    }
}

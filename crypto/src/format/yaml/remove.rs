//! Taking an entry out of a YAML collection with its own comments, and nothing else.
//!
//! An entry's own comments are those behind its value, those indented deeper below it, and those in its column
//! directly above it. Where an entry has its lines for itself, these lines are cut; where it shares one with a dash
//! or with other entries, only its part of that line. What would become no collection at all becomes an empty one.

use std::ops::Range;

use crate::document::tree::{Entry, NodeId, NodeKind, Tree};
use crate::format::Replacement;
use crate::format::yaml::block::line_end;
use crate::format::yaml::comments;

/// What takes the entry or item at `index` out of `collection`.
pub(super) fn removal(
    text: &str,
    tree: &Tree,
    collection: NodeId,
    index: usize,
) -> Vec<Replacement<'static>> {
    let removal = Removal { text, tree, collection };
    match &tree.nodes[collection].kind {
        NodeKind::Map { flow: true, .. } | NodeKind::List { flow: true, .. } => removal.in_flow(index),
        _ => removal.in_block(index),
    }
}

/// An entry or item with all that is written for it.
struct Child {
    /// Where its key, its dash, or in brackets its value starts, properties included.
    start: usize,
    /// After its value.
    end: usize,
}

struct Removal<'a> {
    text: &'a str,
    tree: &'a Tree,
    collection: NodeId,
}

impl Removal<'_> {
    fn in_block(&self, index: usize) -> Vec<Replacement<'static>> {
        let children = self.children(self.collection);
        let Child { start, end } = children[index];
        let lines = self.lines_below(start, end);
        if self.starts_line(start) {
            let place = self.comments_above(start)..lines;
            return match children.len() {
                1 => self.emptied(place, self.column(start)),
                _ => vec![cut(place)],
            };
        }
        // Beside a dash: what follows either moves up to it, or stays where it is below it.
        let last_line = self.text[..lines].trim_end_matches(['\n', '\r']).len();
        let beside = self.text[..start].trim_end_matches([' ', '\t']).len();
        match children.get(index + 1).map(|next| next.start) {
            None if children.len() == 1 => {
                vec![Replacement { place: start..last_line.max(end), text: self.brackets().into() }]
            }
            Some(next) if self.text[lines..next].bytes().all(|byte| byte == b' ') => vec![cut(start..next)],
            _ => vec![cut(beside..last_line)],
        }
    }

    /// The lines of the only entry cut out, and an empty collection in its place: behind the key where nothing else
    /// stands there, else on a line of its own.
    fn emptied(&self, place: Range<usize>, column: usize) -> Vec<Replacement<'static>> {
        let behind_key = self.key_of_collection().filter(|key| {
            let between = &self.text[*key..self.tree.nodes[self.collection].inner.start];
            self.text[..*key].ends_with(':')
                && between.trim_start_matches([' ', '\t']).starts_with(['\n', '\r'])
                && !between.split_whitespace().any(|word| word.starts_with(['&', '!']))
        });
        if let Some(key) = behind_key {
            let text = format!(" {}", self.brackets());
            return vec![Replacement { place: key..key, text: text.into() }, cut(place)];
        }
        let ended = &self.text[place.clone()];
        let line_break = &ended[ended.trim_end_matches(['\n', '\r']).len()..];
        let line_break =
            if line_break.starts_with('\r') { "\r\n" } else { &line_break[..line_break.len().min(1)] };
        let is_root = self.tree.documents.iter().any(|part| part.root == Some(self.collection));
        // A list may stand in its key's column, brackets may not.
        let pad = " ".repeat(column + usize::from(!is_root));
        vec![Replacement { place, text: format!("{pad}{}{line_break}", self.brackets()).into() }]
    }

    /// Where the value may start that this collection is: after its key's colon.
    fn key_of_collection(&self) -> Option<usize> {
        let entries = self.tree.nodes.iter().filter_map(|node| match &node.kind {
            NodeKind::Map { entries, .. } => Some(entries),
            _ => None,
        });
        let entry = entries.flatten().find(|entry| entry.value == self.collection)?;
        Some(after_key(self.text, entry.place.end))
    }

    fn in_flow(&self, index: usize) -> Vec<Replacement<'static>> {
        let node = &self.tree.nodes[self.collection];
        let children = self.children(self.collection);
        let Child { start, end } = children[index];
        if children.len() == 1 && !self.text[node.inner.start..].starts_with(['{', '[']) {
            // A pair without braces.
            return vec![Replacement { place: node.inner.clone(), text: "{}".into() }];
        }
        let blanks = self.text[end..].len() - self.text[end..].trim_start_matches([' ', '\t']).len();
        let comma = self.text[end + blanks..].starts_with(',').then_some(end + blanks + 1);
        let next = children.get(index + 1).map(|next| next.start);
        let before = index.checked_sub(1).map(|before| children[before].end);
        let tail = comma.unwrap_or(end);
        if self.starts_line(start) && self.ends_line(tail) && (comma.is_some() || next.is_none()) {
            return vec![cut(self.comments_above(start)..line_end(self.text, tail))];
        }
        let place = match (next, before) {
            (Some(next), _) if !self.has_comment(end..next) => start..next,
            (None, Some(before)) if comma.is_none() && !self.has_comment(before..start) => before..end,
            _ => start..tail,
        };
        vec![cut(place)]
    }

    fn children(&self, collection: NodeId) -> Vec<Child> {
        match &self.tree.nodes[collection].kind {
            NodeKind::Map { entries, .. } => {
                let child = |entry: &Entry| Child {
                    start: self.properties_before(entry.place.start),
                    end: self.value_end(entry.value, after_key(self.text, entry.place.end)),
                };
                entries.iter().map(child).collect()
            }
            NodeKind::List { items, flow } => {
                let child = |item: &NodeId| {
                    let outer = self.tree.nodes[*item].outer.start;
                    let dash = if *flow { outer } else { comments::dash_before(self.text, outer) };
                    Child { start: dash, end: self.value_end(*item, if *flow { outer } else { dash + 1 }) }
                };
                items.iter().map(child).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Where the value ends whose key or dash ends at `after`.
    fn value_end(&self, value: NodeId, after: usize) -> usize {
        let node = &self.tree.nodes[value];
        match &node.kind {
            NodeKind::Map { flow: false, .. } | NodeKind::List { flow: false, .. } => {
                self.children(value).last().map_or(node.outer.end, |last| last.end)
            }
            NodeKind::Scalar { .. } if node.inner.is_empty() => {
                // An absent value has no place but that of its properties.
                let (mut end, mut rest) = (after, &self.text[after..]);
                loop {
                    let word = rest.trim_start_matches([' ', '\t']);
                    if !word.starts_with(['&', '!']) {
                        return end;
                    }
                    let length = word.find([' ', '\t', '\n', '\r', ',', '}', ']']).unwrap_or(word.len());
                    end += rest.len() - word.len() + length;
                    rest = &word[length..];
                }
            }
            _ => node.outer.end.max(after),
        }
    }

    /// The start of the properties of the key at `start`, or of its question mark, on the same line.
    fn properties_before(&self, start: usize) -> usize {
        let mut begin = start;
        loop {
            let before = self.text[..begin].trim_end_matches([' ', '\t']);
            let word = before.rfind([' ', '\t', '\n', '\r', '{', '[', ',', '\u{feff}']);
            let word =
                word.map_or(0, |found| found + before[found..].chars().next().map_or(1, char::len_utf8));
            let is_property = before[word..].starts_with(['&', '!']) || &before[word..] == "?";
            if before.len() == begin || !is_property {
                return begin;
            }
            begin = word;
        }
    }

    /// After the last line that belongs to the block entry from `start` to `end`, comments that are indented deeper
    /// included.
    fn lines_below(&self, start: usize, end: usize) -> usize {
        let mut last = if self.text[..end].ends_with(['\n', '\r']) { end } else { line_end(self.text, end) };
        let mut line = last;
        while line < self.text.len() {
            let first = self.text.len() - self.text[line..].trim_start_matches([' ', '\t']).len();
            let next = line_end(self.text, line);
            if self.is_comment(first) && first - line > self.column(start) {
                last = next;
            } else if !self.text[first..next].trim().is_empty() {
                break;
            }
            line = next;
        }
        last
    }

    /// Where the comments start that stand directly above the line of `start`, in its column.
    fn comments_above(&self, start: usize) -> usize {
        let column = self.column(start);
        let mut line = self.line_start(start);
        while line > self.line_start(0) {
            let above = self.line_start(line - 1 - usize::from(self.text[..line].ends_with("\r\n")));
            if above == line || !self.is_comment(above + column) || !self.starts_line(above + column) {
                break;
            }
            line = above;
        }
        line
    }

    fn is_comment(&self, offset: usize) -> bool {
        self.tree.comments.binary_search_by_key(&offset, |comment| comment.place.start).is_ok()
    }

    fn has_comment(&self, place: Range<usize>) -> bool {
        let next = self.tree.comments.partition_point(|comment| comment.place.start < place.start);
        self.tree.comments.get(next).is_some_and(|comment| comment.place.start < place.end)
    }

    /// The start of the line that `offset` is in, after a byte order mark.
    fn line_start(&self, offset: usize) -> usize {
        let start = self.text[..offset].rfind(['\n', '\r']).map_or(0, |found| found + 1);
        if start == 0 && self.text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { start }
    }

    fn column(&self, offset: usize) -> usize {
        offset - self.line_start(offset)
    }

    fn starts_line(&self, offset: usize) -> bool {
        self.text[self.line_start(offset)..offset].bytes().all(|byte| matches!(byte, b' ' | b'\t'))
    }

    /// Whether nothing but a comment follows on the line.
    fn ends_line(&self, offset: usize) -> bool {
        let rest = self.text[offset..].trim_start_matches([' ', '\t']);
        rest.is_empty() || rest.starts_with(['\n', '\r']) || self.is_comment(self.text.len() - rest.len())
    }

    fn brackets(&self) -> &'static str {
        match self.tree.nodes[self.collection].kind {
            NodeKind::List { .. } => "[]",
            _ => "{}",
        }
    }
}

/// After the colon of the key that ends at `key_end`; `key_end` where there is none.
fn after_key(text: &str, key_end: usize) -> usize {
    let rest = text[key_end..].trim_start();
    if rest.starts_with(':') { text.len() - rest.len() + 1 } else { key_end }
}

fn cut(place: Range<usize>) -> Replacement<'static> {
    Replacement { place, text: String::new().into() }
}

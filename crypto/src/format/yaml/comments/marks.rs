//! The places in a YAML text that comments can belong to.

use std::collections::HashSet;
use std::ops::Range;

use crate::document::tree::{NodeId, NodeKind, Tree};

/// A collection and one of its entries.
pub(super) type Owner = (NodeId, usize);

/// Where each line starts.
pub(super) struct Lines(Vec<usize>);

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let ends = |index: &usize| match bytes[*index] {
            b'\n' => true,
            b'\r' => bytes.get(index + 1) != Some(&b'\n'),
            _ => false,
        };
        let first = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Self(std::iter::once(first).chain((0..bytes.len()).filter(ends).map(|index| index + 1)).collect())
    }

    pub(super) fn line(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset)
    }

    pub(super) fn column(&self, offset: usize) -> usize {
        offset - self.line(offset).checked_sub(1).map_or(0, |line| self.0[line])
    }
}

/// What a mark stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The dash of an item at the end of a list with nothing but dashes behind it: to others, part of what follows.
    AbsentItem,
    /// The end of a document, where its `sops` key will stand.
    End,
    /// The closing bracket or brace of a collection.
    FlowEnd(NodeId),
    /// The opening one.
    FlowStart,
    /// The dash of a list's item.
    Item,
    /// A key with its colon.
    Key,
    /// A scalar or alias.
    Value,
}

/// A place in the text that comments can belong to.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
    /// The collection it is part of, and its entry there.
    pub(super) container: NodeId,
    pub(super) slot: usize,
    /// The block collections open after it, outermost first.
    pub(super) open: Vec<Level>,
}

/// An open block collection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    pub(super) column: usize,
    pub(super) node: NodeId,
    /// The entry it has come to.
    pub(super) slot: usize,
    pub(super) is_map: bool,
}

pub(super) struct Marks<'a> {
    text: &'a str,
    lines: &'a Lines,
    tree: &'a Tree,
    written_out: &'a HashSet<NodeId>,
    marks: Vec<Mark>,
    open: Vec<Level>,
}

impl Marks<'_> {
    /// The marks of one document.
    pub(super) fn of(
        text: &str,
        lines: &Lines,
        tree: &Tree,
        written_out: &HashSet<NodeId>,
        root: NodeId,
        end: usize,
    ) -> Vec<Mark> {
        let mut marks = Marks { text, lines, tree, written_out, marks: Vec::new(), open: Vec::new() };
        marks.document(root, end);
        let mut marks = marks.marks;
        for next in (1..marks.len()).rev() {
            if marks[next - 1].kind == Kind::AbsentItem {
                (marks[next - 1].container, marks[next - 1].slot) = (marks[next].container, marks[next].slot);
            }
        }
        marks
    }

    fn document(&mut self, root: NodeId, end: usize) {
        self.node(root, (root, entries(self.tree, root)));
        if let NodeKind::Map { entries, flow: false } = &self.tree.nodes[root].kind {
            self.mark(Kind::End, end..end, (root, entries.len()));
        }
    }

    fn mark(&mut self, kind: Kind, place: Range<usize>, (container, slot): (NodeId, usize)) {
        self.marks.push(Mark {
            kind,
            start: place.start,
            end: place.end,
            container,
            slot,
            open: self.open.clone(),
        });
    }

    fn node(&mut self, id: NodeId, outer: (NodeId, usize)) {
        let node = &self.tree.nodes[id];
        match &node.kind {
            NodeKind::Alias { .. } if self.written_out.contains(&id) => {
                self.enter(id, true, false);
                self.leave(id, true, outer);
            }
            NodeKind::Alias { .. } | NodeKind::Scalar { .. } => {
                if !node.inner.is_empty() {
                    self.mark(Kind::Value, node.outer.clone(), outer);
                }
            }
            NodeKind::Map { entries, flow } => {
                self.enter(id, *flow, true);
                for (slot, entry) in entries.iter().enumerate() {
                    let start = key_start(self.text, entry.place.start);
                    self.at_entry(*flow, slot, start);
                    self.mark(Kind::Key, start..key_end(self.text, entry.place.end), (id, slot));
                    self.node(entry.value, (id, slot));
                }
                self.leave(id, *flow, outer);
            }
            NodeKind::List { items, flow } => {
                self.enter(id, *flow, false);
                let is_there = |item: &NodeId| !is_absent(self.tree, *item);
                let absent = items.iter().rposition(is_there).map_or(0, |last| last + 1);
                for (slot, item) in items.iter().enumerate() {
                    if !flow {
                        let dash = dash_before(self.text, self.tree.nodes[*item].outer.start);
                        self.at_entry(*flow, slot, dash);
                        let kind = if slot >= absent { Kind::AbsentItem } else { Kind::Item };
                        self.mark(kind, dash..dash + 1, (id, slot));
                    }
                    self.node(*item, (id, slot));
                }
                self.leave(id, *flow, outer);
            }
        }
    }

    /// Notes how far the innermost block collection has come; its first entry also tells its column.
    fn at_entry(&mut self, flow: bool, slot: usize, start: usize) {
        if let Some(level) = self.open.last_mut().filter(|_| !flow) {
            level.slot = slot;
            if slot == 0 {
                level.column = self.lines.column(start);
            }
        }
    }

    fn enter(&mut self, id: NodeId, flow: bool, is_map: bool) {
        let node = &self.tree.nodes[id];
        if flow {
            self.mark(Kind::FlowStart, node.outer.start..node.inner.start + 1, (id, 0));
        } else {
            self.open.push(Level { column: 0, node: id, slot: 0, is_map });
        }
    }

    fn leave(&mut self, id: NodeId, flow: bool, outer: (NodeId, usize)) {
        if flow {
            let end = self.tree.nodes[id].inner.end;
            self.mark(Kind::FlowEnd(id), end.saturating_sub(1)..end, outer);
        } else {
            self.open.pop();
        }
    }
}

/// Whether a node is not there, or a list of nothing but such nodes.
fn is_absent(tree: &Tree, node: NodeId) -> bool {
    match &tree.nodes[node].kind {
        NodeKind::List { items, flow: false } => items.iter().all(|item| is_absent(tree, *item)),
        _ => tree.nodes[node].inner.is_empty(),
    }
}

/// How many entries or items a collection has.
pub(super) fn entries(tree: &Tree, node: NodeId) -> usize {
    match &tree.nodes[node].kind {
        NodeKind::Map { entries, .. } => entries.len(),
        NodeKind::List { items, .. } => items.len(),
        _ => 0,
    }
}

/// Where the entry starts whose key starts at `offset`: with the question mark and the properties before it.
fn key_start(text: &str, offset: usize) -> usize {
    let mut start = offset;
    loop {
        let before = text[..start].trim_end_matches([' ', '\t']);
        let word = before.rfind([' ', '\t', '\n', '\r']).map_or(0, |found| found + 1);
        if before.len() == start || !(before[word..].starts_with(['&', '!']) || &before[word..] == "?") {
            return start;
        }
        start = word;
    }
}

/// Where the key ends that is written up to `offset`: behind its colon, which may stand on a later line.
fn key_end(text: &str, offset: usize) -> usize {
    let mut rest = &text[offset..];
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        match rest.as_bytes().first() {
            Some(b'#') => rest = rest.find(['\n', '\r']).map_or("", |end| &rest[end..]),
            Some(b':') => return text.len() - rest.len() + 1,
            _ => return offset,
        }
    }
}

/// Place of the dash whose item starts at `offset`, with nothing but blanks and comments between.
pub(in crate::format::yaml) fn dash_before(text: &str, offset: usize) -> usize {
    let mut end = offset;
    loop {
        let line_start = text[..end].rfind(['\n', '\r']).map_or(0, |found| found + 1);
        let line = &text[line_start..end];
        let code = line.split(" #").next().unwrap_or(line).trim_end();
        if code.ends_with('-') {
            return line_start + code.len() - 1;
        }
        if line_start == 0 {
            return offset.saturating_sub(2);
        }
        end = line_start - 1;
    }
}

//! Which container a comment belongs to, as stock readers see it.
//!
//! That decides a sealed comment's additional data and which comment selectors it answers to, so it has to agree
//! with yaml.v3 and not with the eye. The rules, observed on stock sops and tabled in docs/format.md: a comment on a
//! line with content belongs to that content; one on its own line to what follows, unless what follows stands
//! further out, or a blank line follows at once: then it belongs to what came before. The text is read as it will
//! be sealed, with the `sops` key after its last line.

use std::ops::Range;

use crate::document::tree::{Comment, NodeId, NodeKind, Tree};
use crate::secret::SecretText;

/// Finds the container of each of `places` and puts the comments into the tree.
pub(super) fn attach(text: &str, tree: &mut Tree, places: &[Range<usize>]) {
    if places.is_empty() {
        return;
    }
    let lines = Lines::of(text);
    let mut marks = Marks { text, lines: &lines, tree, marks: Vec::new(), open: Vec::new() };
    for part in &tree.documents {
        if let Some(root) = part.root {
            marks.document(root, part.end);
        }
    }
    let marks = marks.marks;
    let mut comments = Vec::new();
    let mut rest = places;
    while let Some(first) = rest.first() {
        let next = marks.partition_point(|mark| mark.start < first.start);
        let limit = marks.get(next).map_or(usize::MAX, |mark| mark.start);
        let (gap, after) = rest.split_at(rest.partition_point(|place| place.start < limit));
        let prior = next.checked_sub(1).map(|prior| &marks[prior]);
        comments.extend(Gap { text, lines: &lines, prior, next: marks.get(next) }.attach(gap));
        rest = after;
    }
    tree.comments = comments;
}

/// Where each line starts.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let ends = |index: &usize| match bytes[*index] {
            b'\n' => true,
            b'\r' => bytes.get(index + 1) != Some(&b'\n'),
            _ => false,
        };
        let first = if text.starts_with('\u{feff}') { 3 } else { 0 };
        Self(std::iter::once(first).chain((0..bytes.len()).filter(ends).map(|index| index + 1)).collect())
    }

    fn line(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset)
    }

    fn column(&self, offset: usize) -> usize {
        offset - self.line(offset).checked_sub(1).map_or(0, |line| self.0[line])
    }
}

/// What a mark stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
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
struct Mark {
    kind: Kind,
    start: usize,
    end: usize,
    /// The collection it is part of, and its entry there.
    container: NodeId,
    slot: usize,
    /// The block collections open after it, outermost first.
    open: Vec<Level>,
}

/// An open block collection.
#[derive(Clone, Copy, Debug)]
struct Level {
    column: usize,
    node: NodeId,
    /// The entry it has come to.
    slot: usize,
    is_map: bool,
    /// The collection it stands in itself, and its entry there.
    outer: Owner,
}

struct Marks<'a> {
    text: &'a str,
    lines: &'a Lines,
    tree: &'a Tree,
    marks: Vec<Mark>,
    open: Vec<Level>,
}

impl Marks<'_> {
    fn document(&mut self, root: NodeId, end: usize) {
        self.node(root, (root, 0));
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
            NodeKind::Alias { .. } | NodeKind::Scalar { .. } => {
                if !node.outer.is_empty() {
                    self.mark(Kind::Value, node.outer.clone(), outer);
                }
            }
            NodeKind::Map { entries, flow } => {
                self.enter(id, *flow, outer, true);
                for (slot, entry) in entries.iter().enumerate() {
                    self.at_entry(*flow, slot, entry.place.start);
                    self.mark(Kind::Key, entry.place.clone(), (id, slot));
                    self.node(entry.value, (id, slot));
                }
                self.leave(id, *flow, outer);
            }
            NodeKind::List { items, flow } => {
                self.enter(id, *flow, outer, false);
                for (slot, item) in items.iter().enumerate() {
                    if !flow {
                        let dash = dash_before(self.text, self.tree.nodes[*item].outer.start);
                        self.at_entry(*flow, slot, dash);
                        self.mark(Kind::Item, dash..dash + 1, (id, slot));
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

    fn enter(&mut self, id: NodeId, flow: bool, outer: (NodeId, usize), is_map: bool) {
        let node = &self.tree.nodes[id];
        if flow {
            self.mark(Kind::FlowStart, node.outer.start..node.inner.start + 1, (id, 0));
        } else {
            self.open.push(Level { column: 0, node: id, slot: 0, is_map, outer });
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

/// Place of the dash whose item starts at `offset`, with nothing but blanks and comments between.
fn dash_before(text: &str, offset: usize) -> usize {
    let mut end = offset;
    loop {
        let line_start = text[..end].rfind(['\n', '\r']).map_or(0, |found| found + 1);
        let line = &text[line_start..end];
        let code = if end == offset { line } else { line.split(" #").next().unwrap_or(line) };
        let code = code.trim_end();
        if code.ends_with('-') {
            return line_start + code.len() - 1;
        }
        if line_start == 0 {
            return offset.saturating_sub(2);
        }
        end = line_start - 1;
    }
}

/// A collection and one of its entries.
type Owner = (NodeId, usize);

/// All comments between two marks.
struct Gap<'a> {
    text: &'a str,
    lines: &'a Lines,
    prior: Option<&'a Mark>,
    next: Option<&'a Mark>,
}

/// Comment lines that stock readers keep together.
struct Group {
    column: usize,
    line: usize,
    members: Vec<usize>,
}

impl Gap<'_> {
    fn attach(&self, places: &[Range<usize>]) -> Vec<Comment> {
        let mut owners = vec![None; places.len()];
        let line = self.lines.line(places[0].start);
        let beside = self.prior.filter(|prior| {
            places[0].start < prior.end || self.lines.line(prior.end.max(prior.start + 1) - 1) == line
        });
        if let Some(prior) = beside {
            owners[0] = Some(self.beside(prior, places[0].start));
        }
        OwnLines::new(self, &mut owners).all(places, usize::from(beside.is_some()));
        let comment = |(place, owner): (&Range<usize>, Option<Owner>)| Comment {
            place: place.clone(),
            text: SecretText::from(&self.text[place.start + 1..place.end]),
            container: owner.map(|(container, _)| container),
            slot: owner.map_or(0, |(_, slot)| slot),
        };
        places.iter().zip(owners).map(comment).collect()
    }

    /// The owner of a comment on a line that has content: that content, or the collection that it opens.
    fn beside(&self, prior: &Mark, comment: usize) -> Owner {
        let between = self.text.get(prior.end..comment).unwrap_or_default();
        match (prior.kind, self.next) {
            (Kind::Key, Some(next)) if between.contains(['&', '!']) => (next.container, next.slot),
            (Kind::FlowEnd(flow), _) => (flow, 0),
            _ => (prior.container, prior.slot),
        }
    }

    /// The owner of what comes after the prior content in the same collection.
    fn after_prior(&self) -> Option<Owner> {
        self.prior.map(|prior| match prior.kind {
            Kind::FlowStart => (prior.container, 0),
            _ => (prior.container, prior.slot + 1),
        })
    }

    /// The owner of a comment that stands further out than what came before: the mapping of that indent, the
    /// mapping around a list of that indent, else whatever what follows is part of.
    fn by_indent(&self, column: usize) -> Option<Owner> {
        let open = self.prior.map_or(&[][..], |prior| &prior.open);
        let ended = open.iter().rev().take_while(|level| level.column > self.next_column());
        let owner = ended.into_iter().find(|level| level.column == column).map(|level| match level.is_map {
            true => (level.node, level.slot + 1),
            false => (level.outer.0, level.outer.1 + 1),
        });
        owner.or(self.next.map(|next| (next.container, next.slot))).or_else(|| self.after_prior())
    }

    fn next_column(&self) -> usize {
        match self.next {
            Some(next) if next.kind == Kind::End => {
                self.prior.and_then(|prior| prior.open.first()).map_or(0, |level| level.column)
            }
            Some(next) => self.lines.column(next.start),
            None => 0,
        }
    }
}

/// The comments of a gap that stand on lines of their own, taken one after the other.
struct OwnLines<'a> {
    gap: &'a Gap<'a>,
    owners: &'a mut [Option<Owner>],
    group: Option<Group>,
    prior_line: usize,
    /// Column of the innermost block collection.
    indent: usize,
    /// Whether a foot still belongs to the prior content itself.
    at_prior: bool,
    /// Columns of the groups given away so far.
    columns: Vec<usize>,
    blank_seen: bool,
}

impl<'a> OwnLines<'a> {
    fn new(gap: &'a Gap<'a>, owners: &'a mut [Option<Owner>]) -> Self {
        Self {
            gap,
            owners,
            group: None,
            prior_line: gap.prior.map_or(0, |prior| gap.lines.line(prior.end.max(prior.start + 1) - 1)),
            indent: gap.prior.and_then(|prior| prior.open.last()).map_or(0, |level| level.column),
            at_prior: true,
            columns: Vec::new(),
            blank_seen: false,
        }
    }

    /// Splits them into groups, and gives each to what came before or what follows.
    fn all(mut self, places: &[Range<usize>], first: usize) {
        let lines = self.gap.lines;
        let mut latest = if first == 1 { lines.line(places[0].start) } else { self.prior_line };
        for (index, place) in places.iter().enumerate().skip(first) {
            let (line, column) = (lines.line(place.start), lines.column(place.start));
            if line > latest + 1 {
                self.blank();
            }
            if let Some(group) = self.group.take_if(|group| column < self.indent && column != group.column) {
                self.foot(&group, false);
            }
            self.group.get_or_insert(Group { column, line, members: Vec::new() }).members.push(index);
            latest = line;
        }
        self.last(latest);
    }

    /// The first blank line makes a foot of a comment right below the prior content, or further out than it.
    fn blank(&mut self) {
        let can_have_foot = self.gap.prior.is_some_and(|prior| prior.kind != Kind::Key);
        if !std::mem::replace(&mut self.blank_seen, true)
            && let Some(group) = self.group.take()
        {
            let out = group.column < self.indent;
            match out || (can_have_foot && group.line == self.prior_line + 1) {
                true => self.foot(&group, out),
                false => self.group = Some(group),
            }
        }
    }

    fn last(mut self, latest: usize) {
        let next = self.gap.next;
        if next.is_none_or(|next| self.gap.lines.line(next.start) > latest + 1) {
            self.blank();
        }
        let Some(group) = self.group.take() else { return };
        let column = self.gap.next_column();
        match next {
            Some(next)
                if !matches!(next.kind, Kind::FlowEnd(_))
                    && (column >= self.indent || column == group.column) =>
            {
                self.give(&group, Some((next.container, next.slot)));
            }
            _ => self.foot(&group, false),
        }
    }

    fn foot(&mut self, group: &Group, out: bool) {
        let at_prior = std::mem::replace(&mut self.at_prior, false) && !out;
        let owner = match (at_prior, self.columns.contains(&group.column)) {
            (true, _) => self.gap.after_prior(),
            // Only the first comment of an indent is found by it.
            (false, true) => self.gap.next.map(|next| (next.container, next.slot)),
            (false, false) => self.gap.by_indent(group.column),
        };
        self.columns.push(group.column);
        self.give(group, owner);
    }

    fn give(&mut self, group: &Group, owner: Option<Owner>) {
        for member in &group.members {
            self.owners[*member] = owner;
        }
    }
}

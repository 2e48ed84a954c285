//! Which container a comment belongs to, as stock readers see it.
//!
//! That decides a sealed comment's additional data and which comment selectors it answers to, so it has to agree
//! with yaml.v3 and not with the eye. The rules, observed on stock sops and tabled in docs/format.md: a comment on a
//! line with content belongs to that content; one on its own line to what follows, unless what follows stands
//! further out, or a blank line follows at once: then it belongs to what came before. The text is read as it will
//! be sealed, with the `sops` key after its last line.

use std::collections::HashSet;
use std::ops::Range;

use crate::document::tree::{Comment, NodeId, NodeKind, Tree};
use crate::format::yaml::comments::marks::{Kind, Lines, Mark, Marks, Owner, entries};
use crate::secret::SecretText;

mod marks;

pub(super) use marks::dash_before;

/// Finds the container of each of `places` and puts the comments into the tree. The aliases `written_out` count as
/// the collections in brackets that will stand in their places.
pub(super) fn attach(text: &str, tree: &mut Tree, places: &[Range<usize>], written_out: &HashSet<NodeId>) {
    if places.is_empty() {
        return;
    }
    let lines = Lines::of(text);
    let mut comments = Vec::new();
    let mut rest = places;
    for (number, part) in tree.documents.iter().enumerate() {
        // What stands behind the end of a document belongs to the next one.
        let is_last = number + 1 == tree.documents.len();
        let (own, after) = rest.split_at(rest.partition_point(|place| is_last || place.start < part.end));
        rest = after;
        match part.root {
            Some(root) => {
                let marks = Marks::of(text, &lines, tree, written_out, root, part.end);
                let gap = Gap { text, lines: &lines, tree, written_out, prior: None, next: None };
                comments.extend(by_gaps(&gap, &marks, own));
            }
            // The `sops` key will make it a mapping, with nothing else in it.
            None => comments.extend(own.iter().map(|place| Comment {
                place: place.clone(),
                text: SecretText::from(&text[place.start + 1..place.end]),
                container: None,
                slot: number,
            })),
        }
    }
    tree.comments = comments;
}

/// The comments of one document, gap by gap.
fn by_gaps<'a>(empty: &Gap<'a>, marks: &'a [Mark], places: &[Range<usize>]) -> Vec<Comment> {
    let mut comments = Vec::new();
    let mut rest = places;
    while let Some(first) = rest.first() {
        let next = marks.partition_point(|mark| mark.start < first.start);
        let limit = marks.get(next).map_or(usize::MAX, |mark| mark.start);
        let (gap, after) = rest.split_at(rest.partition_point(|place| place.start < limit));
        let prior = next.checked_sub(1).map(|prior| &marks[prior]);
        comments.extend(Gap { prior, next: marks.get(next), ..*empty }.attach(gap));
        rest = after;
    }
    comments
}

/// All comments between two marks.
struct Gap<'a> {
    text: &'a str,
    lines: &'a Lines,
    tree: &'a Tree,
    written_out: &'a HashSet<NodeId>,
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
        if let Some(absent) = self.prior.filter(|prior| prior.kind == Kind::AbsentItem) {
            owners.fill(Some((absent.container, absent.slot)));
            return self.comments(places, owners);
        }
        let line = self.lines.line(places[0].start);
        let beside = self.prior.filter(|prior| {
            places[0].start < prior.end || self.lines.line(prior.end.max(prior.start + 1) - 1) == line
        });
        if let Some(prior) = beside {
            owners[0] = Some(self.beside(prior, places[0].start));
        }
        OwnLines::new(self, &mut owners).all(places, usize::from(beside.is_some()));
        self.comments(places, owners)
    }

    fn comments(&self, places: &[Range<usize>], owners: Vec<Option<Owner>>) -> Vec<Comment> {
        let comment = |(place, owner): (&Range<usize>, Option<Owner>)| Comment {
            place: place.clone(),
            text: SecretText::from(&self.text[place.start + 1..place.end]),
            container: owner.map(|(container, _)| container),
            slot: owner.map_or(0, |(container, slot)| slot.min(entries(self.tree, container))),
        };
        places.iter().zip(owners).map(comment).collect()
    }

    /// The owner of a comment on a line that has content: that content, or the collection that it opens.
    fn beside(&self, prior: &Mark, comment: usize) -> Owner {
        let between = self.text.get(prior.end..comment).unwrap_or_default();
        match (prior.kind, self.next) {
            (Kind::Key, Some(next)) if between.contains(['&', '!']) => (next.container, next.slot),
            (Kind::FlowEnd(flow), _) => (self.without_pair(flow), 0),
            _ => (prior.container, prior.slot),
        }
    }

    /// The collection whose bracket ends `flow`: of a pair without braces, the collection in it.
    fn without_pair(&self, flow: NodeId) -> NodeId {
        match &self.tree.nodes[flow].kind {
            NodeKind::Map { entries, .. }
                if !self.text[self.tree.nodes[flow].inner.start..].starts_with('{') =>
            {
                let value = entries.last().map(|entry| entry.value);
                let is_flow = |value: &NodeId| match self.tree.nodes[*value].kind {
                    NodeKind::Alias { .. } => self.written_out.contains(value),
                    NodeKind::List { .. } | NodeKind::Map { .. } => true,
                    NodeKind::Scalar { .. } => false,
                };
                value.filter(is_flow).unwrap_or(flow)
            }
            _ => flow,
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
        // The `sops` key will stand on a line of its own.
        let lines = self.gap.lines;
        let begun = |next: &Mark| usize::from(next.kind == Kind::End && lines.column(next.start) > 0);
        if next.is_none_or(|next| lines.line(next.start) + begun(next) > latest + 1) {
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

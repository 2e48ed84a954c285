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
use crate::format::yaml::comments::marks::{Kind, Level, Lines, Mark, Marks, Owner, entries};
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
        let beside = places.iter().take_while(|place| self.is_beside(place)).count();
        if let Some(prior) = self.prior {
            for (owner, place) in owners.iter_mut().zip(places).take(beside) {
                *owner = Some(self.beside(prior, place.start));
            }
        }
        OwnLines::new(self, &mut owners).all(places, beside);
        self.comments(places, owners)
    }

    /// Whether a comment stands between a node and its properties, or is the first one behind content or a comma.
    fn is_beside(&self, place: &Range<usize>) -> bool {
        let Some(prior) = self.prior.filter(|prior| prior.kind != Kind::AbsentItem) else { return false };
        let line = &self.text[place.start - self.lines.column(place.start)..place.start];
        let is_after_comma = || line.trim_ascii() == "," && prior.kind != Kind::FlowStart;
        let is_on_line =
            || self.lines.line(prior.end.max(prior.start + 1) - 1) == self.lines.line(place.start);
        place.start < prior.end || is_on_line() || is_after_comma()
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
            (Kind::Key, Some(next)) if between.contains(['&', '!']) => {
                match self.is_absent(prior) || next.kind == Kind::AbsentItem {
                    true => (prior.container, prior.slot + 1),
                    false => (next.container, next.slot),
                }
            }
            (Kind::FlowEnd(flow), _) => (self.without_pair(flow), 0),
            _ => (prior.container, prior.slot),
        }
    }

    /// Whether the key's value is absent.
    fn is_absent(&self, key: &Mark) -> bool {
        match &self.tree.nodes[key.container].kind {
            NodeKind::Map { entries, .. } => {
                entries.get(key.slot).is_some_and(|entry| self.tree.nodes[entry.value].inner.is_empty())
            }
            _ => false,
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

    /// The owner of what a closing collection takes along. Stock readers end a collection before the first comment of
    /// its column, `ends` in the numbers of groups, from the innermost on; mappings alone take comments.
    fn at_ends(&self, ends: &[Option<usize>], group: usize) -> Option<Owner> {
        let first = ends.iter().position(|end| end.is_some_and(|end| end >= group));
        let maps = self.ended().skip(first.unwrap_or(ends.len())).find(|level| level.is_map);
        let taker = maps.or_else(|| self.around_absent());
        taker
            .map(|level| (level.node, level.slot + 1))
            .or_else(|| self.at_next())
            .or_else(|| self.after_prior())
    }

    /// What takes a comment that comes before items that are absent: their mapping, unless the list around goes on.
    fn around_absent(&self) -> Option<&Level> {
        let next = self.next.filter(|next| next.kind == Kind::AbsentItem)?;
        next.open.iter().rev().find(|level| level.is_map || level.node == next.container)
    }

    /// The block collections that end between the marks, innermost first.
    fn ended(&self) -> impl Iterator<Item = &Level> {
        let open = self.prior.map_or(&[][..], |prior| &prior.open);
        let column = self.next_column();
        open.iter().rev().take_while(move |level| level.column > column)
    }

    /// The owner of a comment that goes with what follows: the list itself, where its item is a list of absent items.
    fn before_next(&self) -> Option<Owner> {
        let absent = self.next.filter(|next| next.kind == Kind::AbsentItem);
        let around = absent.and_then(|next| next.open.last()).filter(|level| {
            let NodeKind::List { items, .. } = &self.tree.nodes[level.node].kind else { return false };
            let item = items.get(level.slot).map(|item| &self.tree.nodes[*item].kind);
            matches!(item, Some(NodeKind::List { .. }))
        });
        around.map(|level| (level.node, level.slot)).or_else(|| self.at_next())
    }

    fn at_next(&self) -> Option<Owner> {
        self.next.map(|next| (next.container, next.slot))
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
    blank_seen: bool,
    /// The groups that are complete.
    groups: Vec<(Group, Side)>,
}

/// What a group of comments goes with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// What follows.
    Next,
    /// What ends between.
    Out,
    /// What came before, or what ends between if others came before it.
    Prior,
}

impl<'a> OwnLines<'a> {
    fn new(gap: &'a Gap<'a>, owners: &'a mut [Option<Owner>]) -> Self {
        Self {
            gap,
            owners,
            group: None,
            prior_line: gap.prior.map_or(0, |prior| gap.lines.line(prior.end.max(prior.start + 1) - 1)),
            indent: gap.prior.and_then(|prior| prior.open.last()).map_or(0, |level| level.column),
            blank_seen: false,
            groups: Vec::new(),
        }
    }

    /// Splits them into groups, and gives each to what came before, what ends or what follows.
    fn all(mut self, places: &[Range<usize>], first: usize) {
        let lines = self.gap.lines;
        let beside = first.checked_sub(1).map_or(0, |beside| lines.line(places[beside].start));
        let mut latest = beside.max(self.prior_line);
        for (index, place) in places.iter().enumerate().skip(first) {
            let (line, column) = (lines.line(place.start), lines.column(place.start));
            if line > latest + 1 {
                self.blank();
            }
            if let Some(group) = self.group.take_if(|group| column < self.indent && column != group.column) {
                self.groups.push((group, Side::Prior));
            }
            self.group.get_or_insert(Group { column, line, members: Vec::new() }).members.push(index);
            latest = line;
        }
        self.last(latest);
        self.give();
    }

    /// The first blank line makes a foot of a comment right below the prior content, or further out than it.
    fn blank(&mut self) {
        let can_have_foot = self.gap.prior.is_some_and(|prior| prior.kind != Kind::Key);
        if !std::mem::replace(&mut self.blank_seen, true)
            && let Some(group) = self.group.take()
        {
            let out = group.column < self.indent;
            match out || (can_have_foot && group.line == self.prior_line + 1) {
                true => self.groups.push((group, if out { Side::Out } else { Side::Prior })),
                false => self.group = Some(group),
            }
        }
    }

    fn last(&mut self, latest: usize) {
        let next = self.gap.next;
        // The `sops` key will stand on a line of its own.
        let lines = self.gap.lines;
        let begun = |next: &Mark| usize::from(next.kind == Kind::End && lines.column(next.start) > 0);
        if next.is_none_or(|next| lines.line(next.start) + begun(next) > latest + 1) {
            self.blank();
        }
        let Some(group) = self.group.take() else { return };
        let column = self.gap.next_column();
        let is_head = next.is_some_and(|next| {
            !matches!(next.kind, Kind::FlowEnd(_)) && (column >= self.indent || column == group.column)
        });
        self.groups.push((group, if is_head { Side::Next } else { Side::Prior }));
    }

    fn give(self) {
        let ends = self.ends();
        let has_content = |prior: &Mark| !matches!(prior.kind, Kind::AbsentItem | Kind::Item | Kind::Key);
        let at_once = vec![Some(usize::MAX); ends.len()];
        for (number, (group, side)) in self.groups.iter().enumerate() {
            let owner = match side {
                Side::Next => self.gap.before_next(),
                Side::Prior if number == 0 => match self.gap.prior.is_some_and(has_content) {
                    true => self.gap.after_prior(),
                    false => self.gap.at_ends(&at_once, 0),
                },
                Side::Out | Side::Prior => self.gap.at_ends(&ends, number),
            };
            for member in &group.members {
                self.owners[*member] = owner;
            }
        }
    }

    /// Before which group each collection ends, the innermost first: the first one of its column, else where the
    /// collection in it ends.
    fn ends(&self) -> Vec<Option<usize>> {
        let mut latest = None;
        let end = |level: &Level| {
            latest = self.groups.iter().position(|(group, _)| group.column == level.column).or(latest);
            latest
        };
        self.gap.ended().map(end).collect()
    }
}

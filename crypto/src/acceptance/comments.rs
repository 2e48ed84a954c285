//! Comments that would be sealed where stock readers look for them in several places, or in one that only they know.

use crate::document::Document;
use crate::document::part::TextPart;
use crate::document::tree::{Comment, Entry, NodeId, NodeKind, Tree};
use crate::error::ParseError;

/// Refuses the first sealed comment that stock readers would not open. A comment's seal holds for one address.
pub(super) fn check(text: &str, document: &Document, sealed: &[Option<TextPart>]) -> Result<(), ParseError> {
    let tree = &document.tree;
    let places: Vec<usize> = document
        .leaves
        .iter()
        .zip(sealed)
        .filter(|(leaf, sealed)| sealed.is_some() && leaf.is_comment())
        .filter_map(|(leaf, _)| document.site(leaf).map(|site| site.outer.start))
        .collect();
    if places.is_empty() {
        return Ok(());
    }
    let is_sealed = |comment: &&Comment| places.contains(&comment.place.start);
    for alias in &document.aliases {
        if sealed.get(alias.leaves.clone()).is_some_and(|sealed| sealed.iter().all(Option::is_none)) {
            let mut repeated = tree.comments.iter().filter(|comment| is_repeated(tree, alias.node, comment));
            if let Some(comment) = repeated.find(is_sealed) {
                let reason = "other readers see this comment again at an alias to what it stands with, and cannot \
                              open it there: remove it, or write out the alias";
                return Err(ParseError::at(text, comment.place.start, reason));
            }
        }
    }
    check_explicit(text, tree)?;
    check_root(text, tree)
}

/// Whether stock readers take `comment` along to where `alias` stands: it is part of the collection, or of a list
/// directly before or behind it.
fn is_repeated(tree: &Tree, alias: NodeId, comment: &Comment) -> bool {
    let (target, Some(container)) = (tree.resolved(alias), comment.container) else { return false };
    if matches!(target.kind, NodeKind::Scalar { .. }) {
        return false;
    }
    let container = &tree.nodes[container];
    let is_target = |item: &NodeId| tree.nodes[*item].inner == target.inner;
    let is_beside = match &container.kind {
        NodeKind::List { items, .. } => {
            items.iter().position(is_target).is_some_and(|index| (index..=index + 1).contains(&comment.slot))
        }
        _ => false,
    };
    is_beside || (target.inner.start <= container.inner.start && container.inner.end <= target.inner.end)
}

/// A comment on a line between an explicit key and its colon goes with what a collection begins with.
fn check_explicit(text: &str, tree: &Tree) -> Result<(), ParseError> {
    let maps = tree.nodes.iter().filter_map(|node| match &node.kind {
        NodeKind::Map { entries, flow: false } => Some(entries),
        _ => None,
    });
    let is_collection = |entry: &&Entry| !matches!(tree.nodes[entry.value].kind, NodeKind::Scalar { .. });
    for entry in maps.flatten().filter(is_collection) {
        let (start, end) = (entry.place.end, tree.nodes[entry.value].outer.start);
        let first = tree.comments.partition_point(|comment| comment.place.start < start);
        let between = tree.comments[first..].iter().take_while(|comment| comment.place.start < end);
        for comment in between {
            let is_own_line = text[start..comment.place.start].contains(['\n', '\r']);
            let mut rest = text[comment.place.end..end].split(['\n', '\r']);
            if is_own_line && rest.any(|line| line.trim_ascii_start().starts_with(':')) {
                let reason = "a comment between `?` and `:` belongs to something else for other readers: move it \
                              before the `?`";
                return Err(ParseError::at(text, comment.place.start, reason));
            }
        }
    }
    Ok(())
}

/// In a root in braces the block is put behind the last value, and a comment there would go to the block.
fn check_root(text: &str, tree: &Tree) -> Result<(), ParseError> {
    for root in tree.documents.iter().filter_map(|part| part.root) {
        let NodeKind::Map { entries, flow: true } = &tree.nodes[root].kind else { continue };
        let Some(last) = entries.last() else { continue };
        let (start, end) = (tree.nodes[last.value].outer.end, tree.nodes[root].inner.end);
        let behind = |comment: &&Comment| {
            let line = text[..comment.place.start].rfind(['\n', '\r']).map_or(0, |at| at + 1);
            let is_there = (start..end).contains(&comment.place.start);
            is_there && !text[line..comment.place.start].trim_ascii().is_empty()
        };
        if let Some(comment) = tree.comments.iter().find(behind) {
            let reason = "the sops block goes between this comment and its value: move it to a line of its own \
                          before the value";
            return Err(ParseError::at(text, comment.place.start, reason));
        }
    }
    Ok(())
}

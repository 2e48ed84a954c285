//! Tabs where YAML counts columns: stock readers take none there, others do.
//!
//! YAML allows tabs between tokens, and our parser takes each that it allows. yaml.v3 stops at one where a key could
//! stand: before the first token of a line, and behind the `-`, `?` or `:` that begins a block collection.

use crate::document::Document;
use crate::document::tree::{NodeKind, Style, Tree};
use crate::error::ParseError;

/// Refuses the first tab that stops stock readers. Scalars and flow collections may hold tabs.
pub(super) fn check(text: &str, document: &Document) -> Result<(), ParseError> {
    if !text.contains('\t') {
        return Ok(());
    }
    let covered = covered(&document.tree);
    for (offset, _) in text.match_indices('\t') {
        let before = covered.partition_point(|place| place.0 <= offset);
        let is_covered = before.checked_sub(1).is_some_and(|index| offset < covered[index].1);
        if !is_covered && a_key_could_stand(text, offset) {
            let reason =
                "other readers refuse a tab in the indentation, on an empty line or behind `-`: use spaces";
            return Err(ParseError::at(text, offset, reason));
        }
    }
    Ok(())
}

/// The places in which tabs are content or mean nothing, in text order and without overlaps.
fn covered(tree: &Tree) -> Vec<(usize, usize)> {
    let holds_tabs = |kind: &NodeKind| match kind {
        NodeKind::Alias { .. } => false,
        NodeKind::List { flow, .. } | NodeKind::Map { flow, .. } => *flow,
        NodeKind::Scalar { style, .. } => !matches!(style, Style::Comment),
    };
    let nodes = tree.nodes.iter().filter(|node| holds_tabs(&node.kind)).map(|node| &node.inner);
    let comments = tree.comments.iter().map(|comment| &comment.place);
    let keys = tree.nodes.iter().flat_map(|node| match &node.kind {
        NodeKind::Map { entries, .. } => entries.as_slice(),
        _ => &[],
    });
    let places = nodes.chain(comments).chain(keys.map(|entry| &entry.place));
    let mut places: Vec<_> = places.map(|place| (place.start, place.end)).collect();
    places.sort_unstable();
    let mut joined: Vec<(usize, usize)> = Vec::with_capacity(places.len());
    for (start, end) in places {
        match joined.last_mut() {
            Some(last) if start < last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

/// Whether nothing stands before `offset` on its line but blanks and the signs that begin an entry.
fn a_key_could_stand(text: &str, offset: usize) -> bool {
    let start = text[..offset].rfind(['\n', '\r']).map_or(0, |at| at + 1);
    let line = text[start..offset].trim_start_matches('\u{feff}');
    line.split([' ', '\t']).all(|word| matches!(word, "" | "-" | "?" | ":"))
}

//! Comments beside an alias whose content will be written out. In the sealed text they stand beside a closing bracket
//! or brace, and belong to what it closes.

use std::collections::HashSet;

use crate::document::Document;
use crate::document::tree::{NodeId, NodeKind, Tree};
use crate::error::ParseError;
use crate::format::Format;
use crate::selector::Selector;

impl Document {
    /// Reads `text` with each comment where it will belong once the leaves that `selector` names are sealed.
    ///
    /// # Errors
    /// As [`Document::read`].
    pub(crate) fn read_to_seal(text: &str, format: Format, selector: &Selector) -> Result<Self, ParseError> {
        let document = Self::read(text, format)?;
        if document.aliases.is_empty() || selector.is_about_comments() {
            return Ok(document);
        }
        let selected = selector.select(&document, &|_| None);
        let is_sealed = |index: usize| selected[index] && document.leaves[index].value.is_sealable();
        let written_out = document.aliases.iter().filter(|alias| alias.leaves.clone().any(is_sealed));
        let written_out: HashSet<NodeId> = written_out.map(|alias| alias.node).collect();
        let Self { mut tree, .. } = document;
        move_inside(text, &mut tree, &written_out);
        Self::of_tree(text, format, tree)
    }
}

/// Gives the comments beside `aliases` of mappings and lists to these aliases.
fn move_inside(text: &str, tree: &mut Tree, aliases: &HashSet<NodeId>) {
    let is_collection = |node: &NodeId| !matches!(tree.resolved(*node).kind, NodeKind::Scalar { .. });
    let end = |node: NodeId| (tree.nodes[node].outer.end, node);
    let mut ends: Vec<_> = aliases.iter().copied().filter(is_collection).map(end).collect();
    ends.sort_unstable();
    for comment in &mut tree.comments {
        let before = ends.partition_point(|(end, _)| *end <= comment.place.start);
        let Some((end, alias)) = before.checked_sub(1).map(|index| ends[index]) else { continue };
        if text[end..comment.place.start].bytes().all(|byte| matches!(byte, b' ' | b'\t' | b',')) {
            (comment.container, comment.slot) = (Some(alias), 0);
        }
    }
}

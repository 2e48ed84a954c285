//! Comments beside and before an alias whose content will be written out. In the sealed text they stand at a bracket
//! or brace, and belong to what it encloses.

use std::collections::HashSet;

use crate::document::Document;
use crate::document::tree::{NodeId, NodeKind};
use crate::error::ParseError;
use crate::format::Format;
use crate::secret::SecretText;
use crate::selector::Selector;

impl Document {
    /// Reads `text` with each comment where it will belong once the leaves that `selector` names are sealed.
    ///
    /// # Errors
    /// As [`Document::read`].
    pub(crate) fn read_to_seal(
        text: &SecretText,
        format: Format,
        selector: &Selector,
    ) -> Result<Self, ParseError> {
        let document = Self::read_whole(text, format)?;
        if document.aliases.is_empty() || selector.is_about_comments() {
            return Ok(document);
        }
        let selected = selector.select(&document, &|_| None);
        let is_sealed = |index: usize| selected[index] && document.leaves[index].value.is_sealable();
        let written_out = document.aliases.iter().filter(|alias| alias.leaves.clone().any(is_sealed));
        let is_collection =
            |node: &NodeId| !matches!(document.tree.resolved(*node).kind, NodeKind::Scalar { .. });
        let written_out: HashSet<NodeId> =
            written_out.map(|alias| alias.node).filter(is_collection).collect();
        let Self { mut tree, .. } = document;
        let text = text.expose_secret();
        format.syntax().attach_comments(text, &mut tree, &written_out);
        Self::of_tree(text, format, tree)
    }
}

//! The top level of an opened document as variables, for the environment of a program.

use crate::decrypt::OpenFile;
use crate::document::Document;
use crate::document::tree::{Entry, NodeKind};
use crate::error::{ParseError, PathError};
use crate::format::untyped;
use crate::secret::SecretBytes;
use crate::value::{Value, ValueType};

/// One name and what it stands for.
#[derive(Debug)]
pub struct Variable {
    /// The key.
    pub name: String,
    /// The value's bytes: text as it is, anything else as stock tools print it; nothing for null.
    pub value: Option<SecretBytes>,
}

impl OpenFile {
    /// The keys and values at the top of the first document, in its order.
    ///
    /// # Errors
    /// [`PathError`] naming a key that holds a mapping or a list.
    pub fn variables(&self) -> Result<Vec<Variable>, PathError> {
        let unreadable = |error: ParseError| PathError(error.to_string());
        let text = self.document_text().map_err(unreadable)?;
        let document = Document::read(text.expose_secret(), self.format()).map_err(unreadable)?;
        let root = document.tree.documents.first().and_then(|part| part.root);
        let Some(NodeKind::Map { entries, .. }) = root.map(|root| &document.tree.nodes[root].kind) else {
            return Ok(Vec::new());
        };
        let variable = |entry: &Entry| match &document.tree.resolved(entry.value).kind {
            NodeKind::Scalar { value, .. } => {
                Ok(Variable { name: entry.name.to_string(), value: bytes(value) })
            }
            _ => Err(PathError(format!("`{}` holds a mapping or a list, and not one value", entry.name))),
        };
        entries.iter().map(variable).collect()
    }
}

fn bytes(value: &Value) -> Option<SecretBytes> {
    match value.kind() {
        None if *value == Value::Null => None,
        Some(ValueType::Bool | ValueType::Float) => {
            Some(SecretBytes::new(untyped(value).as_bytes().to_vec()))
        }
        _ => Some(SecretBytes::new(value.bytes().to_vec())),
    }
}

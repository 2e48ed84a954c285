//! Any bytes as one value: `{"data": …}`, sealed in a JSON object.
//!
//! A document is text, and these bytes are none. So the clear side is a text as well, an *envelope* that never leaves
//! this crate: the same object with the bytes in base64. A sealed text cannot be taken for it, since base64 has no
//! bracket.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Plain;

use crate::document::tree::{NodeId, NodeKind, Tree};
use crate::document::{BLOCK_KEY, Site};
use crate::error::{ParseError, PathError};
use crate::format::json::Json;
use crate::format::{Insertion, Replacement, Syntax};
use crate::secret::{SecretBytes, SecretText};
use crate::value::{Sealed, Value, ValueType};

/// Name of the one value, which is part of what it is sealed with.
const DATA_KEY: &str = "data";

/// The format's implementation.
pub(super) struct Binary;

/// The clear text that stands for `bytes`.
pub(super) fn envelope(bytes: &[u8]) -> SecretText {
    // One buffer of the right size: growing would leave copies behind.
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4 + 16);
    text.push_str("{\n\t\"data\": \"");
    STANDARD.encode_string(bytes, &mut text);
    text.push_str("\"\n}\n");
    SecretText::new(text)
}

/// The bytes in a clear text.
pub(super) fn content(text: &SecretText) -> Option<SecretBytes> {
    let tree = Binary.read(text).ok()?;
    let entry = tree.root_entry(0, DATA_KEY)?;
    match &tree.nodes[entry.value].kind {
        NodeKind::Scalar { value, .. } => Some(SecretBytes::new(value.bytes().to_vec())),
        _ => None,
    }
}

impl Syntax for Binary {
    fn read(&self, text: &SecretText) -> Result<Tree, ParseError> {
        let mut tree = Json.read(text)?;
        let text = text.expose_secret();
        let root = tree.documents.first().and_then(|part| part.root);
        let Some(NodeKind::Map { entries, .. }) = root.map(|root| &tree.nodes[root].kind) else {
            return Err(ParseError::at(text, 0, "the document's root must be an object"));
        };
        let mut data = None;
        for entry in entries {
            match entry.name.as_str() {
                DATA_KEY => data = Some(entry.value),
                BLOCK_KEY => {}
                _ => {
                    let reason = "a sealed binary file holds `data` and `sops` and nothing else";
                    return Err(ParseError::at(text, entry.place.start, reason));
                }
            }
        }
        let data = data.ok_or_else(|| ParseError::at(text, 0, "a sealed binary file has a `data` value"))?;
        let place = tree.nodes[data].inner.start;
        let refuse = |reason: &str| ParseError::at(text, place, reason);
        let NodeKind::Scalar { value, .. } = &mut tree.nodes[data].kind else {
            return Err(refuse("`data` must be text"));
        };
        match (value.kind(), value.as_text()) {
            (Some(ValueType::Str), Some(sealed)) if Sealed::looks_like(sealed) => {}
            (Some(ValueType::Str), Some(clear)) => {
                let bytes = STANDARD.decode(clear).map_err(|_| refuse("`data` is not sealed"))?;
                *value = Value::Typed(ValueType::Str, SecretBytes::new(bytes));
            }
            _ => return Err(refuse("`data` must be text")),
        }
        Ok(tree)
    }

    fn sealed<'a>(&self, text: &str, site: &Site, enc: &'a str, one_line: bool) -> Replacement<'a> {
        Json.sealed(text, site, enc, one_line)
    }

    fn opened<'a>(&self, _text: &str, site: &Site, value: &'a Value) -> Replacement<'a> {
        let text = format!("\"{}\"", STANDARD.encode(value.bytes()));
        Replacement { place: site.inner.clone(), text: text.into() }
    }

    fn block_insertions(
        &self,
        text: &str,
        tree: &Tree,
        first: &Plain,
        others: &Plain,
    ) -> (Vec<Insertion>, bool) {
        Json.block_insertions(text, tree, first, others)
    }

    fn block_places(&self, text: &str, tree: &Tree) -> Vec<Range<usize>> {
        Json.block_places(text, tree)
    }

    fn insertion(
        &self,
        _text: &str,
        _tree: &Tree,
        _collection: NodeId,
        _key: Option<&str>,
        _json: &Plain,
    ) -> Result<Insertion, PathError> {
        Err(whole())
    }

    fn replacement(
        &self,
        _text: &str,
        _tree: &Tree,
        _node: NodeId,
        _json: &Plain,
    ) -> Result<Replacement<'static>, PathError> {
        Err(whole())
    }

    fn removal(
        &self,
        _text: &str,
        _tree: &Tree,
        _collection: NodeId,
        _index: usize,
    ) -> Result<Vec<Replacement<'static>>, PathError> {
        Err(whole())
    }
}

fn whole() -> PathError {
    PathError("a binary file is one value without parts: seal it anew".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_holds_any_bytes() {
        let all: Vec<u8> = (0..=255).collect();
        for bytes in [&[][..], b"\0", b"ENC[AES256_GCM,data:x]", "é\n".as_bytes(), &all] {
            assert_eq!(content(&envelope(bytes)).unwrap().expose_secret(), bytes);
        }
    }

    #[test]
    fn other_objects_are_refused() {
        let cases = [
            ("{}", "has a `data` value"),
            ("[]", "must be an object"),
            ("{\"data\": 1}", "must be text"),
            ("{\"data\": null}", "must be text"),
            ("{\"data\": {}}", "must be text"),
            ("{\"data\": \"not sealed\"}", "not sealed"),
            ("{\"data\": \"\", \"more\": 1}", "nothing else"),
            ("just text", ""),
        ];
        for (text, reason) in cases {
            let error = Binary.read(&text.into()).unwrap_err();
            assert!(error.reason.contains(reason), "{text}: {error}");
        }
    }
}

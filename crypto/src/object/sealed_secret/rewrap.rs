//! The text of manifests with other ciphertext in it, and every other byte as it was.
//!
//! Finds the SealedSecrets of a YAML or JSON text, of which there may be several in one stream or list, and replaces the
//! characters of an item one by one, so that comments, order, quotes and line breaks inside a long value stay. Where the
//! new ciphertext comes from is for the caller to say: from keys at hand ([`super::reseal`]), or from a cluster.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value as Plain;

use super::{API_VERSION, KIND, Resealed, SealedSecret};
use crate::document::Document;
use crate::document::tree::{Node, NodeId, NodeKind, Style, Tree};
use crate::error::ParseError;
use crate::format::{Format, Replacement};

mod span;
mod stream;

/// Most levels of lists inside lists.
const LIST_DEPTH_MAX: usize = 4;

/// A text with SealedSecrets in it.
pub struct SealedManifest {
    text: String,
    format: Format,
    objects: Vec<SealedObject>,
}

/// One SealedSecret of a text.
pub struct SealedObject {
    /// The object.
    pub secret: SealedSecret,
    /// The same as JSON, as a server takes it.
    pub json: Plain,
    /// The line on which it begins, counted from 1.
    pub line: usize,
    spans: BTreeMap<String, Span>,
    legacy: Option<Span>,
}

/// Where and how one ciphertext is written.
struct Span {
    place: Range<usize>,
    style: Style,
}

impl SealedManifest {
    /// Reads a text as [`Format::Yaml`] or [`Format::Json`]. In JSON, several values may follow each other. A text
    /// without the word of the kind is not looked at: folders hold much that is YAML and no manifest.
    ///
    /// # Errors
    /// The place of what cannot be read, and of a SealedSecret some of whose items could not be replaced.
    pub fn read(text: &str, format: Format) -> Result<Self, ParseError> {
        let mut objects = Vec::new();
        let parts = if text.contains(KIND) { stream::parts(text, format) } else { Vec::new() };
        for part in parts {
            Reader::new(text, part, format)?.objects(&mut objects)?;
        }
        Ok(Self { text: text.to_owned(), format, objects })
    }

    /// Its SealedSecrets in the order of the text. There may be none.
    pub fn objects(&self) -> &[SealedObject] {
        &self.objects
    }

    /// The text with `resealed` in place, one for each object in their order.
    ///
    /// # Errors
    /// When the text would not read back as it was but for the new ciphertext. It is a defect, and better an error than
    /// a manifest that says something else.
    pub fn with(&self, resealed: &[Resealed]) -> Result<String, ParseError> {
        let mut replacements = Vec::new();
        for (object, resealed) in self.objects.iter().zip(resealed) {
            for (name, item) in &resealed.items {
                if let Some(span) = object.spans.get(name) {
                    replacements.push(self.replacement(span, item));
                }
            }
            if let (Some(span), Some(blob)) = (&object.legacy, &resealed.legacy_data) {
                replacements.push(self.replacement(span, blob));
            }
        }
        replacements.sort_by_key(|replacement| replacement.place.start);
        let mut text = String::with_capacity(self.text.len());
        let mut done = 0;
        for Replacement { place, text: new } in &replacements {
            text.push_str(&self.text[done..place.start]);
            text.push_str(new);
            done = place.end;
        }
        text.push_str(&self.text[done..]);
        self.check(&text, resealed)?;
        Ok(text)
    }

    fn replacement(&self, span: &Span, item: &str) -> Replacement<'static> {
        let old = &self.text[span.place.clone()];
        Replacement { place: span.place.clone(), text: span::rewritten(old, &span.style, item).into() }
    }

    /// Whether `text` says what this one does with `resealed` in it.
    fn check(&self, text: &str, resealed: &[Resealed]) -> Result<(), ParseError> {
        let again = Self::read(text, self.format)?;
        let mut pairs = self.objects.iter().zip(&again.objects).zip(resealed);
        let is_same = self.objects.len() == again.objects.len()
            && pairs.all(|((old, new), resealed)| is_same_but_for(&old.secret, &new.secret, resealed));
        let reason = "the new ciphertext cannot be written in this style: write the values on one line each";
        if is_same { Ok(()) } else { Err(ParseError::at(&self.text, 0, reason)) }
    }
}

/// Whether `new` is `old` with `resealed` in it. Line breaks inside an item mean nothing.
fn is_same_but_for(old: &SealedSecret, new: &SealedSecret, resealed: &Resealed) -> bool {
    let (mut expected, mut found) = (old.clone(), new.clone());
    let unbroken = |item: &mut String| item.retain(|character| !matches!(character, '\r' | '\n'));
    for (name, item) in &resealed.items {
        expected.items.insert(name.clone(), item.clone());
        found.items.get_mut(name).map(unbroken);
    }
    if let Some(blob) = &resealed.legacy_data {
        expected.legacy_data = Some(blob.clone());
        found.legacy_data.as_mut().map(unbroken);
    }
    found == expected
}

/// One value of a stream, taken apart.
struct Reader<'a> {
    text: &'a str,
    /// What is before this value in the text.
    offset: usize,
    document: Document,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, part: Range<usize>, format: Format) -> Result<Self, ParseError> {
        let offset = part.start;
        match Document::read(&text[part], format) {
            Ok(document) => Ok(Self { text, offset, document }),
            Err(error) => {
                // Lines count from the beginning of the whole text.
                let before = text[..offset].bytes().filter(|byte| *byte == b'\n').count();
                Err(ParseError { line: error.line + before, ..error })
            }
        }
    }

    fn objects(&self, into: &mut Vec<SealedObject>) -> Result<(), ParseError> {
        let mut roots = self.document.tree.documents.iter().filter_map(|part| part.root);
        roots.try_for_each(|root| self.object(root, 0, into))
    }

    fn object(&self, node: NodeId, depth: usize, into: &mut Vec<SealedObject>) -> Result<(), ParseError> {
        let word = |name: &str| self.member(node, name).and_then(|id| self.words(id));
        let (version, kind) = (word("apiVersion"), word("kind"));
        if kind.as_deref().is_some_and(|kind| kind.ends_with("List"))
            && depth < LIST_DEPTH_MAX
            && let Some(NodeKind::List { items, .. }) = self.member(node, "items").map(|id| self.kind(id))
        {
            return items.iter().try_for_each(|item| self.object(*item, depth + 1, into));
        }
        if version.as_deref() == Some(API_VERSION) && kind.as_deref() == Some(KIND) {
            into.push(self.sealed(node)?);
        }
        Ok(())
    }

    fn sealed(&self, node: NodeId) -> Result<SealedObject, ParseError> {
        let tree = &self.document.tree;
        let json = tree.plain(node, true);
        let place = tree.nodes[node].outer.start;
        let secret = SealedSecret::from_json(&json).map_err(|error| self.fault(place, error.0))?;
        let spec = self.member(node, "spec");
        let mut spans = BTreeMap::new();
        if let Some(items) = spec.and_then(|spec| self.member(spec, "encryptedData")) {
            let NodeKind::Map { entries, .. } = self.kind(items) else {
                return Err(
                    self.fault(tree.nodes[items].outer.start, "encryptedData is no mapping".to_owned())
                );
            };
            if matches!(tree.nodes[items].kind, NodeKind::Alias { .. }) {
                let reason = "encryptedData is an alias: write the items out".to_owned();
                return Err(self.fault(tree.nodes[items].outer.start, reason));
            }
            for entry in entries {
                let span = self.span(&tree.nodes[entry.value]).ok_or_else(|| {
                    let reason = format!(
                        "the item {} is no text that stands here: write it out in quotes",
                        entry.name
                    );
                    self.fault(entry.place.start, reason)
                })?;
                spans.insert(entry.name.to_string(), span);
            }
        }
        let legacy =
            spec.and_then(|spec| self.member(spec, "data")).and_then(|id| self.span(&tree.nodes[id]));
        let line = self.fault(place, String::new()).line;
        Ok(SealedObject { secret, json, line, spans, legacy })
    }

    /// The place of a text, with its quotes, or of a block's content.
    fn span(&self, node: &Node) -> Option<Span> {
        let NodeKind::Scalar { value, style } = &node.kind else { return None };
        if value.kind() != Some(crate::value::ValueType::Str) || node.core_tag.is_some() || node.tag.is_some()
        {
            return None;
        }
        let start = match style {
            Style::Folded(block) | Style::Literal(block) => block.header.end.max(node.inner.start),
            _ => node.inner.start,
        };
        let place = start + self.offset..node.inner.end.max(start) + self.offset;
        Some(Span { place, style: style.clone() })
    }

    fn tree(&self) -> &Tree {
        &self.document.tree
    }

    fn kind(&self, id: NodeId) -> &NodeKind {
        &self.tree().resolved(id).kind
    }

    fn member(&self, node: NodeId, name: &str) -> Option<NodeId> {
        let NodeKind::Map { entries, .. } = self.kind(node) else { return None };
        entries.iter().find(|entry| entry.name == name).map(|entry| entry.value)
    }

    fn words(&self, id: NodeId) -> Option<String> {
        let NodeKind::Scalar { value, .. } = self.kind(id) else { return None };
        value.as_text().map(str::to_owned)
    }

    fn fault(&self, offset: usize, reason: String) -> ParseError {
        ParseError::at(self.text, self.offset + offset, reason)
    }
}

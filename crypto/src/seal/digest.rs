//! The two digests of a seal: over a document's content as it is stored, and over its `sops` block.
//!
//! Both hash a sequence of items, each a letter and fields, each field its length in bytes as 64 bits, big-endian, and
//! its bytes: no two contents have one sequence. docs/format.md lists the letters.

use serde_json::{Map, Value as Plain};
use sha2::{Digest, Sha256};

use crate::document::{Document, Event};
use crate::value::{Sealed, Value};

/// Hashes items.
pub(crate) struct Items(Sha256);

impl Items {
    pub(crate) fn new(purpose: &str) -> Self {
        let mut items = Self(Sha256::new());
        items.add(b'P', &[purpose.as_bytes()]);
        items
    }

    pub(crate) fn add(&mut self, letter: u8, fields: &[&[u8]]) {
        self.0.update([letter]);
        for field in fields {
            self.0.update((field.len() as u64).to_be_bytes());
            self.0.update(field);
        }
    }

    pub(crate) fn finish(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The digest of a file's content, given the text of each leaf that is sealed.
pub(crate) fn tree<'a>(document: &Document, sealed: &dyn Fn(usize) -> Option<&'a str>) -> String {
    let mut items = Items::new("lacre.dev/tree/file/1");
    for event in &document.events {
        match event {
            Event::Document => items.add(b'D', &[]),
            Event::End => items.add(b'E', &[]),
            Event::Key(path) => {
                let name = document.paths.split(*path).map_or("", |(_, name)| name);
                items.add(b'K', &[name.as_bytes()]);
            }
            Event::List(node) => items.add(b'L', &[tag(document, Some(*node))]),
            Event::Map(node) => items.add(b'M', &[tag(document, Some(*node))]),
            Event::Leaf(index) => {
                let leaf = &document.leaves[*index];
                let tag = tag(document, leaf.node());
                match (sealed(*index), &leaf.value) {
                    (Some(text), _) if leaf.is_comment() => items.add(b'c', &[text.as_bytes()]),
                    (Some(text), _) => items.add(b'S', &[tag, text.as_bytes()]),
                    (None, Value::Null) => items.add(b'N', &[tag]),
                    (None, value) if leaf.is_comment() => items.add(b'C', &[value.bytes()]),
                    (None, Value::Typed(kind, bytes)) => {
                        items.add(b'V', &[tag, kind.word().as_bytes(), bytes.expose_secret()]);
                    }
                }
            }
        }
    }
    items.finish()
}

/// The text of a leaf as it stands in a sealed document, when it has a sealed value's form.
pub(crate) fn stored(document: &Document, index: usize) -> Option<&str> {
    document.sealed_text(&document.leaves[index]).filter(|text| Sealed::looks_like(text))
}

fn tag(document: &Document, node: Option<usize>) -> &[u8] {
    node.and_then(|node| document.tree.nodes[node].tag.as_deref()).unwrap_or_default().as_bytes()
}

/// The digest of a `sops` block without the fields that are ours. Fields are in alphabetical order and nulls left
/// out, since that is what clusters do to an object.
pub(crate) fn meta(stock_block: &Map<String, Plain>) -> String {
    let mut items = Items::new("lacre.dev/meta/1");
    map(&mut items, stock_block);
    items.finish()
}

fn map(items: &mut Items, entries: &Map<String, Plain>) {
    let mut entries: Vec<_> = entries.iter().filter(|(_, value)| !value.is_null()).collect();
    entries.sort_by(|(left, _), (right, _)| left.as_bytes().cmp(right.as_bytes()));
    items.add(b'M', &[]);
    for (name, value) in entries {
        items.add(b'K', &[name.as_bytes()]);
        plain(items, value);
    }
    items.add(b'E', &[]);
}

fn plain(items: &mut Items, value: &Plain) {
    match value {
        Plain::Null => items.add(b'N', &[]),
        Plain::Bool(value) => items.add(b'B', &[if *value { b"1" } else { b"0" }]),
        Plain::Number(number) => items.add(b'I', &[number.to_string().as_bytes()]),
        Plain::String(text) => items.add(b'T', &[text.as_bytes()]),
        Plain::Array(values) => {
            items.add(b'L', &[]);
            values.iter().for_each(|value| plain(items, value));
            items.add(b'E', &[]);
        }
        Plain::Object(entries) => map(items, entries),
    }
}

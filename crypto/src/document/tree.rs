//! What a format's reader hands over: nodes with their places in the text, one root per document.
//!
//! The tree is only read. Writing replaces places in the text.

use std::ops::Range;

use serde_json::Value as Plain;

use crate::document::part::TextPart;
use crate::document::{BLOCK_KEY, DEPTH_MAX};
use crate::secret::SecretText;
use crate::value::{Value, ValueType};

/// Index of a node in [`Tree::nodes`].
pub type NodeId = usize;

/// A document's text, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// All nodes; children may come before or after their parents.
    pub nodes: Vec<Node>,
    /// One entry per document of the stream.
    pub documents: Vec<Part>,
    /// All comments, in text order.
    pub comments: Vec<Comment>,
}

/// One document of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its root mapping; nothing for an empty document.
    pub root: Option<NodeId>,
    /// Where its content ends: the byte before which a last line can be added.
    pub end: usize,
}

/// One node.
#[derive(Debug, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub kind: NodeKind,
    /// Its tag, resolved, unless it is one of the core tags.
    pub tag: Option<String>,
    /// The whole node, with its properties.
    pub outer: Range<usize>,
    /// The scalar or collection alone.
    pub inner: Range<usize>,
    /// Place of a core tag that a sealed text cannot carry.
    pub core_tag: Option<Range<usize>>,
}

/// The kinds of nodes.
#[derive(Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// Another node's content again.
    Alias {
        /// The node that carries the anchor.
        target: NodeId,
    },
    /// A sequence.
    List {
        /// Its items.
        items: Vec<NodeId>,
        /// Whether it is written in brackets.
        flow: bool,
    },
    /// A mapping, in text order.
    Map {
        /// Keys and values.
        entries: Vec<Entry>,
        /// Whether it is written in braces.
        flow: bool,
    },
    /// A leaf.
    Scalar {
        /// Its typed value.
        value: Value,
        /// How it is written.
        style: Style,
    },
}

/// One entry of a mapping.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub name: TextPart,
    /// Its place.
    pub place: Range<usize>,
    /// The value's node.
    pub value: NodeId,
}

/// A comment that could be sealed.
#[derive(Debug, PartialEq, Eq)]
pub struct Comment {
    /// From its sign to before the line break.
    pub place: Range<usize>,
    /// The text after the sign.
    pub text: SecretText,
    /// The mapping or list that stock readers attach it to, perhaps by an alias; nothing in an empty document.
    pub container: Option<NodeId>,
    /// The entry of the container that it comes before in stock readers' order, their number at the end; without a
    /// container the number of the document.
    pub slot: usize,
}

/// How a scalar is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Style {
    /// A comment.
    Comment,
    /// In double quotes.
    Double {
        /// Inside brackets or braces.
        flow: bool,
    },
    /// A folded block.
    Folded(Block),
    /// A literal block.
    Literal(Block),
    /// Without quotes.
    Plain {
        /// Inside brackets or braces.
        flow: bool,
    },
    /// In single quotes.
    Single {
        /// Inside brackets or braces.
        flow: bool,
    },
}

/// How a block scalar is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// From the indicator to the end of its line, line break included (none at the end of the text).
    pub header: Range<usize>,
    /// Spaces before each line of content.
    pub indent: usize,
}

impl Tree {
    /// The node with all aliases followed.
    pub fn resolved(&self, mut id: NodeId) -> &Node {
        while let NodeKind::Alias { target } = self.nodes[id].kind {
            id = target;
        }
        &self.nodes[id]
    }

    /// The entry of the root mapping of `document` whose key is `name`.
    pub fn root_entry(&self, document: usize, name: &str) -> Option<&Entry> {
        let root = self.documents.get(document)?.root?;
        match &self.nodes[root].kind {
            NodeKind::Map { entries, .. } => entries.iter().find(|entry| entry.name == name),
            _ => None,
        }
    }

    /// Adds the values below a root to `values` in the order of leaves, without the `sops` block; whether all are there,
    /// which only a walk can tell when there are aliases or too many levels.
    pub(crate) fn values<'a>(&'a self, id: NodeId, depth: usize, values: &mut Vec<&'a Value>) -> bool {
        match &self.nodes[id].kind {
            _ if depth > DEPTH_MAX => false,
            NodeKind::Alias { .. } => false,
            NodeKind::List { items, .. } => items.iter().all(|item| self.values(*item, depth + 1, values)),
            NodeKind::Map { entries, .. } => entries.iter().all(|entry| {
                (depth == 0 && entry.name == BLOCK_KEY) || self.values(entry.value, depth + 1, values)
            }),
            NodeKind::Scalar { value, .. } => {
                values.push(value);
                true
            }
        }
    }

    /// A node as plain data, for the `sops` block and for objects. Values that are neither text nor number nor
    /// boolean, such as timestamps, become the text of their canonical form. Aliases are followed only where
    /// `follow` says so: where the walk has bounded what they add.
    pub fn plain(&self, id: NodeId, follow: bool) -> Plain {
        match &self.nodes[id].kind {
            NodeKind::Alias { target } if follow => self.plain(*target, follow),
            NodeKind::Alias { .. } => Plain::Null,
            NodeKind::List { items, .. } => {
                Plain::Array(items.iter().map(|item| self.plain(*item, follow)).collect())
            }
            NodeKind::Map { entries, .. } => {
                let entries =
                    entries.iter().map(|entry| (entry.name.to_string(), self.plain(entry.value, follow)));
                Plain::Object(entries.collect())
            }
            NodeKind::Scalar { value, .. } => plain_value(value),
        }
    }
}

fn plain_value(value: &Value) -> Plain {
    let Some(text) = value.as_text() else { return Plain::Null };
    match value.kind() {
        None => Plain::Null,
        Some(ValueType::Bool) => Plain::Bool(text == "True"),
        Some(ValueType::Int) => text.parse::<i64>().map_or(Plain::Null, Plain::from),
        Some(ValueType::Float) => text.parse::<f64>().map_or(Plain::Null, Plain::from),
        Some(_) => Plain::String(text.to_owned()),
    }
}

//! The values that a template works on: those Go types that data, constants and the functions can make.
//!
//! Texts are bytes, as in Go. Whatever holds content is wiped when it is dropped, and nothing here can be formatted
//! for a message: [`Value::type_name`] is what messages may show.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::functions::semver::Version;
use crate::secret::SecretBytes;

/// One value. Copies of lists are shared and never change; copies of maps are the same map, as in Go.
#[derive(Clone)]
pub(super) enum Value {
    Bool(bool),
    Byte(u8),
    Float(f64),
    Int(i64),
    Int64(i64),
    List(List),
    Map(Map),
    /// Nothing at all: what a name that is not there gives.
    Missing,
    /// The empty interface that holds nothing.
    Nil,
    Text(Rc<SecretBytes>),
    Uint64(u64),
    Version(Rc<Version>),
}

/// What Go calls the element type of a slice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Any,
    Int,
    List,
    Text,
}

/// A slice.
#[derive(Clone)]
pub(super) struct List {
    pub(super) element: Element,
    pub(super) items: Rc<Vec<Value>>,
    /// Whether it is Go's nil slice, which is empty and `null` in JSON.
    pub(super) is_nil: bool,
}

/// A map with text keys, in the order of their bytes.
#[derive(Clone)]
pub(super) struct Map {
    /// Whether its type is `map[string]string`.
    pub(super) of_text: bool,
    pub(super) entries: Rc<RefCell<BTreeMap<Key, Value>>>,
}

/// The key of a map, wiped like any content.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Key(pub(super) SecretBytes);

impl Key {
    pub(super) fn new(bytes: &[u8]) -> Self {
        Self(SecretBytes::new(bytes.to_vec()))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.0.expose_secret()
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes().cmp(other.bytes())
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Map {
    pub(super) fn value(&self, key: &[u8]) -> Option<Value> {
        self.entries.borrow().get(&Key::new(key)).cloned()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.borrow().len()
    }

    /// The entries as they are now.
    pub(super) fn copied(&self) -> Vec<(Key, Value)> {
        self.entries.borrow().iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

impl Value {
    /// A short text that is no secret: a constant, the name of a type.
    pub(super) fn word(text: &str) -> Self {
        Self::Text(Rc::new(SecretBytes::from(text)))
    }

    pub(super) fn is_nothing(&self) -> bool {
        matches!(self, Self::Missing | Self::Nil)
    }

    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Text(text) => Some(text.expose_secret()),
            _ => None,
        }
    }

    /// What `if` takes for true.
    pub(super) fn truth(&self) -> bool {
        match self {
            Self::Bool(value) => *value,
            Self::Byte(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Int(value) | Self::Int64(value) => *value != 0,
            Self::List(list) => !list.items.is_empty(),
            Self::Map(map) => map.len() > 0,
            Self::Missing | Self::Nil => false,
            Self::Text(text) => !text.is_empty(),
            Self::Uint64(value) => *value != 0,
            Self::Version(_) => true,
        }
    }

    /// The name of its type in Go.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Bool(_) => "bool",
            Self::Byte(_) => "uint8",
            Self::Float(_) => "float64",
            Self::Int(_) => "int",
            Self::Int64(_) => "int64",
            Self::List(list) => match list.element {
                Element::Any => "[]interface {}",
                Element::Int => "[]int",
                Element::List => "[][]interface {}",
                Element::Text => "[]string",
            },
            Self::Map(map) if map.of_text => "map[string]string",
            Self::Map(_) => "map[string]interface {}",
            Self::Missing | Self::Nil => "<nil>",
            Self::Text(_) => "string",
            Self::Uint64(_) => "uint64",
            Self::Version(_) => "*semver.Version",
        }
    }

    /// The name of its kind in Go.
    pub(super) fn kind_name(&self) -> &'static str {
        match self {
            Self::List(_) => "slice",
            Self::Map(_) => "map",
            Self::Missing | Self::Nil => "invalid",
            Self::Version(_) => "ptr",
            other => other.type_name(),
        }
    }
}

//! Formats: what a document's text means, and how a value is written into it.
//!
//! [`Syntax`] is the one trait of a format. Nothing outside this module and its folder knows a format.

use std::ops::Range;

use serde_json::Value as Plain;

use crate::document::Site;
use crate::document::tree::{NodeId, Tree};
use crate::error::{ParseError, PathError};
use crate::value::Value;

mod delta;
mod json;
mod yaml;

pub(crate) use delta::{Edit, apply, delta};
pub(crate) use yaml::write::is_yaml_1_1_word;
pub(crate) use yaml::{canonical_time, print_yaml};

/// A document format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// RFC 8259 JSON with an object at its root.
    Json,
    /// YAML as stock tools read it, with mappings at its roots.
    Yaml,
}

impl Format {
    /// The format that a file's name stands for; nothing for names of none that this version reads.
    pub fn from_file_name(name: &str) -> Option<Self> {
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("json") => Some(Self::Json),
            Some("yaml" | "yml") => Some(Self::Yaml),
            _ => None,
        }
    }

    /// The format of that name, as in `--input-type`.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "json" => Some(Self::Json),
            "yaml" => Some(Self::Yaml),
            _ => None,
        }
    }

    /// The format's name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Yaml => "yaml",
        }
    }

    pub(crate) fn syntax(self) -> &'static dyn Syntax {
        match self {
            Self::Json => &json::Json,
            Self::Yaml => &yaml::Yaml,
        }
    }
}

/// What a value looks like in an expanded alias.
pub(crate) enum Copied {
    /// A clear value.
    Clear(Value),
    /// A sealed value's text.
    Sealed(String),
}

/// Where new text goes and what it is.
pub(crate) struct Insertion {
    pub(crate) offset: usize,
    pub(crate) text: String,
}

/// What is put where.
pub(crate) struct Replacement {
    pub(crate) place: Range<usize>,
    pub(crate) text: String,
}

/// All that differs between formats.
pub(crate) trait Syntax: Sync {
    /// Takes `text` apart.
    fn read(&self, text: &str) -> Result<Tree, ParseError>;

    /// What puts the sealed text `enc` at a site in the style that is there; on one line where `one_line` says so.
    fn sealed(&self, text: &str, site: &Site, enc: &str, one_line: bool) -> Replacement;

    /// What puts `value` at a site in the style that is there, where that can hold it: the default spelling, from
    /// which the seal's deltas count.
    fn opened(&self, text: &str, site: &Site, value: &Value) -> Replacement;

    /// One line of text for a copy of `node` with the values that `next` gives, in order.
    fn copied(&self, tree: &Tree, node: NodeId, next: &mut dyn FnMut() -> Copied) -> String;

    /// Where a block is added to each document, `first` to the first, so that [`Syntax::block_places`] finds exactly
    /// what was added; and whether the text's last line has to be ended for it.
    fn block_insertions(
        &self,
        text: &str,
        tree: &Tree,
        first: &Plain,
        others: &Plain,
    ) -> (Vec<Insertion>, bool);

    /// The places to cut out so that no block is left.
    fn block_places(&self, text: &str, tree: &Tree) -> Vec<Range<usize>>;

    /// Where and how `key` with `json` is added to the mapping `map`, or the item to the list.
    fn insertion(
        &self,
        text: &str,
        tree: &Tree,
        collection: NodeId,
        key: Option<&str>,
        json: &Plain,
    ) -> Result<Insertion, PathError>;

    /// What puts `json` in the place of `node`.
    fn replacement(
        &self,
        text: &str,
        tree: &Tree,
        node: NodeId,
        json: &Plain,
    ) -> Result<Replacement, PathError>;
}

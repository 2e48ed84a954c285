//! Formats: what a document's text means, and how a value is written into it.
//!
//! [`Syntax`] is the one trait of a format. Nothing outside this module and its folder knows a format.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use serde_json::{Map, Value as Plain};

use crate::document::Site;
use crate::document::tree::{Entry, NodeId, Tree};
use crate::error::{ParseError, PathError};
use crate::secret::{SecretBytes, SecretText};
use crate::value::Value;

mod binary;
mod delta;
mod dotenv;
mod flat;
mod ini;
mod json;
mod yaml;

pub(crate) use delta::{Edit, apply, delta};
pub(crate) use flat::untyped;
pub(crate) use ini::is_printable as is_ini_printable;
pub(crate) use yaml::write::is_yaml_1_1_word;
pub(crate) use yaml::{canonical_time, print_yaml, reads_as_yaml_text};

/// A document format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Any bytes, sealed as one value in a JSON object.
    Binary,
    /// Lines of `KEY=value`, as stock tools read them.
    Dotenv,
    /// Sections of `key = value`, as stock tools read them.
    Ini,
    /// RFC 8259 JSON with an object at its root.
    Json,
    /// YAML as stock tools read it, with mappings at its roots.
    Yaml,
}

impl Format {
    /// The format that the ending of a file's name stands for, in its very letters; nothing for any other name.
    pub fn from_file_name(name: &str) -> Option<Self> {
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("env") => Some(Self::Dotenv),
            Some("ini") => Some(Self::Ini),
            Some("json") => Some(Self::Json),
            Some("yaml" | "yml") => Some(Self::Yaml),
            _ => None,
        }
    }

    /// The format of the file called `name`, as stock tools choose it: what no ending names is binary. So are
    /// `X.YAML`, `.env.local` and `x.yaml.enc`.
    pub fn of_file(name: &str) -> Self {
        Self::from_file_name(name).unwrap_or(Self::Binary)
    }

    /// The format of that name, as in `--input-type`.
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "binary" => Some(Self::Binary),
            "dotenv" => Some(Self::Dotenv),
            "ini" => Some(Self::Ini),
            "json" => Some(Self::Json),
            "yaml" => Some(Self::Yaml),
            _ => None,
        }
    }

    /// The format's name.
    pub fn word(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Dotenv => "dotenv",
            Self::Ini => "ini",
            Self::Json => "json",
            Self::Yaml => "yaml",
        }
    }

    pub(crate) fn syntax(self) -> &'static dyn Syntax {
        match self {
            Self::Binary => &binary::Binary,
            Self::Dotenv => &dotenv::Dotenv,
            Self::Ini => &ini::Ini,
            Self::Json => &json::Json,
            Self::Yaml => &yaml::Yaml,
        }
    }

    /// Whether selectors have a say. Where the whole file is one value they have none.
    pub fn has_selection(self) -> bool {
        self != Self::Binary
    }

    /// Whether a block can be written so that it reads back as it is.
    pub(crate) fn holds(self, block: &Map<String, Plain>) -> bool {
        !matches!(self, Self::Dotenv | Self::Ini) || flat::holds(block)
    }

    /// The document's text for a file's `content`.
    ///
    /// # Errors
    /// [`ParseError`] at the first byte that is no text, where there must be text.
    pub(crate) fn document_text(self, content: &[u8]) -> Result<SecretText, ParseError> {
        match self {
            Self::Binary => Ok(binary::envelope(content)),
            _ => match std::str::from_utf8(content) {
                Ok(text) => Ok(SecretText::from(text)),
                Err(error) => {
                    let valid = String::from_utf8_lossy(&content[..error.valid_up_to()]);
                    let reason = "this is not UTF-8 text: seal it as binary";
                    Err(ParseError::at(&valid, valid.len(), reason))
                }
            },
        }
    }

    /// The file's content that the clear text of a document stands for; nothing for a text that is none.
    pub(crate) fn content(self, text: SecretText) -> Option<SecretBytes> {
        match self {
            Self::Binary => binary::content(&text),
            _ => Some(text.into_bytes()),
        }
    }
}

/// Up to how many entries each key is compared with each other instead of being hashed.
const FEW_ENTRIES: usize = 8;

/// Whether a key stands twice.
fn has_duplicates(entries: &[Entry]) -> bool {
    if entries.len() <= FEW_ENTRIES {
        let is_earlier = |(index, entry): (usize, &Entry)| {
            entries[..index].iter().any(|earlier| earlier.name == entry.name)
        };
        return entries.iter().enumerate().any(is_earlier);
    }
    let mut known = HashSet::with_capacity(entries.len());
    !entries.iter().all(|entry| known.insert(entry.name.as_str()))
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
pub(crate) struct Replacement<'a> {
    pub(crate) place: Range<usize>,
    pub(crate) text: Cow<'a, str>,
}

/// All that differs between formats.
pub(crate) trait Syntax: Sync {
    /// Takes `text` apart.
    fn read(&self, text: &SecretText) -> Result<Tree, ParseError>;

    /// Gives each comment the container that it will have once the aliases `written_out` are.
    fn attach_comments(&self, _text: &str, _tree: &mut Tree, _written_out: &HashSet<NodeId>) {}

    /// What puts the sealed text `enc` at a site in the style that is there; on one line where `one_line` says so.
    fn sealed<'a>(&self, text: &str, site: &Site, enc: &'a str, one_line: bool) -> Replacement<'a>;

    /// What puts `value` at a site in the style that is there, where that can hold it: the default spelling, from
    /// which the seal's deltas count.
    fn opened<'a>(&self, text: &str, site: &Site, value: &'a Value) -> Replacement<'a>;

    /// One line of text for a copy of `node` with the values that `next` gives, in order. Only asked of a format whose
    /// reader finds aliases, which is YAML's.
    fn copied(&self, _tree: &Tree, _node: NodeId, _next: &mut dyn FnMut() -> Copied) -> String {
        String::new()
    }

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
    ) -> Result<Replacement<'static>, PathError>;

    /// What takes the entry or item at `index` out of `collection`, with its own comments.
    fn removal(
        &self,
        text: &str,
        tree: &Tree,
        collection: NodeId,
        index: usize,
    ) -> Result<Vec<Replacement<'static>>, PathError>;
}

//! The data of a document in another format than the one it is written in.
//!
//! Everything else splices; here, and only here, a tree is printed anew, since there is no text of the author's to
//! keep. The printers write byte for byte what stock tools print for the same data. Where those would lose or distort
//! a value (a second document in JSON, bytes that are no text, a key with a line break in dotenv) it is refused, and
//! its path is named. Which comments survive is stock's choice: YAML, dotenv and INI have places for some.

use std::borrow::Cow;

use zeroize::Zeroizing;

use crate::convert::tree::{Data, Piece};
use crate::decrypt::OpenFile;
use crate::document::path::{PathId, ROOT};
use crate::document::{DOCUMENT_BYTES_MAX, Document};
use crate::edit::{Step, TreePath};
use crate::error::{ParseError, PathError};
use crate::format::{Format, untyped};
use crate::secret::{Plaintext, SecretBytes, SecretText};
use crate::value::{Value, ValueType};

mod dotenv;
mod ini;
mod json;
mod tree;
mod yaml;

/// How a printed tree is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Spaces of each level in JSON; a tab when absent.
    pub json_indent: Option<usize>,
    /// Spaces of each level in YAML: 2 to 9, and anything else means 2.
    pub yaml_indent: usize,
}

impl Default for Layout {
    fn default() -> Self {
        Self { json_indent: None, yaml_indent: 4 }
    }
}

/// A document cannot be written in the format asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The document as a whole has no place there.
    #[error("cannot be written as {}: {reason}", .format.word())]
    Document {
        /// The format asked for.
        format: Format,
        /// Why not.
        reason: &'static str,
    },
    /// The text is not acceptable.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The path leads to nothing.
    #[error(transparent)]
    Path(#[from] PathError),
    /// One value has no place there.
    #[error("`{path}` cannot be written as {}: {reason}", .format.word())]
    Value {
        /// The format asked for.
        format: Format,
        /// Path of the value.
        path: String,
        /// Why not, without any of it.
        reason: &'static str,
    },
}

/// The `content` of a file of format `from` as one of format `to`, so that sealing that loses nothing.
///
/// # Errors
/// [`ConvertError`], also for a value that would be read back as another one.
pub fn convert(
    content: &dyn Plaintext,
    from: Format,
    to: Format,
    layout: &Layout,
) -> Result<SecretBytes, ConvertError> {
    let text = from.document_text(content.expose_bytes())?;
    let document = Document::read(text.expose_secret(), from)?;
    let values: Vec<Value> = document.leaves.iter().map(|leaf| Value::clone(&leaf.value)).collect();
    let conversion =
        Conversion { document: &document, values: &values, to, layout, bytes_max: DOCUMENT_BYTES_MAX };
    let converted = conversion.whole()?;
    conversion.reads_back(converted.expose_secret())?;
    Ok(converted)
}

impl OpenFile {
    /// What the author sealed, as stock tools print it in the format `to`.
    ///
    /// # Errors
    /// [`ConvertError`] when `to` cannot hold it.
    pub fn converted(&self, to: Format, layout: &Layout) -> Result<SecretBytes, ConvertError> {
        self.conversion(to, layout).whole()
    }

    /// The value at `path` in the first document, or in the one whose position stands in front: text as it is, anything else as stock tools print it in the format
    /// `to`.
    ///
    /// # Errors
    /// [`ConvertError`] when there is nothing, or `to` cannot hold it.
    pub fn extract(&self, path: &TreePath, to: Format, layout: &Layout) -> Result<SecretBytes, ConvertError> {
        self.conversion(to, layout).part(path)
    }

    fn conversion<'a>(&'a self, to: Format, layout: &'a Layout) -> Conversion<'a> {
        Conversion {
            document: &self.sealed.document,
            values: &self.values,
            to,
            layout,
            bytes_max: DOCUMENT_BYTES_MAX,
        }
    }
}

/// A document on its way into another format.
struct Conversion<'a> {
    document: &'a Document,
    /// The clear value of each leaf.
    values: &'a [Value],
    to: Format,
    layout: &'a Layout,
    /// Most bytes of what is printed.
    bytes_max: usize,
}

impl<'a> Conversion<'a> {
    fn whole(&self) -> Result<SecretBytes, ConvertError> {
        self.printed(&tree::roots(self.document, self.values))
    }

    fn printed(&self, roots: &[Data<'_>]) -> Result<SecretBytes, ConvertError> {
        self.printed_text(match self.to {
            Format::Binary => return self.bytes(self.only(roots)?),
            Format::Dotenv => dotenv::print(self.only(roots)?, self)?,
            Format::Ini => ini::print(roots, self)?,
            Format::Json => {
                let mut text = json::print(self.only(roots)?, self)?;
                text.push('\n');
                text
            }
            Format::Yaml => yaml::print(roots, self.layout.yaml_indent, self),
        })
    }

    fn printed_text(&self, mut text: Zeroizing<String>) -> Result<SecretBytes, ConvertError> {
        match text.len() > self.bytes_max {
            true => Err(self.too_large()),
            false => Ok(SecretText::new(std::mem::take(&mut *text)).into_bytes()),
        }
    }

    /// A deep document has more indention than content, and one long key makes a wide column: so there is a limit to
    /// what is printed, which printers ask for as they go.
    fn too_large(&self) -> ConvertError {
        ConvertError::Document { format: self.to, reason: "it would be larger than 256 MiB" }
    }

    fn part(&self, path: &TreePath) -> Result<SecretBytes, ConvertError> {
        let roots = tree::roots(self.document, self.values);
        let (document, steps) = path.start();
        let root = roots.into_iter().nth(document).ok_or_else(nothing)?;
        let (at, found) = steps.iter().try_fold((ROOT, root), descend)?;
        let text = match (&found, self.to) {
            (Data::Scalar(value), _) if value.kind() == Some(ValueType::Str) => {
                return Ok(SecretBytes::new(value.bytes().to_vec()));
            }
            (Data::Map(_), _) => return self.printed(&[found]),
            // Lists keep stock's default here, whatever the layout.
            (_, Format::Yaml) => yaml::print(&[found], Layout::default().yaml_indent, self),
            (_, Format::Json) | (Data::Scalar(_), Format::Ini) => json::print(&found, self)?,
            (_, Format::Binary | Format::Dotenv) => {
                return Err(self.refuse(at, "only text can be taken out in this format"));
            }
            (Data::List(_), Format::Ini) => return Err(self.refuse(at, "it is a list, and INI holds none")),
        };
        self.printed_text(text)
    }

    /// The one document of a stream, for formats that hold no more.
    fn only<'b, 'c>(&self, roots: &'b [Data<'c>]) -> Result<&'b Data<'c>, ConvertError> {
        let is_empty = |root: &Data<'_>| match root {
            Data::Map(pieces) => !pieces.iter().any(|piece| matches!(piece, Piece::Part { .. })),
            Data::List(_) | Data::Scalar(_) => false,
        };
        let refuse = |reason| ConvertError::Document { format: self.to, reason };
        let (first, others) = roots.split_first().ok_or_else(|| refuse("there is nothing in it"))?;
        match others.iter().all(is_empty) {
            true => Ok(first),
            false => Err(refuse("it has several documents, and that format holds one")),
        }
    }

    /// The bytes that a document of one text named `data` stands for.
    fn bytes(&self, root: &Data<'_>) -> Result<SecretBytes, ConvertError> {
        let Data::Map(pieces) = root else { return Err(self.no_data()) };
        let data = pieces.iter().find_map(|piece| match piece {
            Piece::Part { key: Some("data"), data, .. } => Some(data),
            _ => None,
        });
        match data {
            Some(Data::Scalar(value)) if value.kind() == Some(ValueType::Str) => {
                Ok(SecretBytes::new(value.bytes().to_vec()))
            }
            _ => Err(self.no_data()),
        }
    }

    fn no_data(&self) -> ConvertError {
        ConvertError::Document { format: self.to, reason: "there is no text named `data` in it" }
    }

    fn refuse(&self, path: PathId, reason: &'static str) -> ConvertError {
        ConvertError::Value { format: self.to, path: self.document.paths.shown(path), reason }
    }

    /// A buffer that rarely has to grow, since growing leaves copies behind.
    fn buffer(&self) -> Zeroizing<String> {
        let sizes = self.values.iter().map(|value| value.bytes().len() + value.bytes().len() / 2 + 64);
        Zeroizing::new(String::with_capacity(sizes.sum()))
    }

    /// Whether every value that is text stays that text. Numbers may be spelled in another way.
    fn reads_back(&self, converted: &[u8]) -> Result<(), ConvertError> {
        if self.to == Format::Binary {
            return Ok(());
        }
        let text = self.to.document_text(converted)?;
        let read = Document::read(text.expose_secret(), self.to)?;
        let is_value = |value: &&Value| value.kind() != Some(ValueType::Comment);
        let mut found = read.leaves.iter().map(|leaf| &leaf.value).filter(is_value);
        for (leaf, value) in self.document.leaves.iter().zip(self.values) {
            if !is_value(&value) {
                continue;
            }
            let is_same = |found: &Value| {
                value.kind() != Some(ValueType::Str)
                    || (found.kind(), found.bytes()) == (value.kind(), value.bytes())
            };
            if !found.next().is_some_and(is_same) {
                return Err(self.refuse(leaf.path, "it would be read back as another value"));
            }
        }
        match found.next() {
            None => Ok(()),
            Some(_) => {
                Err(ConvertError::Document { format: self.to, reason: "it would be read back as more" })
            }
        }
    }
}

/// The value one step further.
fn descend<'a>((_, data): (PathId, Data<'a>), step: &Step) -> Result<(PathId, Data<'a>), PathError> {
    let parts = |pieces: Vec<Piece<'a>>| {
        pieces.into_iter().filter_map(|piece| match piece {
            Piece::Part { path, key, data } => Some((path, key, data)),
            Piece::Comment { .. } => None,
        })
    };
    match (data, step) {
        (Data::Map(pieces), Step::Key(wanted)) => {
            parts(pieces).find(|(_, key, _)| *key == Some(wanted)).map(|(path, _, data)| (path, data))
        }
        (Data::List(pieces), Step::Index(index)) => {
            parts(pieces).nth(*index).map(|(path, _, data)| (path, data))
        }
        (Data::List(_), Step::Key(key)) => {
            return Err(PathError(format!("`{key}` is a key, and there is a list here")));
        }
        (Data::Map(_), Step::Index(index)) => {
            return Err(PathError(format!("{index} is a position, and there is a mapping here")));
        }
        (Data::Scalar(_), _) => {
            return Err(PathError("a single value is in the way".into()));
        }
    }
    .ok_or_else(nothing)
}

fn nothing() -> PathError {
    PathError("there is nothing at that path".into())
}

/// A value where there is nothing but text; nothing when it is bytes that are no text.
fn in_text(value: &Value) -> Option<Cow<'_, str>> {
    let text = value.as_text()?;
    Some(match value.kind() {
        None => "<nil>".into(),
        Some(ValueType::Time) => whole_seconds(text).into(),
        Some(_) => untyped(value),
    })
}

/// An RFC 3339 time without its fraction.
fn whole_seconds(text: &str) -> String {
    let Some((before, after)) = text.split_once('.') else { return text.to_owned() };
    format!("{before}{}", after.trim_start_matches(|next: char| next.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(
        text: &str,
        from: Format,
        to: Format,
        layout: &Layout,
        bytes_max: usize,
    ) -> Result<usize, String> {
        let document = Document::read(text, from).unwrap();
        let values: Vec<Value> = document.leaves.iter().map(|leaf| Value::clone(&leaf.value)).collect();
        let conversion = Conversion { document: &document, values: &values, to, layout, bytes_max };
        conversion.whole().map(|bytes| bytes.len()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_printed_is_limited() {
        let long = "x".repeat(1_000);
        let keys: String = (0..100).map(|key| format!(",\"k{key}\":1")).collect();
        let wide = format!("{{\"s\":{{\"{long}\":1{keys}}}}}");
        let deep = format!("{}[{}1]{}", "{\"a\":".repeat(120), "1,".repeat(100), "}".repeat(120));
        let layout = Layout { json_indent: Some(64), yaml_indent: 9 };
        let cases = [
            (&wide, Format::Json, Format::Ini, 100_000),
            (&deep, Format::Json, Format::Yaml, 100_000),
            (&format!("b: {deep}\n"), Format::Yaml, Format::Json, 700_000),
        ];
        for (text, from, to, at_least) in cases {
            let size = printed(text, from, to, &layout, DOCUMENT_BYTES_MAX).unwrap();
            assert!(size > at_least && size > 50 * text.len(), "{size} bytes of {to:?}");
            assert_eq!(printed(text, from, to, &layout, size), Ok(size));
            let error = printed(text, from, to, &layout, size - 1).unwrap_err();
            assert!(error.contains("larger than"), "{error}");
            assert!(printed(text, from, to, &layout, size / 2).is_err());
        }
    }

    #[test]
    fn a_position_in_front_is_that_of_a_document() {
        let text = "a: 1\n---\na: [x, y]\n";
        let document = Document::read(text, Format::Yaml).unwrap();
        let values: Vec<Value> = document.leaves.iter().map(|leaf| Value::clone(&leaf.value)).collect();
        let layout = Layout::default();
        let conversion = Conversion {
            document: &document,
            values: &values,
            to: Format::Yaml,
            layout: &layout,
            bytes_max: DOCUMENT_BYTES_MAX,
        };
        let part = |path: &str| {
            let part = conversion.part(&TreePath::parse(path).unwrap());
            part.map(|bytes| String::from_utf8(bytes.expose_secret().to_vec()).unwrap())
        };
        assert_eq!(part("[\"a\"]").unwrap(), "1\n");
        assert_eq!(part("[1][\"a\"][1]").unwrap(), "y");
        for path in ["[2][\"a\"]", "[1]", "[\"a\"][0]", "[1][\"b\"]", "[1][\"a\"][2]", "[1][\"a\"][\"x\"]"] {
            assert!(part(path).is_err(), "{path}");
        }
    }
}

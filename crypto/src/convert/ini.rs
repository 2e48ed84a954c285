//! INI as stock tools print a tree: sections with their keys in one column, and of the comments those that have a
//! place: one before a section, one before a key.

use std::borrow::Cow;
use std::collections::HashMap;

use zeroize::Zeroizing;

use crate::convert::tree::{DEFAULT_SECTION, Data, Piece};
use crate::convert::{Conversion, ConvertError};
use crate::document::path::PathId;
use crate::value::Value;

/// The sections of the root mappings `roots`.
pub(super) fn print(
    roots: &[Data<'_>],
    conversion: &Conversion<'_>,
) -> Result<Zeroizing<String>, ConvertError> {
    let mut text = conversion.buffer();
    let parts = roots.iter().flat_map(|root| match root {
        Data::Map(pieces) => pieces.as_slice(),
        Data::List(_) | Data::Scalar(_) => &[],
    });
    let sections: Vec<(PathId, &str, &Data<'_>)> = parts
        .filter_map(|piece| match piece {
            Piece::Part { path, key, data } => Some((*path, key.unwrap_or_default(), data)),
            Piece::Comment { .. } => None,
        })
        .collect();
    for (number, (path, name, data)) in sections.iter().enumerate() {
        let Data::Map(pieces) = data else {
            let reason =
                "INI holds values in sections only, mappings of the root whose values are no mappings";
            return Err(conversion.refuse(*path, reason));
        };
        if name.is_empty() || name.contains([']', '\n']) {
            let reason = "a section's name can neither be empty nor hold `]` or a line break";
            return Err(conversion.refuse(*path, reason));
        }
        let is_bare = number == 0 && name.to_uppercase() == DEFAULT_SECTION;
        let section = Section::of(pieces, conversion)?;
        if text.len() + section.width() * section.keys.len() > conversion.bytes_max {
            return Err(conversion.too_large());
        }
        section.print(name, is_bare, number + 1 == sections.len(), &mut text);
    }
    Ok(text)
}

struct Section<'a> {
    comment: &'a str,
    keys: Vec<Key<'a>>,
    /// Where each key is among them.
    places: HashMap<&'a str, usize>,
}

struct Key<'a> {
    spelled: Cow<'a, str>,
    value: Cow<'a, str>,
    comment: &'a str,
}

impl<'a> Section<'a> {
    fn of(pieces: &'a [Piece<'a>], conversion: &Conversion<'_>) -> Result<Self, ConvertError> {
        let mut section = Self { comment: "", keys: Vec::new(), places: HashMap::new() };
        for (number, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Comment { text, .. } if number == 0 => section.comment = text,
                Piece::Comment { text, .. } => {
                    if let Some(last) = section.keys.last_mut() {
                        last.comment = text;
                    }
                }
                Piece::Part { path, key, data } => {
                    let refuse = |reason| conversion.refuse(*path, reason);
                    let Data::Scalar(value) = data else {
                        return Err(refuse("it is a mapping or list below a section, and INI holds none"));
                    };
                    section.add(key.unwrap_or_default(), value).map_err(refuse)?;
                }
            }
        }
        Ok(section)
    }

    /// A key that is there already gets the new value.
    fn add(&mut self, name: &'a str, value: &'a Value) -> Result<(), &'static str> {
        if name.is_empty() || name.contains('\n') {
            return Err("a key of INI can neither be empty nor hold a line break");
        }
        let value = quoted(super::in_text(value).ok_or("it is not text")?);
        match self.places.get(name) {
            Some(place) => self.keys[*place].value = value,
            None => {
                self.places.insert(name, self.keys.len());
                self.keys.push(Key { spelled: spelled(name), value, comment: "" });
            }
        }
        Ok(())
    }

    /// Bytes of the longest key.
    fn width(&self) -> usize {
        self.keys.iter().map(|key| key.spelled.len()).max().unwrap_or_default()
    }

    fn print(&self, name: &str, is_bare: bool, is_last: bool, text: &mut String) {
        comment(self.comment, false, text);
        if !is_bare {
            text.push_str(&format!("[{name}]\n"));
        } else if self.keys.is_empty() {
            return;
        }
        let width = self.width();
        for key in &self.keys {
            comment(key.comment, true, text);
            text.push_str(&key.spelled);
            text.push_str(&" ".repeat(width - key.spelled.len()));
            text.push_str(" = ");
            text.push_str(&key.value);
            text.push('\n');
        }
        if !is_last {
            text.push('\n');
        }
    }
}

/// The lines of a comment, each with the sign that it brings or a new one.
fn comment(content: &str, trimmed: bool, text: &mut String) {
    for line in content.split('\n').filter(|_| !content.is_empty()) {
        match line.strip_prefix(['#', ';']) {
            Some(rest) => text.push_str(&format!("{} {}\n", &line[..1], rest.trim())),
            None => text.push_str(&format!("; {}\n", if trimmed { line.trim() } else { line })),
        }
    }
}

fn spelled(name: &str) -> Cow<'_, str> {
    match name {
        _ if name.contains(['"', '=', ':']) => format!("`{name}`").into(),
        _ if name.contains('`') => format!("\"\"\"{name}\"\"\"").into(),
        _ => name.into(),
    }
}

fn quoted(value: Cow<'_, str>) -> Cow<'_, str> {
    match value {
        _ if value.contains(['\n', '`']) => format!("\"\"\"{value}\"\"\"").into(),
        _ if value.contains(['#', ';']) => format!("`{value}`").into(),
        _ if value.trim().len() != value.len() => format!("\"{value}\"").into(),
        _ => value,
    }
}

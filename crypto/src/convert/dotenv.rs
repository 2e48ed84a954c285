//! dotenv as stock tools print a tree: one line for each value of a flat mapping, and one for each comment.

use zeroize::Zeroizing;

use crate::convert::tree::{Data, Piece};
use crate::convert::{Conversion, ConvertError};
use crate::value::ValueType;

/// The lines for the root mapping `data`.
pub(super) fn print(data: &Data<'_>, conversion: &Conversion<'_>) -> Result<Zeroizing<String>, ConvertError> {
    let mut lines = conversion.buffer();
    let Data::Map(pieces) = data else { return Ok(lines) };
    for piece in pieces {
        match piece {
            // A comment of several lines would end in the middle.
            Piece::Comment { text, .. } => text.split('\n').for_each(|line| {
                lines.push('#');
                lines.push_str(line);
                lines.push('\n');
            }),
            Piece::Part { path, key, data } => {
                let refuse = |reason| conversion.refuse(*path, reason);
                let Data::Scalar(value) = data else {
                    return Err(refuse("it is a mapping or list, and dotenv holds none"));
                };
                let key = key.unwrap_or_default();
                if key.contains(['=', '\n']) || key.starts_with('#') {
                    return Err(refuse(
                        "a key with `=`, a line break or `#` in front cannot stand in dotenv",
                    ));
                }
                lines.push_str(key);
                lines.push('=');
                let text = super::in_text(value).ok_or_else(|| refuse("it is not text"))?;
                match value.kind() {
                    Some(ValueType::Str) => push_escaped(&mut lines, &text),
                    _ => lines.push_str(&text),
                }
                lines.push('\n');
            }
        }
    }
    Ok(lines)
}

fn push_escaped(lines: &mut String, text: &str) {
    for (number, line) in text.split('\n').enumerate() {
        lines.push_str(if number == 0 { "" } else { "\\n" });
        lines.push_str(line);
    }
}

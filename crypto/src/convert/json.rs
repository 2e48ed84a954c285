//! JSON as stock tools print a tree: comments left out, a tab for each level, and Go's way with characters and numbers.

use zeroize::Zeroizing;

use crate::convert::tree::{Data, Piece};
use crate::convert::{Conversion, ConvertError};
use crate::document::path::{PathId, ROOT};
use crate::value::{Value, ValueType};

/// `data` without a line break at its end.
pub(super) fn print(data: &Data<'_>, conversion: &Conversion<'_>) -> Result<Zeroizing<String>, ConvertError> {
    let indent = conversion.layout.json_indent.map_or("\t".to_owned(), |spaces| " ".repeat(spaces));
    let mut printer = Printer { text: conversion.buffer(), indent, conversion };
    printer.data(data, ROOT, 0)?;
    Ok(printer.text)
}

struct Printer<'a> {
    text: Zeroizing<String>,
    indent: String,
    conversion: &'a Conversion<'a>,
}

impl Printer<'_> {
    fn data(&mut self, data: &Data<'_>, path: PathId, depth: usize) -> Result<(), ConvertError> {
        match data {
            Data::List(pieces) => self.collection('[', pieces, ']', depth),
            Data::Map(pieces) => self.collection('{', pieces, '}', depth),
            Data::Scalar(value) => {
                let refuse = |reason| self.conversion.refuse(path, reason);
                scalar(&mut self.text, value).map_err(refuse)
            }
        }
    }

    fn collection(
        &mut self,
        open: char,
        pieces: &[Piece<'_>],
        close: char,
        depth: usize,
    ) -> Result<(), ConvertError> {
        self.text.push(open);
        let mut is_empty = true;
        for piece in pieces {
            let Piece::Part { path, key, data } = piece else { continue };
            if self.text.len() > self.conversion.bytes_max {
                return Err(self.conversion.too_large());
            }
            if !std::mem::take(&mut is_empty) {
                self.text.push(',');
            }
            self.line(depth + 1);
            if let Some(key) = key {
                quoted(&mut self.text, key);
                self.text.push_str(": ");
            }
            self.data(data, *path, depth + 1)?;
        }
        if !is_empty {
            self.line(depth);
        }
        self.text.push(close);
        Ok(())
    }

    fn line(&mut self, depth: usize) {
        self.text.push('\n');
        (0..depth).for_each(|_| self.text.push_str(&self.indent));
    }
}

fn scalar(text: &mut String, value: &Value) -> Result<(), &'static str> {
    let wire = value.as_text().ok_or("it is not text, and JSON holds nothing else")?;
    match value.kind() {
        None => text.push_str("null"),
        Some(ValueType::Bool) => text.push_str(if wire == "True" { "true" } else { "false" }),
        Some(ValueType::Float) => {
            let float = wire.parse::<f64>().ok().filter(|float| float.is_finite());
            text.push_str(&number(float.ok_or("JSON has no infinite number and no NaN")?));
        }
        Some(ValueType::Int) => text.push_str(wire),
        Some(ValueType::Bytes | ValueType::Comment | ValueType::Str | ValueType::Time) => quoted(text, wire),
    }
    Ok(())
}

/// The fewest digits, with an exponent for very small and very large numbers.
fn number(float: f64) -> String {
    let size = float.abs();
    match size != 0.0 && !(1e-6..1e21).contains(&size) {
        false => float.to_string(),
        true => {
            let text = format!("{float:e}");
            if text.contains("e-") { text } else { text.replacen('e', "e+", 1) }
        }
    }
}

fn quoted(text: &mut String, content: &str) {
    text.push('"');
    for character in content.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            _ => text.push(character),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_forms_of_go() {
        let cases = [
            (1.0, "1"),
            (0.1, "0.1"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e30, "1.5e+30"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (-0.0, "-0"),
            (-2.5e-10, "-2.5e-10"),
        ];
        for (float, text) in cases {
            assert_eq!(number(float), text);
        }
    }

    #[test]
    fn texts_are_escaped_as_by_go() {
        let mut text = String::new();
        quoted(&mut text, "<a href=\"x\">&\u{1}\u{7f}\u{2028}é😀\\");
        assert_eq!(text, "\"\\u003ca href=\\\"x\\\"\\u003e\\u0026\\u0001\u{7f}\\u2028é😀\\\\\"");
    }
}

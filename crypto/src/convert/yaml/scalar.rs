//! How stock tools spell a scalar: without quotes where nothing speaks against it, text of several lines as a block.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::format::reads_as_yaml_text;
use crate::value::{Value, ValueType};

/// Characters of base64 on one line.
const BASE64_LINE: usize = 70;

/// A scalar as it will be printed.
pub(super) struct Scalar<'a> {
    /// Its text before quotes and escapes.
    pub(super) text: Cow<'a, str>,
    /// How it is written.
    pub(super) style: Style,
    /// The tag that says what the text does not: base64, or a merge key, as which stock tools print every `<<`.
    pub(super) tag: Option<&'static str>,
}

/// The ways to write a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// In double quotes.
    Double,
    /// As a block.
    Literal,
    /// As it is.
    Plain,
    /// In single quotes.
    Single,
}

impl<'a> Scalar<'a> {
    /// The scalar for `value`.
    pub(super) fn of(value: &'a Value) -> Self {
        let plain = |text: Cow<'a, str>| Self { text, style: Style::Plain, tag: None };
        match (value.kind(), value.as_text()) {
            (None, _) => plain("null".into()),
            (Some(_), None) => Self::binary(value.bytes()),
            (Some(ValueType::Bool), Some(text)) => plain(text.to_lowercase().into()),
            (Some(ValueType::Float), Some(text)) => plain(float(text).into()),
            (Some(ValueType::Int | ValueType::Time), Some(text)) => plain(text.into()),
            (Some(ValueType::Bytes | ValueType::Comment | ValueType::Str), Some(text)) => Self::text(text),
        }
    }

    fn binary(bytes: &[u8]) -> Self {
        let encoded = STANDARD.encode(bytes);
        let is_long = encoded.len() > BASE64_LINE;
        let text = if is_long { in_lines(&encoded) } else { encoded };
        let style = if is_long { Style::Literal } else { Style::Plain };
        Self { text: text.into(), style, tag: Some("!!binary") }
    }

    /// The scalar for a text.
    pub(super) fn text(text: &'a str) -> Self {
        Self { text: text.into(), style: style(text), tag: (text == "<<").then_some("!!merge") }
    }

    /// Whether it takes more than one line, so that it is not simple enough for a key.
    pub(super) fn is_multiline(&self) -> bool {
        self.text.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'])
    }
}

/// Base64 in lines, each of them ended.
fn in_lines(encoded: &str) -> String {
    let mut lines = String::with_capacity(encoded.len() + encoded.len() / BASE64_LINE + 1);
    let mut rest = encoded;
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(BASE64_LINE));
        lines.push_str(line);
        lines.push('\n');
        rest = after;
    }
    lines
}

/// Go's `%g` with the fewest digits.
fn float(wire: &str) -> String {
    let float: f64 = match wire {
        "+Inf" => return ".inf".to_owned(),
        "-Inf" => return "-.inf".to_owned(),
        "NaN" => return ".nan".to_owned(),
        _ => wire.parse().unwrap_or_default(),
    };
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>().unwrap_or_default() {
        -4..=5 => float.to_string(),
        exponent => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.abs())
        }
    }
}

fn style(text: &str) -> Style {
    let is_special = text.contains(is_special);
    if text.contains('\n') {
        // A block whose first line begins with a tab has no indention that could be told.
        let is_block =
            !is_special && !text.starts_with('\t') && !text.ends_with(' ') && !text.contains(" \n");
        return if is_block { Style::Literal } else { Style::Double };
    }
    match () {
        () if is_special || text.contains('\t') || reads_as_other(text) => Style::Double,
        () if has_indicator(text) || text.starts_with(' ') || text.ends_with(' ') => Style::Single,
        () => Style::Plain,
    }
}

/// Whether the bare text would be something else than text, or was in YAML 1.1.
fn reads_as_other(text: &str) -> bool {
    let is_word = matches!(
        text,
        "y" | "Y"
            | "yes"
            | "Yes"
            | "YES"
            | "on"
            | "On"
            | "ON"
            | "n"
            | "N"
            | "no"
            | "No"
            | "NO"
            | "off"
            | "Off"
            | "OFF"
    );
    is_word || is_sexagesimal(text) || !reads_as_yaml_text(text)
}

/// `[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?`, a number of YAML 1.1.
fn is_sexagesimal(text: &str) -> bool {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let mut places = whole.split(':');
    let first = places.next().unwrap_or_default();
    let mut count = 0;
    let are_places = places.all(|place| {
        count += 1;
        matches!(place.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9'])
    });
    first.starts_with(|next: char| next.is_ascii_digit())
        && is_number(first)
        && count > 0
        && are_places
        && is_number(fraction)
}

/// Characters that stand in double quotes only, as an escape. Line breaks of old readers are among them.
fn is_special(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{feff}' | '\u{fffe}' | '\u{ffff}' | '\u{2028}' | '\u{2029}' => true,
        _ => character.is_control() || character > '\u{ffff}',
    }
}

/// Whether bare text of one line would be taken for structure or a comment.
fn has_indicator(text: &str) -> bool {
    let mut characters = text.chars();
    let first = characters.next().unwrap_or_default();
    let is_blank = |next: Option<char>| next.is_none_or(|next| next == ' ');
    let starts_badly = match first {
        '?' | ':' | '-' => is_blank(characters.next()),
        _ => "#,[]{}&*!|>'\"%@`".contains(first),
    };
    starts_badly
        || text.starts_with("---")
        || text.starts_with("...")
        || (text.len() > 1 && text.ends_with(':'))
        || text.contains(": ")
        || text.contains(" #")
}

/// `text` in single quotes.
pub(super) fn single_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// `text` in double quotes. Behind a byte order mark stock tools escape every character.
pub(super) fn double_quoted(text: &str) -> String {
    let is_marked = text.starts_with('\u{feff}');
    let mut quoted = String::with_capacity(text.len() * 2 + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\0' => quoted.push_str("\\0"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\t' => quoted.push_str("\\t"),
            '\n' => quoted.push_str("\\n"),
            '\u{b}' => quoted.push_str("\\v"),
            '\u{c}' => quoted.push_str("\\f"),
            '\r' => quoted.push_str("\\r"),
            '\u{1b}' => quoted.push_str("\\e"),
            '\u{85}' => quoted.push_str("\\N"),
            '\u{2028}' => quoted.push_str("\\L"),
            '\u{2029}' => quoted.push_str("\\P"),
            _ if !is_special(character) && !is_marked => quoted.push(character),
            '\0'..='\u{ff}' => quoted.push_str(&format!("\\x{:02X}", u32::from(character))),
            '\0'..='\u{ffff}' => quoted.push_str(&format!("\\u{:04X}", u32::from(character))),
            _ => quoted.push_str(&format!("\\U{:08X}", u32::from(character))),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_the_forms_of_go() {
        let cases = [
            ("1", "1"),
            ("0.1", "0.1"),
            ("-0", "-0"),
            ("+Inf", ".inf"),
            ("NaN", ".nan"),
            ("1000000000000000000000000000000", "1e+30"),
            ("0.000000001", "1e-09"),
            ("999999", "999999"),
            ("1234567", "1.234567e+06"),
            ("0.0001", "0.0001"),
        ];
        for (wire, text) in cases {
            assert_eq!(float(wire), text);
        }
    }

    #[test]
    fn the_quotes_are_those_of_stock_tools() {
        let cases = [
            ("two words", Style::Plain),
            ("", Style::Double),
            ("1", Style::Double),
            ("yes", Style::Double),
            ("tRUE", Style::Plain),
            ("1:30", Style::Double),
            ("a: b", Style::Single),
            ("a #b", Style::Single),
            ("- a", Style::Single),
            ("-a", Style::Plain),
            ("a\tb", Style::Double),
            ("a\nb", Style::Literal),
            ("a \nb", Style::Double),
            (" a", Style::Single),
            ("😀", Style::Double),
            ("é", Style::Plain),
            ("<<", Style::Plain),
            ("\ta\nb", Style::Double),
            ("1:60", Style::Plain),
            ("1_0:0:59.5_", Style::Double),
        ];
        for (text, expected) in cases {
            assert_eq!(style(text), expected, "{text}");
        }
    }
}

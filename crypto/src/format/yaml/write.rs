//! How a value is spelled in YAML: in the style of its place where that can hold it, else in double quotes.

use std::borrow::Cow;

use crate::document::Site;
use crate::document::tree::Style;
use crate::format::Replacement;
use crate::format::yaml::{block, scalar};
use crate::value::{Value, ValueType};

/// What a site becomes with the sealed text `enc`: same style, in quotes inside brackets and braces. In an object, of
/// which an API server must see the bare text, nothing is a block.
pub(super) fn sealed<'a>(text: &str, site: &Site, enc: &'a str, one_line: bool) -> Replacement<'a> {
    let written = match &site.style {
        Style::Comment => format!("#{enc}").into(),
        Style::Double { .. } | Style::Plain { flow: true } => format!("\"{enc}\"").into(),
        Style::Single { .. } => format!("'{enc}'").into(),
        Style::Plain { flow: false } => Cow::from(enc),
        Style::Folded(found) | Style::Literal(found) if !one_line => {
            return block::sealed(text, &site.inner, found, enc);
        }
        Style::Folded(found) | Style::Literal(found) => {
            let ended = text[site.inner.clone()].ends_with(['\n', '\r']);
            format!("{enc}{}", if ended { block::line_break(text, &found.header) } else { "" }).into()
        }
    };
    in_place(text, site, written)
}

/// What a site becomes with `value` in its default spelling.
pub(super) fn opened<'a>(text: &str, site: &Site, value: &'a Value) -> Replacement<'a> {
    let written = match &site.style {
        Style::Comment => format!("#{}", value.as_text().unwrap_or_default()).into(),
        Style::Folded(found) => return block::opened(text, site, found, value, true),
        Style::Literal(found) => return block::opened(text, site, found, value, false),
        // Inside brackets and braces both are sealed in quotes, so both have one default.
        Style::Double { .. } | Style::Plain { flow: true } => scalar(value, true, true),
        Style::Plain { flow: false } => scalar(value, false, false),
        Style::Single { .. } => match value.as_text() {
            Some(plain) if value.kind() == Some(ValueType::Str) && is_single_quotable(plain) => {
                format!("'{}'", plain.replace('\'', "''")).into()
            }
            _ => scalar(value, true, true),
        },
    };
    in_place(text, site, written)
}

/// The scalar replaced with its properties, of which a core tag is cut out; alone where a comment stands between.
fn in_place<'a>(text: &str, site: &Site, written: Cow<'a, str>) -> Replacement<'a> {
    if site.outer == site.inner && site.core_tag.is_none() {
        return Replacement { place: site.outer.clone(), text: written };
    }
    let properties = &text[site.outer.start..site.inner.start.max(site.outer.start)];
    let kept = match &site.core_tag {
        _ if properties.contains('#') || site.style == Style::Comment => {
            return Replacement { place: site.inner.clone(), text: written };
        }
        None => properties.to_owned(),
        Some(tag) => {
            let after = text[tag.end..site.inner.start].trim_start();
            format!("{}{after}", &text[site.outer.start..tag.start])
        }
    };
    Replacement { place: site.outer.clone(), text: format!("{kept}{written}").into() }
}

/// `value` on one line: without quotes when it reads back as the same value so, unless `quoted`.
pub(super) fn scalar(value: &Value, quoted: bool, flow: bool) -> Cow<'_, str> {
    match value {
        Value::Null => "null".into(),
        Value::Typed(ValueType::Str | ValueType::Comment, bytes) => {
            match std::str::from_utf8(bytes.expose_secret()) {
                Ok(text) if !quoted && is_plain(text, flow) => text.into(),
                Ok(text) => double_quoted(text).into(),
                Err(_) => {
                    use base64::Engine;
                    format!(
                        "!!binary {}",
                        base64::engine::general_purpose::STANDARD.encode(bytes.expose_secret())
                    )
                    .into()
                }
            }
        }
        Value::Typed(kind, _) => non_text(*kind, value.as_text().unwrap_or_default()),
    }
}

fn non_text(kind: ValueType, wire: &str) -> Cow<'_, str> {
    match (kind, wire) {
        (ValueType::Bool, _) => wire.to_lowercase().into(),
        (ValueType::Float, "+Inf") => ".inf".into(),
        (ValueType::Float, "-Inf") => "-.inf".into(),
        (ValueType::Float, "NaN") => ".nan".into(),
        (ValueType::Float, _) if !wire.contains('.') => format!("{wire}.0").into(),
        _ => wire.into(),
    }
}

/// Text in double quotes, with escapes for what cannot stand there.
pub(super) fn double_quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => quoted.push_str(&format!("\\x{:02X}", character as u32)),
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                quoted.push_str(&format!("\\u{:04X}", character as u32));
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

fn is_single_quotable(text: &str) -> bool {
    match text.is_ascii() {
        true => !text.bytes().fold(false, |found, byte| found | byte.is_ascii_control()),
        false => !text.contains(is_special),
    }
}

fn is_special(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Whether `text` can stand without quotes and still be that text for every reader.
fn is_plain(text: &str, flow: bool) -> bool {
    let starts_well = |first: char, second: Option<char>| match first {
        '-' | '?' | ':' => second.is_some_and(|second| second != ' ' && !(flow && ",[]{}".contains(second))),
        ',' | '[' | ']' | '{' | '}' | '#' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`' => {
            false
        }
        _ => true,
    };
    let mut characters = text.chars();
    let Some(first) = characters.next() else { return false };
    starts_well(first, characters.next())
        && (!flow || text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_./-".contains(&byte)))
        && !text.starts_with(' ')
        && !text.ends_with([' ', ':'])
        && !has_sign(text)
        && !text.starts_with("---")
        && !text.starts_with("...")
        && is_single_quotable(text)
        && scalar::is_text(text)
        && !is_yaml_1_1_word(text)
}

/// Whether there is a sign that ends a plain scalar in a block: a colon before a blank, a number sign after one. All pairs
/// are looked at, many at a time.
pub(super) fn has_sign(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().zip(bytes.get(1..).unwrap_or_default()).fold(false, |found, (first, second)| {
        found | ((*first == b':') & (*second == b' ')) | ((*first == b' ') & (*second == b'#'))
    })
}

/// Words and numbers that older readers take for something else than text.
pub(crate) fn is_yaml_1_1_word(text: &str) -> bool {
    let words = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "~"];
    let word = words.into_iter().any(|word| word.eq_ignore_ascii_case(text));
    let sexagesimal =
        text.contains(':') && text.bytes().all(|byte| byte.is_ascii_digit() || b":._+-".contains(&byte));
    word || sexagesimal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_quoted_when_it_would_read_as_something_else() {
        let cases = [
            ("plain", "plain"),
            ("two words", "two words"),
            ("", "\"\""),
            ("1", "\"1\""),
            ("yes", "\"yes\""),
            ("null", "\"null\""),
            ("1:30", "\"1:30\""),
            ("a: b", "\"a: b\""),
            ("a #b", "\"a #b\""),
            ("# a", "\"# a\""),
            ("- a", "\"- a\""),
            ("-a", "-a"),
            ("a:", "\"a:\""),
            (" a", "\" a\""),
            ("a\nb", "\"a\\nb\""),
            ("\u{1b}[0m", "\"\\x1B[0m\""),
            ("2024-01-02", "\"2024-01-02\""),
            ("é 😀", "é 😀"),
            ("\u{2028}", "\"\\u2028\""),
        ];
        for (text, spelled) in cases {
            assert_eq!(scalar(&Value::text(text), false, false), spelled);
        }
    }

    proptest::proptest! {
        #[test]
        fn every_text_reads_back_in_every_style(text in "\\PC{0,20}|[ -~\\n\\t\u{85}\u{2028}]{0,20}") {
            for (quoted, flow) in [(false, false), (true, false), (false, true)] {
                let spelled = scalar(&Value::text(&text), quoted, flow).into_owned();
                let document = format!("k: {spelled}\n");
                let read = crate::document::Document::read(&document, crate::format::Format::Yaml).unwrap();
                proptest::prop_assert_eq!(&read.leaves[0].value, &Value::text(&text), "{}", spelled);
            }
        }
    }
}

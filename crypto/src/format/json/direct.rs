//! Strict JSON read in one pass, without a tree of the parser's in between.
//!
//! Whatever looks wrong or odd (an escape by number, a key that stands twice, anything that is no JSON) sends the *whole*
//! text to the parser in [`super`], which alone refuses and says why. What is taken here gives the very tree that is given
//! there: the tests hold each text against the other reader.

use std::borrow::Cow;

use crate::document::part::TextPart;
use crate::document::tree::{Entry, NodeId, NodeKind, Part, Style, Tree};
use crate::format::has_duplicates;
use crate::secret::{SecretBytes, SecretText};
use crate::value::{Value, ValueType};

/// Most objects and arrays inside each other that are read here: far below where any other limit begins.
const DEPTH_MAX: usize = 64;
/// About how many bytes of text have a node: room for most is made at once.
const BYTES_PER_NODE: usize = 40;

/// Reads a text that is an object; nothing for any other text.
pub(super) fn read(whole: &SecretText) -> Option<Tree> {
    let text = whole.expose_secret();
    let tree = Tree { nodes: Vec::with_capacity(text.len() / BYTES_PER_NODE), ..Tree::default() };
    let mut reader = Reader { whole, text, tree, at: 0 };
    reader.blanks();
    let root = reader.object(0)?;
    reader.blanks();
    (reader.at == text.len()).then_some(())?;
    reader.tree.documents.push(Part { root: Some(root), end: text.len() });
    Some(reader.tree)
}

struct Reader<'a> {
    whole: &'a SecretText,
    text: &'a str,
    tree: Tree,
    at: usize,
}

impl<'a> Reader<'a> {
    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.next(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Goes beyond `sign` and the blanks around it, if it is next.
    fn takes(&mut self, sign: u8) -> bool {
        self.blanks();
        let is_next = self.next() == Some(sign);
        if is_next {
            self.at += 1;
            self.blanks();
        }
        is_next
    }

    fn object(&mut self, depth: usize) -> Option<NodeId> {
        let start = self.at;
        let mut entries = Vec::new();
        (depth < DEPTH_MAX && self.takes(b'{')).then_some(())?;
        if self.next() != Some(b'}') {
            loop {
                let begin = self.at;
                let name = match self.string()? {
                    Cow::Borrowed(name) => TextPart::of(self.whole, name),
                    Cow::Owned(name) => TextPart::from(name),
                };
                let place = begin..self.at;
                self.takes(b':').then_some(())?;
                entries.push(Entry { name, place, value: self.value(depth + 1)? });
                if !self.takes(b',') {
                    break;
                }
            }
        }
        (self.next() == Some(b'}') && !has_duplicates(&entries)).then_some(())?;
        self.at += 1;
        Some(super::node(&mut self.tree, NodeKind::Map { entries, flow: true }, start..self.at))
    }

    fn array(&mut self, depth: usize) -> Option<NodeId> {
        let start = self.at;
        let mut items = Vec::new();
        (depth < DEPTH_MAX && self.takes(b'[')).then_some(())?;
        if self.next() != Some(b']') {
            loop {
                items.push(self.value(depth + 1)?);
                if !self.takes(b',') {
                    break;
                }
            }
        }
        (self.next() == Some(b']')).then_some(())?;
        self.at += 1;
        Some(super::node(&mut self.tree, NodeKind::List { items, flow: true }, start..self.at))
    }

    fn value(&mut self, depth: usize) -> Option<NodeId> {
        let start = self.at;
        let (value, style) = match self.next()? {
            b'{' => return self.object(depth),
            b'[' => return self.array(depth),
            b'"' => {
                let bytes = match self.string()? {
                    Cow::Borrowed(text) => self.whole.share(text),
                    Cow::Owned(text) => SecretBytes::new(text.into_bytes()),
                };
                (Value::Typed(ValueType::Str, bytes), Style::Double { flow: true })
            }
            _ => (self.word()?, Style::Plain { flow: true }),
        };
        Some(super::node(&mut self.tree, NodeKind::Scalar { value, style }, start..self.at))
    }

    /// A number, or a word with a meaning.
    fn word(&mut self) -> Option<Value> {
        let start = self.at;
        while self.next().is_some_and(|next| next.is_ascii_alphanumeric() || b"+-.".contains(&next)) {
            self.at += 1;
        }
        match &self.text[start..self.at] {
            "null" => Some(Value::Null),
            "true" => Some(super::boolean(true)),
            "false" => Some(super::boolean(false)),
            number => is_number(number).then(|| super::number(number)).flatten(),
        }
    }

    /// A string from its first quote to behind its last.
    fn string(&mut self) -> Option<Cow<'a, str>> {
        (self.next() == Some(b'"')).then_some(())?;
        let mut text = Cow::Borrowed("");
        loop {
            let start = self.at + 1;
            let place = start..self.run(start)?;
            match (&mut text, self.text.as_bytes()[place.end]) {
                (Cow::Borrowed(""), b'"') => text = Cow::Borrowed(&self.text[place.clone()]),
                (text, _) => text.to_mut().push_str(&self.text[place.clone()]),
            }
            self.at = place.end + 1;
            if self.text.as_bytes()[place.end] == b'"' {
                return Some(text);
            }
            text.to_mut().push(match self.next()? {
                sign @ (b'"' | b'\\' | b'/') => char::from(sign),
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                _ => return None,
            });
        }
    }

    /// Where the characters that stand for themselves end; nothing at a control character, and at the end of the text.
    fn run(&self, start: usize) -> Option<usize> {
        let rest = self.text.as_bytes().get(start..)?;
        let is_end = |byte: &u8| *byte < b' ' || *byte == b'"' || *byte == b'\\';
        let end = start + rest.iter().position(is_end)?;
        (self.text.as_bytes()[end] >= b' ').then_some(end)
    }
}

/// `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?`
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(digits)
}

/// The safety argument of this module: what it takes, the parser reads as the very same tree. Refusing is always right.
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::secret::SecretText;

    /// Whether `text` is taken; fails when the parser gives anything else for it.
    fn is_taken(text: &str) -> bool {
        let Some(tree) = super::read(&SecretText::from(text)) else { return false };
        match super::super::parse(text) {
            Ok(parsed) => assert_eq!(tree, parsed, "{text:?}"),
            Err(error) => panic!("{text:?} is taken, and the parser says {error}"),
        }
        true
    }

    #[test]
    fn the_common_forms_are_taken() {
        let texts = [
            "{}",
            " { } \r\n",
            r#"{"a":1,"b":[],"c":{},"d":[1,"x",[{}]]}"#,
            "{\n\t\"a\": \"b\",\n\t\"c\": null, \"d\" :true,\"e\": false\n}\n",
            r#"{"a":-0,"b":1.50,"c":1e3,"d":-1.5E-3,"e":9223372036854775807,"f":9223372036854775808,"g":0.1}"#,
            r#"{"a\"b":"c\\d\/\b\f\n\r\t","":"\n","x":"y\nz"}"#,
            "{\"größe\":\"süß\u{2028}\u{7f}😀\"}",
        ];
        let refused = texts.iter().filter(|text| !is_taken(text)).collect::<Vec<_>>();
        assert!(refused.is_empty(), "{refused:?}");
    }

    #[test]
    fn what_needs_a_parser_is_left_to_it() {
        let texts = [
            "",
            " ",
            "[]",
            "1",
            "{",
            "}",
            "{}}",
            "{} x",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{,}",
            "{\"a\":[1,]}",
            "{\"a\":[,]}",
            "{\"a\" 1}",
            "{a:1}",
            "{'a':1}",
            "{\"a\":1,\"a\":2}",
            "{\"a\":1 \"b\":2}",
            "{\"a\":01}",
            "{\"a\":.5}",
            "{\"a\":5.}",
            "{\"a\":1e}",
            "{\"a\":+1}",
            "{\"a\":--1}",
            "{\"a\":-}",
            "{\"a\":0x1}",
            "{\"a\":1e400}",
            "{\"a\":NaN}",
            "{\"a\":nul}",
            "{\"a\":True}",
            "{\"a\":\"\\u0041\"}",
            "{\"a\":\"\\x\"}",
            "{\"a\":\"\\\"}",
            "{\"a\":\"b}",
            "{\"a\":\"\t\"}",
            "{\"a\":\"\n\"}",
            "{\"\u{1}\":1}",
            "// x\n{}",
            "{/**/}",
            "\u{feff}{}",
            "{\u{a0}}",
            "{\"a\":[1}",
            "{\"a\":{]}",
            "{}\u{0}",
        ];
        let taken = texts.iter().filter(|text| is_taken(text)).collect::<Vec<_>>();
        assert!(taken.is_empty(), "{taken:?}");
    }

    /// All documents at hand, whole and cut off behind each of their characters.
    #[test]
    fn documents_and_their_beginnings_agree() {
        let mut folders = vec![xtask::root().join("testdata")];
        let (mut files, mut taken) = (0, 0);
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let is_json = path.extension().is_some_and(|ending| ending == "json");
                let Some(text) = std::fs::read_to_string(&path).ok().filter(|_| is_json) else { continue };
                files += 1;
                taken += usize::from(is_taken(&text));
                let ends = text.char_indices().map(|(at, _)| at).take(2_000);
                ends.for_each(|end| assert!(!is_taken(&text[..end]) || text[end..].trim_ascii().is_empty()));
            }
        }
        assert!(files > 30 && taken > files / 3, "{taken} of {files}");
    }

    proptest! {
        #[test]
        fn texts_of_parts_agree(parts in proptest::collection::vec(
            prop_oneof![
                Just("{"), Just("}"), Just("["), Just("]"), Just(","), Just(":"), Just("\"a\""), Just("\"b\""),
                Just("1"), Just("-0"), Just("1.5e3"), Just("true"), Just("null"), Just(" "), Just("\n"),
                Just("\"\\n\""), Just("\""), Just("\\"), Just("{\"a\":"), Just("}}"), Just("é"),
            ],
            0..12,
        )) {
            is_taken(&parts.concat());
            is_taken(&format!("{{\"k\":{}}}", parts.concat()));
        }
    }
}

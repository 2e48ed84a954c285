//! YAML as the tools of Kubernetes print it: keys in the order in which people count (`a2` before `a10`), lists no
//! deeper than the key they belong to, quotes where a reader of YAML 1.1 would see something else than text.

use std::cmp::Ordering;

use serde_json::Value;

use super::super::yaml_1_1::{self, Word};

/// The column behind which a long text goes on in the next line.
const WIDTH: usize = 80;
/// The longest key, in bytes, that stands on one line with its value.
const SIMPLE_KEY_BYTES_MAX: usize = 128;

/// `value` as the whole of a document.
pub(super) fn print(value: &Value) -> String {
    let mut printing = Printing { text: String::new(), column: 0 };
    printing.node(value, 0, Place::Root);
    printing.end_line();
    printing.text
}

/// Where a node stands, which decides what comes between it and what was there before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    AfterDash,
    AfterKey,
    Root,
}

struct Printing {
    text: String,
    column: usize,
}

impl Printing {
    /// A node whose own entries, if it has some, stand at `indent`.
    fn node(&mut self, value: &Value, indent: usize, place: Place) {
        if place == Place::AfterDash && is_filled(value) {
            self.put(" ");
        }
        match value {
            Value::Object(map) if !map.is_empty() => {
                let mut entries: Vec<(&String, &Value)> = map.iter().collect();
                entries.sort_by(|(first, _), (second, _)| by_counting(first, second));
                for (index, (key, value)) in entries.into_iter().enumerate() {
                    if index > 0 || place == Place::AfterKey {
                        self.line(indent);
                    }
                    self.entry(key, value, indent);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                for (index, item) in items.iter().enumerate() {
                    if index > 0 || place == Place::AfterKey {
                        self.line(indent);
                    }
                    self.put("-");
                    self.node(item, indent + 2, Place::AfterDash);
                }
            }
            leaf => {
                if place != Place::Root {
                    self.put(" ");
                }
                self.leaf(leaf, indent);
            }
        }
    }

    fn entry(&mut self, key: &str, value: &Value, indent: usize) {
        let is_simple = key.len() <= SIMPLE_KEY_BYTES_MAX && !key.contains(is_break);
        if is_simple {
            self.scalar(key, indent, true);
        } else {
            self.put("? ");
            self.scalar(key, indent + 2, false);
            self.line(indent);
        }
        self.put(":");
        let is_list = value.as_array().is_some_and(|items| !items.is_empty());
        match (is_list, is_simple) {
            (true, true) => self.node(value, indent, Place::AfterKey),
            (false, true) => self.node(value, indent + 2, Place::AfterKey),
            // What follows a long key has a line of its own, and stands there as behind a dash.
            (_, false) => self.node(value, indent + 2, Place::AfterDash),
        }
    }

    fn leaf(&mut self, value: &Value, indent: usize) {
        match value {
            Value::String(text) => self.scalar(text, indent, false),
            Value::Object(_) => self.put("{}"),
            Value::Array(_) => self.put("[]"),
            other => self.put(&other.to_string()),
        }
    }

    /// A text, whose further lines stand at `indent`.
    fn scalar(&mut self, text: &str, indent: usize, is_key: bool) {
        let found = Found::of(text);
        if text.contains('\n') && found.fits_block && !is_key {
            return self.literal(text, indent);
        }
        let is_text = matches!(yaml_1_1::read(text), Word::Text(_)) && !is_time(text) && !is_base_60(text);
        match (is_text && !text.contains('\n'), found) {
            (true, Found { fits_plain: true, .. }) => self.flowing(text, indent, is_key, "", str::to_owned),
            (true, Found { fits_single: true, .. }) if !text.contains(is_break) => {
                self.flowing(text, indent, is_key, "'", |part| part.replace('\'', "''"));
            }
            _ => self.flowing(text, indent, is_key, "\"", escaped),
        }
    }

    /// A text between quotes, or none, broken at single blanks behind the width.
    fn flowing(
        &mut self,
        text: &str,
        indent: usize,
        is_key: bool,
        quote: &str,
        spell: impl Fn(&str) -> String,
    ) {
        self.put(quote);
        let characters: Vec<char> = text.chars().collect();
        let is_double = quote == "\"";
        let mut after_blank = false;
        for (index, character) in characters.iter().enumerate() {
            let is_inner = quote.is_empty() || (index > 0 && index + 1 < characters.len());
            let next_is_blank = characters.get(index + 1) == Some(&' ');
            let breaks = !is_key && *character == ' ' && !after_blank && self.column > WIDTH && is_inner;
            if breaks && (is_double || !next_is_blank) {
                self.line(indent);
                if next_is_blank {
                    self.put("\\");
                }
            } else {
                self.put(&spell(&character.to_string()));
            }
            after_blank = *character == ' ';
        }
        self.put(quote);
    }

    fn literal(&mut self, text: &str, indent: usize) {
        let first = if text.starts_with([' ', '\n']) { "2" } else { "" };
        let last = match text.strip_suffix('\n') {
            None => "-",
            Some(before) if before.is_empty() || before.ends_with('\n') => "+",
            Some(_) => "",
        };
        self.put(&format!("|{first}{last}"));
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            if line.is_empty() {
                self.end_line();
            } else {
                self.line(indent);
                self.put(line);
            }
        }
    }

    fn put(&mut self, text: &str) {
        self.text.push_str(text);
        self.column += text.chars().count();
    }

    fn end_line(&mut self) {
        self.text.push('\n');
        self.column = 0;
    }

    fn line(&mut self, indent: usize) {
        self.end_line();
        self.put(&" ".repeat(indent));
    }
}

fn is_filled(value: &Value) -> bool {
    match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

/// What a text has in it that decides how it may be spelled.
struct Found {
    fits_plain: bool,
    fits_single: bool,
    fits_block: bool,
}

impl Found {
    fn of(text: &str) -> Self {
        let characters: Vec<char> = text.chars().collect();
        let blank_at = |index: usize| {
            characters.get(index).is_none_or(|next| matches!(next, ' ' | '\t') || is_break(*next))
        };
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut special, mut break_space, mut space_break) = (false, false, false);
        for (index, character) in characters.iter().enumerate() {
            let before = index.checked_sub(1).map(|before| characters[before]);
            indicators |= match character {
                '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
                | '`'
                    if index == 0 =>
                {
                    true
                }
                '?' | '-' if index == 0 => blank_at(index + 1),
                ':' => blank_at(index + 1),
                '#' => before.is_none_or(|before| matches!(before, ' ' | '\t') || is_break(before)),
                _ => false,
            };
            special |= !is_printable(*character);
            break_space |= *character == ' ' && before.is_some_and(is_break);
            space_break |= is_break(*character) && before == Some(' ');
        }
        let at_edge = |edge: fn(&str) -> bool| edge(text);
        let spaced = text.starts_with(' ') || at_edge(|text| text.ends_with(' '));
        let broken = text.contains(is_break);
        Self {
            fits_plain: !text.is_empty() && !indicators && !special && !spaced && !broken,
            fits_single: !special && !break_space && !space_break,
            fits_block: !text.is_empty() && !text.ends_with(' ') && !special && !space_break,
        }
    }
}

fn is_break(character: char) -> bool {
    matches!(character, '\r' | '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Whether a character may stand for itself; what needs four bytes may not.
fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && character != '\u{feff}'
}

fn escaped(part: &str) -> String {
    let mut spelled = String::new();
    for character in part.chars() {
        match character {
            '\0' => spelled.push_str("\\0"),
            '\u{7}' => spelled.push_str("\\a"),
            '\u{8}' => spelled.push_str("\\b"),
            '\t' => spelled.push_str("\\t"),
            '\n' => spelled.push_str("\\n"),
            '\u{b}' => spelled.push_str("\\v"),
            '\u{c}' => spelled.push_str("\\f"),
            '\r' => spelled.push_str("\\r"),
            '\u{1b}' => spelled.push_str("\\e"),
            '"' => spelled.push_str("\\\""),
            '\\' => spelled.push_str("\\\\"),
            '\u{85}' => spelled.push_str("\\N"),
            '\u{2028}' => spelled.push_str("\\L"),
            '\u{2029}' => spelled.push_str("\\P"),
            _ if is_printable(character) => spelled.push(character),
            _ => match u32::from(character) {
                code @ ..=0xff => spelled.push_str(&format!("\\x{code:02X}")),
                code @ ..=0xffff => spelled.push_str(&format!("\\u{code:04X}")),
                code => spelled.push_str(&format!("\\U{code:08X}")),
            },
        }
    }
    spelled
}

/// Whether older readers would take `text` for a date, with or without a time.
fn is_time(text: &str) -> bool {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let has_zone = !text.contains(' ');
    is_date(date) && time.is_none_or(|time| is_time_of_day(time, has_zone))
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return false };
    let number =
        |text: &str, digits| is_number(text, digits, 9999).then(|| text.parse::<u32>().ok()).flatten();
    let (Some(year_number), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2))
    else {
        return false;
    };
    let is_leap = year_number % 4 == 0 && (year_number % 100 != 0 || year_number % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    year.len() == 4 && (1..=12).contains(&month) && (1..=days).contains(&day)
}

fn is_time_of_day(text: &str, has_zone: bool) -> bool {
    let clock = match (has_zone, text.find(['Z', '+', '-'])) {
        (true, Some(at)) => {
            let zone = &text[at..];
            let is_offset = zone[1..].split_once(':').is_some_and(|(hours, minutes)| {
                hours.len() == 2 && minutes.len() == 2 && is_number(hours, 2, 24) && is_number(minutes, 2, 60)
            });
            if zone != "Z" && (zone.starts_with('Z') || !is_offset) {
                return false;
            }
            &text[..at]
        }
        (true, None) => return false,
        (false, _) => text,
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let parts: Vec<&str> = clock.split(':').collect();
    let [hour, minute, second] = parts.as_slice() else { return false };
    let has_digits = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    has_digits && is_number(hour, 2, 23) && is_number(minute, 2, 59) && is_number(second, 2, 59)
}

/// Whether `text` is up to so many digits, and they make no more than `largest`.
fn is_number(text: &str, digits: usize, largest: u32) -> bool {
    (1..=digits).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && text.parse::<u32>().is_ok_and(|number| number <= largest)
}

/// Whether the oldest readers would count in sixties.
fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let whole = unsigned.split('.').next().unwrap_or_default();
    let rest_is_digits =
        unsigned[whole.len()..].bytes().skip(1).all(|byte| byte.is_ascii_digit() || byte == b'_');
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let starts = first.starts_with(|first: char| first.is_ascii_digit())
        && first.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let mut count = 0;
    let sixties = parts.all(|part| {
        count += 1;
        match part.as_bytes() {
            [last] => last.is_ascii_digit(),
            [b'0'..=b'5', last] => last.is_ascii_digit(),
            _ => false,
        }
    });
    starts && sixties && count > 0 && rest_is_digits
}

/// Letters behind everything else, and digits by the number they make.
fn by_counting(first: &str, second: &str) -> Ordering {
    let (first, second): (Vec<char>, Vec<char>) = (first.chars().collect(), second.chars().collect());
    for index in 0..first.len().min(second.len()) {
        let (a, b) = (first[index], second[index]);
        if a == b {
            continue;
        }
        match (a.is_alphabetic(), b.is_alphabetic()) {
            (true, true) => return a.cmp(&b),
            (true, false) => return Ordering::Greater,
            (false, true) => return Ordering::Less,
            (false, false) => {}
        }
        let mut start: i64 = 0;
        if a == '0' || b == '0' {
            let digits = first[..index].iter().rev().take_while(|digit| digit.is_ascii_digit());
            if digits.into_iter().any(|digit| *digit != '0') {
                start = 1;
            }
        }
        let number = |text: &[char]| {
            let digits = text[index..].iter().take_while(|digit| digit.is_ascii_digit());
            digits.fold((start, 0), |(value, count), digit| {
                let digit = i64::from(digit.to_digit(10).unwrap_or_default());
                (value.wrapping_mul(10).wrapping_add(digit), count + 1)
            })
        };
        return number(&first).cmp(&number(&second)).then(a.cmp(&b));
    }
    first.len().cmp(&second.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(text: &str) -> String {
        print(&json!({ "k": text }))
    }

    #[test]
    fn texts_have_the_quotes_that_they_need() {
        for (text, spelled) in [
            ("plain", "plain"),
            ("", "\"\""),
            ("n", "\"n\""),
            ("10", "\"10\""),
            ("1e3", "\"1e3\""),
            ("2024-01-02", "\"2024-01-02\""),
            ("2024-13-02", "2024-13-02"),
            ("2024-02-30", "2024-02-30"),
            ("2024-1-2T1:2:3.5+02:00", "\"2024-1-2T1:2:3.5+02:00\""),
            ("2024-01-02T10:00:00Z.x", "2024-01-02T10:00:00Z.x"),
            ("2024-01-02 10:00:00", "\"2024-01-02 10:00:00\""),
            ("<<", "<<"),
            ("1e310", "1e310"),
            ("12:30", "\"12:30\""),
            ("10.0.0.1:8080", "10.0.0.1:8080"),
            ("a: b", "'a: b'"),
            ("it's: b", "'it''s: b'"),
            ("a:b", "a:b"),
            ("a #b", "'a #b'"),
            ("- a", "'- a'"),
            ("-a", "-a"),
            ("{\"a\":1}", "'{\"a\":1}'"),
            ("@a", "'@a'"),
            (" a", "' a'"),
            ("a\tb", "\"a\\tb\""),
            ("a\r\nb", "\"a\\r\\nb\""),
            ("é", "é"),
            ("😀", "\"\\U0001F600\""),
            ("\u{1b}[0m", "\"\\e[0m\""),
            ("a\nb", "|-\n  a\n  b"),
            ("a\nb\n", "|\n  a\n  b"),
            ("a\n\n", "|+\n  a\n"),
            ("\n", "|2+\n"),
            (" a\nb\n", "|2\n   a\n  b"),
            ("a\n\nb", "|-\n  a\n\n  b"),
            ("a \nb", "\"a \\nb\""),
            ("a\nb ", "\"a\\nb \""),
        ] {
            assert_eq!(one(text), format!("k: {spelled}\n"), "{text:?}");
        }
    }

    #[test]
    fn long_texts_go_on_in_the_next_line() {
        let text = format!("{} tail end", "x".repeat(79));
        assert_eq!(one(&text), format!("k: {}\n  tail end\n", "x".repeat(79)));
        let text = format!("'{}  two one", "x".repeat(79));
        assert_eq!(one(&text), format!("k: '''{}  two\n  one'\n", "x".repeat(79)));
    }

    #[test]
    fn objects_and_lists_stand_where_they_do_there() {
        let object = json!({"b": {"a10": "x", "a2": "y", "B": "z"}, "l": [{"b": 1, "a": true}, "t", []], "e": {}, "n": null});
        let expected =
            "b:\n  B: z\n  a2: \"y\"\n  a10: x\ne: {}\nl:\n- a: true\n  b: 1\n- t\n- []\n\"n\": null\n";
        assert_eq!(print(&object), expected);
        let key = "k".repeat(129);
        assert_eq!(print(&json!({ key.clone(): "v" })), format!("? {key}\n: v\n"));
    }
}

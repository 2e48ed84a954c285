//! One ciphertext in the place of another, character by character.
//!
//! The old text is taken apart into characters of base64 and what stands between them: quotes, line breaks with their
//! indentation, escapes that mean a line break. The new characters go where the old ones were. As a rule there are as many
//! of them; where a key of another size makes more or fewer, lines are added or left out at the end in the width and with
//! the indentation of those that are there.

use crate::document::tree::Style;

/// What an old text consists of.
enum Piece<'a> {
    /// A character of base64, however it is written.
    Digit,
    /// What is between such characters.
    Gap(&'a str),
}

/// `item` as `old` is written. What is no base64 is replaced as a whole.
pub(super) fn rewritten(old: &str, style: &Style, item: &str) -> String {
    match pieces(old, style) {
        Some(pieces) => fill(&pieces, item),
        None => match style {
            Style::Double { .. } => format!("\"{item}\""),
            Style::Single { .. } => format!("'{item}'"),
            Style::Comment | Style::Folded(_) | Style::Literal(_) | Style::Plain { .. } => item.to_owned(),
        },
    }
}

/// The pieces of `old`, or nothing when something in it is neither base64 nor between it, or there is no base64 at all.
fn pieces<'a>(old: &'a str, style: &Style) -> Option<Vec<Piece<'a>>> {
    let escapes = matches!(style, Style::Double { .. });
    let mut pieces = Vec::with_capacity(old.len());
    let mut gap = 0..0;
    let mut at = 0;
    while at < old.len() {
        let is_quote = matches!(old.as_bytes()[at], b'"' | b'\'') && (at == 0 || at + 1 == old.len());
        let (length, is_digit) = if is_quote { (1, false) } else { piece(&old[at..], escapes)? };
        match is_digit {
            true => {
                if !gap.is_empty() {
                    pieces.push(Piece::Gap(&old[gap.clone()]));
                }
                pieces.push(Piece::Digit);
                gap = at + length..at + length;
            }
            false => gap.end = at + length,
        }
        at += length;
    }
    if !gap.is_empty() {
        pieces.push(Piece::Gap(&old[gap]));
    }
    pieces.iter().any(|piece| matches!(piece, Piece::Digit)).then_some(pieces)
}

/// Length of the first piece of `text`, and whether it is a character of base64.
fn piece(text: &str, escapes: bool) -> Option<(usize, bool)> {
    let first = *text.as_bytes().first()?;
    match first {
        b'\\' if escapes => escape(text),
        b' ' | b'\t' | b'\r' | b'\n' => Some((1, false)),
        _ => is_digit(char::from(first)).then_some((1, true)),
    }
}

/// As [`piece`] for what begins with a backslash in double quotes.
fn escape(text: &str) -> Option<(usize, bool)> {
    let digits = match *text.as_bytes().get(1)? {
        b'n' | b'r' => return Some((2, false)),
        b'\n' => return Some((2, false)),
        b'\r' if text.as_bytes().get(2) == Some(&b'\n') => return Some((3, false)),
        b'/' => return Some((2, true)),
        b'x' => 2,
        b'u' => 4,
        b'U' => 8,
        _ => return None,
    };
    let code = u32::from_str_radix(text.get(2..2 + digits)?, 16).ok()?;
    match char::from_u32(code)? {
        '\r' | '\n' => Some((2 + digits, false)),
        character => is_digit(character).then_some((2 + digits, true)),
    }
}

fn is_digit(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '+' | '/' | '=')
}

/// The characters of `item` in the places of the old ones.
fn fill(pieces: &[Piece<'_>], item: &str) -> String {
    let mut text = String::with_capacity(item.len() + pieces.len() / 8);
    let digits = pieces.iter().filter(|piece| matches!(piece, Piece::Digit)).count();
    let (mut rest, mut left) = (item, digits);
    let mut lines = Lines::default();
    for piece in pieces {
        match piece {
            Piece::Gap(gap) => {
                let is_last = left == 0;
                if is_last {
                    lines.continued(&mut text, std::mem::take(&mut rest));
                }
                // Line breaks after which nothing would come are left out.
                if is_last || left == digits || !rest.is_empty() {
                    text.push_str(gap);
                }
                lines.gap(gap, left < digits);
            }
            Piece::Digit => {
                left -= 1;
                lines.width += 1;
                if !rest.is_empty() {
                    let (digit, after) = rest.split_at(1);
                    text.push_str(digit);
                    rest = after;
                }
            }
        }
    }
    lines.continued(&mut text, rest);
    text
}

/// How the lines of a long value are cut.
#[derive(Default)]
struct Lines<'a> {
    /// Characters on the line so far.
    width: usize,
    /// The first break between characters, and the width of the line before it.
    first: Option<(&'a str, usize)>,
}

impl<'a> Lines<'a> {
    fn gap(&mut self, gap: &'a str, is_between: bool) {
        if is_between && self.first.is_none() {
            self.first = Some((gap, self.width));
        }
        self.width = 0;
    }

    /// Appends `rest`, which is more than there was room for.
    fn continued(&self, text: &mut String, mut rest: &str) {
        let Some((gap, width)) = self.first else {
            text.push_str(rest);
            return;
        };
        let mut room = width.saturating_sub(self.width);
        while !rest.is_empty() {
            if room == 0 {
                text.push_str(gap);
                room = width.max(1);
            }
            let (line, after) = rest.split_at(room.min(rest.len()));
            text.push_str(line);
            (rest, room) = (after, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOUBLE: Style = Style::Double { flow: false };
    const PLAIN: Style = Style::Plain { flow: false };

    #[test]
    fn as_many_characters_go_where_the_old_ones_were() {
        for (old, style, new) in [
            ("AAAA", PLAIN, "wxyz"),
            ("'AAAA'", Style::Single { flow: true }, "'wxyz'"),
            ("\"AAAA\"", DOUBLE, "\"wxyz\""),
            ("  AA\n  AA\n", PLAIN, "  wx\n  yz\n"),
            ("  AA\r\n  AA", PLAIN, "  wx\r\n  yz"),
            ("\"AA\\\n  AA\"", DOUBLE, "\"wx\\\n  yz\""),
            ("\"AA\\nAA\\n\"", DOUBLE, "\"wx\\nyz\\n\""),
            ("\"A\\/\\u003d\\x41\"", DOUBLE, "\"wxyz\""),
        ] {
            assert_eq!(rewritten(old, &style, "wxyz"), new, "{old}");
        }
    }

    #[test]
    fn more_and_fewer_keep_the_width_and_the_indentation() {
        for (old, item, new) in [
            ("AAAA", "abcdefgh", "abcdefgh"),
            ("  AA\n  AA\n", "abcdefgh", "  ab\n  cd\n  ef\n  gh\n"),
            ("  AA\n  A\n", "abcd", "  ab\n  cd\n"),
            ("  AA\n  AA", "abcdef", "  ab\n  cd\n  ef"),
            ("  AA\n  AA\n  AA\n", "abc", "  ab\n  c\n"),
            ("  AA\n  AA\n  AA\n", "ab", "  ab\n"),
            ("\"AA\\\n  AA\"", "abcdef", "\"ab\\\n  cd\\\n  ef\""),
            ("\"AA\\\n  AA\"", "ab", "\"ab\""),
        ] {
            assert_eq!(rewritten(old, &DOUBLE, item), new, "{old}");
        }
    }

    #[test]
    fn what_is_no_base64_is_replaced_as_a_whole() {
        for (old, style, new) in [
            ("\"<secret>\"", DOUBLE, "\"abcd\""),
            ("'it''s'", Style::Single { flow: false }, "'abcd'"),
            ("ENC[AES]", PLAIN, "abcd"),
            ("\"\"", DOUBLE, "\"abcd\""),
            ("\"A\\t\"", DOUBLE, "\"abcd\""),
        ] {
            assert_eq!(rewritten(old, &style, "abcd"), new, "{old}");
        }
    }
}

//! What single lines and scalars of the plain subset look like. No function here knows where it stands in a document.

use std::borrow::Cow;

use crate::format::yaml::{scalar, write};

/// Most bytes of a key that are read here; YAML's own limit is 1,024 characters.
const KEY_BYTES_MAX: usize = 1000;

/// Whether `text` has no character but line feeds, printing ASCII, and letters and signs of other scripts: no tab, no
/// carriage return, nothing that any reader could take for a line break, a blank or a mark.
pub(super) fn is_plain(text: &str) -> bool {
    let is_odd = |byte: u8| (byte < b' ' && byte != b'\n') || byte == 0x7f;
    // Without an early end each chunk is looked at many bytes at a time.
    let mut chunks = text.as_bytes().chunks(1024);
    let has_odd = chunks.any(|chunk| chunk.iter().fold(false, |odd, byte| odd | is_odd(*byte)));
    let is_letter = |character: char| {
        character.is_ascii()
            || !(character.is_control()
                || character.is_whitespace()
                || matches!(character, '\u{feff}' | '\u{fffe}' | '\u{ffff}'))
    };
    !has_odd && (text.is_ascii() || text.chars().all(is_letter))
}

/// Where the line that `at` is in ends: before its line feed, or with the text.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |found| at + found)
}

/// Where the first entry of the root begins whose line starts behind `at`; the end when there is none.
pub(super) fn next_entry(text: &str, at: usize) -> usize {
    let lines = text.as_bytes()[at..].iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let is_entry = |at: usize| text.as_bytes().get(at).is_some_and(|next| !b" -#\n".contains(next));
    lines.map(|(offset, _)| at + offset + 1).find(|at| is_entry(*at)).unwrap_or(text.len())
}

/// The first byte of `at..end` that is no space.
pub(super) fn skip_spaces(text: &str, at: usize, end: usize) -> usize {
    at + text.as_bytes()[at..end].iter().take_while(|byte| **byte == b' ').count()
}

/// Whether a line's rest is an item of a list with something behind its dash.
pub(super) fn is_item(rest: &str) -> bool {
    let behind = rest.strip_prefix("- ").map(|behind| behind.trim_start_matches(' '));
    behind.is_some_and(|behind| !behind.is_empty() && !behind.starts_with('#'))
}

/// The key with which `rest` begins, and its length up to the colon.
pub(super) fn key(rest: &str) -> Option<(Cow<'_, str>, usize)> {
    if rest.starts_with(['"', '\'']) {
        let (name, length) = quoted(rest)?;
        return (length <= KEY_BYTES_MAX && is_colon(&rest[length..])).then_some((name, length));
    }
    let colon = rest.bytes().enumerate().position(|(at, byte)| byte == b':' && is_colon(&rest[at..]))?;
    let name = &rest[..colon];
    let is_key = colon <= KEY_BYTES_MAX
        && starts_plain(name)
        && !name.ends_with(' ')
        && !name.contains(" #")
        && scalar::is_text(name);
    is_key.then_some((Cow::Borrowed(name), colon))
}

fn is_colon(rest: &str) -> bool {
    matches!(rest.as_bytes(), [b':'] | [b':', b' ', ..])
}

/// The plain scalar with which `rest` begins, up to a comment or the end; nothing when others could see a key in it.
pub(super) fn plain(rest: &str) -> Option<&str> {
    let has_sign = write::has_sign(rest);
    let text = match has_sign {
        true => rest.split(" #").next()?,
        false => rest,
    };
    let text = text.trim_end_matches(' ');
    let is_one = starts_plain(text) && !text.ends_with(':') && !(has_sign && text.contains(": "));
    is_one.then_some(text)
}

/// Whether a plain scalar may begin so: no character that means anything in any context, but a dash before a text.
fn starts_plain(text: &str) -> bool {
    match text.as_bytes() {
        [b'-', second, ..] => !matches!(second, b' ' | b'-'),
        [first, ..] => {
            first.is_ascii_alphanumeric() || !first.is_ascii() || b"_/.+()$^;~=\\<".contains(first)
        }
        [] => false,
    }
}

/// The quoted text with which `rest` begins, and its length with the quotes. Of escapes only those that everyone knows.
pub(super) fn quoted(rest: &str) -> Option<(Cow<'_, str>, usize)> {
    if rest.starts_with('\'') { single_quoted(rest) } else { double_quoted(rest) }
}

fn single_quoted(rest: &str) -> Option<(Cow<'_, str>, usize)> {
    let mut at = 1;
    loop {
        at += rest[at..].find('\'')?;
        if rest[at + 1..].starts_with('\'') {
            at += 2;
            continue;
        }
        let inner = &rest[1..at];
        let text = match inner.contains('\'') {
            true => Cow::Owned(inner.replace("''", "'")),
            false => Cow::Borrowed(inner),
        };
        return Some((text, at + 1));
    }
}

fn double_quoted(rest: &str) -> Option<(Cow<'_, str>, usize)> {
    let first = 1 + rest[1..].find(['"', '\\'])?;
    if rest[first..].starts_with('"') {
        return Some((Cow::Borrowed(&rest[1..first]), first + 1));
    }
    let mut text = String::from(&rest[1..first]);
    let mut at = first;
    loop {
        match rest.as_bytes().get(at)? {
            b'"' => return Some((Cow::Owned(text), at + 1)),
            b'\\' => {
                text.push(match rest.as_bytes().get(at + 1)? {
                    b'"' => '"',
                    b'\\' => '\\',
                    b'n' => '\n',
                    b't' => '\t',
                    _ => return None,
                });
                at += 2;
            }
            _ => {
                let next = rest[at..].find(['"', '\\'])?;
                text.push_str(&rest[at..at + next]);
                at += next;
            }
        }
    }
}

/// The content of a literal block.
pub(super) struct Lines {
    /// The lines without their indentation, without the last line feed.
    pub(super) text: String,
    pub(super) indent: usize,
    /// After the last line that is not blank.
    pub(super) end: usize,
    /// Where the first line behind the block starts.
    pub(super) next: usize,
}

/// The lines from `start` on that stand further in than `column`, each of them ended and none oddly indented.
pub(super) fn block(text: &str, start: usize, column: usize) -> Option<Lines> {
    let first_end = line_end(text, start.min(text.len()));
    let indent = skip_spaces(text, start.min(text.len()), first_end) - start.min(text.len());
    if indent <= column || start + indent == first_end {
        return None;
    }
    let mut lines = Lines { text: String::new(), indent, end: start, next: start };
    let mut blanks = 0;
    while lines.next < text.len() {
        let end = line_end(text, lines.next);
        let content = skip_spaces(text, lines.next, end);
        if content == end {
            // Blanks beyond the indentation would be content.
            if content - lines.next > indent {
                return None;
            }
            blanks += 1;
            lines.next = (end + 1).min(text.len());
            continue;
        }
        if content - lines.next < indent {
            // A comment further in than the collection belongs to the block for some.
            return (content - lines.next <= column).then_some(lines);
        }
        if end == text.len() {
            return None;
        }
        if lines.end > start {
            blanks += 1;
        }
        (0..blanks).for_each(|_| lines.text.push('\n'));
        blanks = 0;
        lines.text.push_str(&text[lines.next + indent..end]);
        lines.next = end + 1;
        lines.end = lines.next;
    }
    Some(lines)
}

//! Block scalars: where their header is, where they end, how one is written.

use std::ops::Range;

use crate::document::Site;
use crate::document::tree::Block;
use crate::format::Replacement;
use crate::format::yaml::{read, write};
use crate::value::{Value, ValueType};

/// Finds the header of a block scalar, from its indicator to the end of its line with the line break, given the
/// place that the parser names (from the first character of content, or the header when there is no content), its
/// value, and all comments in text order.
pub(super) fn header(
    text: &str,
    place: &Range<usize>,
    value: &str,
    comments: &[Range<usize>],
) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let at_header = matches!(bytes.get(place.start), Some(b'|' | b'>'));
    if at_header && value.bytes().all(|byte| byte == b'\n') {
        return Some(place.start..line_end(text, place.start));
    }
    let mut end = place.start;
    while end > 0 && matches!(bytes[end - 1], b' ' | b'\t' | b'\r' | b'\n') {
        end -= 1;
    }
    let line_start = text[..end].rfind(['\n', '\r']).map_or(0, |found| found + 1);
    let before = comments.partition_point(|comment| comment.start < end);
    if let Some(comment) = before.checked_sub(1).map(|index| &comments[index])
        && comment.start >= line_start
        && comment.end >= end
    {
        end = comment.start;
        while end > 0 && matches!(bytes[end - 1], b' ' | b'\t') {
            end -= 1;
        }
    }
    while end > 0 && matches!(bytes[end - 1], b'0'..=b'9' | b'+' | b'-') {
        end -= 1;
    }
    let start = end.checked_sub(1).filter(|start| matches!(bytes[*start], b'|' | b'>'))?;
    Some(start..line_end(text, start))
}

/// The byte after the line break of the line that `offset` is in; the text's end without one.
pub(super) fn line_end(text: &str, offset: usize) -> usize {
    let rest = &text.as_bytes()[offset..];
    match rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
        Some(found) if rest[found] == b'\r' && rest.get(found + 1) == Some(&b'\n') => offset + found + 2,
        Some(found) => offset + found + 1,
        None => text.len(),
    }
}

/// Where the content ends: after its last line, or after all blank lines when these belong to the value.
pub(super) fn content_end(text: &str, header: &Range<usize>, end: usize, indent: usize) -> usize {
    let keeps = text[header.clone()].split('#').next().is_some_and(|indicators| indicators.contains('+'));
    let mut line = header.end;
    let mut content_end = header.end;
    while line < end {
        let next = line_end(text, line).min(end);
        let content = text[line..next].trim_end_matches(['\n', '\r']);
        let blank = content.len() <= indent && content.bytes().all(|byte| byte == b' ');
        // The parser's place reaches into the indent of what follows.
        let is_whole = next > line + content.len() || next == text.len();
        if !blank || (keeps && is_whole) {
            content_end = next;
        }
        line = next;
    }
    content_end
}

/// The line break that `text` uses at `header`.
pub(super) fn line_break<'a>(text: &'a str, header: &Range<usize>) -> &'a str {
    let line = &text[header.clone()];
    let end = line.trim_end_matches(['\n', '\r']).len();
    if end == line.len() { "\n" } else { &line[end..] }
}

/// Place of the content alone: the header and its comment stay when a block is sealed.
pub(super) fn content(place: &Range<usize>, block: &Block) -> Range<usize> {
    block.header.end..place.end
}

/// The sealed form of the content: one line.
pub(super) fn sealed(text: &str, place: &Range<usize>, block: &Block, enc: &str) -> Replacement<'static> {
    let place = content(place, block);
    let end = if text[place.clone()].ends_with(['\n', '\r']) { line_break(text, &block.header) } else { "" };
    Replacement { text: format!("{}{enc}{end}", " ".repeat(block.indent)).into(), place }
}

/// `value` at the place of a block: its content where that can hold it under the header that is there, else on the
/// line of the header.
pub(super) fn opened(
    text: &str,
    site: &Site,
    block: &Block,
    value: &Value,
    folded: bool,
) -> Replacement<'static> {
    let content = content(&site.inner, block);
    let header = &text[block.header.clone()];
    let fits = value
        .as_text()
        .filter(|_| value.kind() == Some(ValueType::Str))
        .and_then(|value| written(text, block, folded, value))
        .and_then(|written| written.strip_prefix(header).map(str::to_owned));
    match fits {
        Some(lines) => Replacement { place: content, text: lines.into() },
        None => {
            let ended = text[site.inner.clone()].ends_with(['\n', '\r']);
            let end = if ended { line_break(text, &block.header) } else { "" };
            Replacement {
                place: site.inner.clone(),
                text: format!("{}{end}", write::scalar(value, false, false)).into(),
            }
        }
    }
}

/// `value` as a block scalar under a header like the one at `block`, folded where that can hold it and it was;
/// nothing when it cannot be a block there.
pub(super) fn written(text: &str, block: &Block, folded: bool, value: &str) -> Option<String> {
    let body = value.trim_end_matches('\n');
    let breaks = value.len() - body.len();
    let is_odd = |character: char| {
        (character.is_control() && !matches!(character, '\n' | '\t'))
            || matches!(character, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}')
    };
    if body.is_empty() || value.contains(is_odd) || body.starts_with('\n') {
        return None;
    }
    let header = with_chomping(&text[block.header.clone()], breaks)?;
    if body.starts_with([' ', '\t']) && digit(&header).is_none() {
        return None;
    }
    let write = |header: &str, separator: &str| {
        let line_break = line_break(text, &block.header);
        let indent = " ".repeat(block.indent);
        let lines = body.split('\n').map(|line| match line.is_empty() {
            true => String::new(),
            false => format!("{indent}{line}"),
        });
        let lines = lines.collect::<Vec<_>>().join(&separator.replace('\n', line_break));
        let written = format!("{header}{lines}{}", line_break.repeat(breaks.max(1)));
        reads_as(&written, block.indent, value).then_some(written)
    };
    let literal = || write(&format!("|{}", &header[1..]), "\n");
    if folded { write(&header, "\n\n").or_else(literal) } else { literal() }
}

/// The indentation indicator of a header.
pub(super) fn digit(header: &str) -> Option<usize> {
    header[1..].chars().take(2).find_map(|next| next.to_digit(10)).map(|digit| digit as usize)
}

/// What follows the indicators of a header: blanks, a comment, the line break.
pub(super) fn behind_indicators(header: &str) -> &str {
    header.trim_start_matches(|next: char| matches!(next, '|' | '>' | '0'..='9' | '+' | '-'))
}

/// The header with the chomping that a value ending in `breaks` line feeds needs.
fn with_chomping(header: &str, breaks: usize) -> Option<String> {
    let rest = behind_indicators(header);
    let indicators = &header[..header.len() - rest.len()];
    let chomping = indicators.chars().find(|next| matches!(next, '+' | '-'));
    let wanted = match (breaks, chomping) {
        (0, _) => Some('-'),
        (1, Some('+')) => Some('+'),
        (1, _) => None,
        _ => Some('+'),
    };
    if chomping == wanted {
        return Some(header.to_owned());
    }
    let bare: String = indicators.chars().filter(|next| !matches!(next, '+' | '-')).collect();
    Some(format!("{bare}{}{rest}", wanted.map(String::from).unwrap_or_default()))
}

/// Whether the block, as a mapping's value with content at column `indent`, reads as `value`.
fn reads_as(written: &str, indent: usize, value: &str) -> bool {
    let parent = indent.saturating_sub(digit(written).unwrap_or(1));
    let snippet = format!("{}- {written}", " ".repeat(parent));
    read::lone_scalar(&snippet).is_some_and(|read| read == value)
}

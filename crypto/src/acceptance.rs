//! What stock readers would refuse or misread in a text that is about to be sealed. It is refused here, with the
//! place and the way out, instead of being sealed silently wrong.

mod comments;
mod tabs;

use crate::document::part::TextPart;
use crate::document::tree::{Entry, Node, NodeId, NodeKind, Style};
use crate::document::{Document, Leaf, Site};
use crate::error::ParseError;
use crate::format::{Format, is_ini_printable};
use crate::value::ValueType;

/// Integers up to this size are the same in every JSON reader.
const JSON_INTEGER_MAX: u64 = 1 << 53;

/// Checks the clear part of `text`: all of it but the places of leaves that `sealed` has a text for.
pub(crate) fn check(
    text: &str,
    document: &Document,
    sealed: &[Option<TextPart>],
    mac_only_encrypted: bool,
) -> Result<(), ParseError> {
    let clear =
        || document.leaves.iter().zip(sealed).filter(|(_, sealed)| sealed.is_none()).map(|(leaf, _)| leaf);
    check_line_separators(text, document, sealed)?;
    match document.format {
        Format::Json if !mac_only_encrypted => {
            clear().try_for_each(|leaf| check_integer(text, document, leaf))
        }
        Format::Ini => document.leaves.iter().try_for_each(|leaf| check_printing(text, document, leaf)),
        Format::Binary | Format::Dotenv | Format::Json => Ok(()),
        Format::Yaml => {
            let is_sealed = document.leaves.iter().zip(sealed).filter(|(_, sealed)| sealed.is_some());
            is_sealed.map(|(leaf, _)| leaf).try_for_each(|leaf| check_tag(text, document, leaf))?;
            clear().try_for_each(|leaf| check_escapes(text, document, leaf))?;
            check_keys(text, document)?;
            document.tree.nodes.iter().try_for_each(|node| check_properties(text, node))?;
            comments::check(text, document, sealed)?;
            tabs::check(text, document)?;
            clear().try_for_each(|leaf| check_block(text, document, leaf))
        }
    }
}

/// U+0085, U+2028 and U+2029 end a line for some readers: what looks like a comment here hides a key there.
fn check_line_separators(
    text: &str,
    document: &Document,
    sealed: &[Option<TextPart>],
) -> Result<(), ParseError> {
    if text.is_ascii() {
        return Ok(());
    }
    let sealed =
        document.leaves.iter().zip(sealed).filter(|(_, sealed)| sealed.is_some()).map(|(leaf, _)| leaf);
    let sites = sealed.filter(|leaf| !leaf.is_comment()).filter_map(|leaf| document.site(leaf));
    let mut places: Vec<_> = sites.map(|site| site.outer).collect();
    let is_separator = |(offset, next): &(usize, char)| match next {
        '\u{85}' | '\u{2028}' | '\u{2029}' => true,
        '\u{feff}' => text[..*offset].ends_with(['\n', '\r']),
        _ => false,
    };
    let separators = text.char_indices().filter(is_separator);
    places.sort_by_key(|place| place.start);
    for (offset, character) in separators {
        let before = places.partition_point(|place| place.start <= offset);
        let covered = before.checked_sub(1).is_some_and(|index| places[index].contains(&offset));
        if !covered {
            let reason = match character {
                '\u{feff}' => "a byte order mark at the start of a later line: remove it",
                _ => {
                    "a U+0085, U+2028 or U+2029 in the clear ends the line for other readers: write it as an escape"
                }
            };
            return Err(ParseError::at(text, offset, reason));
        }
    }
    Ok(())
}

fn check_integer(text: &str, document: &Document, leaf: &Leaf) -> Result<(), ParseError> {
    let Some(site) = document.site(leaf) else { return Ok(()) };
    let written = &text[site.inner.clone()];
    let is_int = leaf.value.kind() == Some(ValueType::Int);
    let is_large = written.trim_start_matches('-').parse::<u64>().is_ok_and(|size| size > JSON_INTEGER_MAX);
    match is_int && (is_large || written == "-0") {
        true => {
            let reason = "readers disagree on this number, and the MAC covers it: quote it, seal it, or use mac_only_encrypted";
            Err(ParseError::at(text, site.inner.start, reason))
        }
        false => Ok(()),
    }
}

/// What stock tools would print as another value than the one that they opened.
fn check_printing(text: &str, document: &Document, leaf: &Leaf) -> Result<(), ParseError> {
    let Some(site) = document.site(leaf).filter(|_| !leaf.is_comment()) else { return Ok(()) };
    match leaf.value.as_text().is_some_and(is_ini_printable) {
        true => Ok(()),
        false => Err(ParseError::at(
            text,
            site.inner.start,
            "other tools would print this value as another, for the quotes around it or a backslash at its end: change it",
        )),
    }
}

/// Escapes that yaml.v3 does not know stop every stock reader.
fn check_escapes(text: &str, document: &Document, leaf: &Leaf) -> Result<(), ParseError> {
    match document.site(leaf) {
        Some(site) if matches!(site.style, Style::Double { .. }) => {
            check_quoted(text, site.inner.start, site.inner.end)
        }
        _ => Ok(()),
    }
}

fn check_keys(text: &str, document: &Document) -> Result<(), ParseError> {
    for node in &document.tree.nodes {
        let NodeKind::Map { entries, .. } = &node.kind else { continue };
        for entry in entries {
            check_quoted(text, entry.place.start, entry.place.end)?;
            check_merge(text, document, entry)?;
        }
    }
    Ok(())
}

/// yaml.v3 ends an anchor's name at the first sign that is no letter, digit, `-` or `_`, and wants a blank there.
fn check_properties(text: &str, node: &Node) -> Result<(), ParseError> {
    let before = text.get(node.outer.start..node.inner.start).unwrap_or_default();
    let properties = before.split('#').next().unwrap_or_default();
    let is_name = |next: char| next.is_ascii_alphanumeric() || matches!(next, '-' | '_');
    let Some(name) = properties.strip_prefix('&').or_else(|| properties.split_once(" &").map(|pair| pair.1))
    else {
        return Ok(());
    };
    let behind = name.trim_start_matches(is_name);
    let is_end = behind.is_empty() && node.inner.is_empty();
    match is_end || behind.starts_with([' ', '\t', '\n', '\r']) {
        true => Ok(()),
        false => {
            let reason =
                "other readers take letters, digits, - and _ in an anchor's name, and a space behind it";
            Err(ParseError::at(text, node.outer.start, reason))
        }
    }
}

/// A merge key takes mappings. Ours is an entry like any other, so it is looked at here.
fn check_merge(text: &str, document: &Document, entry: &Entry) -> Result<(), ParseError> {
    let is_map = |id: NodeId| matches!(document.tree.resolved(id).kind, NodeKind::Map { .. });
    let is_sound = match &document.tree.resolved(entry.value).kind {
        NodeKind::List { items, .. } => items.iter().all(|item| is_map(*item)),
        _ => is_map(entry.value),
    };
    match is_sound || text[entry.place.clone()] != *"<<" {
        true => Ok(()),
        false => {
            let reason = "other readers merge mappings and lists of them only: put the key in quotes";
            Err(ParseError::at(text, entry.place.start, reason))
        }
    }
}

fn check_quoted(text: &str, start: usize, end: usize) -> Result<(), ParseError> {
    let written = &text[start..end];
    if !written.starts_with('"') {
        return Ok(());
    }
    let mut rest = written;
    while let Some(found) = rest.find('\\') {
        let escape = &rest[found + 1..];
        let is_surrogate = escape.starts_with("ud")
            && escape[2..].starts_with(|next: char| "89abcdefABCDEF".contains(next))
            || escape.starts_with("uD")
                && escape[2..].starts_with(|next: char| "89abcdefABCDEF".contains(next));
        if escape.starts_with('/') || is_surrogate {
            let reason = "other YAML readers refuse the escapes \\/ and \\ud800 to \\udfff: write the character itself";
            return Err(ParseError::at(text, start + written.len() - escape.len() - 1, reason));
        }
        rest = escape.get(1..).unwrap_or_default();
    }
    Ok(())
}

/// Stock readers would apply a core tag to the sealed text, so it is cut out, for which it must stand with its value.
fn check_tag(text: &str, document: &Document, leaf: &Leaf) -> Result<(), ParseError> {
    let Some(Site { core_tag: Some(tag), style, inner, outer }) = document.site(leaf) else { return Ok(()) };
    let is_block = matches!(style, Style::Folded(_) | Style::Literal(_));
    match is_block || text[outer.start..inner.start].contains('#') {
        true => {
            let reason = "a value cannot be sealed with this tag before a block scalar or a comment: write it in \
                          quotes behind the tag";
            Err(ParseError::at(text, tag.start, reason))
        }
        false => Ok(()),
    }
}

/// A clear block scalar that ends the text without a line break gets one when the `sops` key follows. In the
/// indentation yaml.v3 takes no tab, nor at the start of the line that it learns the indentation from.
fn check_block(text: &str, document: &Document, leaf: &Leaf) -> Result<(), ParseError> {
    let Some(site) = document.site(leaf) else { return Ok(()) };
    let (Style::Folded(block) | Style::Literal(block)) = &site.style else { return Ok(()) };
    let content = &text[block.header.end..site.inner.end];
    if !content.is_empty() && site.outer.end == text.len() && !text.ends_with('\n') {
        let reason = "the text ends inside a block scalar: add a final line break";
        return Err(ParseError::at(text, site.outer.start, reason));
    }
    let mut is_known = text[block.header.clone()].bytes().take(3).any(|byte| byte.is_ascii_digit());
    for line in content.split(['\n', '\r']) {
        let written = line.trim_start_matches(' ');
        let spaces = line.len() - written.len();
        if written.starts_with('\t') && (!is_known || spaces < block.indent) {
            let reason = "other readers refuse this block scalar for a tab where its indentation ends: give the \
                          indentation as a digit, as in |2";
            return Err(ParseError::at(text, site.outer.start, reason));
        }
        is_known |= !written.is_empty();
    }
    Ok(())
}

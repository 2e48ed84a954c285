//! Adding an entry to a YAML collection, and putting another value in a node's place.

use serde_json::Value as Plain;

use crate::document::tree::{Block, Entry, NodeId, NodeKind, Style, Tree};
use crate::document::{BLOCK_KEY, Site};
use crate::error::PathError;
use crate::format::yaml::print::on_one_line;
use crate::format::yaml::{block, scalar, write};
use crate::format::{Insertion, Replacement};
use crate::value::Value;

/// Spaces by which a new collection stands under its key, when the text shows no habit of its own.
const INDENT: usize = 2;

/// Where and how a new entry (with `key`) or item (without) is added at the end of a collection.
pub(super) fn insertion(
    text: &str,
    tree: &Tree,
    collection: NodeId,
    key: Option<&str>,
    json: &Plain,
) -> Result<Insertion, PathError> {
    let node = &tree.nodes[collection];
    let (last, flow) = match (&node.kind, key) {
        (NodeKind::Map { entries, flow }, Some(_)) => {
            let last = entries.iter().rfind(|entry| entry.name != BLOCK_KEY);
            (last.map(|entry| (entry.place.start, entry.value)), *flow)
        }
        (NodeKind::List { items, flow }, None) => {
            let last = items.last();
            (last.map(|item| (dash(text, tree.nodes[*item].outer.start), *item)), *flow)
        }
        (NodeKind::Alias { .. }, _) => {
            return Err(PathError("the path leads through an alias: change the place it points to".into()));
        }
        _ => return Err(PathError("the path needs a key in a mapping and a number in a list".into())),
    };
    let key = key.map(|key| format!("{}: ", write::scalar(&Value::text(key), false, flow)));
    if flow {
        let offset = last.map_or(node.inner.start + 1, |(_, value)| tree.nodes[value].outer.end);
        let separator = if last.is_some() { ", " } else { "" };
        let text = format!("{separator}{}{}", key.unwrap_or_default(), on_one_line(json));
        return Ok(Insertion { offset, text });
    }
    let Some((start, value)) = last else {
        return Err(PathError("nothing can be added to a mapping that holds only the sops block".into()));
    };
    let line_start = text[..start].rfind(['\n', '\r']).map_or(0, |found| found + 1);
    let pad = " ".repeat(text[line_start..start].chars().filter(|next| *next != '\u{feff}').count());
    let end = tree.nodes[value].outer.end.max(start);
    let offset = if text[..end].ends_with('\n') { end } else { block::line_end(text, end) };
    let before = if offset == text.len() && !text.ends_with('\n') { "\n" } else { "" };
    let lead = key.unwrap_or_else(|| "- ".to_owned());
    Ok(Insertion { offset, text: format!("{before}{pad}{lead}{}\n", below(json, pad.len() + INDENT)) })
}

/// What puts `json` in the place of `node`: in the style that was there, where that can hold it.
pub(super) fn replacement(
    text: &str,
    tree: &Tree,
    node: NodeId,
    json: &Plain,
) -> Result<Replacement<'static>, PathError> {
    let found = &tree.nodes[node];
    let (outer, inner) = (found.outer.clone(), found.inner.clone());
    let value = match json {
        Plain::Object(_) | Plain::Array(_) => None,
        Plain::String(text) => Some(Value::text(text)),
        other => scalar::resolve(&other.to_string(), None, true).ok(),
    };
    match (&found.kind, value) {
        (NodeKind::Alias { .. }, _) => Err(PathError(
            "the value is an alias: change the place it points to, or write the value there".into(),
        )),
        (NodeKind::Scalar { style: Style::Folded(block) | Style::Literal(block), .. }, value) => {
            let folded = matches!(&found.kind, NodeKind::Scalar { style: Style::Folded(_), .. });
            let spelled = match value {
                Some(value) => write::scalar(&value, false, false).into_owned(),
                None => on_one_line(json),
            };
            let lines = json.as_str().and_then(|string| lines_in_block(text, block, folded, string));
            let behind_header = block::behind_indicators(&text[block.header.clone()]);
            let written = lines.unwrap_or_else(|| format!("{spelled}{behind_header}"));
            Ok(Replacement { place: inner, text: written.into() })
        }
        (NodeKind::Scalar { style, .. }, Some(value)) if !inner.is_empty() => {
            let site = Site { outer, inner, core_tag: found.core_tag.clone(), style: style.clone() };
            let Replacement { place, text } = write::opened(text, &site, &value);
            Ok(Replacement { place, text: text.into_owned().into() })
        }
        _ if inner.is_empty() => match text[..inner.start].ends_with([':', '-']) {
            true => Ok(Replacement { place: inner, text: format!(" {}", below(json, 0)).into() }),
            false => Err(PathError("the key stands without a colon: write one behind it".into())),
        },
        _ => {
            let pad = if is_in_column_of_key(text, tree, node) { " " } else { "" };
            Ok(Replacement { place: inner, text: format!("{pad}{}", below(json, 0)).into() })
        }
    }
}

/// `string` under the header of a block, which gets another chomping for a text of several lines alone.
fn lines_in_block(text: &str, block: &Block, folded: bool, string: &str) -> Option<String> {
    let header = &text[block.header.clone()];
    let written = block::written(text, block, folded, string)?;
    // A block that begins to keep its line breaks would take those that follow it.
    let may_change = string.trim_end_matches('\n').contains('\n') && !string.ends_with("\n\n");
    (written.starts_with(header) || may_change).then_some(written)
}

/// Whether a list stands below its key without an indent, where nothing but a list can.
fn is_in_column_of_key(text: &str, tree: &Tree, node: NodeId) -> bool {
    let NodeKind::List { flow: false, .. } = tree.nodes[node].kind else { return false };
    let column = |offset: usize| offset - text[..offset].rfind(['\n', '\r']).map_or(0, |found| found + 1);
    let start = column(tree.nodes[node].inner.start);
    let is_key = |entry: &Entry| entry.value == node && column(entry.place.start) == start;
    tree.nodes
        .iter()
        .any(|node| matches!(&node.kind, NodeKind::Map { entries, .. } if entries.iter().any(is_key)))
}

fn dash(text: &str, item: usize) -> usize {
    text[..item].rfind('-').unwrap_or(item)
}

/// A value after `key: ` or `- `: on the same line, or, where `indent` spaces stand before that line, a text of
/// several lines as a literal block.
fn below(json: &Plain, indent: usize) -> String {
    let Plain::String(text) = json else { return on_one_line(json) };
    let body = text.trim_end_matches('\n');
    let chomping = match text.len() - body.len() {
        0 => "-",
        _ => "",
    };
    let is_block = indent > 0 && body.contains('\n') && text.len() - body.len() < 2;
    if !is_block || !body.lines().all(is_literal_line) || body.starts_with('\n') {
        return write::scalar(&Value::text(text), false, false).into_owned();
    }
    let pad = " ".repeat(indent);
    let line = |line: &str| if line.is_empty() { String::new() } else { format!("{pad}{line}") };
    format!("|{chomping}\n{}", body.split('\n').map(line).collect::<Vec<_>>().join("\n"))
}

fn is_literal_line(line: &str) -> bool {
    !line.starts_with([' ', '\t'])
        && !line.ends_with([' ', '\t'])
        && line.chars().all(|next| (' '..='~').contains(&next))
}

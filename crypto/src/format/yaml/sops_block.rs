//! The `sops` block in a YAML text: written as stock tools write it, found again to the byte.
//!
//! It goes after the last line of a document's root mapping, at that mapping's indent; inside the braces of a root
//! in flow style, on one line.

use std::ops::Range;

use serde_json::Value as Plain;

use crate::document::BLOCK_KEY;
use crate::document::tree::{NodeKind, Part, Tree};
use crate::format::Insertion;
use crate::format::yaml::block;
use crate::format::yaml::print::{self, Printer};

/// The layout of stock tools.
const PRINTER: Printer = Printer { indent: 4, blocks: true };

/// Where `first` is added to the first document and `others` to each of the others.
pub(super) fn insertions(text: &str, tree: &Tree, first: &Plain, others: &Plain) -> (Vec<Insertion>, bool) {
    let line_break = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut insertions = Vec::new();
    let mut ended_line = false;
    for (index, part) in tree.documents.iter().enumerate() {
        let block = if index == 0 { first } else { others };
        if let Some(place) = flow_root(tree, part) {
            let separator = if place.has_entries { ", " } else { "" };
            let text = format!("{separator}{BLOCK_KEY}: {}", print::on_one_line(block));
            insertions.push(Insertion { offset: place.end, text });
            continue;
        }
        let indent = part.root.map_or(0, |root| {
            let start = tree.nodes[root].inner.start;
            start - line_start(text, start)
        });
        let mut lines = String::new();
        PRINTER.entry(&mut lines, indent, BLOCK_KEY, block);
        let mut lines = lines.replace('\n', line_break);
        if part.end > 0 && !text[..part.end].ends_with(['\n', '\r']) {
            ended_line |= part.end == text.len();
            lines.insert_str(0, line_break);
        }
        insertions.push(Insertion { offset: part.end, text: lines });
    }
    (insertions, ended_line)
}

/// The places to cut out: whole lines, or from the value before it in braces.
pub(super) fn places(text: &str, tree: &Tree) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    for (index, part) in tree.documents.iter().enumerate() {
        let Some(entry) = tree.root_entry(index, BLOCK_KEY) else { continue };
        let end = tree.nodes[entry.value].outer.end;
        if let Some(root) = flow_root(tree, part) {
            places.push(root.before_block..end);
            continue;
        }
        let start = line_start(text, entry.place.start);
        places.push(start..block::line_end(text, end.saturating_sub(1).max(start)));
    }
    places
}

/// A root mapping in braces.
struct FlowRoot {
    /// After its last value, or after the opening brace.
    end: usize,
    /// Where the separator before the block starts.
    before_block: usize,
    has_entries: bool,
}

fn flow_root(tree: &Tree, part: &Part) -> Option<FlowRoot> {
    let root = &tree.nodes[part.root?];
    let NodeKind::Map { entries, flow: true } = &root.kind else { return None };
    let after_brace = root.inner.start + 1;
    let end_of = |value: usize| tree.nodes[value].outer.end;
    let block = entries.iter().position(|entry| entry.name == BLOCK_KEY);
    let before = block.and_then(|block| block.checked_sub(1)).map(|before| end_of(entries[before].value));
    Some(FlowRoot {
        end: entries.last().map_or(after_brace, |last| end_of(last.value)),
        before_block: before.unwrap_or(after_brace),
        has_entries: !entries.is_empty(),
    })
}

fn line_start(text: &str, offset: usize) -> usize {
    let start = text[..offset].rfind(['\n', '\r']).map_or(0, |found| found + 1);
    if start == 0 && text.starts_with('\u{feff}') { 3 } else { start }
}

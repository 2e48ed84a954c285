//! The author's text from a sealed one: every sealed value back in its place, in its spelling.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::decrypt::SealedFile;
use crate::document::tree::{NodeId, NodeKind};
use crate::document::{self, Document, Event, in_order, splice};
use crate::error::DecryptError;
use crate::format::{Edit, Format, apply, untyped};
use crate::parallel;
use crate::seal::Source;
use crate::secret::SecretText;
use crate::value::{Value, ValueType};

/// Places and what is put there.
type Replacements<'a> = Vec<(Range<usize>, Cow<'a, str>)>;

/// Puts `values` into the places of `file`, spelled as `source` says where that still means the same, and cuts out
/// the `sops` block.
pub(super) fn text(
    file: &SealedFile,
    values: &[Value],
    source: Option<&Source>,
) -> Result<SecretText, DecryptError> {
    let restored = unchecked(file, values, source);
    if reads_as(file, &restored, values) {
        return Ok(restored);
    }
    let plain = unchecked(file, values, None);
    match source.is_some() && reads_as(file, &plain, values) {
        true => Ok(plain),
        false => Err(unwritable()),
    }
}

/// The opened values have no place in their document.
pub(super) fn unwritable() -> DecryptError {
    DecryptError::Metadata("the opened values cannot be written in this document".to_owned())
}

/// As [`text`], for a caller that compares the result itself.
pub(super) fn unchecked(file: &SealedFile, values: &[Value], source: Option<&Source>) -> SecretText {
    let (text, document) = (file.text(), &file.document);
    let syntax = document.format.syntax();
    let spellings: HashMap<usize, &Vec<Edit>> =
        source.iter().flat_map(|source| &source.leaves).map(|(leaf, edits)| (*leaf, edits)).collect();
    let aliases = source.map(|source| source.aliases.as_slice()).unwrap_or_default();
    let aliased: Vec<Aliased> =
        aliases.iter().filter_map(|(event, name)| aliased(document, *event, name)).collect();
    let emptied = emptied_lists(document, values);
    let restored = |index: usize| {
        let leaf = &document.leaves[index];
        let covered = !leaf.is_comment() && aliased.iter().any(|aliased| aliased.leaves.contains(&index));
        if covered || values[index] == leaf.value {
            return None;
        }
        let site = document.site(leaf)?;
        if values[index].kind() == Some(ValueType::Comment) && !leaf.is_comment() {
            let is_last = leaf.node().is_some_and(|node| emptied.contains(&node));
            return Some(list_comment(text, &site.outer, &values[index], is_last));
        }
        let default = syntax.opened(text, &site, &values[index]);
        let spelled = spellings.get(&index).and_then(|edits| apply(&default.text, edits));
        Some((default.place, spelled.map_or(default.text, Cow::from)))
    };
    let parts = parallel::by_parts(document.leaves.len(), |part| {
        part.filter_map(restored).collect::<Replacements<'_>>()
    });
    let mut parts = parts.into_iter();
    let mut replacements = parts.next().unwrap_or_default();
    replacements.extend(parts.flatten());
    replacements.extend(aliased.into_iter().map(|aliased| (aliased.place, aliased.name.into())));
    let blocks = syntax.block_places(text, &document.tree);
    replacements.extend(blocks.into_iter().map(|place| (place, Cow::default())));
    let mut restored = splice(text, outermost(replacements));
    if source.is_some_and(|source| source.eof) {
        let ended = match document.format {
            // A carriage return there is the end of a value.
            Format::Dotenv => restored.strip_suffix('\n'),
            _ => restored.strip_suffix("\r\n").or(restored.strip_suffix('\n')),
        };
        restored.truncate(ended.map_or(restored.len(), str::len));
    }
    SecretText::new(restored)
}

/// The replacements that are not inside another: a block scalar with its header takes the header's comment along.
fn outermost(mut replacements: Replacements<'_>) -> Replacements<'_> {
    in_order(&mut replacements, |place| (place.start, std::cmp::Reverse(place.end)));
    let mut end = 0;
    replacements.retain(|(place, _)| {
        let outside = place.start >= end;
        end = end.max(place.end);
        outside
    });
    replacements
}

/// A place where an alias stood before its content was written out.
struct Aliased {
    place: Range<usize>,
    leaves: Range<usize>,
    name: String,
}

fn aliased(document: &Document, event: usize, name: &str) -> Option<Aliased> {
    let name = name.to_owned();
    match document.events.get(event)? {
        Event::Leaf(leaf) => {
            let place = document.site(document.leaves.get(*leaf)?)?.outer;
            Some(Aliased { place, leaves: *leaf..leaf + 1, name })
        }
        Event::Map(node) | Event::List(node) => {
            let leaf_of = |event: &Event| match event {
                Event::Leaf(leaf) => Some(*leaf),
                _ => None,
            };
            let mut depth = 0;
            let inside = document.events[event..].iter().take_while(|event| {
                match event {
                    Event::Map(_) | Event::List(_) => depth += 1,
                    Event::End => depth -= 1,
                    _ => {}
                }
                depth > 0
            });
            let leaves: Vec<usize> = inside.filter_map(leaf_of).collect();
            let first = leaves.first().copied().unwrap_or_default();
            let place = document.tree.nodes[*node].outer.clone();
            Some(Aliased { place, leaves: first..leaves.last().map_or(first, |last| last + 1), name })
        }
        _ => None,
    }
}

/// The last item of each list that has nothing but comments for items.
fn emptied_lists(document: &Document, values: &[Value]) -> HashSet<NodeId> {
    let is_comment = |value: &Value| value.kind() == Some(ValueType::Comment);
    let leaves = document.leaves.iter().zip(values).filter(|(_, value)| is_comment(value));
    let comments: HashSet<NodeId> = leaves.filter_map(|(leaf, _)| leaf.node()).collect();
    let lists = document.tree.nodes.iter().filter_map(|node| match &node.kind {
        NodeKind::List { items, .. } if !comments.is_empty() => Some(items),
        _ => None,
    });
    let emptied = lists.filter(|items| items.iter().all(|item| comments.contains(item)));
    emptied.filter_map(|items| items.last().copied()).collect()
}

/// Stock tools seal a list's comment as an item of the list: it becomes a comment again, the last one of a list
/// without other items beside the brackets of an empty list.
fn list_comment(
    text: &str,
    place: &Range<usize>,
    value: &Value,
    is_last: bool,
) -> (Range<usize>, Cow<'static, str>) {
    let dash = text[..place.start].rfind('-').unwrap_or(place.start);
    let list = if is_last { "[] " } else { "" };
    (dash..place.end, format!("{list}#{}", value.as_text().unwrap_or_default()).into())
}

/// Whether the restored text reads as the very values that were opened.
fn reads_as(file: &SealedFile, restored: &SecretText, values: &[Value]) -> bool {
    let is_value = |value: &&Value| value.kind() != Some(ValueType::Comment);
    let same = |read: &Value, opened: &Value| match file.document.format {
        // JSON has one kind of number, and stock tools took every one for a float until 3.13.
        Format::Json => read.bytes() == opened.bytes() && is_number(read) == is_number(opened),
        // There is nothing but text, whatever its type was.
        Format::Dotenv | Format::Ini => read.as_text() == Some(&untyped(opened)),
        Format::Binary | Format::Yaml => read == opened,
    };
    let all = |read: &[&Value]| {
        let mut read = read.iter().copied().filter(is_value);
        let mut opened = values.iter().filter(is_value);
        loop {
            match (read.next(), opened.next()) {
                (None, None) => return true,
                (Some(read), Some(opened)) if same(read, opened) => {}
                _ => return false,
            }
        }
    };
    document::with_values(restored, file.document.format, all).unwrap_or(false)
}

fn is_number(value: &Value) -> bool {
    matches!(value.kind(), Some(ValueType::Int | ValueType::Float))
}

//! What dotenv and INI lack, nesting and types: a `sops` block as lines of names and texts, and back, as stock tools
//! do it.
//!
//! A name is the way to a value: `__map_` before a key, `__list_` before a position. On the way back the two fields
//! that are no text in other formats get their types again, so that one block has one digest in all of them.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::{Map, Value as Plain};

use crate::document::tree::{Entry, Node, NodeId, NodeKind, Style, Tree};
use crate::metadata::RECIPIENTS_MAX;
use crate::secret::SecretBytes;
use crate::value::{Value, ValueType};

const MAP: &str = "__map_";
const LIST: &str = "__list_";

/// Most keys and positions in a name. Stock tools write six.
const STEPS_MAX: usize = 16;
/// Most places in all lists, so that a few lines with large numbers do not become gigabytes.
const PLACES_MAX: usize = 8 * RECIPIENTS_MAX;

/// One step of a name.
enum Step<'a> {
    Key(&'a str),
    Position(usize),
}

/// The lines for `block`, in its order. Nulls and what is empty leave none.
pub(super) fn flatten(block: &Plain) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let Plain::Object(fields) = block else { return lines };
    for (name, value) in fields {
        descend(name.clone(), value, &mut lines);
    }
    lines
}

fn descend(name: String, value: &Plain, lines: &mut Vec<(String, String)>) {
    match value {
        Plain::Null => {}
        Plain::Object(fields) => {
            fields.iter().for_each(|(key, value)| descend(format!("{name}{MAP}{key}"), value, lines));
        }
        Plain::Array(items) => {
            let numbered = items.iter().enumerate();
            numbered.for_each(|(position, value)| descend(format!("{name}{LIST}{position}"), value, lines));
        }
        Plain::String(text) => lines.push((name, text.clone())),
        other => lines.push((name, other.to_string())),
    }
}

/// The block that is read line by line.
#[derive(Default)]
pub(super) struct Unflattened {
    block: Plain,
    /// The places in all of its lists, also those that nothing was put in yet.
    places: usize,
}

impl Unflattened {
    /// Takes a line.
    ///
    /// # Errors
    /// Why it does not go together with the others.
    pub(super) fn add(&mut self, name: &str, text: String) -> Result<(), &'static str> {
        let steps = steps(name).ok_or("the name of this line of the sops block leads nowhere")?;
        place(&mut self.block, &mut self.places, &steps, typed(name, text))
    }

    /// The whole.
    ///
    /// # Errors
    /// A list lacks a position.
    pub(super) fn finish(self) -> Result<Plain, &'static str> {
        match has_gap(&self.block) {
            true => Err("a list of the sops block is not complete"),
            false => Ok(self.block),
        }
    }
}

fn typed(name: &str, text: String) -> Plain {
    match name {
        "mac_only_encrypted" if text == "true" => Plain::Bool(true),
        "mac_only_encrypted" if text == "false" => Plain::Bool(false),
        "shamir_threshold" => match text.parse::<u64>() {
            Ok(number) if number.to_string() == text => number.into(),
            _ => Plain::String(text),
        },
        _ => Plain::String(text),
    }
}

fn steps(name: &str) -> Option<Vec<Step<'_>>> {
    let mut steps = Vec::new();
    let mut rest = name;
    let mut is_list = false;
    loop {
        let next = [rest.find(MAP), rest.find(LIST)].into_iter().flatten().min();
        let token = &rest[..next.unwrap_or(rest.len())];
        steps.push(match is_list {
            false => Step::Key(token),
            true => Step::Position(token.parse().ok().filter(|position| *position < RECIPIENTS_MAX)?),
        });
        let Some(next) = next else { return Some(steps) };
        if steps.len() == STEPS_MAX {
            return None;
        }
        is_list = rest[next..].starts_with(LIST);
        rest = &rest[next + if is_list { LIST.len() } else { MAP.len() }..];
    }
}

/// Puts `value` at the end of `steps`. Null is a place that is still free.
fn place(node: &mut Plain, places: &mut usize, steps: &[Step<'_>], value: Plain) -> Result<(), &'static str> {
    const CONFLICT: &str = "this line of the sops block contradicts another";
    let Some((step, rest)) = steps.split_first() else {
        return match node.is_null() {
            true => {
                *node = value;
                Ok(())
            }
            false => Err(CONFLICT),
        };
    };
    if node.is_null() {
        *node = match step {
            Step::Key(_) => Plain::Object(Map::new()),
            Step::Position(_) => Plain::Array(Vec::new()),
        };
    }
    let next = match (step, node) {
        (Step::Key(key), Plain::Object(fields)) => fields.entry(*key).or_insert(Plain::Null),
        (Step::Position(position), Plain::Array(items)) => {
            let length = items.len().max(position + 1);
            *places += length - items.len();
            if *places > PLACES_MAX {
                return Err("the lists of the sops block are too long");
            }
            items.resize(length, Plain::Null);
            &mut items[*position]
        }
        _ => return Err(CONFLICT),
    };
    place(next, places, rest, value)
}

fn has_gap(node: &Plain) -> bool {
    match node {
        Plain::Null => true,
        Plain::Array(items) => items.iter().any(has_gap),
        Plain::Object(fields) => fields.values().any(has_gap),
        _ => false,
    }
}

/// Whether `block` comes back as it is from lines whose texts hold a line break as `\n`.
pub(crate) fn holds(block: &Map<String, Plain>) -> bool {
    let mut read = Unflattened::default();
    let lines = flatten(&Plain::Object(block.clone()));
    let added = lines.into_iter().try_for_each(|(name, text)| read.add(&name, unescaped(&escaped(&text))));
    let is_name = |name: &String| !name.contains(['=', ':', '\n', '\r', '"', '`', '#', ';', '[', ' ']);
    added.is_ok() && read.block.as_object() == Some(&without_nulls(block)) && block.keys().all(is_name)
}

fn without_nulls(fields: &Map<String, Plain>) -> Map<String, Plain> {
    let kept = fields.iter().filter(|(_, value)| !value.is_null());
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// `text` on one line.
pub(super) fn escaped(text: &str) -> String {
    text.replace('\n', "\\n")
}

/// The text of such a line.
pub(super) fn unescaped(line: &str) -> String {
    line.replace("\\n", "\n")
}

/// Adds nodes for `value` to a tree. All of them say that they stand at `outer`, since no single place is theirs.
pub(super) fn graft(tree: &mut Tree, value: &Plain, outer: &Range<usize>) -> NodeId {
    let typed = |kind, text: String| Value::Typed(kind, SecretBytes::new(text.into_bytes()));
    let kind = match value {
        Plain::Object(fields) => {
            let entry = |(name, value): (&String, &Plain)| Entry {
                name: name.as_str().into(),
                place: outer.clone(),
                value: graft(tree, value, outer),
            };
            NodeKind::Map { entries: fields.iter().map(entry).collect(), flow: false }
        }
        Plain::Array(items) => {
            let items = items.iter().map(|item| graft(tree, item, outer)).collect();
            NodeKind::List { items, flow: false }
        }
        scalar => {
            let value = match scalar {
                Plain::Bool(true) => typed(ValueType::Bool, "True".to_owned()),
                Plain::Bool(false) => typed(ValueType::Bool, "False".to_owned()),
                Plain::Number(number) => typed(ValueType::Int, number.to_string()),
                Plain::String(text) => Value::text(text),
                _ => Value::Null,
            };
            NodeKind::Scalar { value, style: Style::Plain { flow: false } }
        }
    };
    tree.nodes.push(Node { kind, tag: None, outer: outer.clone(), inner: outer.clone(), core_tag: None });
    tree.nodes.len() - 1
}

/// The start of the line that `offset` is in, or of the comment lines directly above it.
pub(super) fn comments_above(text: &str, tree: &Tree, offset: usize) -> usize {
    let line_start = |offset: usize| text[..offset].rfind('\n').map_or(0, |found| found + 1);
    let is_comment = |start: usize| {
        let first = text.len() - text[start..].trim_start_matches([' ', '\t', '\u{feff}']).len();
        let next = tree.comments.partition_point(|comment| comment.place.start <= first);
        next.checked_sub(1).is_some_and(|last| tree.comments[last].place.contains(&first))
    };
    let mut start = line_start(offset);
    while let Some(end) = start.checked_sub(1) {
        let above = line_start(end);
        if !is_comment(above) {
            break;
        }
        start = above;
    }
    if start == 0 && text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { start }
}

/// A value as text, in the form in which stock tools print it where there is nothing but text: `true`, `1.0`, `1E+30`.
pub(crate) fn untyped(value: &Value) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(value.bytes());
    match value.kind() {
        Some(ValueType::Bool) => text.to_lowercase().into(),
        Some(ValueType::Float) => text.parse().map_or(text.clone(), |float| untyped_float(float).into()),
        _ => text,
    }
}

/// Go's `%G` with the fewest digits, and a point where it would look like an integer.
fn untyped_float(float: f64) -> String {
    if !float.is_finite() {
        return crate::value::float_text(float);
    }
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if !(-4..6).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}E{sign}{:02}", exponent.abs());
    }
    let text = float.to_string();
    if text.contains('.') { text } else { format!("{text}.0") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> Plain {
        serde_json::json!({
            "key_groups": [
                {"age": [{"enc": "line\nline\n", "recipient": "age1x"}, {"enc": "", "recipient": "age1y"}]},
                {"kms": [{"arn": "a", "aws_profile": "", "context": {"team": "shop"}, "enc": "x"}]},
            ],
            "lastmodified": "2026-01-01T00:00:00Z",
            "mac_only_encrypted": true,
            "shamir_threshold": 2,
            "version": "3.13.3",
        })
    }

    fn read(lines: &[(&str, &str)]) -> Result<Plain, &'static str> {
        let mut read = Unflattened::default();
        lines.iter().try_for_each(|(name, text)| read.add(name, (*text).to_owned()))?;
        read.finish()
    }

    #[test]
    fn a_block_comes_back_with_its_types_in_any_order() {
        let mut lines = flatten(&block());
        assert_eq!(lines[0].0, "key_groups__list_0__map_age__list_0__map_enc");
        assert_eq!(
            lines[6],
            ("key_groups__list_1__map_kms__list_0__map_context__map_team".into(), "shop".into())
        );
        lines.reverse();
        let lines: Vec<_> = lines.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        assert_eq!(read(&lines).unwrap(), block());
    }

    #[test]
    fn lines_that_contradict_each_other_are_refused() {
        let deep = format!("a{}", "__map_b".repeat(STEPS_MAX));
        let cases: &[&[(&str, &str)]] = &[
            &[("a", "x"), ("a", "y")],
            &[("a", "x"), ("a__map_b", "y")],
            &[("a__map_b", "x"), ("a__list_0", "y")],
            &[("a__list_1", "x")],
            &[("a__list_0__map_b", "x"), ("a__list_2__map_b", "y")],
            &[("a__list_x", "x")],
            &[("a__list_-1", "x")],
            &[("a__list_1000", "x")],
            &[(&deep, "x")],
        ];
        for lines in cases {
            assert!(read(lines).is_err(), "{lines:?}");
        }
        assert!(read(&[(&deep[..deep.len() - "__map_b".len()], "x")]).is_ok());
        let far = |count: usize| {
            let names: Vec<_> =
                (0..count).map(|list| format!("l{list}__list_{}", RECIPIENTS_MAX - 1)).collect();
            read(&names.iter().map(|name| (name.as_str(), "x")).collect::<Vec<_>>()).unwrap_err()
        };
        assert!(far(8).contains("not complete") && far(9).contains("too long"));
    }

    #[test]
    fn only_what_comes_back_is_held() {
        let with = |name: &str, value: Plain| {
            let mut block = block();
            block[name] = value;
            holds(block.as_object().unwrap())
        };
        assert!(with("attention", "x".into()) && with("kms", Plain::Null));
        assert!(!with("encrypted_regex", "a\\nb".into()));
        assert!(!with("attention", 1.into()));
        assert!(!with("a__map_b", serde_json::json!({"c__list_0": "x"})));
        assert!(!with("hc_vault", serde_json::json!([])));
        assert!(!with("a=b", "x".into()));
    }

    #[test]
    fn floats_are_printed_as_stock_tools_do() {
        let cases = [
            (1.0, "1.0"),
            (0.5, "0.5"),
            (123456.0, "123456.0"),
            (1234567.0, "1.234567E+06"),
            (123456.7, "123456.7"),
            (1.5e30, "1.5E+30"),
            (0.0001, "0.0001"),
            (0.00001, "1E-05"),
            (-0.0, "-0.0"),
            (f64::INFINITY, "+Inf"),
        ];
        for (float, text) in cases {
            assert_eq!(untyped_float(float), text);
        }
    }
}

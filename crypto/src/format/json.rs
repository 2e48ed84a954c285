//! JSON (RFC 8259) with an object at its root, read strictly.

use std::collections::HashSet;
use std::ops::Range;

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::Value as Plain;

use crate::document::tree::{Entry, Node, NodeId, NodeKind, Part, Style, Tree};
use crate::document::{BLOCK_KEY, Site};
use crate::error::{ParseError, PathError};
use crate::format::{Insertion, Replacement, Syntax};
use crate::secret::{SecretBytes, SecretText};
use crate::value::{Value, ValueType, float_text};

mod direct;

/// The format's implementation.
pub(super) struct Json;

impl Syntax for Json {
    fn read(&self, text: &SecretText) -> Result<Tree, ParseError> {
        direct::read(text).map_or_else(|| parse(text.expose_secret()), Ok)
    }

    fn sealed<'a>(&self, _text: &str, site: &Site, enc: &'a str, _one_line: bool) -> Replacement<'a> {
        Replacement { place: site.inner.clone(), text: format!("\"{enc}\"").into() }
    }

    fn opened<'a>(&self, _text: &str, site: &Site, value: &'a Value) -> Replacement<'a> {
        Replacement { place: site.inner.clone(), text: scalar(value).into() }
    }

    fn block_insertions(
        &self,
        text: &str,
        tree: &Tree,
        first: &Plain,
        _others: &Plain,
    ) -> (Vec<Insertion>, bool) {
        let Some(place) = root_of(tree) else { return (Vec::new(), false) };
        let layout = Layout::of(text, tree);
        let separator = if place.before_end == place.after_brace { "" } else { "," };
        let block = layout.printed(first, 1);
        let text = format!("{separator}{}\"{BLOCK_KEY}\":{}{block}", layout.line(1), layout.space);
        (vec![Insertion { offset: place.before_end, text }], false)
    }

    fn block_places(&self, _text: &str, tree: &Tree) -> Vec<Range<usize>> {
        let Some(place) = root_of(tree) else { return Vec::new() };
        let NodeKind::Map { entries, .. } = &tree.nodes[place.id].kind else { return Vec::new() };
        let Some(index) = entries.iter().position(|entry| entry.name == BLOCK_KEY) else { return Vec::new() };
        let end = tree.nodes[entries[index].value].inner.end;
        let place = match (index.checked_sub(1), entries.get(index + 1)) {
            (Some(before), _) => tree.nodes[entries[before].value].inner.end..end,
            (None, Some(after)) => entries[index].place.start..after.place.start,
            (None, None) => place.after_brace..end,
        };
        Vec::from([place])
    }

    fn insertion(
        &self,
        text: &str,
        tree: &Tree,
        collection: NodeId,
        key: Option<&str>,
        json: &Plain,
    ) -> Result<Insertion, PathError> {
        let node = &tree.nodes[collection];
        let layout = Layout::of(text, tree);
        let depth = layout.depth(text, node);
        let (last, key) = match (&node.kind, key) {
            (NodeKind::Map { entries, .. }, Some(key)) => {
                let last = entries.iter().rfind(|entry| entry.name != BLOCK_KEY);
                let name = format!("{}:{}", string(key), layout.space);
                (last.map(|entry| tree.nodes[entry.value].inner.end), name)
            }
            (NodeKind::List { items, .. }, None) => {
                (items.last().map(|item| tree.nodes[*item].inner.end), String::new())
            }
            _ => return Err(PathError("the path needs a key in an object and a number in a list".into())),
        };
        let separator = if last.is_some() { "," } else { "" };
        let closing = if last.is_some() { String::new() } else { layout.line(depth) };
        let text =
            format!("{separator}{}{key}{}{closing}", layout.line(depth + 1), layout.printed(json, depth + 1));
        Ok(Insertion { offset: last.unwrap_or(node.inner.start + 1), text })
    }

    fn replacement(
        &self,
        text: &str,
        tree: &Tree,
        node: NodeId,
        json: &Plain,
    ) -> Result<Replacement<'static>, PathError> {
        let layout = Layout::of(text, tree);
        let written = layout.printed(json, layout.depth(text, &tree.nodes[node]));
        Ok(Replacement { place: tree.nodes[node].inner.clone(), text: written.into() })
    }

    fn removal(
        &self,
        _text: &str,
        tree: &Tree,
        collection: NodeId,
        index: usize,
    ) -> Result<Vec<Replacement<'static>>, PathError> {
        let node = &tree.nodes[collection];
        let place = |value: NodeId| tree.nodes[value].inner.clone();
        let children: Vec<Range<usize>> = match &node.kind {
            NodeKind::Map { entries, .. } => {
                entries.iter().map(|entry| entry.place.start..place(entry.value).end).collect()
            }
            NodeKind::List { items, .. } => items.iter().map(|item| place(*item)).collect(),
            _ => return Err(PathError("the path leads to a value in nothing".into())),
        };
        let place = match (index.checked_sub(1), children.get(index + 1)) {
            (_, Some(next)) => children[index].start..next.start,
            (Some(before), None) => children[before].end..children[index].end,
            (None, None) => node.inner.start + 1..node.inner.end - 1,
        };
        Ok(vec![Replacement { place, text: String::new().into() }])
    }
}

/// Reads a text with the parser, which knows what is wrong with one.
fn parse(text: &str) -> Result<Tree, ParseError> {
    if text.starts_with('\u{feff}') {
        return Err(ParseError::at(text, 0, "other tools refuse a byte order mark before JSON: remove it"));
    }
    let parsed = parse_to_ast(text, &CollectOptions::default(), &strict());
    let parsed =
        parsed.map_err(|error| ParseError::at(text, error.range().start, error.kind().to_string()))?;
    let Some(ast::Value::Object(root)) = &parsed.value else {
        return Err(ParseError::at(text, 0, "the document's root must be an object"));
    };
    let mut reader = Reader { text, tree: Tree::default() };
    let root = reader.object(root)?;
    reader.tree.documents.push(Part { root: Some(root), end: text.len() });
    Ok(reader.tree)
}

fn strict() -> ParseOptions {
    ParseOptions {
        allow_comments: false,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

struct Reader<'a> {
    text: &'a str,
    tree: Tree,
}

impl Reader<'_> {
    fn object(&mut self, object: &ast::Object<'_>) -> Result<NodeId, ParseError> {
        let mut known = HashSet::new();
        let mut entries = Vec::with_capacity(object.properties.len());
        for property in &object.properties {
            let place = property.name.start()..property.name.end();
            let name = property.name.as_str().to_owned();
            self.check_escapes(&place)?;
            if !known.insert(name.clone()) {
                return self.refuse(place.start, "the key stands twice in the same object: remove one");
            }
            let value = self.value(&property.value)?;
            entries.push(Entry { name: name.into(), place, value });
        }
        Ok(self.node(NodeKind::Map { entries, flow: true }, object.start()..object.end()))
    }

    fn value(&mut self, value: &ast::Value<'_>) -> Result<NodeId, ParseError> {
        let place = value.start()..value.end();
        let (value, style) = match value {
            ast::Value::Object(object) => return self.object(object),
            ast::Value::Array(array) => {
                let items: Result<_, _> = array.elements.iter().map(|item| self.value(item)).collect();
                return Ok(self.node(NodeKind::List { items: items?, flow: true }, place));
            }
            ast::Value::StringLit(string) => {
                self.check_escapes(&place)?;
                (Value::text(&string.value), Style::Double { flow: true })
            }
            ast::Value::NumberLit(number) => {
                let value = self.number(number.value, place.start)?;
                (value, Style::Plain { flow: true })
            }
            ast::Value::BooleanLit(boolean) => (self::boolean(boolean.value), Style::Plain { flow: true }),
            ast::Value::NullKeyword(_) => (Value::Null, Style::Plain { flow: true }),
        };
        Ok(self.node(NodeKind::Scalar { value, style }, place))
    }

    fn node(&mut self, kind: NodeKind, place: Range<usize>) -> NodeId {
        node(&mut self.tree, kind, place)
    }

    fn number(&self, text: &str, offset: usize) -> Result<Value, ParseError> {
        let beyond = "the number is beyond what other tools can read: quote it";
        number(text).map_or_else(|| self.refuse(offset, beyond), Ok)
    }

    /// Refuses half of a surrogate pair, which stock tools would turn into a replacement character, and raw control
    /// characters, which JSON does not allow and our parser does.
    fn check_escapes(&self, place: &Range<usize>) -> Result<(), ParseError> {
        if let Some(at) = self.text[place.clone()].bytes().position(|byte| byte < b' ') {
            return self
                .refuse(place.start + at, "a control character stands in a string: write it as an escape");
        }
        match self.text[place.clone()].contains("\\u")
            && serde_json::from_str::<String>(&self.text[place.clone()]).is_err()
        {
            true => self.refuse(place.start, "an escape stands for half a character"),
            false => Ok(()),
        }
    }

    fn refuse<T>(&self, offset: usize, reason: &str) -> Result<T, ParseError> {
        Err(ParseError::at(self.text, offset, reason))
    }
}

fn node(tree: &mut Tree, kind: NodeKind, place: Range<usize>) -> NodeId {
    tree.nodes.push(Node { kind, tag: None, outer: place.clone(), inner: place, core_tag: None });
    tree.nodes.len() - 1
}

/// An integer where stock tools see one (since 3.13.2), else a float as they round it; nothing beyond.
fn number(text: &str) -> Option<Value> {
    if let Ok(int) = text.parse::<i64>() {
        return Some(typed(ValueType::Int, int.to_string()));
    }
    let float = text.parse::<f64>().ok().filter(|float| float.is_finite())?;
    Some(typed(ValueType::Float, float_text(float)))
}

fn boolean(value: bool) -> Value {
    typed(ValueType::Bool, if value { "True" } else { "False" }.to_owned())
}

fn typed(kind: ValueType, text: String) -> Value {
    Value::Typed(kind, SecretBytes::new(text.into_bytes()))
}

/// The root object's place, and where another entry would be added.
struct Root {
    id: NodeId,
    after_brace: usize,
    before_end: usize,
}

fn root_of(tree: &Tree) -> Option<Root> {
    let id = tree.documents.first()?.root?;
    let NodeKind::Map { entries, .. } = &tree.nodes[id].kind else { return None };
    let after_brace = tree.nodes[id].inner.start + 1;
    let before_end = entries.last().map_or(after_brace, |last| tree.nodes[last.value].inner.end);
    Some(Root { id, after_brace, before_end })
}

/// How the text at hand is laid out, so that what is added looks like the rest.
struct Layout {
    /// White space of one level; nothing when all stands on one line.
    indent: Option<String>,
    line_break: &'static str,
    /// What follows a colon.
    space: &'static str,
}

impl Layout {
    fn of(text: &str, tree: &Tree) -> Self {
        let root = root_of(tree);
        let entries = root.as_ref().map(|root| &tree.nodes[root.id].kind);
        let first = match entries {
            Some(NodeKind::Map { entries, .. }) => entries.first(),
            _ => None,
        };
        let line_break = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let after_brace = root.as_ref().map_or(0, |root| root.after_brace);
        let Some(first) = first else {
            return Self { indent: Some("\t".to_owned()), line_break, space: " " };
        };
        let before = &text[after_brace..first.place.start];
        let indent = before.rfind('\n').map(|found| before[found + 1..].to_owned());
        let colon = &text[first.place.end..tree.nodes[first.value].inner.start];
        let space = if indent.is_some() || colon.len() > 1 { " " } else { "" };
        Self { indent, line_break, space }
    }

    fn line(&self, depth: usize) -> String {
        match &self.indent {
            Some(indent) => format!("{}{}", self.line_break, indent.repeat(depth)),
            None => String::new(),
        }
    }

    /// The number of levels around `node`, by the white space before the line it starts on.
    fn depth(&self, text: &str, node: &Node) -> usize {
        let Some(indent) = self.indent.as_deref().filter(|indent| !indent.is_empty()) else { return 0 };
        let start = text[..node.inner.start].rfind('\n').map_or(0, |found| found + 1);
        let line = &text[start..];
        let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
        blank / indent.len()
    }

    fn printed(&self, value: &Plain, depth: usize) -> String {
        let lines = |items: Vec<String>| {
            let separator = format!(",{}", if self.indent.is_none() { self.space } else { "" });
            items
                .iter()
                .map(|item| format!("{}{item}", self.line(depth + 1)))
                .collect::<Vec<_>>()
                .join(&separator)
        };
        match value {
            Plain::Object(map) if !map.is_empty() => {
                let entry = |(key, value): (&String, &Plain)| {
                    format!("{}:{}{}", string(key), self.space, self.printed(value, depth + 1))
                };
                format!("{{{}{}}}", lines(map.iter().map(entry).collect()), self.line(depth))
            }
            Plain::Array(items) if !items.is_empty() => {
                let items = items.iter().map(|item| self.printed(item, depth + 1)).collect();
                format!("[{}{}]", lines(items), self.line(depth))
            }
            other => other.to_string(),
        }
    }
}

fn string(text: &str) -> String {
    Plain::String(text.to_owned()).to_string()
}

/// The default spelling of a value. An integral float has no point, since old files hold every integer as a float.
fn scalar(value: &Value) -> String {
    let text = value.as_text().map_or_else(|| String::from_utf8_lossy(value.bytes()), Into::into);
    match value.kind() {
        None => "null".to_owned(),
        Some(ValueType::Bool) => text.to_lowercase(),
        Some(ValueType::Int) => text.into_owned(),
        Some(ValueType::Float) if text == "-0" => "-0.0".to_owned(),
        Some(ValueType::Float) if text.parse::<f64>().is_ok_and(f64::is_finite) => text.into_owned(),
        _ => string(&text),
    }
}

#[cfg(test)]
mod tests {
    use crate::document::Document;
    use crate::format::Format;

    #[test]
    fn what_other_tools_lose_or_refuse_is_refused() {
        let cases = [
            ("\u{feff}{}", "byte order mark"),
            ("[]", "root must be an object"),
            ("{\"a\":1} x", ""),
            ("{\"a\":1,}", ""),
            ("{\"a\":1,\"a\":2}", "twice"),
            ("{a:1}", ""),
            ("{\"a\":1e400}", "beyond"),
            ("{\"a\":\"\\ud800\"}", ""),
            ("{\"a\":.5}", ""),
            ("{\"a\":0x1}", ""),
            ("{\"a\":01}", ""),
            ("{\"a\":'x'}", ""),
            ("{\"a\":1 // c\n}", ""),
            ("{\"a\":", ""),
            ("", "root must be an object"),
        ];
        for (text, reason) in cases {
            let error = Document::read(text, Format::Json).unwrap_err();
            assert!(error.reason.contains(reason), "{text}: {error}");
        }
    }
}

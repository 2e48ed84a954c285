//! Reading manifests of Secrets and SealedSecrets: streams of YAML or JSON documents, and lists of objects.
//!
//! Rules: a document that cannot be read is an error, never left out; a word without quotes that the tools of
//! Kubernetes read as something else than it looks like is refused with the spelling that means it, and one that they
//! read as a number or a boolean of the same spelling is taken with a warning, and so is a key of either sort; the objects of a list are taken one
//! by one, as `kubectl apply` does.

use std::ops::Range;

use lacre_crypto::document::Document;
use lacre_crypto::document::tree::{Entry, Node, NodeId, NodeKind, Style, Tree};
use lacre_crypto::{Format, SecretText};
use serde_json::{Map, Value};

use super::yaml_1_1::{self, Word};
use crate::error::{CommandError, Kind};
use crate::output::Output;

/// Most objects of one stream.
const OBJECTS_MAX: usize = 10_000;
/// The key whose value is a mapping that goes into the one around it.
const MERGE_KEY: &str = "<<";
/// Fields of a Secret.
const SECRET_FIELDS: [&str; 7] =
    ["apiVersion", "data", "immutable", "kind", "metadata", "stringData", "type"];
/// The mark that some editors put in front of text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// One object of a stream.
pub(crate) struct Manifest {
    /// It as data. It may hold plaintext, so that it is never formatted.
    pub(crate) object: Value,
    /// Which it is, for messages.
    pub(crate) place: String,
    /// What its text is written in.
    pub(crate) format: Format,
    /// Where its text stands in what was read, in bytes.
    pub(crate) text: Range<usize>,
    /// The document of that text that it is, counted from 0; nothing for an object of a list.
    pub(crate) document: Option<usize>,
}

impl Manifest {
    /// Its `kind`, if it says one.
    pub(crate) fn kind(&self) -> Option<&str> {
        self.object.get("kind").and_then(Value::as_str).filter(|kind| !kind.is_empty())
    }

    /// Its name, if it has one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.object.pointer("/metadata/name").and_then(Value::as_str)
    }

    /// Sees to it that no field of a Secret is lost for its spelling, and warns of those that a Secret does not have.
    pub(crate) fn check_secret_fields(&self, output: Output) -> Result<(), CommandError> {
        let fields = self.object.as_object().into_iter().flat_map(Map::keys);
        for field in fields.filter(|field| !SECRET_FIELDS.contains(&field.as_str())) {
            let meant = SECRET_FIELDS.iter().find(|known| known.eq_ignore_ascii_case(field));
            match meant {
                Some(meant) => {
                    return Err(self
                        .refuse(format!("{field} is no field of a Secret"))
                        .hint(format!("write {meant}")));
                }
                None if field == "status" => {}
                None => {
                    output.warn(&format!("{}: {field} is no field of a Secret and is left out", self.place))
                }
            }
        }
        Ok(())
    }

    /// A refusal of this object.
    pub(crate) fn refuse(&self, problem: impl std::fmt::Display) -> CommandError {
        CommandError::on(Kind::General, &self.place, problem)
    }
}

/// The objects in the text that was read from what is called `name`. Warnings go to `output`, if there is one: a text
/// that is read again gives none.
pub(crate) fn read(
    name: &str,
    text: &SecretText,
    output: Option<Output>,
) -> Result<Vec<Manifest>, CommandError> {
    let whole = text.expose_secret();
    let text = whole.strip_prefix(BYTE_ORDER_MARK).unwrap_or(whole);
    let offset = whole.len() - text.len();
    if text.lines().all(is_between_documents) {
        return Ok(Vec::new());
    }
    let mut reading = Reading { name, output, found: Vec::new() };
    match json_parts(text) {
        Some(parts) => {
            for part in parts {
                reading.take(&text[part.clone()], Format::Json, part.start + offset)?;
            }
        }
        None => reading.take(text, Format::Yaml, offset)?,
    }
    let mut found = reading.found;
    if let [only] = found.as_mut_slice() {
        name.clone_into(&mut only.place);
    }
    Ok(found)
}

/// Whether a line holds nothing of a document.
fn is_between_documents(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#') || matches!(line, "---" | "...")
}

/// The places of the JSON objects that follow each other in `text`; nothing when it is not that.
fn json_parts(text: &str) -> Option<Vec<Range<usize>>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let mut parts = Vec::new();
    let mut objects = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    let mut start = 0;
    while let Some(object) = objects.next() {
        object.ok()?;
        parts.push(start..objects.byte_offset());
        start = objects.byte_offset();
    }
    Some(parts)
}

struct Reading<'a> {
    name: &'a str,
    output: Option<Output>,
    found: Vec<Manifest>,
}

impl Reading<'_> {
    /// Takes the objects of one text in one format, which begins at `offset`.
    fn take(&mut self, text: &str, format: Format, offset: usize) -> Result<(), CommandError> {
        let document = Document::read(text, format).map_err(|error| {
            CommandError::on(Kind::Read, self.name, error)
                .hint("every document must be one that Kubernetes can read; none is left out")
        })?;
        let range = offset..offset + text.len();
        for (number, part) in document.tree.documents.iter().enumerate() {
            let Some(root) = part.root else { continue };
            let (name, output, tree) = (self.name, self.output, &document.tree);
            let mut typing = Typing { name, output, text, format, tree, path: Vec::new() };
            let object = typing.value(root)?;
            if object.as_object().is_some_and(Map::is_empty) {
                continue;
            }
            match object.get("items") {
                Some(Value::Array(items)) if is_list(&object) => {
                    for item in items.clone() {
                        self.add(item, format, range.clone(), None)?;
                    }
                }
                _ => self.add(object, format, range.clone(), Some(number))?,
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        object: Value,
        format: Format,
        text: Range<usize>,
        document: Option<usize>,
    ) -> Result<(), CommandError> {
        let place = match object.pointer("/metadata/name").and_then(Value::as_str) {
            Some(name) => format!("{}, object {} ({name})", self.name, self.found.len() + 1),
            None => format!("{}, object {}", self.name, self.found.len() + 1),
        };
        if self.found.len() == OBJECTS_MAX {
            return Err(CommandError::on(Kind::Read, self.name, format!("more than {OBJECTS_MAX} objects"))
                .hint("split the file"));
        }
        self.found.push(Manifest { object, place, format, text, document });
        Ok(())
    }
}

/// Whether this is a list of objects: of no kind of its own, or of the kind of its items.
fn is_list(object: &Value) -> bool {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or("List");
    kind.ends_with("List")
}

/// Makes data of a tree, and text of every word that Kubernetes wants as text.
struct Typing<'a> {
    name: &'a str,
    output: Option<Output>,
    text: &'a str,
    format: Format,
    tree: &'a Tree,
    path: Vec<String>,
}

impl Typing<'_> {
    fn value(&mut self, id: NodeId) -> Result<Value, CommandError> {
        let node = &self.tree.nodes[id];
        match &node.kind {
            NodeKind::Alias { target } => self.value(*target),
            NodeKind::List { items, .. } => {
                let is_items = self.path.len() == 1 && self.path[0] == "items";
                let before = if is_items { std::mem::take(&mut self.path) } else { Vec::new() };
                let values = items.iter().map(|item| self.value(*item)).collect::<Result<Vec<_>, _>>()?;
                if is_items {
                    self.path = before;
                }
                Ok(Value::Array(values))
            }
            NodeKind::Map { entries, .. } => self.map(entries),
            NodeKind::Scalar { style: Style::Plain { .. }, .. } if !self.is_tagged(node) => {
                self.word(node.inner.clone(), id)
            }
            NodeKind::Scalar { value, .. } => match self.tree.plain(id, false) {
                Value::String(text) => Ok(text.into()),
                Value::Null if value.kind().is_none() => Ok(self.absent()),
                _ => Err(self.not_text(node.inner.start)),
            },
        }
    }

    /// The entries of a mapping, and behind them those that a merge key brings and that are not there.
    fn map(&mut self, entries: &[Entry]) -> Result<Value, CommandError> {
        let (mut map, mut merged) = (Map::new(), Vec::new());
        for entry in entries {
            let source = &self.text[entry.place.clone()];
            if source == MERGE_KEY && self.format == Format::Yaml {
                match self.value(entry.value)? {
                    Value::Array(several) => merged.extend(several),
                    one => merged.push(one),
                }
                continue;
            }
            self.path.push(entry.name.to_string());
            self.check_key(source, &entry.name);
            let value = self.value(entry.value)?;
            self.path.pop();
            map.insert(entry.name.to_string(), value);
        }
        for one in merged {
            let Value::Object(one) = one else {
                let at = entries.first().map_or(0, |entry| entry.place.start);
                return Err(self
                    .refuse(at, format!("{MERGE_KEY} brings something that is no mapping"))
                    .hint("write the entries out"));
            };
            for (key, value) in one {
                map.entry(key).or_insert(value);
            }
        }
        Ok(Value::Object(map))
    }

    /// Whether it stands in the field called `field`.
    fn is_in(&self, field: &str) -> bool {
        self.path.first().is_some_and(|first| first == field)
    }

    /// Whether a tag says what a scalar is, so that nobody has to guess.
    fn is_tagged(&self, node: &Node) -> bool {
        self.text[node.outer.start..node.inner.start].contains('!')
    }

    /// Warns of a key that others read as something else. Here it is what it looks like.
    fn check_key(&self, source: &str, name: &str) {
        let read = yaml_1_1::read(name);
        if source == name && read.as_text() != name {
            self.warn(&format!(
                "is taken as it stands, and kubectl reads the key {name} as \"{}\"; put it in quotes",
                read.as_text()
            ));
        }
    }

    /// A scalar without quotes.
    fn word(&self, place: Range<usize>, id: NodeId) -> Result<Value, CommandError> {
        let source = &self.text[place.clone()];
        let word = yaml_1_1::read(source);
        match (self.wanted(), &word) {
            (_, Word::Null) => Ok(self.absent()),
            // Over several lines it is text to everyone, and the tree has it folded.
            (_, Word::Text(_)) if source.contains('\n') => Ok(self.tree.plain(id, false)),
            (_, Word::Text(_)) => Ok(source.into()),
            (Wanted::Anything, _) => Ok(self.tree.plain(id, false)),
            (Wanted::Bool, Word::Bool(value)) if matches!(source, "true" | "false") => Ok((*value).into()),
            (Wanted::Bool, _) => {
                let problem = format!("{} is `true` or `false`, and {source} is neither", self.shown());
                Err(self.refuse(place.start, problem).hint("write `true` or `false`"))
            }
            // In JSON there is no doubt about it, and a number is no base64.
            (Wanted::Text, _) if self.format == Format::Json || self.is_in("data") => {
                Err(self.not_text(place.start))
            }
            (Wanted::Text, word) if word.as_text() == source => {
                self.warn("is taken as text as it stands; put it in quotes to say so");
                Ok(source.into())
            }
            (Wanted::Text, _) => Err(self.misread(place.start, source)),
        }
    }

    /// Nothing at all; where the value of an item is wanted, an empty one.
    fn absent(&self) -> Value {
        let is_item = self.path.len() == 2 && matches!(self.path[0].as_str(), "data" | "stringData");
        if !is_item {
            return Value::Null;
        }
        self.warn("has no value and is taken as empty; write \"\" to say so");
        "".into()
    }

    fn wanted(&self) -> Wanted {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        match path.as_slice() {
            ["immutable"] | ["spec", "template", "immutable"] => Wanted::Bool,
            ["status", ..] => Wanted::Anything,
            ["metadata", rest @ ..] | ["spec", "template", "metadata", rest @ ..] => match rest {
                ["managedFields" | "ownerReferences", ..] | ["generation" | "deletionGracePeriodSeconds"] => {
                    Wanted::Anything
                }
                _ => Wanted::Text,
            },
            _ => Wanted::Text,
        }
    }

    fn warn(&self, what: &str) {
        if let Some(output) = self.output {
            output.warn(&format!("{}: {} {what}", self.name, self.shown()));
        }
    }

    fn not_text(&self, offset: usize) -> CommandError {
        self.refuse(offset, format!("{} is not text", self.shown())).hint("put it in quotes")
    }

    fn shown(&self) -> String {
        self.path.join(".")
    }

    /// A value is told with both of its readings, unless it is a secret.
    fn misread(&self, offset: usize, source: &str) -> CommandError {
        let is_public = ["apiVersion", "kind", "metadata", "type"].iter().any(|field| self.is_in(field));
        if !is_public {
            let problem = format!(
                "the tools of Kubernetes read {} as another text than the one that stands there",
                self.shown()
            );
            return self.refuse(offset, problem).hint("put the value in quotes if it is meant as it stands");
        }
        let read = yaml_1_1::read(source);
        let problem = format!("the tools of Kubernetes read {source} as \"{}\"", read.as_text());
        self.refuse(offset, problem)
            .hint(format!("write \"{source}\" if that is the text, or \"{}\" if that is", read.as_text()))
    }

    fn refuse(&self, offset: usize, problem: String) -> CommandError {
        let line = self.text[..offset].matches('\n').count() + 1;
        CommandError::on(Kind::Read, self.name, format!("line {line}: {problem}"))
    }
}

/// What Kubernetes wants in a place.
enum Wanted {
    Anything,
    Bool,
    Text,
}

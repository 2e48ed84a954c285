//! The typed content of an EncryptedSecret, and the digest that its seal holds of it.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Plain};

use crate::object::ObjectError;
use crate::seal::digest::Items;

/// Type of a Secret that does not name one.
pub const DEFAULT_TYPE: &str = "Opaque";

const TREE_PURPOSE: &str = "lacre.dev/tree/object/1";

/// The typed content of `spec`, with defaults resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Type of the Secret.
    pub secret_type: String,
    /// Whether the Secret can never be changed.
    pub immutable: bool,
    /// Labels for the Secret.
    pub labels: BTreeMap<String, String>,
    /// Annotations for the Secret.
    pub annotations: BTreeMap<String, String>,
    /// Sealed base64 text by key.
    pub data: BTreeMap<String, String>,
    /// Sealed text by key.
    pub string_data: BTreeMap<String, String>,
    /// Names of the Secrets that hold the identities to open it with. Not authenticated.
    pub keys_from: Vec<String>,
    /// Whether to leave the Secret alone. Not authenticated, so that an incident can set it.
    pub suspend: bool,
}

impl Content {
    /// Reads `spec`.
    ///
    /// # Errors
    /// [`ObjectError`] for a field this version does not know, which the seal would otherwise not cover, or one of
    /// the wrong type.
    pub fn read(spec: &Plain) -> Result<Self, ObjectError> {
        let fields = ["type", "immutable", "data", "stringData", "template", "keysFrom", "suspend"];
        let spec = known(spec, "spec", &fields)?;
        let none = Plain::Null;
        let template = known(spec.get("template").unwrap_or(&none), "spec.template", &["metadata"])?;
        let metadata = template.get("metadata").unwrap_or(&none);
        let metadata = known(metadata, "spec.template.metadata", &["labels", "annotations"])?;
        let content = Self {
            secret_type: text(&spec, "type")?.unwrap_or_else(|| DEFAULT_TYPE.to_owned()),
            immutable: boolean(&spec, "immutable")?,
            labels: texts(&metadata, "labels")?,
            annotations: texts(&metadata, "annotations")?,
            data: texts(&spec, "data")?,
            string_data: texts(&spec, "stringData")?,
            keys_from: keys_from(spec.get("keysFrom"))?,
            suspend: boolean(&spec, "suspend")?,
        };
        match content.data.keys().find(|key| content.string_data.contains_key(*key)) {
            Some(key) => {
                Err(ObjectError::new(format!("`{key}` stands in data and in stringData: remove one")))
            }
            None => Ok(content),
        }
    }

    /// The digest that the seal holds of it. `keysFrom` and `suspend` are no part of it.
    pub(crate) fn digest(&self) -> String {
        let mut items = Items::new(TREE_PURPOSE);
        items.add(b'T', &[self.secret_type.as_bytes()]);
        items.add(b'I', &[&[u8::from(self.immutable)]]);
        let maps =
            [(b'l', &self.labels), (b'a', &self.annotations), (b'd', &self.data), (b's', &self.string_data)];
        for (letter, map) in maps {
            items.add(b'M', &[]);
            map.iter().for_each(|(key, value)| items.add(letter, &[key.as_bytes(), value.as_bytes()]));
            items.add(b'E', &[]);
        }
        items.finish()
    }

    /// Each sealed text with its address, `data` before `stringData`, in the order of the keys.
    pub(crate) fn values(&self) -> impl Iterator<Item = (&'static str, &String, &String)> {
        let data = self.data.iter().map(|(key, text)| ("data", key, text));
        data.chain(self.string_data.iter().map(|(key, text)| ("stringData", key, text)))
    }
}

/// A mapping with no other fields than `fields`; null is an empty one.
fn known(value: &Plain, name: &str, fields: &[&str]) -> Result<Map<String, Plain>, ObjectError> {
    let map = match value {
        Plain::Null => Map::new(),
        Plain::Object(map) => map.clone(),
        _ => return Err(ObjectError::new(format!("`{name}` is not a mapping"))),
    };
    match map.keys().find(|key| !fields.contains(&key.as_str())) {
        Some(key) => Err(ObjectError::new(format!(
            "`{name}.{key}` is not known to this version, so no seal would cover it"
        ))),
        None => Ok(map),
    }
}

fn text(map: &Map<String, Plain>, name: &str) -> Result<Option<String>, ObjectError> {
    match map.get(name) {
        None | Some(Plain::Null) => Ok(None),
        Some(Plain::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
        Some(_) => Err(ObjectError::new(format!("`{name}` is not text"))),
    }
}

fn boolean(map: &Map<String, Plain>, name: &str) -> Result<bool, ObjectError> {
    match map.get(name) {
        None | Some(Plain::Null) => Ok(false),
        Some(Plain::Bool(value)) => Ok(*value),
        Some(_) => Err(ObjectError::new(format!("`{name}` is neither true nor false"))),
    }
}

fn texts(map: &Map<String, Plain>, name: &str) -> Result<BTreeMap<String, String>, ObjectError> {
    let entries = match map.get(name) {
        None | Some(Plain::Null) => return Ok(BTreeMap::new()),
        Some(Plain::Object(entries)) => entries,
        Some(_) => return Err(ObjectError::new(format!("`{name}` is not a mapping"))),
    };
    let entry = |(key, value): (&String, &Plain)| match value {
        Plain::String(text) => Ok((key.clone(), text.clone())),
        Plain::Null => Ok((key.clone(), String::new())),
        _ => Err(ObjectError::new(format!("`{name}.{key}` is not text: put it in quotes"))),
    };
    entries.iter().map(entry).collect()
}

fn keys_from(value: Option<&Plain>) -> Result<Vec<String>, ObjectError> {
    let sources = match value {
        None | Some(Plain::Null) => return Ok(Vec::new()),
        Some(Plain::Array(sources)) => sources,
        Some(_) => return Err(ObjectError::new("`keysFrom` is not a list")),
    };
    let name = |source: &Plain| source.pointer("/secretRef/name").and_then(Plain::as_str).map(str::to_owned);
    let names = sources
        .iter()
        .map(|source| name(source).ok_or_else(|| ObjectError::new("`keysFrom` needs secretRef.name")));
    names.collect()
}

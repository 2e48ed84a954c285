//! Single members of a SealedSecret's text, changed where they stand: comments, order, quotes and every other byte of the
//! file stay as they are.

use lacre_crypto::{SecretText, set_in_clear};
use serde_json::{Map, Value};

use super::manifest::{self, Manifest};
use crate::error::CommandError;

/// A member and what it becomes.
pub(crate) struct Change {
    /// The keys that lead to it.
    pub(crate) keys: Vec<String>,
    /// Its new value.
    pub(crate) value: Value,
}

impl Change {
    /// A change of what stands below `parents` under `key`.
    pub(crate) fn below(parents: &[&str], key: &str, value: Value) -> Self {
        let keys = parents.iter().copied().chain([key]).map(str::to_owned).collect();
        Self { keys, value }
    }

    /// Makes it in `object`.
    pub(crate) fn make(&self, object: &mut Value) {
        put(object, &self.keys, &self.value);
    }
}

/// The text `whole`, with `changes` made to the objects that were read from it. What comes out is read again, and holds
/// exactly what was asked for.
pub(crate) fn apply(
    name: &str,
    whole: &SecretText,
    changes: &[(&Manifest, Vec<Change>)],
) -> Result<String, CommandError> {
    let mut new = whole.expose_secret().to_owned();
    let mut ranges: Vec<_> = changes.iter().map(|(manifest, _)| manifest.text.clone()).collect();
    ranges.sort_by_key(|range| range.start);
    ranges.dedup();
    // From the end to the start, so that what is further up stays where it is.
    for range in ranges.into_iter().rev() {
        let mut part = whole.expose_secret()[range.clone()].to_owned();
        for (manifest, changes) in changes.iter().filter(|(manifest, _)| manifest.text == range) {
            part = changed(part, manifest, changes)?;
        }
        new.replace_range(range, &part);
    }
    verify(name, &new, changes)?;
    Ok(new)
}

fn changed(mut part: String, manifest: &Manifest, changes: &[Change]) -> Result<String, CommandError> {
    let Some(document) = manifest.document else {
        return Err(manifest
            .refuse("stands in a list, and is not changed in place")
            .hint("write the objects of the list as documents of their own"));
    };
    for Change { keys, value } in changes {
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        part = set_in_clear(&part, manifest.format, document, &keys, value).map_err(|error| {
            manifest.refuse(error).hint("change the file by hand there, then run the command again")
        })?;
    }
    Ok(part)
}

/// Whether the new text holds the changes and otherwise what it held.
fn verify(name: &str, new: &str, changes: &[(&Manifest, Vec<Change>)]) -> Result<(), CommandError> {
    let found = manifest::read(name, &SecretText::from(new), None)?;
    for (manifest, changes) in changes {
        let mut expected = manifest.object.clone();
        changes.iter().for_each(|change| change.make(&mut expected));
        if found.iter().all(|found| found.object != expected) {
            return Err(manifest
                .refuse("would not be what it shall be after the change; nothing is written")
                .hint("anchors, aliases or merge keys are in the way: write the object without them"));
        }
    }
    Ok(())
}

fn put(object: &mut Value, keys: &[String], value: &Value) {
    match keys {
        [] => *object = value.clone(),
        [key, rest @ ..] => {
            if !object.is_object() {
                *object = Value::Object(Map::new());
            }
            if let Some(map) = object.as_object_mut() {
                put(map.entry(key.clone()).or_insert(Value::Null), rest, value);
            }
        }
    }
}

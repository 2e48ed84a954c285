//! Single fields of a `sops` block, as weakly typed as other readers take them.

use serde_json::{Map, Value as Plain};

use crate::metadata::GROUPS_MAX;

pub(super) fn text(map: &Map<String, Plain>, name: &str) -> Result<Option<String>, String> {
    match map.get(name) {
        None | Some(Plain::Null) => Ok(None),
        Some(Plain::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{name}` is not text")),
    }
}

pub(super) fn boolean(map: &Map<String, Plain>, name: &str) -> Result<bool, String> {
    match map.get(name) {
        None | Some(Plain::Null) => Ok(false),
        Some(Plain::Bool(value)) => Ok(*value),
        Some(Plain::String(text)) if text == "true" => Ok(true),
        Some(Plain::String(text)) if text == "false" => Ok(false),
        Some(_) => Err(format!("`{name}` is neither true nor false")),
    }
}

pub(super) fn number(map: &Map<String, Plain>, name: &str) -> Result<Option<usize>, String> {
    let found = match map.get(name) {
        None | Some(Plain::Null) => return Ok(None),
        Some(Plain::Number(number)) => number.as_u64().and_then(|number| usize::try_from(number).ok()),
        Some(Plain::String(text)) => text.parse().ok(),
        Some(_) => None,
    };
    found
        .filter(|number| *number <= GROUPS_MAX)
        .map(Some)
        .ok_or(format!("`{name}` is not a number up to {GROUPS_MAX}"))
}

//! sprig's functions on maps.
//!
//! Where Go leaves the order of a map to chance, it is the order of the keys here.

use std::collections::BTreeMap;

use super::{Function, Param, any, dict, rest, text};
use crate::object::template::context::{Context, Fault};
use crate::object::template::print;
use crate::object::template::value::{Element, Key, Value};
use Param::{Any, Dict, Text};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::with_rest("dict", &[], Any, |context, arguments| {
        let mut entries = BTreeMap::new();
        for pair in arguments.chunks(2) {
            let key = print::text(context, any(pair, 0))?;
            let value = pair.get(1).cloned().unwrap_or_else(|| Value::word(""));
            entries.insert(Key::new(&key), present(value));
        }
        context.map(false, entries)
    }),
    Function::new("get", &[Dict, Text], |_, arguments| {
        let found = dict(arguments, 0).and_then(|map| map.value(text(arguments, 1)));
        Ok(found.unwrap_or_else(|| Value::word("")))
    }),
    Function::new("set", &[Dict, Text, Any], |context, arguments| {
        let Some(map) = dict(arguments, 0) else { return Err("assignment to entry in nil map".to_owned()) };
        context.reserve(text(arguments, 1).len())?;
        context.reserve_items(map.len() + 1)?;
        map.entries.borrow_mut().insert(Key::new(text(arguments, 1)), present(any(arguments, 2).clone()));
        Ok(any(arguments, 0).clone())
    }),
    Function::new("unset", &[Dict, Text], |_, arguments| {
        if let Some(map) = dict(arguments, 0) {
            map.entries.borrow_mut().remove(&Key::new(text(arguments, 1)));
        }
        Ok(any(arguments, 0).clone())
    }),
    Function::new("hasKey", &[Dict, Text], |_, arguments| {
        Ok(Value::Bool(dict(arguments, 0).is_some_and(|map| map.value(text(arguments, 1)).is_some())))
    }),
    Function::with_rest("pluck", &[Text], Dict, |context, arguments| {
        let maps = (1..arguments.len()).filter_map(|index| dict(arguments, index));
        let found = maps.filter_map(|map| map.value(text(arguments, 0))).collect();
        context.list(Element::Any, found)
    }),
    Function::with_rest("keys", &[], Dict, |context, arguments| {
        let mut keys = Vec::new();
        for map in (0..arguments.len()).filter_map(|index| dict(arguments, index)) {
            context.reserve_items(map.len())?;
            keys.extend(map.copied().into_iter().map(|(key, _)| key.bytes().to_vec()));
        }
        context.texts(keys)
    }),
    Function::new("values", &[Dict], |context, arguments| {
        let values = dict(arguments, 0).map(|map| map.copied()).unwrap_or_default();
        context.list(Element::Any, values.into_iter().map(|(_, value)| value).collect())
    }),
    Function::with_rest("pick", &[Dict], Text, |context, arguments| chosen(context, arguments, true)),
    Function::with_rest("omit", &[Dict], Text, |context, arguments| chosen(context, arguments, false)),
    Function::with_rest("dig", &[], Any, dig),
];

/// A value as it is held by a container.
fn present(value: Value) -> Value {
    if value.is_nothing() { Value::Nil } else { value }
}

/// The entries whose keys are named, or all others.
fn chosen(context: &mut Context, arguments: &[Value], named: bool) -> Result<Value, Fault> {
    let entries = dict(arguments, 0).map(|map| map.copied()).unwrap_or_default();
    context.step(entries.len().saturating_mul(arguments.len()))?;
    let names = rest(arguments, 1);
    let is_named = |key: &Key| names.iter().any(|name| name.bytes() == Some(key.bytes()));
    context.map(false, entries.into_iter().filter(|(key, _)| is_named(key) == named).collect())
}

/// The value at the end of a path of keys, or the default that stands before the map.
fn dig(_: &mut Context, arguments: &[Value]) -> Result<Value, Fault> {
    let [keys @ .., default, start] = arguments else {
        return Err("dig needs at least three arguments".to_owned());
    };
    if keys.is_empty() {
        return Err("dig needs at least three arguments".to_owned());
    }
    let mut value = start.clone();
    for key in keys {
        let map = match &value {
            Value::Map(map) if !map.of_text => map.clone(),
            other => return Err(format!("{} is no map[string]interface {{}}", other.type_name())),
        };
        let Some(key) = key.bytes() else { return Err(format!("a key of type {}", key.type_name())) };
        match map.value(key) {
            Some(next) => value = next,
            None => return Ok(default.clone()),
        }
    }
    Ok(value)
}

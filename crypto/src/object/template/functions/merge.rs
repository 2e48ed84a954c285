//! sprig's `merge` family and deep copies of containers.

use super::defaults::is_empty;
use super::{Function, Param, any};
use crate::object::template::VALUE_DEPTH_MAX;
use crate::object::template::context::{Context, Fault};
use crate::object::template::print::too_deep;
use crate::object::template::value::{List, Map, Value};
use Param::{Any, Dict};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::with_rest("merge", &[Dict], Dict, |context, arguments| merged(context, arguments, false)),
    Function::with_rest("mustMerge", &[Dict], Dict, |context, arguments| merged(context, arguments, false)),
    Function::with_rest("mergeOverwrite", &[Dict], Dict, |context, arguments| {
        merged(context, arguments, true)
    }),
    Function::with_rest("mustMergeOverwrite", &[Dict], Dict, |context, arguments| {
        merged(context, arguments, true)
    }),
    Function::new("deepCopy", &[Any], |context, arguments| copy(context, any(arguments, 0), 0)),
    Function::new("mustDeepCopy", &[Any], |context, arguments| copy(context, any(arguments, 0), 0)),
];

/// The first map with what the others add to it. It is changed itself, as in the peer.
fn merged(context: &mut Context, arguments: &[Value], overwrite: bool) -> Result<Value, Fault> {
    if let Value::Map(target) = any(arguments, 0) {
        for source in arguments.iter().skip(1) {
            if let Value::Map(source) = source {
                merge(context, target, source, overwrite, 0)?;
            }
        }
    }
    Ok(any(arguments, 0).clone())
}

fn merge(
    context: &mut Context,
    target: &Map,
    source: &Map,
    overwrite: bool,
    depth: usize,
) -> Result<(), Fault> {
    if depth > VALUE_DEPTH_MAX {
        return Err(too_deep());
    }
    for (key, value) in source.copied() {
        context.step(1)?;
        let known = target.value(key.bytes());
        match (&known, &value) {
            (Some(Value::Map(inner)), Value::Map(more)) if !inner.of_text && !more.of_text => {
                merge(context, inner, more, overwrite, depth + 1)?;
                continue;
            }
            (Some(known), value) => {
                let replaces = overwrite || (is_empty(known) && !is_empty(value));
                if !replaces {
                    continue;
                }
            }
            (None, _) => {}
        }
        context.reserve(key.bytes().len())?;
        context.reserve_items(1)?;
        target.entries.borrow_mut().insert(key, value);
    }
    Ok(())
}

fn copy(context: &mut Context, value: &Value, depth: usize) -> Result<Value, Fault> {
    context.step(1)?;
    if depth > VALUE_DEPTH_MAX {
        return Err(too_deep());
    }
    match value {
        Value::List(List { is_nil: true, .. }) => Ok(value.clone()),
        Value::List(list) => {
            let items =
                list.items.iter().map(|item| copy(context, item, depth + 1)).collect::<Result<_, _>>()?;
            context.list(list.element, items)
        }
        Value::Map(map) => {
            let mut entries = std::collections::BTreeMap::new();
            for (key, value) in map.copied() {
                entries.insert(key, copy(context, &value, depth + 1)?);
            }
            context.map(map.of_text, entries)
        }
        other => Ok(other.clone()),
    }
}

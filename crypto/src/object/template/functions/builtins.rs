//! The functions that `text/template` itself has: comparison, indexing, escaping, printing.

use super::{Function, Param, any, rest, text};
use crate::object::template::context::{Context, Fault};
use crate::object::template::print::{escaped_input, joined};
use crate::object::template::runes::{is_print, runes};
use crate::object::template::value::{List, Value};
use crate::object::template::verbs::sprintf;

pub(super) const FUNCTIONS: &[Function] = &[
    // The executor itself evaluates these two.
    Function::with_rest("and", &[Param::Value], Param::Value, |_, arguments| Ok(any(arguments, 0).clone())),
    Function::with_rest("or", &[Param::Value], Param::Value, |_, arguments| Ok(any(arguments, 0).clone())),
    Function::with_rest("call", &[Param::Value], Param::Value, |_, arguments| match any(arguments, 0) {
        value if value.is_nothing() => Err("call of nil".to_owned()),
        value => Err(format!("non-function of type {}", value.type_name())),
    }),
    Function::with_rest("eq", &[Param::Value], Param::Value, |_, arguments| {
        equal(any(arguments, 0), rest(arguments, 1)).map(Value::Bool)
    }),
    Function::new("ge", &[Param::Value, Param::Value], |_, arguments| {
        less(any(arguments, 0), any(arguments, 1)).map(|less| Value::Bool(!less))
    }),
    Function::new("gt", &[Param::Value, Param::Value], |_, arguments| {
        less_or_equal(any(arguments, 0), any(arguments, 1)).map(|less| Value::Bool(!less))
    }),
    Function::new("le", &[Param::Value, Param::Value], |_, arguments| {
        less_or_equal(any(arguments, 0), any(arguments, 1)).map(Value::Bool)
    }),
    Function::new("lt", &[Param::Value, Param::Value], |_, arguments| {
        less(any(arguments, 0), any(arguments, 1)).map(Value::Bool)
    }),
    Function::new("ne", &[Param::Value, Param::Value], |_, arguments| {
        equal(any(arguments, 0), rest(arguments, 1)).map(|equal| Value::Bool(!equal))
    }),
    Function::new("not", &[Param::Value], |_, arguments| Ok(Value::Bool(!any(arguments, 0).truth()))),
    Function::with_rest("html", &[], Param::Any, |context, arguments| {
        let input = escaped_input(context, arguments)?;
        context.reserve(input.len() * 5)?;
        context.text(html(&input))
    }),
    Function::with_rest("js", &[], Param::Any, |context, arguments| {
        let input = escaped_input(context, arguments)?;
        context.reserve(input.len() * 6)?;
        context.text(js(&input))
    }),
    Function::with_rest("urlquery", &[], Param::Any, |context, arguments| {
        let input = escaped_input(context, arguments)?;
        context.reserve(input.len() * 3)?;
        context.text(super::urls::escape_query(&input))
    }),
    Function::with_rest("index", &[Param::Value], Param::Value, index),
    Function::new("len", &[Param::Value], |_, arguments| match any(arguments, 0) {
        Value::List(list) => Ok(length(list.items.len())),
        Value::Map(map) => Ok(length(map.len())),
        Value::Text(text) => Ok(length(text.len())),
        value if value.is_nothing() => Err("len of nil pointer".to_owned()),
        other => Err(format!("len of type {}", other.type_name())),
    }),
    Function::with_rest("print", &[], Param::Any, |context, arguments| {
        let shown = joined(context, arguments)?;
        context.text(shown)
    }),
    Function::with_rest("printf", &[Param::Text], Param::Any, |context, arguments| {
        let shown = sprintf(context, text(arguments, 0), rest(arguments, 1))?;
        context.text(shown)
    }),
    Function::with_rest("println", &[], Param::Any, |context, arguments| {
        let mut shown = Vec::new();
        for (index, value) in arguments.iter().enumerate() {
            if index > 0 {
                shown.push(b' ');
            }
            crate::object::template::print::write(context, &mut shown, value)?;
        }
        shown.push(b'\n');
        context.text(shown)
    }),
];

pub(super) fn length(length: usize) -> Value {
    Value::Int(i64::try_from(length).unwrap_or(i64::MAX))
}

/// The classes between which Go compares nothing.
#[derive(PartialEq, Eq)]
enum Basic {
    Bool,
    Float,
    Int,
    Other,
    Text,
    Uint,
}

fn basic(value: &Value) -> Basic {
    match value {
        Value::Bool(_) => Basic::Bool,
        Value::Byte(_) | Value::Uint64(_) => Basic::Uint,
        Value::Float(_) => Basic::Float,
        Value::Int(_) | Value::Int64(_) => Basic::Int,
        Value::Text(_) => Basic::Text,
        _ => Basic::Other,
    }
}

/// Any integer, in a type that holds them all.
fn whole(value: &Value) -> i128 {
    match value {
        Value::Byte(value) => i128::from(*value),
        Value::Int(value) | Value::Int64(value) => i128::from(*value),
        Value::Uint64(value) => i128::from(*value),
        _ => 0,
    }
}

fn is_whole(kind: &Basic) -> bool {
    matches!(kind, Basic::Int | Basic::Uint)
}

fn incompatible(first: &Value, second: &Value) -> Fault {
    format!("incompatible types for comparison: {} and {}", first.type_name(), second.type_name())
}

/// Whether `first` equals any of the `others`.
#[allow(clippy::float_cmp, reason = "Go compares floats exactly")]
fn equal(first: &Value, others: &[Value]) -> Result<bool, Fault> {
    if others.is_empty() {
        return Err("missing argument for comparison".to_owned());
    }
    for other in others {
        let (one, two) = (basic(first), basic(other));
        let is_equal = match (first, other) {
            _ if is_whole(&one) && is_whole(&two) => whole(first) == whole(other),
            (Value::Bool(one), Value::Bool(two)) => one == two,
            (Value::Float(one), Value::Float(two)) => one == two,
            (Value::Text(one), Value::Text(two)) => one == two,
            (Value::Missing | Value::Nil, two) => two.is_nothing() || is_nil_list(two),
            (one, Value::Missing | Value::Nil) => is_nil_list(one),
            (Value::Version(one), Value::Version(two)) => std::rc::Rc::ptr_eq(one, two),
            (Value::List(list), Value::List(nil)) | (Value::List(nil), Value::List(list)) if nil.is_nil => {
                list.is_nil
            }
            _ if one != two => return Err(incompatible(first, other)),
            _ => return Err(format!("non-comparable type {}", other.type_name())),
        };
        if is_equal {
            return Ok(true);
        }
    }
    Ok(false)
}

fn is_nil_list(value: &Value) -> bool {
    matches!(value, Value::List(list) if list.is_nil)
}

fn less(first: &Value, second: &Value) -> Result<bool, Fault> {
    let (one, two) = (basic(first), basic(second));
    if one == Basic::Other || two == Basic::Other {
        return Err("invalid type for comparison".to_owned());
    }
    match (first, second) {
        _ if is_whole(&one) && is_whole(&two) => Ok(whole(first) < whole(second)),
        (Value::Float(one), Value::Float(two)) => Ok(one < two),
        (Value::Text(one), Value::Text(two)) => Ok(one.expose_secret() < two.expose_secret()),
        (Value::Bool(_), Value::Bool(_)) => Err("invalid type for comparison".to_owned()),
        _ => Err(incompatible(first, second)),
    }
}

fn less_or_equal(first: &Value, second: &Value) -> Result<bool, Fault> {
    Ok(less(first, second)? || equal(first, std::slice::from_ref(second))?)
}

/// An index into something of `length` items; `end` says whether it may stand behind the last.
fn index_of(value: &Value, length: usize, end: bool) -> Result<usize, Fault> {
    if value.is_nothing() {
        return Err("cannot index slice/array with nil".to_owned());
    }
    if !is_whole(&basic(value)) {
        return Err(format!("cannot index slice/array with type {}", value.type_name()));
    }
    let at = usize::try_from(whole(value)).ok().filter(|at| *at < length || (end && *at == length));
    at.ok_or_else(|| "index out of range".to_owned())
}

fn index(context: &mut Context, arguments: &[Value]) -> Result<Value, Fault> {
    let mut item = any(arguments, 0).clone();
    if item.is_nothing() {
        return Err("index of untyped nil".to_owned());
    }
    for at in rest(arguments, 1) {
        context.step(1)?;
        item = match &item {
            Value::List(list) => {
                let at = index_of(at, list.items.len(), false)?;
                list.items.get(at).cloned().unwrap_or(Value::Nil)
            }
            Value::Text(text) => {
                let at = index_of(at, text.len(), false)?;
                Value::Byte(text.expose_secret().get(at).copied().unwrap_or(0))
            }
            Value::Map(map) => match at.bytes() {
                Some(key) => match map.value(key) {
                    Some(value) => value,
                    None if map.of_text => Value::word(""),
                    None => Value::Nil,
                },
                None if at.is_nothing() => return Err("value is nil; should be of type string".to_owned()),
                None => {
                    return Err(format!("value has type {}; should be string", at.type_name()));
                }
            },
            value if value.is_nothing() => return Err("index of nil pointer".to_owned()),
            other => return Err(format!("can't index item of type {}", other.type_name())),
        };
    }
    Ok(item)
}

/// A part of a list, which is nil when the whole is.
pub(super) fn part(context: &mut Context, list: &List, from: usize, to: usize) -> Result<Value, Fault> {
    if list.is_nil {
        return Ok(Context::nil_list(list.element));
    }
    context.list(list.element, list.items.get(from..to).unwrap_or_default().to_vec())
}

fn html(input: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(input.len());
    for byte in input {
        match byte {
            0 => out.extend_from_slice("\u{fffd}".as_bytes()),
            b'"' => out.extend_from_slice(b"&#34;"),
            b'\'' => out.extend_from_slice(b"&#39;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            byte => out.push(*byte),
        }
    }
    out
}

fn js(input: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(input.len());
    for (rune, raw) in runes(input) {
        let next = rune.unwrap_or(char::REPLACEMENT_CHARACTER);
        match next {
            '\\' | '\'' | '"' => out.extend_from_slice(format!("\\{next}").as_bytes()),
            '<' | '>' | '&' | '=' => out.extend_from_slice(format!("\\u{:04X}", u32::from(next)).as_bytes()),
            next if next < ' ' => out.extend_from_slice(format!("\\u{:04X}", u32::from(next)).as_bytes()),
            next if next.is_ascii() || is_print(next) => out.extend_from_slice(raw),
            next => out.extend_from_slice(format!("\\u{:04X}", u32::from(next)).as_bytes()),
        }
    }
    out
}

//! sprig's functions on lists.

use super::builtins::part;
use super::defaults::{deep_equal, is_empty};
use super::math::to_int;
use super::{Function, Param, any, int, list, position, rest};
use crate::object::template::context::{Context, Fault};
use crate::object::template::value::{Element, Value};
use Param::{Any, Int};

/// A function under its own name and under the one with `must`, which differ in Go by how they fail.
macro_rules! both {
    ($name:literal, $must:literal, $params:expr, $run:expr) => {
        [Function::new($name, $params, $run), Function::new($must, $params, $run)]
    };
}

const PAIRS: [[Function; 2]; 11] = [
    both!("append", "mustAppend", &[Any, Any], push),
    both!("push", "mustPush", &[Any, Any], push),
    both!("prepend", "mustPrepend", &[Any, Any], |context, arguments| {
        let mut items = vec![any(arguments, 1).clone()];
        items.extend_from_slice(&list(arguments, 0, "prepend on")?.items);
        context.list(Element::Any, items)
    }),
    both!("first", "mustFirst", &[Any], |_, arguments| {
        Ok(list(arguments, 0, "find first on")?.items.first().cloned().unwrap_or(Value::Nil))
    }),
    both!("last", "mustLast", &[Any], |_, arguments| {
        Ok(list(arguments, 0, "find last on")?.items.last().cloned().unwrap_or(Value::Nil))
    }),
    both!("rest", "mustRest", &[Any], |context, arguments| {
        match list(arguments, 0, "find rest on")?.items.split_first() {
            Some((_, items)) => context.list(Element::Any, items.to_vec()),
            None => Ok(Context::nil_list(Element::Any)),
        }
    }),
    both!("initial", "mustInitial", &[Any], |context, arguments| {
        match list(arguments, 0, "find initial on")?.items.split_last() {
            Some((_, items)) => context.list(Element::Any, items.to_vec()),
            None => Ok(Context::nil_list(Element::Any)),
        }
    }),
    both!("reverse", "mustReverse", &[Any], |context, arguments| {
        let items = list(arguments, 0, "find reverse on")?.items.iter().rev().cloned().collect();
        context.list(Element::Any, items)
    }),
    both!("compact", "mustCompact", &[Any], |context, arguments| {
        let items = list(arguments, 0, "compact on")?.items.iter();
        context.list(Element::Any, items.filter(|item| !is_empty(item)).cloned().collect())
    }),
    both!("uniq", "mustUniq", &[Any], |context, arguments| {
        let mut kept: Vec<Value> = Vec::new();
        for item in list(arguments, 0, "find uniq on")?.items.iter() {
            if !holds(context, &kept, item)? {
                kept.push(item.clone());
            }
        }
        context.list(Element::Any, kept)
    }),
    both!("chunk", "mustChunk", &[Int, Any], chunk),
];

const OTHERS: [Function; 9] = [
    Function::with_rest("list", &[], Any, |context, arguments| {
        context.list(Element::Any, arguments.to_vec())
    }),
    Function::with_rest("tuple", &[], Any, |context, arguments| {
        context.list(Element::Any, arguments.to_vec())
    }),
    Function::with_rest("without", &[Any], Any, without),
    Function::with_rest("mustWithout", &[Any], Any, without),
    Function::new("has", &[Any, Any], has),
    Function::new("mustHas", &[Any, Any], has),
    Function::with_rest("slice", &[Any], Any, slice),
    Function::with_rest("mustSlice", &[Any], Any, slice),
    Function::with_rest("concat", &[], Any, |context, arguments| {
        let mut items = Vec::new();
        for index in 0..arguments.len() {
            let list = list(arguments, index, "concat")?;
            context.reserve_items(items.len() + list.items.len())?;
            items.extend_from_slice(&list.items);
        }
        if items.is_empty() { Ok(Context::nil_list(Element::Any)) } else { context.list(Element::Any, items) }
    }),
];

const COUNT: usize = PAIRS.len() * 2 + OTHERS.len();

pub(super) const FUNCTIONS: &[Function] = &flat();

const fn flat() -> [Function; COUNT] {
    const FIRST: Function = Function::new("", &[], |_, _| Ok(Value::Nil));
    let mut all = [FIRST; COUNT];
    let mut at = 0;
    while at < COUNT {
        let function =
            if at < PAIRS.len() * 2 { &PAIRS[at / 2][at % 2] } else { &OTHERS[at - PAIRS.len() * 2] };
        all[at] =
            Function { name: function.name, params: function.params, rest: function.rest, run: function.run };
        at += 1;
    }
    all
}

fn push(context: &mut Context, arguments: &[Value]) -> Result<Value, Fault> {
    let mut items = list(arguments, 0, "push on")?.items.to_vec();
    items.push(any(arguments, 1).clone());
    context.list(Element::Any, items)
}

fn holds(context: &mut Context, items: &[Value], wanted: &Value) -> Result<bool, Fault> {
    for item in items {
        if deep_equal(context, wanted, item)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn without(context: &mut Context, arguments: &[Value]) -> Result<Value, Fault> {
    let mut kept = Vec::new();
    for item in list(arguments, 0, "find without on")?.items.iter() {
        if !holds(context, rest(arguments, 1), item)? {
            kept.push(item.clone());
        }
    }
    context.list(Element::Any, kept)
}

fn has(context: &mut Context, arguments: &[Value]) -> Result<Value, Fault> {
    if any(arguments, 1).is_nothing() {
        return Ok(Value::Bool(false));
    }
    let list = list(arguments, 1, "find has on")?;
    holds(context, &list.items, any(arguments, 0)).map(Value::Bool)
}

fn slice(context: &mut Context, arguments: &[Value]) -> Result<Value, Fault> {
    let list = match any(arguments, 0) {
        Value::List(list) => list,
        value if value.is_nothing() => {
            return Err("invalid memory address or nil pointer dereference".to_owned());
        }
        other => return Err(format!("list should be type of slice or array but {}", other.kind_name())),
    };
    if list.items.is_empty() {
        return Ok(Value::Nil);
    }
    let end = list.items.len();
    let from = arguments.get(1).map_or(Ok(0), |at| position(to_int(at), end))?;
    let to = arguments.get(2).map_or(Ok(end), |at| position(to_int(at), end))?;
    if from > to {
        return Err("slice bounds out of range".to_owned());
    }
    part(context, list, from, to)
}

fn chunk(context: &mut Context, arguments: &[Value]) -> Result<Value, Fault> {
    let list = list(arguments, 1, "chunk")?;
    let size = usize::try_from(int(arguments, 0)).ok().filter(|size| *size > 0);
    let size = size.ok_or("a chunk has at least one item")?;
    let mut chunks = Vec::new();
    for items in list.items.chunks(size) {
        chunks.push(context.list(Element::Any, items.to_vec())?);
    }
    context.list(Element::List, chunks)
}

//! sprig's functions on emptiness, types and choices.

use super::{Function, Param, any, text};
use crate::object::template::VALUE_DEPTH_MAX;
use crate::object::template::context::{Context, Fault};
use crate::object::template::print::too_deep;
use crate::object::template::value::Value;
use Param::{Any, Bool, Text};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::with_rest("default", &[Any], Any, |_, arguments| {
        let given = any(arguments, 1);
        Ok(if is_empty(given) { any(arguments, 0).clone() } else { given.clone() })
    }),
    Function::new("empty", &[Any], |_, arguments| Ok(Value::Bool(is_empty(any(arguments, 0))))),
    Function::with_rest("coalesce", &[], Any, |_, arguments| {
        Ok(arguments.iter().find(|value| !is_empty(value)).cloned().unwrap_or(Value::Nil))
    }),
    Function::with_rest("all", &[], Any, |_, arguments| Ok(Value::Bool(!arguments.iter().any(is_empty)))),
    Function::with_rest("any", &[], Any, |_, arguments| {
        Ok(Value::Bool(arguments.iter().any(|value| !is_empty(value))))
    }),
    Function::new("ternary", &[Any, Any, Bool], |_, arguments| {
        Ok(any(arguments, usize::from(!any(arguments, 2).truth())).clone())
    }),
    Function::new("typeOf", &[Any], |_, arguments| Ok(Value::word(any(arguments, 0).type_name()))),
    Function::new("typeIs", &[Text, Any], |_, arguments| {
        Ok(Value::Bool(text(arguments, 0) == any(arguments, 1).type_name().as_bytes()))
    }),
    Function::new("typeIsLike", &[Text, Any], |_, arguments| {
        let (target, name) = (text(arguments, 0), any(arguments, 1).type_name().as_bytes());
        Ok(Value::Bool(target == name || name.strip_prefix(b"*") == Some(target)))
    }),
    Function::new("kindOf", &[Any], |_, arguments| Ok(Value::word(any(arguments, 0).kind_name()))),
    Function::new("kindIs", &[Text, Any], |_, arguments| {
        Ok(Value::Bool(text(arguments, 0) == any(arguments, 1).kind_name().as_bytes()))
    }),
    Function::new("deepEqual", &[Any, Any], |context, arguments| {
        deep_equal(context, any(arguments, 0), any(arguments, 1)).map(Value::Bool)
    }),
];

/// What `default` replaces: nothing, zero, false, and texts and containers with nothing in them.
pub(super) fn is_empty(value: &Value) -> bool {
    !value.truth()
}

/// Whether two values have the same type and the same content.
pub(super) fn deep_equal(context: &mut Context, first: &Value, second: &Value) -> Result<bool, Fault> {
    equal_at(context, first, second, 0)
}

#[allow(clippy::float_cmp, reason = "Go compares floats exactly")]
fn equal_at(context: &mut Context, first: &Value, second: &Value, depth: usize) -> Result<bool, Fault> {
    context.step(1)?;
    if depth > VALUE_DEPTH_MAX {
        return Err(too_deep());
    }
    Ok(match (first, second) {
        (Value::Bool(one), Value::Bool(two)) => one == two,
        (Value::Byte(one), Value::Byte(two)) => one == two,
        (Value::Float(one), Value::Float(two)) => one == two,
        (Value::Int(one), Value::Int(two)) | (Value::Int64(one), Value::Int64(two)) => one == two,
        (Value::Missing | Value::Nil, two) => two.is_nothing(),
        (Value::Text(one), Value::Text(two)) => {
            context.step(one.len() / 64)?;
            one == two
        }
        (Value::Uint64(one), Value::Uint64(two)) => one == two,
        (Value::Version(one), Value::Version(two)) => one == two,
        (Value::List(one), Value::List(two)) => {
            let alike = one.element == two.element && one.is_nil == two.is_nil;
            if !alike || one.items.len() != two.items.len() {
                return Ok(false);
            }
            for (one, two) in one.items.iter().zip(two.items.iter()) {
                if !equal_at(context, one, two, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Map(one), Value::Map(two)) => {
            if one.of_text != two.of_text || one.len() != two.len() {
                return Ok(false);
            }
            for ((key, one), (other, two)) in one.copied().iter().zip(two.copied().iter()) {
                if key != other || !equal_at(context, one, two, depth + 1)? {
                    return Ok(false);
                }
            }
            true
        }
        _ => false,
    })
}

//! Values as text: what an action writes, `print`, and the `%v` of `printf`.

use super::VALUE_DEPTH_MAX;
use super::context::{Context, Fault};
use super::value::{List, Map, Value};
use crate::secret::SecretBytes;

/// What an action writes of its value.
pub(super) fn shown(context: &mut Context, value: &Value) -> Result<SecretBytes, Fault> {
    let mut out = Vec::new();
    match value {
        Value::Missing | Value::Nil => out.extend_from_slice(b"<no value>"),
        value => write(context, &mut out, value)?,
    }
    Ok(SecretBytes::new(out))
}

/// The values one behind the other, with a blank between two that are no text, as Go's `Sprint`.
pub(super) fn joined(context: &mut Context, values: &[Value]) -> Result<Vec<u8>, Fault> {
    let mut out = Vec::new();
    let mut before_is_text = true;
    for value in values {
        let is_text = value.bytes().is_some();
        if !is_text && !before_is_text {
            out.push(b' ');
        }
        write(context, &mut out, value)?;
        before_is_text = is_text;
    }
    Ok(out)
}

/// What `html`, `js` and `urlquery` work on.
pub(super) fn escaped_input(context: &mut Context, values: &[Value]) -> Result<Vec<u8>, Fault> {
    if let [Value::Text(text)] = values {
        context.reserve(text.len())?;
        return Ok(text.expose_secret().to_vec());
    }
    let shown: Vec<Value> = values
        .iter()
        .map(|value| if value.is_nothing() { Value::word("<no value>") } else { value.clone() })
        .collect();
    joined(context, &shown)
}

/// The text of a value as sprig's `toString` takes it.
pub(super) fn text(context: &mut Context, value: &Value) -> Result<Vec<u8>, Fault> {
    let mut out = Vec::new();
    write(context, &mut out, value)?;
    Ok(out)
}

/// Appends the `%v` of a value.
pub(super) fn write(context: &mut Context, out: &mut Vec<u8>, value: &Value) -> Result<(), Fault> {
    write_at(context, out, value, 0)
}

fn write_at(context: &mut Context, out: &mut Vec<u8>, value: &Value, depth: usize) -> Result<(), Fault> {
    if depth > VALUE_DEPTH_MAX {
        return Err(too_deep());
    }
    let before = out.len();
    match value {
        Value::Bool(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Byte(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Float(value) => out.extend_from_slice(float(*value).as_bytes()),
        Value::Int(value) | Value::Int64(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::List(list) => return write_list(context, out, list, depth),
        Value::Map(map) => return write_map(context, out, map, depth),
        Value::Missing | Value::Nil => out.extend_from_slice(b"<nil>"),
        Value::Text(text) => {
            out.extend_from_slice(text.expose_secret());
        }
        Value::Uint64(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Version(version) => out.extend_from_slice(version.to_string().as_bytes()),
    }
    context.reserve(out.len() - before)
}

/// What is said of containers that nest too deeply or hold themselves.
pub(super) fn too_deep() -> Fault {
    format!("more than {VALUE_DEPTH_MAX} lists and maps in one another")
}

fn write_list(context: &mut Context, out: &mut Vec<u8>, list: &List, depth: usize) -> Result<(), Fault> {
    out.push(b'[');
    for (index, item) in list.items.iter().enumerate() {
        context.step(1)?;
        if index > 0 {
            out.push(b' ');
        }
        write_at(context, out, item, depth + 1)?;
    }
    out.push(b']');
    context.reserve(list.items.len() + 2)
}

fn write_map(context: &mut Context, out: &mut Vec<u8>, map: &Map, depth: usize) -> Result<(), Fault> {
    out.extend_from_slice(b"map[");
    for (index, (key, value)) in map.copied().iter().enumerate() {
        context.step(1)?;
        context.reserve(key.bytes().len() + 2)?;
        if index > 0 {
            out.push(b' ');
        }
        out.extend_from_slice(key.bytes());
        out.push(b':');
        write_at(context, out, value, depth + 1)?;
    }
    out.push(b']');
    context.reserve(2)
}

/// The shortest form of a float that reads back as it, as Go's `%v`.
pub(super) fn float(value: f64) -> String {
    float_general(value, None, false)
}

/// Go's `%g`: an exponent below 10^-4 and from 10^6 on where the form is the shortest, else from the precision on.
pub(super) fn float_general(value: f64, precision: Option<usize>, keep_zeros: bool) -> String {
    if !value.is_finite() {
        return not_finite(value);
    }
    let shown = match precision {
        None => format!("{value:e}"),
        Some(precision) => format!("{value:.*e}", precision.max(1) - 1),
    };
    let (mantissa, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let mut digits: String = mantissa.chars().filter(|digit| *digit != '.').collect();
    if !keep_zeros {
        let kept = digits.trim_end_matches('0').len().max(1);
        digits.truncate(kept);
    }
    let limit = match precision {
        None => 6,
        Some(precision) => {
            let precision = precision.max(1);
            let count = digits.len();
            let point = exponent + 1;
            let fits = precision > count && i32::try_from(count).is_ok_and(|count| count >= point);
            i32::try_from(if fits { count } else { precision }).unwrap_or(i32::MAX)
        }
    };
    if exponent < -4 || exponent >= limit {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{first}{point}{rest}e{exponent_sign}{:02}", exponent.unsigned_abs());
    }
    format!("{sign}{}", positional(&digits, exponent))
}

/// Digits with the point where the exponent says.
fn positional(digits: &str, exponent: i32) -> String {
    let Ok(whole) = usize::try_from(exponent + 1) else {
        let zeros = usize::try_from(-exponent - 1).unwrap_or(0);
        return format!("0.{}{digits}", "0".repeat(zeros));
    };
    if whole == 0 {
        return format!("0.{digits}");
    }
    if digits.len() <= whole {
        return format!("{digits}{}", "0".repeat(whole - digits.len()));
    }
    format!("{}.{}", &digits[..whole], &digits[whole..])
}

pub(super) fn not_finite(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value > 0.0 {
        "+Inf".to_owned()
    } else {
        "-Inf".to_owned()
    }
}

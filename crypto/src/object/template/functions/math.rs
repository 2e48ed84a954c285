//! sprig's arithmetic: integers of 64 bits that wrap, decimals, rounding and number lists.

use super::{Function, Param, any, float, int, rest};
use crate::object::template::LIST_ITEMS_MAX;
use crate::object::template::context::{Context, Fault};
use crate::object::template::literal::{parse_float, parse_int};
use crate::object::template::print;
use crate::object::template::value::{Element, Value};
use Param::{Any, Float, Int, Text};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("atoi", &[Text], |_, arguments| {
        let text = std::str::from_utf8(super::text(arguments, 0)).unwrap_or_default();
        Ok(Value::Int(text.parse().unwrap_or(0)))
    }),
    Function::new("int64", &[Any], |_, arguments| Ok(Value::Int64(to_int(any(arguments, 0))))),
    Function::new("int", &[Any], |_, arguments| Ok(Value::Int(to_int(any(arguments, 0))))),
    Function::new("float64", &[Any], |_, arguments| Ok(Value::Float(to_float(any(arguments, 0))))),
    Function::new("toDecimal", &[Any], |context, arguments| {
        let shown = print::text(context, any(arguments, 0))?;
        let octal = std::str::from_utf8(&shown).ok().filter(|text| !text.contains('_'));
        Ok(Value::Int64(octal.and_then(|text| i64::from_str_radix(text, 8).ok()).unwrap_or(0)))
    }),
    Function::with_rest("seq", &[], Int, sequence),
    Function::new("until", &[Int], |context, arguments| {
        let end = int(arguments, 0);
        let numbers = steps(0, end, if end < 0 { -1 } else { 1 })?;
        context.list(Element::Int, numbers.into_iter().map(Value::Int).collect())
    }),
    Function::new("untilStep", &[Int, Int, Int], |context, arguments| {
        let numbers = steps(int(arguments, 0), int(arguments, 1), int(arguments, 2))?;
        context.list(Element::Int, numbers.into_iter().map(Value::Int).collect())
    }),
    Function::new("add1", &[Any], |_, arguments| Ok(Value::Int64(to_int(any(arguments, 0)).wrapping_add(1)))),
    Function::with_rest("add", &[], Any, |_, arguments| {
        Ok(Value::Int64(arguments.iter().map(to_int).fold(0, i64::wrapping_add)))
    }),
    Function::new("sub", &[Any, Any], |_, arguments| {
        Ok(Value::Int64(to_int(any(arguments, 0)).wrapping_sub(to_int(any(arguments, 1)))))
    }),
    Function::new("div", &[Any, Any], |_, arguments| divided(arguments, i64::wrapping_div)),
    Function::new("mod", &[Any, Any], |_, arguments| divided(arguments, i64::wrapping_rem)),
    Function::with_rest("mul", &[Any], Any, |_, arguments| {
        Ok(Value::Int64(arguments.iter().map(to_int).fold(1, i64::wrapping_mul)))
    }),
    Function::with_rest("max", &[Any], Any, |_, arguments| extreme(arguments, i64::max)),
    Function::with_rest("biggest", &[Any], Any, |_, arguments| extreme(arguments, i64::max)),
    Function::with_rest("min", &[Any], Any, |_, arguments| extreme(arguments, i64::min)),
    Function::with_rest("maxf", &[Any], Any, |_, arguments| {
        let or_nan = |one: f64, two: f64| if one.is_nan() || two.is_nan() { f64::NAN } else { one.max(two) };
        Ok(Value::Float(arguments.iter().map(to_float).reduce(or_nan).unwrap_or(0.0)))
    }),
    Function::with_rest("minf", &[Any], Any, |_, arguments| {
        let or_nan = |one: f64, two: f64| if one.is_nan() || two.is_nan() { f64::NAN } else { one.min(two) };
        Ok(Value::Float(arguments.iter().map(to_float).reduce(or_nan).unwrap_or(0.0)))
    }),
    Function::new("ceil", &[Any], |_, arguments| Ok(Value::Float(to_float(any(arguments, 0)).ceil()))),
    Function::new("floor", &[Any], |_, arguments| Ok(Value::Float(to_float(any(arguments, 0)).floor()))),
    Function::with_rest("round", &[Any, Int], Float, round),
    Function::new("add1f", &[Any], |_, arguments| {
        decimal(any(arguments, 0), &[Value::Int(1)], Operation::Add)
    }),
    Function::with_rest("addf", &[], Any, |_, arguments| decimal(&Value::Int(0), arguments, Operation::Add)),
    Function::with_rest("subf", &[Any], Any, |_, arguments| {
        decimal(any(arguments, 0), rest(arguments, 1), Operation::Subtract)
    }),
    Function::with_rest("mulf", &[Any], Any, |_, arguments| {
        decimal(any(arguments, 0), rest(arguments, 1), Operation::Multiply)
    }),
    Function::with_rest("divf", &[Any], Any, |_, arguments| {
        decimal(any(arguments, 0), rest(arguments, 1), Operation::Divide)
    }),
];

/// A text without a fraction of zeros.
fn trimmed(text: &str) -> &str {
    match text.rsplit_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|digit| digit == b'0') => whole,
        _ => text,
    }
}

/// Any value as an integer; what is none is 0.
pub(super) fn to_int(value: &Value) -> i64 {
    match value {
        Value::Bool(value) => i64::from(*value),
        Value::Byte(value) => i64::from(*value),
        Value::Float(value) => float_to_int(*value),
        Value::Int(value) | Value::Int64(value) => *value,
        Value::Text(text) => {
            let text = text.as_text().map(trimmed).and_then(parse_int);
            text.and_then(Result::ok).unwrap_or(0)
        }
        Value::Uint64(value) => value.cast_signed(),
        Value::List(_) | Value::Map(_) | Value::Missing | Value::Nil | Value::Version(_) => 0,
    }
}

/// As the processor does it for Go: what does not fit is the least integer.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "the range is checked")]
fn float_to_int(value: f64) -> i64 {
    if value >= i64::MIN as f64 && value < i64::MAX as f64 { value as i64 } else { i64::MIN }
}

/// Any value as a float; what is none is 0.
#[allow(clippy::cast_precision_loss, reason = "as Go converts")]
fn to_float(value: &Value) -> f64 {
    match value {
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::Byte(value) => f64::from(*value),
        Value::Float(value) => *value,
        Value::Int(value) | Value::Int64(value) => *value as f64,
        Value::Text(text) => text.as_text().and_then(float_of_text).unwrap_or(0.0),
        Value::Uint64(value) => *value as f64,
        Value::List(_) | Value::Map(_) | Value::Missing | Value::Nil | Value::Version(_) => 0.0,
    }
}

fn float_of_text(text: &str) -> Option<f64> {
    match text.to_ascii_lowercase().trim_start_matches(['+', '-']) {
        "inf" | "infinity" if text.starts_with('-') => Some(f64::NEG_INFINITY),
        "inf" | "infinity" => Some(f64::INFINITY),
        "nan" if !text.starts_with(['+', '-']) => Some(f64::NAN),
        _ => parse_float(text).filter(|float| float.is_finite()),
    }
}

fn divided(arguments: &[Value], divide: fn(i64, i64) -> i64) -> Result<Value, Fault> {
    match to_int(any(arguments, 1)) {
        0 => Err("integer divide by zero".to_owned()),
        divisor => Ok(Value::Int64(divide(to_int(any(arguments, 0)), divisor))),
    }
}

fn extreme(arguments: &[Value], choose: fn(i64, i64) -> i64) -> Result<Value, Fault> {
    Ok(Value::Int64(arguments.iter().map(to_int).reduce(choose).unwrap_or(0)))
}

fn round(_: &mut Context, arguments: &[Value]) -> Result<Value, Fault> {
    let from = if arguments.len() > 2 { float(arguments, 2) } else { 0.5 };
    let places =
        i32::try_from(int(arguments, 1)).unwrap_or(if int(arguments, 1) < 0 { i32::MIN } else { i32::MAX });
    let power = 10f64.powi(places);
    let shifted = power * to_float(any(arguments, 0));
    let rounded = if shifted.fract() >= from { shifted.ceil() } else { shifted.floor() };
    Ok(Value::Float(rounded / power))
}

fn steps(start: i64, end: i64, step: i64) -> Result<Vec<i64>, Fault> {
    let mut numbers = Vec::new();
    let runs = |at: i64| if end < start { step < 0 && at > end } else { step > 0 && at < end };
    let mut at = start;
    while runs(at) {
        if numbers.len() >= LIST_ITEMS_MAX {
            return Err(format!("a list would have more than {LIST_ITEMS_MAX} items"));
        }
        numbers.push(at);
        match at.checked_add(step) {
            Some(next) => at = next,
            None => break,
        }
    }
    Ok(numbers)
}

/// The numbers from a start to an end that is among them.
fn sequence(context: &mut Context, arguments: &[Value]) -> Result<Value, Fault> {
    let (start, step, end) = match arguments.len() {
        1 => (1, None, int(arguments, 0)),
        2 => (int(arguments, 0), None, int(arguments, 1)),
        3 => (int(arguments, 0), Some(int(arguments, 1)), int(arguments, 2)),
        _ => return context.text(Vec::new()),
    };
    let direction = if end < start { -1 } else { 1 };
    if direction < 0 && step.is_some_and(|step| step > 0) {
        return context.text(Vec::new());
    }
    let numbers = steps(start, end.wrapping_add(direction), step.unwrap_or(direction))?;
    context.reserve_items(numbers.len())?;
    let shown: Vec<String> = numbers.iter().map(i64::to_string).collect();
    context.text(shown.join(" "))
}

#[derive(Clone, Copy)]
enum Operation {
    Add,
    Divide,
    Multiply,
    Subtract,
}

/// A decimal number: an integer and how many of its digits stand behind the point.
#[derive(Clone, Copy)]
struct Decimal {
    digits: i128,
    scale: u32,
}

/// Digits behind the point that a quotient keeps.
const QUOTIENT_DIGITS: u32 = 16;

impl Decimal {
    fn of(value: f64) -> Option<Self> {
        let shown = format!("{value}");
        let (whole, fraction) = shown.split_once('.').unwrap_or((&shown, ""));
        let digits = format!("{whole}{fraction}").parse().ok()?;
        Some(Self { digits, scale: u32::try_from(fraction.len()).ok()? })
    }

    fn scaled(self, scale: u32) -> Option<i128> {
        self.digits.checked_mul(10i128.checked_pow(scale.checked_sub(self.scale)?)?)
    }

    fn apply(self, other: Self, operation: Operation) -> Option<Self> {
        let scale = self.scale.max(other.scale);
        let (one, two) = (self.scaled(scale)?, other.scaled(scale)?);
        match operation {
            Operation::Add => Some(Self { digits: one.checked_add(two)?, scale }),
            Operation::Subtract => Some(Self { digits: one.checked_sub(two)?, scale }),
            Operation::Multiply => {
                let digits = self.digits.checked_mul(other.digits)?;
                Some(Self { digits, scale: self.scale + other.scale })
            }
            Operation::Divide => {
                let dividend = one.checked_mul(10i128.checked_pow(QUOTIENT_DIGITS)?)?;
                let (quotient, remainder) = (dividend.checked_div(two)?, dividend.checked_rem(two)?);
                let up = remainder.checked_abs()?.checked_mul(2)? >= two.checked_abs()?;
                let sign = if (dividend < 0) == (two < 0) { 1 } else { -1 };
                Some(Self { digits: quotient + if up { sign } else { 0 }, scale: QUOTIENT_DIGITS })
            }
        }
    }

    fn float(self) -> f64 {
        format!("{}e-{}", self.digits, self.scale).parse().unwrap_or(f64::NAN)
    }
}

/// Decimal arithmetic from left to right; in floats where the digits are too many for it.
fn decimal(first: &Value, others: &[Value], operation: Operation) -> Result<Value, Fault> {
    let mut result = to_float(first);
    let mut exact = Decimal::of(result);
    for other in others {
        let other = to_float(other);
        if matches!(operation, Operation::Divide) && other == 0.0 {
            return Err("decimal division by 0".to_owned());
        }
        if !result.is_finite() || !other.is_finite() {
            return Err("a decimal is finite".to_owned());
        }
        exact = match (exact, Decimal::of(other)) {
            (Some(one), Some(two)) => one.apply(two, operation),
            _ => None,
        };
        result = match (exact, operation) {
            (Some(exact), _) => exact.float(),
            (None, Operation::Add) => result + other,
            (None, Operation::Subtract) => result - other,
            (None, Operation::Multiply) => result * other,
            (None, Operation::Divide) => result / other,
        };
        if exact.is_none() {
            exact = Decimal::of(result);
        }
    }
    Ok(Value::Float(result))
}

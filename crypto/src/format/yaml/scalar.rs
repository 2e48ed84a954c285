//! The type of a YAML scalar, exactly as stock tools see it, since the type decides the MAC.
//!
//! The rules are those of Go's yaml.v3: YAML 1.2's core schema with remains of 1.1 (`0777` is octal, `1_000` is an
//! integer, `yes` is text) and bare dates as timestamps.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::format::yaml::timestamp;
use crate::secret::SecretBytes;
use crate::value::{Value, ValueType, float_text};

/// What a scalar resolves to, or why it cannot be part of a sealed file.
pub(crate) type Resolved = Result<Value, String>;

/// Resolves a scalar: `tag` is the short form of its core tag, when it has one; `plain` whether it is unquoted.
pub(crate) fn resolve(text: &str, tag: Option<&str>, plain: bool) -> Resolved {
    match tag {
        None if plain => implicit(text),
        None | Some("str") => Ok(Value::text(text)),
        Some("binary") => binary(text),
        // Stock tools print merge keys with their tag.
        Some("merge") if text == "<<" => Ok(Value::text(text)),
        Some(tag) => explicit(text, tag),
    }
}

/// Whether an unquoted scalar without a tag is text.
pub(super) fn is_text(text: &str) -> bool {
    match text.as_bytes().first() {
        // No other text makes a value of another type without one of these in front.
        Some(b'.' | b'+' | b'-' | b'0'..=b'9') => other_than_text(text).is_ok_and(|value| value.is_none()),
        _ => constant(text).is_none(),
    }
}

fn binary(text: &str) -> Resolved {
    // Go's base64 skips line breaks and nothing else.
    let compact: String = text.chars().filter(|character| !matches!(character, '\n' | '\r')).collect();
    let bytes = STANDARD.decode(compact).map_err(|_| {
        "a !!binary value is not valid base64, in which other readers take no spaces".to_owned()
    })?;
    Ok(Value::Typed(ValueType::Str, SecretBytes::new(bytes)))
}

/// Core tags convert only where the untagged value already has that type, or an integer becomes a float.
fn explicit(text: &str, tag: &str) -> Resolved {
    let value = implicit(text)?;
    let word = value.kind().map_or("null", ValueType::word);
    match tag {
        "float" if word == "int" => {
            let int: i64 = value.as_text().and_then(|text| text.parse().ok()).unwrap_or_default();
            Ok(typed(ValueType::Float, float_text(int as f64)))
        }
        "timestamp" if word == "time" => Ok(value),
        _ if tag == word => Ok(value),
        _ => Err(format!("the value cannot be read as !!{tag}; other tools would silently make it null")),
    }
}

fn implicit(text: &str) -> Resolved {
    other_than_text(text).map(|value| value.unwrap_or_else(|| Value::text(text)))
}

/// What an unquoted scalar without a tag resolves to when it is not text.
///
/// # Errors
/// Why it cannot be part of a sealed file.
pub(super) fn other_than_text(text: &str) -> Result<Option<Value>, String> {
    match text.as_bytes().first() {
        Some(b'.') => Ok(constant(text).or_else(|| parse_float(text))),
        Some(b'+' | b'-' | b'0'..=b'9') => match constant(text) {
            None => number_or_time(text),
            constant => Ok(constant),
        },
        _ => Ok(constant(text)),
    }
}

fn constant(text: &str) -> Option<Value> {
    let float = |text: &str| Some(typed(ValueType::Float, text.to_owned()));
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Some(Value::Null),
        "true" | "True" | "TRUE" => Some(typed(ValueType::Bool, "True".to_owned())),
        "false" | "False" | "FALSE" => Some(typed(ValueType::Bool, "False".to_owned())),
        ".nan" | ".NaN" | ".NAN" => float("NaN"),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => float("+Inf"),
        "-.inf" | "-.Inf" | "-.INF" => float("-Inf"),
        _ => None,
    }
}

fn number_or_time(text: &str) -> Result<Option<Value>, String> {
    if let Some(time) = timestamp::canonical(text) {
        return Ok(Some(typed(ValueType::Time, time)));
    }
    let digits = text.replace('_', "");
    if let Some(int) = parse_int(&digits) {
        return i64::try_from(int).map(|int| Some(typed(ValueType::Int, int.to_string()))).map_err(|_| {
            "an integer beyond 64 bits with sign cannot be kept exactly by other tools; quote it".to_owned()
        });
    }
    Ok(parse_float(&digits))
}

/// An integer in any base that Go's `ParseInt` knows, within i64, or beyond it within u64; nothing when it is none.
fn parse_int(digits: &str) -> Option<i128> {
    let (negative, unsigned) = match digits.as_bytes().first()? {
        b'-' => (true, &digits[1..]),
        b'+' => (false, &digits[1..]),
        _ => (false, digits),
    };
    let (radix, body) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &unsigned[2..]),
        [b'0', b'o' | b'O', ..] => (8, &unsigned[2..]),
        [b'0', b'b' | b'B', ..] => (2, &unsigned[2..]),
        [b'0', _, ..] => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    if body.is_empty() || body.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = i128::from(u64::from_str_radix(body, radix).ok()?);
    let int = if negative { -magnitude } else { magnitude };
    let has_sign = digits.starts_with(['+', '-']);
    (int >= i128::from(i64::MIN) && (int <= i128::from(i64::MAX) || !has_sign)).then_some(int)
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_decimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(found) => (&unsigned[..found], Some(&unsigned[found + 1..])),
        None => (unsigned, None),
    };
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && all_digits(fraction),
        Some((whole, fraction)) => all_digits(whole) && all_digits(fraction),
        None => !mantissa.is_empty() && all_digits(mantissa),
    };
    let exponent_fits = exponent.is_none_or(|exponent| {
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits)
    });
    mantissa_fits && exponent_fits
}

/// A finite float as Go's `ParseFloat` reads decimal text; nothing when it is out of range or no number.
fn parse_float(text: &str) -> Option<Value> {
    if !is_decimal(text) {
        return None;
    }
    let float: f64 = text.parse().ok()?;
    float.is_finite().then(|| typed(ValueType::Float, float_text(float)))
}

fn typed(kind: ValueType, text: String) -> Value {
    Value::Typed(kind, SecretBytes::new(text.into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of stock sops 3.13 for the same scalars (reference: the encrypted type word and the MAC's bytes).
    #[test]
    fn plain_scalars_have_the_types_of_stock_tools() {
        let cases = [
            ("", "null", ""),
            ("~", "null", ""),
            ("nULL", "str", "nULL"),
            ("True", "bool", "True"),
            ("tRUE", "str", "tRUE"),
            ("yes", "str", "yes"),
            ("017", "int", "15"),
            ("0o17", "int", "15"),
            ("0777", "int", "511"),
            ("0xFF", "int", "255"),
            ("0b11", "int", "3"),
            ("-0b11", "int", "-3"),
            ("1_000", "int", "1000"),
            ("+12", "int", "12"),
            ("-0", "int", "0"),
            ("08", "float", "8"),
            ("1.", "float", "1"),
            (".5", "float", "0.5"),
            ("+.5", "float", "0.5"),
            ("1e3", "float", "1000"),
            ("-0.0", "float", "-0"),
            ("1:30", "str", "1:30"),
            ("190:20:30", "str", "190:20:30"),
            ("1e400", "str", "1e400"),
            ("0o8", "str", "0o8"),
            ("-9223372036854775808", "int", "-9223372036854775808"),
            ("-9223372036854775809", "float", "-9223372036854776000"),
            ("123456789012345678901234567890", "float", "123456789012345680000000000000"),
            (".inf", "float", "+Inf"),
            ("-.INF", "float", "-Inf"),
            (".nan", "float", "NaN"),
            (".", "str", "."),
            ("-", "str", "-"),
            ("<<", "str", "<<"),
            ("=", "str", "="),
            ("2024-01-02", "time", "2024-01-02T00:00:00Z"),
            ("2001-12-14 21:59:43", "time", "2001-12-14T21:59:43Z"),
            ("2024-13-02", "str", "2024-13-02"),
        ];
        for (text, word, bytes) in cases {
            let value = resolve(text, None, true).unwrap();
            assert_eq!(value.kind().map_or("null", ValueType::word), word, "{text}");
            assert_eq!(value.as_text(), Some(bytes), "{text}");
        }
    }

    #[test]
    fn integers_that_only_fit_unsigned_are_refused() {
        assert!(resolve("9223372036854775808", None, true).is_err());
        assert!(resolve("18446744073709551615", None, true).is_err());
        assert!(resolve("18446744073709551615", None, false).is_ok());
    }

    #[test]
    fn core_tags_convert_only_what_already_fits() {
        assert_eq!(resolve("5", Some("float"), true).unwrap().kind(), Some(ValueType::Float));
        assert_eq!(resolve("5", Some("str"), true).unwrap(), Value::text("5"));
        assert_eq!(resolve("aGk=", Some("binary"), true).unwrap(), Value::text("hi"));
        for (text, tag) in [("abc", "int"), ("yes", "bool"), ("x", "null"), ("1.5", "int"), ("!", "binary")] {
            assert!(resolve(text, Some(tag), true).is_err(), "!!{tag} {text}");
        }
    }
}

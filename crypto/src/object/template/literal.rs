//! Strings, characters and numbers as Go writes them.

use super::node::Number;

/// The bytes of a quoted string, of a raw one, or the one character between single quotes.
pub(super) fn unquote(source: &str) -> Option<Vec<u8>> {
    let quote = source.chars().next()?;
    let inner = source.strip_prefix(quote)?.strip_suffix(quote)?;
    if quote == '`' {
        return Some(inner.bytes().filter(|byte| *byte != b'\r').collect());
    }
    let mut bytes = Vec::new();
    let mut rest = inner;
    while !rest.is_empty() {
        let (next, length) = unescape(rest, quote)?;
        match next {
            Escaped::Byte(byte) => bytes.push(byte),
            Escaped::Char(next) => bytes.extend_from_slice(next.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        rest = &rest[length..];
    }
    Some(bytes)
}

enum Escaped {
    Byte(u8),
    Char(char),
}

/// The first character of `rest` and how long it is written.
fn unescape(rest: &str, quote: char) -> Option<(Escaped, usize)> {
    let mut chars = rest.chars();
    let first = chars.next()?;
    if first != '\\' {
        return (first != quote && first != '\n').then_some((Escaped::Char(first), first.len_utf8()));
    }
    let kind = chars.next()?;
    let simple = |value| Some((Escaped::Char(value), 2));
    match kind {
        'a' => simple('\x07'),
        'b' => simple('\x08'),
        'f' => simple('\x0c'),
        'n' => simple('\n'),
        'r' => simple('\r'),
        't' => simple('\t'),
        'v' => simple('\x0b'),
        '\\' => simple('\\'),
        '\'' | '"' if kind == quote => simple(kind),
        'x' => {
            let byte = u8::from_str_radix(digits(rest, 2, 2, 16)?, 16).ok()?;
            Some((Escaped::Byte(byte), 4))
        }
        'u' => Some((Escaped::Char(scalar(digits(rest, 2, 4, 16)?)?), 6)),
        'U' => Some((Escaped::Char(scalar(digits(rest, 2, 8, 16)?)?), 10)),
        '0'..='7' => {
            let byte = u8::try_from(u32::from_str_radix(digits(rest, 1, 3, 8)?, 8).ok()?).ok()?;
            Some((Escaped::Byte(byte), 4))
        }
        _ => None,
    }
}

fn digits(rest: &str, from: usize, count: usize, radix: u32) -> Option<&str> {
    rest.get(from..from + count).filter(|digits| digits.chars().all(|digit| digit.is_digit(radix)))
}

fn scalar(digits: &str) -> Option<char> {
    char::from_u32(u32::from_str_radix(digits, 16).ok()?)
}

/// The character constant `'x'` as a number.
pub(super) fn character(source: &str) -> Option<Number> {
    let inner = source.strip_prefix('\'')?.strip_suffix('\'')?;
    let (value, length) = unescape(inner, '\'')?;
    if length != inner.len() {
        return None;
    }
    let int = match value {
        Escaped::Byte(byte) => i64::from(byte),
        Escaped::Char(value) => i64::from(u32::from(value)),
    };
    #[allow(clippy::cast_precision_loss, reason = "a character has 21 bits")]
    let float = int as f64;
    Some(Number { source: source.to_owned(), int: Some(int), float: Some(float), is_float: false })
}

/// A number constant. Those that no Go integer or float can hold are refused, and so are imaginary ones.
pub(super) fn number(source: &str) -> Result<Number, String> {
    if source.ends_with('i') {
        return Err(format!("complex number {source} is not supported"));
    }
    let bad = || format!("bad number syntax: {source:?}");
    let has_float_sign = !is_hex_int(source) && source.contains(['.', 'e', 'E', 'p', 'P']);
    if let Some(int) = parse_int(source) {
        let int = int.map_err(|()| format!("integer overflow: {source:?}"))?;
        #[allow(clippy::cast_precision_loss, reason = "as Go converts a constant")]
        let float = int as f64;
        return Ok(Number { source: source.to_owned(), int: Some(int), float: Some(float), is_float: false });
    }
    if !has_float_sign {
        return Err(bad());
    }
    let float = parse_float(source).filter(|float| float.is_finite()).ok_or_else(bad)?;
    #[allow(clippy::cast_possible_truncation, reason = "compared with the float again")]
    let int = float as i64;
    #[allow(clippy::cast_precision_loss, clippy::float_cmp, reason = "whether the float is a whole number")]
    let whole = int as f64 == float;
    Ok(Number { source: source.to_owned(), int: whole.then_some(int), float: Some(float), is_float: true })
}

fn is_hex_int(source: &str) -> bool {
    let prefixed = source.starts_with("0x") || source.starts_with("0X");
    prefixed && !source.contains(['p', 'P', '.'])
}

/// An integer with the prefixes and underscores of Go's base 0; `Err` when it is one but too large.
pub(super) fn parse_int(source: &str) -> Option<Result<i64, ()>> {
    let (negative, rest) = match source.as_bytes().first()? {
        b'-' => (true, &source[1..]),
        b'+' => (false, &source[1..]),
        _ => (false, source),
    };
    let lower = rest.to_ascii_lowercase();
    let (radix, body, prefixed) = if let Some(body) = lower.strip_prefix("0x") {
        (16, body, true)
    } else if let Some(body) = lower.strip_prefix("0o") {
        (8, body, true)
    } else if let Some(body) = lower.strip_prefix("0b") {
        (2, body, true)
    } else if lower.len() > 1 && lower.starts_with('0') {
        (8, &lower[1..], true)
    } else {
        (10, lower.as_str(), false)
    };
    // An underscore stands between digits, or between a prefix and a digit.
    let misplaced = body.ends_with('_') || body.contains("__") || (body.starts_with('_') && !prefixed);
    let digits: String = body.chars().filter(|digit| *digit != '_').collect();
    if misplaced || digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let signed = if negative { format!("-{digits}") } else { digits };
    Some(i64::from_str_radix(&signed, radix).map_err(|_| ()))
}

/// A float with Go's underscores and hexadecimal form.
pub(super) fn parse_float(source: &str) -> Option<f64> {
    let lower = source.to_ascii_lowercase();
    let (sign, body) = match lower.strip_prefix('-') {
        Some(body) => (-1.0, body),
        None => (1.0, lower.strip_prefix('+').unwrap_or(&lower)),
    };
    let Some(hex) = body.strip_prefix("0x") else {
        if body.contains('_') || !body.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
            return None;
        }
        return body.parse::<f64>().ok().map(|float| sign * float);
    };
    let (mantissa, exponent) = hex.split_once('p')?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut value = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let shift = exponent.parse::<i32>().ok()? - 4 * i32::try_from(fraction.len()).ok()?;
    Some(sign * value * 2f64.powi(shift))
}

//! What a word without quotes means to the tools of Kubernetes, which read YAML 1.1.
//!
//! They read `n` as false, `1.10` as 1.1 and `010` as 8, and where text is wanted they put the text of that in its place. So
//! a word is either text to them, or a value that is printed as it was typed, or one that is not: a namespace `n`
//! would become `false` without a word.

use std::borrow::Cow;

/// A word as they take it.
#[derive(Debug, PartialEq)]
pub(super) enum Word<'t> {
    /// A boolean.
    Bool(bool),
    /// Nothing at all.
    Null,
    /// A number, as they print it.
    Number(String),
    /// The text that it looks like.
    Text(&'t str),
}

impl Word<'_> {
    /// Their text for it where text is wanted.
    pub(super) fn as_text(&self) -> &str {
        match self {
            Self::Bool(true) => "true",
            Self::Bool(false) => "false",
            Self::Null => "",
            Self::Number(text) => text,
            Self::Text(text) => text,
        }
    }
}

/// What `word`, a plain scalar on one line, is to them.
pub(super) fn read(word: &str) -> Word<'_> {
    match word {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Word::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Word::Bool(false)
        }
        "" | "~" | "null" | "Null" | "NULL" => Word::Null,
        ".nan" | ".NaN" | ".NAN" => Word::Number("NaN".to_owned()),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Word::Number("+Inf".to_owned()),
        "-.inf" | "-.Inf" | "-.INF" => Word::Number("-Inf".to_owned()),
        _ => number(word).map_or(Word::Text(word), Word::Number),
    }
}

fn number(word: &str) -> Option<String> {
    let first = word.bytes().next()?;
    let digits: Cow<'_, str> = match first {
        b'.' => return float(word),
        b'+' | b'-' | b'0'..=b'9' if word.contains('_') => word.replace('_', "").into(),
        b'+' | b'-' | b'0'..=b'9' => word.into(),
        _ => return None,
    };
    if let Some(whole) = whole_number(&digits) {
        return Some(whole.to_string());
    }
    float(&digits)
}

/// What is too large for a number is none.
fn float(text: &str) -> Option<String> {
    let value: f64 = is_float(text).then(|| text.parse().ok()).flatten()?;
    value.is_finite().then(|| printed(value))
}

/// A whole number of 64 bits with a prefix for its base; a zero in front is one, too.
fn whole_number(text: &str) -> Option<i128> {
    let (sign, rest) = match text.as_bytes() {
        [b'-', ..] => (-1, &text[1..]),
        [b'+', ..] => (1, &text[1..]),
        _ => (1, text),
    };
    let (base, digits) = match rest.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &rest[2..]),
        [b'0', b'o' | b'O', ..] => (8, &rest[2..]),
        [b'0', b'b' | b'B', ..] => (2, &rest[2..]),
        [b'0', _, ..] => (8, &rest[1..]),
        _ => (10, rest),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let value = sign * i128::from_str_radix(digits, base).ok()?;
    let has_sign = rest.len() < text.len();
    let largest = if has_sign { i128::from(i64::MAX) } else { i128::from(u64::MAX) };
    (i128::from(i64::MIN)..=largest).contains(&value).then_some(value)
}

/// Digits with a point and an exponent, as YAML has them.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_mantissa = match mantissa.split_once('.') {
        Some(("", after)) => all_digits(after),
        Some((before, after)) => all_digits(before) && (after.is_empty() || all_digits(after)),
        None => all_digits(mantissa),
    };
    is_mantissa
        && exponent.is_none_or(|exponent| all_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}

/// The shortest digits that stand for `value`, with an exponent below a ten-thousandth and above a million.
fn printed(value: f64) -> String {
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.abs())
        }
        _ => format!("{value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_what_the_tools_of_kubernetes_make_of_them() {
        for (word, text) in [
            ("n", "false"),
            ("Yes", "true"),
            ("on", "true"),
            ("yEs", "yEs"),
            ("~", ""),
            ("10", "10"),
            ("-1", "-1"),
            ("+1", "1"),
            ("1.10", "1.1"),
            ("1.5", "1.5"),
            ("007", "7"),
            ("08", "8"),
            ("0o17", "15"),
            ("0x1F", "31"),
            ("0b11", "3"),
            ("1_000", "1000"),
            ("1e3", "1000"),
            ("1e", "1e"),
            ("1.", "1"),
            (".5", "0.5"),
            ("12e03", "12000"),
            ("1234567.5", "1.2345675e+06"),
            ("0.00001", "1e-05"),
            ("18446744073709551615", "18446744073709551615"),
            (".inf", "+Inf"),
            ("1.2.3", "1.2.3"),
            ("12:30", "12:30"),
            ("10.0.0.1:8080", "10.0.0.1:8080"),
            ("2024-01-02", "2024-01-02"),
            ("0x", "0x"),
            ("-", "-"),
            ("bGFuZA==", "bGFuZA=="),
            ("0777e", "0777e"),
        ] {
            assert_eq!(read(word).as_text(), text, "{word}");
        }
    }
}

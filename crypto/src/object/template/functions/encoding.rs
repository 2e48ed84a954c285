//! sprig's encodings and digests.

use aws_lc_rs::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, SHA512, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{Function, Param, text};
use crate::object::template::context::{Context, Fault};
use crate::object::template::value::Value;
use Param::{Any, Text};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("b64enc", &[Text], |context, arguments| {
        context.reserve(text(arguments, 0).len() * 2)?;
        context.text(STANDARD.encode(text(arguments, 0)))
    }),
    Function::new("b64dec", &[Text], |context, arguments| {
        // What is no base64 gives the peer's complaint as its text.
        let input = text(arguments, 0);
        match from_base64(input) {
            Ok(bytes) => context.text(bytes),
            Err(at) => context.text(format!("illegal base64 data at input byte {at}")),
        }
    }),
    Function::new("b32enc", &[Text], |context, arguments| {
        context.reserve(text(arguments, 0).len() * 2)?;
        context.text(base32(text(arguments, 0)))
    }),
    Function::new("b32dec", &[Text], |context, arguments| match from_base32(text(arguments, 0)) {
        Ok(bytes) => context.text(bytes),
        Err(at) => context.text(format!("illegal base32 data at input byte {at}")),
    }),
    Function::new("sha1sum", &[Text], |context, arguments| {
        sum(context, &SHA1_FOR_LEGACY_USE_ONLY, text(arguments, 0))
    }),
    Function::new("sha256sum", &[Text], |context, arguments| sum(context, &SHA256, text(arguments, 0))),
    Function::new("sha512sum", &[Text], |context, arguments| sum(context, &SHA512, text(arguments, 0))),
    Function::new("adler32sum", &[Text], |context, arguments| {
        context.step(text(arguments, 0).len() / 64)?;
        context.text(adler32(text(arguments, 0)).to_string())
    }),
    Function::new("duration", &[Any], |context, arguments| {
        let seconds = match super::any(arguments, 0) {
            Value::Int64(value) => *value,
            Value::Text(text) => text.as_text().and_then(|text| text.parse().ok()).unwrap_or(0),
            _ => 0,
        };
        context.text(duration(seconds))
    }),
    Function::new("durationRound", &[Any], |context, arguments| {
        let nanoseconds = match super::any(arguments, 0) {
            Value::Int64(value) => *value,
            Value::Text(text) => text.as_text().and_then(parse_duration).unwrap_or(0),
            _ => 0,
        };
        context.text(rounded(nanoseconds))
    }),
];

fn sum(context: &mut Context, algorithm: &'static Algorithm, bytes: &[u8]) -> Result<Value, Fault> {
    context.step(bytes.len() / 16)?;
    let hex: String = digest(algorithm, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    context.text(hex)
}

fn adler32(bytes: &[u8]) -> u32 {
    const PRIME: u32 = 65521;
    let (mut low, mut high) = (1u32, 0u32);
    for byte in bytes {
        low = (low + u32::from(*byte)) % PRIME;
        high = (high + low) % PRIME;
    }
    (high << 16) | low
}

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn base32(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len().div_ceil(5) * 8);
    for group in bytes.chunks(5) {
        let bits = (0..5).fold(0u64, |bits, at| (bits << 8) | u64::from(group.get(at).copied().unwrap_or(0)));
        let used = (group.len() * 8).div_ceil(5);
        for at in 0..8 {
            let digit = usize::try_from((bits >> (35 - 5 * at)) & 31).unwrap_or(0);
            out.push(if at < used { BASE32[digit] } else { b'=' });
        }
    }
    out
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The bytes, or where the text stops being base64 as Go counts it. Line ends are skipped, and the bits behind the last
/// byte may be any.
fn from_base64(text: &[u8]) -> Result<Vec<u8>, usize> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let mut at = 0;
    let skip = |at: &mut usize| {
        while matches!(text.get(*at), Some(b'\n' | b'\r')) {
            *at += 1;
        }
    };
    loop {
        let (mut bits, mut count) = (0u32, 0usize);
        while count < 4 {
            let Some(byte) = text.get(at) else {
                return if count == 0 { Ok(out) } else { Err(at - count) };
            };
            at += 1;
            match BASE64.iter().position(|known| known == byte) {
                Some(digit) => {
                    bits = (bits << 6) | u32::try_from(digit).unwrap_or(0);
                    count += 1;
                }
                None if matches!(byte, b'\n' | b'\r') => {}
                None if *byte == b'=' && count >= 2 => break,
                None => return Err(at - 1),
            }
        }
        if count < 4 {
            if count == 2 {
                skip(&mut at);
                match text.get(at) {
                    None => return Err(text.len()),
                    Some(b'=') => at += 1,
                    Some(_) => return Err(at - 1),
                }
            }
            skip(&mut at);
            if at < text.len() {
                return Err(at);
            }
        }
        let bytes = (bits << (6 * (4 - count))).to_be_bytes();
        out.extend_from_slice(&bytes[1..=count * 6 / 8]);
        if count < 4 {
            return Ok(out);
        }
    }
}

/// The bytes, or where the text stops being base32 as Go counts it, without line ends.
fn from_base32(text: &[u8]) -> Result<Vec<u8>, usize> {
    let digits: Vec<u8> = text.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let mut out = Vec::with_capacity(digits.len() / 8 * 5);
    let mut at = 0;
    let mut ended = false;
    while at < digits.len() && !ended {
        let (mut bits, mut count) = (0u64, 0usize);
        while count < 8 {
            let Some(digit) = digits.get(at) else { return Err(at - count) };
            at += 1;
            let left = digits.len() - at;
            if *digit == b'=' && count >= 2 && left < 8 {
                if left + count < 7 {
                    return Err(digits.len());
                }
                if let Some(wrong) =
                    (0..7 - count).find(|index| digits.get(at + index).is_some_and(|next| *next != b'='))
                {
                    return Err((at + wrong).saturating_sub(1));
                }
                if matches!(count, 1 | 3 | 6) {
                    return Err(at - 1);
                }
                ended = true;
                break;
            }
            let value = BASE32.iter().position(|known| known == digit).ok_or(at - 1)?;
            bits = (bits << 5) | u64::try_from(value).unwrap_or(0);
            count += 1;
        }
        let bytes = (bits << (5 * (8 - count))).to_be_bytes();
        out.extend_from_slice(&bytes[3..3 + count * 5 / 8]);
    }
    Ok(out)
}

/// Seconds as Go writes a duration.
fn duration(seconds: i64) -> String {
    // Go counts nanoseconds in 64 bits, and what is more goes round.
    let nanoseconds = i128::from(seconds.wrapping_mul(1_000_000_000));
    if nanoseconds == 0 {
        return "0s".to_owned();
    }
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let total = nanoseconds.unsigned_abs();
    let (whole, fraction) = (total / 1_000_000_000, total % 1_000_000_000);
    let digits = format!("{fraction:09}");
    let digits = digits.trim_end_matches('0');
    let point = if digits.is_empty() { "" } else { "." };
    let seconds = format!("{}{point}{digits}s", whole % 60);
    match (whole / 3600, whole / 60 % 60) {
        (0, 0) => format!("{sign}{seconds}"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}"),
    }
}

/// The nanoseconds of a Go duration: numbers with units, one behind the other.
fn parse_duration(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0i128;
    while !rest.is_empty() {
        let length = rest.find(|next: char| !next.is_ascii_digit() && next != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at(length);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let length = behind.find(|next: char| next.is_ascii_digit() || next == '.').unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(length);
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') || number.len() > 18 {
            return None;
        }
        let digits: i128 = format!("0{whole}{fraction}").parse().ok()?;
        total += digits * unit / 10i128.pow(u32::try_from(fraction.len()).ok()?);
        rest = behind;
    }
    i64::try_from(total * sign).ok()
}

/// The largest unit of a duration, and how many of it there are.
fn rounded(nanoseconds: i64) -> String {
    const SECOND: u64 = 1_000_000_000;
    const HOUR: u64 = 3600 * SECOND;
    let units = [
        (HOUR * 24 * 365, "y"),
        (HOUR * 24 * 30, "mo"),
        (HOUR * 24, "d"),
        (HOUR, "h"),
        (60 * SECOND, "m"),
        (SECOND, "s"),
    ];
    let value = nanoseconds.unsigned_abs();
    match units.iter().find(|(unit, _)| value > *unit) {
        Some((unit, name)) => format!("{}{name}", value / unit),
        None => "0s".to_owned(),
    }
}

//! Words as Go's flag libraries read them, since whoever comes from Sealed Secrets has them in manifests: durations,
//! truth values, addresses, lists of pairs, and times of mail headers.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::strtime;

/// How an address without a name is written out: all of the machine's, of both families where the system has them.
const ANY_ADDRESS: [&str; 2] = ["::", "0.0.0.0"];

/// A duration that may be zero: numbers with the units ns, us, ms, s, m, h, such as `720h` or `1h30m`, or a bare 0.
///
/// # Errors
/// It is none, or it is below zero or longer than 290 years.
pub fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest.starts_with('-') {
        return Err("expected a length of time that is not below zero".to_owned());
    }
    if rest.is_empty() {
        return Err("expected numbers with units, such as 720h or 1m30s".to_owned());
    }
    let mut nanoseconds = 0_u128;
    while !rest.is_empty() {
        let (part, after) = part(rest)?;
        nanoseconds = nanoseconds.saturating_add(part);
        rest = after;
    }
    match i64::try_from(nanoseconds) {
        Ok(nanoseconds) => Ok(Duration::from_nanos(nanoseconds.unsigned_abs())),
        Err(_) => Err("expected at most 290 years".to_owned()),
    }
}

/// A duration above zero.
///
/// # Errors
/// As [`duration`], and it is zero.
pub fn length(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("expected a length of time above zero".to_owned()),
        length => Ok(length),
    }
}

/// One number with its unit in nanoseconds, and what follows it.
fn part(text: &str) -> Result<(u128, &str), String> {
    let is_number = |character: char| character.is_ascii_digit() || character == '.';
    let end = text.find(|character| !is_number(character)).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let unit_end = rest.find(is_number).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    let scale: u128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err("expected one of the units ns, us, ms, s, m, h after each number".to_owned()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return Err("expected a number before each unit".to_owned());
    }
    let too_long = || "expected at most 290 years".to_owned();
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse::<u64>().map_err(|_| too_long())?.into() };
    let mut nanoseconds = whole * scale;
    let mut place = scale;
    for digit in fraction.chars().filter_map(|digit| digit.to_digit(10)) {
        // Digits below a nanosecond fall away.
        place /= 10;
        nanoseconds += u128::from(digit) * place;
    }
    Ok((nanoseconds, rest))
}

/// A truth value.
///
/// # Errors
/// It is none.
pub fn truth(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

/// Where to listen: a name or address, or none for all addresses of the machine, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    host: String,
    port: u16,
}

impl ListenAddress {
    /// Names and addresses to try in this order, with the port.
    pub fn candidates(&self) -> Vec<(String, u16)> {
        match self.host.as_str() {
            "" => ANY_ADDRESS.iter().map(|host| ((*host).to_owned(), self.port)).collect(),
            host => vec![(host.to_owned(), self.port)],
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(formatter, "[{}]:{}", self.host, self.port),
            false => write!(formatter, "{}:{}", self.host, self.port),
        }
    }
}

/// An address such as `:8080`, `127.0.0.1:8080` or `[::1]:8080`.
///
/// # Errors
/// It is none.
pub fn listen_address(text: &str) -> Result<ListenAddress, String> {
    let expected = || "expected [HOST]:PORT, such as :8080 or 127.0.0.1:8080".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(expected)?;
    let host = match host.strip_prefix('[') {
        Some(bracketed) => bracketed.strip_suffix(']').ok_or_else(expected)?,
        None if host.contains(':') => return Err(expected()),
        None => host,
    };
    let port = port.parse().map_err(|_| expected())?;
    Ok(ListenAddress { host: host.to_owned(), port })
}

/// Labels or annotations: `name=value` pairs with commas between.
///
/// # Errors
/// An entry is no pair, or its name or value is not what a label may be: better now than in a month, when the first key
/// with them is made.
pub fn pairs(text: &str, are_labels: bool) -> Result<BTreeMap<String, String>, String> {
    let mut found = BTreeMap::new();
    for entry in text.split(',').filter(|_| !text.is_empty()) {
        let Some((name, value)) = entry.split_once('=') else {
            return Err(format!("`{entry}` is not NAME=VALUE"));
        };
        if !is_qualified_name(name) {
            return Err(format!("`{name}` is not the name of a label or annotation"));
        }
        if are_labels && !(value.is_empty() || is_label_word(value)) {
            return Err(format!("`{value}` is not the value of a label"));
        }
        found.insert(name.to_owned(), value.to_owned());
    }
    Ok(found)
}

/// `[domain/]word`, as the API server wants it.
fn is_qualified_name(name: &str) -> bool {
    match name.split_once('/') {
        None => is_label_word(name),
        Some((domain, word)) => {
            let is_part = |part: &str| {
                is_label_word(part)
                    && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            };
            domain.len() <= 253 && domain.split('.').all(is_part) && is_label_word(word)
        }
    }
}

fn is_label_word(word: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = word.as_bytes();
    bytes.len() <= 63 && bytes.iter().copied().all(is_inner) && is_end(bytes.first()) && is_end(bytes.last())
}

/// A time as RFC 1123 writes it, with a numeric zone: `Mon, 02 Jan 2006 15:04:05 -0700`.
///
/// # Errors
/// It is none.
pub fn mail_time(text: &str) -> Result<Timestamp, String> {
    let parsed = strtime::parse("%a, %d %b %Y %H:%M:%S %z", text).and_then(|time| time.to_timestamp());
    parsed.map_err(|_| "expected a time such as `Mon, 02 Jan 2006 15:04:05 -0700`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_with_units() {
        let cases = [
            ("0", 0),
            ("0s", 0),
            ("500ms", 500),
            ("2s", 2000),
            ("+2s", 2000),
            ("2m0s", 120_000),
            ("1h30m", 5_400_000),
            ("1.5s", 1500),
            (".5s", 500),
            ("1.s", 1000),
            ("720h", 2_592_000_000),
            ("87600h0m0s", 315_360_000_000),
            ("1500us", 1),
        ];
        for (text, millis) in cases {
            assert_eq!(duration(text).map(|time| time.as_millis()), Ok(millis), "{text}");
        }
        for text in
            ["", "5", "s", "-1s", "1d", "1s2", "1..5s", ".s", "1 s", "99999999999999999999s", "2562048h", "+"]
        {
            assert!(duration(text).is_err(), "{text}");
        }
        assert!(length("0s").is_err() && length("1ms").is_ok());
    }

    #[test]
    fn truth_values_are_those_of_go() {
        assert_eq!(["1", "t", "True", "TRUE"].map(truth), [const { Ok(true) }; 4]);
        assert_eq!(["0", "F", "false"].map(truth), [const { Ok(false) }; 3]);
        assert!(["", "yes", "tRUE"].iter().all(|text| truth(text).is_err()));
    }

    #[test]
    fn addresses_may_leave_out_the_host() {
        let shown = |text: &str| listen_address(text).map(|address| address.to_string());
        for text in [":8080", "127.0.0.1:0", "[::1]:80", "localhost:1"] {
            assert_eq!(shown(text).as_deref(), Ok(text));
        }
        assert_eq!(listen_address(":8080").unwrap().candidates().len(), 2);
        for text in ["", "8080", "::1:80", "a:b", ":65536", "[::1:80", ":"] {
            assert!(listen_address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bad_labels_are_refused_before_they_are_needed() {
        let parsed = pairs("team=ops,example.com/tier=", true).unwrap();
        assert_eq!(
            parsed.into_iter().collect::<Vec<_>>(),
            [("example.com/tier".to_owned(), String::new()), ("team".to_owned(), "ops".to_owned())]
        );
        assert_eq!(pairs("", true), Ok(BTreeMap::new()));
        for text in ["team", "team=ops,", "=x", "a b=x", "team=-", "Example.com/x=y", "/x=y", "team=a=b"] {
            assert!(pairs(text, true).is_err(), "{text}");
        }
        assert!(pairs("note=any value: even = this", false).is_ok());
    }

    #[test]
    fn cut_off_times_are_those_of_mail_headers() {
        let time = mail_time("Mon, 02 Jan 2006 15:04:05 -0700").unwrap();
        assert_eq!(time.to_string(), "2006-01-02T22:04:05Z");
        for text in ["", "2006-01-02T15:04:05Z", "Mon, 02 Jan 2006 15:04:05 MST"] {
            assert!(mail_time(text).is_err(), "{text}");
        }
    }
}

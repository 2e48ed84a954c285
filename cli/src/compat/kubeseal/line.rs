//! A command line as kubeseal reads it: long flags with two dashes, letters with one and several behind it, values
//! behind `=` or in the next word, and the environment before all of them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::flags::{ALL, Flag, Takes};

/// What was typed, and what the environment says.
#[derive(Debug, Default)]
pub(super) struct Line {
    values: BTreeMap<&'static str, Vec<OsString>>,
    /// Words that belong to no flag. kubeseal has no use for them.
    pub(super) operands: Vec<OsString>,
}

impl Line {
    /// Reads `words` on top of the environment.
    pub(super) fn read(
        words: &[OsString],
        environment: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self, String> {
        let mut line = Self::default();
        for flag in ALL {
            let variable = flag.variable();
            let Some(value) = environment(&variable) else { continue };
            // Pipelines export variables that they have no value for.
            if value.is_empty() && flag.takes != Takes::Text {
                continue;
            }
            line.set(flag, value).map_err(|problem| format!("{variable}: {problem}"))?;
        }
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            match word.as_bytes() {
                b"--" => {
                    line.operands.extend(rest.by_ref().cloned());
                }
                [b'-', b'-', long @ ..] => line.long(word, long, &mut rest)?,
                [b'-', letters @ ..] if !letters.is_empty() => line.letters(letters, &mut rest)?,
                _ => line.operands.push(word.clone()),
            }
        }
        Ok(line)
    }

    fn long<'w>(
        &mut self,
        word: &OsStr,
        long: &[u8],
        rest: &mut impl Iterator<Item = &'w OsString>,
    ) -> Result<(), String> {
        if matches!(long, [] | [b'-' | b'=', ..]) {
            return Err(format!("bad flag syntax: {}", word.to_string_lossy()));
        }
        let (name, value) = match long.iter().position(|byte| *byte == b'=') {
            Some(at) => (&long[..at], Some(OsString::from_vec(long[at + 1..].to_vec()))),
            None => (long, None),
        };
        let name = String::from_utf8_lossy(name);
        let flag = Flag::named(&name).ok_or_else(|| format!("unknown flag: --{name}"))?;
        let value = match (value, flag.takes) {
            (Some(value), _) => value,
            (None, Takes::Nothing) => "true".into(),
            (None, _) => rest.next().ok_or_else(|| format!("flag needs an argument: --{name}"))?.clone(),
        };
        self.set(flag, value)
    }

    fn letters<'w>(
        &mut self,
        letters: &[u8],
        rest: &mut impl Iterator<Item = &'w OsString>,
    ) -> Result<(), String> {
        let mut left = letters;
        while let Some((first, after)) = left.split_first() {
            let letter = char::from(*first);
            let shown = String::from_utf8_lossy(left);
            let flag = match Flag::lettered(letter) {
                Some(flag) => flag,
                None if letter == 'h' => Flag::named("help").ok_or("unknown shorthand flag: 'h' in -h")?,
                None => return Err(format!("unknown shorthand flag: '{letter}' in -{shown}")),
            };
            let value = match after {
                [b'=', value @ ..] if !value.is_empty() => value.to_vec(),
                _ if flag.takes == Takes::Nothing => {
                    self.set(flag, "true".into())?;
                    left = after;
                    continue;
                }
                [] => {
                    let next = rest
                        .next()
                        .ok_or_else(|| format!("flag needs an argument: '{letter}' in -{shown}"))?;
                    next.as_bytes().to_vec()
                }
                value => value.to_vec(),
            };
            return self.set(flag, OsString::from_vec(value));
        }
        Ok(())
    }

    fn set(&mut self, flag: &'static Flag, value: OsString) -> Result<(), String> {
        let values = checked(flag, value)?;
        let held = self.values.entry(flag.name).or_default();
        if !matches!(flag.takes, Takes::List | Takes::Texts) {
            held.clear();
        }
        held.extend(values);
        Ok(())
    }

    /// The last value of the flag called `name`; an empty one counts as none.
    pub(super) fn value(&self, name: &str) -> Option<&OsStr> {
        let last = self.values.get(name).and_then(|values| values.last());
        last.map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The same as text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.value(name).map(|value| value.to_string_lossy().into_owned())
    }

    /// The same, or what stands in the table for nobody saying anything. An empty text stays one.
    pub(super) fn text_or_default(&self, name: &str) -> String {
        match self.values.get(name).and_then(|values| values.last()) {
            Some(value) => value.to_string_lossy().into_owned(),
            None => Flag::named(name).map_or_else(String::new, |flag| flag.default.to_owned()),
        }
    }

    /// All values of the flag called `name`.
    pub(super) fn all(&self, name: &str) -> &[OsString] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    /// Whether the switch called `name` is on.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.value(name).is_some_and(|value| value == "true")
    }
}

/// The value as it counts: a switch as `true` or `false`, a list taken apart.
fn checked(flag: &Flag, value: OsString) -> Result<Vec<OsString>, String> {
    let text = value.to_string_lossy().into_owned();
    let refused = |why: &str| {
        let names = match flag.short {
            Some(short) => format!("-{short}, --{}", flag.name),
            None => format!("--{}", flag.name),
        };
        Err(format!("invalid argument \"{text}\" for \"{names}\" flag: {why}"))
    };
    match flag.takes {
        Takes::Nothing => match text.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(vec!["true".into()]),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(vec!["false".into()]),
            _ => refused("it is true or false"),
        },
        Takes::Level | Takes::Number if text.parse::<i64>().is_err() => refused("it is a number"),
        Takes::Scope if !matches!(text.as_str(), "" | "strict" | "namespace-wide" | "cluster-wide") => {
            refused("must be one of: strict, namespace-wide, cluster-wide")
        }
        Takes::List => match comma_separated(value.as_bytes()) {
            Some(values) => Ok(values.into_iter().map(OsString::from_vec).collect()),
            None => refused("a quote is not closed, or stands inside a value"),
        },
        _ => Ok(vec![value]),
    }
}

/// Values between commas, with double quotes around those that hold one.
fn comma_separated(text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut values = Vec::new();
    if text.is_empty() {
        return Some(values);
    }
    let mut rest = text;
    loop {
        let mut value = Vec::new();
        if let Some(mut quoted) = rest.strip_prefix(b"\"") {
            loop {
                let end = quoted.iter().position(|byte| *byte == b'"')?;
                value.extend_from_slice(&quoted[..end]);
                quoted = &quoted[end + 1..];
                match quoted.strip_prefix(b"\"") {
                    Some(after) => {
                        value.push(b'"');
                        quoted = after;
                    }
                    None => break,
                }
            }
            rest = quoted;
        } else {
            let end = rest.iter().position(|byte| *byte == b',').unwrap_or(rest.len());
            if rest[..end].contains(&b'"') {
                return None;
            }
            value.extend_from_slice(&rest[..end]);
            rest = &rest[end..];
        }
        values.push(value);
        match rest {
            [] => return Some(values),
            [b',', after @ ..] => rest = after,
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').filter(|word| !word.is_empty()).map(OsString::from).collect()
    }

    fn read(text: &str, environment: &[(&str, &str)]) -> String {
        let found = |name: &str| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value))
        };
        match Line::read(&words(text), found) {
            Ok(line) => {
                let shown: Vec<String> = line
                    .values
                    .iter()
                    .map(|(name, values)| format!("{name}={}", values.join(OsStr::new("+")).display()))
                    .collect();
                format!("{} | {}", shown.join(" "), line.operands.join(OsStr::new(" ")).display())
            }
            Err(error) => error,
        }
    }

    #[test]
    fn flags_are_read_as_they_are_there() {
        for (typed, expected) in [
            ("-o yaml -f a", "format=yaml secret-file=a | "),
            ("-oyaml -fa b", "format=yaml secret-file=a | b"),
            ("-o=yaml --cert=x", "cert=x format=yaml | "),
            ("--raw --name a=b", "name=a=b raw=true | "),
            ("--raw=F", "raw=false | "),
            ("--cert", "flag needs an argument: --cert"),
            ("-f", "flag needs an argument: 'f' in -f"),
            ("--typo", "unknown flag: --typo"),
            ("-xo yaml", "unknown shorthand flag: 'x' in -xo"),
            ("---x", "bad flag syntax: ---x"),
            ("--raw=maybe", "invalid argument \"maybe\" for \"--raw\" flag: it is true or false"),
            (
                "--scope wide",
                "invalid argument \"wide\" for \"--scope\" flag: must be one of: strict, namespace-wide, cluster-wide",
            ),
            ("-- --raw", " | --raw"),
            ("- --raw", "raw=true | -"),
            ("--from-file a,b --from-file c", "from-file=a+b+c | "),
            ("--from-file \"a,b\",c", "from-file=a,b+c | "),
            (
                "--from-file a\"b",
                "invalid argument \"a\"b\" for \"--from-file\" flag: a quote is not closed, or stands inside a value",
            ),
            ("--as-group a,b --as-group c", "as-group=a,b+c | "),
            ("-v 9 -h", "help=true v=9 | "),
            ("--name a --name b", "name=b | "),
        ] {
            assert_eq!(read(typed, &[]), expected, "{typed}");
        }
    }

    #[test]
    fn the_environment_comes_first() {
        let environment = [("SEALED_SECRETS_FORMAT", "yaml"), ("SEALED_SECRETS_RECOVERY_PRIVATE_KEY", "a")];
        assert_eq!(read("", &environment), "format=yaml recovery-private-key=a | ");
        assert_eq!(
            read("-o json --recovery-private-key b", &environment),
            "format=json recovery-private-key=a+b | "
        );
        assert_eq!(read("", &[("SEALED_SECRETS_RAW", "")]), " | ");
        assert!(
            read("", &[("SEALED_SECRETS_SCOPE", "wide")])
                .starts_with("SEALED_SECRETS_SCOPE: invalid argument")
        );
    }
}

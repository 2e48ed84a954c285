//! One level of a command line as sops reads it: flags with one dash or two, and operands.
//!
//! Before a verb, flags end at the first operand. After it they may stand anywhere, with one exception that sops has
//! and scripts may rest on: the word after a switch counts as its value while the words are put in order, and the
//! flags after that word are operands then.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::flags::{self, Flag, Takes};

/// What was typed on one level.
#[derive(Debug, Default)]
pub(super) struct Line {
    flags: Vec<(&'static Flag, OsString)>,
    pub(super) operands: Vec<OsString>,
}

impl Line {
    /// Reads `words` up to the first operand.
    pub(super) fn read(words: &[OsString], tables: &[&'static [Flag]]) -> Result<Self, String> {
        let mut line = Self::default();
        let mut forms: Vec<(&'static str, String)> = Vec::new();
        let mut rest = words.iter();
        while let Some(word) = rest.as_slice().first() {
            let Some((name, value)) = split(word)? else { break };
            rest.next();
            if name.is_empty() {
                break;
            }
            let flag = flags::find(tables, &name)
                .ok_or_else(|| format!("flag provided but not defined: -{name}"))?;
            let value = match (value, flag.takes) {
                (Some(value), _) => value,
                (None, Takes::Nothing) => "true".into(),
                (None, _) => rest.next().ok_or_else(|| format!("flag needs an argument: -{name}"))?.clone(),
            };
            line.flags.push((flag, checked(flag, &name, value)?));
            match forms.iter().find(|(known, form)| *known == flag.name() && *form != name) {
                Some((_, form)) => {
                    return Err(format!("cannot use two forms of one flag: -{form} and -{name}"));
                }
                None => forms.push((flag.name(), name)),
            }
        }
        line.operands = rest.cloned().collect();
        Ok(line)
    }

    /// Reads `words` with flags anywhere among them.
    pub(super) fn read_verb(words: &[OsString], tables: &[&'static [Flag]]) -> Result<Self, String> {
        Self::read(&in_order(words, tables), tables)
    }

    /// All flags in the order in which they were typed.
    pub(super) fn flags(&self) -> impl Iterator<Item = (&'static Flag, &OsStr)> {
        self.flags.iter().map(|(flag, value)| (*flag, value.as_os_str()))
    }

    /// The last value of the flag called `name`; an empty one counts as none, as in sops.
    pub(super) fn value(&self, name: &str) -> Option<&OsStr> {
        let last = self.flags().filter(|(flag, _)| flag.name() == name).last();
        last.map(|(_, value)| value).filter(|value| !value.is_empty())
    }

    /// Whether the switch called `name` is on.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.value(name).is_some_and(|value| value == "true")
    }

    /// The operand at `index`.
    pub(super) fn operand(&self, index: usize) -> Option<&OsStr> {
        self.operands.get(index).map(OsString::as_os_str)
    }
}

/// Name and value of a flag; an empty name for `--`, nothing for an operand.
fn split(word: &OsStr) -> Result<Option<(String, Option<OsString>)>, String> {
    let bytes = word.as_bytes();
    let Some(name) = bytes.strip_prefix(b"--").or_else(|| bytes.strip_prefix(b"-")) else {
        return Ok(None);
    };
    match (name, bytes) {
        (_, b"-") => return Ok(None),
        (_, b"--") => return Ok(Some((String::new(), None))),
        ([b'-' | b'=', ..], _) => return Err(format!("bad flag syntax: {}", word.to_string_lossy())),
        _ => {}
    }
    let (name, value) = match name.iter().position(|byte| *byte == b'=') {
        Some(at) => (&name[..at], Some(OsString::from_vec(name[at + 1..].to_vec()))),
        None => (name, None),
    };
    Ok(Some((String::from_utf8_lossy(name).into_owned(), value)))
}

/// The value of a switch as `true` or `false`, a number as it is.
fn checked(flag: &Flag, name: &str, value: OsString) -> Result<OsString, String> {
    let text = value.to_string_lossy();
    match flag.takes {
        Takes::Nothing => match text.as_ref() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok("true".into()),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok("false".into()),
            _ => Err(format!("invalid boolean value \"{text}\" for -{name}")),
        },
        Takes::Number => match text.parse::<i64>() {
            Ok(number) => Ok(number.to_string().into()),
            Err(_) => Err(format!("invalid value \"{text}\" for flag -{name}")),
        },
        Takes::Text | Takes::Texts => Ok(value),
    }
}

/// `words` with the flags, and the word after each, before all others.
fn in_order(words: &[OsString], tables: &[&'static [Flag]]) -> Vec<OsString> {
    let (mut first, mut rest): (Vec<OsString>, Vec<OsString>) = Default::default();
    let mut after_flag = false;
    for (index, word) in words.iter().enumerate() {
        if after_flag && !is_flag(word, tables) {
            after_flag = false;
            first.push(word.clone());
        } else if word == "--" {
            rest.insert(0, word.clone());
            rest.extend_from_slice(&words[index + 1..]);
            break;
        } else if is_flag(word, tables) {
            after_flag = !word.as_bytes().contains(&b'=');
            first.push(word.clone());
        } else {
            rest.push(word.clone());
        }
    }
    first.append(&mut rest);
    first
}

fn is_flag(word: &OsStr, tables: &[&'static [Flag]]) -> bool {
    matches!(split(word), Ok(Some((name, _))) if flags::find(tables, &name).is_some())
}

#[cfg(test)]
mod tests {
    use super::super::Verb;
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').filter(|word| !word.is_empty()).map(OsString::from).collect()
    }

    fn read(text: &str) -> String {
        match Line::read_verb(&words(text), Verb::Decrypt.flags()) {
            Ok(line) => {
                let flags: Vec<String> = line
                    .flags()
                    .map(|(flag, value)| format!("{}={}", flag.name(), value.display()))
                    .collect();
                let operands: Vec<_> = line.operands.iter().map(|word| word.to_string_lossy()).collect();
                format!("{} | {}", flags.join(" "), operands.join(" "))
            }
            Err(error) => error,
        }
    }

    #[test]
    fn flags_stand_anywhere_and_have_one_dash_or_two() {
        for (typed, expected) in [
            ("a.yaml --extract x", "extract=x | a.yaml"),
            ("-extract x a.yaml -output=y", "extract=x output=y | a.yaml"),
            ("--in-place=true a", "in-place=true | a"),
            ("-i=F a", "in-place=false | a"),
            ("-- -i", " | -i"),
            ("a -- -i b", " | a -i b"),
            ("--extract -- a", "extract=-- | a"),
            ("-", " | -"),
            ("-i - --extract=x", "in-place=true | - --extract=x"),
            ("--output= a", "output= | a"),
            ("--output a=b c", "output=a=b | c"),
        ] {
            assert_eq!(read(typed), expected, "{typed}");
        }
    }

    #[test]
    fn what_sops_does_not_know_is_refused() {
        for (typed, expected) in [
            ("--nope a", "flag provided but not defined: -nope"),
            ("a --nope", " | a --nope"),
            ("-ie a", "flag provided but not defined: -ie"),
            ("--extract", "flag needs an argument: -extract"),
            ("--in-place=maybe a", "invalid boolean value \"maybe\" for -in-place"),
            ("--indent x a", "invalid value \"x\" for flag -indent"),
            ("---i a", "bad flag syntax: ---i"),
            ("--=x a", "bad flag syntax: --=x"),
            ("-i --in-place a", "cannot use two forms of one flag: -i and -in-place"),
        ] {
            assert_eq!(read(typed), expected, "{typed}");
        }
    }

    #[test]
    fn before_a_verb_flags_end_at_the_first_operand() {
        let line = Line::read(&words("-d a.yaml -i"), flags::TOP).unwrap();
        assert!(line.is_on("decrypt") && !line.is_on("in-place"));
        assert_eq!(line.operands, words("a.yaml -i"));
    }
}

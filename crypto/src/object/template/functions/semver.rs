//! sprig's versions and their constraints.

use std::cmp::Ordering;
use std::fmt;
use std::rc::Rc;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::{Function, Param, text};
use crate::object::template::context::{Context, Fault};
use crate::object::template::value::Value;
use Param::Text;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("semver", &[Text], |context, arguments| {
        context.reserve(text(arguments, 0).len() * 2)?;
        let version = Version::parse(text(arguments, 0)).ok_or("invalid semantic version")?;
        Ok(Value::Version(Rc::new(version)))
    }),
    Function::new("semverCompare", &[Text, Text], |context, arguments| {
        context.step(1000 + (text(arguments, 0).len() + text(arguments, 1).len()) * 4)?;
        let constraint = std::str::from_utf8(text(arguments, 0)).unwrap_or("\u{fffd}");
        let constraints = constraints(constraint).ok_or("improper constraint")?;
        let version = Version::parse(text(arguments, 1)).ok_or("invalid semantic version")?;
        Ok(Value::Bool(constraints.iter().any(|all| {
            let with_prerelease = all.iter().any(|one| !one.version.prerelease.is_empty());
            all.iter().all(|one| one.holds(&version, with_prerelease))
        })))
    }),
];

/// A semantic version.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::object::template) struct Version {
    numbers: [u64; 3],
    prerelease: String,
    metadata: String,
    original: String,
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(formatter, "{major}.{minor}.{patch}")?;
        if !self.prerelease.is_empty() {
            write!(formatter, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(formatter, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

impl Version {
    fn parse(source: &[u8]) -> Option<Self> {
        let original = std::str::from_utf8(source).ok()?.to_owned();
        let rest = original.strip_prefix('v').unwrap_or(&original);
        let (rest, metadata) = match rest.split_once('+') {
            Some((rest, metadata)) => (rest, Some(metadata)),
            None => (rest, None),
        };
        let (rest, prerelease) = match rest.split_once('-') {
            Some((rest, prerelease)) => (rest, Some(prerelease)),
            None => (rest, None),
        };
        let mut numbers = [0; 3];
        let parts: Vec<&str> = rest.split('.').collect();
        if parts.len() > 3 {
            return None;
        }
        for (number, part) in numbers.iter_mut().zip(parts) {
            let is_number = part.bytes().all(|digit| digit.is_ascii_digit()) && !part.is_empty();
            if !is_number {
                return None;
            }
            *number = part.parse().ok()?;
        }
        let is_word = |part: &str| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let is_number = |part: &str| part.bytes().all(|digit| digit.is_ascii_digit());
        let well_formed =
            |part: &str| is_word(part) && !(part.len() > 1 && part.starts_with('0') && is_number(part));
        if prerelease.is_some_and(|text| !text.split('.').all(well_formed))
            || metadata.is_some_and(|text| !text.split('.').all(is_word))
        {
            return None;
        }
        let (prerelease, metadata) =
            (prerelease.unwrap_or_default().to_owned(), metadata.unwrap_or_default().to_owned());
        Some(Self { numbers, prerelease, metadata, original })
    }

    fn compare(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| compare_prerelease(&self.prerelease, &other.prerelease))
    }

    /// The version with one of its numbers raised and all behind it zero.
    fn raised(&self, at: usize) -> Self {
        let mut numbers = self.numbers;
        // The patch of a prerelease is the release itself.
        if at < 2 || self.prerelease.is_empty() {
            numbers[at] = numbers[at].wrapping_add(1);
        }
        for number in numbers.iter_mut().skip(at + 1) {
            *number = 0;
        }
        let prefix = if self.original.starts_with('v') { "v" } else { "" };
        let mut version =
            Self { numbers, prerelease: String::new(), metadata: String::new(), original: String::new() };
        version.original = format!("{prefix}{version}");
        version
    }
}

fn compare_prerelease(one: &str, two: &str) -> Ordering {
    match (one.is_empty(), two.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let (mut ones, mut twos) = (one.split('.'), two.split('.'));
    loop {
        let (one, two) = match (ones.next(), twos.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(one), Some(two)) => (one, two),
        };
        let order = match (one.parse::<u64>(), two.parse::<u64>()) {
            (Ok(one), Ok(two)) => one.cmp(&two),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => one.cmp(two),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// What `.Major` and the other names of a version give.
pub(in crate::object::template) fn method(
    context: &mut Context,
    version: &Version,
    name: &str,
    arguments: &[Value],
) -> Result<Value, Fault> {
    let other = match (name, arguments) {
        (
            "Compare" | "Equal" | "GreaterThan" | "GreaterThanEqual" | "LessThan" | "LessThanEqual",
            [other],
        ) => match other {
            Value::Version(other) => Some(version.compare(other)),
            other => {
                return Err(format!(
                    "wrong type for value; expected *semver.Version; got {}",
                    other.type_name()
                ));
            }
        },
        (_, []) => None,
        (_, given) => return Err(format!("wrong number of args for {name}: got {}", given.len())),
    };
    match (name, other) {
        ("Major", None) => Ok(Value::Uint64(version.numbers[0])),
        ("Minor", None) => Ok(Value::Uint64(version.numbers[1])),
        ("Patch", None) => Ok(Value::Uint64(version.numbers[2])),
        ("Prerelease", None) => context.text(version.prerelease.as_str()),
        ("Metadata", None) => context.text(version.metadata.as_str()),
        ("Original", None) => context.text(version.original.as_str()),
        ("String", None) => context.text(version.to_string()),
        ("IncMajor", None) => Ok(Value::Version(Rc::new(version.raised(0)))),
        ("IncMinor", None) => Ok(Value::Version(Rc::new(version.raised(1)))),
        ("IncPatch", None) => Ok(Value::Version(Rc::new(version.raised(2)))),
        ("Compare", Some(order)) => Ok(Value::Int(order as i64)),
        ("Equal", Some(order)) => Ok(Value::Bool(order == Ordering::Equal)),
        ("GreaterThan", Some(order)) => Ok(Value::Bool(order == Ordering::Greater)),
        ("GreaterThanEqual", Some(order)) => Ok(Value::Bool(order != Ordering::Less)),
        ("LessThan", Some(order)) => Ok(Value::Bool(order == Ordering::Less)),
        ("LessThanEqual", Some(order)) => Ok(Value::Bool(order != Ordering::Greater)),
        _ => Err(format!("can't evaluate field {name} in type *semver.Version")),
    }
}

/// One operator with its version. `given` says how many numbers were written out.
struct Constraint {
    operator: String,
    version: Version,
    given: usize,
}

/// A version in a constraint: numbers or wildcards.
const PART: &str = r"v?([0-9|xX*]+)(?:\.([0-9|xX*]+))?(?:\.([0-9|xX*]+))?(-[0-9A-Za-z\-]+(?:\.[0-9A-Za-z\-]+)*)?(?:\+[0-9A-Za-z\-]+(?:\.[0-9A-Za-z\-]+)*)?";
const OPERATOR: &str = r"=>|=<|!=|>=|<=|~>|=|>|<|~|\^|";

struct Patterns {
    one: Regex,
    all: Regex,
    range: Regex,
}

fn patterns() -> Option<&'static Patterns> {
    static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(|| {
        let one = format!(r"({OPERATOR})\s*{PART}");
        Some(Patterns {
            all: Regex::new(&format!(r"^\s*(?:{one})\s*(?:(?:\s+|,\s*)(?:{one})\s*)*$")).ok()?,
            one: Regex::new(&one).ok()?,
            range: Regex::new(&format!(r"\s*({PART})\s+-\s+({PART})\s*")).ok()?,
        })
    });
    PATTERNS.as_ref()
}

/// Alternatives, each of which is a list of conditions that hold together.
fn constraints(source: &str) -> Option<Vec<Vec<Constraint>>> {
    let patterns = patterns()?;
    let ranges = patterns.range.replace_all(source, |found: &Captures<'_>| {
        let bound = |index: usize| found.get(index).map(|bound| bound.as_str()).unwrap_or_default();
        format!(">= {}, <= {} ", bound(1), bound(6))
    });
    let alternative = |text: &str| {
        if !patterns.all.is_match(text) {
            return None;
        }
        patterns.one.captures_iter(text).map(|found| constraint(&found)).collect::<Option<Vec<_>>>()
    };
    ranges.split("||").map(alternative).collect()
}

fn constraint(found: &Captures<'_>) -> Option<Constraint> {
    let part = |index: usize| found.get(index).map(|part| part.as_str()).unwrap_or_default();
    let is_wild = |text: &str| matches!(text, "" | "x" | "X" | "*");
    let given = (2..5).take_while(|index| !is_wild(part(*index))).count();
    let number = |at: usize| if at < given { part(at + 2) } else { "0" };
    let prerelease = part(5);
    let version =
        Version::parse(format!("{}.{}.{}{prerelease}", number(0), number(1), number(2)).as_bytes())?;
    Some(Constraint { operator: part(1).to_owned(), version, given })
}

impl Constraint {
    fn holds(&self, version: &Version, with_prerelease: bool) -> bool {
        if !version.prerelease.is_empty() && !with_prerelease {
            return false;
        }
        let order = version.compare(&self.version);
        let ([major, minor, _], [own_major, own_minor, _]) = (version.numbers, self.version.numbers);
        match self.operator.as_str() {
            "" | "=" if self.given == 3 => order == Ordering::Equal,
            "" | "=" | "~" | "~>" => self.holds_tilde(version, order),
            "!=" => match self.given {
                3 => order != Ordering::Equal,
                2 => {
                    (major, minor) != (own_major, own_minor)
                        || compare_prerelease(&version.prerelease, &self.version.prerelease)
                            != Ordering::Equal
                }
                1 => major != own_major,
                _ => major != own_major,
            },
            ">" => match self.given {
                3 => order == Ordering::Greater,
                2 => (major, minor) > (own_major, own_minor),
                _ => major > own_major,
            },
            "<" => order == Ordering::Less,
            ">=" | "=>" => order != Ordering::Less,
            "<=" | "=<" => match self.given {
                3 => order != Ordering::Greater,
                1 => major <= own_major,
                _ => major < own_major || (major == own_major && minor <= own_minor),
            },
            "^" => self.holds_caret(version, order),
            _ => false,
        }
    }

    fn holds_tilde(&self, version: &Version, order: Ordering) -> bool {
        let ([major, minor, _], own) = (version.numbers, self.version.numbers);
        if order == Ordering::Less {
            return false;
        }
        // A lone wildcard, and 0.0.0 in full, allow whatever is not less.
        if own == [0, 0, 0] && matches!(self.given, 0 | 3) {
            return true;
        }
        major == own[0] && (self.given < 2 || minor == own[1])
    }

    fn holds_caret(&self, version: &Version, order: Ordering) -> bool {
        let ([major, minor, patch], own) = (version.numbers, self.version.numbers);
        if order == Ordering::Less {
            return false;
        }
        if own[0] > 0 || self.given == 1 {
            return major == own[0];
        }
        if major > 0 {
            return false;
        }
        if own[1] > 0 || self.given == 2 {
            return minor == own[1];
        }
        minor == 0 && patch == own[2]
    }
}

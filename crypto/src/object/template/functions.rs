//! The functions that a template may call: which there are, what they take, and which are refused.
//!
//! Each group has a file of its own with a table. A function whose result depends on anything but its arguments is
//! refused by name: a Secret must come out the same at each run, and a template must learn nothing of its surroundings.

use super::context::{Context, Fault};
use super::value::{List, Map, Value};

mod builtins;
mod cases;
mod defaults;
mod dicts;
mod encoding;
mod json;
mod lists;
mod math;
mod merge;
mod paths;
mod regexes;
pub(super) mod semver;
mod strings;
mod urls;

/// What a function takes at one place: a Go type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Param {
    Any,
    Bool,
    Dict,
    Float,
    Int,
    Text,
    /// Any value or none, as Go's own functions take it.
    Value,
}

impl Param {
    pub(super) fn type_name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Bool => "bool",
            Self::Dict => "map[string]interface {}",
            Self::Float => "float64",
            Self::Int => "int",
            Self::Text => "string",
            Self::Value => "reflect.Value",
        }
    }
}

type Run = fn(&mut Context, &[Value]) -> Result<Value, Fault>;

/// One function.
pub(super) struct Function {
    pub(super) name: &'static str,
    pub(super) params: &'static [Param],
    /// The type of all further arguments, where there may be any.
    pub(super) rest: Option<Param>,
    pub(super) run: Run,
}

impl Function {
    const fn new(name: &'static str, params: &'static [Param], run: Run) -> Self {
        Self { name, params, rest: None, run }
    }

    const fn with_rest(name: &'static str, params: &'static [Param], rest: Param, run: Run) -> Self {
        Self { name, params, rest: Some(rest), run }
    }

    /// What it takes as argument number `index`.
    pub(super) fn param(&self, index: usize) -> Param {
        self.params.get(index).copied().or(self.rest).unwrap_or(Param::Any)
    }
}

const GROUPS: &[&[Function]] = &[
    builtins::FUNCTIONS,
    cases::FUNCTIONS,
    defaults::FUNCTIONS,
    dicts::FUNCTIONS,
    encoding::FUNCTIONS,
    json::FUNCTIONS,
    lists::FUNCTIONS,
    math::FUNCTIONS,
    merge::FUNCTIONS,
    paths::FUNCTIONS,
    regexes::FUNCTIONS,
    semver::FUNCTIONS,
    strings::FUNCTIONS,
    urls::FUNCTIONS,
];

/// Functions of sprig that are not there, and why.
const REFUSED: &[(&str, &[&str])] = &[
    (
        "it gives another result at each run, so the Secret would never settle: seal the value as an item",
        &[
            "randAlpha",
            "randAlphaNum",
            "randAscii",
            "randBytes",
            "randInt",
            "randNumeric",
            "shuffle",
            "uuidv4",
        ],
    ),
    (
        "it makes or uses keys, which costs the controller time and gives another result at each run: seal the value as an item",
        &[
            "bcrypt",
            "buildCustomCert",
            "decryptAES",
            "derivePassword",
            "encryptAES",
            "genCA",
            "genCAWithKey",
            "genPrivateKey",
            "genSelfSignedCert",
            "genSelfSignedCertWithKey",
            "genSignedCert",
            "genSignedCertWithKey",
            "htpasswd",
        ],
    ),
    (
        "it depends on the clock or the time zone of the controller: write the date as text",
        &[
            "ago",
            "date",
            "dateInZone",
            "dateModify",
            "date_in_zone",
            "date_modify",
            "htmlDate",
            "htmlDateInZone",
            "mustDateModify",
            "mustToDate",
            "must_date_modify",
            "now",
            "toDate",
            "unixEpoch",
        ],
    ),
    ("it would show the controller's surroundings to the template", &["env", "expandenv", "getHostByName"]),
];

/// The function of that name.
///
/// # Errors
/// That there is none, or why it is refused.
pub(super) fn find(name: &str) -> Result<&'static Function, String> {
    if let Some(function) = all().find(|function| function.name == name) {
        return Ok(function);
    }
    match REFUSED.iter().find(|(_, names)| names.contains(&name)) {
        Some((reason, _)) => Err(format!("function {name:?} is refused: {reason}")),
        None => Err(format!("function {name:?} not defined")),
    }
}

fn all() -> impl Iterator<Item = &'static Function> {
    GROUPS.iter().flat_map(|group| group.iter())
}

// The executor has checked the types by the table: what these give for another type is never seen.

fn text(arguments: &[Value], index: usize) -> &[u8] {
    arguments.get(index).and_then(Value::bytes).unwrap_or_default()
}

fn int(arguments: &[Value], index: usize) -> i64 {
    match arguments.get(index) {
        Some(Value::Int(value)) => *value,
        _ => 0,
    }
}

fn float(arguments: &[Value], index: usize) -> f64 {
    match arguments.get(index) {
        Some(Value::Float(value)) => *value,
        _ => 0.0,
    }
}

fn any(arguments: &[Value], index: usize) -> &Value {
    arguments.get(index).unwrap_or(&Value::Nil)
}

/// The arguments from `index` on.
fn rest(arguments: &[Value], index: usize) -> &[Value] {
    arguments.get(index..).unwrap_or_default()
}

/// A map, or nothing for Go's nil map.
fn dict(arguments: &[Value], index: usize) -> Option<&Map> {
    match arguments.get(index) {
        Some(Value::Map(map)) => Some(map),
        _ => None,
    }
}

/// A slice; `verb` is what cannot be done with anything else.
fn list<'a>(arguments: &'a [Value], index: usize, verb: &str) -> Result<&'a List, Fault> {
    match arguments.get(index) {
        Some(Value::List(list)) => Ok(list),
        Some(other) if !other.is_nothing() => Err(format!("Cannot {verb} type {}", other.kind_name())),
        _ => Err("invalid memory address or nil pointer dereference".to_owned()),
    }
}

/// A place in a text or a list that a template has asked for.
fn position(value: i64, end: usize) -> Result<usize, Fault> {
    usize::try_from(value).ok().filter(|at| *at <= end).ok_or_else(|| "slice bounds out of range".to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_function_is_there_once() {
        let mut names = BTreeSet::new();
        let refused = REFUSED.iter().flat_map(|(_, names)| names.iter().copied());
        for name in all().map(|function| function.name).chain(refused) {
            assert!(names.insert(name), "{name}");
        }
    }
}

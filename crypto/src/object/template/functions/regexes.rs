//! sprig's regular expressions, in Go's syntax and on any bytes.

use regex::bytes::{Captures, Regex, RegexBuilder};

use super::{Function, Param, int, text};
use crate::object::template::PATTERN_BYTES_MAX;
use crate::object::template::context::{Context, Fault};
use crate::object::template::value::{Element, Value};
use crate::selector::go_regex;
use Param::{Int, Text};

/// Most bytes of a compiled pattern: as many as a pattern with classes of all letters needs.
const COMPILED_BYTES_MAX: usize = 1024 * 1024;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("regexMatch", &[Text, Text], |context, arguments| {
        let found = compile(context, arguments, 1).map(|pattern| pattern.is_match(text(arguments, 1)));
        match found {
            Err(reason) if reason.starts_with(PATTERN_FAULT) => Ok(Value::Bool(false)),
            other => other.map(Value::Bool),
        }
    }),
    Function::new("mustRegexMatch", &[Text, Text], |context, arguments| {
        let pattern = compile(context, arguments, 1)?;
        Ok(Value::Bool(pattern.is_match(text(arguments, 1))))
    }),
    Function::new("regexFindAll", &[Text, Text, Int], find_all),
    Function::new("mustRegexFindAll", &[Text, Text, Int], find_all),
    Function::new("regexFind", &[Text, Text], find),
    Function::new("mustRegexFind", &[Text, Text], find),
    Function::new("regexReplaceAll", &[Text, Text, Text], replace),
    Function::new("mustRegexReplaceAll", &[Text, Text, Text], replace),
    Function::new("regexReplaceAllLiteral", &[Text, Text, Text], replace_literally),
    Function::new("mustRegexReplaceAllLiteral", &[Text, Text, Text], replace_literally),
    Function::new("regexSplit", &[Text, Text, Int], split),
    Function::new("mustRegexSplit", &[Text, Text, Int], split),
    Function::new("regexQuoteMeta", &[Text], |context, arguments| {
        let mut out = Vec::new();
        for byte in text(arguments, 0) {
            if br"\.+*?()|[]{}^$".contains(byte) {
                out.push(b'\\');
            }
            out.push(*byte);
        }
        context.text(out)
    }),
];

const PATTERN_FAULT: &str = "error parsing regexp";

/// The pattern that is the first argument, paid for its run over argument number `input`.
fn compile(context: &mut Context, arguments: &[Value], input: usize) -> Result<Regex, Fault> {
    let source = text(arguments, 0);
    if source.len() > PATTERN_BYTES_MAX {
        return Err(format!("a regular expression of more than {PATTERN_BYTES_MAX} bytes"));
    }
    context.step(1000 + source.len() * 16)?;
    context.step(text(arguments, input).len() / 8 * (1 + source.len() / 8))?;
    // The reason is not shown: it would quote the pattern, which may be made of values.
    let source = std::str::from_utf8(source).map_err(|_| format!("{PATTERN_FAULT}: invalid UTF-8"))?;
    let checked = go_regex::compile(source).map_err(|_| PATTERN_FAULT.to_owned())?;
    RegexBuilder::new(checked.as_str())
        .size_limit(COMPILED_BYTES_MAX)
        .dfa_size_limit(COMPILED_BYTES_MAX)
        .build()
        .map_err(|_| PATTERN_FAULT.to_owned())
}

/// The places where the pattern matches, as Go finds them: an empty match right behind another match is none.
fn places(pattern: &Regex, input: &[u8], limit: i64) -> Vec<(usize, usize)> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    pattern.find_iter(input).take(limit).map(|found| (found.start(), found.end())).collect()
}

fn find_all(context: &mut Context, arguments: &[Value]) -> Result<Value, Fault> {
    let pattern = compile(context, arguments, 1)?;
    let input = text(arguments, 1);
    let found = places(&pattern, input, int(arguments, 2));
    if found.is_empty() {
        return Ok(Context::nil_list(Element::Text));
    }
    context.texts(found.into_iter().map(|(from, to)| &input[from..to]))
}

fn find(context: &mut Context, arguments: &[Value]) -> Result<Value, Fault> {
    let pattern = compile(context, arguments, 1)?;
    let input = text(arguments, 1);
    context.text(pattern.find(input).map(|found| found.as_bytes()).unwrap_or_default())
}

fn replace_with(
    context: &mut Context,
    arguments: &[Value],
    expand: impl Fn(&Regex, &Captures<'_>, &mut Vec<u8>),
) -> Result<Value, Fault> {
    let pattern = compile(context, arguments, 1)?;
    let input = text(arguments, 1);
    let mut out = Vec::new();
    let mut end = 0;
    for captures in pattern.captures_iter(input) {
        let Some(whole) = captures.get(0) else { continue };
        let before = out.len();
        out.extend_from_slice(&input[end..whole.start()]);
        expand(&pattern, &captures, &mut out);
        context.reserve(out.len() - before)?;
        end = whole.end();
    }
    out.extend_from_slice(&input[end..]);
    context.text(out)
}

fn replace_literally(context: &mut Context, arguments: &[Value]) -> Result<Value, Fault> {
    let new = text(arguments, 2);
    replace_with(context, arguments, |_, _, out| out.extend_from_slice(new))
}

fn replace(context: &mut Context, arguments: &[Value]) -> Result<Value, Fault> {
    let new = text(arguments, 2);
    replace_with(context, arguments, |_, captures, out| expand(new, captures, out))
}

/// Appends a replacement with `$1`, `${1}`, `$name` and `$$` filled in.
fn expand(template: &[u8], captures: &Captures<'_>, out: &mut Vec<u8>) {
    let mut rest = template;
    while let Some(at) = rest.iter().position(|byte| *byte == b'$') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        if rest.first() == Some(&b'$') {
            out.push(b'$');
            rest = &rest[1..];
            continue;
        }
        let braced = rest.first() == Some(&b'{');
        let from = usize::from(braced);
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let length = rest[from..].iter().take_while(|byte| is_name(byte)).count();
        if length == 0 || (braced && rest.get(from + length) != Some(&b'}')) {
            out.push(b'$');
            continue;
        }
        let name = std::str::from_utf8(&rest[from..from + length]).unwrap_or_default();
        let group = match name.parse::<usize>() {
            Ok(number) => captures.get(number),
            Err(_) => captures.name(name),
        };
        out.extend_from_slice(group.map(|group| group.as_bytes()).unwrap_or_default());
        rest = &rest[from + length + from..];
    }
    out.extend_from_slice(rest);
}

fn split(context: &mut Context, arguments: &[Value]) -> Result<Value, Fault> {
    let pattern = compile(context, arguments, 1)?;
    let (input, limit) = (text(arguments, 1), int(arguments, 2));
    if limit == 0 {
        return Ok(Context::nil_list(Element::Text));
    }
    if !text(arguments, 0).is_empty() && input.is_empty() {
        return context.texts([""]);
    }
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut parts: Vec<&[u8]> = Vec::new();
    let (mut start, mut end) = (0, 0);
    for (from, to) in places(&pattern, input, limit) {
        if limit > 0 && parts.len() + 1 == most {
            break;
        }
        end = from;
        if to != 0 {
            parts.push(&input[start..end]);
        }
        start = to;
    }
    if end != input.len() {
        parts.push(&input[start..]);
    }
    context.texts(parts.into_iter().map(<[u8]>::to_vec))
}

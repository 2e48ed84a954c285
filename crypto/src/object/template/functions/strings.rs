//! sprig's functions on texts.

use super::{Function, Param, any, int, position, text};
use crate::object::template::context::{Context, Fault};
use crate::object::template::print::{self, joined};
use crate::object::template::runes::quoted;
use crate::object::template::value::{Element, Value};
use Param::{Any, Int, Text};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("hello", &[], |_, _| Ok(Value::word("Hello!"))),
    Function::new("abbrev", &[Int, Text], |context, arguments| {
        let (width, full) = (int(arguments, 0), text(arguments, 1));
        if width < 4 { context.text(full) } else { context.text(abbreviated(full, 0, width)) }
    }),
    Function::new("abbrevboth", &[Int, Int, Text], |context, arguments| {
        let (left, right, full) = (int(arguments, 0), int(arguments, 1), text(arguments, 2));
        if right < 4 || (left > 0 && right < 7) {
            return context.text(full);
        }
        context.text(abbreviated(full, left, right))
    }),
    Function::new("trunc", &[Int, Text], |context, arguments| {
        let (count, full) = (int(arguments, 0), text(arguments, 1));
        let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        match count < 0 {
            true if size < full.len() => context.text(&full[full.len() - size..]),
            false if size < full.len() => context.text(&full[..size]),
            _ => context.text(full),
        }
    }),
    Function::new("substr", &[Int, Int, Text], substring),
    Function::new("repeat", &[Int, Text], |context, arguments| {
        let (count, unit) = (int(arguments, 0), text(arguments, 1));
        let count = usize::try_from(count).map_err(|_| "strings: negative Repeat count".to_owned())?;
        context.reserve(count.saturating_mul(unit.len()))?;
        context.text(unit.repeat(if unit.is_empty() { 0 } else { count }))
    }),
    Function::new("trimall", &[Text, Text], trim_all),
    Function::new("trimAll", &[Text, Text], trim_all),
    Function::new("trimSuffix", &[Text, Text], |context, arguments| {
        let full = text(arguments, 1);
        context.text(full.strip_suffix(text(arguments, 0)).unwrap_or(full))
    }),
    Function::new("trimPrefix", &[Text, Text], |context, arguments| {
        let full = text(arguments, 1);
        context.text(full.strip_prefix(text(arguments, 0)).unwrap_or(full))
    }),
    Function::new("wrap", &[Int, Text], |context, arguments| {
        let wrapped = wrap(context, text(arguments, 1), int(arguments, 0), b"\n", false)?;
        context.text(wrapped)
    }),
    Function::new("wrapWith", &[Int, Text, Text], |context, arguments| {
        let between = if text(arguments, 1).is_empty() { b"\n" } else { text(arguments, 1) };
        let wrapped = wrap(context, text(arguments, 2), int(arguments, 0), between, true)?;
        context.text(wrapped)
    }),
    Function::new("contains", &[Text, Text], |context, arguments| {
        Ok(Value::Bool(find(context, text(arguments, 1), text(arguments, 0))?.is_some()))
    }),
    Function::new("hasPrefix", &[Text, Text], |_, arguments| {
        Ok(Value::Bool(text(arguments, 1).starts_with(text(arguments, 0))))
    }),
    Function::new("hasSuffix", &[Text, Text], |_, arguments| {
        Ok(Value::Bool(text(arguments, 1).ends_with(text(arguments, 0))))
    }),
    Function::with_rest("quote", &[], Any, |context, arguments| {
        let mut out = Vec::new();
        for value in arguments.iter().filter(|value| !value.is_nothing()) {
            let shown = print::text(context, value)?;
            context.reserve(shown.len() * 4)?;
            out.push(quoted(&shown, false));
        }
        context.text(out.join(&b' '))
    }),
    Function::with_rest("squote", &[], Any, |context, arguments| {
        let mut out = Vec::new();
        for value in arguments.iter().filter(|value| !value.is_nothing()) {
            out.push([b"'", print::text(context, value)?.as_slice(), b"'"].concat());
        }
        context.text(out.join(&b' '))
    }),
    Function::with_rest("cat", &[], Any, |context, arguments| {
        let mut out = Vec::new();
        for value in arguments.iter().filter(|value| !value.is_nothing()) {
            out.push(joined(context, std::slice::from_ref(value))?);
        }
        context.text(out.join(&b' '))
    }),
    Function::new("indent", &[Int, Text], |context, arguments| indent(context, arguments, b"")),
    Function::new("nindent", &[Int, Text], |context, arguments| indent(context, arguments, b"\n")),
    Function::new("replace", &[Text, Text, Text], |context, arguments| {
        let (old, new, full) = (text(arguments, 0), text(arguments, 1), text(arguments, 2));
        let replaced = replace(context, full, old, new)?;
        context.text(replaced)
    }),
    Function::new("plural", &[Text, Text, Int], |context, arguments| {
        context.text(text(arguments, usize::from(int(arguments, 2) != 1)))
    }),
    Function::new("toString", &[Any], |context, arguments| {
        let shown = print::text(context, any(arguments, 0))?;
        context.text(shown)
    }),
    Function::new("toStrings", &[Any], |context, arguments| {
        let texts = strings(context, any(arguments, 0))?;
        context.texts(texts)
    }),
    Function::new("join", &[Text, Any], |context, arguments| {
        let texts = strings(context, any(arguments, 1))?;
        context.reserve(text(arguments, 0).len().saturating_mul(texts.len()))?;
        context.text(texts.join(text(arguments, 0)))
    }),
    Function::new("sortAlpha", &[Any], |context, arguments| {
        let mut texts = strings(context, any(arguments, 0))?;
        if matches!(any(arguments, 0), Value::Nil) {
            texts = vec![b"<nil>".to_vec()];
        }
        context.step(texts.len().saturating_mul(16))?;
        texts.sort();
        context.texts(texts)
    }),
    Function::new("split", &[Text, Text], |context, arguments| {
        numbered(context, text(arguments, 1), text(arguments, 0), -1)
    }),
    Function::new("splitn", &[Text, Int, Text], |context, arguments| {
        numbered(context, text(arguments, 2), text(arguments, 0), int(arguments, 1))
    }),
    Function::new("splitList", &[Text, Text], |context, arguments| {
        let parts = split(context, text(arguments, 1), text(arguments, 0), -1)?;
        context.texts(parts)
    }),
    Function::new("fail", &[Text], |_, _| {
        // The executor gives the message itself where the source spells it out.
        Err("the template gives up; its message is not shown since values may be in it".to_owned())
    }),
];

/// All values of a list as texts, or the one value as the only one.
pub(super) fn strings(context: &mut Context, value: &Value) -> Result<Vec<Vec<u8>>, Fault> {
    match value {
        Value::List(list) => {
            let present = list.items.iter().filter(|item| list.element != Element::Any || !item.is_nothing());
            present.map(|item| print::text(context, item)).collect()
        }
        Value::Missing | Value::Nil => Ok(Vec::new()),
        other => Ok(vec![print::text(context, other)?]),
    }
}

fn abbreviated(full: &[u8], offset: i64, width: i64) -> Vec<u8> {
    let length = i64::try_from(full.len()).unwrap_or(i64::MAX);
    if length <= width {
        return full.to_vec();
    }
    let at = |at: i64| usize::try_from(at).unwrap_or(0).min(full.len());
    let mut offset = offset.min(length);
    if length - offset < width - 3 {
        offset = length - (width - 3);
    }
    if offset <= 4 {
        return [&full[..at(width - 3)], b"..."].concat();
    }
    if width < 7 {
        return Vec::new();
    }
    if offset.saturating_add(width - 3) < length {
        let inner = &full[at(offset)..];
        // The middle has room for three characters less, and for nothing when that is too few.
        let middle = if width - 3 < 4 { Vec::new() } else { abbreviated(inner, 0, width - 3) };
        return [b"...", middle.as_slice()].concat();
    }
    [b"...", &full[at(length - (width - 3))..]].concat()
}

fn substring(context: &mut Context, arguments: &[Value]) -> Result<Value, Fault> {
    let (start, end, full) = (int(arguments, 0), int(arguments, 1), text(arguments, 2));
    if start < 0 {
        return context.text(&full[..position(end, full.len())?]);
    }
    let start = position(start, full.len())?;
    let end = usize::try_from(end).ok().filter(|end| *end <= full.len()).unwrap_or(full.len());
    context.text(full.get(start..end).ok_or("slice bounds out of range")?)
}

fn trim_all(context: &mut Context, arguments: &[Value]) -> Result<Value, Fault> {
    use crate::object::template::runes::runes;
    let (set, full) = (text(arguments, 0), text(arguments, 1));
    context.step(set.len().saturating_mul(full.len()) / 16)?;
    let set: Vec<Option<char>> = runes(set).map(|(rune, _)| rune).collect();
    let all: Vec<(Option<char>, &[u8])> = runes(full).collect();
    let is_kept = |(rune, _): &(Option<char>, &[u8])| !set.contains(rune);
    let (Some(first), Some(last)) = (all.iter().position(is_kept), all.iter().rposition(is_kept)) else {
        return context.text(Vec::new());
    };
    let from: usize = all[..first].iter().map(|(_, raw)| raw.len()).sum();
    let length: usize = all[first..=last].iter().map(|(_, raw)| raw.len()).sum();
    context.text(&full[from..from + length])
}

fn wrap(
    context: &mut Context,
    full: &[u8],
    width: i64,
    between: &[u8],
    breaks_words: bool,
) -> Result<Vec<u8>, Fault> {
    let width = usize::try_from(width.max(1)).unwrap_or(usize::MAX);
    let mut out = Vec::new();
    let mut offset = 0;
    while full.len() - offset > width {
        context.reserve(between.len() + 1)?;
        if full[offset] == b' ' {
            offset += 1;
            continue;
        }
        let space = full[offset..=offset + width].iter().rposition(|byte| *byte == b' ');
        let space = match space {
            None if !breaks_words => {
                full[offset + width..].iter().position(|byte| *byte == b' ').map(|at| at + width)
            }
            other => other,
        };
        match space {
            Some(space) => {
                out.extend_from_slice(&full[offset..offset + space]);
                out.extend_from_slice(between);
                offset += space + 1;
            }
            None if breaks_words => {
                out.extend_from_slice(&full[offset..offset + width]);
                out.extend_from_slice(between);
                offset += width;
            }
            None => break,
        }
    }
    out.extend_from_slice(&full[offset..]);
    Ok(out)
}

fn indent(context: &mut Context, arguments: &[Value], before: &[u8]) -> Result<Value, Fault> {
    let width =
        usize::try_from(int(arguments, 0)).map_err(|_| "strings: negative Repeat count".to_owned())?;
    let full = text(arguments, 1);
    let lines = full.iter().filter(|byte| **byte == b'\n').count() + 1;
    context.reserve(width.saturating_mul(lines))?;
    let pad = b" ".repeat(width);
    let mut out = before.to_vec();
    for (index, line) in full.split(|byte| *byte == b'\n').enumerate() {
        if index > 0 {
            out.push(b'\n');
        }
        out.extend_from_slice(&pad);
        out.extend_from_slice(line);
    }
    context.text(out)
}

/// Where `part` first stands in `full`.
pub(super) fn find(context: &mut Context, full: &[u8], part: &[u8]) -> Result<Option<usize>, Fault> {
    if part.is_empty() {
        return Ok(Some(0));
    }
    context.step(full.len() / 16 * (1 + part.len() / 64))?;
    Ok(full.windows(part.len()).position(|window| window == part))
}

fn replace(context: &mut Context, full: &[u8], old: &[u8], new: &[u8]) -> Result<Vec<u8>, Fault> {
    let parts = if old.is_empty() {
        // Go puts the new text before every character and at the end.
        let chars = crate::object::template::runes::runes(full).map(|(_, raw)| raw.to_vec());
        std::iter::once(Vec::new()).chain(chars).chain([Vec::new()]).collect()
    } else {
        split(context, full, old, -1)?
    };
    context.reserve(new.len().saturating_mul(parts.len()).saturating_add(full.len()))?;
    if old.is_empty() && full.is_empty() {
        return Ok(new.to_vec());
    }
    Ok(parts.join(new))
}

/// The parts of `full` between `separator`, at most `limit` of them unless it is negative.
fn split(context: &mut Context, full: &[u8], separator: &[u8], limit: i64) -> Result<Vec<Vec<u8>>, Fault> {
    let limit = match limit {
        0 => return Ok(Vec::new()),
        limit => usize::try_from(limit).unwrap_or(usize::MAX),
    };
    let mut parts: Vec<Vec<u8>> = Vec::new();
    let mut rest = full;
    if separator.is_empty() {
        for (_, raw) in crate::object::template::runes::runes(full) {
            if parts.len() + 1 >= limit {
                break;
            }
            context.reserve(raw.len() + 48)?;
            parts.push(raw.to_vec());
            rest = &rest[raw.len()..];
        }
        if !rest.is_empty() {
            parts.push(rest.to_vec());
        }
        return Ok(parts);
    }
    context.step(full.len() / 16 * (1 + separator.len() / 64))?;
    let mut at = 0;
    while parts.len() + 1 < limit && at + separator.len() <= rest.len() {
        if rest[at..].starts_with(separator) {
            context.reserve(at + 48)?;
            parts.push(rest[..at].to_vec());
            rest = &rest[at + separator.len()..];
            at = 0;
        } else {
            at += 1;
        }
    }
    parts.push(rest.to_vec());
    Ok(parts)
}

/// The parts in a map with the keys `_0`, `_1` and so on.
fn numbered(context: &mut Context, full: &[u8], separator: &[u8], limit: i64) -> Result<Value, Fault> {
    use crate::object::template::value::Key;
    let mut entries = std::collections::BTreeMap::new();
    for (index, part) in split(context, full, separator, limit)?.into_iter().enumerate() {
        entries.insert(Key::new(format!("_{index}").as_bytes()), context.text(part)?);
    }
    context.map(true, entries)
}

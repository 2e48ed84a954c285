//! Values as JSON and back, as Go's `encoding/json` writes and reads them.

use serde_json::Value as Json;

use super::{Function, Param, any, text};
use crate::object::template::VALUE_DEPTH_MAX;
use crate::object::template::context::{Context, Fault};
use crate::object::template::print::too_deep;
use crate::object::template::runes::runes;
use crate::object::template::value::{Element, Key, Value};
use Param::{Any, Text};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("fromJson", &[Text], |context, arguments| {
        let parsed = parse(context, text(arguments, 0))?;
        parsed.map_or(Ok(Value::Nil), |parsed| value(context, parsed))
    }),
    Function::new("mustFromJson", &[Text], |context, arguments| {
        let parsed = parse(context, text(arguments, 0))?.ok_or("not JSON")?;
        value(context, parsed)
    }),
    Function::new("toJson", &[Any], |context, arguments| lenient(context, arguments, None, true)),
    Function::new("toPrettyJson", &[Any], |context, arguments| lenient(context, arguments, Some(0), true)),
    Function::new("toRawJson", &[Any], |context, arguments| strict(context, arguments, None, false)),
    Function::new("mustToJson", &[Any], |context, arguments| strict(context, arguments, None, true)),
    Function::new("mustToPrettyJson", &[Any], |context, arguments| strict(context, arguments, Some(0), true)),
    Function::new("mustToRawJson", &[Any], |context, arguments| strict(context, arguments, None, false)),
];

fn parse(context: &mut Context, source: &[u8]) -> Result<Option<Json>, Fault> {
    context.reserve(source.len().saturating_mul(8))?;
    Ok(serde_json::from_str(&String::from_utf8_lossy(source)).ok())
}

fn value(context: &mut Context, json: Json) -> Result<Value, Fault> {
    match json {
        Json::Null => Ok(Value::Nil),
        Json::Bool(value) => Ok(Value::Bool(value)),
        Json::Number(number) => Ok(Value::Float(number.as_f64().unwrap_or(0.0))),
        Json::String(text) => context.text(text),
        Json::Array(items) => {
            let items = items.into_iter().map(|item| value(context, item)).collect::<Result<_, _>>()?;
            context.list(Element::Any, items)
        }
        Json::Object(entries) => {
            let mut map = std::collections::BTreeMap::new();
            for (key, entry) in entries {
                map.insert(Key::new(key.as_bytes()), value(context, entry)?);
            }
            context.map(false, map)
        }
    }
}

struct Writer<'a> {
    context: &'a mut Context,
    out: Vec<u8>,
    /// Whether what has a meaning in HTML is escaped.
    html: bool,
}

/// JSON; empty where a value has none.
fn lenient(
    context: &mut Context,
    arguments: &[Value],
    indent: Option<usize>,
    html: bool,
) -> Result<Value, Fault> {
    let out = written(context, any(arguments, 0), indent, html)?;
    context.text(out.unwrap_or_default())
}

/// JSON; an error where a value has none.
fn strict(
    context: &mut Context,
    arguments: &[Value],
    indent: Option<usize>,
    html: bool,
) -> Result<Value, Fault> {
    let out = written(context, any(arguments, 0), indent, html)?;
    context.text(out.ok_or("json: unsupported value: a float that is not finite")?)
}

fn written(
    context: &mut Context,
    value: &Value,
    indent: Option<usize>,
    html: bool,
) -> Result<Option<Vec<u8>>, Fault> {
    let mut writer = Writer { context, out: Vec::new(), html };
    Ok(writer.write(value, indent, 0)?.then_some(writer.out))
}

impl Writer<'_> {
    /// Whether the value has a form in JSON.
    fn write(&mut self, value: &Value, indent: Option<usize>, depth: usize) -> Result<bool, Fault> {
        self.context.step(1)?;
        if depth > VALUE_DEPTH_MAX {
            return Err(too_deep());
        }
        let before = self.out.len();
        match value {
            Value::Bool(value) => self.out.extend_from_slice(value.to_string().as_bytes()),
            Value::Byte(value) => self.out.extend_from_slice(value.to_string().as_bytes()),
            Value::Float(value) if !value.is_finite() => return Ok(false),
            Value::Float(value) => self.out.extend_from_slice(number(*value).as_bytes()),
            Value::Int(value) | Value::Int64(value) => {
                self.out.extend_from_slice(value.to_string().as_bytes())
            }
            Value::List(list) if list.is_nil => self.out.extend_from_slice(b"null"),
            Value::List(list) => {
                let items: Vec<(Option<&[u8]>, &Value)> =
                    list.items.iter().map(|item| (None, item)).collect();
                return self.container(b"[]", &items, indent, depth);
            }
            Value::Map(map) => {
                let entries = map.copied();
                let items: Vec<(Option<&[u8]>, &Value)> =
                    entries.iter().map(|(key, value)| (Some(key.bytes()), value)).collect();
                return self.container(b"{}", &items, indent, depth);
            }
            Value::Missing | Value::Nil => self.out.extend_from_slice(b"null"),
            Value::Text(text) => self.text(text.expose_secret())?,
            Value::Uint64(value) => self.out.extend_from_slice(value.to_string().as_bytes()),
            Value::Version(version) => {
                let shown = version.to_string();
                self.text(shown.as_bytes())?;
            }
        }
        self.context.reserve(self.out.len() - before)?;
        Ok(true)
    }

    fn container(
        &mut self,
        signs: &[u8; 2],
        items: &[(Option<&[u8]>, &Value)],
        indent: Option<usize>,
        depth: usize,
    ) -> Result<bool, Fault> {
        self.out.push(signs[0]);
        for (index, (key, value)) in items.iter().enumerate() {
            if index > 0 {
                self.out.push(b',');
            }
            self.line(indent.map(|indent| indent + 1))?;
            if let Some(key) = key {
                self.text(key)?;
                self.out.extend_from_slice(if indent.is_some() { b": " } else { b":" });
            }
            if !self.write(value, indent.map(|indent| indent + 1), depth + 1)? {
                return Ok(false);
            }
        }
        if !items.is_empty() {
            self.line(indent)?;
        }
        self.out.push(signs[1]);
        self.context.reserve(2)?;
        Ok(true)
    }

    fn line(&mut self, indent: Option<usize>) -> Result<(), Fault> {
        if let Some(indent) = indent {
            self.context.reserve(1 + 2 * indent)?;
            self.out.push(b'\n');
            self.out.extend_from_slice(&b"  ".repeat(indent));
        }
        Ok(())
    }

    fn text(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.context.reserve(bytes.len().saturating_mul(2))?;
        self.out.push(b'"');
        for (next, _) in runes(bytes) {
            match next {
                Some('"') => self.out.extend_from_slice(b"\\\""),
                Some('\\') => self.out.extend_from_slice(b"\\\\"),
                Some('\n') => self.out.extend_from_slice(b"\\n"),
                Some('\r') => self.out.extend_from_slice(b"\\r"),
                Some('\t') => self.out.extend_from_slice(b"\\t"),
                Some('\x08') => self.out.extend_from_slice(b"\\b"),
                Some('\x0c') => self.out.extend_from_slice(b"\\f"),
                None => self.out.extend_from_slice(b"\\ufffd"),
                Some(next)
                    if next < ' '
                        || matches!(next, '\u{2028}' | '\u{2029}')
                        || (self.html && matches!(next, '<' | '>' | '&')) =>
                {
                    self.out.extend_from_slice(format!("\\u{:04x}", u32::from(next)).as_bytes());
                }
                Some(next) => self.out.extend_from_slice(next.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        self.out.push(b'"');
        Ok(())
    }
}

/// A float as Go's JSON has it: positional from 1e-6 to below 1e21.
fn number(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let shown = format!("{value:e}");
        return match shown.split_once('e') {
            Some((mantissa, exponent)) if !exponent.starts_with('-') => format!("{mantissa}e+{exponent}"),
            _ => shown,
        };
    }
    format!("{value}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_float_has_the_form_of_the_peer() {
        for (value, shown) in [(1e21, "1e+21"), (1e20, "100000000000000000000"), (1e-7, "1e-7"), (0.5, "0.5")]
        {
            assert_eq!(super::number(value), shown);
        }
    }
}

//! JSON as Go prints it for people: two spaces for each level, and escapes for what a web page would take for markup.

use serde_json::Value;

/// `value` without a line break at its end.
pub(super) fn print(value: &Value) -> String {
    let mut text = String::new();
    add(value, 0, &mut text);
    text
}

fn add(value: &Value, depth: usize, text: &mut String) {
    match value {
        Value::Object(map) if map.is_empty() => text.push_str("{}"),
        Value::Array(items) if items.is_empty() => text.push_str("[]"),
        Value::Object(map) => {
            text.push('{');
            for (index, (key, value)) in map.iter().enumerate() {
                next_line(index > 0, depth + 1, text);
                add_string(key, text);
                text.push_str(": ");
                add(value, depth + 1, text);
            }
            next_line(false, depth, text);
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                next_line(index > 0, depth + 1, text);
                add(item, depth + 1, text);
            }
            next_line(false, depth, text);
            text.push(']');
        }
        Value::String(string) => add_string(string, text),
        other => text.push_str(&other.to_string()),
    }
}

fn next_line(after_another: bool, depth: usize, text: &mut String) {
    text.push_str(if after_another { ",\n" } else { "\n" });
    text.extend(std::iter::repeat_n("  ", depth));
}

fn add_string(string: &str, text: &mut String) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '<' | '>' | '&' | '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            _ => text.push(character),
        }
    }
    text.push('"');
}

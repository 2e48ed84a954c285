//! Plain data as YAML text: only for what is ours to print, the `sops` block and objects made from manifests.

use std::fmt::Write;

use serde_json::Value as Plain;

use crate::format::yaml::write;
use crate::value::Value;

/// A layout.
pub(super) struct Printer {
    /// Spaces of each level.
    pub(super) indent: usize,
    /// Whether text of several lines becomes a literal block.
    pub(super) blocks: bool,
}

impl Printer {
    /// Adds a mapping's entry.
    pub(super) fn entry(&self, lines: &mut String, indent: usize, key: &str, value: &Plain) {
        let pad = " ".repeat(indent);
        let key = write::scalar(&Value::text(key), false, false).into_owned();
        let _ = match value {
            Plain::Object(map) if !map.is_empty() => {
                let written = writeln!(lines, "{pad}{key}:");
                map.iter().for_each(|(key, value)| self.entry(lines, indent + self.indent, key, value));
                written
            }
            Plain::Array(items) if !items.is_empty() => {
                let written = writeln!(lines, "{pad}{key}:");
                items.iter().for_each(|value| self.item(lines, indent + self.indent, value));
                written
            }
            _ => writeln!(
                lines,
                "{pad}{key}: {}",
                self.scalar(value, (indent / self.indent + 1) * self.indent)
            ),
        };
    }

    fn item(&self, lines: &mut String, indent: usize, value: &Plain) {
        let pad = " ".repeat(indent);
        match value {
            Plain::Object(map) if !map.is_empty() => {
                let mut inner = String::new();
                map.iter().for_each(|(key, value)| self.entry(&mut inner, indent + 2, key, value));
                lines.push_str(&pad);
                lines.push_str("- ");
                lines.push_str(&inner[indent + 2..]);
            }
            _ => {
                let _ = writeln!(lines, "{pad}- {}", self.scalar(value, indent + self.indent));
            }
        }
    }

    /// A value on the rest of a line, or a literal block under it.
    fn scalar(&self, value: &Plain, indent: usize) -> String {
        match value {
            Plain::String(text) if self.blocks && is_block(text) => {
                let chomping = if text.ends_with('\n') { "" } else { "-" };
                let line = |line: &str| match line.is_empty() {
                    true => "\n".to_owned(),
                    false => format!("\n{}{line}", " ".repeat(indent)),
                };
                let lines: String = text.trim_end_matches('\n').split('\n').map(line).collect();
                format!("|{chomping}{lines}")
            }
            Plain::String(text) if text.starts_with("ENC[") => text.clone(),
            Plain::String(text) => write::scalar(&Value::text(text), false, false).into_owned(),
            other => on_one_line(other),
        }
    }
}

/// Armored text: lines that a literal block holds without change.
fn is_block(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.contains('\n')
        && body.chars().all(|next| next == '\n' || (' '..='~').contains(&next))
        && body.split('\n').all(|line| !line.starts_with(' ') && !line.ends_with(' '))
        && !body.starts_with('\n')
        && !body.ends_with('\n')
}

/// In braces and brackets, with everything in quotes that is text.
pub(super) fn on_one_line(value: &Plain) -> String {
    match value {
        Plain::Object(map) => {
            let entry = |(key, value): (&String, &Plain)| {
                format!("{}: {}", write::double_quoted(key), on_one_line(value))
            };
            format!("{{{}}}", map.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        Plain::Array(items) => format!("[{}]", items.iter().map(on_one_line).collect::<Vec<_>>().join(", ")),
        Plain::String(text) => write::double_quoted(text),
        other => other.to_string(),
    }
}

//! What is made from the chart's `values.yaml`: the schema that helm checks values with, and a page that lists them.
//!
//! Each value stands below a comment that says what it is for and ends in brackets with what it may be (see [`schema`]);
//! a key whose comment has none holds further values. So default, meaning and schema stand in one place.

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};

/// One key of the file.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its names from the root, such as `image.tag`.
    pub path: Vec<String>,
    /// What it is for.
    pub about: String,
    /// What it may be; none for a key that holds further ones.
    pub kind: Option<String>,
    /// Its value if that stands on the same line.
    pub default: String,
}

/// The keys of `values.yaml`, in its order.
///
/// # Errors
/// A key has no comment, or stands where none can.
pub fn entries(text: &str) -> Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    let (mut comment, mut open) = (Vec::new(), Vec::<String>::new());
    // Lines further in than this belong to the default of a value.
    let mut inside: Option<usize> = None;
    for (number, line) in text.lines().enumerate() {
        let depth = (line.len() - line.trim_start().len()) / 2;
        let line = line.trim_start();
        if line.is_empty() {
            comment.clear();
            continue;
        }
        if inside.is_some_and(|value| depth > value) {
            continue;
        }
        inside = None;
        if let Some(words) = line.strip_prefix('#') {
            comment.push(words.trim().to_owned());
            continue;
        }
        let (key, default) = line.split_once(':').with_context(|| format!("line {}: no key", number + 1))?;
        ensure!(depth <= open.len(), "line {}: {key} is too far in", number + 1);
        open.truncate(depth);
        open.push(key.to_owned());
        let words = std::mem::take(&mut comment).join(" ");
        let (about, kind) = match words.strip_suffix(']').and_then(|words| words.rsplit_once(" [")) {
            Some((about, kind)) => (about.to_owned(), Some(kind.to_owned())),
            None => (words, None),
        };
        ensure!(!about.is_empty(), "line {}: nothing says what {key} is for", number + 1);
        inside = kind.is_some().then_some(depth);
        entries.push(Entry { path: open.clone(), about, kind, default: default.trim().to_owned() });
    }
    Ok(entries)
}

/// `values.schema.json`: every value has its kind, and nothing else may be given, so that a name with a typing error is
/// told instead of ignored.
///
/// # Errors
/// A kind is not known.
pub fn schema(entries: &[Entry]) -> Result<String> {
    let mut root = section("Values of the chart.");
    // What a chart of charts hands to each of its parts.
    root["properties"]["global"] = json!({"type": "object"});
    for entry in entries {
        let (name, parents) = entry.path.split_last().context("a key without a name")?;
        let mut place = &mut root;
        for parent in parents {
            place = place["properties"].get_mut(parent).with_context(|| format!("no section {parent}"))?;
        }
        let properties = place["properties"].as_object_mut();
        let properties = properties.with_context(|| format!("{} is in a value", entry.path.join(".")))?;
        let value = match &entry.kind {
            None => section(&entry.about),
            Some(kind) => {
                let mut value = of_kind(kind).with_context(|| entry.path.join("."))?;
                value["description"] = json!(entry.about);
                value
            }
        };
        properties.insert(name.clone(), value);
    }
    root["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    Ok(format!("{root:#}\n"))
}

/// `docs/chart.md`: a table of all values.
pub fn page(entries: &[Entry]) -> String {
    let mut page = PAGE.to_owned();
    for Entry { path, about, kind, default } in entries {
        let Some(kind) = kind else { continue };
        let default = match default.as_str() {
            "" | "|" => "see `values.yaml`".to_owned(),
            default => format!("`{default}`"),
        };
        let about = about.trim_end_matches('.').replace('|', "\\|");
        let line = format!("| `{}` | {about} | {} | {default} |\n", path.join("."), kind.replace('|', "\\|"));
        page.push_str(&line);
    }
    page
}

const PAGE: &str = "\
# The values of the chart

Made from `controller/deploy/helm/lacre/values.yaml` by `cargo xtask gen`. The values of the Sealed Secrets chart have
their names and meaning; [the controller](controller.md) says how the chart is installed, upgraded and taken away.

| value | what it is for | may be | default |
|---|---|---|---|
";

fn section(about: &str) -> Value {
    json!({"type": "object", "description": about, "additionalProperties": false, "properties": Map::new()})
}

fn of_kind(kind: &str) -> Result<Value> {
    if let Some(words) = kind.strip_prefix("one of ") {
        let words: Vec<_> = words.split(", ").map(|word| word.trim_matches('"')).collect();
        return Ok(json!({"enum": words}));
    }
    if let Some(pattern) = kind.strip_prefix("string: ") {
        let pattern = pattern.strip_prefix('|').map_or(pattern.to_owned(), |pattern| format!("^$|{pattern}"));
        return Ok(json!({"type": "string", "pattern": pattern}));
    }
    if let Some(least) = kind.strip_prefix("integer from ") {
        return Ok(json!({"type": "integer", "minimum": least.parse::<u64>()?}));
    }
    Ok(match kind {
        "boolean" => json!({"type": "boolean"}),
        "boolean or null" => json!({"type": ["boolean", "null"]}),
        "string" => json!({"type": "string"}),
        "integer or empty" => json!({"type": ["integer", "string"], "pattern": "^(-?[0-9]+)?$"}),
        "number or empty" => json!({"type": ["number", "string"], "pattern": r"^(-?[0-9]+(\.[0-9]+)?)?$"}),
        "duration" => json!({
            "type": ["string", "integer"],
            "pattern": r"^(0|([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+)?$",
            "minimum": 0,
            "maximum": 0,
        }),
        "port" => json!({"type": "integer", "minimum": 1, "maximum": 65_535}),
        "port or empty" => json!({
            "type": ["integer", "string"],
            "minimum": 1,
            "maximum": 65_535,
            "pattern": "^[0-9]{0,5}$",
        }),
        "list" => json!({"type": "array"}),
        "list of strings" => json!({"type": "array", "items": {"type": "string", "minLength": 1}}),
        // A text is a template that makes one.
        "map" => json!({"type": ["object", "string"]}),
        "map of strings" => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        "object" => json!({"type": "object"}),
        "object with enabled" => json!({
            "type": "object",
            "required": ["enabled"],
            "properties": {"enabled": {"type": "boolean"}},
        }),
        unknown => bail!("nobody knows what `{unknown}` may be"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_comments_kinds_and_places() {
        let text = "# About the file.\n\n# The image.\nimage:\n  # Its tag. [string]\n  tag: \"\"\n# More\n# words. [object]\nmore:\n  a: 1\n# Last. [boolean]\nlast: true\n";
        let entries = entries(text).unwrap();
        let told: Vec<_> = entries
            .iter()
            .map(|entry| {
                (entry.path.join("."), entry.about.as_str(), entry.kind.as_deref(), entry.default.as_str())
            })
            .collect();
        let told: Vec<_> = told
            .iter()
            .map(|(path, about, kind, default)| (path.as_str(), *about, *kind, *default))
            .collect();
        assert_eq!(
            told,
            [
                ("image", "The image.", None, ""),
                ("image.tag", "Its tag.", Some("string"), "\"\""),
                ("more", "More words.", Some("object"), ""),
                ("last", "Last.", Some("boolean"), "true"),
            ]
        );
    }

    #[test]
    fn a_key_without_a_comment_or_of_an_unknown_kind_is_an_error() {
        assert!(entries("a: 1\n").is_err());
        assert!(entries("# A list. [list]\n- a\n").is_err());
        assert!(schema(&entries("# Something. [colour]\na: 1\n").unwrap()).is_err());
    }

    #[test]
    fn nothing_but_what_is_listed_may_be_given() {
        let schema =
            schema(&entries("# The image.\nimage:\n  # Its tag. [string]\n  tag: \"\"\n").unwrap()).unwrap();
        let schema: Value = serde_json::from_str(&schema).unwrap();
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["properties"]["image"]["additionalProperties"], false);
        assert_eq!(schema["properties"]["image"]["properties"]["tag"]["type"], "string");
    }
}

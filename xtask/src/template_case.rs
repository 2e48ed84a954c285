//! The cases in `testdata/templates`: values, a template, and what becomes of it.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, ensure};

use crate::root;

/// How many cases there are at least: so that a path that moved does not pass for success.
const CASES_MIN: usize = 500;

/// One case.
pub struct TemplateCase {
    /// Its file's name without the ending.
    pub name: String,
    /// What the template can name.
    pub values: BTreeMap<String, Vec<u8>>,
    /// The template.
    pub source: String,
    /// The bytes, or nothing where it fails.
    pub expected: Option<Vec<u8>>,
}

/// All of them, by name.
///
/// # Errors
/// A file is none, or there are too few.
pub fn all() -> Result<Vec<TemplateCase>> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(root().join("testdata/templates"))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let case = read(&fs::read(&path)?).with_context(|| path.display().to_string())?;
        cases.push(TemplateCase { name, ..case });
    }
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    ensure!(cases.len() >= CASES_MIN, "{} cases", cases.len());
    Ok(cases)
}

fn read(bytes: &[u8]) -> Result<TemplateCase> {
    let (template, expected, error) = ("--- template\n", "\n--- expected\n", "\n--- error\n");
    let at = position(bytes, template).context("it has no template")?;
    let rest = &bytes[at + template.len()..];
    let (source, expected) = match position(rest, expected) {
        Some(end) => (&rest[..end], Some(rest[end + expected.len()..rest.len() - 1].to_vec())),
        None => (&rest[..position(rest, error).context("it expects nothing")?], None),
    };
    let mut values = BTreeMap::new();
    for line in std::str::from_utf8(&bytes[..at])?.lines() {
        let value = line.strip_prefix("value ").and_then(|line| line.split_once(": "));
        let (key, value) = value.context("a line is no value")?;
        let value = match value.strip_prefix("hex ") {
            Some(digits) => (0..digits.len() / 2)
                .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16))
                .collect::<Result<_, _>>()?,
            None => serde_json::from_str::<String>(value)?.into_bytes(),
        };
        values.insert(key.to_owned(), value);
    }
    let source = String::from_utf8(source.to_vec())?;
    Ok(TemplateCase { name: String::new(), values, source, expected })
}

fn position(bytes: &[u8], part: &str) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part.as_bytes())
}

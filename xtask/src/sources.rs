//! What must hold for the source files themselves: sizes, and the code map.
//!
//! Rules of style that no linter knows: see `docs/architecture.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// Where the sources of the workspace live.
pub const FOLDERS: [&str; 4] = ["cli/src", "controller/src", "crypto/src", "xtask/src"];
/// Lines a file may have before its tests.
pub const FILE_LINES_MAX: usize = 400;
/// Lines a function may have, from its name to its closing brace.
pub const FUNCTION_LINES_MAX: usize = 70;

/// All source files below [`FOLDERS`], relative to `root`.
///
/// # Errors
/// A folder cannot be read.
pub fn files(root: &Path) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for folder in FOLDERS {
        collect(root, folder, &mut found)?;
    }
    Ok(found)
}

fn collect(root: &Path, folder: &str, found: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(root.join(folder)).with_context(|| format!("cannot read {folder}"))? {
        let entry = entry?;
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(root, &path, found)?;
        } else if path.ends_with(".rs") {
            found.insert(path);
        }
    }
    Ok(())
}

/// The paths that the code map in `text` lists.
///
/// The map is what stands in blocks fenced as `text`; a line of it starts with one or more paths, each from the root
/// of the repository, and goes on with what they are. Lines that start with no path to a Rust file are of no interest.
pub fn code_map(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut inside = false;
    for line in text.lines() {
        if let Some(info) = line.strip_prefix("```") {
            inside = !inside && info.trim() == "text";
        } else if inside {
            let paths = line.split_whitespace().take_while(|word| word.ends_with(".rs"));
            found.extend(paths.map(str::to_owned));
        }
    }
    found
}

/// The part of a source file before its tests.
pub fn without_tests(text: &str) -> &str {
    text.find("\n#[cfg(test)]\nmod ").map_or(text, |end| &text[..=end])
}

/// Functions longer than [`FUNCTION_LINES_MAX`]: name and length.
///
/// Reads text as rustfmt leaves it, where a body closes in the column in which its signature opens.
pub fn long_functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let functions = lines.iter().enumerate().filter_map(|(start, line)| Some((start, function_name(line)?)));
    let lengths = functions.map(|(start, name)| (name.to_owned(), length(&lines[start..])));
    lengths.filter(|(_, length)| *length > FUNCTION_LINES_MAX).collect()
}

fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.trim_start().split_once("fn ")?;
    let qualifier = |word: &str| {
        ["const", "async", "extern", "unsafe"].contains(&word)
            || word.starts_with("pub")
            || word.starts_with('"')
    };
    // `pub(in a::b)` is two words; nobody here writes it.
    let name = after.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (before.split_whitespace().all(qualifier) && !name.is_empty()).then_some(name)
}

fn length(lines: &[&str]) -> usize {
    let indent = lines.first().map_or(0, |line| line.len() - line.trim_start().len());
    let closes = |line: &&str| line.len() - line.trim_start().len() == indent && line.trim_start() == "}";
    let body = lines.iter().position(|line| line.ends_with(['{', '}', ';']));
    match body {
        Some(end) if lines[end].ends_with('{') => {
            lines.iter().position(closes).map_or(lines.len(), |end| end + 1)
        }
        // A declaration, or a body on the line of its signature.
        Some(end) => end + 1,
        None => lines.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::{FUNCTION_LINES_MAX, code_map, long_functions, without_tests};

    #[test]
    fn the_map_is_what_fenced_text_starts_with() {
        let text =
            "a/src/no.rs\n```text\na/src/b.rs c/src/d.rs  says e.rs\ndocs/  pages\n```\n```rust\nf.rs\n```\n";
        assert_eq!(code_map(text).into_iter().collect::<Vec<_>>(), ["a/src/b.rs", "c/src/d.rs"]);
    }

    #[test]
    fn tests_do_not_count() {
        assert_eq!(without_tests("a\n\n#[cfg(test)]\nmod tests {\n}\n"), "a\n\n");
        assert_eq!(without_tests("#[cfg(test)]\nuse x;\na\n"), "#[cfg(test)]\nuse x;\na\n");
    }

    #[test]
    fn a_function_at_the_limit_passes_and_one_above_does_not() {
        let of = |lines: usize| {
            format!("    pub(crate) fn f(\n    ) {{\n{}    }}\n", "        x;\n".repeat(lines - 3))
        };
        assert_eq!(long_functions(&of(FUNCTION_LINES_MAX)), []);
        assert_eq!(long_functions(&of(FUNCTION_LINES_MAX + 1)), [("f".to_owned(), FUNCTION_LINES_MAX + 1)]);
    }

    #[test]
    fn a_declaration_ends_on_its_line() {
        let text = format!("trait T {{\n    fn f();\n    fn g() {{}}\n{}}}\n", "    // a\n".repeat(80));
        assert_eq!(long_functions(&text), []);
    }
}

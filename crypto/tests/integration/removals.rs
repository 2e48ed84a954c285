//! Values of every file of `testdata/documents/`, taken out of the sealed file.

use std::collections::HashSet;
use std::fs;

use lacre_crypto::document::Document;
use lacre_crypto::document::tree::NodeKind;
use lacre_crypto::error::EncryptError;
use lacre_crypto::recipient::age::AgeIdentity;
use lacre_crypto::{Format, TreePath, Verdict, unset};

use crate::documents::{documents, format_of};
use crate::support::{open, seal, write_options};

/// The paths of all values and collections, in the syntax of stock tools.
fn paths(document: &Document) -> Vec<String> {
    let mut paths = Vec::new();
    let roots = document.tree.documents.iter().enumerate();
    let mut waiting: Vec<(usize, String)> =
        roots.filter_map(|(number, part)| part.root.map(|root| (root, format!("[{number}]")))).collect();
    while let Some((node, way)) = waiting.pop() {
        let steps: Vec<(String, usize)> = match &document.tree.nodes[node].kind {
            NodeKind::Map { entries, .. } => entries
                .iter()
                .map(|entry| {
                    let key = entry.name.replace('\\', "\\\\").replace('"', "\\\"");
                    (format!("[\"{key}\"]"), entry.value)
                })
                .collect(),
            NodeKind::List { items, .. } => {
                items.iter().enumerate().map(|(index, item)| (format!("[{index}]"), *item)).collect()
            }
            _ => Vec::new(),
        };
        for (step, value) in steps {
            paths.push(format!("{way}{step}"));
            waiting.push((value, format!("{way}{step}")));
        }
    }
    paths
}

/// Opening and sealing take their time: so many paths of each document are tried. That every value can be cut out of
/// the clear text is tested beside the code that does it.
const PATHS_PER_DOCUMENT: usize = 3;

/// How many other lines may change: the one that loses a part, and those of comments that another collection gets. What
/// aliases repeat is written out in as many places as there are, and a JSON object without entries has no layout.
fn changes_allowed(document: &Document, text: &str) -> usize {
    let has_alias = document.tree.nodes.iter().any(|node| matches!(node.kind, NodeKind::Alias { .. }));
    let is_bare = document.format == Format::Json && text.trim_start().starts_with("{\n\t\"sops\"");
    if has_alias || is_bare { usize::MAX } else { 1 + document.tree.comments.len().min(2) }
}

/// Lines of `text` that are not in `before`, without those that change with every write.
fn new_lines(text: &str, before: &str) -> usize {
    let known: HashSet<&str> = before.lines().collect();
    let changes = |line: &str| ["lastmodified", "lacre", "mac"].iter().any(|name| line.contains(name));
    text.lines().filter(|line| !known.contains(line) && !changes(line)).count()
}

#[test]
fn values_of_every_sealed_document_can_go_and_the_rest_keeps_its_lines() {
    let identity = AgeIdentity::generate();
    let (mut removed, mut failures) = (0, Vec::new());
    for file in documents() {
        let (name, format) = (file.file_name().unwrap().to_string_lossy().into_owned(), format_of(&file));
        let Some(plain) = fs::read_to_string(&file).ok().filter(|_| format != Format::Binary) else {
            continue;
        };
        let sealed = seal(plain.as_bytes(), format, &identity).unwrap();
        let opened = open(&sealed, format, &identity).unwrap();
        let document = Document::read(&plain, format).unwrap();
        let paths = paths(&document);
        for path in paths.iter().step_by(paths.len().div_ceil(PATHS_PER_DOCUMENT).max(1)) {
            match unset(&opened, &TreePath::parse(path).unwrap(), &write_options()) {
                Ok(Some(text)) => {
                    removed += 1;
                    let again = open(&text, format, &identity);
                    if again.is_err() || again.is_ok_and(|again| again.verdict() != Verdict::Valid) {
                        failures.push(format!("{name} {path}: does not open"));
                    }
                    let new = new_lines(&text, &sealed);
                    if new > changes_allowed(&document, &text) {
                        failures.push(format!("{name} {path}: {new} other lines"));
                    }
                }
                // Sections may repeat, and a path leads to the first.
                Ok(None) if format == Format::Ini => {}
                Ok(None) => failures.push(format!("{name} {path}: not found")),
                Err(EncryptError::Path(error)) => {
                    let error = error.to_string();
                    let known = [" repeats it as ", "it is the last ", "it cannot be cut out"];
                    if !known.iter().any(|known| error.contains(known)) {
                        failures.push(format!("{name} {path}: {error}"));
                    }
                }
                Err(error) => failures.push(format!("{name} {path}: {error}")),
            }
        }
    }
    assert!(removed > 200, "only {removed} values");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

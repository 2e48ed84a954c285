//! Changing an opened file under its own data key: a whole new text, or one value.

use std::collections::HashMap;

use serde_json::Value as Plain;

use crate::decrypt::OpenFile;
use crate::document::tree::{NodeId, NodeKind};
use crate::document::{BLOCK_KEY, Document, splice};
use crate::encrypt::{Sealing, WriteOptions};
use crate::error::{EncryptError, ParseError, PathError};
use crate::seal::{Verdict, digest};
use crate::secret::{Plaintext, SecretBytes, SecretText};
use crate::value::Value;

/// Seals `new_plain` in the place of an opened text. A value that is still there keeps its whole sealed text, so that
/// a diff shows what changed and nothing else; a file that never had a seal gets fresh ones, since whatever wrote it
/// may have used a nonce twice.
///
/// # Errors
/// [`EncryptError`]; nothing is kept of the attempt. `None` when the text did not change.
pub fn reencrypt(
    open: &OpenFile,
    new_plain: &dyn Plaintext,
    options: &WriteOptions,
) -> Result<Option<String>, EncryptError> {
    if new_plain.expose_bytes() == open.plaintext().expose_secret() {
        return Ok(None);
    }
    rewrite(open, &open.format().document_text(new_plain.expose_bytes())?, options).map(Some)
}

/// As [`reencrypt`] for a document's text, also when nothing changed.
pub(crate) fn rewrite(
    open: &OpenFile,
    plain: &SecretText,
    options: &WriteOptions,
) -> Result<String, EncryptError> {
    let document = Document::read_to_seal(plain.expose_secret(), open.format(), &open.metadata().selector)?;
    let kept = match open.verdict() {
        Verdict::NeverSealed if options.seal => HashMap::new(),
        _ => kept_texts(open, &document),
    };
    let work = Sealing {
        plain,
        document,
        key: &open.key,
        metadata: open.metadata().clone(),
        bind: open.bind().cloned(),
    };
    work.write(&|index| kept.get(&index).cloned(), options)
}

/// The sealed texts of the leaves of `document` that are still what they were: each old text is used once.
fn kept_texts(open: &OpenFile, document: &Document) -> HashMap<usize, String> {
    let old = &open.sealed.document;
    let mut known: HashMap<(String, &Value), Vec<String>> = HashMap::new();
    for index in (0..old.leaves.len()).rev() {
        if let Some(text) = digest::stored(old, index) {
            let additional_data = old.paths.associated_data(old.leaves[index].path);
            known.entry((additional_data, &open.values[index])).or_default().push(text.to_owned());
        }
    }
    let mut kept = HashMap::new();
    for (index, leaf) in document.leaves.iter().enumerate() {
        let additional_data = document.paths.associated_data(leaf.path);
        if let Some(text) = known.get_mut(&(additional_data, &*leaf.value)).and_then(Vec::pop) {
            kept.insert(index, text);
        }
    }
    kept
}

/// A way from the root to a value: keys and positions, as in `["a"][0]['b']`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreePath(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Index(usize),
    Key(String),
}

impl TreePath {
    /// Reads the path syntax of stock tools, with `\` before a quote or a backslash inside a key.
    ///
    /// # Errors
    /// [`PathError`] saying what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let mut steps = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let inner =
                rest.strip_prefix('[').ok_or_else(|| PathError("a path looks like [\"key\"][0]".into()))?;
            let (step, after) = match inner.chars().next() {
                Some(quote @ ('"' | '\'')) => quoted_key(&inner[1..], quote)?,
                _ => index(inner)?,
            };
            steps.push(step);
            let after =
                after.strip_prefix(']').ok_or_else(|| PathError("a `[` of the path is not closed".into()))?;
            rest = after;
        }
        match steps.first() {
            None => Err(PathError("the path is empty".into())),
            Some(Step::Key(key)) if key == BLOCK_KEY => {
                Err(PathError("the path leads into the sops block".into()))
            }
            Some(_) => Ok(Self(steps)),
        }
    }
}

fn quoted_key(text: &str, quote: char) -> Result<(Step, &str), PathError> {
    let mut key = String::new();
    let mut characters = text.char_indices();
    while let Some((offset, next)) = characters.next() {
        match next {
            '\\' => match characters.next() {
                Some((_, escaped @ ('"' | '\'' | '\\'))) => key.push(escaped),
                Some((_, other)) => key.extend(['\\', other]),
                None => break,
            },
            _ if next == quote => return Ok((Step::Key(key), &text[offset + 1..])),
            _ => key.push(next),
        }
    }
    Err(PathError("a key of the path is not closed".into()))
}

fn index(text: &str) -> Result<(Step, &str), PathError> {
    let digits = text.find(|next: char| !next.is_ascii_digit()).unwrap_or(text.len());
    let number = text[..digits]
        .parse()
        .map_err(|_| PathError("between brackets stand a quoted key or a number".into()))?;
    Ok((Step::Index(number), &text[digits..]))
}

/// Sets the value at `path` in the first document to `json`, and seals it like the rest of the file.
///
/// # Errors
/// [`EncryptError`], with [`EncryptError::Path`] for a path that leads nowhere. `None` when the value was there
/// already.
pub fn set(
    open: &OpenFile,
    path: &TreePath,
    json: &SecretText,
    options: &WriteOptions,
) -> Result<Option<String>, EncryptError> {
    let value: Plain = serde_json::from_str(json.expose_secret())
        .map_err(|error| PathError(format!("the value is not JSON (column {})", error.column())))?;
    let text = open.document_text()?;
    let text = text.expose_secret();
    let document = Document::read(text, open.format())?;
    let edited = edited(text, &document, &path.0, &value)?;
    reencrypt(open, &SecretText::new(edited), options)
}

/// The text with the value put at the end of `steps`.
fn edited(text: &str, document: &Document, steps: &[Step], value: &Plain) -> Result<String, PathError> {
    let (tree, syntax) = (&document.tree, document.format.syntax());
    let root = tree.documents.first().and_then(|part| part.root);
    let mut node = root.ok_or_else(|| PathError("the first document is empty".into()))?;
    for (taken, step) in steps.iter().enumerate() {
        match child(document, node, step)? {
            Some(next) => node = next,
            None => {
                let value = nested(&steps[taken + 1..], value)?;
                let key = match step {
                    Step::Key(key) => Some(key.as_str()),
                    Step::Index(_) => None,
                };
                let insertion = syntax.insertion(text, tree, node, key, &value)?;
                return Ok(splice(text, vec![(insertion.offset..insertion.offset, insertion.text)]));
            }
        }
    }
    if &tree.plain(node, false) == value {
        return Ok(text.to_owned());
    }
    let replaced = syntax.replacement(text, tree, node, value)?;
    Ok(splice(text, vec![(replaced.place, replaced.text)]))
}

/// The node one step further, or nothing where it would have to be added.
fn child(document: &Document, node: NodeId, step: &Step) -> Result<Option<NodeId>, PathError> {
    match (&document.tree.nodes[node].kind, step) {
        (NodeKind::Map { entries, .. }, Step::Key(key)) => {
            Ok(entries.iter().find(|entry| &entry.name == key).map(|entry| entry.value))
        }
        (NodeKind::List { items, .. }, Step::Index(index)) if *index <= items.len() => {
            Ok(items.get(*index).copied())
        }
        (NodeKind::List { items, .. }, Step::Index(index)) => {
            Err(PathError(format!("the list has {} items, and {index} is beyond the next", items.len())))
        }
        (NodeKind::List { .. }, Step::Key(key)) => {
            Err(PathError(format!("`{key}` is a key, and there is a list here")))
        }
        (NodeKind::Map { .. }, Step::Index(index)) => {
            Err(PathError(format!("{index} is a position, and there is a mapping here")))
        }
        (NodeKind::Alias { .. }, _) => {
            Err(PathError("the path leads through an alias: change what it points to".into()))
        }
        (NodeKind::Scalar { .. }, _) => {
            Err(PathError("a single value is in the way: set that value itself to a mapping first".into()))
        }
    }
}

/// The value inside the mappings that the rest of a path asks for.
fn nested(steps: &[Step], value: &Plain) -> Result<Plain, PathError> {
    match steps.split_first() {
        None => Ok(value.clone()),
        Some((Step::Key(key), rest)) => {
            Ok(Plain::Object([(key.clone(), nested(rest, value)?)].into_iter().collect()))
        }
        Some((Step::Index(0), rest)) => Ok(Plain::Array(vec![nested(rest, value)?])),
        Some((Step::Index(_), _)) => Err(PathError("a new list starts at position 0".into())),
    }
}

impl OpenFile {
    /// The value at `path` in the first document: text as it is, a mapping or list as its part of the text.
    ///
    /// # Errors
    /// [`PathError`] when there is nothing.
    pub fn extract(&self, path: &TreePath) -> Result<SecretBytes, PathError> {
        let unreadable = |error: ParseError| PathError(error.to_string());
        let text = self.document_text().map_err(unreadable)?;
        let text = text.expose_secret();
        let document = Document::read(text, self.format()).map_err(unreadable)?;
        let missing = || PathError("there is nothing at that path".into());
        let mut node = document.tree.documents.first().and_then(|part| part.root).ok_or_else(missing)?;
        for step in &path.0 {
            while let NodeKind::Alias { target } = document.tree.nodes[node].kind {
                node = target;
            }
            node = child(&document, node, step)?.ok_or_else(missing)?;
        }
        let found = document.tree.resolved(node);
        let bytes = match &found.kind {
            NodeKind::Scalar { value, .. } if **value == Value::Null => b"null".to_vec(),
            NodeKind::Scalar { value, .. } if value.kind() == Some(crate::value::ValueType::Str) => {
                value.bytes().to_vec()
            }
            _ => text[found.inner.clone()].as_bytes().to_vec(),
        };
        Ok(SecretBytes::new(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_stock_tools_write_them() {
        let key = |key: &str| Step::Key(key.to_owned());
        let cases = [
            (r#"["a"]"#, vec![key("a")]),
            (r#"["a"][0]['b c']"#, vec![key("a"), Step::Index(0), key("b c")]),
            (r#"["a[0]"]["q\"uote"]"#, vec![key("a[0]"), key("q\"uote")]),
        ];
        for (text, steps) in cases {
            assert_eq!(TreePath::parse(text).unwrap().0, steps, "{text}");
        }
    }

    #[test]
    fn other_paths_are_refused() {
        for text in
            ["", "a", "[a]", "[\"a\"", "[\"a]", "[\"sops\"]", "[\"a\"]b", "[-1]", "[99999999999999999999]"]
        {
            assert!(TreePath::parse(text).is_err(), "{text}");
        }
    }
}

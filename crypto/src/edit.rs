//! Changing an opened file under its own data key: a whole new text, one value set, one taken out.

use std::collections::HashMap;

use serde_json::Value as Plain;

use crate::decrypt::OpenFile;
use crate::document::tree::{NodeId, NodeKind};
use crate::document::{Document, splice};
use crate::encrypt::{Sealing, WriteOptions};
use crate::error::{EncryptError, PathError};
use crate::format::Format;
use crate::seal::{Verdict, digest};
use crate::secret::{Plaintext, SecretText};
use crate::value::Value;

mod path;
mod unset;

pub(crate) use path::Step;
pub use path::TreePath;
pub use unset::unset;

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

/// The same text with another time, MAC and seal over it. Values keep their sealed texts, if [`reencrypt`] would keep
/// them.
///
/// # Errors
/// [`EncryptError`]; nothing is kept of the attempt.
pub fn refresh(open: &OpenFile, options: &WriteOptions) -> Result<String, EncryptError> {
    rewrite(open, &open.document_text()?, options)
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

/// The sealed texts of the leaves of `document` that are still what they were: each old text is used once. What comes
/// before and after a change stays where it was, so that equal items of a list do not trade theirs.
fn kept_texts(open: &OpenFile, document: &Document) -> HashMap<usize, String> {
    let before = &open.sealed.document;
    let old = addressed(before, |index| &open.values[index]);
    let new = addressed(document, |index| &*document.leaves[index].value);
    let same = |(old, new): &(&Addressed<'_>, &Addressed<'_>)| old == new;
    let first = old.iter().zip(&new).take_while(same).count();
    let last = old[first..].iter().rev().zip(new[first..].iter().rev()).take_while(same).count();
    let (old_end, new_end) = (old.len() - last, new.len() - last);
    let stored = |index| digest::stored(before, index).map(str::to_owned);
    let mut known: HashMap<&Addressed<'_>, Vec<String>> = HashMap::new();
    for index in (first..old_end).rev() {
        if let Some(text) = stored(index) {
            known.entry(&old[index]).or_default().push(text);
        }
    }
    let kept = |index: usize| match index {
        _ if index < first => stored(index),
        _ if index >= new_end => stored(index - new_end + old_end),
        _ => known.get_mut(&new[index]).and_then(Vec::pop),
    };
    let kept = (0..new.len()).map(kept).enumerate();
    kept.filter_map(|(index, text)| text.map(|text| (index, text))).collect()
}

/// A value with its additional data.
type Addressed<'a> = (String, &'a Value);

fn addressed<'a>(document: &Document, value: impl Fn(usize) -> &'a Value) -> Vec<Addressed<'a>> {
    let leaves = document.leaves.iter().enumerate();
    leaves.map(|(index, leaf)| (document.paths.associated_data(leaf.path), value(index))).collect()
}

/// Sets the value at `path`, in the first document or the one whose position stands in front, to `json`, and seals it like the rest of the file.
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
    let edited = edited(text, &document, path, &value)?;
    reencrypt(open, &SecretText::new(edited), options)
}

/// A text that is not sealed as a whole, with `value` at the end of `keys` in its document of that number. Every other byte
/// stays as it was; mappings on the way that are not there are added.
///
/// # Errors
/// [`EncryptError`] when the text cannot be read, or something else is in the way.
pub fn set_in_clear(
    text: &str,
    format: Format,
    document: usize,
    keys: &[&str],
    value: &Plain,
) -> Result<String, EncryptError> {
    let steps = keys.iter().map(|key| Step::Key((*key).to_owned()));
    let path = TreePath([Step::Index(document)].into_iter().chain(steps).collect());
    Ok(edited(text, &Document::read(text, format)?, &path, value)?)
}

/// The text with the value put at the end of `path`.
fn edited(text: &str, document: &Document, path: &TreePath, value: &Plain) -> Result<String, PathError> {
    let (tree, syntax) = (&document.tree, document.format.syntax());
    let (number, steps) = path.start();
    let part =
        tree.documents.get(number).ok_or_else(|| PathError(format!("there is no document {number}")))?;
    let mut node = part.root.ok_or_else(|| PathError(format!("document {number} is empty")))?;
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
    unset::refuse_repeated(text, tree, &replaced.place)?;
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

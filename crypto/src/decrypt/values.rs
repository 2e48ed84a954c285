//! The leaves of a sealed file, opened one by one, and the check that the right ones were sealed.

use std::ops::Range;

use crate::aead::ValueCipher;
use crate::decrypt::SealedFile;
use crate::document::path::PathId;
use crate::error::DecryptError;
use crate::parallel;
use crate::seal::digest;
use crate::value::{Form, Sealed, Value, ValueType};

/// All leaves of a file, opened.
pub(super) struct Opened {
    pub(super) values: Vec<Value>,
    /// Whether the leaf was sealed.
    pub(super) sealed: Vec<bool>,
    pub(super) warnings: Vec<String>,
}

/// What opening the leaves needs to know.
pub(super) struct Opening<'a> {
    pub(super) file: &'a SealedFile,
    pub(super) cipher: &'a ValueCipher,
    /// Whether a seal was ever there.
    pub(super) was_sealed: bool,
}

impl Opening<'_> {
    /// Opens every leaf, and checks that the right ones were sealed.
    ///
    /// # Errors
    /// The first leaf in the order of the document that does not open, or should not have been as it is.
    pub(super) fn all(&self) -> Result<Opened, DecryptError> {
        let leaves = self.file.document.leaves.len();
        let mut all = Opened {
            values: Vec::with_capacity(leaves),
            sealed: Vec::with_capacity(leaves),
            warnings: Vec::new(),
        };
        for part in parallel::by_parts(leaves, |part| self.part(part)) {
            let part = part?;
            all.values.extend(part.values);
            all.sealed.extend(part.sealed);
            all.warnings.extend(part.warnings);
        }
        self.check_selection(&mut all)?;
        Ok(all)
    }

    fn part(&self, part: Range<usize>) -> Result<Opened, DecryptError> {
        let document = &self.file.document;
        let mut opened = Opened {
            values: Vec::with_capacity(part.len()),
            sealed: Vec::with_capacity(part.len()),
            warnings: Vec::new(),
        };
        let mut additional = String::new();
        for index in part {
            let leaf = &document.leaves[index];
            let value = match digest::stored(document, index) {
                None => None,
                Some(text) if leaf.is_comment() => self.comment(index, text, &mut opened.warnings)?,
                Some(text) => {
                    document.paths.write_associated_data(leaf.path, &mut additional);
                    Some(self.value(index, text, &additional, &mut opened.warnings)?)
                }
            };
            opened.sealed.push(value.is_some());
            opened.values.push(value.unwrap_or_else(|| Value::clone(&leaf.value)));
        }
        Ok(opened)
    }

    fn value(
        &self,
        index: usize,
        text: &str,
        additional_data: &str,
        warnings: &mut Vec<String>,
    ) -> Result<Value, DecryptError> {
        let refuse = |reason| self.refuse(index, reason);
        let sealed = match Sealed::parse(text, Form::Strict) {
            Ok(sealed) => sealed,
            Err(_) if !self.was_sealed => {
                let sealed = Sealed::parse(text, Form::Lax).map_err(refuse)?;
                warnings.push(format!("`{}` is sealed in a loose form: rewrite the file", self.path(index)));
                sealed
            }
            Err(reason) => return Err(refuse(reason)),
        };
        let kind = sealed.kind;
        let bytes = self.cipher.open_in_place(sealed, additional_data.as_bytes());
        let bytes =
            bytes.ok_or_else(|| refuse("it does not open here: it was moved, exchanged or damaged"))?;
        Value::from_opened(kind, bytes).map_err(refuse)
    }

    /// A comment that does not open at its own place is tried further out, and in the collection that follows, since
    /// other writers place some elsewhere; one that never does is kept as it is, with a warning, unless a seal should
    /// have kept it from that.
    fn comment(
        &self,
        index: usize,
        text: &str,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Value>, DecryptError> {
        let Ok(sealed) = Sealed::parse(text, Form::Lax) else { return Ok(None) };
        let document = &self.file.document;
        let outwards = |path| {
            std::iter::successors(Some(path), |path| document.paths.split(*path).map(|(parent, _)| parent))
        };
        let next = document.leaves[index..].iter().find(|leaf| !leaf.is_comment());
        let tried = outwards(document.leaves[index].path)
            .chain(next.into_iter().flat_map(|leaf| outwards(leaf.path)));
        let open = |path: PathId| self.cipher.open(&sealed, document.paths.associated_data(path).as_bytes());
        if let Some(bytes) = tried.into_iter().find_map(open) {
            return Ok(Some(Value::Typed(ValueType::Comment, bytes)));
        }
        if self.was_sealed {
            return Err(
                self.refuse(index, "the comment does not open here: it was moved, exchanged or damaged")
            );
        }
        warnings.push(format!("a comment in `{}` does not open and stays as it is", self.path(index)));
        Ok(None)
    }

    /// A value that should be sealed must be, and one that should not must not: else a changed selector or a moved
    /// value would turn ciphertext into a password.
    fn check_selection(&self, opened: &mut Opened) -> Result<(), DecryptError> {
        let document = &self.file.document;
        let comments = |index: usize| {
            let value = &opened.values[index];
            let is_comment = document.leaves[index].is_comment() || value.kind() == Some(ValueType::Comment);
            is_comment.then(|| value.as_text().unwrap_or_default().to_owned())
        };
        let selected = self.file.metadata.selector.select(document, &comments);
        let mut clear_comments = 0;
        for (index, selected) in selected.into_iter().enumerate() {
            let leaf = &document.leaves[index];
            let is_comment = leaf.is_comment() || opened.values[index].kind() == Some(ValueType::Comment);
            match (selected, opened.sealed[index]) {
                (true, false) if is_comment => clear_comments += usize::from(!leaf.value.bytes().is_empty()),
                (true, false) if leaf.value.is_sealable() => {
                    return Err(self.refuse(
                        index,
                        "it should be sealed and is not: it was added or replaced in the clear",
                    ));
                }
                (false, true) if !is_comment => {
                    return Err(self.refuse(
                        index,
                        "it is sealed and should not be: the selector or its place was changed",
                    ));
                }
                _ => {}
            }
        }
        if clear_comments > 0 && !self.was_sealed {
            opened.warnings.push(format!(
                "{clear_comments} comments are in the clear and may have been added by anyone"
            ));
        }
        Ok(())
    }

    fn refuse(&self, index: usize, reason: &'static str) -> DecryptError {
        let leaf = &self.file.document.leaves[index];
        DecryptError::Value {
            path: self.path(index),
            line: self.file.document.line(&self.file.text, leaf),
            reason,
        }
    }

    fn path(&self, index: usize) -> String {
        self.file.document.paths.shown(self.file.document.leaves[index].path)
    }
}

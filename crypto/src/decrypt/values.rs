//! The leaves of a sealed file, opened one by one, and the check that the right ones were sealed.

use std::ops::Range;

use crate::aead::ValueCipher;
use crate::decrypt::SealedFile;
use crate::document::Leaf;
use crate::document::path::PathId;
use crate::error::DecryptError;
use crate::parallel;
use crate::seal::digest;
use crate::secret::{SecretBytes, SecretPool};
use crate::value::{Fields, Form, Sealed, Value, ValueType};

/// All leaves of a file, opened.
pub(super) struct Opened {
    pub(super) values: Vec<Value>,
    /// Whether the leaf was sealed.
    pub(super) sealed: Vec<bool>,
    pub(super) warnings: Vec<String>,
}

/// What became of a leaf.
enum Found {
    /// It is not sealed.
    Clear,
    Own(Value),
    /// A value that is as it was opened, and its place among the opened bytes.
    Pooled(ValueType, Range<usize>),
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
        let mut parts = parallel::by_parts(leaves, |part| self.part(part)).into_iter();
        let none = || Ok(Opened { values: Vec::new(), sealed: Vec::new(), warnings: Vec::new() });
        let mut all = parts.next().unwrap_or_else(none)?;
        for part in parts {
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
        let texts = || part.clone().map(|index| digest::stored(document, index));
        let mut pool = SecretPool::with_room(texts().flatten().map(Fields::room).sum());
        let (mut found, mut warnings) = (Vec::with_capacity(part.len()), Vec::new());
        let mut additional = String::new();
        for (index, text) in part.clone().zip(texts()) {
            let leaf = &document.leaves[index];
            found.push(match text {
                None => Found::Clear,
                Some(text) if leaf.is_comment() => {
                    self.comment(index, text, &mut warnings)?.map_or(Found::Clear, Found::Own)
                }
                Some(text) => {
                    document.paths.write_associated_data(leaf.path, &mut additional);
                    self.value(index, text, &additional, &mut pool, &mut warnings)?
                }
            });
        }
        let pooled = pool.into_parts();
        let sealed = found.iter().map(|found| !matches!(found, Found::Clear)).collect();
        let value = |(found, leaf): (Found, &Leaf)| match found {
            Found::Clear => leaf.value.clone(),
            Found::Own(value) => value,
            Found::Pooled(kind, place) => Value::Typed(kind, pooled(place)),
        };
        Ok(Opened {
            values: found.into_iter().zip(&document.leaves[part]).map(value).collect(),
            sealed,
            warnings,
        })
    }

    fn value(
        &self,
        index: usize,
        text: &str,
        additional_data: &str,
        pool: &mut SecretPool,
        warnings: &mut Vec<String>,
    ) -> Result<Found, DecryptError> {
        let refuse = |reason| self.refuse(index, reason);
        let bytes = pool.expose_secret_mut();
        let start = bytes.len();
        let sealed = match Fields::parse(text, Form::Strict, bytes) {
            Ok(sealed) => sealed,
            Err(_) if !self.was_sealed => {
                bytes.truncate(start);
                let sealed = Fields::parse(text, Form::Lax, bytes).map_err(refuse)?;
                warnings.push(format!("`{}` is sealed in a loose form: rewrite the file", self.path(index)));
                sealed
            }
            Err(reason) => return Err(refuse(reason)),
        };
        let Fields { data, nonce, tag, kind } = sealed;
        if !self.cipher.open_slice(nonce, tag, &mut bytes[data.clone()], additional_data.as_bytes()) {
            return Err(refuse("it does not open here: it was moved, exchanged or damaged"));
        }
        if matches!(kind, ValueType::Str | ValueType::Comment) {
            return Ok(Found::Pooled(kind, data));
        }
        Value::from_opened(kind, SecretBytes::new(bytes[data].to_vec())).map(Found::Own).map_err(refuse)
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
            line: self.file.document.line(self.file.text(), leaf),
            reason,
        }
    }

    fn path(&self, index: usize) -> String {
        self.file.document.paths.shown(self.file.document.leaves[index].path)
    }
}

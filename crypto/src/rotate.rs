//! Changing who can open a file, and the key itself.

use crate::data_key::{self, Groups};
use crate::decrypt::{OpenFile, OpenOptions, SealedFile};
use crate::document::{Document, splice};
use crate::edit;
use crate::encrypt::{Sealing, WriteOptions, with_block};
use crate::error::{DecryptError, EncryptError};
use crate::metadata::Metadata;
use crate::object;
use crate::seal::{Claims, Profile, Verdict, digest};
use crate::secret::DataKey;

/// Seals everything anew under a fresh data key for `groups`.
///
/// # Errors
/// [`EncryptError`]; nothing is kept of the attempt.
pub fn rotate(open: &OpenFile, groups: &Groups<'_>, options: &WriteOptions) -> Result<String, EncryptError> {
    let key = DataKey::generate();
    let wrapped = data_key::wrap(&key, groups, &[], options.now)?;
    let metadata = open.metadata().clone().with_groups(&wrapped, groups.effective_threshold());
    anew(open, &key, metadata, options)
}

/// Makes `groups` the recipients under the same data key. Entries of those who stay keep their text, values and MAC
/// too; only who lacks an entry gets one. Whoever is removed can still open what they have a copy of, and all that
/// is sealed under this key: to end that, [`rotate`].
///
/// # Errors
/// [`EncryptError`]. `None` when they are the recipients already.
pub fn update_keys(
    open: &OpenFile,
    groups: &Groups<'_>,
    options: &WriteOptions,
) -> Result<Option<String>, EncryptError> {
    let metadata = open.metadata();
    let threshold = groups.effective_threshold();
    // Shares belong together: other groups, or another threshold, need shares of their own.
    let same_shape = metadata.groups.len() == groups.groups.len() && metadata.shamir_threshold == threshold;
    let single = metadata.groups.len() == 1 && groups.groups.len() == 1;
    if same_shape && ids(metadata) == groups_ids(groups) {
        return Ok(None);
    }
    let kept = if single { metadata.groups.as_slice() } else { &[] };
    let wrapped = data_key::wrap(&open.key, groups, kept, options.now)?;
    let updated = metadata.clone().with_groups(&wrapped, threshold);
    if open.verdict() == Verdict::NeverSealed && options.seal {
        return anew(open, &open.key, updated, options).map(Some);
    }
    resealed(open, updated).map(Some)
}

/// Makes a missing or outdated seal. A file that never had one is sealed anew under its data key with fresh nonces;
/// one that lost it keeps everything else as it is.
///
/// # Errors
/// [`EncryptError`]. `None` when the seal is valid.
pub fn reseal(open: &OpenFile, options: &WriteOptions) -> Result<Option<String>, EncryptError> {
    match open.verdict() {
        Verdict::Valid => Ok(None),
        Verdict::Removed => resealed(open, open.metadata().clone()).map(Some),
        Verdict::NeverSealed => edit::refresh(open, options).map(Some),
    }
}

/// The whole text sealed under `key` with nothing kept.
fn anew(
    open: &OpenFile,
    key: &DataKey,
    metadata: Metadata,
    options: &WriteOptions,
) -> Result<String, EncryptError> {
    let plain = &open.document_text()?;
    let document = Document::read_to_seal(plain, open.format(), &open.metadata().selector)?;
    let work = Sealing { plain, document, key, metadata, bind: open.bind().cloned() };
    work.write(&|_| None, options)
}

/// The sealed text with another `sops` block and a seal over it; every other byte stays.
fn resealed(open: &OpenFile, metadata: Metadata) -> Result<String, EncryptError> {
    let sealed = &open.sealed;
    let syntax = open.format().syntax();
    let places = syntax.block_places(sealed.text(), &sealed.document.tree);
    let body = splice(sealed.text(), places.into_iter().map(|place| (place, String::new())).collect());
    let document = Document::read(&body, open.format())?;
    let profile = object::profile(&document);
    let tree = match profile {
        Profile::File => digest::tree(&document, &|index| digest::stored(&document, index)),
        Profile::Object => {
            object::tree(&document).map_err(|error| EncryptError::Object(error.to_string()))?
        }
    };
    let metadata = metadata.with_seal(None);
    let meta = digest::meta(&metadata.stock_block());
    let mut claims = Claims::new(profile, document.tree.documents.len(), tree, meta);
    claims.bind = open.bind().cloned().or_else(|| object::bind_here(&document));
    claims.source = open.source();
    let written = with_block(&body, &document, Vec::new(), &metadata, Some(claims.seal(&open.key)));
    let again = |error: DecryptError| EncryptError::Unverified(error.to_string());
    let key = DataKey::from_unwrapped(&open.key.to_secret_bytes());
    let key = key.ok_or_else(|| EncryptError::Unverified("the data key is not 32 bytes long".to_owned()))?;
    let reopened =
        SealedFile::read(&written, open.format()).and_then(|file| file.open(key, &OpenOptions::default()));
    match reopened.map_err(again)?.plaintext() == open.plaintext() {
        true => Ok(written),
        false => Err(EncryptError::Unverified("the text differs".to_owned())),
    }
}

fn ids(metadata: &Metadata) -> Vec<Vec<crate::recipient::RecipientId>> {
    let ids = |group: &Vec<crate::recipient::WrappedKey>| {
        group.iter().map(|wrapped| wrapped.recipient.clone()).collect()
    };
    metadata.groups.iter().map(ids).map(sorted).collect()
}

fn groups_ids(groups: &Groups<'_>) -> Vec<Vec<crate::recipient::RecipientId>> {
    groups
        .groups
        .iter()
        .map(|group| group.iter().map(|recipient| recipient.id()).collect())
        .map(sorted)
        .collect()
}

fn sorted(mut ids: Vec<crate::recipient::RecipientId>) -> Vec<crate::recipient::RecipientId> {
    ids.sort();
    ids.dedup();
    ids
}

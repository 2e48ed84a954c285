//! Opening: a sealed text and a data key in, the author's text out, and a verdict on whether to believe it.
//!
//! [`SealedFile::read`] needs no key; [`SealedFile::open`] verifies everything before it gives anything away.

use crate::aead::ValueCipher;
use crate::document::{BLOCK_KEY, Document};
use crate::error::{DecryptError, ParseError};
use crate::format::Format;
use crate::mac::{self, MacHasher};
use crate::metadata::Metadata;
use crate::object;
use crate::parallel;
use crate::seal::{Bind, Claims, Profile, Source, Verdict, digest};
use crate::secret::{DataKey, SecretBytes, SecretText};
use crate::value::{Value, ValueType};

mod restore;
mod unwrap;
mod values;

use values::{Opened, Opening};

/// A sealed text, taken apart without any key.
#[derive(Debug)]
pub struct SealedFile {
    pub(crate) text: SecretText,
    pub(crate) document: Document,
    pub(crate) metadata: Metadata,
}

/// What a caller takes upon itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// Do not compare the MAC. Values must still decrypt, and a seal must still agree.
    pub ignore_mac: bool,
    /// Warn instead of refusing when a seal was removed, or when an object never had one.
    pub accept_removed_seal: bool,
}

/// An opened file: verified, and ready to be read or rewritten.
#[derive(Debug)]
pub struct OpenFile {
    pub(crate) sealed: SealedFile,
    pub(crate) key: DataKey,
    /// The clear value of each leaf.
    pub(crate) values: Vec<Value>,
    pub(crate) claims: Option<Claims>,
    verdict: Verdict,
    warnings: Vec<String>,
    plaintext: SecretBytes,
}

impl SealedFile {
    /// Reads `text` and its `sops` block.
    ///
    /// # Errors
    /// [`DecryptError::Parse`] for a text that is not acceptable, [`DecryptError::NotSealed`] without a block,
    /// [`DecryptError::Metadata`] for a block that is not usable.
    pub fn read(text: &str, format: Format) -> Result<Self, DecryptError> {
        Self::of_text(text.into(), format)
    }

    /// As [`SealedFile::read`], without a copy.
    ///
    /// # Errors
    /// As [`SealedFile::read`].
    pub fn of_text(text: SecretText, format: Format) -> Result<Self, DecryptError> {
        let document = Document::read_whole(&text, format)?;
        let entry = document.tree.root_entry(0, BLOCK_KEY).ok_or(DecryptError::NotSealed)?;
        let block = document.tree.plain(entry.value, false);
        let metadata = Metadata::read(&block).map_err(DecryptError::Metadata)?;
        for other in 1..document.tree.documents.len() {
            let Some(entry) = document.tree.root_entry(other, BLOCK_KEY) else { continue };
            let stock =
                Metadata::read(&document.tree.plain(entry.value, false)).map_err(DecryptError::Metadata)?;
            if metadata.seal.is_some() && stock.stock_block() != metadata.stock_block() {
                let reason = format!("that of document {} differs from the first", other + 1);
                return Err(DecryptError::Metadata(reason));
            }
        }
        Ok(Self { text, document, metadata })
    }

    /// The `sops` block.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The format that it was read as.
    pub fn format(&self) -> Format {
        self.document.format
    }

    /// The text as it was read.
    pub fn text(&self) -> &str {
        self.text.expose_secret()
    }

    /// Opens all values, verifies MAC and seal, and brings back the author's text.
    ///
    /// # Errors
    /// [`DecryptError`] saying what does not hold; no plaintext leaves this call then.
    pub fn open(self, key: DataKey, options: &OpenOptions) -> Result<OpenFile, DecryptError> {
        let (opened, claims, verdict) = self.verify(&key, options)?;
        let source = claims.as_ref().map(|claims| &claims.source);
        let text = restore::text(&self, &opened.values, source)?;
        let plaintext = self.document.format.content(text).ok_or_else(restore::unwritable)?;
        let mut warnings = opened.warnings;
        if verdict == Verdict::Removed {
            warnings.push(
                "the seal was removed: another tool rewrote the sops block, or someone stripped it".into(),
            );
        }
        Ok(OpenFile { sealed: self, key, values: opened.values, claims, verdict, warnings, plaintext })
    }

    /// Whether what was just written opens to `values` and, where the seal carries the author's spelling, to `plain`.
    pub(crate) fn reopens_to(
        &self,
        key: &DataKey,
        values: &[Value],
        plain: &SecretText,
    ) -> Result<(), String> {
        let verified = self.verify(key, &OpenOptions::default());
        let (opened, claims, _) = verified.map_err(|error| error.to_string())?;
        if values != opened.values {
            return Err("the values differ".to_owned());
        }
        let exact =
            claims.as_ref().filter(|claims| claims.profile == Profile::File).map(|claims| &claims.source);
        let restored = match exact {
            Some(source) => restore::unchecked(self, &opened.values, Some(source)),
            None => restore::text(self, &opened.values, None).map_err(|error| error.to_string())?,
        };
        match exact.is_some() && restored != *plain {
            true => Err("the text differs".to_owned()),
            false => Ok(()),
        }
    }

    /// All of [`SealedFile::open`] but the author's text.
    fn verify(
        &self,
        key: &DataKey,
        options: &OpenOptions,
    ) -> Result<(Opened, Option<Claims>, Verdict), DecryptError> {
        let cipher = ValueCipher::new(key.expose_secret());
        let was_sealed = self.is_marked(key) || self.metadata.seal.is_some();
        let profile = object::profile(&self.document);
        let (opened, seal) = parallel::both(
            self.document.leaves.len(),
            || Opening { file: self, cipher: &cipher, was_sealed }.all(),
            || self.check_seal(key, options, profile),
        );
        // Whatever the seal says, what the values say comes first.
        let opened = opened?;
        let (claims, verdict) = seal?;
        let by_seal = profile == Profile::Object && claims.is_some();
        if profile == Profile::Object && claims.is_none() && !options.accept_removed_seal {
            return Err(DecryptError::BadSeal("an object must have one, and this has none".to_owned()));
        }
        if !options.ignore_mac && !by_seal {
            self.check_mac(&cipher, &opened)?;
        }
        Ok((opened, claims, verdict))
    }

    fn is_marked(&self, key: &DataKey) -> bool {
        let mac = self.metadata.mac.as_deref().unwrap_or_default();
        mac::is_marked(key, mac, &self.metadata.last_modified)
    }

    fn check_mac(&self, cipher: &ValueCipher, opened: &Opened) -> Result<(), DecryptError> {
        let mac = self.metadata.mac.as_deref().ok_or(DecryptError::MacMissing)?;
        let stored = mac::open(cipher, mac, &self.metadata.last_modified).ok_or(DecryptError::MacMismatch)?;
        let mut hasher = MacHasher::new(self.metadata.mac_only_encrypted);
        for (index, value) in opened.values.iter().enumerate() {
            let counts = opened.sealed[index] || !self.metadata.mac_only_encrypted;
            if counts && !self.document.leaves[index].is_comment() && value.kind() != Some(ValueType::Comment)
            {
                hasher.add(value.bytes());
            }
        }
        if hasher.finish() == stored { Ok(()) } else { Err(DecryptError::MacMismatch) }
    }

    fn check_seal(
        &self,
        key: &DataKey,
        options: &OpenOptions,
        profile: Profile,
    ) -> Result<(Option<Claims>, Verdict), DecryptError> {
        let bad = DecryptError::BadSeal;
        let Some(seal) = &self.metadata.seal else {
            return match (self.is_marked(key), options.accept_removed_seal) {
                (false, _) => Ok((None, Verdict::NeverSealed)),
                (true, true) => Ok((None, Verdict::Removed)),
                (true, false) => Err(DecryptError::SealRemoved),
            };
        };
        let claims = Claims::open(key, seal).map_err(bad)?;
        if claims.profile != profile {
            return Err(bad("it was made for another kind of document".to_owned()));
        }
        if claims.meta != digest::meta(&self.metadata.stock_block()) {
            return Err(bad(
                "the sops block was changed after sealing (recipients, selector, MAC or time)".to_owned()
            ));
        }
        let tree = match profile {
            Profile::File => digest::tree(&self.document, &|index| digest::stored(&self.document, index)),
            Profile::Object => object::tree(&self.document).map_err(|error| bad(error.to_string()))?,
        };
        if claims.tree != tree || claims.docs != self.document.tree.documents.len() {
            return Err(bad("the content was changed after sealing".to_owned()));
        }
        if let (Profile::Object, bind) = (profile, &claims.bind) {
            object::check_bind(&self.document, bind.as_ref()).map_err(bad)?;
        }
        Ok((Some(claims), Verdict::Valid))
    }
}

impl OpenFile {
    /// What the seal says.
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// What a reader should know: never a reason to refuse, never a secret.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What the author sealed, byte for byte: text, unless the format is binary.
    pub fn plaintext(&self) -> &SecretBytes {
        &self.plaintext
    }

    /// The same as a document's text.
    pub(crate) fn document_text(&self) -> Result<SecretText, ParseError> {
        self.format().document_text(self.plaintext.expose_secret())
    }

    /// The `sops` block.
    pub fn metadata(&self) -> &Metadata {
        &self.sealed.metadata
    }

    /// The format.
    pub fn format(&self) -> Format {
        self.sealed.document.format
    }

    /// What the seal binds the document to.
    pub fn bind(&self) -> Option<&Bind> {
        self.claims.as_ref().and_then(|claims| claims.bind.as_ref())
    }

    pub(crate) fn source(&self) -> Source {
        self.claims.as_ref().map(|claims| claims.source.clone()).unwrap_or_default()
    }
}

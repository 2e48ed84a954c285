//! Sealing: the author's text in, a sealed text out, with nothing changed but the places of sealed values.
//!
//! Every verb that writes ends here. What is about to be written is opened again first, and must give the author's
//! text to the byte.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use crate::Timestamp;
use crate::aead::ValueCipher;
use crate::data_key::{self, Groups};
use crate::decrypt::SealedFile;
use crate::document::part::TextPart;
use crate::document::{BLOCK_KEY, Document, Origin, splice};
use crate::error::{EncryptError, ParseError};
use crate::format::{Copied, Format, delta};
use crate::mac::{self, MacHasher};
use crate::metadata::{Draft, Metadata};
use crate::object;
use crate::seal::{Bind, Claims, Profile, Source, digest};
use crate::secret::{DataKey, Plaintext, SecretText};
use crate::selector::Selector;
use crate::value::{Sealed, Value};
use crate::{acceptance, parallel, timestamp};

/// What to seal, for whom, and how.
pub struct EncryptOptions<'a> {
    /// Who will be able to open it.
    pub groups: Groups<'a>,
    /// Which leaves are sealed.
    pub selector: Selector,
    /// Whether the MAC is over sealed values alone.
    pub mac_only_encrypted: bool,
    /// What the seal binds the document to.
    pub bind: Option<Bind>,
    /// How it is written.
    pub write: WriteOptions,
}

/// How a sealed text is written.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions {
    /// The time that goes into `lastmodified`.
    pub now: Timestamp,
    /// Whether to write the seal.
    pub seal: bool,
    /// Whether a selector may leave everything in the clear.
    pub allow_plaintext: bool,
}

/// Seals `plain` under a fresh data key. A binary file is one value, and no selector is asked about it.
///
/// # Errors
/// [`EncryptError`] saying what stands in the way, with line and column where there is one.
pub fn encrypt(
    plain: &dyn Plaintext,
    format: Format,
    options: &EncryptOptions<'_>,
) -> Result<String, EncryptError> {
    let plain = &format.document_text(plain.expose_bytes())?;
    let document = Document::read_to_seal(plain, format, &options.selector)?;
    if object::profile(&document) == Profile::Object && !matches!(options.bind, Some(Bind::Object(_))) {
        let reason = "an EncryptedSecret is made from the manifest of a Secret by `lacre kube seal`";
        return Err(EncryptError::Object(reason.to_owned()));
    }
    let key = DataKey::generate();
    let draft = Draft {
        groups: data_key::wrap(&key, &options.groups, &[], options.write.now)?,
        shamir_threshold: options.groups.effective_threshold(),
        selector: if format.has_selection() { options.selector.clone() } else { Selector::default() },
        mac_only_encrypted: options.mac_only_encrypted,
    };
    let metadata = Metadata::new(&draft, &timestamp(options.write.now));
    let work = Sealing { plain, document, key: &key, metadata, bind: options.bind.clone() };
    work.write(&|_| None, &options.write)
}

/// The text that a leaf keeps, when it does.
type Kept<'a> = &'a (dyn Fn(usize) -> Option<String> + Sync);

/// Places and what is put there.
type Replacements<'a> = Vec<(Range<usize>, Cow<'a, str>)>;

/// Everything that goes into one sealed text.
pub(crate) struct Sealing<'a> {
    pub(crate) plain: &'a SecretText,
    pub(crate) document: Document,
    pub(crate) key: &'a DataKey,
    /// Recipients and rules; MAC, time and seal are made here.
    pub(crate) metadata: Metadata,
    pub(crate) bind: Option<Bind>,
}

impl Sealing<'_> {
    /// Seals what the selector says; a leaf that `kept` has a text for keeps that whole text.
    pub(crate) fn write(self, kept: Kept<'_>, options: &WriteOptions) -> Result<String, EncryptError> {
        let text = self.plain.expose_secret();
        if (0..self.document.tree.documents.len())
            .any(|part| self.document.tree.root_entry(part, BLOCK_KEY).is_some())
        {
            return Err(EncryptError::AlreadySealed);
        }
        let cipher = ValueCipher::new(self.key.expose_secret());
        let sealed = self.sealed_leaves(&cipher, kept, options)?;
        acceptance::check(text, &self.document, &sealed, self.metadata.mac_only_encrypted)?;
        let (replacements, mut source) = self.replacements(&sealed)?;
        let last_modified = timestamp(options.now);
        let code = self.mac(&sealed);
        let mac = mac::seal(self.key, &cipher, &code, &last_modified, options.seal);
        let metadata = self.metadata.clone().with_mac(mac, &last_modified).with_seal(None);
        if !self.document.format.holds(metadata.block()) {
            let reason =
                "the sops block has a field that this format cannot hold, such as a pattern with `\\n` in it";
            return Err(EncryptError::Limit(reason.to_owned()));
        }
        let syntax = self.document.format.syntax();
        let nothing = serde_json::Value::Null;
        source.eof = syntax.block_insertions(text, &self.document.tree, &nothing, &nothing).1;
        let seal = match options.seal {
            true => Some(self.claims(&metadata, &sealed, source)?.seal(self.key)),
            false => None,
        };
        let written = with_block(text, &self.document, replacements, &metadata, seal);
        // Room for what the verification reads: it needs the values alone.
        drop(sealed);
        let format = self.document.format;
        verified(written, format, self.key, &self.document.into_values(), self.plain)
    }

    fn sealed_leaves(
        &self,
        cipher: &ValueCipher,
        kept: Kept<'_>,
        options: &WriteOptions,
    ) -> Result<Vec<Option<TextPart>>, EncryptError> {
        let document = &self.document;
        let comments = |index: usize| {
            let leaf = &document.leaves[index];
            leaf.is_comment().then(|| leaf.value.as_text().unwrap_or_default().to_owned())
        };
        let selected = self.metadata.selector.select(document, &comments);
        let sealable = |index: &usize| {
            let leaf = &document.leaves[*index];
            leaf.value.is_sealable() && !leaf.is_comment()
        };
        let leaves = (0..selected.len()).filter(sealable).count();
        let hits = (0..selected.len()).filter(sealable).filter(|index| selected[*index]).count();
        if hits == 0 && leaves > 0 && !options.allow_plaintext {
            return Err(EncryptError::NothingSelected {
                selector: self.metadata.selector.to_string(),
                leaves,
            });
        }
        let parts = parallel::by_parts(selected.len(), |part| {
            let is_fresh = |index: &usize| selected[*index] && document.leaves[*index].value.is_sealable();
            let room = |index: usize| Sealed::room(document.leaves[index].value.bytes().len());
            let mut texts = String::with_capacity(part.clone().filter(is_fresh).map(room).sum());
            let mut places = Vec::with_capacity(part.len());
            let cipher = cipher.another();
            let mut additional = String::new();
            for index in part {
                let leaf = &document.leaves[index];
                let start = texts.len();
                if !is_fresh(&index) {
                    self.clear(index)?;
                } else if let Some(text) = kept(index) {
                    texts.push_str(&text);
                } else {
                    document.paths.write_associated_data(leaf.path, &mut additional);
                    cipher.seal(&leaf.value, additional.as_bytes()).push_text(&mut texts);
                }
                places.push(start..texts.len());
            }
            let texts = SecretText::new(texts);
            let text = |place: Range<usize>| {
                (!place.is_empty()).then(|| TextPart::of(&texts, &texts.expose_secret()[place]))
            };
            Ok(places.into_iter().map(text).collect::<Vec<_>>())
        });
        let parts = parts.into_iter().collect::<Result<Vec<_>, EncryptError>>()?;
        Ok(parts.into_iter().flatten().collect())
    }

    fn clear(&self, index: usize) -> Result<(), EncryptError> {
        let leaf = &self.document.leaves[index];
        match self.document.sealed_text(leaf).is_some_and(Sealed::looks_like) {
            true => Err(EncryptError::ClearSealedForm {
                path: self.document.paths.shown(leaf.path),
                line: self.document.line(self.plain.expose_secret(), leaf),
            }),
            false => Ok(()),
        }
    }

    /// What is put where, and what of the author's spelling that loses.
    fn replacements<'a>(
        &self,
        sealed: &'a [Option<TextPart>],
    ) -> Result<(Replacements<'a>, Source), EncryptError> {
        let (document, text) = (&self.document, self.plain.expose_secret());
        let syntax = document.format.syntax();
        let mut source = Source::default();
        let one_line = object::profile(document) == Profile::Object;
        let mut replacements = self.expanded_aliases(sealed, &mut source)?;
        let parts = parallel::by_parts(document.leaves.len(), |part| {
            let (mut replacements, mut spellings) = (Vec::with_capacity(part.len()), Vec::new());
            for index in part {
                let leaf = &document.leaves[index];
                let (Some(enc), Some(site)) = (&sealed[index], document.site(leaf)) else { continue };
                let default = syntax.opened(text, &site, &leaf.value);
                let author = &text[default.place];
                if default.text != author {
                    spellings.push((index, delta(&default.text, author)));
                }
                let sealed = syntax.sealed(text, &site, enc, one_line);
                replacements.push((sealed.place, sealed.text));
            }
            (replacements, spellings)
        });
        for (part, spellings) in parts {
            match replacements.is_empty() {
                true => replacements = part,
                false => replacements.extend(part),
            }
            source.leaves.extend(spellings);
        }
        Ok((replacements, source))
    }

    /// An alias can stay while nothing that it repeats is sealed; else its content is written out in its place.
    fn expanded_aliases(
        &self,
        sealed: &[Option<TextPart>],
        source: &mut Source,
    ) -> Result<Replacements<'static>, EncryptError> {
        let (document, text) = (&self.document, self.plain.expose_secret());
        if document.aliases.is_empty() {
            return Ok(Vec::new());
        }
        let originals: HashMap<usize, usize> = document
            .leaves
            .iter()
            .enumerate()
            .filter_map(|(index, leaf)| match leaf.origin {
                Origin::Node(node) => Some((node, index)),
                Origin::Comment(_) | Origin::Copy(_) => None,
            })
            .collect();
        let mut expanded = Vec::new();
        for alias in &document.aliases {
            let place = document.tree.nodes[alias.node].outer.clone();
            let refuse = |reason: &str| EncryptError::from(ParseError::at(text, place.start, reason));
            for index in alias.leaves.clone() {
                let original = document.leaves[index].node().and_then(|node| originals.get(&node));
                let leaks =
                    original.is_some_and(|original| sealed[*original].is_some()) && sealed[index].is_none();
                if leaks {
                    return Err(refuse(
                        "the alias would write a sealed value in the clear: give this place a value of its own",
                    ));
                }
            }
            if alias.leaves.clone().all(|index| sealed[index].is_none()) {
                continue;
            }
            if self.metadata.selector.is_about_comments() {
                return Err(refuse(
                    "an alias cannot repeat sealed values under a rule about comments: write them out",
                ));
            }
            let mut next = alias.leaves.clone().filter(|index| !document.leaves[*index].is_comment());
            let mut copied = || match next.next() {
                Some(index) => match &sealed[index] {
                    Some(enc) => Copied::Sealed(enc.to_string()),
                    None => Copied::Clear(Value::clone(&document.leaves[index].value)),
                },
                None => Copied::Clear(Value::Null),
            };
            let written = document.format.syntax().copied(&document.tree, alias.node, &mut copied);
            source.aliases.push((alias.event, text[place.clone()].to_owned()));
            expanded.push((place, written.into()));
        }
        Ok(expanded)
    }

    fn mac(&self, sealed: &[Option<TextPart>]) -> crate::secret::SecretBytes {
        let mut hasher = MacHasher::new(self.metadata.mac_only_encrypted);
        for (leaf, sealed) in self.document.leaves.iter().zip(sealed) {
            let counts = sealed.is_some() || !self.metadata.mac_only_encrypted;
            if counts && !leaf.is_comment() {
                hasher.add(leaf.value.bytes());
            }
        }
        hasher.finish()
    }

    fn claims(
        &self,
        metadata: &Metadata,
        sealed: &[Option<TextPart>],
        source: Source,
    ) -> Result<Claims, EncryptError> {
        let document = &self.document;
        let profile = object::profile(document);
        let tree = match profile {
            Profile::File => digest::tree(document, &|index| sealed[index].as_deref()),
            Profile::Object => object::tree_with(document, &|index| sealed[index].as_deref())
                .map_err(|error| EncryptError::Object(error.to_string()))?,
        };
        let meta = digest::meta(&metadata.stock_block());
        let mut claims = Claims::new(profile, document.tree.documents.len(), tree, meta);
        claims.bind = self.bind.clone().or_else(|| object::bind_here(document));
        if profile == Profile::Object && claims.bind.is_none() {
            let reason = "the object names no metadata.namespace and metadata.name, and its seal binds to them: add them";
            return Err(EncryptError::Object(reason.to_owned()));
        }
        claims.source = if profile == Profile::File { source } else { Source::default() };
        Ok(claims)
    }
}

/// Gives the text out only when it opens to what was to be sealed.
fn verified(
    written: String,
    format: Format,
    key: &DataKey,
    values: &[Value],
    plain: &SecretText,
) -> Result<String, EncryptError> {
    let file = SealedFile::of_text(SecretText::new(written), format)
        .map_err(|error| EncryptError::Unverified(error.to_string()))?;
    file.reopens_to(key, values, plain).map_err(EncryptError::Unverified)?;
    let SealedFile { text, document, .. } = file;
    drop(document);
    Ok(text.into_exposed())
}

/// `text` with the replacements made and the block in every document; the seal stands in the first.
pub(crate) fn with_block(
    text: &str,
    document: &Document,
    mut replacements: Replacements<'_>,
    metadata: &Metadata,
    seal: Option<String>,
) -> String {
    let sealed = metadata.clone().with_seal(seal);
    let (first, others) = (sealed.block().clone().into(), metadata.stock_block().into());
    let (insertions, _) = document.format.syntax().block_insertions(text, &document.tree, &first, &others);
    replacements.extend(insertions.into_iter().map(|added| (added.offset..added.offset, added.text.into())));
    splice(text, replacements)
}

//! One sealed item, byte for byte as Sealed Secrets has it: the only file that calls RSA-OAEP and the AES-GCM of items.
//!
//! `item = N (2 bytes, big endian) ‖ RSAES-OAEP(key, K, label) (N bytes) ‖ AES-256-GCM(K, 0⁹⁶, plaintext)`, written as
//! base64, where `K` is a fresh session key of 32 bytes. OAEP is that of RFC 8017 with SHA-256 in both places; GCM that
//! of NIST SP 800-38D with a tag of 16 bytes.
//!
//! There is no version, no key's name and no authentication of the sender: whoever has the certificate can make an item.
//! What binds an item to its place is the label alone (see [`crate::object::sealed_secret::ItemScope`]); the item's name
//! in its object is bound by nothing. Which keys are tried in which order is for the caller to say.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::rsa::OAEP_SHA256_MGF1SHA256;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use crate::sealing_key::{PublicSealingKey, SealingKey};
use crate::secret::SecretBytes;

pub mod base64_text;

/// Length of a session key in bytes.
const SESSION_KEY_BYTES: usize = 32;
/// Length of the field that says how long the RSA part is, in bytes.
const LENGTH_BYTES: usize = 2;
/// Length of a GCM tag in bytes.
const TAG_BYTES: usize = 16;

/// Why an item could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealedItemError {
    /// The library refused.
    #[error("the item could not be sealed: the system's randomness or memory gave out")]
    Failed,
}

/// Why an item does not open. The RSA part cannot tell a wrong key from a wrong label: both are [`ItemError::NotOpened`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ItemError {
    /// It is not base64.
    #[error("it is not base64: the character at byte {at} does not belong there")]
    Base64 {
        /// Where, counted from 0 in the text as it stands.
        at: usize,
    },
    /// A key opened the RSA part, and what follows it does not belong to it.
    #[error("it was damaged after it was sealed: its key opens it, and its content does not match")]
    Corrupt {
        /// Index of the key that fits.
        key: usize,
    },
    /// No key has the size that the item names.
    #[error("it was sealed for a key of {} bits, and there is none of that size", modulus_bytes * 8)]
    NoKeyOfSize {
        /// The size that it names.
        modulus_bytes: usize,
    },
    /// No key opens the RSA part under this label.
    #[error("none of the {tried} keys of its size opens it here")]
    NotOpened {
        /// How many keys were tried.
        tried: usize,
    },
    /// It ends before its parts do.
    #[error("it is cut off: {bytes} bytes are too few")]
    TooShort {
        /// How many there are.
        bytes: usize,
    },
}

/// An item that was opened.
pub struct OpenedItem {
    /// Its plaintext.
    pub plaintext: SecretBytes,
    /// Index of the key that opened it, in the order that was given.
    pub key: usize,
}

/// Seals `plaintext` for the holder of `key` under `label`.
///
/// The nonce may be constant because the session key is drawn here, serves this one call and is wiped at its end: no key
/// ever meets a nonce twice. GCM needs no data bound to it, since only the holder of the session key can make the tag, and
/// the session key opens under `label` only.
///
/// # Errors
/// When the system has no randomness to give.
pub fn seal(
    key: &PublicSealingKey,
    label: &[u8],
    plaintext: &SecretBytes,
) -> Result<String, SealedItemError> {
    let mut session = Zeroizing::new([0; SESSION_KEY_BYTES]);
    getrandom::fill(session.as_mut_slice()).map_err(|_| SealedItemError::Failed)?;
    let modulus_bytes = key.modulus_bytes();
    // Room for all of it at once: growing would leave a copy of the plaintext behind.
    let mut item = Vec::with_capacity(LENGTH_BYTES + modulus_bytes + plaintext.len() + TAG_BYTES);
    let length = u16::try_from(modulus_bytes).map_err(|_| SealedItemError::Failed)?;
    item.extend_from_slice(&length.to_be_bytes());
    item.resize(LENGTH_BYTES + modulus_bytes, 0);
    let written = key
        .encrypting()
        .encrypt(&OAEP_SHA256_MGF1SHA256, session.as_slice(), &mut item[LENGTH_BYTES..], oaep_label(label))
        .map_err(|_| SealedItemError::Failed)?
        .len();
    if written != modulus_bytes {
        return Err(SealedItemError::Failed);
    }
    let content = item.len();
    item.extend_from_slice(plaintext.expose_secret());
    let tag = cipher(&session)
        .and_then(|cipher| {
            cipher.seal_in_place_separate_tag(only_nonce(), Aad::empty(), &mut item[content..]).ok()
        })
        .ok_or(SealedItemError::Failed)?;
    item.extend_from_slice(tag.as_ref());
    Ok(STANDARD.encode(&item))
}

/// Opens `text` with the first of `keys` that fits under `label`.
///
/// A key of another size than the item names is passed over without an RSA operation. A session key of another length
/// than 32 bytes is refused: it would select a weaker cipher, and nobody ever wrote one.
///
/// # Errors
/// See [`ItemError`].
pub fn open(keys: &[&SealingKey], label: &[u8], text: &str) -> Result<OpenedItem, ItemError> {
    let order: Vec<_> = (0..keys.len()).collect();
    Item::parse(text)?.open(keys, &order, label)
}

/// An item that was decoded, for more than one attempt to open it.
pub(crate) struct Item {
    bytes: Vec<u8>,
    modulus_bytes: usize,
}

impl Item {
    /// The bytes of `text`, cut into their parts.
    pub(crate) fn parse(text: &str) -> Result<Self, ItemError> {
        let bytes = base64_text::decode(text).map_err(|at| ItemError::Base64 { at })?;
        let too_short = ItemError::TooShort { bytes: bytes.len() };
        let Some(length) = bytes.first_chunk::<LENGTH_BYTES>() else { return Err(too_short) };
        let modulus_bytes = usize::from(u16::from_be_bytes(*length));
        match bytes.len() < LENGTH_BYTES + modulus_bytes + TAG_BYTES {
            true => Err(too_short),
            false => Ok(Self { bytes, modulus_bytes }),
        }
    }

    /// Whether a key of that size may have made it.
    pub(crate) fn fits(&self, key: &PublicSealingKey) -> bool {
        key.modulus_bytes() == self.modulus_bytes
    }

    /// Opens with the first key that fits, in `order`.
    pub(crate) fn open(
        &self,
        keys: &[&SealingKey],
        order: &[usize],
        label: &[u8],
    ) -> Result<OpenedItem, ItemError> {
        let mut tried = 0;
        for &index in order {
            if !self.fits(keys[index].public()) {
                continue;
            }
            tried += 1;
            if let Some(session) = self.session_key(keys[index], label) {
                let plaintext = self.content(&session).ok_or(ItemError::Corrupt { key: index })?;
                return Ok(OpenedItem { plaintext, key: index });
            }
        }
        Err(match tried {
            0 => ItemError::NoKeyOfSize { modulus_bytes: self.modulus_bytes },
            _ => ItemError::NotOpened { tried },
        })
    }

    /// Whether `key` opens the RSA part under `label`, and nothing of the plaintext.
    pub(crate) fn is_for(&self, key: &SealingKey, label: &[u8]) -> bool {
        self.fits(key.public()) && self.session_key(key, label).is_some()
    }

    /// `K`, or nothing when key or label is another. The library checks padding and label in constant time.
    fn session_key(&self, key: &SealingKey, label: &[u8]) -> Option<SecretBytes> {
        let wrapped = &self.bytes[LENGTH_BYTES..LENGTH_BYTES + self.modulus_bytes];
        let mut buffer = Zeroizing::new(vec![0; key.decrypting().min_output_size()]);
        let session = key
            .decrypting()
            .decrypt(&OAEP_SHA256_MGF1SHA256, wrapped, &mut buffer, oaep_label(label))
            .ok()?;
        Some(SecretBytes::new(session.to_vec()))
    }

    /// The plaintext, or nothing when the tag does not match, in memory that is wiped either way.
    fn content(&self, session: &SecretBytes) -> Option<SecretBytes> {
        let session = session.expose_secret().try_into().ok()?;
        let mut data = Zeroizing::new(self.bytes[LENGTH_BYTES + self.modulus_bytes..].to_vec());
        let length = cipher(session)?.open_in_place(only_nonce(), Aad::empty(), &mut data).ok()?.len();
        data.truncate(length);
        Some(SecretBytes::new(std::mem::take(&mut *data)))
    }
}

fn cipher(session: &[u8; SESSION_KEY_BYTES]) -> Option<LessSafeKey> {
    UnboundKey::new(&AES_256_GCM, session).ok().map(LessSafeKey::new)
}

/// The one nonce of every item: 96 zero bits. Its key is never used for a second message.
fn only_nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

/// An empty label is the same as none, and cluster-wide items have it.
fn oaep_label(label: &[u8]) -> Option<&[u8]> {
    (!label.is_empty()).then_some(label)
}

//! The hybrid post-quantum kind: `age1pq1…` and `AGE-SECRET-KEY-PQ-1…`.
//!
//! Standard: the stanza `mlkem768x25519` of the age format (C2SP `age.md`), which is HPKE (RFC 9180) in base mode with
//! MLKEM768-X25519 (X-Wing, KEM 0x647a of draft-ietf-hpke-pq), HKDF-SHA256 and ChaCha20-Poly1305:
//!
//! ```text
//! (enc, secret) ← Encapsulate(recipient)          enc: 1,088 bytes of ML-KEM ‖ 32 bytes of X25519
//! key, nonce    = KeySchedule(base, secret, info = "age-encryption.org/mlkem768x25519")
//! stanza        = "mlkem768x25519" ‖ base64(enc) ‖ ChaCha20-Poly1305(key, nonce, no data, file key)
//! ```
//!
//! One context seals one message and is dropped, and `secret` comes from fresh randomness, so the nonce of sequence
//! number zero meets each key once. The body has one length, that of a file key and a tag: a longer one would let its
//! author find out which of several keys opens it (as for X25519 stanzas). No data is bound because age's header MAC
//! covers the stanza.
//!
//! X-Wing as it stands accepts X25519 shares of low order, which would leave ML-KEM alone in charge; a recipient or a
//! stanza with one is refused, as age does. A private key is the 32-byte seed of X-Wing. Keys that would fit a stanza
//! are not told apart before the tag is checked: ML-KEM rejects implicitly.
//!
//! Every recipient of an age file must be post-quantum or none, or the weakest would decide: the label `postquantum`
//! makes the `age` crate refuse a mixture.

use std::collections::HashSet;

use ::age::secrecy::ExposeSecret;
use ::age::{DecryptError, EncryptError};
use age_core::format::{FILE_KEY_BYTES, FileKey, Stanza};
use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use bech32::{FromBase32, ToBase32, Variant};
use hpke::aead::ChaCha20Poly1305;
use hpke::kdf::HkdfSha256;
use hpke::kem::XWing;
use hpke::{Deserializable, Kem, OpModeR, OpModeS, Serializable};
use zeroize::Zeroizing;

use super::low_order::is_low_order;
use crate::secret::SecretText;

/// How recipients begin, before the separator.
const RECIPIENT_PREFIX: &str = "age1pq";
/// How identities begin, in the lower case that Bech32 decodes to.
const IDENTITY_PREFIX: &str = "age-secret-key-pq-";
const STANZA_TAG: &str = "mlkem768x25519";
const INFO: &[u8] = b"age-encryption.org/mlkem768x25519";
const LABEL: &str = "postquantum";
/// A file key and its tag.
const BODY_BYTES: usize = FILE_KEY_BYTES + 16;
/// What ML-KEM-768 takes of a public key, and of an encapsulated one; the X25519 share follows.
const PUBLIC_KEY_ML_KEM_BYTES: usize = 1184;
const ENCAPSULATED_ML_KEM_BYTES: usize = 1088;

type PublicKey = <XWing as Kem>::PublicKey;
type PrivateKey = <XWing as Kem>::PrivateKey;
type EncapsulatedKey = <XWing as Kem>::EncappedKey;

/// A public key to wrap for.
#[derive(Clone)]
pub(super) struct HybridRecipient(Box<PublicKey>);

impl HybridRecipient {
    /// Reads `age1pq1…`; nothing when it is anything else, or a key that ML-KEM or the check for low order refuses.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let bytes = decode(text, RECIPIENT_PREFIX)?;
        let key = PublicKey::from_bytes(&bytes).ok()?;
        let share = bytes.get(PUBLIC_KEY_ML_KEM_BYTES..)?.try_into().ok()?;
        (!is_low_order(share)).then(|| Self(Box::new(key)))
    }

    /// As [`Self::parse`] takes it.
    pub(super) fn to_text(&self) -> String {
        encode(RECIPIENT_PREFIX, &self.0.to_bytes())
    }
}

impl ::age::Recipient for HybridRecipient {
    fn wrap_file_key(&self, key: &FileKey) -> Result<(Vec<Stanza>, HashSet<String>), EncryptError> {
        let (share, body) = hpke::single_shot_seal::<ChaCha20Poly1305, HkdfSha256, XWing>(
            &OpModeS::Base,
            &self.0,
            INFO,
            key.expose_secret(),
            &[],
        )
        .map_err(|_| EncryptError::Io(std::io::Error::other("HPKE could not seal")))?;
        let stanza = Stanza {
            tag: STANZA_TAG.to_owned(),
            args: vec![BASE64_STANDARD_NO_PAD.encode(share.to_bytes())],
            body,
        };
        Ok((vec![stanza], HashSet::from([LABEL.to_owned()])))
    }
}

/// A private key, wiped when dropped.
#[derive(Clone)]
pub(super) struct HybridIdentity(Box<PrivateKey>);

impl HybridIdentity {
    /// A fresh key from the operating system's generator.
    pub(super) fn generate() -> Self {
        Self(Box::new(XWing::gen_keypair().0))
    }

    /// Reads `AGE-SECRET-KEY-PQ-1…`; nothing when it is anything else.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let seed = decode(text, IDENTITY_PREFIX)?;
        PrivateKey::from_bytes(&seed).ok().map(|key| Self(Box::new(key)))
    }

    /// As [`Self::parse`] takes it.
    pub(super) fn to_text(&self) -> SecretText {
        let seed = Zeroizing::new(<[u8; 32]>::from(self.0.to_bytes()));
        let lower = Zeroizing::new(encode(IDENTITY_PREFIX, seed.as_slice()));
        SecretText::new(lower.to_ascii_uppercase())
    }

    /// The public half.
    pub(super) fn to_public(&self) -> HybridRecipient {
        HybridRecipient(Box::new(XWing::sk_to_pk(&self.0)))
    }
}

impl ::age::Identity for HybridIdentity {
    /// A stanza of this kind that is malformed ends the attempt; one that does not open is for another key.
    fn unwrap_stanza(&self, stanza: &Stanza) -> Option<Result<FileKey, DecryptError>> {
        if stanza.tag != STANZA_TAG {
            return None;
        }
        let Some(share) = read_share(stanza) else { return Some(Err(DecryptError::InvalidHeader)) };
        let opened = hpke::single_shot_open::<ChaCha20Poly1305, HkdfSha256, XWing>(
            &OpModeR::Base,
            &self.0,
            &share,
            INFO,
            &stanza.body,
            &[],
        );
        let opened = Zeroizing::new(opened.ok()?);
        // The length of the body was checked, so that of the key is right.
        Some(Ok(FileKey::init_with_mut(|key| key.copy_from_slice(&opened))))
    }
}

/// The encapsulated key of a stanza that is formed as the standard wants it.
fn read_share(stanza: &Stanza) -> Option<EncapsulatedKey> {
    let [share] = stanza.args.as_slice() else { return None };
    let bytes = BASE64_STANDARD_NO_PAD.decode(share).ok()?;
    let classic = bytes.get(ENCAPSULATED_ML_KEM_BYTES..)?.try_into().ok()?;
    if stanza.body.len() != BODY_BYTES || is_low_order(classic) {
        return None;
    }
    EncapsulatedKey::from_bytes(&bytes).ok()
}

/// The bytes behind `prefix`, wiped when dropped: they may be a private key's.
fn decode(text: &str, prefix: &str) -> Option<Zeroizing<Vec<u8>>> {
    let (found, words, variant) = bech32::decode(text).ok()?;
    if variant != Variant::Bech32 || found != prefix {
        return None;
    }
    Vec::from_base32(&words).ok().map(Zeroizing::new)
}

fn encode(prefix: &str, bytes: &[u8]) -> String {
    bech32::encode(prefix, bytes.to_base32(), Variant::Bech32).expect("both prefixes are lower-case ASCII")
}

#[cfg(test)]
mod tests {
    use ::age::{Identity, Recipient};

    use super::*;

    fn file_key() -> FileKey {
        FileKey::new(Box::new([7; FILE_KEY_BYTES]))
    }

    fn stanza(recipient: &HybridRecipient) -> Stanza {
        recipient.wrap_file_key(&file_key()).unwrap().0.remove(0)
    }

    /// `stanza` with other bytes as its encapsulated key.
    fn with_share(stanza: &Stanza, change: impl FnOnce(&mut Vec<u8>)) -> Stanza {
        let mut share = BASE64_STANDARD_NO_PAD.decode(&stanza.args[0]).unwrap();
        change(&mut share);
        Stanza { args: vec![BASE64_STANDARD_NO_PAD.encode(share)], ..copy(stanza) }
    }

    fn copy(stanza: &Stanza) -> Stanza {
        Stanza { tag: stanza.tag.clone(), args: stanza.args.clone(), body: stanza.body.clone() }
    }

    #[test]
    fn a_file_key_comes_back_to_its_own_key_alone() {
        let (mine, other) = (HybridIdentity::generate(), HybridIdentity::generate());
        let (stanzas, labels) = mine.to_public().wrap_file_key(&file_key()).unwrap();
        assert_eq!((stanzas.len(), labels), (1, HashSet::from(["postquantum".to_owned()])));
        let opened = mine.unwrap_stanza(&stanzas[0]).unwrap().ok().unwrap();
        assert_eq!(opened.expose_secret(), file_key().expose_secret());
        assert!(other.unwrap_stanza(&stanzas[0]).is_none());
    }

    #[test]
    fn malformed_stanzas_are_refused_and_foreign_ones_passed_over() {
        let mine = HybridIdentity::generate();
        let good = stanza(&mine.to_public());
        let refused = |stanza: Stanza| matches!(mine.unwrap_stanza(&stanza), Some(Err(_)));
        assert!(refused(Stanza { args: vec![], ..copy(&good) }));
        assert!(refused(Stanza { args: vec![good.args[0].clone(), "x".to_owned()], ..copy(&good) }));
        assert!(refused(Stanza { args: vec!["*".to_owned()], ..copy(&good) }));
        assert!(refused(with_share(&good, |share| share.truncate(1119))));
        assert!(refused(with_share(&good, |share| share.push(0))));
        assert!(refused(Stanza { body: good.body[1..].to_vec(), ..copy(&good) }));
        assert!(refused(Stanza { body: [&good.body[..], &[0]].concat(), ..copy(&good) }));
        assert!(mine.unwrap_stanza(&Stanza { tag: "X25519".to_owned(), ..copy(&good) }).is_none());
        assert!(mine.unwrap_stanza(&with_share(&good, |share| share[5] ^= 1)).is_none());
    }

    #[test]
    fn a_share_of_low_order_is_refused() {
        let mine = HybridIdentity::generate();
        let good = stanza(&mine.to_public());
        let zero = with_share(&good, |share| share[ENCAPSULATED_ML_KEM_BYTES..].fill(0));
        assert!(matches!(mine.unwrap_stanza(&zero), Some(Err(DecryptError::InvalidHeader))));
        let mut public = mine.to_public().0.to_bytes().to_vec();
        assert!(HybridRecipient::parse(&encode(RECIPIENT_PREFIX, &public)).is_some());
        public[PUBLIC_KEY_ML_KEM_BYTES..].fill(0);
        assert!(HybridRecipient::parse(&encode(RECIPIENT_PREFIX, &public)).is_none());
    }

    #[test]
    fn keys_are_read_as_they_are_written_and_nothing_else_is() {
        let mine = HybridIdentity::generate();
        let (secret, public) = (mine.to_text(), mine.to_public().to_text());
        assert!(secret.expose_secret().starts_with("AGE-SECRET-KEY-PQ-1"));
        assert_eq!(public.len(), 1959);
        let again = HybridIdentity::parse(secret.expose_secret()).unwrap();
        assert_eq!(again.to_public().to_text(), public);
        assert_eq!(HybridRecipient::parse(&public.to_ascii_uppercase()).unwrap().to_text(), public);
        for text in ["", "age1pq1", &public[..1958], secret.expose_secret()] {
            assert!(HybridRecipient::parse(text).is_none());
        }
        let seed = |length| encode(IDENTITY_PREFIX, &vec![7; length]);
        assert!(HybridIdentity::parse(&seed(32)).is_some());
        assert!(HybridIdentity::parse(&seed(31)).is_none() && HybridIdentity::parse(&seed(33)).is_none());
        let other_checksum =
            bech32::encode(IDENTITY_PREFIX, vec![7; 32].to_base32(), Variant::Bech32m).unwrap();
        assert!(HybridIdentity::parse(&other_checksum).is_none());
    }
}

//! RSA key pairs of sealed items and the certificates that publish them: the only file that reads or makes either.
//!
//! What a key does to an item stands in [`crate::sealed_item`]. Which key of many is tried first, where keys are kept
//! and when a new one is due is for the caller to say. Two keys are the same when modulus and exponent are, whatever
//! container they came in.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{
    KeyPair, KeySize, OaepPrivateDecryptingKey, OaepPublicEncryptingKey, PrivateDecryptingKey,
    PublicEncryptingKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use pkcs1::RsaPublicKey;
use pkcs8::der::{Decode, Encode, SecretDocument};
use pkcs8::{PrivateKeyInfo, SubjectPublicKeyInfoRef};
use sha2::{Digest, Sha256};

use crate::secret::{SecretBytes, SecretText};

mod certificate;
mod pem;

pub use certificate::Certificate;
use pem::Block;

/// Fewest bits of a key that is read or made.
pub const KEY_BITS_MIN: usize = 2048;
/// Most bits of a key that is read or made.
pub const KEY_BITS_MAX: usize = 8192;
/// Most bytes of a PEM text. A bundle of a hundred keys and certificates takes half a MiB.
pub const PEM_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Most keys of one PEM text: each costs an RSA operation per item that it does not open.
pub const KEYS_MAX: usize = 1000;

const PKCS1_LABEL: &str = "RSA PRIVATE KEY";
const PKCS8_LABEL: &str = "PRIVATE KEY";
const RSA_ONLY: &str = "only RSA keys open and seal items";

/// A key or a certificate cannot be used. No message holds any of the key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealingKeyError {
    /// The certificate publishes a key that is not RSA.
    #[error("the certificate's key is {found}, and {RSA_ONLY}: make one with --key-size 4096 and RSA")]
    CertificateNotRsa {
        /// The algorithm that was found.
        found: String,
    },
    /// The key is protected by a passphrase.
    #[error("the key is encrypted with a passphrase: decrypt it first, for example with `openssl pkey`")]
    Encrypted,
    /// No key could be made.
    #[error("no key could be generated: the system's randomness or memory gave out")]
    Generation,
    /// A block is not what its label says.
    #[error("{what} is broken: {reason}")]
    Malformed {
        /// Which part.
        what: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no certificate.
    #[error("no certificate in it, {found}: give the PEM file that `kube cert` writes")]
    NoCertificate {
        /// What was found instead.
        found: String,
    },
    /// There is no private key.
    #[error("no RSA private key in it, {found}: give the `tls.key` of a sealing key")]
    NoKey {
        /// What was found instead.
        found: String,
    },
    /// The key is not RSA.
    #[error("the private key is {found}, and {RSA_ONLY}")]
    NotRsa {
        /// The algorithm that was found.
        found: String,
    },
    /// The key has a size that is not read or made.
    #[error("{0}")]
    Size(String),
    /// The certificate's times cannot be written.
    #[error("a certificate cannot be valid until then: its last time is the end of the year 9999")]
    Time,
    /// The text is too large.
    #[error("more than {PEM_BYTES_MAX} bytes or {KEYS_MAX} keys: that is no file of keys")]
    TooLarge,
}

fn malformed(what: &'static str, reason: impl fmt::Display) -> SealingKeyError {
    SealingKeyError::Malformed { what, reason: reason.to_string() }
}

/// A private key that opens items. Its memory is wiped when it is dropped.
pub struct SealingKey {
    decrypting: OaepPrivateDecryptingKey,
    /// PKCS#1, DER.
    der: SecretBytes,
    public: PublicSealingKey,
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SealingKey({})", self.public.fingerprint())
    }
}

impl SealingKey {
    /// A fresh key.
    ///
    /// # Errors
    /// When `bits` is none of 2048, 3072, 4096 and 8192, or the system has no randomness.
    pub fn generate(bits: usize) -> Result<Self, SealingKeyError> {
        let size = match bits {
            2048 => KeySize::Rsa2048,
            3072 => KeySize::Rsa3072,
            4096 => KeySize::Rsa4096,
            8192 => KeySize::Rsa8192,
            _ => {
                let reason = format!("keys of {bits} bits are not made: take 2048, 3072, 4096 or 8192");
                return Err(SealingKeyError::Size(reason));
            }
        };
        let key = PrivateDecryptingKey::generate(size).map_err(|_| SealingKeyError::Generation)?;
        let der: Pkcs8V1Der<'_> = key.as_der().map_err(|_| SealingKeyError::Generation)?;
        Self::from_pkcs8(der.as_ref())
    }

    /// The first private key of a PEM text: PKCS#1 or PKCS#8.
    ///
    /// # Errors
    /// When there is none, or it is not an RSA key of a size that is read.
    pub fn from_pem(pem: &SecretText) -> Result<Self, SealingKeyError> {
        let blocks = pem::blocks(pem.expose_secret())?;
        match blocks.iter().find(|block| is_private(block)) {
            Some(block) => Self::from_block(block),
            None => Err(SealingKeyError::NoKey { found: pem::found(&blocks) }),
        }
    }

    /// Every private key of a PEM text in the order of the text. What is no private key is passed over.
    ///
    /// # Errors
    /// When there is none, and when one of them cannot be used: a key that is missing without a word looks like items
    /// that nobody can open.
    pub fn all_from_pem(pem: &SecretText) -> Result<Vec<Self>, SealingKeyError> {
        let blocks = pem::blocks(pem.expose_secret())?;
        let private: Vec<_> = blocks.iter().filter(|block| is_private(block)).collect();
        if private.is_empty() {
            return Err(SealingKeyError::NoKey { found: pem::found(&blocks) });
        }
        if private.len() > KEYS_MAX {
            return Err(SealingKeyError::TooLarge);
        }
        private.into_iter().map(Self::from_block).collect()
    }

    /// The key as a cluster's Secret holds it: PKCS#1 in PEM.
    pub fn to_pem(&self) -> SecretText {
        SecretText::new(pem::write(PKCS1_LABEL, self.der.expose_secret()))
    }

    /// The half that seals.
    pub fn public(&self) -> &PublicSealingKey {
        &self.public
    }

    /// The key as the item cipher takes it.
    pub(crate) fn decrypting(&self) -> &OaepPrivateDecryptingKey {
        &self.decrypting
    }

    /// The key as what signs its own certificate, and nothing else.
    fn signing(&self) -> Result<KeyPair, SealingKeyError> {
        KeyPair::from_der(self.der.expose_secret()).map_err(|reason| malformed("the key", reason))
    }

    fn from_block(block: &Block<'_>) -> Result<Self, SealingKeyError> {
        if block.encrypted || block.label == "ENCRYPTED PRIVATE KEY" {
            return Err(SealingKeyError::Encrypted);
        }
        match block.label {
            PKCS1_LABEL => Self::from_pkcs1(block.content.expose_secret()),
            PKCS8_LABEL => Self::from_pkcs8(block.content.expose_secret()),
            other => Err(SealingKeyError::NotRsa { found: other.replace(" PRIVATE KEY", "") }),
        }
    }

    fn from_pkcs8(der: &[u8]) -> Result<Self, SealingKeyError> {
        let info = PrivateKeyInfo::try_from(der).map_err(|reason| malformed("the key", reason))?;
        if info.algorithm.oid != pkcs1::ALGORITHM_OID {
            return Err(SealingKeyError::NotRsa { found: certificate::algorithm_name(&info.algorithm.oid) });
        }
        Self::from_pkcs1(info.private_key)
    }

    /// The library takes PKCS#8 for decryption, so the PKCS#1 key is put into that container.
    fn from_pkcs1(der: &[u8]) -> Result<Self, SealingKeyError> {
        let key = pkcs1::RsaPrivateKey::try_from(der).map_err(|reason| malformed("the key", reason))?;
        let public = PublicSealingKey::new(&key.public_key())?;
        let info = PrivateKeyInfo::new(pkcs1::ALGORITHM_ID, der);
        let wrapped = SecretDocument::try_from(info).map_err(|reason| malformed("the key", reason))?;
        let key = PrivateDecryptingKey::from_pkcs8(wrapped.as_bytes())
            .and_then(|key| OaepPrivateDecryptingKey::new(key).map_err(Into::into));
        let decrypting = key.map_err(|reason| malformed("the key", reason))?;
        Ok(Self { decrypting, der: SecretBytes::new(der.to_vec()), public })
    }
}

fn is_private(block: &&Block<'_>) -> bool {
    block.label.ends_with("PRIVATE KEY")
}

/// The half of a key that seals items. Cheap to clone.
#[derive(Clone)]
pub struct PublicSealingKey {
    encrypting: Arc<OaepPublicEncryptingKey>,
    modulus: Arc<[u8]>,
    exponent: Arc<[u8]>,
}

impl PartialEq for PublicSealingKey {
    fn eq(&self, other: &Self) -> bool {
        self.modulus == other.modulus && self.exponent == other.exponent
    }
}

impl Eq for PublicSealingKey {}

impl fmt::Debug for PublicSealingKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PublicSealingKey({})", self.fingerprint())
    }
}

impl PublicSealingKey {
    /// Length of the modulus, and so of the RSA part of each item, in bytes.
    pub fn modulus_bytes(&self) -> usize {
        self.modulus.len()
    }

    /// The key's name: `SHA256:` and the unpadded base64 of the digest of its SSH form, as `ssh-keygen -l` shows it.
    pub fn fingerprint(&self) -> String {
        let mut digest = Sha256::new();
        for part in [b"ssh-rsa".to_vec(), positive(&self.exponent), positive(&self.modulus)] {
            let length = u32::try_from(part.len()).expect("a key of 8192 bits has 1025 bytes at most");
            digest.update(length.to_be_bytes());
            digest.update(&part);
        }
        format!("SHA256:{}", STANDARD_NO_PAD.encode(digest.finalize()))
    }

    /// The key as the item cipher takes it.
    pub(crate) fn encrypting(&self) -> &OaepPublicEncryptingKey {
        &self.encrypting
    }

    fn new(key: &RsaPublicKey<'_>) -> Result<Self, SealingKeyError> {
        let (modulus, exponent) = (key.modulus.as_bytes(), key.public_exponent.as_bytes());
        let bits = bit_length(modulus);
        if !(KEY_BITS_MIN..=KEY_BITS_MAX).contains(&bits) {
            let reason = format!("the key has {bits} bits, and {KEY_BITS_MIN} to {KEY_BITS_MAX} are used");
            return Err(SealingKeyError::Size(reason));
        }
        let der = key.to_der().map_err(|reason| malformed("the key", reason))?;
        let spki = certificate::subject_public_key_info(&der)?;
        let key = PublicEncryptingKey::from_der(&spki)
            .and_then(|key| OaepPublicEncryptingKey::new(key).map_err(Into::into));
        let encrypting = Arc::new(key.map_err(|reason| malformed("the key", reason))?);
        Ok(Self { encrypting, modulus: modulus.into(), exponent: exponent.into() })
    }

    fn from_spki(spki: &SubjectPublicKeyInfoRef<'_>) -> Result<Self, SealingKeyError> {
        let bits = spki.subject_public_key.raw_bytes();
        let key =
            RsaPublicKey::from_der(bits).map_err(|reason| malformed("the certificate's key", reason))?;
        Self::new(&key)
    }

    /// PKCS#1, DER: what a subject key identifier is the digest of.
    fn to_der(&self) -> Result<Vec<u8>, SealingKeyError> {
        let part = |bytes| pkcs1::UintRef::new(bytes).map_err(|reason| malformed("the key", reason));
        let key = RsaPublicKey { modulus: part(&self.modulus)?, public_exponent: part(&self.exponent)? };
        key.to_der().map_err(|reason| malformed("the key", reason))
    }
}

fn bit_length(bytes: &[u8]) -> usize {
    bytes.first().map_or(0, |first| bytes.len() * 8 - first.leading_zeros() as usize)
}

/// A positive number as SSH writes it: with a zero byte before a first bit that is set.
fn positive(bytes: &[u8]) -> Vec<u8> {
    let sign = bytes.first().is_some_and(|first| first & 0x80 != 0).then_some(0);
    sign.into_iter().chain(bytes.iter().copied()).collect()
}

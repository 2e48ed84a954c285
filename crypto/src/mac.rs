//! The message authentication code of stock tools, and the mark that says a seal belongs to it.
//!
//! `MAC = hex(SHA-512(P₁ ‖ P₂ ‖ …))` in upper case over the plaintext bytes of all values in document order, sealed
//! like a value under the data key with the text of `lastmodified` as additional data. Keys, comments, nulls and the
//! structure are no part of it, and neighbours have no border: that is why the seal exists.
//!
//! The nonce of the MAC carries the mark: `r ‖ HMAC-SHA256(HKDF(K, "lacre.dev/mark/1"), r ‖ lastmodified)[..16]` with
//! 16 random bytes `r`. GCM authenticates its nonce, so nobody without the key can add or remove the mark, and a
//! nonce never repeats while the 16 bytes do not.

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac as _};
use sha2::{Digest, Sha256, Sha512};
use zeroize::Zeroizing;

use crate::aead::ValueCipher;
use crate::secret::{DataKey, SecretBytes};
use crate::value::{Form, Nonce, Sealed, ValueType};

const MARK_INFO: &[u8] = b"lacre.dev/mark/1";
const RANDOM_BYTES: usize = 16;

/// Collects the values of a document in order.
pub struct MacHasher(Sha512);

impl MacHasher {
    /// A hasher for all values, or for sealed ones only: then it starts with SHA-256 of `sops`, so that the two
    /// kinds can never be taken for each other.
    pub fn new(sealed_only: bool) -> Self {
        let mut hasher = Sha512::new();
        if sealed_only {
            hasher.update(Sha256::digest(b"sops"));
        }
        Self(hasher)
    }

    /// Adds one value's plaintext bytes.
    pub fn add(&mut self, plaintext: &[u8]) {
        self.0.update(plaintext);
    }

    /// The code: 128 upper-case hexadecimal digits.
    pub fn finish(self) -> SecretBytes {
        let digits = self.0.finalize().iter().map(|byte| format!("{byte:02X}")).collect::<String>();
        SecretBytes::new(digits.into_bytes())
    }
}

/// Seals the code for the `mac` field, marked when a seal will stand beside it.
pub fn seal(
    key: &DataKey,
    cipher: &ValueCipher,
    code: &SecretBytes,
    last_modified: &str,
    marked: bool,
) -> String {
    let mut nonce = cipher.fresh_nonce();
    if marked {
        let (random, mark) = nonce.split_at_mut(RANDOM_BYTES);
        mark.copy_from_slice(&mark_of(key, random, last_modified));
    }
    let sealed =
        cipher.seal_with_nonce(nonce, ValueType::Str, code.expose_secret(), last_modified.as_bytes());
    sealed.to_string()
}

/// Opens the `mac` field; nothing when it is damaged or its `lastmodified` was changed.
pub fn open(cipher: &ValueCipher, mac: &str, last_modified: &str) -> Option<SecretBytes> {
    cipher.open(&Sealed::parse(mac, Form::Lax).ok()?, last_modified.as_bytes())
}

/// Whether the `mac` field was written together with a seal.
pub fn is_marked(key: &DataKey, mac: &str, last_modified: &str) -> bool {
    let Ok(sealed) = Sealed::parse(mac, Form::Lax) else { return false };
    let Nonce::Long(nonce) = sealed.nonce else { return false };
    let (random, mark) = nonce.split_at(RANDOM_BYTES);
    mark == mark_of(key, random, last_modified)
}

fn mark_of(key: &DataKey, random: &[u8], last_modified: &str) -> [u8; 16] {
    let mark_key = derive(key, MARK_INFO);
    let mut hmac = Hmac::<Sha256>::new_from_slice(&*mark_key).expect("HMAC takes keys of any length");
    hmac.update(random);
    hmac.update(last_modified.as_bytes());
    let digest = hmac.finalize().into_bytes();
    let mut mark = [0; 16];
    mark.copy_from_slice(&digest[..16]);
    mark
}

/// A key for one purpose: HKDF-SHA256 (RFC 5869) over the data key without salt, 32 bytes, separated by `info`.
pub(crate) fn derive(key: &DataKey, info: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut derived = Zeroizing::new([0; 32]);
    Hkdf::<Sha256>::new(None, key.expose_secret())
        .expand(info, derived.as_mut_slice())
        .expect("HKDF-SHA256 gives up to 8,160 bytes");
    derived
}

/// HMAC-SHA256 under a key derived for `info`, in hexadecimal digits: a fingerprint that only holders of the data
/// key can compute.
pub(crate) fn fingerprint(key: &DataKey, info: &[u8], parts: &[&[u8]]) -> String {
    let derived = derive(key, info);
    let mut hmac = Hmac::<Sha256>::new_from_slice(&*derived).expect("HMAC takes keys of any length");
    for part in parts {
        hmac.update(&(part.len() as u64).to_be_bytes());
        hmac.update(part);
    }
    hmac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_binds_the_time_and_the_key() {
        let key = DataKey::generate();
        let cipher = ValueCipher::new(key.expose_secret());
        let code = MacHasher::new(false).finish();
        let marked = seal(&key, &cipher, &code, "2026-01-01T00:00:00Z", true);
        assert!(is_marked(&key, &marked, "2026-01-01T00:00:00Z"));
        assert!(!is_marked(&key, &marked, "2026-01-01T00:00:01Z"));
        assert!(!is_marked(&DataKey::generate(), &marked, "2026-01-01T00:00:00Z"));
        let plain = seal(&key, &cipher, &code, "2026-01-01T00:00:00Z", false);
        assert!(!is_marked(&key, &plain, "2026-01-01T00:00:00Z"));
        assert_eq!(open(&cipher, &plain, "2026-01-01T00:00:00Z"), Some(code));
        assert!(open(&cipher, &plain, "2026-01-01T00:00:01Z").is_none());
    }

    /// The SHA-512 of nothing, and of the SHA-256 of `sops`.
    #[test]
    fn codes_are_upper_case_hexadecimal() {
        let all = MacHasher::new(false).finish();
        assert!(all.expose_secret().starts_with(b"CF83E1357EEFB8BD"));
        assert_eq!(all.len(), 128);
        assert_ne!(all, MacHasher::new(true).finish());
    }
}

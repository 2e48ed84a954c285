//! AES-256-GCM for values and for the seal: the only file that calls the cipher.
//!
//! `C ‖ T = AES-256-GCM(K, N, A, P)` as in NIST SP 800-38D with a nonce of 32 bytes, so that the counter block
//! before the first one is `GHASH(H, N)` and not `N ‖ 1`.
//!
//! A nonce must never serve twice under one key: the second use gives away `H`, and with it the power to forge
//! tags. The condition is met because [`ValueCipher::seal`] draws 256 fresh bits itself, for every call, and takes no
//! nonce from anyone, except the MAC's, half of which is a mark and half fresh ([`crate::mac`]). An unchanged
//! value is never encrypted anew: its whole text is kept.

use std::sync::{Mutex, PoisonError};

use aes_gcm::aead::AeadInOut;
use aes_gcm::aead::array::typenum::{U12, U32};
use aes_gcm::aes::Aes256;
use aes_gcm::{AesGcm, KeyInit, Tag};

use crate::secret::SecretBytes;
use crate::value::{Nonce, Sealed, Value, ValueType};

type Written = AesGcm<Aes256, U32>;
type Accepted = AesGcm<Aes256, U12>;

/// Length of a nonce as written, in bytes.
pub const NONCE_BYTES: usize = 32;
/// How many random bytes are fetched at a time: a multiple of a nonce's.
const POOL_BYTES: usize = 64 * NONCE_BYTES;

/// A cipher under one key, with the key schedule made once.
pub struct ValueCipher {
    written: Written,
    accepted: Accepted,
    /// Random bytes not given out yet: a call to the operating system for each value would cost more than its cipher.
    random: Mutex<Vec<u8>>,
}

impl ValueCipher {
    /// A cipher under `key`: a data key, or a key derived from one for a single purpose.
    pub fn new(key: &[u8; 32]) -> Self {
        let cipher = Aes256::new(key.into());
        Self {
            written: Written::from(cipher.clone()),
            accepted: Accepted::from(cipher),
            random: Mutex::default(),
        }
    }

    /// The same key with random bytes of its own, for another thread.
    pub(crate) fn another(&self) -> Self {
        Self { written: self.written.clone(), accepted: self.accepted.clone(), random: Mutex::default() }
    }

    /// 32 random bytes from the operating system, which are never given out again.
    pub(crate) fn fresh_nonce(&self) -> [u8; NONCE_BYTES] {
        // No panic below leaves the bytes in another state than before, so a poisoned lock means nothing.
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        if random.is_empty() {
            let mut fresh = vec![0; POOL_BYTES];
            getrandom::fill(&mut fresh).expect("the operating system provides randomness");
            *random = fresh;
        }
        let rest = random.len() - NONCE_BYTES;
        let mut nonce = [0; NONCE_BYTES];
        nonce.copy_from_slice(&random[rest..]);
        random.truncate(rest);
        nonce
    }

    /// Encrypts a value that is neither null nor empty under a fresh nonce, bound to `associated_data`.
    pub fn seal(&self, value: &Value, associated_data: &[u8]) -> Sealed {
        let kind = value.kind().unwrap_or(ValueType::Str);
        self.seal_with_nonce(self.fresh_nonce(), kind, value.bytes(), associated_data)
    }

    /// As [`ValueCipher::seal`], under a nonce that the caller made of at least 16 fresh random bytes.
    pub(crate) fn seal_with_nonce(
        &self,
        nonce: [u8; NONCE_BYTES],
        kind: ValueType,
        plaintext: &[u8],
        associated_data: &[u8],
    ) -> Sealed {
        let mut data = plaintext.to_vec();
        let tag = self
            .written
            .encrypt_inout_detached(&nonce.into(), associated_data, data.as_mut_slice().into())
            .expect("GCM takes plaintexts up to 64 GiB, and documents are limited far below");
        Sealed { data, nonce: Nonce::Long(nonce), tag: tag.into(), kind }
    }

    /// Decrypts, or gives nothing when the tag does not match the ciphertext and `associated_data`.
    pub fn open(&self, sealed: &Sealed, associated_data: &[u8]) -> Option<SecretBytes> {
        self.open_in_place(sealed.clone(), associated_data)
    }

    /// As [`ValueCipher::open`], in the memory of the ciphertext.
    pub(crate) fn open_in_place(&self, sealed: Sealed, associated_data: &[u8]) -> Option<SecretBytes> {
        let Sealed { mut data, nonce, tag, .. } = sealed;
        self.open_slice(nonce, tag, &mut data, associated_data).then(|| SecretBytes::new(data))
    }

    /// Puts the plaintext in the place of the ciphertext `data`, and says whether the tag matches.
    pub(crate) fn open_slice(
        &self,
        nonce: Nonce,
        tag: [u8; 16],
        data: &mut [u8],
        associated_data: &[u8],
    ) -> bool {
        let tag = Tag::from(tag);
        let opened = match nonce {
            Nonce::Long(nonce) => {
                self.written.decrypt_inout_detached(&nonce.into(), associated_data, data.into(), &tag)
            }
            Nonce::Short(nonce) => {
                self.accepted.decrypt_inout_detached(&nonce.into(), associated_data, data.into(), &tag)
            }
        };
        opened.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_bit_anywhere_is_refused() {
        let cipher = ValueCipher::new(&[7; 32]);
        let sealed = cipher.seal(&Value::text("secret"), b"a:b:");
        assert_eq!(cipher.open(&sealed, b"a:b:").unwrap().expose_secret(), b"secret");
        assert!(cipher.open(&sealed, b"a:c:").is_none());
        assert!(ValueCipher::new(&[8; 32]).open(&sealed, b"a:b:").is_none());
        for field in ["data", "nonce", "tag"] {
            let mut broken = sealed.clone();
            match field {
                "data" => broken.data[0] ^= 1,
                "nonce" => {
                    let Nonce::Long(nonce) = &mut broken.nonce else { panic!("written nonces are long") };
                    nonce[0] ^= 1;
                }
                _ => broken.tag[0] ^= 1,
            }
            assert!(cipher.open(&broken, b"a:b:").is_none(), "{field}");
        }
    }

    #[test]
    fn equal_values_get_different_nonces() {
        let cipher = ValueCipher::new(&[7; 32]);
        let value = Value::text("secret");
        assert_ne!(cipher.seal(&value, b"").nonce, cipher.seal(&value, b"").nonce);
    }

    #[test]
    fn a_12_byte_nonce_opens() {
        let cipher = ValueCipher::new(&[1; 32]);
        let mut data = b"secret".to_vec();
        let tag = cipher
            .accepted
            .encrypt_inout_detached(&[2; 12].into(), b"k:", data.as_mut_slice().into())
            .unwrap();
        let sealed = Sealed { data, nonce: Nonce::Short([2; 12]), tag: tag.into(), kind: ValueType::Str };
        assert_eq!(cipher.open(&sealed, b"k:").unwrap().expose_secret(), b"secret");
    }
}

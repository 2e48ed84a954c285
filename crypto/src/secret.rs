//! Types for plaintext and keys: wiped when dropped, redacted when formatted, exposed only on purpose.
//!
//! Nothing outside this module holds a plaintext or a key in a bare `String` or `Vec<u8>` for longer than the
//! call that needs it. Every exposure is found by searching for `expose_secret`. Comparisons are offered where a
//! verb needs one; they are not constant in time, because both sides belong to the same caller.

use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing, optimization_barrier};

/// Length of a data key in bytes.
pub const DATA_KEY_BYTES: usize = 32;

/// Secret bytes of any length: a wrapped key's plaintext, a share, a decoded value.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct SecretBytes(Vec<u8>);

impl SecretBytes {
    /// Takes over `bytes`; the buffer is wiped when the result is dropped.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes themselves. The caller must not copy them into anything that outlives its need.
    pub fn expose_secret(&self) -> &[u8] {
        &self.0
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no byte at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes as text, when they are UTF-8.
    pub fn as_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The same bytes as text.
    ///
    /// # Errors
    /// The bytes unchanged, when they are not UTF-8.
    pub fn into_text(mut self) -> Result<SecretText, SecretBytes> {
        match String::from_utf8(std::mem::take(&mut self.0)) {
            Ok(text) => Ok(SecretText(text)),
            Err(error) => Err(Self(error.into_bytes())),
        }
    }
}

impl Zeroize for SecretBytes {
    fn zeroize(&mut self) {
        wipe(&mut self.0);
    }
}

impl Drop for SecretBytes {
    fn drop(&mut self) {
        self.zeroize();
    }
}

impl ZeroizeOnDrop for SecretBytes {}

impl From<&str> for SecretBytes {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SecretBytes([{} bytes redacted])", self.0.len())
    }
}

/// Secret text: the plaintext of a document or of a value, a key file.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct SecretText(String);

impl SecretText {
    /// Takes over `text`; the buffer is wiped when the result is dropped.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text itself. The caller must not copy it into anything that outlives its need.
    pub fn expose_secret(&self) -> &str {
        &self.0
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no text at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same text as bytes, without a copy.
    pub fn into_bytes(mut self) -> SecretBytes {
        SecretBytes(std::mem::take(&mut self.0).into_bytes())
    }
}

impl Zeroize for SecretText {
    fn zeroize(&mut self) {
        wipe(&mut std::mem::take(&mut self.0).into_bytes());
    }
}

impl Drop for SecretText {
    fn drop(&mut self) {
        self.zeroize();
    }
}

impl ZeroizeOnDrop for SecretText {}

impl From<&str> for SecretText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SecretText([{} bytes redacted])", self.0.len())
    }
}

/// Overwrites all that `bytes` has room for. The derived way stores byte after byte, twice, which made a tenth of the
/// time of opening a large file; this is one fill, and the barrier keeps the compiler from leaving it out.
fn wipe(bytes: &mut Vec<u8>) {
    bytes.clear();
    bytes.resize(bytes.capacity(), 0);
    optimization_barrier(bytes.as_slice());
    bytes.clear();
}

/// The content of a file that is to be sealed: any bytes for the binary format, UTF-8 text for every other.
pub trait Plaintext {
    /// The bytes themselves. The caller must not copy them into anything that outlives its need.
    fn expose_bytes(&self) -> &[u8];
}

impl Plaintext for SecretBytes {
    fn expose_bytes(&self) -> &[u8] {
        self.expose_secret()
    }
}

impl Plaintext for SecretText {
    fn expose_bytes(&self) -> &[u8] {
        self.expose_secret().as_bytes()
    }
}

/// The 32 random bytes that seal one file, and nothing but that file.
///
/// Filled in place on the heap, so that moving the key leaves no copy behind.
pub struct DataKey(Box<Zeroizing<[u8; DATA_KEY_BYTES]>>);

impl DataKey {
    /// A fresh key from the operating system's generator.
    ///
    /// # Panics
    /// When the operating system has no randomness to give: nothing can be sealed safely then.
    pub fn generate() -> Self {
        let mut key = Box::new(Zeroizing::new([0; DATA_KEY_BYTES]));
        getrandom::fill(key.as_mut_slice()).expect("the operating system provides randomness");
        Self(key)
    }

    /// The key that unwrapping gave, or nothing when it is not exactly 32 bytes long (a shorter one would select
    /// a weaker cipher in other tools).
    pub fn from_unwrapped(bytes: &SecretBytes) -> Option<Self> {
        let mut key = Box::new(Zeroizing::new([0; DATA_KEY_BYTES]));
        if bytes.len() != DATA_KEY_BYTES {
            return None;
        }
        key.copy_from_slice(bytes.expose_secret());
        Some(Self(key))
    }

    /// The raw key. Only ciphers and key services call this.
    pub fn expose_secret(&self) -> &[u8; DATA_KEY_BYTES] {
        &self.0
    }

    /// The raw key as what recipients wrap.
    pub fn to_secret_bytes(&self) -> SecretBytes {
        SecretBytes::new(self.0.to_vec())
    }
}

impl fmt::Debug for DataKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("DataKey([redacted])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formatting_never_shows_the_content() {
        let shown = format!(
            "{:?} {:?} {:?}",
            SecretBytes::new(b"CANARY".to_vec()),
            SecretText::from("CANARY"),
            DataKey::from_unwrapped(&SecretBytes::new(vec![b'C'; DATA_KEY_BYTES])),
        );
        assert!(!shown.contains("CANARY") && !shown.contains("67"), "{shown}");
    }

    #[test]
    fn wiping_overwrites_all_that_was_there_and_moves_nothing() {
        let mut bytes = b"CANARY".to_vec();
        bytes.truncate(2);
        let (place, capacity) = (bytes.as_ptr(), bytes.capacity());
        wipe(&mut bytes);
        assert!(bytes.is_empty() && bytes.capacity() == capacity && bytes.as_ptr() == place);
        let mut text = SecretText::from("CANARY");
        text.zeroize();
        assert!(text.is_empty());
    }

    #[test]
    fn a_data_key_is_exactly_32_bytes() {
        for length in [0, 16, 24, 31, 33] {
            assert!(DataKey::from_unwrapped(&SecretBytes::new(vec![1; length])).is_none(), "{length}");
        }
        assert!(DataKey::from_unwrapped(&SecretBytes::new(vec![1; DATA_KEY_BYTES])).is_some());
    }
}

//! Types for plaintext and keys: wiped when dropped, redacted when formatted, exposed only on purpose.
//!
//! Nothing outside this module holds a plaintext or a key in a bare `String` or `Vec<u8>` for longer than the
//! call that needs it. Every exposure is found by searching for `expose_secret`. Comparisons are offered where a
//! verb needs one; they are not constant in time, because both sides belong to the same caller.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing, optimization_barrier};

/// Length of a data key in bytes.
pub const DATA_KEY_BYTES: usize = 32;

/// Secret bytes of any length: a wrapped key's plaintext, a share, a decoded value. They stand in memory of their own or
/// are a part of a larger secret, which is wiped when nothing of it is in use any more.
#[derive(Clone)]
pub struct SecretBytes(Held);

#[derive(Clone)]
enum Held {
    Own(Vec<u8>),
    PartOfBytes { whole: Arc<WipedBytes>, start: u32, end: u32 },
    PartOfText { whole: Arc<WipedText>, start: u32, end: u32 },
}

#[derive(Default)]
struct WipedBytes(Vec<u8>);

#[derive(Default)]
struct WipedText(String);

impl SecretBytes {
    /// Takes over `bytes`; the buffer is wiped when the result is dropped.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Held::Own(bytes))
    }

    /// The bytes themselves. The caller must not copy them into anything that outlives its need.
    pub fn expose_secret(&self) -> &[u8] {
        match &self.0 {
            Held::Own(bytes) => bytes,
            Held::PartOfBytes { whole, start, end } => &whole.0[*start as usize..*end as usize],
            Held::PartOfText { whole, start, end } => &whole.0.as_bytes()[*start as usize..*end as usize],
        }
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.expose_secret().len()
    }

    /// Whether there is no byte at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes as text, when they are UTF-8.
    pub fn as_text(&self) -> Option<&str> {
        std::str::from_utf8(self.expose_secret()).ok()
    }

    /// The same bytes as text.
    ///
    /// # Errors
    /// The bytes unchanged, when they are not UTF-8.
    pub fn into_text(self) -> Result<SecretText, SecretBytes> {
        match String::from_utf8(self.into_own()) {
            Ok(text) => Ok(SecretText::new(text)),
            Err(error) => Err(Self::new(error.into_bytes())),
        }
    }

    /// The bytes in memory of their own.
    fn into_own(mut self) -> Vec<u8> {
        match &mut self.0 {
            Held::Own(bytes) => std::mem::take(bytes),
            _ => self.expose_secret().to_vec(),
        }
    }
}

impl Default for SecretBytes {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl PartialEq for SecretBytes {
    fn eq(&self, other: &Self) -> bool {
        self.expose_secret() == other.expose_secret()
    }
}

impl Eq for SecretBytes {}

impl Hash for SecretBytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.expose_secret().hash(state);
    }
}

impl Zeroize for SecretBytes {
    /// Leaves nothing here; a larger secret that this was a part of is wiped with its last part.
    fn zeroize(&mut self) {
        match &mut self.0 {
            Held::Own(bytes) => wipe(bytes),
            part => *part = Held::Own(Vec::new()),
        }
    }
}

impl Drop for SecretBytes {
    fn drop(&mut self) {
        if let Held::Own(bytes) = &mut self.0 {
            wipe(bytes);
        }
    }
}

impl ZeroizeOnDrop for SecretBytes {}

impl Drop for WipedBytes {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

impl Drop for WipedText {
    fn drop(&mut self) {
        wipe(&mut std::mem::take(&mut self.0).into_bytes());
    }
}

impl From<&str> for SecretBytes {
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes().to_vec())
    }
}

impl fmt::Debug for SecretBytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SecretBytes([{} bytes redacted])", self.len())
    }
}

/// Many secrets in one piece of memory, which costs less than a piece for each.
pub(crate) struct SecretPool(WipedBytes);

impl SecretPool {
    /// An empty one with room for so many bytes. Whoever adds more leaves copies behind that are not wiped.
    pub(crate) fn with_room(bytes: usize) -> Self {
        Self(WipedBytes(Vec::with_capacity(bytes)))
    }

    /// Its bytes, to which more can be added.
    pub(crate) fn expose_secret_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0.0
    }

    /// Gives out parts of it. All of it is wiped when the last one is dropped.
    pub(crate) fn into_parts(self) -> impl Fn(Range<usize>) -> SecretBytes {
        let whole = Arc::new(self.0);
        move |place| match (u32::try_from(place.start), u32::try_from(place.end)) {
            (Ok(start), Ok(end)) => SecretBytes(Held::PartOfBytes { whole: Arc::clone(&whole), start, end }),
            _ => SecretBytes::new(whole.0[place].to_vec()),
        }
    }
}

/// Secret text: the plaintext of a document or of a value, a key file. A clone shares the memory, which is wiped with the
/// last one.
#[derive(Clone, Default)]
pub struct SecretText(Arc<WipedText>);

impl SecretText {
    /// Takes over `text`; the buffer is wiped when the result is dropped.
    pub fn new(text: String) -> Self {
        Self(Arc::new(WipedText(text)))
    }

    /// The text itself. The caller must not copy it into anything that outlives its need.
    pub fn expose_secret(&self) -> &str {
        &self.0.0
    }

    /// `part` as a secret: without a copy when it is a part of this text.
    pub(crate) fn share(&self, part: &str) -> SecretBytes {
        match self.place_of(part) {
            Some((start, end)) => SecretBytes(Held::PartOfText { whole: Arc::clone(&self.0), start, end }),
            None => SecretBytes::from(part),
        }
    }

    /// Where `part` stands, when its memory is a part of this text's.
    pub(crate) fn place_of(&self, part: &str) -> Option<(u32, u32)> {
        let start = (part.as_ptr() as usize).checked_sub(self.0.0.as_ptr() as usize)?;
        let end = start.checked_add(part.len()).filter(|end| *end <= self.len())?;
        Some((start.try_into().ok()?, end.try_into().ok()?))
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.0.0.len()
    }

    /// Whether there is no text at all.
    pub fn is_empty(&self) -> bool {
        self.0.0.is_empty()
    }

    /// The same text as bytes, without a copy unless a part of it is in use elsewhere.
    pub fn into_bytes(self) -> SecretBytes {
        SecretBytes::new(self.into_exposed().into_bytes())
    }

    /// The text of which all that was secret is sealed, likewise.
    pub(crate) fn into_exposed(mut self) -> String {
        match Arc::get_mut(&mut self.0) {
            Some(text) => std::mem::take(&mut text.0),
            None => self.0.0.clone(),
        }
    }
}

impl PartialEq for SecretText {
    fn eq(&self, other: &Self) -> bool {
        self.expose_secret() == other.expose_secret()
    }
}

impl Eq for SecretText {}

impl Hash for SecretText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.expose_secret().hash(state);
    }
}

impl Zeroize for SecretText {
    /// Leaves nothing here; what clones or parts of it hold is wiped with the last of them.
    fn zeroize(&mut self) {
        *self = Self::default();
    }
}

impl ZeroizeOnDrop for SecretText {}

impl From<&str> for SecretText {
    fn from(text: &str) -> Self {
        Self::new(text.to_owned())
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SecretText([{} bytes redacted])", self.len())
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
    fn parts_are_what_they_were_made_of_and_outlive_it() {
        let text = SecretText::from("one two");
        let (two, other) = (text.share(&text.expose_secret()[4..]), text.share("two"));
        let mut pool = SecretPool::with_room(10);
        pool.expose_secret_mut().extend(b"three four");
        let four = pool.into_parts()(6..10);
        drop(text);
        assert_eq!(two, other);
        assert_eq!((two.as_text(), four.expose_secret()), (Some("two"), &b"four"[..]));
        assert_eq!(two.into_text().unwrap().expose_secret(), "two");
    }

    #[test]
    fn text_in_use_elsewhere_is_copied_and_else_moved() {
        let text = SecretText::from("one two");
        let place = text.expose_secret().as_ptr();
        let part = text.share(&text.expose_secret()[..3]);
        let copy = text.clone().into_exposed();
        assert_eq!((copy.as_str(), part.as_text()), ("one two", Some("one")));
        drop(part);
        let moved = text.into_exposed();
        assert_eq!(moved.as_ptr(), place);
    }

    #[test]
    fn a_data_key_is_exactly_32_bytes() {
        for length in [0, 16, 24, 31, 33] {
            assert!(DataKey::from_unwrapped(&SecretBytes::new(vec![1; length])).is_none(), "{length}");
        }
        assert!(DataKey::from_unwrapped(&SecretBytes::new(vec![1; DATA_KEY_BYTES])).is_some());
    }
}

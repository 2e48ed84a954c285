//! How people name a certificate.

use std::fmt;

use crate::recipient::KeyError;

/// Of keys of version 4, and of version 6.
const FINGERPRINT_DIGITS: [usize; 2] = [40, 64];

/// A full fingerprint as people write it: with or without spaces, `0x`, and a `!` that pins the subkey.
pub(super) struct Fingerprint {
    pub(super) digits: String,
    pub(super) exact: bool,
}

impl Fingerprint {
    pub(super) fn parse(text: &str) -> Result<Self, KeyError> {
        let compact: String = text.chars().filter(|character| !character.is_whitespace()).collect();
        let exact = compact.ends_with('!');
        let digits = compact.trim_end_matches('!').trim_start_matches("0x").to_ascii_uppercase();
        let is_hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        if !is_hexadecimal || !FINGERPRINT_DIGITS.contains(&digits.len()) {
            return Err(KeyError::new(
                "not an OpenPGP fingerprint: give all of its 40 hexadecimal digits (shorter key IDs can be forged)",
            ));
        }
        Ok(Self { digits, exact })
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.digits, if self.exact { "!" } else { "" })
    }
}

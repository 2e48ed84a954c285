//! Base64 as the controllers and clients of sealed items have always read it.
//!
//! The standard alphabet with padding; line feeds and carriage returns are dropped wherever they stand, since YAML authors
//! break long values over lines, and unused bits of the last character may be set. Anything else is refused with its place.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const CONFIG: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_allow_trailing_bits(true)
    .with_decode_padding_mode(DecodePaddingMode::RequireCanonical);
const LENIENT: GeneralPurpose = GeneralPurpose::new(&STANDARD, CONFIG);

/// The bytes of `text`.
///
/// # Errors
/// The place of the first byte that does not belong, counted from 0 in `text` as it stands. A text that ends too early
/// is blamed on the beginning of its last group.
pub fn decode(text: &str) -> Result<Vec<u8>, usize> {
    let decoded = match text.bytes().any(is_break) {
        false => LENIENT.decode(text),
        true => LENIENT.decode(text.bytes().filter(|byte| !is_break(*byte)).collect::<Vec<_>>()),
    };
    decoded.map_err(|_| fault(text.as_bytes()))
}

fn is_break(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')
}

/// The place that Go's reader names for a text that it refuses, so that both say the same.
fn fault(text: &[u8]) -> usize {
    let mut group = 0;
    let mut bytes = text.iter().copied().enumerate().filter(|(_, byte)| !is_break(*byte));
    while let Some((at, byte)) = bytes.next() {
        if is_digit(byte) {
            group = (group + 1) % 4;
            continue;
        }
        if byte != b'=' || group < 2 {
            return at;
        }
        if group == 2 {
            match bytes.next() {
                None => return text.len(),
                Some((_, b'=')) => {}
                // Blamed on the byte before, wherever that stands.
                Some((next, _)) => return next - 1,
            }
        }
        // What follows the padding does not belong there.
        return bytes.next().map_or(text.len(), |(next, _)| next);
    }
    text.len() - group.min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_exists_is_read() {
        for (text, bytes) in [
            ("", &b""[..]),
            ("YQ==", b"a"),
            ("YR==", b"a"),
            ("YWI=", b"ab"),
            ("YWJ=", b"ab"),
            ("Y\nQ\r\n=\n=\n", b"a"),
            ("\r\nYWJj\n", b"abc"),
        ] {
            assert_eq!(decode(text).as_deref(), Ok(bytes), "{text:?}");
        }
    }

    #[test]
    fn the_place_of_what_does_not_belong_is_named() {
        for (text, at) in [
            ("YQ== ", 4),
            (" YQ==", 0),
            ("YW Jj", 2),
            ("YQ", 0),
            ("YWJjYQ", 4),
            ("YWJjYWI", 4),
            ("YQ=", 3),
            ("YQ=a", 2),
            ("YQ==YQ==", 4),
            ("Y===", 1),
            ("====", 0),
            ("YWJj\nY-Jj", 6),
            ("YWJjé", 4),
        ] {
            assert_eq!(decode(text), Err(at), "{text:?}");
        }
    }
}

//! The keybox, in which GnuPG 2 keeps certificates: `pubring.kbx`. It never holds secret keys.
//!
//! Contract: a row of blobs, each with its length (four bytes, big endian, of the whole blob), a type and a version of
//! one byte each. The first blob is the head and has `KBXf` at offset 8. A blob of type 2 holds one certificate as it
//! would be exported, at the offset and of the length that stand at 8 and 12. Other types (X.509, and 0 for what was
//! deleted) are passed over. What gpg adds to a blob, checksum and trust, is its own business and not looked at.

/// Where the head's mark begins.
const MARK_AT: usize = 8;
const MARK: &[u8] = b"KBXf";

/// Length, type, version, flags, offset and length of the certificate.
const HEAD_BYTES: usize = 16;

/// The type of a blob with an OpenPGP certificate.
const OPENPGP: u8 = 2;

/// Whether `file` begins as a keybox does.
pub(super) fn is_keybox(file: &[u8]) -> bool {
    file.get(MARK_AT..MARK_AT + MARK.len()) == Some(MARK)
}

/// The OpenPGP certificates in `keybox`, one after the other; nothing when it is damaged.
pub(super) fn certificates(keybox: &[u8]) -> Option<Vec<u8>> {
    let mut ring = Vec::new();
    let mut rest = keybox;
    while !rest.is_empty() {
        let length = number(rest, 0)?;
        // Shorter than its own head would be no progress, or none that makes sense.
        let (blob, others) = rest.split_at_checked(length).filter(|_| length >= HEAD_BYTES)?;
        if blob[4] == OPENPGP {
            let (start, length) = (number(blob, 8)?, number(blob, 12)?);
            ring.extend_from_slice(blob.get(start..start.checked_add(length)?)?);
        }
        rest = others;
    }
    Some(ring)
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    usize::try_from(u32::from_be_bytes(four)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blob(kind: u8, content: &[u8]) -> Vec<u8> {
        let mut blob = Vec::new();
        blob.extend((HEAD_BYTES as u32 + content.len() as u32).to_be_bytes());
        blob.extend([kind, 1, 0, 0]);
        blob.extend((HEAD_BYTES as u32).to_be_bytes());
        blob.extend((content.len() as u32).to_be_bytes());
        blob.extend(content);
        blob
    }

    fn head() -> Vec<u8> {
        let mut head = blob(1, &[0; 16]);
        head[MARK_AT..MARK_AT + 4].copy_from_slice(MARK);
        head
    }

    #[test]
    fn certificates_are_found_between_other_blobs() {
        let keybox =
            [head(), blob(0, b"deleted"), blob(2, b"one"), blob(3, b"x509"), blob(2, b"two")].concat();
        assert!(is_keybox(&keybox) && !is_keybox(b"short"));
        assert_eq!(certificates(&keybox).unwrap(), b"onetwo");
        assert_eq!(certificates(&head()).unwrap(), b"");
    }

    #[test]
    fn lengths_that_lead_elsewhere_are_damage() {
        let good = [head(), blob(2, b"one")].concat();
        let at = head().len();
        for (place, byte) in
            [(at, 0xff), (at + 3, 0), (at + 3, 15), (at + 8, 0xff), (at + 12, 0xff), (at + 15, 4)]
        {
            let mut bad = good.clone();
            bad[place] = byte;
            assert_eq!(certificates(&bad), None, "{place}");
        }
        for length in at + 1..good.len() {
            assert_eq!(certificates(&good[..length]), None, "{length}");
        }
    }
}

//! One wrapped key as an armored age file with one recipient: written, and opened within limits.

use std::io::{Read, Write};

use ::age::armor::{ArmoredReader, ArmoredWriter, Format};
use ::age::{DecryptError, Decryptor, EncryptError, Encryptor};

use crate::recipient::{UnwrapError, UnwrapFailure, WRAPPED_KEY_BYTES_MAX, check_to_wrap, read_key};
use crate::secret::SecretBytes;

/// Most stanzas in the header of one wrapped key. We write one (and a decoy); each costs its reader a scalar
/// multiplication, so a header full of them would be work for a controller that an attacker gets for nothing.
pub const STANZAS_MAX: usize = 64;

pub(super) const ARMOR_BEGIN: &str = "-----BEGIN AGE ENCRYPTED FILE-----";
const STANZA_BEGIN: &[u8] = b"-> ";
const HEADER_END: &[u8] = b"---";

/// Whether a file may be under a passphrase. Plugins may ask for one; a key that is no passphrase never opens such a
/// file, so it is told at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Passphrase {
    #[cfg(feature = "age-plugin")]
    Allowed,
    Refused,
}

/// Wraps `key`, a data key or a share, for `recipient`.
pub(super) fn seal(recipient: &dyn ::age::Recipient, key: &SecretBytes) -> Result<String, String> {
    check_to_wrap(key)?;
    let encryptor =
        Encryptor::with_recipients(std::iter::once(recipient)).map_err(|error| explain(&error))?;
    let write = || -> std::io::Result<Vec<u8>> {
        let armor = ArmoredWriter::wrap_output(Vec::new(), Format::AsciiArmor)?;
        let mut payload = encryptor.wrap_output(armor)?;
        payload.write_all(key.expose_secret())?;
        payload.finish()?.finish()
    };
    let file = write().map_err(|_| "age could not write the wrapped key".to_owned())?;
    String::from_utf8(file).map_err(|_| "age wrote no text".to_owned())
}

/// Opens the age file `armored` with `identity`; nothing when it is for another one.
pub(super) fn open(
    armored: &str,
    identity: &dyn ::age::Identity,
    passphrase: Passphrase,
) -> Option<Result<SecretBytes, UnwrapError>> {
    let decrypt = || {
        let file = remove_armor(armored)?;
        let stanzas = count_stanzas(&file);
        if stanzas > STANZAS_MAX {
            return Err(broken(format!("{stanzas} age stanzas; at most {STANZAS_MAX} are read")));
        }
        let decryptor = Decryptor::new_buffered(&file[..]).map_err(|error| explain_header(&error))?;
        if passphrase == Passphrase::Refused && decryptor.is_scrypt() {
            return Err(broken("the age file asks for a passphrase, not for a key"));
        }
        match decryptor.decrypt(std::iter::once(identity)) {
            Ok(mut payload) => read_key(&mut payload).map(Some),
            Err(DecryptError::NoMatchingKeys) => Ok(None),
            Err(error) => Err(explain_failure(&error)),
        }
    };
    decrypt().transpose()
}

/// The binary age file inside the armor. Larger ones than [`WRAPPED_KEY_BYTES_MAX`] are refused unread.
fn remove_armor(armored: &str) -> Result<Vec<u8>, UnwrapError> {
    if armored.len() > WRAPPED_KEY_BYTES_MAX {
        return Err(broken(format!("larger than {WRAPPED_KEY_BYTES_MAX} bytes")));
    }
    // The reader refuses an empty last line, and how many there are depends on how YAML or JSON quoted the text.
    let armored = armored.trim();
    if !armored.starts_with(ARMOR_BEGIN) {
        return Err(broken("not an armored age file"));
    }
    let mut file = Vec::with_capacity(armored.len());
    ArmoredReader::new(armored.as_bytes())
        .read_to_end(&mut file)
        .map_err(|_| broken("the armor of the age file is damaged"))?;
    Ok(file)
}

/// The lines of the header of `file` that begin a stanza, up to the line with the MAC. Bodies are base64, so no other
/// line begins so.
pub(super) fn stanza_lines(file: &[u8]) -> impl Iterator<Item = &[u8]> {
    file.split(|&byte| byte == b'\n')
        .take_while(|line| !line.starts_with(HEADER_END))
        .filter_map(|line| line.strip_prefix(STANZA_BEGIN))
}

fn count_stanzas(file: &[u8]) -> usize {
    stanza_lines(file).count()
}

/// The crate's own messages span lines and name its command's flags; ours say what it means here.
fn explain_header(error: &DecryptError) -> UnwrapError {
    broken(match error {
        DecryptError::UnknownFormat => "the age file has a version that is not known",
        _ => "the header of the age file is damaged",
    })
}

fn explain_failure(error: &DecryptError) -> UnwrapError {
    match error {
        DecryptError::DecryptionFailed | DecryptError::InvalidMac => {
            broken("the age file was tampered with or damaged")
        }
        #[cfg(feature = "age-plugin")]
        DecryptError::MissingPlugin { .. } | DecryptError::Plugin(_) | DecryptError::Io(_) => {
            super::plugin::explain_unwrap(error)
        }
        _ => explain_header(error),
    }
}

fn explain(error: &EncryptError) -> String {
    #[cfg(feature = "age-plugin")]
    if let Some(reason) = super::plugin::explain_wrap(error) {
        return reason;
    }
    let _ = error;
    "age could not wrap the key".to_owned()
}

pub(super) fn broken(reason: impl Into<String>) -> UnwrapError {
    UnwrapError::new(UnwrapFailure::Broken, reason)
}

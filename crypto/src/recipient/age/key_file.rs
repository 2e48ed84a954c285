//! Key files: one private key per line, empty lines, comments from `#`; or all of that under a passphrase.

use std::sync::Arc;

use super::AgeIdentity;
use super::file::ARMOR_BEGIN;
use super::locked_file::LockedKeyFile;
use super::prompt::{Nobody, Prompt};
use crate::recipient::{Identity, KEY_FILE_BYTES_MAX, KeyError};
use crate::secret::{SecretBytes, SecretText};

/// How an age file begins that has no armor.
const AGE_BEGIN: &str = "age-encryption.org/";

/// How keys that are not there in the clear are reached.
#[derive(Clone)]
pub struct Unlocking {
    /// Who is asked: for passphrases, and whatever plugins want to know.
    pub prompt: Arc<dyn Prompt>,
    /// The plugin that opens key files under a passphrase in place of a person, such as `batchpass`.
    pub passphrase_plugin: Option<String>,
}

impl Unlocking {
    /// Without anyone to ask.
    pub fn nobody() -> Self {
        Self { prompt: Arc::new(Nobody), passphrase_plugin: None }
    }
}

/// Reads a key file that holds native private keys in the clear, and nothing else.
///
/// # Errors
/// [`KeyError`] with the number of the first line that is none of these, and never its text; also when no key is
/// in the file at all, or when it exceeds [`KEY_FILE_BYTES_MAX`].
pub fn read_identities(file: &SecretText) -> Result<Vec<AgeIdentity>, KeyError> {
    read_lines(file, AgeIdentity::parse)
}

/// Reads a key file of any sort: native keys, keys of plugins, or the same encrypted, which is opened when it is first
/// needed. `name` is what a person who is asked for its passphrase knows it by.
///
/// # Errors
/// As [`read_identities`].
pub fn read_key_file(
    file: SecretBytes,
    name: &str,
    unlocking: &Unlocking,
) -> Result<Vec<Box<dyn Identity>>, KeyError> {
    if is_locked(&file) {
        return Ok(vec![Box::new(LockedKeyFile::read(&file, name, unlocking)?)]);
    }
    let text = file.into_text().map_err(|_| KeyError::new("the age key file is not text"))?;
    read_lines(&text, |line| read_key(line, unlocking))
}

/// Whether a key file is itself an age file.
pub fn is_locked(file: &SecretBytes) -> bool {
    let file = file.expose_secret();
    file.starts_with(ARMOR_BEGIN.as_bytes()) || file.starts_with(AGE_BEGIN.as_bytes())
}

fn read_key(line: &str, unlocking: &Unlocking) -> Option<Box<dyn Identity>> {
    if let Some(identity) = AgeIdentity::parse(line) {
        return Some(Box::new(identity));
    }
    #[cfg(feature = "age-plugin")]
    if let Some(identity) = super::plugin::PluginIdentity::parse(line, &unlocking.prompt) {
        return Some(Box::new(identity));
    }
    let _ = unlocking;
    None
}

fn read_lines<T>(file: &SecretText, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, KeyError> {
    if file.len() > KEY_FILE_BYTES_MAX {
        return Err(KeyError::new(format!("the age key file is larger than {KEY_FILE_BYTES_MAX} bytes")));
    }
    let text = file.expose_secret();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut keys = Vec::new();
    for (index, line) in text.lines().map(str::trim).enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        keys.push(read(line).ok_or_else(|| {
            KeyError::new(format!("line {} of the age key file {}", index + 1, explain_identity(line)))
        })?);
    }
    if keys.is_empty() {
        return Err(KeyError::new("the age key file holds no key; one begins with AGE-SECRET-KEY-"));
    }
    Ok(keys)
}

/// What a line that is no private key of a kind asked for is instead.
fn explain_identity(line: &str) -> &'static str {
    let upper = line.get(..18).unwrap_or(line).to_ascii_uppercase();
    if upper.starts_with("AGE-SECRET-KEY-") {
        "is a damaged private key: its checksum is wrong"
    } else if upper.starts_with("AGE-PLUGIN-") {
        "is a key of an age plugin, which is damaged or cannot be used here"
    } else if upper.starts_with("AGE1") {
        "is a public key; the private one begins with AGE-SECRET-KEY-"
    } else if line.starts_with(ARMOR_BEGIN) || line.starts_with(AGE_BEGIN) {
        "shows that the file itself is encrypted; here only keys in the clear are read"
    } else if line.starts_with("-----BEGIN ") {
        "begins an SSH key; its place is SOPS_AGE_SSH_PRIVATE_KEY_FILE"
    } else {
        "is neither a private key nor a comment"
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::recipient::age::tests::{PUBLIC, SECRET};

    #[test]
    fn a_key_file_may_have_comments_and_several_keys() {
        let (other, quantum) = (AgeIdentity::generate(), AgeIdentity::generate_post_quantum());
        let file = other.to_file_text(Timestamp::UNIX_EPOCH);
        let lines: Vec<&str> = file.expose_secret().lines().collect();
        assert_eq!(lines[0], "# created: 1970-01-01T00:00:00Z");
        assert_eq!(lines[1], format!("# public key: {}", other.recipient()));
        assert!(lines[2].starts_with("AGE-SECRET-KEY-1") && file.expose_secret().ends_with('\n'));
        let quantum_file = quantum.to_file_text(Timestamp::UNIX_EPOCH);
        let text = format!(
            "\u{feff}# mine\r\n\r\n {SECRET} \r\n{}{}",
            file.expose_secret(),
            quantum_file.expose_secret()
        );
        let held = read_identities(&SecretText::new(text.clone())).unwrap();
        assert_eq!(held.len(), 3);
        assert_eq!(held[0].recipient().to_string(), PUBLIC);
        assert_eq!(held[1].recipient(), other.recipient());
        assert_eq!(held[2].recipient(), quantum.recipient());
        assert_eq!(held[0].public(), format!("age {PUBLIC}"));
        let any =
            read_key_file(SecretText::new(text).into_bytes(), "keys.txt", &Unlocking::nobody()).unwrap();
        assert_eq!(any[2].public(), held[2].public());
    }

    #[test]
    fn a_key_file_with_junk_names_the_line_and_not_the_text() {
        let damaged = SECRET.replace("J33", "J34");
        for (junk, says) in [
            ("CANARY-hunter2", "neither"),
            (damaged.as_str(), "checksum"),
            (PUBLIC, "public key"),
            ("AGE-SECRET-KEY-PQ-1CANARY", "checksum"),
            ("AGE-PLUGIN-YUBIKEY-1CANARY", "plugin"),
            (ARMOR_BEGIN, "encrypted"),
            ("-----BEGIN OPENSSH PRIVATE KEY-----", "SSH"),
            ("é€é€é€é€é€", "neither"),
        ] {
            let text = SecretText::new(format!("# a\n{SECRET}\n{junk}\n"));
            let any =
                read_key_file(text.clone().into_bytes(), "keys.txt", &Unlocking::nobody()).err().unwrap();
            for reason in [read_identities(&text).unwrap_err().reason, any.reason] {
                assert!(reason.contains("line 3") && reason.contains(says), "{junk}: {reason}");
                assert!(!reason.contains(junk) && !reason.contains("CANARY"), "{reason}");
            }
        }
        for empty in ["", "# nothing\n"] {
            assert!(read_identities(&SecretText::from(empty)).unwrap_err().reason.contains("no key"));
        }
    }

    #[test]
    fn a_key_file_is_limited_on_both_sides() {
        let padded =
            |length: usize| SecretText::new(format!("{SECRET}\n#{}", "x".repeat(length - SECRET.len() - 2)));
        assert!(read_identities(&padded(KEY_FILE_BYTES_MAX)).is_ok());
        assert!(read_identities(&padded(KEY_FILE_BYTES_MAX + 1)).is_err());
    }
}

//! A key file that is itself an age file under a passphrase.
//!
//! Standard: the stanza `scrypt` of the age format (C2SP `age.md`) by the `age` crate: the file key is sealed with
//! ChaCha20-Poly1305 under scrypt(passphrase, "age-encryption.org/v1/scrypt" ‖ 16 random bytes, N = 2^factor, r = 8,
//! p = 1). The salt is fresh for each file, so the fixed nonce meets each key once.
//!
//! The file is opened when the first entry asks for it, once, whatever comes of it: nobody is asked twice in a run.

use std::io::Read;
use std::sync::{Mutex, PoisonError};

use ::age::armor::ArmoredReader;
use ::age::{DecryptError, Decryptor, scrypt};
use zeroize::Zeroizing;

use super::file::{ARMOR_BEGIN, stanza_lines};
use super::key_file::{Unlocking, is_locked, read_key_file};
use super::prompt::to_age;
use crate::recipient::{
    Effort, Identity, KEY_FILE_BYTES_MAX, KeyError, RecipientId, UnwrapError, UnwrapFailure, WrappedKey,
};
use crate::secret::SecretBytes;

/// Most work that a file may ask for, as age's own command has it: scrypt with N = 2^22, which takes 4 GiB of memory
/// and some ten seconds. What age writes asks for 2^18.
pub const SCRYPT_WORK_FACTOR_MAX: u8 = 22;

type Opened = Result<Vec<Box<dyn Identity>>, UnwrapError>;

/// A key file under a passphrase.
pub(super) struct LockedKeyFile {
    name: String,
    /// Without armor.
    file: Vec<u8>,
    unlocking: Unlocking,
    opened: Mutex<Option<Opened>>,
}

impl LockedKeyFile {
    /// Reads `file`, armored or not, as far as it goes without its passphrase.
    pub(super) fn read(file: &SecretBytes, name: &str, unlocking: &Unlocking) -> Result<Self, KeyError> {
        if file.len() > KEY_FILE_BYTES_MAX {
            let reason = format!("the age key file is larger than {KEY_FILE_BYTES_MAX} bytes");
            return Err(KeyError::new(reason));
        }
        let file = remove_armor(file.expose_secret())?;
        let decryptor = Decryptor::new_buffered(&file[..])
            .map_err(|_| KeyError::new("the age key file is encrypted, and damaged"))?;
        if !decryptor.is_scrypt() {
            return Err(KeyError::new(
                "the age key file is encrypted for a key; it must be for a passphrase",
            ));
        }
        match work_factor(&file) {
            Some(factor) if factor <= SCRYPT_WORK_FACTOR_MAX => {}
            _ => {
                return Err(KeyError::new(format!(
                    "the passphrase of the age key file takes more work than 2^{SCRYPT_WORK_FACTOR_MAX}"
                )));
            }
        }
        let (name, unlocking) = (name.to_owned(), unlocking.clone());
        Ok(Self { name, file, unlocking, opened: Mutex::new(None) })
    }

    fn open(&self) -> Opened {
        let content = match &self.unlocking.passphrase_plugin {
            Some(plugin) => self.decrypt_with_plugin(plugin)?,
            None => self.decrypt_with_passphrase()?,
        };
        if is_locked(&content) {
            return Err(self.stays_locked("what is in it is encrypted again"));
        }
        read_key_file(content, &self.name, &self.unlocking).map_err(|error| self.stays_locked(&error.reason))
    }

    fn decrypt_with_passphrase(&self) -> Result<SecretBytes, UnwrapError> {
        let question = format!("Passphrase of the age key file {}", self.name);
        let passphrase = self.unlocking.prompt.passphrase(&question);
        let passphrase = passphrase.ok_or_else(|| self.stays_locked("nobody gave its passphrase"))?;
        let mut identity = scrypt::Identity::new(to_age(&passphrase));
        identity.set_max_work_factor(SCRYPT_WORK_FACTOR_MAX);
        self.decrypt(&identity)
    }

    #[cfg(feature = "age-plugin")]
    fn decrypt_with_plugin(&self, name: &str) -> Result<SecretBytes, UnwrapError> {
        let identity = super::plugin::default_identity(name, &self.unlocking.prompt)
            .map_err(|reason| self.stays_locked(&reason))?;
        self.decrypt(&identity)
    }

    #[cfg(not(feature = "age-plugin"))]
    fn decrypt_with_plugin(&self, _: &str) -> Result<SecretBytes, UnwrapError> {
        Err(self.stays_locked("this build runs no age plugins"))
    }

    fn decrypt(&self, identity: &dyn ::age::Identity) -> Result<SecretBytes, UnwrapError> {
        let decryptor =
            Decryptor::new_buffered(&self.file[..]).map_err(|_| self.stays_locked("it is damaged"))?;
        let payload = decryptor.decrypt(std::iter::once(identity)).map_err(|error| match error {
            DecryptError::DecryptionFailed | DecryptError::NoMatchingKeys => {
                self.stays_locked("wrong passphrase")
            }
            #[cfg(feature = "age-plugin")]
            DecryptError::Plugin(_) | DecryptError::Io(_) => {
                self.stays_locked(&super::plugin::explain_unwrap(&error).reason)
            }
            _ => self.stays_locked("it is damaged"),
        })?;
        // A payload is never longer than its file, which is bounded.
        let mut content = Zeroizing::new(Vec::with_capacity(self.file.len()));
        payload
            .take(KEY_FILE_BYTES_MAX as u64)
            .read_to_end(&mut content)
            .map_err(|_| self.stays_locked("it is damaged"))?;
        Ok(SecretBytes::new(std::mem::take(&mut content)))
    }

    fn stays_locked(&self, reason: &str) -> UnwrapError {
        let reason = format!("the age key file {} stays locked: {reason}", self.name);
        UnwrapError::new(UnwrapFailure::Denied, reason)
    }
}

impl Identity for LockedKeyFile {
    fn public(&self) -> String {
        format!("age keys under a passphrase in {}", self.name)
    }

    fn effort(&self) -> Effort {
        Effort::Interactive
    }

    /// SSH keys are not kept in such files, so no passphrase is asked for on their behalf.
    fn unwrap(&self, wrapped: &WrappedKey) -> Option<Result<SecretBytes, UnwrapError>> {
        let RecipientId::Age(name) = &wrapped.recipient else { return None };
        if name.trim_start().starts_with("ssh-") {
            return None;
        }
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        match opened.get_or_insert_with(|| self.open()) {
            Ok(keys) => keys.iter().find_map(|key| key.unwrap(wrapped)),
            Err(error) => Some(Err(error.clone())),
        }
    }
}

fn remove_armor(file: &[u8]) -> Result<Vec<u8>, KeyError> {
    if !file.starts_with(ARMOR_BEGIN.as_bytes()) {
        return Ok(file.to_vec());
    }
    let mut binary = Vec::with_capacity(file.len());
    ArmoredReader::new(file.trim_ascii())
        .read_to_end(&mut binary)
        .map_err(|_| KeyError::new("the armor of the age key file is damaged"))?;
    Ok(binary)
}

/// The exponent that the file's scrypt stanza asks for, which must be the only stanza: `scrypt SALT FACTOR`.
fn work_factor(file: &[u8]) -> Option<u8> {
    let stanza = std::str::from_utf8(stanza_lines(file).next()?).ok()?;
    let mut words = stanza.split(' ');
    if words.next()? != "scrypt" {
        return None;
    }
    words.nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use ::age::armor::{ArmoredWriter, Format};
    use ::age::{Encryptor, scrypt};

    use super::*;
    use crate::recipient::Recipient;
    use crate::recipient::age::tests::{SECRET, entry, identity};
    use crate::recipient::age::{AgeIdentity, Prompt};
    use crate::secret::SecretText;

    /// Says one passphrase, and counts how often it is asked.
    struct Person(Option<&'static str>, AtomicUsize);

    impl Prompt for Person {
        fn tell(&self, _: &str) {}

        fn confirm(&self, _: &str, _: &str, _: Option<&str>) -> Option<bool> {
            None
        }

        fn line(&self, _: &str) -> Option<String> {
            None
        }

        fn passphrase(&self, text: &str) -> Option<SecretText> {
            assert!(text.contains("keys.txt"), "{text}");
            self.1.fetch_add(1, Ordering::SeqCst);
            self.0.map(SecretText::from)
        }
    }

    fn person(says: Option<&'static str>) -> (Arc<Person>, Unlocking) {
        let person = Arc::new(Person(says, AtomicUsize::new(0)));
        (person.clone(), Unlocking { prompt: person, passphrase_plugin: None })
    }

    fn lock(content: &[u8], format: Format) -> SecretBytes {
        let mut recipient = scrypt::Recipient::new("CANARY-hunter2".to_owned().into());
        recipient.set_work_factor(2);
        seal(&recipient, content, format)
    }

    fn seal(recipient: &dyn ::age::Recipient, content: &[u8], format: Format) -> SecretBytes {
        let armor = ArmoredWriter::wrap_output(Vec::new(), format).unwrap();
        let encryptor = Encryptor::with_recipients(std::iter::once(recipient)).unwrap();
        let mut writer = encryptor.wrap_output(armor).unwrap();
        writer.write_all(content).unwrap();
        SecretBytes::new(writer.finish().unwrap().finish().unwrap())
    }

    fn read(file: SecretBytes, unlocking: &Unlocking) -> Result<Box<dyn Identity>, KeyError> {
        read_key_file(file, "keys.txt", unlocking).map(|mut keys| keys.remove(0))
    }

    #[test]
    fn one_question_opens_it_for_all_entries() {
        let key = SecretBytes::new(vec![7; 32]);
        let mine = identity();
        let name = mine.recipient().to_string();
        let wrapped = entry(&name, &mine.recipient().wrap(&key).unwrap());
        let stranger = entry(&AgeIdentity::generate().recipient().to_string(), &wrapped.enc);
        for format in [Format::AsciiArmor, Format::Binary] {
            let (person, unlocking) = person(Some("CANARY-hunter2"));
            let file = lock(format!("# mine\n{SECRET}\n").as_bytes(), format);
            let held = read(file, &unlocking).unwrap();
            assert_eq!((held.effort(), person.1.load(Ordering::SeqCst)), (Effort::Interactive, 0));
            assert!(held.unwrap(&stranger).is_none());
            assert_eq!(held.unwrap(&wrapped).unwrap().unwrap(), key);
            assert_eq!(held.unwrap(&wrapped).unwrap().unwrap(), key);
            assert_eq!(person.1.load(Ordering::SeqCst), 1);
        }
    }

    #[test]
    fn what_does_not_open_says_why_once_and_shows_nothing() {
        let wrapped = entry("age1x", "");
        let locked = |content: &[u8]| lock(content, Format::AsciiArmor);
        for (says, file, expected) in [
            (None, locked(SECRET.as_bytes()), "nobody gave"),
            (Some("CANARY-wrong"), locked(SECRET.as_bytes()), "wrong passphrase"),
            (Some("CANARY-hunter2"), locked(b"CANARY"), "line 1"),
            (Some("CANARY-hunter2"), locked(locked(b"CANARY").expose_secret()), "encrypted again"),
        ] {
            let (person, unlocking) = person(says);
            let held = read(file, &unlocking).unwrap();
            for _ in 0..2 {
                let error = held.unwrap(&wrapped).unwrap().unwrap_err();
                assert!(error.reason.contains(expected), "{error}");
                assert!(!format!("{error:?} {}", held.public()).contains("CANARY"), "{error:?}");
            }
            assert_eq!(person.1.load(Ordering::SeqCst), 1);
        }
    }

    #[test]
    fn nobody_is_asked_for_an_ssh_key() {
        let (person, unlocking) = person(Some("CANARY-hunter2"));
        let held = read(lock(SECRET.as_bytes(), Format::Binary), &unlocking).unwrap();
        assert!(held.unwrap(&entry("ssh-ed25519 AAAA", "")).is_none());
        assert_eq!(person.1.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn work_is_limited_on_both_sides_before_anyone_is_asked() {
        let file = lock(SECRET.as_bytes(), Format::Binary);
        let with_factor = |factor: &str| {
            let text = file.expose_secret();
            let end = text.iter().position(|&byte| byte == b'\n').unwrap() + 1;
            let line = end + text[end..].iter().position(|&byte| byte == b'\n').unwrap();
            let changed = [&text[..line - 1], factor.as_bytes(), &text[line..]].concat();
            read(SecretBytes::new(changed), &Unlocking::nobody())
        };
        assert!(with_factor(&SCRYPT_WORK_FACTOR_MAX.to_string()).is_ok());
        for factor in [(SCRYPT_WORK_FACTOR_MAX + 1).to_string(), "63".to_owned(), "999".to_owned()] {
            assert!(with_factor(&factor).err().unwrap().reason.contains("work"), "{factor}");
        }
    }

    #[test]
    fn damage_and_other_recipients_are_told_at_once() {
        let whole = lock(SECRET.as_bytes(), Format::AsciiArmor);
        let cut = |length| SecretBytes::new(whole.expose_secret()[..length].to_vec());
        let key = AgeIdentity::generate();
        let for_key = SecretText::new(key.recipient().wrap(&SecretBytes::new(vec![7; 32])).unwrap());
        for (file, says) in [
            (cut(60), "armor"),
            (SecretBytes::from("age-encryption.org/v1\n"), "damaged"),
            (for_key.into_bytes(), "for a key"),
        ] {
            let reason = read(file, &Unlocking::nobody()).err().unwrap().reason;
            assert!(reason.contains(says), "{reason}");
        }
    }

    #[test]
    fn size_is_limited_on_both_sides() {
        let file = lock(SECRET.as_bytes(), Format::Binary);
        let padded = |length| {
            let mut bytes = file.expose_secret().to_vec();
            bytes.resize(length, 0);
            read(SecretBytes::new(bytes), &Unlocking::nobody())
        };
        assert!(padded(KEY_FILE_BYTES_MAX).is_ok());
        assert!(padded(KEY_FILE_BYTES_MAX + 1).err().unwrap().reason.contains("larger than"));
    }
}

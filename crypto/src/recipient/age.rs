//! age: the native X25519 kind of recipient and identity.
//!
//! Standard: the age format, version 1 (C2SP `age.md`), by the `age` crate; nothing here touches its keys.
//! One wrapped key is one armored age file with one recipient:
//!
//! ```text
//! file key     ← 16 random bytes, for this file alone
//! stanza       = ephemeral share ‖ ChaCha20-Poly1305(HKDF-SHA256(X25519(ephemeral, recipient)), file key)
//! header MAC   = HMAC-SHA256(HKDF-SHA256(file key, "header"), header)
//! payload      = STREAM(HKDF-SHA256(file key, nonce, "payload"), data key)
//! ```
//!
//! Nonces are safe because no key is used twice: the stanza's comes from a fresh ephemeral key and the payload's
//! from a fresh file key and a fresh 16-byte nonce, so the fixed nonce of the first and the counter of the second
//! meet each key once. Neither is padded: the payload has one of two lengths, which `enc` shows anyway.
//!
//! Other kinds of age keys (ssh, plugins, post-quantum, passphrases) are refused by name.

use std::fmt;
use std::io::Read;
use std::str::FromStr;

use ::age::armor::ArmoredReader;
use ::age::secrecy::ExposeSecret;
use ::age::{DecryptError, Decryptor, x25519};
use jiff::Timestamp;

use super::{
    Identity, KEY_FILE_BYTES_MAX, KeyError, Recipient, RecipientId, UnwrapError, UnwrapFailure,
    WRAPPED_KEY_BYTES_MAX, WrapError, WrappedKey, is_key_length, read_key,
};
use crate::secret::{SecretBytes, SecretText};

/// Most stanzas in the header of one wrapped key. We write one (and a decoy); each costs its reader a scalar
/// multiplication, so a header full of them would be work for a controller that an attacker gets for nothing.
pub const STANZAS_MAX: usize = 64;

const ARMOR_BEGIN: &str = "-----BEGIN AGE ENCRYPTED FILE-----";
const STANZA_BEGIN: &[u8] = b"-> ";
const HEADER_END: &[u8] = b"---";

/// The encodings of the points of low order. A shared secret with one of them is zero whatever the ephemeral key,
/// that is: public. The `age` crate panics on it when wrapping; so such a recipient is refused when it is read.
const LOW_ORDER_RECIPIENTS: [&str; 14] = [
    "age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq5cu47z",
    "age1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqzqqsuwj9m",
    "age1qyqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqj7vrya",
    "age1qyqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqzqqk67yly",
    "age1ur4h5lpmgxu2u9jku0a0r87ydtdqnr0tnsetrlvxvgz3vh6fhqqqzyt4v9",
    "age1ur4h5lpmgxu2u9jku0a0r87ydtdqnr0tnsetrlvxvgz3vh6fhzqqxqejhu",
    "age1t7wft09r2zxzfvwsk92eeql0tvzyghxytqwgapkcyf8dm5ylz9ts6wm9s8",
    "age1t7wft09r2zxzfvwsk92eeql0tvzyghxytqwgapkcyf8dm5ylz8ts72fzt7",
    "age1anlllllllllllllllllllllllllllllllllllllllllllllllals4n2t7m",
    "age1anllllllllllllllllllllllllllllllllllllllllllllllllls3hcv9z",
    "age1ahlllllllllllllllllllllllllllllllllllllllllllllllalsn46ayy",
    "age1ahlllllllllllllllllllllllllllllllllllllllllllllllllsh3g6la",
    "age1amlllllllllllllllllllllllllllllllllllllllllllllllalselrwrv",
    "age1amlllllllllllllllllllllllllllllllllllllllllllllllllsam3fc4",
];

/// A public key to wrap for: `age1…`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AgeRecipient {
    key: x25519::Recipient,
    text: String,
}

impl AgeRecipient {
    /// Reads `age1…`, in upper or lower case, with white space around it.
    ///
    /// # Errors
    /// [`KeyError`] for anything else; it says what the text seems to be, and never repeats it, because people
    /// paste the wrong half of a key.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let Ok(key) = x25519::Recipient::from_str(text) else {
            return Err(KeyError::new(format!("not an age recipient: {}", explain_recipient(text))));
        };
        let text = key.to_string();
        if LOW_ORDER_RECIPIENTS.contains(&text.as_str()) {
            return Err(KeyError::new("not an age recipient: everybody could open what is wrapped for it"));
        }
        Ok(Self { key, text })
    }
}

/// What a text that is no native recipient is instead. Only prefixes of public forms decide.
fn explain_recipient(text: &str) -> &'static str {
    let lower = text.get(..16).unwrap_or(text).to_ascii_lowercase();
    if lower.starts_with("age-secret-key-") || lower.starts_with("age-plugin-") {
        "this is a secret key; its public half begins with age1"
    } else if lower.starts_with("age1pq1") {
        "post-quantum recipients (age1pq1…) are not supported yet"
    } else if lower.starts_with("ssh-") {
        "ssh keys are not supported yet"
    } else if lower.strip_prefix("age1").is_some_and(|rest| rest.contains('1')) {
        "recipients of age plugins are not supported yet"
    } else if lower.starts_with("age1") {
        "its checksum is wrong; it was probably cut or mistyped"
    } else {
        "it does not begin with age1"
    }
}

impl fmt::Display for AgeRecipient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Recipient for AgeRecipient {
    fn id(&self) -> RecipientId {
        RecipientId::Age(self.text.clone())
    }

    fn wrap(&self, key: &SecretBytes) -> Result<String, WrapError> {
        let error = |reason: &str| WrapError { recipient: self.id(), reason: reason.to_owned() };
        if !is_key_length(key.len()) {
            return Err(error("what is to be wrapped is not as long as a data key"));
        }
        ::age::encrypt_and_armor(&self.key, key.expose_secret())
            .map_err(|_| error("age could not write the wrapped key"))
    }
}

/// A private key: `AGE-SECRET-KEY-1…`. Wiped when dropped.
#[derive(Clone)]
pub struct AgeIdentity {
    key: x25519::Identity,
    recipient: AgeRecipient,
}

impl AgeIdentity {
    /// A fresh key from the operating system's generator.
    pub fn generate() -> Self {
        Self::new(x25519::Identity::generate())
    }

    fn new(key: x25519::Identity) -> Self {
        let public = key.to_public();
        let recipient = AgeRecipient { text: public.to_string(), key: public };
        Self { key, recipient }
    }

    /// The public half.
    pub fn recipient(&self) -> AgeRecipient {
        self.recipient.clone()
    }

    /// The key file as age-keygen writes it: when it was made, the public half, the private key.
    pub fn to_file_text(&self, created: Timestamp) -> SecretText {
        let created = Timestamp::from_second(created.as_second()).unwrap_or(created);
        let key = self.key.to_string();
        let key = key.expose_secret();
        SecretText::new(format!("# created: {created}\n# public key: {}\n{key}\n", self.recipient))
    }

    /// Opens the age file `armored`, which is meant for this key.
    fn open(&self, armored: &str) -> Result<SecretBytes, UnwrapError> {
        let file = remove_armor(armored)?;
        let stanzas = count_stanzas(&file);
        if stanzas > STANZAS_MAX {
            return Err(broken(format!("{stanzas} age stanzas; at most {STANZAS_MAX} are read")));
        }
        let decryptor = Decryptor::new_buffered(&file[..]).map_err(|error| explain_failure(&error))?;
        if decryptor.is_scrypt() {
            return Err(broken("the age file asks for a passphrase, not for a key"));
        }
        let identity: &dyn ::age::Identity = &self.key;
        let mut payload =
            decryptor.decrypt(std::iter::once(identity)).map_err(|error| explain_failure(&error))?;
        read_key(&mut payload)
    }
}

impl fmt::Debug for AgeIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AgeIdentity({}, [redacted])", self.recipient)
    }
}

impl Identity for AgeIdentity {
    fn public(&self) -> String {
        RecipientId::Age(self.recipient.text.clone()).to_string()
    }

    /// Only an entry that names this key's public half is looked at: a stanza does not say whom it is for, and
    /// trying all entries with all keys would cost their product in scalar multiplications.
    fn unwrap(&self, wrapped: &WrappedKey) -> Option<Result<SecretBytes, UnwrapError>> {
        let RecipientId::Age(name) = &wrapped.recipient else { return None };
        let mine = name.trim().eq_ignore_ascii_case(&self.recipient.text);
        mine.then(|| self.open(&wrapped.enc))
    }
}

/// Reads a key file: one private key per line, empty lines, comments from `#`.
///
/// # Errors
/// [`KeyError`] with the number of the first line that is none of these, and never its text; also when no key is
/// in the file at all, or when it exceeds [`KEY_FILE_BYTES_MAX`].
pub fn read_identities(file: &SecretText) -> Result<Vec<AgeIdentity>, KeyError> {
    if file.len() > KEY_FILE_BYTES_MAX {
        return Err(KeyError::new(format!("the age key file is larger than {KEY_FILE_BYTES_MAX} bytes")));
    }
    let text = file.expose_secret();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut identities = Vec::new();
    for (index, line) in text.lines().map(str::trim).enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let key = x25519::Identity::from_str(line).map_err(|_| {
            KeyError::new(format!("line {} of the age key file {}", index + 1, explain_identity(line)))
        })?;
        identities.push(AgeIdentity::new(key));
    }
    if identities.is_empty() {
        return Err(KeyError::new("the age key file holds no key; one begins with AGE-SECRET-KEY-1"));
    }
    Ok(identities)
}

/// What a line that is no native private key is instead.
fn explain_identity(line: &str) -> &'static str {
    let upper = line.get(..18).unwrap_or(line).to_ascii_uppercase();
    if upper.starts_with("AGE-SECRET-KEY-PQ-") {
        "is a post-quantum key, which is not supported yet"
    } else if upper.starts_with("AGE-SECRET-KEY-") {
        "is a damaged private key: its checksum is wrong"
    } else if upper.starts_with("AGE-PLUGIN-") {
        "is a key of an age plugin, which is not supported yet"
    } else if upper.starts_with("AGE1") {
        "is a public key; the private one begins with AGE-SECRET-KEY-1"
    } else if line.starts_with(ARMOR_BEGIN) || upper.starts_with("AGE-ENCRYPTION.ORG") {
        "shows that the file itself is encrypted, which is not supported yet"
    } else {
        "is neither a private key nor a comment"
    }
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

/// How many stanzas the header of `file` has: its lines that begin one, up to the line with the MAC. Bodies are
/// base64, so no other line begins so.
fn count_stanzas(file: &[u8]) -> usize {
    file.split(|&byte| byte == b'\n')
        .take_while(|line| !line.starts_with(HEADER_END))
        .filter(|line| line.starts_with(STANZA_BEGIN))
        .count()
}

/// The crate's own messages span lines and name its command's flags; ours say what it means here.
fn explain_failure(error: &DecryptError) -> UnwrapError {
    broken(match error {
        DecryptError::NoMatchingKeys => "the age file is for another key than the entry says",
        DecryptError::DecryptionFailed | DecryptError::InvalidMac => {
            "the age file was tampered with or damaged"
        }
        DecryptError::UnknownFormat => "the age file has a version that is not known",
        _ => "the header of the age file is damaged",
    })
}

fn broken(reason: impl Into<String>) -> UnwrapError {
    UnwrapError::new(UnwrapFailure::Broken, reason)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use ::age::Encryptor;
    use ::age::armor::{ArmoredWriter, Format};
    use ::age::scrypt;
    use ::age::secrecy::SecretString;

    use super::*;

    const SECRET: &str = "AGE-SECRET-KEY-1GQ9778VQXMMJVE8SK7J6VT8UJ4HDQAJUVSFCWCM02D8GEWQ72PVQ2Y5J33";
    const PUBLIC: &str = "age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa";

    fn identity() -> AgeIdentity {
        read_identities(&SecretText::from(SECRET)).unwrap().remove(0)
    }

    fn entry(recipient: &str, enc: &str) -> WrappedKey {
        WrappedKey {
            recipient: RecipientId::Age(recipient.to_owned()),
            enc: enc.to_owned(),
            created_at: None,
        }
    }

    fn refusal(enc: &str) -> String {
        let error = identity().unwrap(&entry(PUBLIC, enc)).unwrap().unwrap_err();
        assert_eq!(error.kind, UnwrapFailure::Broken);
        error.reason
    }

    /// An armored age file made around the checks of [`AgeRecipient::wrap`].
    fn seal(recipients: &[&dyn ::age::Recipient], payload: &[u8]) -> String {
        let mut file = Vec::new();
        let armor = ArmoredWriter::wrap_output(&mut file, Format::AsciiArmor).unwrap();
        let encryptor = Encryptor::with_recipients(recipients.iter().copied()).unwrap();
        let mut writer = encryptor.wrap_output(armor).unwrap();
        writer.write_all(payload).unwrap();
        writer.finish().unwrap().finish().unwrap();
        String::from_utf8(file).unwrap()
    }

    #[test]
    fn a_key_and_a_share_come_back_and_other_lengths_are_refused() {
        for length in [32, 33] {
            let key = SecretBytes::new(vec![7; length]);
            let enc = identity().recipient().wrap(&key).unwrap();
            assert!(enc.starts_with(ARMOR_BEGIN) && enc.ends_with("-----\n"), "{enc}");
            assert_eq!(identity().unwrap(&entry(PUBLIC, &enc)).unwrap().unwrap(), key);
        }
        for length in [0, 16, 31, 34, 4096] {
            let key = SecretBytes::new(vec![7; length]);
            assert!(identity().recipient().wrap(&key).is_err(), "{length}");
            let enc = seal(&[&identity().recipient.key], key.expose_secret());
            assert!(refusal(&enc).contains("not as long"), "{length}");
        }
    }

    #[test]
    fn white_space_around_the_armor_and_crlf_in_it_do_not_matter() {
        let key = SecretBytes::new(vec![7; 32]);
        let enc = identity().recipient().wrap(&key).unwrap();
        for form in [enc.trim_end().to_owned(), format!("\n{enc}\n\n"), enc.replace('\n', "\r\n")] {
            assert_eq!(identity().unwrap(&entry(PUBLIC, &form)).unwrap().unwrap(), key, "{form:?}");
        }
        let enc = entry(&format!(" {PUBLIC} "), &enc);
        assert_eq!(identity().unwrap(&enc).unwrap().unwrap(), key);
    }

    #[test]
    fn an_entry_for_somebody_else_is_nothing_and_a_mislabelled_one_is_broken() {
        let other = AgeIdentity::generate();
        let enc = other.recipient().wrap(&SecretBytes::new(vec![7; 32])).unwrap();
        assert!(identity().unwrap(&entry(&other.recipient().to_string(), &enc)).is_none());
        assert!(identity().unwrap(&entry("ssh-ed25519 AAAA", &enc)).is_none());
        let pgp = WrappedKey { recipient: RecipientId::Pgp(PUBLIC.to_owned()), ..entry(PUBLIC, &enc) };
        assert!(identity().unwrap(&pgp).is_none());
        assert!(refusal(&enc).contains("another key"));
    }

    #[test]
    fn damage_is_told() {
        let enc = identity().recipient().wrap(&SecretBytes::new(vec![7; 32])).unwrap();
        let body: Vec<&str> = enc.lines().collect();
        let cut = format!("{}\n{}\n", body[0], body[body.len() - 1]);
        let flipped = |line: usize| {
            let mut lines: Vec<String> = body.iter().map(|&line| line.to_owned()).collect();
            let old = lines[line].remove(20);
            lines[line].insert(20, if old == 'A' { 'B' } else { 'A' });
            lines.join("\n")
        };
        for (what, text) in [
            ("nothing", String::new()),
            ("not armored", "age-encryption.org/v1\n".to_owned()),
            ("no end", body[..body.len() - 1].join("\n")),
            ("no body", cut),
            ("no base64", enc.replacen(body[1], &body[1].replace(|_| true, "*"), 1)),
            ("a second file", format!("{enc}{enc}")),
            ("ephemeral share", flipped(1)),
            ("payload", flipped(body.len() - 3)),
        ] {
            assert!(!refusal(&text).is_empty(), "{what}");
        }
    }

    #[test]
    fn stanzas_are_limited_on_both_sides() {
        let [mine, other] = [identity().recipient.key, AgeIdentity::generate().recipient.key];
        for (count, fits) in [(STANZAS_MAX - 1, true), (STANZAS_MAX, false)] {
            // The crate adds one stanza of its own.
            let mut all: Vec<&dyn ::age::Recipient> = vec![&other; count - 1];
            all.push(&mine);
            let enc = seal(&all, &[7; 32]);
            assert_eq!(identity().unwrap(&entry(PUBLIC, &enc)).unwrap().is_ok(), fits, "{count}");
        }
    }

    #[test]
    fn size_is_limited_on_both_sides() {
        let enc = identity().recipient().wrap(&SecretBytes::new(vec![7; 32])).unwrap();
        let padded = |length: usize| format!("{enc}{}", "\n".repeat(length - enc.len()));
        assert!(identity().unwrap(&entry(PUBLIC, &padded(WRAPPED_KEY_BYTES_MAX))).unwrap().is_ok());
        assert!(refusal(&padded(WRAPPED_KEY_BYTES_MAX + 1)).contains("larger than"));
    }

    #[test]
    fn a_passphrase_is_never_asked_for() {
        let mut recipient = scrypt::Recipient::new(SecretString::from("pass".to_owned()));
        recipient.set_work_factor(2);
        assert!(refusal(&seal(&[&recipient], &[7; 32])).contains("passphrase"));
    }

    #[test]
    fn a_recipient_is_read_and_everything_else_is_explained() {
        assert_eq!(AgeRecipient::parse(&format!(" {PUBLIC}\n")).unwrap().to_string(), PUBLIC);
        assert_eq!(AgeRecipient::parse(&PUBLIC.to_uppercase()).unwrap().to_string(), PUBLIC);
        for (text, says) in [
            (SECRET, "secret key"),
            (&PUBLIC[..40], "checksum"),
            ("age1pq1abc", "post-quantum"),
            ("age1yubikey1abc", "plugins"),
            ("ssh-ed25519 AAAA", "ssh"),
            ("", "does not begin"),
            ("hunter2é", "does not begin"),
        ] {
            let reason = AgeRecipient::parse(text).unwrap_err().reason;
            assert!(reason.contains(says), "{text}: {reason}");
            assert!(text.is_empty() || !reason.contains(text), "{reason}");
        }
    }

    #[test]
    fn recipients_that_would_make_the_key_public_are_refused() {
        for text in LOW_ORDER_RECIPIENTS {
            assert!(x25519::Recipient::from_str(text).is_ok(), "{text}");
            assert!(AgeRecipient::parse(text).unwrap_err().reason.contains("everybody"), "{text}");
        }
    }

    #[test]
    fn a_key_file_may_have_comments_and_several_keys() {
        let other = AgeIdentity::generate();
        let file = other.to_file_text(Timestamp::UNIX_EPOCH);
        let lines: Vec<&str> = file.expose_secret().lines().collect();
        assert_eq!(lines[0], "# created: 1970-01-01T00:00:00Z");
        assert_eq!(lines[1], format!("# public key: {}", other.recipient()));
        assert!(lines[2].starts_with("AGE-SECRET-KEY-1") && file.expose_secret().ends_with('\n'));
        let text = format!("\u{feff}# mine\r\n\r\n {SECRET} \r\n{}", file.expose_secret());
        let held = read_identities(&SecretText::new(text)).unwrap();
        assert_eq!(held.len(), 2);
        assert_eq!(held[0].recipient().to_string(), PUBLIC);
        assert_eq!(held[1].recipient(), other.recipient());
        assert_eq!(held[0].public(), format!("age {PUBLIC}"));
    }

    #[test]
    fn a_key_file_with_junk_names_the_line_and_not_the_text() {
        let damaged = SECRET.replace("J33", "J34");
        for (junk, says) in [
            ("CANARY-hunter2", "neither"),
            (damaged.as_str(), "checksum"),
            (PUBLIC, "public key"),
            ("AGE-SECRET-KEY-PQ-1CANARY", "post-quantum"),
            ("AGE-PLUGIN-YUBIKEY-1CANARY", "plugin"),
            (ARMOR_BEGIN, "encrypted"),
            ("é€é€é€é€é€", "neither"),
        ] {
            let reason =
                read_identities(&SecretText::new(format!("# a\n{SECRET}\n{junk}\n"))).unwrap_err().reason;
            assert!(reason.contains("line 3") && reason.contains(says), "{junk}: {reason}");
            assert!(!reason.contains(junk) && !reason.contains("CANARY"), "{reason}");
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

    #[test]
    fn formatting_never_shows_the_private_key() {
        let shown = format!("{:?}", identity());
        assert!(shown.contains(PUBLIC) && !shown.to_uppercase().contains("SECRET-KEY"), "{shown}");
    }
}

//! age: native keys (X25519, post-quantum), SSH keys, plugins, and key files under a passphrase.
//!
//! Standard: the age format, version 1 (C2SP `age.md`), by the `age` crate; of its stanzas only the post-quantum one is
//! made here (`hybrid`). One wrapped key is one armored age file with one recipient:
//!
//! ```text
//! file key     ← 16 random bytes, for this file alone
//! stanza       = the file key, sealed for the recipient; for X25519:
//!                ephemeral share ‖ ChaCha20-Poly1305(HKDF-SHA256(X25519(ephemeral, recipient)), file key)
//! header MAC   = HMAC-SHA256(HKDF-SHA256(file key, "header"), header)
//! payload      = STREAM(HKDF-SHA256(file key, nonce, "payload"), data key)
//! ```
//!
//! Nonces are safe because no key is used twice: the stanza's comes from a fresh ephemeral key and the payload's
//! from a fresh file key and a fresh 16-byte nonce, so the fixed nonce of the first and the counter of the second
//! meet each key once. Neither is padded: the payload has one of two lengths, which `enc` shows anyway.
//!
//! SSH keys and plugins are features of their own, since the first bring RSA that is not constant in time and the second
//! run programs: a controller is built without them.

use std::fmt;
use std::str::FromStr;
#[cfg(feature = "age-plugin")]
use std::sync::Arc;

use ::age::secrecy::ExposeSecret;
use ::age::x25519;
use bech32::FromBase32;
use jiff::Timestamp;

use super::{Identity, KeyError, Recipient, RecipientId, UnwrapError, WrapError, WrappedKey};
use crate::secret::{SecretBytes, SecretText};

mod file;
mod hybrid;
mod key_file;
mod locked_file;
mod low_order;
#[cfg(feature = "age-plugin")]
mod plugin;
mod prompt;
#[cfg(feature = "age-ssh")]
mod ssh;

pub use file::STANZAS_MAX;
pub use key_file::{Unlocking, is_locked, read_identities, read_key_file};
pub use locked_file::SCRYPT_WORK_FACTOR_MAX;
pub use prompt::{Nobody, Prompt};
#[cfg(feature = "age-ssh")]
pub use ssh::read_ssh_identity;

use file::Passphrase;
use hybrid::{HybridIdentity, HybridRecipient};

/// A public key to wrap for: `age1…`, `age1pq1…`, `age1NAME1…` of a plugin, or the line of an SSH key.
#[derive(Clone)]
pub struct AgeRecipient {
    key: PublicKey,
    text: String,
}

#[derive(Clone)]
enum PublicKey {
    Hybrid(HybridRecipient),
    #[cfg(feature = "age-plugin")]
    Plugin(plugin::PluginRecipient),
    #[cfg(feature = "age-ssh")]
    Ssh(Box<::age::ssh::Recipient>),
    X25519(x25519::Recipient),
}

impl AgeRecipient {
    /// Reads a recipient with white space around it; the native ones also in upper case.
    ///
    /// # Errors
    /// [`KeyError`] for anything else; it says what the text seems to be, and never repeats it, because people
    /// paste the wrong half of a key.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        if let Ok(key) = x25519::Recipient::from_str(text) {
            let text = key.to_string();
            if is_everybodys(&text) {
                return Err(no_recipient("everybody could open what is wrapped for it"));
            }
            return Ok(Self { key: PublicKey::X25519(key), text });
        }
        if let Some(key) = HybridRecipient::parse(text) {
            return Ok(Self { text: key.to_text(), key: PublicKey::Hybrid(key) });
        }
        #[cfg(feature = "age-ssh")]
        if text.starts_with("ssh-") {
            let key = ssh::parse_recipient(text).map_err(no_recipient)?;
            return Ok(Self { key: PublicKey::Ssh(Box::new(key)), text: text.to_owned() });
        }
        #[cfg(feature = "age-plugin")]
        if let Some(key) = plugin::PluginRecipient::parse(text) {
            return Ok(Self { key: PublicKey::Plugin(key), text: text.to_owned() });
        }
        Err(no_recipient(explain_recipient(text)))
    }

    /// The same; a plugin that has a question while it wraps asks `prompt`.
    #[cfg(feature = "age-plugin")]
    #[must_use]
    pub fn with_prompt(mut self, prompt: Arc<dyn Prompt>) -> Self {
        if let PublicKey::Plugin(recipient) = &mut self.key {
            recipient.set_prompt(prompt);
        }
        self
    }

    /// Whether what is wrapped for it withstands a quantum computer, as far as that shows: a plugin says it in the
    /// name that its recipients carry.
    pub(crate) fn is_post_quantum(&self) -> bool {
        match &self.key {
            PublicKey::Hybrid(_) => true,
            #[cfg(feature = "age-plugin")]
            PublicKey::Plugin(recipient) => recipient.name().ends_with("pq"),
            #[cfg(feature = "age-ssh")]
            PublicKey::Ssh(_) => false,
            PublicKey::X25519(_) => false,
        }
    }
}

fn no_recipient(reason: &str) -> KeyError {
    KeyError::new(format!("not an age recipient: {reason}"))
}

/// Whether X25519 with this key gives a secret that everybody knows. The `age` crate panics when it wraps for one.
fn is_everybodys(text: &str) -> bool {
    let words = bech32::decode(text).map(|(_, words, _)| words).unwrap_or_default();
    let point = Vec::from_base32(&words).ok().and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
    point.is_none_or(|point| low_order::is_low_order(&point))
}

/// What a text that is no recipient is instead. Only prefixes of public forms decide.
fn explain_recipient(text: &str) -> &'static str {
    let lower = text.get(..16).unwrap_or(text).to_ascii_lowercase();
    if lower.starts_with("age-secret-key-") || lower.starts_with("age-plugin-") {
        "this is a secret key; its public half begins with age1"
    } else if lower.starts_with("age1pq1") {
        "its checksum is wrong; a post-quantum recipient (age1pq1…) has 1,959 characters and is easily cut"
    } else if lower.starts_with("ssh-") {
        "this build has no SSH keys"
    } else if lower.strip_prefix("age1").is_some_and(|rest| rest.contains('1')) {
        match cfg!(feature = "age-plugin") {
            true => "its checksum is wrong; it was probably cut or mistyped",
            false => "this build runs no age plugins",
        }
    } else if lower.starts_with("age1") {
        "its checksum is wrong; it was probably cut or mistyped"
    } else if lower.starts_with("-----begin ") {
        "this is the text of a key file; name the line that begins with age1 or ssh-"
    } else if lower.starts_with("ecdsa-") || lower.starts_with("sk-") {
        "age takes SSH keys of the types ssh-ed25519 and ssh-rsa only"
    } else {
        "it begins with neither age1 nor ssh-"
    }
}

impl PartialEq for AgeRecipient {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for AgeRecipient {}

impl std::hash::Hash for AgeRecipient {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.text.hash(state);
    }
}

impl fmt::Debug for AgeRecipient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AgeRecipient({})", self.text)
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
        let wrapped = match &self.key {
            PublicKey::Hybrid(recipient) => file::seal(recipient, key),
            #[cfg(feature = "age-plugin")]
            PublicKey::Plugin(recipient) => recipient.seal(key),
            #[cfg(feature = "age-ssh")]
            PublicKey::Ssh(recipient) => file::seal(recipient.as_ref(), key),
            PublicKey::X25519(recipient) => file::seal(recipient, key),
        };
        wrapped.map_err(|reason| WrapError { recipient: self.id(), reason })
    }
}

/// A native private key: `AGE-SECRET-KEY-1…` or `AGE-SECRET-KEY-PQ-1…`. Wiped when dropped.
#[derive(Clone)]
pub struct AgeIdentity {
    key: PrivateKey,
    recipient: AgeRecipient,
}

#[derive(Clone)]
enum PrivateKey {
    Hybrid(HybridIdentity),
    X25519(x25519::Identity),
}

impl AgeIdentity {
    /// A fresh X25519 key from the operating system's generator.
    pub fn generate() -> Self {
        Self::from_x25519(x25519::Identity::generate())
    }

    /// A fresh post-quantum key from the operating system's generator.
    pub fn generate_post_quantum() -> Self {
        Self::from_hybrid(HybridIdentity::generate())
    }

    fn parse(text: &str) -> Option<Self> {
        let x25519 = x25519::Identity::from_str(text).ok().map(Self::from_x25519);
        x25519.or_else(|| HybridIdentity::parse(text).map(Self::from_hybrid))
    }

    fn from_x25519(key: x25519::Identity) -> Self {
        let public = key.to_public();
        let recipient = AgeRecipient { text: public.to_string(), key: PublicKey::X25519(public) };
        Self { key: PrivateKey::X25519(key), recipient }
    }

    fn from_hybrid(key: HybridIdentity) -> Self {
        let public = key.to_public();
        let recipient = AgeRecipient { text: public.to_text(), key: PublicKey::Hybrid(public) };
        Self { key: PrivateKey::Hybrid(key), recipient }
    }

    /// The public half.
    pub fn recipient(&self) -> AgeRecipient {
        self.recipient.clone()
    }

    /// The key file as age-keygen writes it: when it was made, the public half, the private key.
    pub fn to_file_text(&self, created: Timestamp) -> SecretText {
        let created = Timestamp::from_second(created.as_second()).unwrap_or(created);
        let key = match &self.key {
            PrivateKey::Hybrid(key) => key.to_text(),
            PrivateKey::X25519(key) => SecretText::from(key.to_string().expose_secret()),
        };
        let key = key.expose_secret();
        SecretText::new(format!("# created: {created}\n# public key: {}\n{key}\n", self.recipient))
    }

    fn as_age(&self) -> &dyn ::age::Identity {
        match &self.key {
            PrivateKey::Hybrid(key) => key,
            PrivateKey::X25519(key) => key,
        }
    }
}

impl fmt::Debug for AgeIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AgeIdentity({}, [redacted])", self.recipient)
    }
}

impl Identity for AgeIdentity {
    fn public(&self) -> String {
        self.recipient.id().to_string()
    }

    /// Only an entry that names this key's public half is looked at: a stanza does not say whom it is for, and
    /// trying all entries with all keys would cost their product in scalar multiplications.
    fn unwrap(&self, wrapped: &WrappedKey) -> Option<Result<SecretBytes, UnwrapError>> {
        let RecipientId::Age(name) = &wrapped.recipient else { return None };
        let mine = name.trim().eq_ignore_ascii_case(&self.recipient.text);
        mine.then(|| open_named(&wrapped.enc, self.as_age()))
    }
}

/// Opens what an entry says is for `identity`.
fn open_named(enc: &str, identity: &dyn ::age::Identity) -> Result<SecretBytes, UnwrapError> {
    file::open(enc, identity, Passphrase::Refused)
        .unwrap_or_else(|| Err(file::broken("the age file is for another key than the entry says")))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use ::age::armor::{ArmoredWriter, Format};
    use ::age::secrecy::SecretString;
    use ::age::{Encryptor, scrypt};

    use super::file::ARMOR_BEGIN;
    use super::*;
    use crate::recipient::{UnwrapFailure, WRAPPED_KEY_BYTES_MAX};

    pub(super) const SECRET: &str =
        "AGE-SECRET-KEY-1GQ9778VQXMMJVE8SK7J6VT8UJ4HDQAJUVSFCWCM02D8GEWQ72PVQ2Y5J33";
    pub(super) const PUBLIC: &str = "age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa";

    pub(super) fn identity() -> AgeIdentity {
        read_identities(&SecretText::from(SECRET)).unwrap().remove(0)
    }

    pub(super) fn entry(recipient: &str, enc: &str) -> WrappedKey {
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

    fn x25519(identity: &AgeIdentity) -> x25519::Recipient {
        identity.recipient.text.parse().unwrap()
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
            let enc = seal(&[&x25519(&identity())], key.expose_secret());
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
        let [mine, other] = [x25519(&identity()), x25519(&AgeIdentity::generate())];
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
            ("age1yubikey1abc", if cfg!(feature = "age-plugin") { "checksum" } else { "plugins" }),
            ("ssh-ed25519 AAAA", if cfg!(feature = "age-ssh") { "damaged" } else { "no SSH" }),
            ("ecdsa-sha2-nistp256 AAAA", "ssh-ed25519"),
            ("-----BEGIN OPENSSH PRIVATE KEY-----", "key file"),
            ("", "neither"),
            ("hunter2é", "neither"),
        ] {
            let reason = AgeRecipient::parse(text).unwrap_err().reason;
            assert!(reason.contains(says), "{text}: {reason}");
            assert!(text.is_empty() || !reason.contains(text), "{reason}");
        }
    }

    /// The encodings of the points of low order.
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

    #[test]
    fn recipients_that_would_make_the_key_public_are_refused() {
        for text in LOW_ORDER_RECIPIENTS {
            assert!(x25519::Recipient::from_str(text).is_ok(), "{text}");
            assert!(AgeRecipient::parse(text).unwrap_err().reason.contains("everybody"), "{text}");
        }
    }

    #[test]
    fn formatting_never_shows_the_private_key() {
        let shown = format!("{:?}", identity());
        assert!(shown.contains(PUBLIC) && !shown.to_uppercase().contains("SECRET-KEY"), "{shown}");
    }
}

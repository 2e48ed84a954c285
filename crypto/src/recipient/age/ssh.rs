//! SSH keys: recipients `ssh-ed25519 AAAA…` and `ssh-rsa AAAA…`, and the private keys of the same types.
//!
//! Standard: the stanzas `ssh-ed25519` and `ssh-rsa` as age's own command has them, by the `age` crate:
//!
//! ```text
//! ssh-ed25519  = as X25519 with the key's Montgomery form, times a tweak that is HKDF-SHA256 of the SSH key
//! ssh-rsa      = RSA-OAEP(SHA-256, label "age-encryption.org/v1/ssh-rsa", file key)
//! ```
//!
//! The `rsa` crate below takes time that depends on the private key (RUSTSEC-2023-0071). Whoever can measure many
//! openings over a network could use that, so this kind is for a person's own machine, and not part of a controller.
//!
//! A key under a passphrase shows its public half, so its owner is asked only for entries that name it, once.

use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use ::age::ssh::{Identity as PrivateKey, ParseRecipientKeyError, Recipient as PublicKey, UnsupportedKey};

use super::open_named;
use super::prompt::{Prompt, to_age};
use crate::recipient::{
    Effort, Identity, KEY_FILE_BYTES_MAX, KeyError, RecipientId, UnwrapError, UnwrapFailure, WrappedKey,
};
use crate::secret::{SecretBytes, SecretText};

/// Reads the line of a public key: type, key, and a comment.
pub(super) fn parse_recipient(line: &str) -> Result<PublicKey, &'static str> {
    if line.contains(|character: char| character.is_control()) {
        return Err("an SSH key is one line");
    }
    match PublicKey::from_str(line) {
        // As with X25519: everybody knows the secret that is shared with such a point.
        Ok(PublicKey::SshEd25519(_, point)) if point.is_small_order() => {
            Err("everybody could open what is wrapped for it")
        }
        Ok(key) => Ok(key),
        Err(ParseRecipientKeyError::RsaModulusTooLarge) => {
            Err("RSA keys of more than 4096 bits are not used")
        }
        Err(ParseRecipientKeyError::RsaModulusTooSmall) => {
            Err("RSA keys of less than 2048 bits are not safe")
        }
        Err(ParseRecipientKeyError::Unsupported(_)) => {
            Err("age takes SSH keys of the types ssh-ed25519 and ssh-rsa only")
        }
        Err(_) => Err("this SSH key is damaged; it was probably cut or mistyped"),
    }
}

/// Reads a private key: OpenSSH's own form, or PEM for RSA. `name` is what a person who is asked for its passphrase
/// knows it by.
///
/// # Errors
/// [`KeyError`] when it is none, or one that age cannot use.
pub fn read_ssh_identity(
    file: &SecretText,
    name: &str,
    prompt: &Arc<dyn Prompt>,
) -> Result<Box<dyn Identity>, KeyError> {
    if file.len() > KEY_FILE_BYTES_MAX {
        return Err(KeyError::new(format!("the SSH key file is larger than {KEY_FILE_BYTES_MAX} bytes")));
    }
    let key = PrivateKey::from_buffer(file.expose_secret().as_bytes(), None)
        .map_err(|_| KeyError::new(explain_identity(file.expose_secret())))?;
    if let PrivateKey::Unsupported(kind) = &key {
        return Err(KeyError::new(explain_unsupported(kind)));
    }
    let public = PublicKey::try_from(key.clone())
        .map_err(|_| KeyError::new("an SSH key of a type or size that age cannot use"))?;
    let key = match key {
        PrivateKey::Encrypted(_) => Key::Locked { key, opened: Mutex::new(None) },
        key => Key::Open(key),
    };
    let (name, prompt) = (name.to_owned(), prompt.clone());
    Ok(Box::new(SshIdentity { key, public: public.to_string(), name, prompt }))
}

/// What a file that is no SSH private key is instead.
fn explain_identity(text: &str) -> &'static str {
    if text.starts_with("ssh-") {
        "a public SSH key; the private one is in the file without .pub"
    } else if text.contains("AGE-SECRET-KEY-") {
        "an age key file; its place is SOPS_AGE_KEY_FILE"
    } else {
        "not an SSH private key, or a damaged one"
    }
}

fn explain_unsupported(kind: &UnsupportedKey) -> &'static str {
    match kind {
        UnsupportedKey::EncryptedPem => {
            "an SSH key encrypted in an old form that is not safe; `ssh-keygen -p -f FILE` writes it anew"
        }
        UnsupportedKey::EncryptedSsh(_) => "an SSH key encrypted with a cipher that is not known",
        UnsupportedKey::Hardware(_) => "an SSH key on a security key, which age cannot use",
        UnsupportedKey::Type(_) => "an SSH key of a type other than ssh-ed25519 and ssh-rsa",
    }
}

struct SshIdentity {
    key: Key,
    /// Type and key, as [`PublicKey`] prints it.
    public: String,
    name: String,
    prompt: Arc<dyn Prompt>,
}

enum Key {
    Open(PrivateKey),
    Locked {
        key: PrivateKey,
        /// What became of the one question.
        opened: Mutex<Option<Result<PrivateKey, UnwrapError>>>,
    },
}

impl SshIdentity {
    /// Asks for the passphrase of `key`.
    fn unlock(&self, key: &PrivateKey) -> Result<PrivateKey, UnwrapError> {
        let stays_locked = |reason: &str| {
            let reason = format!("the SSH key {} stays locked: {reason}", self.name);
            UnwrapError::new(UnwrapFailure::Denied, reason)
        };
        let PrivateKey::Encrypted(key) = key else { return Err(stays_locked("it is damaged")) };
        let passphrase = self.prompt.passphrase(&format!("Passphrase of the SSH key {}", self.name));
        let passphrase = passphrase.ok_or_else(|| stays_locked("nobody gave its passphrase"))?;
        let key = key.decrypt(to_age(&passphrase)).map_err(|_| stays_locked("wrong passphrase"))?;
        Ok(key.into())
    }
}

impl Identity for SshIdentity {
    fn public(&self) -> String {
        format!("age {}", self.public)
    }

    fn effort(&self) -> Effort {
        match self.key {
            Key::Open(_) => Effort::Silent,
            Key::Locked { .. } => Effort::Interactive,
        }
    }

    /// Comments after the key differ from place to place and do not count.
    fn unwrap(&self, wrapped: &WrappedKey) -> Option<Result<SecretBytes, UnwrapError>> {
        let RecipientId::Age(line) = &wrapped.recipient else { return None };
        if parse_recipient(line.trim()).ok()?.to_string() != self.public {
            return None;
        }
        Some(match &self.key {
            Key::Open(key) => open_named(&wrapped.enc, key),
            Key::Locked { key, opened } => {
                let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
                match opened.get_or_insert_with(|| self.unlock(key)) {
                    Ok(key) => open_named(&wrapped.enc, key),
                    Err(error) => Err(error.clone()),
                }
            }
        })
    }
}

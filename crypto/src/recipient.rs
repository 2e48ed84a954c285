//! Who may open a file: recipients wrap its data key, identities unwrap it.
//!
//! This is the one extension point for key services. A kind is a file in this folder with a type for each of the
//! two traits; nothing else in the crate knows kinds, except the `sops` block that spells them
//! ([`crate::metadata`]).

use std::fmt;
use std::io::Read;

use zeroize::Zeroizing;

use crate::secret::{DATA_KEY_BYTES, SecretBytes};

pub mod age;
mod aws_key;
#[cfg(feature = "aws")]
pub mod aws_kms;
mod azure_key;
#[cfg(feature = "azure")]
pub mod azure_key_vault;
mod gcp_key;
#[cfg(feature = "gcp")]
pub mod gcp_kms;
#[cfg(feature = "key-service")]
pub mod key_service;
#[cfg(feature = "pgp")]
pub mod pgp;
pub mod post_quantum;
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp", feature = "key-service", feature = "vault"))]
mod remote;
#[cfg(feature = "vault")]
pub mod vault;
mod vault_key;

pub use aws_key::AwsKmsKey;
pub use azure_key::AzureKeyVaultKey;
pub use gcp_key::GcpKmsKey;
pub use vault_key::VaultKey;

/// Most bytes of one wrapped key that are looked at. More is refused before any work is done.
pub const WRAPPED_KEY_BYTES_MAX: usize = 64 * 1024;

/// Most bytes of a key file or key ring that are looked at.
pub const KEY_FILE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Who a key is wrapped for, in the terms of the `sops` block. Public: names no secret.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecipientId {
    /// An age recipient, as `age1…` or an SSH public key line.
    Age(String),
    /// A key in AWS KMS, with all parameters that unwrapping needs.
    AwsKms(AwsKmsKey),
    /// A key in Azure Key Vault.
    AzureKeyVault(AzureKeyVaultKey),
    /// A key in Google Cloud KMS.
    GcpKms(GcpKmsKey),
    /// A kind this build cannot use, kept as it was found: the list's name, and what identifies the entry in it.
    Other {
        /// Name of the list in the `sops` block, such as `hckms`.
        kind: String,
        /// The entry's identifying field, for messages.
        name: String,
    },
    /// An OpenPGP certificate by fingerprint, in upper-case hexadecimal digits.
    Pgp(String),
    /// A key in the transit engine of Vault or OpenBao.
    Vault(VaultKey),
}

impl RecipientId {
    /// Whether a key wrapped for `held` is one for this: it is equal, or a version of the same key where this leaves
    /// the version open, as a rule does with keys in Azure, or the same SSH key with another comment behind it.
    pub fn means(&self, held: &Self) -> bool {
        match (self, held) {
            (Self::Age(named), Self::Age(held)) if named.starts_with("ssh-") => {
                named.split_whitespace().take(2).eq(held.split_whitespace().take(2))
            }
            (Self::AzureKeyVault(named), Self::AzureKeyVault(held)) => named.means(held),
            _ => self == held,
        }
    }
}

impl fmt::Display for RecipientId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Age(recipient) => write!(formatter, "age {recipient}"),
            Self::AwsKms(key) => {
                write!(formatter, "kms {}", key.arn)?;
                key.role.iter().try_for_each(|role| write!(formatter, " as {role}"))
            }
            Self::AzureKeyVault(key) => write!(formatter, "azure_kv {key}"),
            Self::GcpKms(key) => write!(formatter, "gcp_kms {key}"),
            Self::Other { kind, name } => write!(formatter, "{kind} {name}"),
            Self::Pgp(fingerprint) => write!(formatter, "pgp {fingerprint}"),
            Self::Vault(key) => write!(formatter, "hc_vault {key}"),
        }
    }
}

/// One entry of the `sops` block: the data key (or one group's share of it) wrapped for one recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrappedKey {
    /// For whom.
    pub recipient: RecipientId,
    /// The wrapped key as the kind writes it: armored text, base64, or the service's own string.
    pub enc: String,
    /// When it was wrapped, RFC 3339; age entries have none.
    pub created_at: Option<String>,
}

/// Most bytes that a wrapped key may hold: a share, which is a data key and one byte for its coordinate.
pub(crate) const SHARE_BYTES: usize = DATA_KEY_BYTES + 1;

/// Whether `length` is that of a data key or of a share. Kinds refuse to wrap or to hand out anything else.
pub(crate) fn is_key_length(length: usize) -> bool {
    length == DATA_KEY_BYTES || length == SHARE_BYTES
}

/// Refuses to wrap anything else than a data key or a share.
pub(crate) fn check_to_wrap(key: &SecretBytes) -> Result<(), String> {
    match is_key_length(key.len()) {
        true => Ok(()),
        false => Err("what is to be wrapped is not as long as a data key".to_owned()),
    }
}

/// What a service unwrapped, if it is a data key or a share.
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp", feature = "vault"))]
pub(crate) fn unwrapped(opened: SecretBytes) -> Result<SecretBytes, UnwrapError> {
    match is_key_length(opened.len()) {
        true => Ok(opened),
        false => {
            let reason = "what was wrapped is not as long as a data key";
            Err(UnwrapError::new(UnwrapFailure::Broken, reason))
        }
    }
}

/// Reads what a kind unwrapped to its end: 32 or 33 bytes, and one byte more is asked for so that a longer payload
/// shows, however long. The reader must hand out authentic bytes only, and fail at an end that is not.
pub(crate) fn read_key(payload: &mut dyn Read) -> Result<SecretBytes, UnwrapError> {
    let broken = |reason: &str| UnwrapError::new(UnwrapFailure::Broken, reason);
    let mut buffer = Zeroizing::new([0; SHARE_BYTES + 1]);
    let mut length = 0;
    while length < buffer.len() {
        match payload.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(_) => return Err(broken("what was wrapped is damaged")),
        }
    }
    if !is_key_length(length) {
        return Err(broken("what was wrapped is not as long as a data key"));
    }
    Ok(SecretBytes::new(buffer[..length].to_vec()))
}

/// How much an attempt to unwrap costs; cheap and silent kinds are tried first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// In this process, without asking anyone.
    Silent,
    /// A call over the network, bounded by a deadline.
    Remote,
    /// A person may be asked for a passphrase or a touch.
    Interactive,
    /// Another process is asked, which holds whatever it holds and may ask a person: after all that is ours.
    Served,
}

/// Wraps a data key for one recipient. Takes public parts only.
pub trait Recipient: Send + Sync {
    /// Who this is, as the `sops` block will say.
    fn id(&self) -> RecipientId;

    /// Wraps `key`, the 32 bytes of a data key or the 33 of a share.
    ///
    /// # Errors
    /// [`WrapError`] naming the recipient and what the kind said.
    fn wrap(&self, key: &SecretBytes) -> Result<String, WrapError>;
}

/// Unwraps data keys. Holds or reaches a private key.
pub trait Identity: Send + Sync {
    /// The public half, as shown to people who ask what was tried: `age age1…`, `pgp FINGERPRINT`.
    fn public(&self) -> String;

    /// What an attempt costs.
    fn effort(&self) -> Effort {
        Effort::Silent
    }

    /// Unwraps `wrapped`: nothing when it is for another kind or recipient, an error when it is for this identity
    /// but broken or refused, else the 32 or 33 bytes. The caller has bounded `wrapped.enc` by
    /// [`WRAPPED_KEY_BYTES_MAX`] and checks the length of what comes back.
    fn unwrap(&self, wrapped: &WrappedKey) -> Option<Result<SecretBytes, UnwrapError>>;
}

/// A recipient could not be used to wrap a key.
#[derive(Debug, thiserror::Error)]
#[error("cannot wrap the data key for {recipient}: {reason}")]
pub struct WrapError {
    /// Whom the key was to be wrapped for.
    pub recipient: RecipientId,
    /// What went wrong, in the kind's words, without any secret.
    pub reason: String,
}

/// A wrapped key that is meant for this identity could not be unwrapped.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct UnwrapError {
    /// Why, so that callers can tell a refusal from an outage.
    pub kind: UnwrapFailure,
    /// What went wrong, in the kind's words, without any secret.
    pub reason: String,
}

impl UnwrapError {
    /// A failure of class `kind` that says `reason`.
    pub fn new(kind: UnwrapFailure, reason: impl Into<String>) -> Self {
        Self { kind, reason: reason.into() }
    }
}

/// Classes of failure when unwrapping, because callers act differently on each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnwrapFailure {
    /// The wrapped key is damaged, too large, or opens to something that is no data key.
    Broken,
    /// The key service said no.
    Denied,
    /// The key service asked to be called less often.
    Throttled,
    /// The key service did not answer in time, or not sensibly.
    Unreachable,
}

/// A text does not name a recipient, or a key file holds no usable key. Never repeats the text of a secret.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub struct KeyError {
    /// What is wrong with it and what would be right.
    pub reason: String,
}

impl KeyError {
    /// An error that says `reason`.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_comment_of_an_ssh_key_names_nobody_else() {
        let age = |text: &str| RecipientId::Age(text.to_owned());
        let key = age("ssh-ed25519 AAAA ops@laptop");
        for same in ["ssh-ed25519 AAAA", "ssh-ed25519  AAAA ci here"] {
            assert!(key.means(&age(same)) && age(same).means(&key), "{same}");
        }
        for other in ["ssh-ed25519 AAAB ops@laptop", "ssh-rsa AAAA ops@laptop", "ssh-ed25519", "age1x"] {
            assert!(!key.means(&age(other)) && !age(other).means(&key), "{other}");
        }
        assert!(!age("age1x y").means(&age("age1x z")));
    }
}

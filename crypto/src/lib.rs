//! Formats, documents, sealing, opening and key services of Lacre.
//!
//! A document is sealed value by value: keys, comments' places and everything else of the text stay as they are. Start
//! from [`encrypt`](encrypt()) and [`SealedFile`]; every verb that rewrites a sealed text takes the [`OpenFile`] that
//! opening gives. [`object`] is for cluster objects, [`recipient`] for keys. docs/format.md specifies the bytes.
//!
//! ```
//! use lacre_crypto::recipient::age::AgeIdentity;
//! use lacre_crypto::*;
//!
//! let identity = AgeIdentity::generate();
//! let recipient = identity.recipient();
//! let write = WriteOptions { now: Timestamp::now(), seal: true, allow_plaintext: false };
//! let options = EncryptOptions {
//!     groups: Groups::one(vec![&recipient]),
//!     selector: Selector::default(),
//!     mac_only_encrypted: false,
//!     bind: None,
//!     write,
//! };
//! let text = SecretText::from("user: app      # who\npassword: hunter2\n");
//! let sealed = encrypt(&text, Format::Yaml, &options)?;
//! assert!(sealed.starts_with("user: ENC[AES256_GCM,") && !sealed.contains("hunter2"));
//!
//! let file = SealedFile::read(&sealed, Format::Yaml)?;
//! let key = file.unwrap_key(&[&identity])?;
//! let open = file.open(key, &OpenOptions::default())?;
//! assert_eq!(open.verdict(), Verdict::Valid);
//! assert_eq!(open.plaintext().expose_secret(), text.expose_secret().as_bytes());
//!
//! let path = TreePath::parse("[\"password\"]")?;
//! let changed = set(&open, &path, &SecretText::from("\"correct horse\""), &write)?.expect("it is another value");
//! assert_eq!(changed.lines().next(), sealed.lines().next());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use jiff::Timestamp;

mod acceptance;
pub mod aead;
pub mod convert;
pub mod data_key;
pub mod decrypt;
pub mod document;
pub mod edit;
pub mod encrypt;
pub mod error;
pub mod format;
pub mod inspect;
pub mod mac;
pub mod metadata;
pub mod object;
mod parallel;
pub mod recipient;
pub mod rotate;
pub mod seal;
#[cfg(feature = "sealed-secrets")]
pub mod sealed_item;
#[cfg(feature = "sealed-secrets")]
pub mod sealing_key;
pub mod secret;
pub mod selector;
pub mod shamir;
pub mod value;
pub mod variables;

pub use convert::{ConvertError, Layout, convert};
pub use data_key::{DecryptionOrder, Groups};
pub use decrypt::{OpenFile, OpenOptions, SealedFile};
pub use edit::{TreePath, reencrypt, refresh, set, set_in_clear, unset};
pub use encrypt::{EncryptOptions, WriteOptions, encrypt};
pub use format::Format;
pub use rotate::{reseal, rotate, update_keys};
pub use seal::{Bind, Scope, Verdict};
pub use secret::{DataKey, Plaintext, SecretBytes, SecretText};
pub use selector::{Pattern, Selector, SelectorKind};
pub use variables::Variable;

/// A time as the `sops` block writes it: RFC 3339 in UTC, whole seconds.
pub fn timestamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

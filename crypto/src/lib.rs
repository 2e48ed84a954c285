//! Lacre's formats, documents, sealing, opening and key services.

pub use jiff::Timestamp;

mod acceptance;
pub mod aead;
pub mod data_key;
pub mod decrypt;
pub mod document;
pub mod edit;
pub mod encrypt;
pub mod error;
pub mod format;
pub mod mac;
pub mod metadata;
pub mod object;
pub mod recipient;
pub mod rotate;
pub mod seal;
pub mod secret;
pub mod selector;
pub mod shamir;
pub mod value;

pub use data_key::Groups;
pub use decrypt::{OpenFile, OpenOptions, SealedFile};
pub use edit::{TreePath, reencrypt, set};
pub use encrypt::{EncryptOptions, WriteOptions, encrypt};
pub use format::Format;
pub use rotate::{reseal, rotate, update_keys};
pub use seal::{Bind, Scope, Verdict};
pub use secret::{DataKey, SecretBytes, SecretText};
pub use selector::{Pattern, Selector, SelectorKind};

/// A time as the `sops` block writes it: RFC 3339 in UTC, whole seconds.
pub fn timestamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

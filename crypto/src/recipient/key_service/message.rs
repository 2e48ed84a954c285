//! The messages of the key service, written out: equal on the wire to those of stock tools, so that no build needs a
//! compiler for them.
//!
//! Contract: protocol buffers, version 3; service `KeyService` in no package, methods `Encrypt` and `Decrypt`. A key
//! is one of seven kinds, by the parameters that the `sops` block names too; ciphertext is the text that stands
//! there as `enc`; plaintext is the 32 bytes of a data key or the 33 of a share.

use std::collections::BTreeMap;
use std::fmt;

use zeroize::Zeroize;

use crate::recipient::{AwsKmsKey, AzureKeyVaultKey, GcpKmsKey, RecipientId, VaultKey};

/// Path of the method that wraps.
pub(super) const ENCRYPT: &str = "/KeyService/Encrypt";

/// Path of the method that unwraps.
pub(super) const DECRYPT: &str = "/KeyService/Decrypt";

/// Most bytes of one message: a wrapped key and as much again for the parameters of its recipient.
pub(super) const MESSAGE_BYTES_MAX: usize = 2 * crate::recipient::WRAPPED_KEY_BYTES_MAX;

/// Whom a key is wrapped for.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Key {
    #[prost(oneof = "KeyType", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub(super) key_type: Option<KeyType>,
}

/// A recipient by its kind.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum KeyType {
    #[prost(message, tag = "1")]
    Kms(Kms),
    #[prost(message, tag = "2")]
    Pgp(Pgp),
    #[prost(message, tag = "3")]
    GcpKms(GcpKms),
    #[prost(message, tag = "4")]
    AzureKeyvault(AzureKeyvault),
    #[prost(message, tag = "5")]
    Vault(Vault),
    #[prost(message, tag = "6")]
    Age(Age),
    #[prost(message, tag = "7")]
    Hckms(Hckms),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Kms {
    #[prost(string, tag = "1")]
    pub(super) arn: String,
    #[prost(string, tag = "2")]
    pub(super) role: String,
    #[prost(btree_map = "string, string", tag = "3")]
    pub(super) context: BTreeMap<String, String>,
    #[prost(string, tag = "4")]
    pub(super) aws_profile: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Pgp {
    #[prost(string, tag = "1")]
    pub(super) fingerprint: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct GcpKms {
    #[prost(string, tag = "1")]
    pub(super) resource_id: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AzureKeyvault {
    #[prost(string, tag = "1")]
    pub(super) vault_url: String,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(string, tag = "3")]
    pub(super) version: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Vault {
    #[prost(string, tag = "1")]
    pub(super) vault_address: String,
    #[prost(string, tag = "2")]
    pub(super) engine_path: String,
    #[prost(string, tag = "3")]
    pub(super) key_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Age {
    #[prost(string, tag = "1")]
    pub(super) recipient: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Hckms {
    #[prost(string, tag = "1")]
    pub(super) key_id: String,
}

/// Asks to wrap `plaintext`.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(super) struct EncryptRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) key: Option<Key>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) plaintext: Vec<u8>,
}

/// What was wrapped.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct EncryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) ciphertext: Vec<u8>,
}

/// Asks to unwrap `ciphertext`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DecryptRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) key: Option<Key>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) ciphertext: Vec<u8>,
}

/// What was unwrapped.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub(super) struct DecryptResponse {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) plaintext: Vec<u8>,
}

impl fmt::Debug for EncryptRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("EncryptRequest").field("key", &self.key).finish_non_exhaustive()
    }
}

impl fmt::Debug for DecryptResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("DecryptResponse([redacted])")
    }
}

impl Drop for EncryptRequest {
    fn drop(&mut self) {
        self.plaintext.zeroize();
    }
}

impl Drop for DecryptResponse {
    fn drop(&mut self) {
        self.plaintext.zeroize();
    }
}

impl Key {
    /// The key of `id`, or nothing for a kind that the service does not know, and for a key in Azure whose version
    /// is still open: the answer could not say which one was used.
    pub(super) fn of(id: &RecipientId) -> Option<Self> {
        let key_type = match id {
            RecipientId::Age(recipient) => KeyType::Age(Age { recipient: recipient.clone() }),
            RecipientId::AwsKms(key) => KeyType::Kms(Kms {
                arn: key.arn.clone(),
                role: key.role.clone().unwrap_or_default(),
                context: key.context.clone(),
                aws_profile: key.profile.clone(),
            }),
            RecipientId::AzureKeyVault(key) if key.version.is_empty() => return None,
            RecipientId::AzureKeyVault(key) => KeyType::AzureKeyvault(AzureKeyvault {
                vault_url: key.vault_url.clone(),
                name: key.name.clone(),
                version: key.version.clone(),
            }),
            RecipientId::GcpKms(key) => KeyType::GcpKms(GcpKms { resource_id: key.resource_id.clone() }),
            RecipientId::Other { kind, name } if kind == "hckms" => {
                KeyType::Hckms(Hckms { key_id: name.clone() })
            }
            RecipientId::Other { .. } => return None,
            RecipientId::Pgp(fingerprint) => KeyType::Pgp(Pgp { fingerprint: fingerprint.clone() }),
            RecipientId::Vault(key) => KeyType::Vault(Vault {
                vault_address: key.address.clone(),
                engine_path: key.engine_path.clone(),
                key_name: key.name.clone(),
            }),
        };
        Some(Self { key_type: Some(key_type) })
    }

    /// Who that is, in the terms of the `sops` block; nothing for a kind that came after this.
    pub(super) fn into_recipient(self) -> Option<RecipientId> {
        Some(match self.key_type? {
            KeyType::Age(key) => RecipientId::Age(key.recipient),
            KeyType::AzureKeyvault(key) => RecipientId::AzureKeyVault(AzureKeyVaultKey {
                vault_url: key.vault_url,
                name: key.name,
                version: key.version,
            }),
            KeyType::GcpKms(key) => RecipientId::GcpKms(GcpKmsKey { resource_id: key.resource_id }),
            KeyType::Hckms(key) => RecipientId::Other { kind: "hckms".to_owned(), name: key.key_id },
            KeyType::Kms(key) => RecipientId::AwsKms(AwsKmsKey {
                arn: key.arn,
                role: Some(key.role).filter(|role| !role.is_empty()),
                context: key.context,
                profile: key.aws_profile,
            }),
            KeyType::Pgp(key) => RecipientId::Pgp(key.fingerprint),
            KeyType::Vault(key) => RecipientId::Vault(VaultKey {
                address: key.vault_address,
                engine_path: key.engine_path,
                name: key.key_name,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    #[test]
    fn every_kind_comes_back_as_it_went() {
        let word = || "w".to_owned();
        let kms = AwsKmsKey {
            arn: word(),
            role: Some(word()),
            context: BTreeMap::from([(word(), word())]),
            profile: word(),
        };
        for id in [
            RecipientId::Age(word()),
            RecipientId::AwsKms(kms),
            RecipientId::AzureKeyVault(AzureKeyVaultKey { vault_url: word(), name: word(), version: word() }),
            RecipientId::GcpKms(GcpKmsKey { resource_id: word() }),
            RecipientId::Other { kind: "hckms".to_owned(), name: word() },
            RecipientId::Pgp(word()),
            RecipientId::Vault(VaultKey { address: word(), engine_path: word(), name: word() }),
        ] {
            let bytes = Key::of(&id).unwrap().encode_to_vec();
            assert_eq!(Key::decode(bytes.as_slice()).unwrap().into_recipient(), Some(id));
        }
    }

    #[test]
    fn what_the_service_cannot_name_is_not_asked_for() {
        assert_eq!(Key::of(&RecipientId::Other { kind: "oci".to_owned(), name: String::new() }), None);
        assert_eq!(Key::of(&RecipientId::AzureKeyVault(AzureKeyVaultKey::default())), None);
        assert_eq!(Key::default().into_recipient(), None);
        // A kind of tomorrow: field 8.
        assert_eq!(Key::decode([0x42, 0].as_slice()).unwrap().into_recipient(), None);
    }

    #[test]
    fn the_bytes_are_those_of_stock_tools() {
        let key = Key::of(&RecipientId::Age("age1x".to_owned()));
        let request = EncryptRequest { key, plaintext: vec![1, 2] };
        assert_eq!(request.encode_to_vec(), b"\x0a\x09\x32\x07\x0a\x05age1x\x12\x02\x01\x02");
    }

    #[test]
    fn formatting_never_shows_a_key() {
        let request = EncryptRequest { key: None, plaintext: vec![67; 32] };
        let shown = format!("{request:?} {:?}", DecryptResponse { plaintext: vec![67; 32] });
        assert!(!shown.contains("67"), "{shown}");
    }
}

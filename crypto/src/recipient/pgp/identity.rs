//! Secret keys that open messages in this process.

use std::fmt;

use sequoia_openpgp as openpgp;

use openpgp::cert::Cert;
use openpgp::packet::Key;
use openpgp::packet::key::{SecretParts, UnspecifiedRole};

use super::message::{Seen, open};
use crate::recipient::{Identity, KeyError, RecipientId, UnwrapError, WrappedKey};
use crate::secret::SecretBytes;

/// The secret keys of one certificate that decrypt without a passphrase.
#[derive(Clone)]
pub struct PgpIdentity {
    /// The primary key's.
    fingerprint: String,
    /// Of all keys, since entries may name any.
    fingerprints: Vec<String>,
    keys: Vec<Key<SecretParts, UnspecifiedRole>>,
}

impl PgpIdentity {
    pub(super) fn of_certificate(cert: &Cert) -> Result<Self, KeyError> {
        let keys: Vec<_> = cert
            .keys()
            .unencrypted_secret()
            .filter(|key| key.key().pk_algo().for_encryption())
            .map(|key| key.key().clone().role_into_unspecified())
            .collect();
        let fingerprint = cert.fingerprint().to_hex();
        if keys.is_empty() {
            let why = if cert.keys().secret().next().is_some() {
                "its secret keys are protected by a passphrase or cannot decrypt; use it through gpg"
            } else {
                "this is a public certificate without secret keys"
            };
            return Err(KeyError::new(format!("OpenPGP key {fingerprint}: {why}")));
        }
        let fingerprints = cert.keys().map(|key| key.key().fingerprint().to_hex()).collect();
        Ok(Self { fingerprint, fingerprints, keys })
    }

    /// Whether an entry's name is one of this certificate's fingerprints or long key IDs.
    fn is_named(&self, name: &str) -> bool {
        let name = name.trim_end_matches('!').to_ascii_uppercase();
        name.len() >= 16 && self.fingerprints.iter().any(|fingerprint| fingerprint.ends_with(&name))
    }
}

impl fmt::Debug for PgpIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PgpIdentity({}, [{} keys redacted])", self.fingerprint, self.keys.len())
    }
}

impl Identity for PgpIdentity {
    fn public(&self) -> String {
        RecipientId::Pgp(self.fingerprint.clone()).to_string()
    }

    /// The message itself says for which keys it is; the entry's name, which may be a mail address in files of
    /// other tools, only decides whether a failure is worth telling.
    fn unwrap(&self, wrapped: &WrappedKey) -> Option<Result<SecretBytes, UnwrapError>> {
        let RecipientId::Pgp(name) = &wrapped.recipient else { return None };
        let mut seen = Seen::default();
        let opened = open(&wrapped.enc, &self.keys, &mut seen);
        (opened.is_ok() || seen.for_this_key || self.is_named(name)).then_some(opened)
    }
}

//! OpenPGP: certificates as recipients, secret keys from files as identities, both in this process; secret keys
//! that live in an agent or on a card are reached through the program in [`gpg_program`].
//!
//! Standard: RFC 4880 (and RFC 9580 for newer keys), by `sequoia-openpgp`. One wrapped key is one armored message:
//!
//! ```text
//! session key  ← 32 random bytes, for this message alone
//! PKESK v3     = encrypt(encryption key of the certificate, session key)   RSA PKCS#1 v1.5, or ECDH with AES-KW
//! SEIPD v1     = AES-256-CFB(session key, 16 random bytes ‖ repeat of two ‖ literal data ‖ SHA-1 of all before)
//! ```
//!
//! No nonce is repeated: the session key is fresh, so CFB's zero vector meets each key once, before 16 random bytes.
//! This is the older of the two containers, because gpg 2.2 opens no other; no AEAD is used even where a
//! certificate asks for it. Nothing is compressed when writing. The padding of RSA is the standard's, and a known
//! oracle where somebody remote may try messages and watch: so every failure after the session key reads the same,
//! and the controller has this kind off unless told otherwise.
//!
//! A policy (`StandardPolicy`) decides which key of a certificate is sound, alive and meant for encryption. For
//! opening no policy limits the key: an expired key must still open old files.

use std::fmt;
use std::io::Write;

use sequoia_openpgp as openpgp;

use openpgp::cert::Cert;
use openpgp::packet::Key;
use openpgp::packet::key::{PublicParts, UnspecifiedRole};
use openpgp::policy::StandardPolicy;
use openpgp::serialize::stream::{self, Armorer, Encryptor, LiteralWriter, Message};
use openpgp::types::{Features, RevocationStatus, SymmetricAlgorithm};
use openpgp::{KeyHandle, KeyID};

use self::fingerprint::Fingerprint;
use super::{KeyError, Recipient, RecipientId, WrapError, check_to_wrap};
use crate::secret::SecretBytes;

mod certificates;
mod fingerprint;
pub mod gpg_program;
mod identity;
mod keybox;
mod message;
#[cfg(test)]
mod tests;
mod weak;

pub use certificates::{read_secret_keys, usable_secret_keys};
pub use gpg_program::GpgProgram;
pub use identity::PgpIdentity;
pub use message::SESSION_KEYS_MAX;
pub use weak::WeakPgpRecipient;

static POLICY: StandardPolicy<'static> = StandardPolicy::new();

/// A certificate to wrap for, and the one key in it that is used.
#[derive(Clone)]
pub struct PgpRecipient {
    /// As the `sops` block will say it: of the primary key or of a subkey, with the `!` that pins the subkey.
    fingerprint: String,
    key: Key<PublicParts, UnspecifiedRole>,
}

impl PgpRecipient {
    /// Looks for the certificate that has a key with this fingerprint in `keyring` (certificates one after the
    /// other, armored or binary), and chooses its encryption key: the newest that the policy accepts, or exactly
    /// the named subkey when a `!` follows the fingerprint, both as gpg does.
    ///
    /// # Errors
    /// [`KeyError`] when this is no full fingerprint, when no such certificate is there, or when it has no usable
    /// encryption key; it says why.
    pub fn find(fingerprint: &str, keyring: &[u8]) -> Result<Self, KeyError> {
        let missing = || KeyError::new(format!("no OpenPGP certificate {fingerprint} in the key ring"));
        Self::look_up(fingerprint, keyring)?.ok_or_else(missing)
    }

    /// As [`Self::find`], and nothing when no such certificate is there. Certificates in the ring that cannot be
    /// read are passed over.
    ///
    /// # Errors
    /// [`KeyError`] when this is no full fingerprint, or when the certificate must not be used; it says why.
    pub fn look_up(fingerprint: &str, keyring: &[u8]) -> Result<Option<Self>, KeyError> {
        let wanted = Fingerprint::parse(fingerprint)?;
        let found = certificates::read(keyring)?.into_iter().flatten().find(|cert| has_key(cert, &wanted));
        let of = |key| Self { fingerprint: wanted.to_string(), key };
        found.map(|cert| encryption_key(&cert, &wanted, &POLICY).map(of)).transpose()
    }

    /// Asks `gpg` for the certificate, then chooses as [`Self::find`] does. The wrapping happens here, not there.
    ///
    /// # Errors
    /// [`KeyError`] as for [`Self::find`], and when the program cannot be run.
    pub fn from_gpg(fingerprint: &str, gpg: &GpgProgram) -> Result<Self, KeyError> {
        let wanted = Fingerprint::parse(fingerprint)?;
        Self::find(fingerprint, &gpg.export(&wanted.digits)?)
    }

    fn seal(&self, key: &SecretBytes) -> openpgp::Result<Vec<u8>> {
        let mut armored = Vec::new();
        let handle = KeyHandle::from(KeyID::from(self.key.fingerprint()));
        // What the certificate supports is overruled: see the top of this file.
        let recipient = stream::Recipient::new(Features::empty().set_seipdv1(), handle, &self.key);
        let message = Armorer::new(Message::new(&mut armored)).build()?;
        let message = Encryptor::for_recipients(message, [recipient])
            .symmetric_algo(SymmetricAlgorithm::AES256)
            .build()?;
        let mut message = LiteralWriter::new(message).build()?;
        message.write_all(key.expose_secret())?;
        message.finalize()?;
        Ok(armored)
    }
}

fn has_key(cert: &Cert, wanted: &Fingerprint) -> bool {
    cert.keys().any(|key| key.key().fingerprint().to_hex() == wanted.digits)
}

/// The newest key for encryption that `policy` accepts, or exactly the wanted one when it is pinned.
fn encryption_key(
    cert: &Cert,
    wanted: &Fingerprint,
    policy: &StandardPolicy<'_>,
) -> Result<Key<PublicParts, UnspecifiedRole>, KeyError> {
    let refuse = |why: &str| KeyError::new(format!("OpenPGP certificate {}: {why}", wanted.digits));
    let valid = cert.with_policy(policy, None).map_err(|error| refuse(&format!("{error:#}")))?;
    if let RevocationStatus::Revoked(_) = valid.revocation_status() {
        return Err(refuse("it is revoked"));
    }
    valid.alive().map_err(|error| refuse(&format!("{error:#}")))?;
    let chosen = valid
        .keys()
        .supported()
        .alive()
        .revoked(false)
        .filter(|key| key.for_transport_encryption() || key.for_storage_encryption())
        .filter(|key| !wanted.exact || key.key().fingerprint().to_hex() == wanted.digits)
        .max_by_key(|key| key.key().creation_time())
        .ok_or_else(|| refuse("no key in it is alive and meant for encryption"))?;
    Ok(chosen.key().clone().role_into_unspecified())
}

impl fmt::Debug for PgpRecipient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PgpRecipient({}, key {})", self.fingerprint, self.key.fingerprint())
    }
}

impl Recipient for PgpRecipient {
    fn id(&self) -> RecipientId {
        RecipientId::Pgp(self.fingerprint.clone())
    }

    fn wrap(&self, key: &SecretBytes) -> Result<String, WrapError> {
        let error = |reason: String| WrapError { recipient: self.id(), reason };
        check_to_wrap(key).map_err(error)?;
        let armored = self.seal(key).map_err(|cause| error(format!("{cause:#}")))?;
        let text = String::from_utf8(armored).map_err(|_| error("the armor is no text".to_owned()))?;
        Ok(text.trim_end().to_owned())
    }
}

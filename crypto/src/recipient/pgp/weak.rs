//! Certificates that are too weak for today's policy and that teams still have files for.
//!
//! They are wrapped for by the `gpg` program, whose owner decides what it accepts, as stock tools do; a caller tells
//! of the [weakness](WeakPgpRecipient::weakness). Weak are keys of less than 2048 bits and signatures over SHA-1, and
//! nothing else is let through here: what is revoked or expired stays refused, and so is MD5.

use std::sync::LazyLock;

use sequoia_openpgp as openpgp;

use openpgp::packet::Key;
use openpgp::packet::key::{PublicParts, UnspecifiedRole};
use openpgp::policy::{AsymmetricAlgorithm, StandardPolicy};
use openpgp::types::{HashAlgorithm, PublicKeyAlgorithm};

use super::fingerprint::Fingerprint;
use super::{GpgProgram, POLICY, certificates, encryption_key, has_key};
use crate::recipient::{KeyError, Recipient, RecipientId, WrapError, check_to_wrap};
use crate::secret::SecretBytes;

/// Keys below this size are weak where size is what counts.
const KEY_BITS_MIN: usize = 2048;

static LENIENT: LazyLock<StandardPolicy<'static>> = LazyLock::new(|| {
    let mut policy = POLICY.clone();
    policy.accept_hash(HashAlgorithm::SHA1);
    for weak in [
        AsymmetricAlgorithm::DSA1024,
        AsymmetricAlgorithm::DSA2048,
        AsymmetricAlgorithm::ElGamal1024,
        AsymmetricAlgorithm::ElGamal2048,
        AsymmetricAlgorithm::RSA1024,
    ] {
        policy.accept_asymmetric_algo(weak);
    }
    policy
});

/// A weak certificate in the key ring of `gpg`, which does the wrapping.
#[derive(Clone, Debug)]
pub struct WeakPgpRecipient {
    /// As the `sops` block will say it.
    fingerprint: String,
    weakness: String,
    gpg: GpgProgram,
}

impl WeakPgpRecipient {
    /// Asks `gpg` for the certificate with this fingerprint, which [`PgpRecipient`](super::PgpRecipient) refused.
    ///
    /// # Errors
    /// [`KeyError`] when there is none, or when it is revoked, expired, has no key for encryption, or is weak in
    /// another way than those that are let through; it says which.
    pub fn from_gpg(fingerprint: &str, gpg: &GpgProgram) -> Result<Self, KeyError> {
        let wanted = Fingerprint::parse(fingerprint)?;
        let ring = gpg.export(&wanted.digits)?;
        let cert =
            certificates::read(&ring)?.into_iter().flatten().find(|cert| has_key(cert, &wanted)).ok_or_else(
                || KeyError::new(format!("no OpenPGP certificate {} in the key ring", wanted.digits)),
            )?;
        let refuse = |why: &str| KeyError::new(format!("OpenPGP certificate {}: {why}", wanted.digits));
        let key = encryption_key(&cert, &wanted, &LENIENT)?;
        let primary = cert.primary_key().key().clone().parts_into_public().role_into_unspecified();
        let mut weaknesses: Vec<String> = [&primary, &key].into_iter().filter_map(small).collect();
        let valid = cert.with_policy(&*LENIENT, None).map_err(|error| refuse(&format!("{error:#}")))?;
        if valid.keys().any(|key| key.binding_signature().hash_algo() == HashAlgorithm::SHA1) {
            weaknesses.push("a self-signature over SHA-1".to_owned());
        }
        weaknesses.dedup();
        if weaknesses.is_empty() {
            return Err(refuse("it is refused for another reason than a weakness"));
        }
        Ok(Self { fingerprint: wanted.to_string(), weakness: weaknesses.join(" and "), gpg: gpg.clone() })
    }

    /// What is weak about it, such as `RSA of 1024 bits`.
    pub fn weakness(&self) -> &str {
        &self.weakness
    }
}

/// The key's algorithm and size, when it is too small.
fn small(key: &Key<PublicParts, UnspecifiedRole>) -> Option<String> {
    #[allow(deprecated)]
    let name = match key.pk_algo() {
        PublicKeyAlgorithm::DSA => "DSA",
        PublicKeyAlgorithm::ElGamalEncrypt | PublicKeyAlgorithm::ElGamalEncryptSign => "ElGamal",
        PublicKeyAlgorithm::RSAEncrypt | PublicKeyAlgorithm::RSAEncryptSign | PublicKeyAlgorithm::RSASign => {
            "RSA"
        }
        _ => return None,
    };
    let bits = key.mpis().bits().filter(|&bits| bits < KEY_BITS_MIN)?;
    Some(format!("{name} of {bits} bits"))
}

impl Recipient for WeakPgpRecipient {
    fn id(&self) -> RecipientId {
        RecipientId::Pgp(self.fingerprint.clone())
    }

    fn wrap(&self, key: &SecretBytes) -> Result<String, WrapError> {
        let error = |reason: String| WrapError { recipient: self.id(), reason };
        check_to_wrap(key).map_err(error)?;
        self.gpg.seal(&self.fingerprint, key).map_err(error)
    }
}

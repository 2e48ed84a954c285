//! Reading key files and key rings: exported ones, those of GnuPG 1, and keyboxes.

use sequoia_openpgp as openpgp;

use openpgp::cert::{Cert, CertParser};
use openpgp::parse::Parse;

use super::identity::PgpIdentity;
use super::keybox;
use crate::recipient::{KEY_FILE_BYTES_MAX, KeyError};
use crate::secret::SecretBytes;

/// Reads secret keys as gpg exports them, armored or binary, one or more.
///
/// # Errors
/// [`KeyError`] when there is none, when one of them cannot be used here (it says which and why), when the file is
/// damaged, or when it exceeds [`KEY_FILE_BYTES_MAX`].
pub fn read_secret_keys(keys: &SecretBytes) -> Result<Vec<PgpIdentity>, KeyError> {
    let certificates: Vec<Cert> =
        read(keys.expose_secret())?.into_iter().collect::<openpgp::Result<_>>().map_err(|_| damaged())?;
    if certificates.is_empty() {
        return Err(KeyError::new("the OpenPGP key file holds no key"));
    }
    certificates.iter().map(PgpIdentity::of_certificate).collect()
}

/// The secret keys of a ring that can be used here, and why others cannot. A ring is whatever gathered there over the
/// years, so that one key with a passphrase does not hide the others.
///
/// # Errors
/// [`KeyError`] when the file is no ring at all, or exceeds [`KEY_FILE_BYTES_MAX`].
pub fn usable_secret_keys(ring: &SecretBytes) -> Result<(Vec<PgpIdentity>, Vec<KeyError>), KeyError> {
    let (mut usable, mut others) = (Vec::new(), Vec::new());
    for certificate in read(ring.expose_secret())? {
        match certificate.map_err(|_| damaged()).and_then(|cert| PgpIdentity::of_certificate(&cert)) {
            Ok(identity) => usable.push(identity),
            Err(reason) => others.push(reason),
        }
    }
    Ok((usable, others))
}

/// Each certificate in `ring`, with its secret parts where there are any, or what is wrong with it. Messages never
/// quote the input.
pub(super) fn read(ring: &[u8]) -> Result<Vec<openpgp::Result<Cert>>, KeyError> {
    if ring.len() > KEY_FILE_BYTES_MAX {
        return Err(KeyError::new(format!("the OpenPGP key file is larger than {KEY_FILE_BYTES_MAX} bytes")));
    }
    if keybox::is_keybox(ring) {
        let ring = keybox::certificates(ring).ok_or_else(damaged)?;
        return parse(&ring);
    }
    parse(ring)
}

fn parse(ring: &[u8]) -> Result<Vec<openpgp::Result<Cert>>, KeyError> {
    if ring.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    let certificates: Vec<_> = CertParser::from_bytes(ring).map_err(|_| damaged())?.collect();
    // Nothing but errors is no ring.
    if certificates.iter().all(Result::is_err) {
        return Err(damaged());
    }
    Ok(certificates)
}

fn damaged() -> KeyError {
    KeyError::new("the OpenPGP key file is damaged, or holds something else than keys")
}

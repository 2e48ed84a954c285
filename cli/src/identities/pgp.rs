//! OpenPGP keys of the user: rings in `GNUPGHOME` in process, then whatever the `gpg` program can reach.
//!
//! Current GnuPG keeps secret keys in its agent, so `secring.gpg` exists only where someone exported one there, or
//! on machines that came from GnuPG 1. sops tries the same two files first.

use std::fs::File;
use std::path::PathBuf;

use lacre_crypto::SecretBytes;
use lacre_crypto::recipient::pgp::{GpgProgram, usable_secret_keys};
use lacre_crypto::recipient::{Identity, KEY_FILE_BYTES_MAX};

use super::Keyring;
use crate::{environment, files};

/// Most keys of a ring that cannot be used and are told of.
const TOLD_MAX: usize = 10;

/// Adds the secret ring, if there is one, and the program.
pub(super) fn gather(keyring: &mut Keyring) {
    if let Some(ring) = home().map(|home| home.join("secring.gpg")).filter(|ring| ring.exists()) {
        let name = ring.display().to_string();
        let keys =
            read(&ring).and_then(|bytes| usable_secret_keys(&bytes).map_err(|error| error.to_string()));
        match keys {
            Ok((keys, others)) => {
                let keys = keys.into_iter().map(|key| Box::new(key) as Box<dyn Identity>).collect();
                keyring.add(name.clone(), keys);
                others
                    .iter()
                    .take(TOLD_MAX)
                    .for_each(|reason| keyring.note(name.clone(), reason.to_string()));
            }
            Err(reason) => keyring.note(name, reason),
        }
    }
    let program = gpg_program();
    let name = format!("the program {}", program.program.display());
    keyring.add_service(name, Box::new(program));
}

/// The program that holds secret keys: `SOPS_GPG_EXEC`, else `gpg`.
pub(crate) fn gpg_program() -> GpgProgram {
    let program = environment::words("SOPS_GPG_EXEC").unwrap_or_else(|| "gpg".into()).into();
    GpgProgram { program, home: environment::words("GNUPGHOME").map(PathBuf::from) }
}

/// Rings of public keys that can be read in process: the older form first, as gpg does where both are.
pub(crate) fn public_rings() -> Vec<SecretBytes> {
    let Some(home) = home() else { return Vec::new() };
    // One that cannot be read is left to gpg, which says what is wrong with it.
    ["pubring.gpg", "pubring.kbx"].iter().filter_map(|name| read(&home.join(name)).ok()).collect()
}

fn home() -> Option<PathBuf> {
    let default = || Some(PathBuf::from(environment::words("HOME")?).join(".gnupg"));
    environment::words("GNUPGHOME").map(PathBuf::from).or_else(default)
}

fn read(path: &PathBuf) -> Result<SecretBytes, String> {
    File::open(path)
        .and_then(|file| files::read_bounded(file, KEY_FILE_BYTES_MAX as u64))
        .map_err(|error| files::plain_words(&error))
}

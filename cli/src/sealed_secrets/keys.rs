//! Private keys that open items, from files: PEM with any number of keys, and backups of the Secrets in which the
//! controller keeps them, one by one or as a list.
//!
//! A file that no key can be read from is an error that says what was found in it. Left out without a word, it looks as
//! if nobody could open what was sealed.

use std::ffi::OsStr;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lacre_crypto::sealing_key::SealingKey;
use lacre_crypto::{SecretBytes, SecretText};
use serde_json::Value;

use super::manifest::{self, Manifest};
use crate::error::{CommandError, Kind};
use crate::files;
use crate::output::Output;

/// The key of a Secret's data that holds a private key.
const KEY_ENTRY: &str = "tls.key";

/// The keys in the files at `paths`, each once.
pub(crate) fn read(
    paths: impl IntoIterator<Item = impl AsRef<OsStr>>,
    output: Output,
) -> Result<Vec<SealingKey>, CommandError> {
    let mut keys: Vec<SealingKey> = Vec::new();
    for path in paths {
        for key in read_file(Path::new(path.as_ref()), output)? {
            if keys.iter().all(|known| known.public().fingerprint() != key.public().fingerprint()) {
                keys.push(key);
            }
        }
    }
    Ok(keys)
}

fn read_file(path: &Path, output: Output) -> Result<Vec<SealingKey>, CommandError> {
    in_text(&path.display().to_string(), &files::read(Some(path), None)?.content, output)
}

/// The keys in a text that was read from `place`.
pub(crate) fn in_text(
    place: &str,
    text: &SecretText,
    output: Output,
) -> Result<Vec<SealingKey>, CommandError> {
    let is_pem = text.expose_secret().lines().any(|line| line.starts_with("-----BEGIN "));
    if is_pem || text.expose_secret().trim().is_empty() {
        return of_pem(place, text);
    }
    let mut keys = Vec::new();
    for secret in manifest::read(place, text, Some(output))? {
        keys.extend(of_pem(&secret.place, &of_secret(&secret)?)?);
    }
    Ok(keys)
}

fn of_pem(place: &str, pem: &SecretText) -> Result<Vec<SealingKey>, CommandError> {
    SealingKey::all_from_pem(pem).map_err(|error| {
        CommandError::on(Kind::General, place, error).hint(
            "a key is PEM (`RSA PRIVATE KEY` or `PRIVATE KEY`), or a Secret of the controller with `tls.key`",
        )
    })
}

/// The PEM text in a backup of one Secret.
fn of_secret(secret: &Manifest) -> Result<SecretText, CommandError> {
    if let Some(kind) = secret.kind().filter(|kind| *kind != "Secret") {
        return Err(secret.refuse(format!("is a {kind}, and keys are in Secrets")).hint(
            "back keys up with `kubectl get secret -l sealedsecrets.bitnami.com/sealed-secrets-key -o yaml`",
        ));
    }
    if let Some(text) = secret.object.pointer("/stringData/tls.key").and_then(Value::as_str) {
        return Ok(SecretText::from(text));
    }
    let Some(encoded) =
        secret.object.get("data").and_then(|data| data.get(KEY_ENTRY)).and_then(Value::as_str)
    else {
        return Err(secret.refuse("secret must contain a 'tls.data' key").hint(
            "it is `tls.key` that holds the key: back up the Secrets with the label `sealedsecrets.bitnami.com/sealed-secrets-key`",
        ));
    };
    let broken = || secret.refuse("its tls.key is not base64 of text").hint("back the key up again");
    let packed = SecretText::new(encoded.split_ascii_whitespace().collect());
    let bytes = STANDARD.decode(packed.expose_secret()).map(SecretBytes::new).map_err(|_| broken())?;
    bytes.into_text().map_err(|_| broken())
}

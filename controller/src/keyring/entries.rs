//! What a key Secret holds, entry by entry. Names decide, as in Flux: `*.agekey`, `*.asc`, `sops.aws-kms`.

use std::sync::Arc;
use std::time::Duration;

use lacre_crypto::recipient::age::read_identities;
use lacre_crypto::recipient::aws_kms::{AwsContext, AwsCredentials, AwsKmsIdentity};
use lacre_crypto::recipient::{Identity, KeyError, pgp};
use lacre_crypto::secret::{SecretBytes, SecretText};
use serde::Deserialize;

use super::Held;
use crate::apply::PlainSecret;

/// Entry with credentials for AWS KMS.
const AWS_KMS: &str = "sops.aws-kms";

/// What entries are read, and how key services are reached.
#[derive(Clone, Debug)]
pub struct EntryOptions {
    /// Whether OpenPGP keys are used. Their arithmetic does not run in constant time.
    pub enable_pgp: bool,
    /// Address of AWS KMS, when it is not Amazon's.
    pub aws_kms_endpoint: Option<String>,
    /// Longest time a key service may take.
    pub key_service_deadline: Duration,
}

/// Reads every entry whose name says what it is. One that cannot be read does not keep the others from being used.
pub fn read(secret: &PlainSecret, options: &EntryOptions) -> Held {
    let mut held = Held::default();
    for (name, value) in secret.data.iter().flatten() {
        match read_entry(name, &value.0, options) {
            None => {}
            Some(Ok(found)) => held.identities.extend(found),
            Some(Err(error)) => held.unreadable.push(format!("entry {name}: {error}")),
        }
    }
    if held.identities.is_empty() && held.unreadable.is_empty() {
        held.unreadable.push(format!("no entry named *.agekey or {AWS_KMS}"));
    }
    held
}

type Found = Result<Vec<Arc<dyn Identity>>, KeyError>;

fn read_entry(name: &str, value: &[u8], options: &EntryOptions) -> Option<Found> {
    if name.ends_with(".agekey") {
        return Some(read_age(value));
    }
    if name.ends_with(".asc") {
        return Some(match options.enable_pgp {
            true => read_pgp(value),
            false => Err(KeyError::new("OpenPGP keys are used only with --enable-pgp")),
        });
    }
    (name == AWS_KMS).then(|| read_aws(value, options))
}

fn read_age(value: &[u8]) -> Found {
    let text = SecretBytes::new(value.to_vec()).into_text();
    let text = text.map_err(|_| KeyError::new("not UTF-8"))?;
    let identities = read_identities(&text)?;
    Ok(identities.into_iter().map(|identity| Arc::new(identity) as Arc<dyn Identity>).collect())
}

fn read_pgp(value: &[u8]) -> Found {
    let keys = pgp::read_secret_keys(&SecretBytes::new(value.to_vec()))?;
    Ok(keys.into_iter().map(|key| Arc::new(key) as Arc<dyn Identity>).collect())
}

/// The entry's YAML, as Flux names its fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AwsEntry {
    aws_access_key_id: String,
    aws_secret_access_key: String,
    aws_session_token: Option<String>,
}

fn read_aws(value: &[u8], options: &EntryOptions) -> Found {
    // The parser's own words may repeat the entry, so they are dropped.
    let entry: AwsEntry = yaml_serde::from_slice(value).map_err(|_| {
        KeyError::new(
            "not YAML with aws_access_key_id, aws_secret_access_key and, if need be, aws_session_token",
        )
    })?;
    let credentials = AwsCredentials::Static {
        access_key_id: entry.aws_access_key_id,
        secret_access_key: SecretText::new(entry.aws_secret_access_key),
        session_token: entry.aws_session_token.map(SecretText::new),
    };
    Ok(vec![aws_identity(credentials, options)])
}

/// AWS KMS with the credentials of the controller's own environment.
pub fn ambient_aws(options: &EntryOptions) -> Arc<dyn Identity> {
    aws_identity(AwsCredentials::Environment, options)
}

fn aws_identity(credentials: AwsCredentials, options: &EntryOptions) -> Arc<dyn Identity> {
    Arc::new(AwsKmsIdentity::new(AwsContext {
        endpoint: options.aws_kms_endpoint.clone(),
        credentials,
        deadline: options.key_service_deadline,
        // Documents name roles and profiles, and nobody vouches for those.
        allow_role_and_profile: false,
    }))
}

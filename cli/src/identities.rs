//! Where identities are looked for, in which order, and what was found where.
//!
//! The order is fixed: age and SSH keys from where sops looks for them (`age`); then OpenPGP rings in `GNUPGHOME`, the
//! `gpg` program, and the services in the cloud (`services`), the latter ones only for files that name such a key; and
//! last the key services of others. All places are read and tried together. A place that cannot be read never hides
//! another: what it said is kept, and shown when no identity opens the file.

mod age;
mod key_service;
#[cfg(feature = "pgp")]
mod pgp;
mod services;
mod terminal;

use lacre_crypto::error::NoKeyError;
use lacre_crypto::recipient::{Identity, RecipientId};

use crate::args::GlobalArgs;
use crate::error::{CommandError, Kind};

pub(crate) use age::default_file as default_age_file;
#[cfg(feature = "age-plugin")]
pub(crate) use age::unlocking;
pub(crate) use key_service::Service;
#[cfg(feature = "pgp")]
pub(crate) use pgp::{gpg_program, public_rings};
pub(crate) use services::recipient as service_recipient;
#[cfg(feature = "vault")]
pub(crate) use services::{vault_authorities, vault_token};

/// What this user holds, as far as a file's recipients ask for it.
#[derive(Default)]
pub(crate) struct Keyring {
    identities: Vec<Box<dyn Identity>>,
    places: Vec<Place>,
    #[cfg(feature = "key-service")]
    services: Vec<lacre_crypto::recipient::key_service::KeyService>,
}

/// A place that was looked at.
struct Place {
    name: String,
    outcome: String,
}

impl Keyring {
    /// Looks in all places that `global` allows for identities that may open one of `wanted`.
    pub(crate) fn gather(wanted: &[RecipientId], global: &GlobalArgs) -> Self {
        let mut keyring = if global.is_local() { Self::local(wanted) } else { Self::default() };
        key_service::gather(global, &mut keyring);
        keyring
    }

    /// Looks in all places of this user for identities that may open one of `wanted`.
    pub(crate) fn local(wanted: &[RecipientId]) -> Self {
        let mut keyring = Self::default();
        age::gather(wanted, &mut keyring);
        if wanted.iter().any(|id| matches!(id, RecipientId::Pgp(_))) {
            #[cfg(feature = "pgp")]
            pgp::gather(&mut keyring);
            #[cfg(not(feature = "pgp"))]
            keyring.note("pgp", "this build has no OpenPGP");
        }
        services::gather(wanted, &mut keyring);
        keyring
    }

    /// What is found without a file in mind, and without asking anyone: age keys in files and variables, and which key
    /// services of others would be asked.
    pub(crate) fn survey(global: &GlobalArgs) -> Self {
        let mut keyring = Self::default();
        if global.is_local() {
            age::gather_silently(&mut keyring);
        }
        key_service::gather(global, &mut keyring);
        keyring
    }

    /// The identities as the crypto crate takes them.
    pub(crate) fn as_refs(&self) -> Vec<&dyn Identity> {
        self.identities.iter().map(AsRef::as_ref).collect()
    }

    /// The places that were looked at, and what was found there.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&str, &str)> {
        self.places.iter().map(|place| (place.name.as_str(), place.outcome.as_str()))
    }

    /// Why none of them opened the file called `name`, with everything that helps to find out.
    pub(crate) fn explain(&self, name: &str, failure: &NoKeyError) -> CommandError {
        let mut text = format!("{name}: no identity here opens it");
        section(&mut text, "sealed for", failure.wanted.iter().map(ToString::to_string));
        section(&mut text, "identities found", failure.held.iter().cloned());
        let places = self.places.iter().map(|place| format!("{}: {}", place.name, place.outcome));
        section(&mut text, "looked in", places);
        let attempts = failure.attempts.iter().map(|tried| format!("{}: {}", tried.recipient, tried.reason));
        section(&mut text, "attempts", attempts);
        let mut error = CommandError::new(Kind::NoKey, text);
        error.hints = key_service::next_step(self).into_iter().chain(next_steps(&failure.wanted)).collect();
        error
    }

    fn note(&mut self, name: impl Into<String>, outcome: impl Into<String>) {
        self.places.push(Place { name: name.into(), outcome: outcome.into() });
    }

    fn add(&mut self, name: impl Into<String>, found: Vec<Box<dyn Identity>>) {
        let outcome = match found.len() {
            1 => "1 identity".to_owned(),
            count => format!("{count} identities"),
        };
        self.note(name, outcome);
        self.identities.extend(found);
    }

    /// What answers for keys that it does not show.
    #[cfg(any(
        feature = "aws",
        feature = "azure",
        feature = "gcp",
        feature = "key-service",
        feature = "pgp",
        feature = "vault"
    ))]
    fn add_service(&mut self, name: impl Into<String>, service: Box<dyn Identity>) {
        self.note(name, "asked");
        self.identities.push(service);
    }
}

/// What could help, for the kinds of keys that the file is sealed for.
fn next_steps(wanted: &[RecipientId]) -> Vec<String> {
    let has = |kind: fn(&RecipientId) -> bool| wanted.iter().any(kind);
    let mut steps = Vec::new();
    if has(|id| matches!(id, RecipientId::Age(line) if line.starts_with("ssh-"))) {
        steps.push(
            "point SOPS_AGE_SSH_PRIVATE_KEY_FILE at the private key of one of these recipients".to_owned(),
        );
    }
    if has(|id| matches!(id, RecipientId::Age(text) if !text.starts_with("ssh-"))) {
        steps.push("point SOPS_AGE_KEY_FILE at the key file of one of these recipients".to_owned());
    }
    if has(|id| matches!(id, RecipientId::AwsKms(_))) {
        steps.push("log in to AWS as someone who may use the key for decryption".to_owned());
    }
    if has(|id| matches!(id, RecipientId::GcpKms(_))) {
        steps.push(
            "log in with `gcloud auth application-default login`, or set GOOGLE_CREDENTIALS".to_owned(),
        );
    }
    if has(|id| matches!(id, RecipientId::AzureKeyVault(_))) {
        steps.push(
            "log in with `az login`, or set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET"
                .to_owned(),
        );
    }
    steps.extend(vault_steps(wanted));
    if has(|id| matches!(id, RecipientId::Pgp(_))) {
        steps.push("import the secret key with `gpg --import`, or set GNUPGHOME to where it is".to_owned());
    }
    steps.push("ask someone who can open it to add you to .sops.yaml and run `lacre updatekeys`".to_owned());
    steps
}

/// The token goes to servers that the user names, so the address that the file names has to be one of these.
fn vault_steps(wanted: &[RecipientId]) -> Vec<String> {
    let address = wanted.iter().find_map(|id| match id {
        RecipientId::Vault(key) => Some(&key.address),
        _ => None,
    });
    let Some(address) = address else { return Vec::new() };
    vec![
        format!(
            "if you trust that server with your token, set VAULT_ADDR={address} or add it to SOPS_HC_VAULT_ALLOWLIST"
        ),
        "log in with `vault login`, or set VAULT_TOKEN".to_owned(),
    ]
}

fn section(text: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.collect();
    *text += &format!("\n  {title}:");
    if lines.is_empty() {
        *text += " none";
    }
    for line in lines {
        *text += &format!("\n    {}", line.trim_end().replace('\n', "\n      "));
    }
}

//! `lacre kube keys`: the private keys of a cluster's controller: which there are, their backup, their way back.
//!
//! Keys are the Secrets in the controller's namespace that one of two labels marks: pairs that open SealedSecrets, and
//! identities that open EncryptedSecrets. Whoever calls this must be allowed to read them; nothing is asked of the
//! controller itself.

mod backup;
mod restore;
mod status;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use crate::cluster::{Cluster, path_part};
use crate::commands::Context;
use crate::error::CommandError;

/// Labels of Secrets with keys, as a server selects by them.
const LABELS: [&str; 2] = ["sealedsecrets.bitnami.com/sealed-secrets-key", "lacre.dev/keys=true"];

/// Says on a key's Secret when it was last written into a backup, RFC 3339.
const BACKED_UP: &str = "lacre.dev/backed-up-at";

/// See, back up and restore the private keys of the controller.
#[derive(Args, Debug)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    command: KeysCommand,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    Backup(Box<backup::BackupArgs>),
    Restore(restore::RestoreArgs),
    Status(status::StatusArgs),
}

pub(super) fn run(args: &KeysArgs, context: &Context) -> Result<(), CommandError> {
    match &args.command {
        KeysCommand::Backup(args) => backup::run(args, context),
        KeysCommand::Restore(args) => restore::run(args, context),
        KeysCommand::Status(args) => status::run(args, context),
    }
}

impl KeysArgs {
    /// Whether `--json` was given.
    pub(super) fn is_for_scripts(&self) -> bool {
        match &self.command {
            KeysCommand::Backup(args) => args.script.json,
            KeysCommand::Restore(args) => args.script.json,
            KeysCommand::Status(args) => args.script.json,
        }
    }
}

/// The Secrets with keys in `namespace`, the oldest first.
fn list(cluster: &Cluster, namespace: &str) -> Result<Vec<Value>, CommandError> {
    let mut found = Vec::new();
    for label in LABELS {
        let path = format!(
            "/api/v1/namespaces/{}/secrets?labelSelector={}",
            path_part(namespace),
            label.replace('/', "%2F").replace('=', "%3D")
        );
        let answer = cluster.get(&path)?;
        let list = answer.json().filter(|_| answer.is_success());
        let Some(Value::Array(items)) = list.and_then(|mut list| list.get_mut("items").map(Value::take))
        else {
            let problem = answer.problem("list secrets");
            return Err(CommandError::general(format!(
                "cannot list the keys in namespace {namespace}: {problem}"
            ))
            .hint("log in as someone who may list Secrets there, or name it with `--controller-namespace`"));
        };
        found.extend(items);
    }
    found.sort_by_key(|secret| {
        (text(secret, "/metadata/creationTimestamp").to_owned(), text(secret, "/metadata/name").to_owned())
    });
    found.dedup_by(|one, other| text(one, "/metadata/name") == text(other, "/metadata/name"));
    Ok(found)
}

/// The Secret without what only a running cluster knows.
fn portable(secret: &Value) -> Value {
    let mut metadata = Map::new();
    for field in ["name", "namespace", "labels", "annotations"] {
        if let Some(value) = secret["metadata"].get(field).filter(|value| !value.is_null()) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": secret["type"],
        "data": secret["data"],
    })
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

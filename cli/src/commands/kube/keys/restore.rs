//! `lacre kube keys restore`: the keys of a backup, back in a cluster.
//!
//! A Secret that is there is never overwritten: a key that differs under the same name is another key, and both may be
//! needed.

use std::path::PathBuf;

use clap::Args;
use lacre_crypto::{Format, SecretText};
use serde_json::{Value, json};

use super::{portable, text};
use crate::args::JsonArgs;
use crate::cluster::{Cluster, path_part};
use crate::commands::Context;
use crate::commands::kube::cluster_args::ClusterArgs;
use crate::error::{CommandError, Kind};
use crate::files;
use crate::opening::{self, Leniency};
use crate::sealed_secrets::manifest::{self, Manifest};

/// Bring the keys of a backup back into a cluster.
///
/// A controller that runs takes them over within seconds. Keys that are there already stay as they are.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  lacre kube keys restore keys.yaml\n  \
    lacre kube keys restore --into lacre-system keys.yaml")]
pub(super) struct RestoreArgs {
    /// The backup.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Put them into this namespace instead of the one they come from.
    #[arg(long, value_name = "NAMESPACE")]
    into: Option<String>,
    #[command(flatten)]
    pub(super) script: JsonArgs,
    #[command(flatten, next_help_heading = "Cluster")]
    cluster: ClusterArgs,
}

pub(super) fn run(args: &RestoreArgs, context: &Context) -> Result<(), CommandError> {
    let input = files::read(Some(&args.file), None)?;
    let open = opening::open(&input, Format::Yaml, Leniency::default(), context)?;
    let place = args.file.display().to_string();
    let plain = std::str::from_utf8(open.plaintext().expose_secret()).map(SecretText::from);
    let plain =
        plain.map_err(|_| CommandError::on(Kind::Read, &place, "is not text").hint("name a backup"))?;
    let keys = manifest::read(&place, &plain, Some(context.output))?;
    let stranger = keys.iter().find(|key| key.kind() != Some("Secret") || key.name().is_none());
    if let Some(stranger) = stranger {
        return Err(stranger
            .refuse("is no key of a backup; nothing was restored")
            .hint("name a file that `lacre kube keys backup` made"));
    }
    let cluster = args.cluster.reach()?;
    let mut done = Vec::new();
    for key in &keys {
        let word = restore(&cluster, key, args.into.as_deref())?;
        let name = key.name().unwrap_or_default();
        context.output.note(&format!("{name}: {word}"));
        done.push(json!({ "name": name, "result": word }));
    }
    context.output.done(&format!("{place}: {} keys", done.len()), &json!({ "file": place, "keys": done }))
}

fn restore(cluster: &Cluster, key: &Manifest, into: Option<&str>) -> Result<&'static str, CommandError> {
    let mut secret = portable(&key.object);
    if let Some(namespace) = into {
        secret["metadata"]["namespace"] = namespace.into();
    }
    let namespace = path_part(text(&secret, "/metadata/namespace"));
    let path = format!("/api/v1/namespaces/{namespace}/secrets");
    let answer = cluster.post(&path, secret.to_string().into_bytes())?;
    if answer.is_success() {
        return Ok("restored");
    }
    if answer.status != 409 {
        let problem = answer.problem("create secrets");
        return Err(key.refuse(format!("cannot be restored: {problem}")).hint(
            "log in as someone who may create Secrets there, or name another namespace with `--into`",
        ));
    }
    let there = cluster.get(&format!("{path}/{}", path_part(text(&secret, "/metadata/name"))))?;
    match there.json().filter(|_| there.is_success()) {
        Some(there) if same(&there, &secret) => Ok("already there"),
        _ => Err(key.refuse("another Secret of its name is there, and is left alone").hint(
            "move the key in the cluster to another name first: both may be needed to open what is in git",
        )),
    }
}

fn same(there: &Value, secret: &Value) -> bool {
    there["data"] == secret["data"] && there["type"] == secret["type"]
}

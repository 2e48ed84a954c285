//! `lacre kube keys backup`: every key of the controller in one sealed file.
//!
//! The keys go from the API server through memory into the sealed text; nothing is written in the clear.

use std::path::{Path, PathBuf};

use clap::Args;
use lacre_crypto::{Format, SecretText, Selector, SelectorKind, Timestamp};
use serde_json::{Value, json};

use super::{BACKED_UP, list, portable, text};
use crate::args::{JsonArgs, RecipientArgs, SelectorArgs};
use crate::cluster::{Cluster, path_part};
use crate::commands::Context;
use crate::commands::kube::cluster_args::ClusterArgs;
use crate::error::{CommandError, Kind};
use crate::files::{self, Privacy};
use crate::sealed_secrets::manifest;
use crate::sealed_secrets::print::Form;
use crate::sealing::Plan;

/// What of a Secret is sealed; names, labels and times stay readable.
const SELECTOR: &str = "^(data|stringData)$";

/// Write all keys of the controller into one file, sealed for recipients outside of the cluster.
///
/// Recipients are those of flags, else of the creation rule that matches the file's name. Each key that is in the file
/// is marked in the cluster, so that status and metrics say which ones are not. Do it again after each renewal.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  lacre kube keys backup --age age1… -o keys.yaml\n  \
    lacre kube keys restore keys.yaml")]
pub(super) struct BackupArgs {
    /// Write the backup to this file.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Replace a backup although it holds keys that this cluster does not have.
    #[arg(long)]
    replace: bool,
    /// Do not mark the keys in the cluster as backed up.
    #[arg(long)]
    no_mark: bool,
    #[command(flatten)]
    pub(super) script: JsonArgs,
    #[command(flatten, next_help_heading = "Recipients")]
    recipients: RecipientArgs,
    #[command(flatten, next_help_heading = "Cluster")]
    cluster: ClusterArgs,
}

pub(super) fn run(args: &BackupArgs, context: &Context) -> Result<(), CommandError> {
    let mut plan = Plan::new(&args.output, &args.recipients, &SelectorArgs::default(), context)?;
    plan.selector = Selector::new(SelectorKind::EncryptedRegex, SELECTOR)
        .map_err(|error| CommandError::general(error).hint("this is a bug: please report it"))?;
    let ready = plan.ready(context)?;
    let cluster = args.cluster.reach()?;
    let namespace = &args.cluster.controller_namespace;
    let keys = list(&cluster, namespace)?;
    if keys.is_empty() {
        return Err(CommandError::general(format!("namespace {namespace} holds no key to back up"))
            .hint("name the controller's namespace with `--controller-namespace`"));
    }
    if !args.replace {
        refuse_to_lose_keys(&args.output, &keys, context)?;
    }
    let now = lacre_crypto::timestamp(Timestamp::now());
    let name = args.output.display().to_string();
    let sealed = lacre_crypto::encrypt(&plain(&keys, &now), Format::Yaml, &plan.options(&ready))
        .map_err(|error| CommandError::writing(&name, error))?;
    files::write(&args.output, sealed.as_bytes(), Privacy::Shared)?;
    if !args.no_mark {
        keys.iter().try_for_each(|key| mark(&cluster, key, &now))?;
    }
    let names: Vec<_> = keys.iter().map(|key| text(key, "/metadata/name")).collect();
    let line = format!("{name}: {} keys backed up; keep it away from the cluster", keys.len());
    context.output.done(&line, &json!({ "file": name, "keys": names, "backedUpAt": now }))
}

/// Whether the file is there and holds a key that is not among `keys`: it may be the only place that has it. Names stay
/// readable in a backup, so that no key is needed to tell.
fn refuse_to_lose_keys(path: &Path, keys: &[Value], context: &Context) -> Result<(), CommandError> {
    if !path.is_file() {
        return Ok(());
    }
    let input = files::read(Some(path), None)?;
    let place = path.display().to_string();
    let held = manifest::read(&place, &input.content, Some(context.output))?;
    let is_there = |name: &str| keys.iter().any(|key| text(key, "/metadata/name") == name);
    match held.iter().find(|held| !held.name().is_some_and(is_there)) {
        None => Ok(()),
        Some(held) => Err(CommandError::on(
            Kind::Declined,
            place,
            format!("holds {}, which this cluster does not have", held.name().unwrap_or("something else")),
        )
        .hint("name another file, or insist with `--replace`")),
    }
}

/// The keys as one list, each saying when it was backed up.
fn plain(keys: &[Value], now: &str) -> SecretText {
    let items: Vec<_> = keys
        .iter()
        .map(|key| {
            let mut item = portable(key);
            item["metadata"]["annotations"][BACKED_UP] = now.into();
            item
        })
        .collect();
    SecretText::new(Form::Yaml.print(&json!({ "apiVersion": "v1", "kind": "List", "items": items })))
}

fn mark(cluster: &Cluster, key: &Value, now: &str) -> Result<(), CommandError> {
    let (namespace, name) = (text(key, "/metadata/namespace"), text(key, "/metadata/name"));
    let path = format!("/api/v1/namespaces/{}/secrets/{}", path_part(namespace), path_part(name));
    // Uid and version keep the mark from what came in between.
    let metadata = &key["metadata"];
    let patch = json!({ "metadata": {
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
        "annotations": { BACKED_UP: now },
    } });
    let answer = cluster.patch(&path, patch.to_string().into_bytes())?;
    if answer.is_success() {
        return Ok(());
    }
    let problem = answer.problem(&format!("patch secrets {name}"));
    Err(CommandError::new(
        Kind::General,
        format!("the backup is written, but {name} cannot be marked: {problem}"),
    )
    .hint("log in as someone who may patch Secrets there, or give `--no-mark`"))
}

//! `lacre kube reseal`: every item of SealedSecrets in files sealed again for the newest key, and nothing else changed.

use std::path::PathBuf;

use clap::Args;
use lacre_crypto::object::sealed_secret::{Extent, ResealError, Resealed, SealedObject};
use lacre_crypto::sealing_key::{Certificate, SealingKey};
use serde_json::{Value, json};

use super::cluster_args::ClusterArgs;
use super::sealed_files::{self, OwnKeyArgs};
use crate::args::JsonArgs;
use crate::batch;
use crate::cluster::controller::Controller;
use crate::commands::Context;
use crate::error::{CommandError, Kind};
use crate::files::{self, Input, Privacy};
use crate::sealed_secrets::certificate;
use crate::targets::{Target, Targets};

/// Seal every item of SealedSecrets again, for the newest key, in place.
///
/// Only ciphertext changes: comments, templates, labels and order of the files stay byte for byte. With `--key` and
/// `--cert` it is done here, without a cluster; give the newest key with `--key` as well, and items that are sealed for it
/// already are left alone. Without keys the cluster's controller does it, and plaintext never leaves the cluster.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  lacre kube reseal apps\n  lacre kube reseal --key old.key,new.key --cert new.pem apps\n  \
    git diff --stat"
)]
pub(crate) struct ResealArgs {
    /// The manifests, or folders with some.
    #[arg(value_name = "FILE|DIR", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    keys: OwnKeyArgs,
    /// Seal for the certificate in this file or behind this URL.
    #[arg(long, value_name = "FILE|URL", requires = "private_keys")]
    cert: Option<String>,
    /// Say what would change, and write nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    pub(super) script: JsonArgs,
    #[command(flatten, next_help_heading = "Cluster")]
    cluster: ClusterArgs,
}

/// Who seals again.
enum Sealer<'c> {
    Here { keys: Vec<SealingKey>, newest: Box<Certificate> },
    Cluster(Controller<'c>),
}

pub(crate) fn run(args: &ResealArgs, context: &Context) -> Result<(), CommandError> {
    let targets = Targets::mentioning(&args.files, sealed_files::mentions)?;
    let keys = args.keys.read(context)?;
    let cluster = keys.is_empty().then(|| args.cluster.reach()).transpose()?;
    let sealer = match (&args.cert, &cluster) {
        (_, Some(cluster)) => Sealer::Cluster(args.cluster.controller(cluster)?),
        (Some(source), None) => {
            let newest = Box::new(certificate::for_sealing(&certificate::read(source)?)?);
            Sealer::Here { keys, newest }
        }
        (None, None) => {
            return Err(CommandError::new(Kind::ConflictingFlags, "nothing says which key is the newest")
                .hint("name its certificate with `--cert`; `lacre kube cert` prints it"));
        }
    };
    batch::run(&targets, context, |target| reseal(target, args, &sealer, context))
}

fn reseal(
    target: &Target,
    args: &ResealArgs,
    sealer: &Sealer<'_>,
    context: &Context,
) -> Result<&'static str, CommandError> {
    let input = files::read(Some(&target.path), None)?;
    let manifest = sealed_files::read(&input, target)?;
    if manifest.objects().is_empty() {
        return Ok("without any");
    }
    let resealed = manifest
        .objects()
        .iter()
        .map(|object| match sealer {
            Sealer::Here { keys, newest } => reseal_here(&input, object, keys, newest),
            Sealer::Cluster(controller) => reseal_by(controller, &input, object),
        })
        .collect::<Result<Vec<_>, _>>()?;
    let name = input.name.display().to_string();
    let count: usize =
        resealed.iter().map(|one| one.items.len() + usize::from(one.legacy_data.is_some())).sum();
    if count > 0 && !args.dry_run {
        let text = manifest
            .with(&resealed)
            .map_err(|error| CommandError::on(Kind::Encrypt, &name, error).hint("the file is as it was"))?;
        files::replace(&input, text.as_bytes(), Privacy::Shared)?;
    }
    let line = match (count, args.dry_run) {
        (0, _) => "unchanged, every item is sealed for the newest key".to_owned(),
        (1, true) => "1 item would be sealed again".to_owned(),
        (_, true) => format!("{count} items would be sealed again"),
        (1, false) => "1 item sealed again".to_owned(),
        (_, false) => format!("{count} items sealed again"),
    };
    let value = json!({ "file": name, "items": count, "changed": count > 0 && !args.dry_run });
    context.output.done(&format!("{name}: {line}"), &value)?;
    Ok(match count {
        0 => "unchanged",
        _ if args.dry_run => "to be sealed again",
        _ => "sealed again",
    })
}

/// The items that other keys than the newest open, sealed for it.
fn reseal_here(
    input: &Input,
    object: &SealedObject,
    keys: &[SealingKey],
    newest: &Certificate,
) -> Result<Resealed, CommandError> {
    let keys: Vec<_> = keys.iter().collect();
    let place = sealed_files::place(input, object);
    object.secret.reseal(&keys, newest.public(), Extent::Outdated).map_err(|error| match error {
        ResealError::Unseal(error) => {
            let told = sealed_files::not_opened(&place, &object.secret, &error, &keys);
            match keys.iter().any(|key| key.public() == newest.public()) {
                true => told,
                false => told.hint(
                    "an item may be sealed for `--cert` already: give the key of that certificate with `--key`, too",
                ),
            }
        }
        ResealError::Item(error) => {
            CommandError::on(Kind::Encrypt, place, error).hint("run the command again; the file is as it was")
        }
    })
}

/// The items as the controller seals them. Nothing else of its answer is taken, and it is not told the template.
fn reseal_by(
    controller: &Controller<'_>,
    input: &Input,
    object: &SealedObject,
) -> Result<Resealed, CommandError> {
    if object.secret.items.is_empty() {
        return Ok(Resealed::default());
    }
    let refuse = |problem: &str| {
        CommandError::on(Kind::Decrypt, sealed_files::place(input, object), problem)
            .hint("`lacre kube validate` says more; the file is as it was")
    };
    let mut asked = object.json.clone();
    if let Some(spec) = asked["spec"].as_object_mut() {
        spec.remove("template");
    }
    let rotated = controller.rotate(&asked)?.ok_or_else(|| refuse("the controller cannot open it"))?;
    let items = rotated.pointer("/spec/encryptedData").and_then(Value::as_object);
    let items = items.ok_or_else(|| refuse("the controller's answer holds no items"))?;
    let known = &object.secret.items;
    if items.len() != known.len() || !items.keys().all(|key| known.contains_key(key)) {
        return Err(refuse("the controller's answer holds other items than the object"));
    }
    let texts = items.iter().map(|(key, text)| Some((key.clone(), text.as_str()?.to_owned())));
    let items = texts.collect::<Option<_>>();
    let items = items.ok_or_else(|| refuse("the controller's answer holds items that are no text"))?;
    Ok(Resealed { items, ..Resealed::default() })
}

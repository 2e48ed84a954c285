//! `lacre kube validate`: whether SealedSecrets in files are what they must be, and open in the cluster or with keys.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::Args;
use lacre_crypto::object::SealedSecret;
use lacre_crypto::object::sealed_secret::{self, ItemScope, SealedObject};
use lacre_crypto::sealed_item::base64_text;
use lacre_crypto::sealing_key::SealingKey;
use serde_json::json;

use super::cluster_args::ClusterArgs;
use super::sealed_files::{self, OwnKeyArgs};
use crate::args::JsonArgs;
use crate::batch;
use crate::cluster::controller::Controller;
use crate::commands::Context;
use crate::error::{CommandError, Kind};
use crate::files;
use crate::targets::{Target, Targets};

/// Lengths of an RSA block in bytes that keys may have.
const MODULUS_BYTES: RangeInclusive<usize> = 256..=1024;
/// Length of the tag behind a value.
const TAG_BYTES: usize = 16;

/// Check that SealedSecrets are well formed and that they open.
///
/// Without `--offline` and keys the cluster's controller is asked whether it can open each of them. `--offline` checks
/// the form alone: base64, lengths, names, and scope annotations that contradict each other; that is what a pipeline
/// without access to the cluster can know.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  lacre kube validate --offline apps\n  lacre kube validate sealed.yaml\n  \
    lacre kube validate --key keys.yaml apps"
)]
pub(crate) struct ValidateArgs {
    /// The manifests, or folders with some.
    #[arg(value_name = "FILE|DIR", required = true)]
    files: Vec<PathBuf>,
    /// Check the form alone, without keys and without a cluster.
    #[arg(long, conflicts_with = "private_keys")]
    offline: bool,
    #[command(flatten)]
    keys: OwnKeyArgs,
    #[command(flatten)]
    pub(super) script: JsonArgs,
    #[command(flatten, next_help_heading = "Cluster")]
    cluster: ClusterArgs,
}

/// Who says whether an object opens.
enum Judge<'c> {
    Controller(Controller<'c>),
    Keys(Vec<SealingKey>),
    Nobody,
}

pub(crate) fn run(args: &ValidateArgs, context: &Context) -> Result<(), CommandError> {
    let targets = Targets::mentioning(&args.files, sealed_files::mentions)?;
    let asks = !args.offline && args.keys.private_keys.is_empty();
    let cluster = asks.then(|| args.cluster.reach()).transpose()?;
    let judge = match &cluster {
        Some(cluster) => Judge::Controller(args.cluster.controller(cluster)?),
        None if args.offline => Judge::Nobody,
        None => Judge::Keys(args.keys.read(context)?),
    };
    batch::run(&targets, context, |target| validate(target, &judge, context))
}

fn validate(target: &Target, judge: &Judge<'_>, context: &Context) -> Result<&'static str, CommandError> {
    let input = files::read(Some(&target.path), None)?;
    let manifest = sealed_files::read(&input, target)?;
    if manifest.objects().is_empty() {
        return Ok("without any");
    }
    let name = input.name.display().to_string();
    for object in manifest.objects() {
        let place = sealed_files::place(&input, object);
        check_form(&place, &object.secret, context)?;
        check_opens(&place, object, judge)?;
        let scope = object.secret.scope.to_string();
        let word = if matches!(judge, Judge::Nobody) { "well formed" } else { "opens" };
        let value = json!({ "file": name, "line": object.line, "name": object.secret.name, "scope": scope });
        context.output.done(&format!("{place}: {word}, {scope}"), &value)?;
    }
    Ok("valid")
}

/// What can be known without a key.
fn check_form(place: &str, object: &SealedSecret, context: &Context) -> Result<(), CommandError> {
    let again = "seal it again with `kubeseal`, from the Secret that it stands for";
    let refuse = |problem: String| Err(CommandError::on(Kind::General, place, problem).hint(again));
    if object.name.is_empty() {
        return refuse("has no name".to_owned());
    }
    for (key, text) in &object.items {
        let bytes = match base64_text::decode(text) {
            Ok(bytes) => bytes,
            Err(at) => return refuse(format!("item {key} is not base64 from byte {at} on")),
        };
        let modulus_bytes = match bytes.as_slice() {
            [high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])),
            _ => 0,
        };
        if !MODULUS_BYTES.contains(&modulus_bytes) || bytes.len() < 2 + modulus_bytes + TAG_BYTES {
            return refuse(format!(
                "item {key} is no sealed value: {} bytes that begin otherwise",
                bytes.len()
            ));
        }
    }
    if object.items.is_empty() && object.legacy_data.is_none() && object.template.data.is_empty() {
        return refuse("holds nothing: it has neither items nor templates".to_owned());
    }
    if object.legacy_data.as_deref().is_some_and(|blob| base64_text::decode(blob).is_err()) {
        return refuse("spec.data is not base64".to_owned());
    }
    let of_template =
        |name: &str| object.template.annotation(name) == Some(sealed_secret::scope::ANNOTATION_ON);
    let contradiction = ItemScope::ALL
        .iter()
        .find(|scope| **scope != object.scope && scope.annotation().is_some_and(of_template));
    if let Some(scope) = contradiction {
        context.output.warn(&format!(
            "{place}: its template says {scope}, and it is its own annotations that count: they say {}",
            object.scope
        ));
    }
    if object.namespace.is_empty() && object.scope != ItemScope::ClusterWide {
        context
            .output
            .warn(&format!("{place}: names no namespace, and opens only in the one that it was sealed for"));
    }
    Ok(())
}

fn check_opens(place: &str, object: &SealedObject, judge: &Judge<'_>) -> Result<(), CommandError> {
    match judge {
        Judge::Nobody => Ok(()),
        Judge::Keys(keys) => {
            let keys: Vec<_> = keys.iter().collect();
            let verified = object.secret.verify(&keys, true);
            verified.map_err(|error| sealed_files::not_opened(place, &object.secret, &error, &keys))
        }
        Judge::Controller(controller) => match controller.verify(&object.json)? {
            true => Ok(()),
            false => Err(CommandError::on(Kind::Decrypt, place, "the controller cannot open it").hint(
                "an item opens only under the key, namespace, name and scope that it was sealed for; with a backup of the keys, `--key FILE` says more",
            )),
        },
    }
}

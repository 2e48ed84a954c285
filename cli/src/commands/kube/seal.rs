//! `lacre kube seal`: a Secret manifest made into an EncryptedSecret, bound to its name and namespace.

#[cfg(feature = "kube")]
mod sealed_secret;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use lacre_crypto::object::ManifestOptions;
use lacre_crypto::recipient::RecipientId;
use lacre_crypto::{Format, Scope, Timestamp, WriteOptions};

use crate::args::KeyArgs;
use crate::commands::Context;
#[cfg(feature = "kube")]
use crate::commands::kube::cluster_args::ClusterArgs;
use crate::config::{self, Keys};
use crate::error::{CommandError, Kind};
use crate::files::{self, Privacy};
use crate::recipients::{self, ReadyGroups};

/// What a SealedSecret has none of.
#[cfg(feature = "kube")]
const OTHER_RECIPIENTS: [&str; 3] = ["clusters", "keys_from", "recipients_from_cluster"];

/// Make a Secret manifest into an EncryptedSecret that can be committed and applied.
///
/// The object opens only under the name and in the namespace it is sealed for, unless a wider scope is chosen.
/// Recipients are those of flags, of the published keys of a cluster, and else of the creation rule in `.sops.yaml`
/// that matches the result's name.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  kubectl create secret generic db --dry-run=client -o yaml --from-file=password |\n    \
    lacre kube seal -n shop -o db.yaml\n  \
    kubectl get configmap -n lacre-system lacre-public-keys -o yaml |\n    \
    lacre kube seal --recipients-from-cluster - -o db.yaml secret.yaml"
)]
pub(crate) struct SealArgs {
    /// The Secret manifest, YAML; standard input if absent or `-`.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Seal for this namespace; needed when the manifest names none.
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    /// Where the object may be opened.
    #[arg(long, value_enum, default_value_t = ScopeWord::Strict)]
    scope: ScopeWord,
    /// Seal for the clusters of these names alone.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    clusters: Vec<String>,
    /// Let the controller open it with the keys in these Secrets of its namespace, instead of its own.
    #[arg(long, value_name = "SECRET,…", value_delimiter = ',')]
    keys_from: Vec<String>,
    /// Seal for the keys in a controller's published ConfigMap, a file or `-`; together with those of the rule.
    #[arg(long, value_name = "FILE")]
    recipients_from_cluster: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Recipients")]
    keys: KeyArgs,
    /// Make a SealedSecret, for the certificate that the cluster publishes, instead of an EncryptedSecret.
    #[cfg(feature = "kube")]
    #[arg(long, help_heading = "SealedSecrets", conflicts_with_all = OTHER_RECIPIENTS)]
    sealed_secret: bool,
    /// Make a SealedSecret, for the certificate in this file or behind this URL.
    #[cfg(feature = "kube")]
    #[arg(long, value_name = "FILE|URL", help_heading = "SealedSecrets")]
    #[arg(conflicts_with_all = OTHER_RECIPIENTS)]
    cert: Option<String>,
    #[cfg(feature = "kube")]
    #[command(flatten, next_help_heading = "Cluster")]
    cluster: ClusterArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ScopeWord {
    /// Under this name in this namespace.
    Strict,
    /// Under any name in this namespace.
    Namespace,
    /// Under any name in any namespace.
    Cluster,
}

pub(crate) fn run(args: &SealArgs, context: &Context) -> Result<(), CommandError> {
    #[cfg(feature = "kube")]
    if args.sealed_secret || args.cert.is_some() {
        return sealed_secret::run(args, context);
    }
    if is_stdin(args.recipients_from_cluster.as_deref())
        && is_stdin(args.file.as_deref().or(Some(Path::new("-"))))
    {
        return Err(CommandError::new(
            Kind::ConflictingFlags,
            "the manifest and the keys cannot both be standard input",
        )
        .hint("write one of them to a file, and name it"));
    }
    let manifest = files::read(args.file.as_deref(), None)?;
    let ready = recipients(args, &manifest.name, context)?;
    let options = ManifestOptions {
        namespace: args.namespace.as_deref(),
        scope: args.scope.into(),
        clusters: args.clusters.clone(),
        groups: ready.as_groups(),
        keys_from: args.keys_from.clone(),
        write: WriteOptions { now: Timestamp::now(), seal: true, allow_plaintext: false },
    };
    let format = Format::from_file_name(&manifest.name.to_string_lossy()).unwrap_or(Format::Yaml);
    let sealed = lacre_crypto::object::seal_manifest(&manifest.content, format, options)
        .map_err(|error| CommandError::writing(&manifest.name.display().to_string(), error))?;
    match &args.output {
        Some(path) => files::write(path, sealed.as_bytes(), Privacy::Shared),
        None => context.output.text(&sealed),
    }
}

/// Flags and the cluster's keys in one group; without flags those of the rule, joined by the cluster's.
fn recipients(args: &SealArgs, input: &Path, context: &Context) -> Result<ReadyGroups, CommandError> {
    let typed = recipients::typed(&args.keys)?;
    let cluster = args.recipients_from_cluster.as_deref().map(published).transpose()?;
    let name = args.output.as_deref().unwrap_or(input);
    let rule = match (typed.is_empty(), &cluster) {
        (false, _) => None,
        (true, Some(_)) => config::rule_or_none(name, Keys::Wanted, context)?,
        (true, None) => Some(config::rule_required(name, context)?),
    };
    let (mut groups, threshold) = match rule {
        Some(rule) => (rule.groups, rule.shamir_threshold),
        None => (vec![typed], None),
    };
    let cluster = cluster.unwrap_or_default();
    match groups.as_mut_slice() {
        _ if cluster.is_empty() => {}
        [] => groups.push(cluster),
        [group] => {
            let held = group.clone();
            group.extend(cluster.into_iter().filter(|id| !held.contains(id)));
        }
        _ => {
            return Err(CommandError::general(
                "the rule has several key groups, and a cluster's keys fit into none of them",
            )
            .hint("name the recipients with `--age` instead"));
        }
    }
    ReadyGroups::new(&groups, threshold, context)
}

/// The age recipients in a ConfigMap that a controller published.
fn published(path: &Path) -> Result<Vec<RecipientId>, CommandError> {
    let text = files::read(Some(path), None)?.content;
    let object: yaml_serde::Value = yaml_serde::from_str(text.expose_secret()).map_err(|error| {
        CommandError::on(Kind::Read, path.display(), error)
            .hint("`kubectl get configmap -n lacre-system -o yaml NAME` prints one")
    })?;
    if object.get("kind").and_then(yaml_serde::Value::as_str) != Some("ConfigMap") {
        return Err(CommandError::on(Kind::Read, path.display(), "is no ConfigMap")
            .hint("`kubectl get configmap -n lacre-system -o yaml NAME` prints one"));
    }
    let data = object.get("data").and_then(yaml_serde::Value::as_mapping);
    let values = data.into_iter().flat_map(|data| data.values()).filter_map(yaml_serde::Value::as_str);
    let words = values.flat_map(str::split_whitespace).filter(|word| word.starts_with("age1"));
    let found = words.map(recipients::parse_age).collect::<Result<Vec<_>, _>>()?;
    if found.is_empty() {
        return Err(CommandError::on(Kind::Read, path.display(), "holds no age recipient")
            .hint("wait until the controller has published its keys, or give recipients with `--age`"));
    }
    Ok(found)
}

fn is_stdin(path: Option<&Path>) -> bool {
    path == Some(Path::new("-"))
}

impl From<ScopeWord> for Scope {
    fn from(word: ScopeWord) -> Self {
        match word {
            ScopeWord::Strict => Self::Strict,
            ScopeWord::Namespace => Self::Namespace,
            ScopeWord::Cluster => Self::Cluster,
        }
    }
}

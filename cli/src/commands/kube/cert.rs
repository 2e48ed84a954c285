//! `lacre kube cert`: the certificate that SealedSecrets of a cluster are sealed for.

use std::path::{Path, PathBuf};

use clap::Args;
use lacre_crypto::sealing_key::Certificate;
use serde_json::{Value, json};

use super::cluster_args::ClusterArgs;
use crate::args::JsonArgs;
use crate::cluster::{Cluster, path_part};
use crate::commands::Context;
use crate::error::{CommandError, Kind};
use crate::files::{self, Privacy};
use crate::sealed_secrets::certificate;

/// Where a controller publishes its public halves for everybody who can log in.
const CONFIG_MAP: &str = "lacre-public-keys";
/// The entry of it that holds certificates, the newest first.
const ENTRY: &str = "sealing-certificates.pem";

/// What a certificate begins with.
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";

/// Print the certificate that a cluster's SealedSecrets are sealed for, or pin it in a file.
///
/// It is read from the ConfigMap that the controller publishes, else asked of its Service. A file that pins one is
/// replaced without a question as long as the pinned key still opens; a cluster that no longer has that key may be
/// another cluster, and is refused unless you insist.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  lacre kube cert -o cert.pem\n  \
    kubeseal --cert cert.pem -o yaml < secret.yaml > sealed.yaml")]
pub(crate) struct CertArgs {
    /// Pin it in this file instead of printing it.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the pinned certificate although the cluster does not have its key.
    #[arg(long, requires = "output")]
    accept_new: bool,
    /// Show the certificate in this file or behind this URL, and ask no cluster.
    #[arg(long, value_name = "FILE|URL", conflicts_with = "output")]
    cert: Option<String>,
    #[command(flatten)]
    pub(super) script: JsonArgs,
    #[command(flatten, next_help_heading = "Cluster")]
    cluster: ClusterArgs,
}

pub(crate) fn run(args: &CertArgs, context: &Context) -> Result<(), CommandError> {
    let published = match &args.cert {
        Some(source) => in_text(&certificate::read(source)?)?,
        None => published(&args.cluster.reach()?, &args.cluster)?,
    };
    let [newest, ..] = published.as_slice() else {
        return Err(CommandError::general("no certificate is published")
            .hint("wait until the controller has made its first key, or see its log"));
    };
    let value = describe(newest);
    let Some(path) = &args.output else {
        return match context.output.json {
            true => context.output.answer("", &value),
            false => context.output.text(newest.pem()),
        };
    };
    let line = pin(path, &published, args.accept_new)?;
    context.output.done(&format!("{}: {line}", path.display()), &value)
}

/// Writes the newest of `published` to `path`; says what became of the file.
fn pin(path: &Path, published: &[Certificate], accept_new: bool) -> Result<String, CommandError> {
    let newest = &published[0];
    let words = format!("sealing for {}, until {}", newest.public().fingerprint(), newest.not_after());
    if path.exists() {
        let pinned = certificate::read(&path.to_string_lossy())?;
        let old = Certificate::from_pem(&pinned).map_err(|error| {
            CommandError::on(Kind::Read, path.display(), error)
                .hint("it is no pinned certificate: name another file with `--output`")
        })?;
        if old.public() == newest.public() {
            return Ok(format!("unchanged, {words}"));
        }
        if !accept_new && !published.iter().any(|known| known.public() == old.public()) {
            return Err(CommandError::on(
                Kind::Declined,
                path.display(),
                format!(
                    "pins {}, which this cluster does not publish any more; its newest is {}",
                    old.public().fingerprint(),
                    newest.public().fingerprint()
                ),
            )
            .hint("compare the fingerprint with whoever runs the cluster, then insist with `--accept-new`"));
        }
    }
    files::write(path, newest.pem().as_bytes(), Privacy::Shared)?;
    Ok(words)
}

/// The certificates of the cluster's controller, the newest first. The Service knows the newest alone.
pub(super) fn published(cluster: &Cluster, args: &ClusterArgs) -> Result<Vec<Certificate>, CommandError> {
    let namespace = path_part(&args.controller_namespace);
    let answer = cluster.get(&format!("/api/v1/namespaces/{namespace}/configmaps/{CONFIG_MAP}"))?;
    let map = answer.json().filter(|_| answer.is_success());
    let text = map.as_ref().and_then(|map| map["data"][ENTRY].as_str());
    match text {
        Some(text) => in_text(text),
        None => in_text(&args.controller(cluster)?.certificate()?),
    }
}

/// Every certificate in `text`, in its order.
fn in_text(text: &str) -> Result<Vec<Certificate>, CommandError> {
    let starts: Vec<_> = text.match_indices(BEGIN).map(|(at, _)| at).collect();
    if starts.is_empty() {
        return certificate::for_sealing(text).map(|only| vec![only]);
    }
    starts
        .iter()
        .map(|at| {
            Certificate::from_pem(&text[*at..]).map_err(|error| {
                CommandError::general(error).hint("see whether it is the controller that the flags name")
            })
        })
        .collect()
}

fn describe(certificate: &Certificate) -> Value {
    json!({
        "fingerprint": certificate.public().fingerprint(),
        "notBefore": certificate.not_before().to_string(),
        "notAfter": certificate.not_after().to_string(),
        "pem": certificate.pem(),
    })
}

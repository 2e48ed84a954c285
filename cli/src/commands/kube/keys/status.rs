//! `lacre kube keys status`: which keys there are, and which of them would be lost with the cluster.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use lacre_crypto::sealing_key::Certificate;
use serde_json::{Value, json};

use super::{BACKED_UP, list, text};
use crate::args::JsonArgs;
use crate::commands::Context;
use crate::commands::kube::cluster_args::ClusterArgs;
use crate::error::CommandError;

/// List the controller's keys, their age, and whether they are backed up.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  lacre kube keys status --controller-namespace kube-system")]
pub(super) struct StatusArgs {
    #[command(flatten)]
    pub(super) script: JsonArgs,
    #[command(flatten, next_help_heading = "Cluster")]
    cluster: ClusterArgs,
}

pub(super) fn run(args: &StatusArgs, context: &Context) -> Result<(), CommandError> {
    let namespace = &args.cluster.controller_namespace;
    let keys: Vec<_> = list(&args.cluster.reach()?, namespace)?.iter().map(describe).collect();
    let lines: Vec<_> = keys.iter().map(line).collect();
    let lost = keys.iter().filter(|key| key["backedUpAt"].is_null()).count();
    if keys.is_empty() {
        return Err(CommandError::general(format!("namespace {namespace} holds no key"))
            .hint("name the controller's namespace with `--controller-namespace`"));
    }
    context.output.answer(&lines.join("\n"), &json!({ "namespace": namespace, "keys": keys }))?;
    if lost > 0 {
        let what = format!(
            "{lost} of {} keys are in no backup: what they opened is lost with the cluster",
            keys.len()
        );
        context.output.warn(&format!("{what} (run `lacre kube keys backup -o keys.yaml`)"));
    }
    Ok(())
}

fn describe(secret: &Value) -> Value {
    let certificate = certificate(secret);
    json!({
        "name": text(secret, "/metadata/name"),
        "createdAt": text(secret, "/metadata/creationTimestamp"),
        "label": secret.pointer("/metadata/labels/sealedsecrets.bitnami.com~1sealed-secrets-key"),
        "fingerprint": certificate.as_ref().map(|found| found.public().fingerprint()),
        "notAfter": certificate.as_ref().map(|found| found.not_after().to_string()),
        "backedUpAt": secret["metadata"]["annotations"].get(BACKED_UP),
    })
}

fn line(key: &Value) -> String {
    let or = |field: &str, other: &str| key[field].as_str().unwrap_or(other).to_owned();
    let backup = match key["backedUpAt"].as_str() {
        Some(time) => format!("backed up at {time}"),
        None => "not backed up".to_owned(),
    };
    format!("{}  {}  {}  {backup}", or("name", ""), or("createdAt", ""), or("fingerprint", "identity"))
}

fn certificate(secret: &Value) -> Option<Certificate> {
    let encoded = secret["data"]["tls.crt"].as_str()?;
    let pem = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    Certificate::from_pem(&pem).ok()
}

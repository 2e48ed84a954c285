//! `lacre kube seal --sealed-secret`: Secret manifests made into SealedSecrets, which the cluster's controller opens.

use lacre_crypto::SecretText;
use lacre_crypto::object::sealed_secret::{ItemScope, SealSecretOptions, seal_secret};
use lacre_crypto::sealing_key::Certificate;

use super::{ScopeWord, SealArgs};
use crate::commands::Context;
use crate::commands::kube::cert;
use crate::error::{CommandError, Kind};
use crate::files::{self, Privacy};
use crate::sealed_secrets::certificate;
use crate::sealed_secrets::manifest;
use crate::sealed_secrets::print::Form;

/// Seals every Secret of the input.
pub(super) fn run(args: &SealArgs, context: &Context) -> Result<(), CommandError> {
    let input = files::read(args.file.as_deref(), None)?;
    let newest = certificate(args)?;
    let sealed = seal(args, &input.name.display().to_string(), &input.content, &newest, context)?;
    match &args.output {
        Some(path) => files::write(path, sealed.as_bytes(), Privacy::Shared),
        None => context.output.text(&sealed),
    }
}

fn seal(
    args: &SealArgs,
    name: &str,
    text: &SecretText,
    newest: &Certificate,
    context: &Context,
) -> Result<String, CommandError> {
    let options = SealSecretOptions {
        scope: (!matches!(args.scope, ScopeWord::Strict)).then(|| args.scope.into()),
        default_namespace: args.namespace.as_deref(),
        default_namespace_is_explicit: args.namespace.is_some(),
        ..SealSecretOptions::default()
    };
    let mut sealed = String::new();
    let manifests = manifest::read(name, text, Some(context.output))?;
    if manifests.is_empty() {
        return Err(
            CommandError::on(Kind::NoDocument, name, "holds no Secret").hint("give the manifest of one")
        );
    }
    for manifest in &manifests {
        if manifest.kind() != Some("Secret") {
            return Err(manifest
                .refuse(format!("is a {}", manifest.kind().unwrap_or("document without a kind")))
                .hint("give manifests of Secrets alone"));
        }
        let object = seal_secret(&manifest.object, newest.public(), &options)
            .map_err(|error| manifest.refuse(error).hint("correct the manifest, then seal it again"))?;
        sealed.push_str(&Form::Yaml.print(&object));
    }
    Ok(sealed)
}

/// What is sealed for: what was named, else what the cluster publishes.
fn certificate(args: &SealArgs) -> Result<Certificate, CommandError> {
    if let Some(source) = &args.cert {
        return certificate::for_sealing(&certificate::read(source)?);
    }
    let published = cert::published(&args.cluster.reach()?, &args.cluster)?;
    let newest = published.first().map(Certificate::pem).unwrap_or_default();
    certificate::for_sealing(newest)
}

impl From<ScopeWord> for ItemScope {
    fn from(word: ScopeWord) -> Self {
        match word {
            ScopeWord::Strict => Self::Strict,
            ScopeWord::Namespace => Self::NamespaceWide,
            ScopeWord::Cluster => Self::ClusterWide,
        }
    }
}

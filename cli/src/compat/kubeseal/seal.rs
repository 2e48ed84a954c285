//! The modes that seal: a whole Secret, one value with `--raw`, and into a file with `--merge-into`.

use std::io;
use std::path::Path;

use lacre_crypto::SecretBytes;
use lacre_crypto::object::sealed_secret;
use lacre_crypto::object::sealed_secret::ItemScope;
use lacre_crypto::object::sealed_secret::scope::{CLUSTER_WIDE_ANNOTATION, NAMESPACE_WIDE_ANNOTATION};
use lacre_crypto::object::sealed_secret::{SealSecretError, SealSecretOptions, seal_secret};
use lacre_crypto::sealed_item;
use lacre_crypto::sealing_key::PublicSealingKey;
use serde_json::{Map, Value};

use super::{Call, online};
use crate::cluster::ClusterOptions;
use crate::error::{CommandError, Kind};
use crate::files::{self, Privacy};
use crate::sealed_secrets::manifest::Manifest;
use crate::sealed_secrets::merge::{self, Change};
use crate::sealed_secrets::{certificate, unsealed};

/// Annotations that say the scope; a file that is merged into has them itself.
const SCOPE_ANNOTATIONS: [&str; 2] = [CLUSTER_WIDE_ANNOTATION, NAMESPACE_WIDE_ANNOTATION];

/// Seals every Secret that came in. Nothing is printed unless all of them are sealed.
pub(super) fn whole(call: &Call) -> Result<(), CommandError> {
    let form = call.form()?;
    let key = certificate::for_sealing(&online::certificate_text(call)?)?;
    let input = call.input()?;
    let cluster = call.cluster()?;
    let name = call.line.text("name");
    let mut text = String::new();
    for manifest in call.objects(&input.name, &input.content)? {
        let options = SealSecretOptions {
            scope: Some(scope(call)),
            name: name.as_deref(),
            allow_empty_data: call.line.is_on("allow-empty-data"),
            ..SealSecretOptions::default()
        };
        manifest.check_secret_fields(call.output)?;
        text += &form.print(&sealed(&manifest, key.public(), &cluster, options)?);
    }
    call.deliver(&text)
}

/// Seals one value, and prints nothing but it.
pub(super) fn one_value(call: &Call) -> Result<(), CommandError> {
    let key = certificate::for_sealing(&online::certificate_text(call)?)?;
    let scope = scope(call);
    let name = call.line.text("name").unwrap_or_default();
    let namespace = match scope {
        ItemScope::ClusterWide => String::new(),
        _ => call.cluster()?.namespace()?.name,
    };
    let missing = |flag: &str| {
        CommandError::general(format!("must provide the --{flag} flag with --raw and --scope {scope}"))
            .hint("the value opens nowhere else than where it is sealed for")
    };
    if scope != ItemScope::ClusterWide && namespace.is_empty() {
        return Err(missing("namespace"));
    }
    if scope == ItemScope::Strict && name.is_empty() {
        return Err(missing("name"));
    }
    let value = value(call)?;
    let item = sealed_item::seal(key.public(), &scope.label(&namespace, &name), &value)
        .map_err(|error| CommandError::new(Kind::Encrypt, error).hint("run the command again"))?;
    call.deliver(&item)
}

/// Seals what came in for the name, the namespace and the scope of a file, and puts it there.
pub(super) fn merge(call: &Call) -> Result<(), CommandError> {
    let path = call.line.value("merge-into").map(Path::new).unwrap_or(Path::new(""));
    call.leave_output_alone("--merge-into");
    let key = certificate::for_sealing(&online::certificate_text(call)?)?;
    let file = files::read(Some(path), None)?;
    let target = target(call, &file)?;
    let sealed_file = unsealed::read(&target)?;
    if sealed_file.legacy_data.is_some() {
        return Err(target
            .refuse("is of the first version, which has no items to add to")
            .hint("open it with `--recovery-unseal`, and seal the Secret again"));
    }
    let asked = scope(call);
    if call.line.value("scope").is_some() && asked != sealed_file.scope {
        return Err(target
            .refuse(format!("its scope is {}, and --scope {asked} was given", sealed_file.scope))
            .hint("leave the flag out: what is merged into the file must open with the rest of it"));
    }
    let input = call.input()?;
    let cluster = call.cluster()?;
    let mut changes = Vec::new();
    for mut manifest in call.objects(&input.name, &input.content)? {
        manifest.check_secret_fields(call.output)?;
        take_scope(&mut manifest.object, sealed_file.scope);
        let options = SealSecretOptions {
            scope: None,
            name: Some(&sealed_file.name),
            namespace: Some(&sealed_file.namespace),
            allow_empty_data: call.line.is_on("allow-empty-data"),
            ..SealSecretOptions::default()
        };
        changes.extend(additions(&sealed(&manifest, key.public(), &cluster, options)?));
    }
    let name = file.name.display().to_string();
    let text = merge::apply(&name, &file.content, &[(&target, changes)])?;
    files::replace(&file, text.as_bytes(), Privacy::Shared)
}

/// The one SealedSecret in a file that is merged into.
fn target(call: &Call, file: &files::Input) -> Result<Manifest, CommandError> {
    let found = call.objects(&file.name, &file.content)?;
    let is_sealed = |manifest: &Manifest| manifest.kind() == Some(sealed_secret::KIND);
    let mut candidates: Vec<_> = found.into_iter().filter(is_sealed).collect();
    match (candidates.pop(), candidates.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => Err(CommandError::on(Kind::General, file.name.display(), "holds no SealedSecret")
            .hint("name the file of a SealedSecret with `--merge-into`")),
        (Some(_), false) => {
            Err(CommandError::on(Kind::General, file.name.display(), "holds several SealedSecrets")
                .hint("give each of them a file of its own"))
        }
    }
}

/// What of a fresh SealedSecret goes into one that is there: items, and labels and annotations of the Secret.
fn additions(fresh: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    for parents in [
        &["spec", "encryptedData"][..],
        &["spec", "template", "metadata", "annotations"],
        &["spec", "template", "metadata", "labels"],
    ] {
        let members = parents.iter().try_fold(fresh, |value, key| value.get(key)).and_then(Value::as_object);
        for (key, value) in members.into_iter().flatten() {
            if !SCOPE_ANNOTATIONS.contains(&key.as_str()) {
                changes.push(Change::below(parents, key, value.clone()));
            }
        }
    }
    changes
}

/// Gives a Secret the scope of the file it is merged into, whatever it says itself.
fn take_scope(secret: &mut Value, scope: ItemScope) {
    let Some(metadata) = secret.as_object_mut().map(|secret| entry(secret, "metadata")) else { return };
    let Some(metadata) = metadata.as_object_mut() else { return };
    let Some(annotations) = entry(metadata, "annotations").as_object_mut() else { return };
    annotations.retain(|name, _| !SCOPE_ANNOTATIONS.contains(&name.as_str()));
    if let Some(annotation) = scope.annotation() {
        annotations.insert(annotation.to_owned(), sealed_secret::scope::ANNOTATION_ON.into());
    }
}

fn entry<'m>(map: &'m mut Map<String, Value>, key: &str) -> &'m mut Value {
    let value = map.entry(key.to_owned()).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value
}

/// The SealedSecret of one manifest. A kubeconfig is only looked at for a namespace that nothing else says.
fn sealed(
    manifest: &Manifest,
    key: &PublicSealingKey,
    cluster: &ClusterOptions,
    options: SealSecretOptions<'_>,
) -> Result<Value, CommandError> {
    let annotations = manifest.object.pointer("/metadata/annotations").and_then(Value::as_object);
    let is_on = |annotation: &str| annotations.and_then(|all| all.get(annotation)?.as_str()) == Some("true");
    let is_cluster_wide = options.scope == Some(ItemScope::ClusterWide)
        || (options.scope != Some(ItemScope::NamespaceWide) && is_on(CLUSTER_WIDE_ANNOTATION));
    let own = manifest.object.pointer("/metadata/namespace").and_then(Value::as_str);
    let has_own = [own, options.namespace].into_iter().flatten().any(|name| !name.is_empty());
    // Without a kubeconfig that can be read there is no namespace, which is told where one is needed.
    let namespace = match cluster.namespace.is_some() || !(has_own || is_cluster_wide) {
        true => cluster.namespace().ok(),
        false => None,
    };
    let options = SealSecretOptions {
        default_namespace: namespace.as_ref().map(|namespace| namespace.name.as_str()),
        default_namespace_is_explicit: namespace.as_ref().is_some_and(|namespace| namespace.is_asked_for),
        ..options
    };
    seal_secret(&manifest.object, key, &options).map_err(|error| not_sealed(manifest, &error))
}

fn not_sealed(manifest: &Manifest, error: &SealSecretError) -> CommandError {
    // These are known by their very words.
    let known = |hint: &str| {
        CommandError::new(Kind::Encrypt, error.to_string()).hint(format!("{}: {hint}", manifest.place))
    };
    match error {
        SealSecretError::Empty => known("fill `data` or `stringData`"),
        SealSecretError::NoName => known("name the Secret in the manifest, or with `--name`"),
        SealSecretError::NoNamespace => known("name its namespace in the manifest, or with `--namespace`"),
        SealSecretError::NamespaceMismatch { .. } => known("leave `--namespace` out, or change the manifest"),
        SealSecretError::Object(_) => {
            manifest.refuse(error).hint("give the manifest of a Secret (apiVersion v1)")
        }
        SealSecretError::InvalidBase64 { .. } | SealSecretError::NotText { .. } => manifest
            .refuse(error)
            .hint("nothing was sealed; `stringData` takes values as they are, in quotes"),
        SealSecretError::Item(_) => manifest.refuse(error).hint("run the command again"),
    }
}

/// The value for `--raw`: of the one file that was named, else from standard input, to its last byte.
fn value(call: &Call) -> Result<SecretBytes, CommandError> {
    match call.line.all("from-file") {
        [] if call.line.value("secret-file").is_some() => {
            Err(CommandError::new(Kind::ConflictingFlags, "--secret-file is not read with --raw")
                .hint("name the file with `--from-file`"))
        }
        [] => {
            call.tell_terminal("expecting a secret to encrypt in stdin");
            files::read_bounded(io::stdin().lock(), files::FILE_BYTES_MAX).map_err(|error| {
                CommandError::on(Kind::Read, "standard input", files::plain_words(&error))
                    .hint("name a file with `--from-file`")
            })
        }
        [named] => {
            let named = named.to_string_lossy();
            files::read_bytes(Path::new(named.split_once('=').map_or(&*named, |(_, path)| path)))
        }
        _ => Err(CommandError::general(
            "must provide only one --from-file when encrypting a single item with --raw",
        )
        .hint("run the command once for each file")),
    }
}

fn scope(call: &Call) -> ItemScope {
    match call.line.text("scope").as_deref() {
        Some("cluster-wide") => ItemScope::ClusterWide,
        Some("namespace-wide") => ItemScope::NamespaceWide,
        _ => ItemScope::Strict,
    }
}

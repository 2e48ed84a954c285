//! From the manifest of a Secret to a sealed EncryptedSecret.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value as Plain, json};

use crate::data_key::Groups;
use crate::document::Document;
use crate::document::tree::NodeKind;
use crate::encrypt::{EncryptOptions, WriteOptions, encrypt};
use crate::error::{EncryptError, ParseError};
use crate::format::{Format, is_yaml_1_1_word, print_yaml};
use crate::object::{self, API_VERSION, FLUX_ANNOTATION, GROUP, KIND};
use crate::seal::{Bind, ObjectBind, Scope};
use crate::secret::SecretText;

/// How to seal a manifest.
pub struct ManifestOptions<'a> {
    /// Namespace, where the manifest names none.
    pub namespace: Option<&'a str>,
    /// Where the object may be opened.
    pub scope: Scope,
    /// Names of the clusters that may open it; all when empty.
    pub clusters: Vec<String>,
    /// Who will be able to open it: the controller, and whoever edits it.
    pub groups: Groups<'a>,
    /// Names of Secrets with the identities to open it with; the controller's own when empty.
    pub keys_from: Vec<String>,
    /// How it is written.
    pub write: WriteOptions,
}

/// Seals the manifest of a Secret, YAML or JSON, as the YAML text of an EncryptedSecret.
///
/// # Errors
/// [`EncryptError`]; of a manifest that a cluster would read otherwise than it looks, the place and the way out.
pub fn seal_manifest(
    manifest: &SecretText,
    format: Format,
    options: ManifestOptions<'_>,
) -> Result<String, EncryptError> {
    let text = manifest.expose_secret();
    let document = Document::read(text, format)?;
    check_words(text, &document)?;
    let [part] = document.tree.documents.as_slice() else {
        return Err(EncryptError::Object(
            "the manifest holds more than one document: seal one at a time".to_owned(),
        ));
    };
    let secret = part.root.map_or(Plain::Null, |root| document.tree.plain(root, true));
    let (namespace, name) = place(&secret, options.namespace)?;
    let object = object_of(&secret, &namespace, &name, &options.keys_from)?;
    let clusters = (!options.clusters.is_empty()).then_some(options.clusters);
    let bind = ObjectBind {
        group: GROUP.into(),
        kind: KIND.into(),
        scope: options.scope,
        namespace,
        name,
        clusters,
    };
    let sealing = EncryptOptions {
        groups: options.groups,
        selector: object::selector(),
        mac_only_encrypted: true,
        bind: Some(Bind::Object(bind)),
        write: WriteOptions { seal: true, ..options.write },
    };
    encrypt(&SecretText::new(print_yaml(&object)), Format::Yaml, &sealing)
}

/// Keys and values without quotes that older readers, kubectl among them, take for something else.
fn check_words(text: &str, document: &Document) -> Result<(), ParseError> {
    for node in &document.tree.nodes {
        let NodeKind::Map { entries, .. } = &node.kind else { continue };
        for entry in entries {
            if entry.name == text[entry.place.clone()] && is_yaml_1_1_word(&entry.name) {
                let reason =
                    format!("kubectl reads the key {0} as something else: write \"{0}\"", entry.name);
                return Err(ParseError::at(text, entry.place.start, reason));
            }
        }
    }
    Ok(())
}

fn place(secret: &Plain, namespace: Option<&str>) -> Result<(String, String), EncryptError> {
    let field =
        |pointer: &str| secret.pointer(pointer).and_then(Plain::as_str).filter(|text| !text.is_empty());
    if field("/apiVersion") != Some("v1") || field("/kind") != Some("Secret") {
        return Err(EncryptError::Object(
            "it is not the manifest of a Secret (apiVersion v1, kind Secret)".to_owned(),
        ));
    }
    let name = field("/metadata/name")
        .ok_or_else(|| EncryptError::Object("the manifest has no metadata.name".to_owned()))?;
    let namespace = match (field("/metadata/namespace"), namespace) {
        (Some(own), Some(given)) if own != given => {
            return Err(EncryptError::Object(format!(
                "the manifest is for namespace {own}, and {given} was asked for"
            )));
        }
        (Some(own), _) => own,
        (None, Some(given)) => given,
        (None, None) => {
            let reason =
                "the manifest names no namespace, and the seal binds to one: add it, or give --namespace";
            return Err(EncryptError::Object(reason.to_owned()));
        }
    };
    Ok((namespace.to_owned(), name.to_owned()))
}

/// The object with clear values, its fields in the order that people write and keys in that of an API server.
fn object_of(
    secret: &Plain,
    namespace: &str,
    name: &str,
    keys_from: &[String],
) -> Result<Plain, EncryptError> {
    let fields = ["apiVersion", "kind", "metadata", "type", "immutable", "data", "stringData"];
    let secret = secret.as_object().cloned().unwrap_or_default();
    if let Some(unknown) = secret.keys().find(|key| !fields.contains(&key.as_str())) {
        return Err(EncryptError::Object(format!(
            "the manifest has a field `{unknown}` that a Secret does not have"
        )));
    }
    let mut spec = Map::new();
    for field in ["type", "immutable"] {
        if let Some(value) = secret.get(field).filter(|value| !value.is_null()) {
            spec.insert(field.to_owned(), value.clone());
        }
    }
    let (data, string_data) = (values(&secret, "data")?, values(&secret, "stringData")?);
    for (key, value) in &data {
        let is_base64 = value.as_str().is_some_and(|text| STANDARD.decode(text).is_ok());
        if !is_base64 {
            return Err(EncryptError::Object(format!("data.{key} is not base64: move it to stringData")));
        }
    }
    for (field, values) in [("data", data), ("stringData", string_data)] {
        if !values.is_empty() {
            spec.insert(field.to_owned(), values.into());
        }
    }
    let template = template(&secret);
    if !template.is_empty() {
        spec.insert("template".to_owned(), json!({ "metadata": template }));
    }
    if !keys_from.is_empty() {
        let sources: Vec<Plain> = keys_from.iter().map(|name| json!({"secretRef": {"name": name}})).collect();
        spec.insert("keysFrom".to_owned(), sources.into());
    }
    Ok(json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": { "name": name, "namespace": namespace, "annotations": { FLUX_ANNOTATION: "disabled" } },
        "spec": spec,
    }))
}

/// The values of a field in the order of their keys, each of them text.
fn values(secret: &Map<String, Plain>, field: &str) -> Result<Map<String, Plain>, EncryptError> {
    let mut values = match secret.get(field) {
        None | Some(Plain::Null) => Map::new(),
        Some(Plain::Object(values)) => values.clone(),
        Some(_) => return Err(EncryptError::Object(format!("`{field}` is not a mapping"))),
    };
    if let Some((key, _)) = values.iter().find(|(_, value)| !value.is_string()) {
        return Err(EncryptError::Object(format!(
            "{field}.{key} is not text, and a cluster would refuse it: put it in quotes"
        )));
    }
    values.sort_keys();
    Ok(values)
}

/// Labels and annotations of the Secret, without what only belonged to the manifest.
fn template(secret: &Map<String, Plain>) -> Map<String, Plain> {
    let mut template = Map::new();
    for field in ["labels", "annotations"] {
        let entries =
            secret.get("metadata").and_then(|metadata| metadata.get(field)).and_then(Plain::as_object);
        let mut entries = entries.cloned().unwrap_or_default();
        entries.shift_remove("kubectl.kubernetes.io/last-applied-configuration");
        entries.sort_keys();
        if !entries.is_empty() {
            template.insert(field.to_owned(), entries.into());
        }
    }
    template
}

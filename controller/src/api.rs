//! The objects this controller serves, as the API server knows them.
//!
//! The root of `EncryptedSecret` is written by hand, because `sops` stands beside `spec` where no derive can put it.
//! `spec` and `sops` are kept as the API server sent them: `lacre-crypto` reads them, strictly, and one object that it
//! cannot read must fail alone instead of breaking the watch for all. [`EncryptedSecretSpec`] is what the schema is
//! made from, see [`crd`].

use std::borrow::Cow;
use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Resource;
use kube::api::ObjectMeta;
use kube::core::NamespaceResourceScope;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub mod crd;
pub mod lenient;

/// API group of Lacre's own kinds.
pub const GROUP: &str = "lacre.dev";
/// Version of [`EncryptedSecret`].
pub const VERSION: &str = "v1alpha1";
/// Kind of [`EncryptedSecret`].
pub const KIND: &str = "EncryptedSecret";
/// Plural name of [`EncryptedSecret`] in addresses and roles.
pub const PLURAL: &str = "encryptedsecrets";

/// A sops file that is also a Kubernetes object; the controller turns it into the Secret of the same name.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct EncryptedSecret {
    /// Version of the schema the object is written in.
    #[serde(rename = "apiVersion", default = "api_version")]
    api_version: String,
    /// Always [`KIND`].
    #[serde(default = "kind")]
    kind: String,
    /// Name, namespace, generation and what else is used of what the API server keeps.
    #[serde(default, deserialize_with = "lenient::metadata")]
    pub metadata: ObjectMeta,
    /// What was sealed, as stored; null when it is nested too deep, as is `sops`.
    #[serde(default, deserialize_with = "lenient::value")]
    pub spec: Value,
    /// Recipients, MAC and seal, as stored.
    #[serde(default, deserialize_with = "lenient::value")]
    pub sops: Value,
    /// What the controller last said about the object, as far as it is readable.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "lenient::status")]
    pub status: Option<EncryptedSecretStatus>,
}

fn api_version() -> String {
    format!("{GROUP}/{VERSION}")
}

fn kind() -> String {
    KIND.to_owned()
}

impl EncryptedSecret {
    /// An object with these parts and no status.
    pub fn new(metadata: ObjectMeta, spec: Value, sops: Value) -> Self {
        Self { api_version: api_version(), kind: kind(), metadata, spec, sops, status: None }
    }

    /// The object's namespace; empty only for an object that no API server has seen.
    pub fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// The object's name; empty only for an object that no API server has seen.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// The object's unique id; empty only for an object that no API server has seen.
    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Names of the key Secrets that `spec.keysFrom` lists. Lenient, because it only decides whom a changed key
    /// wakes; what may open the object is read strictly when it is opened.
    pub fn key_secret_names(&self) -> impl Iterator<Item = &str> {
        let sources = self.spec.get("keysFrom").and_then(Value::as_array).into_iter().flatten();
        sources.filter_map(|source| source.pointer("/secretRef/name")?.as_str())
    }
}

impl Resource for EncryptedSecret {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        KIND.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        PLURAL.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The metadata of a Secret, as far as it is used. Requests for it ask the API server for metadata alone.
#[derive(Clone, Debug, Deserialize)]
pub struct SecretMetadata {
    /// Name, namespace, labels and versions.
    #[serde(default, deserialize_with = "lenient::metadata")]
    pub metadata: ObjectMeta,
}

impl Resource for SecretMetadata {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn metadata_api() -> bool {
        true
    }

    fn kind((): &()) -> Cow<'_, str> {
        Secret::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        Secret::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        Secret::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        Secret::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// What is sealed and how the Secret shall look.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.data) || !has(self.stringData) || self.data.all(key, !(key in self.stringData))",
    "message": "data and stringData share a key",
}]))]
pub struct EncryptedSecretSpec {
    /// Type of the Secret; Opaque when absent. It cannot be changed once the Secret exists.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub type_: Option<String>,
    /// Whether the Secret is made immutable: it cannot be changed then until it is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub immutable: Option<bool>,
    /// Sealed values whose plaintext is base64, as in a Secret's data.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crd::sealed_map")]
    pub data: BTreeMap<String, String>,
    /// Sealed values whose plaintext is text, as in a Secret's stringData.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "crd::sealed_map")]
    pub string_data: BTreeMap<String, String>,
    /// Labels and annotations of the Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<SecretTemplate>,
    /// Where the identities are that may open this object. When absent: the controller's own, and no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub keys_from: Vec<KeySource>,
    /// Whether the controller leaves the object and its Secret alone.
    #[serde(default)]
    pub suspend: bool,
}

/// How the Secret shall look beside its data.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretTemplate {
    /// Metadata of the Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<TemplateMetadata>,
}

/// Metadata that a template may set.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TemplateMetadata {
    /// Labels of the Secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// One place where identities come from: exactly one member is set.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeySource {
    /// A Secret in the object's namespace that carries the label lacre.dev/keys=true.
    pub secret_ref: SecretReference,
}

/// A Secret by name.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretReference {
    /// Name of the Secret.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What the controller says about an object.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EncryptedSecretStatus {
    /// Generation of the object that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready always; Reconciling and Stalled only while they are true.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "lenient::conditions")]
    #[schemars(schema_with = "crd::conditions")]
    pub conditions: Vec<Condition>,
    /// The Secret as it was last applied; it stays when a later version of the object fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<AppliedSecret>,
}

/// What was applied last.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedSecret {
    /// Name of the Secret.
    pub name: String,
    /// When the applied version was sealed, RFC 3339.
    pub last_modified: String,
    /// How far the seal reaches: strict, namespace or cluster.
    pub scope: String,
    /// For each key a digest that changes with its value, keyed by the object's data key, so that it answers no guess.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub fingerprints: BTreeMap<String, String>,
}

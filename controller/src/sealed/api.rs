//! `SealedSecret` as the API server has it.
//!
//! `spec` and `status` are kept as they came: `lacre-crypto` reads the first, the report the second, and an object that
//! cannot be read must fail alone instead of breaking the watch for all.

use std::borrow::Cow;

use kube::Resource;
use kube::api::ObjectMeta;
use kube::core::NamespaceResourceScope;
use lacre_crypto::object::sealed_secret::{API_VERSION, GROUP, KIND};
use lacre_crypto::object::{ObjectError, SealedSecret as Sealed};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::lenient;

/// Version of the kind.
const VERSION: &str = "v1alpha1";
/// Its plural name in addresses and roles.
const PLURAL: &str = "sealedsecrets";

/// A Secret whose items only the cluster's sealing keys open.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct SealedSecret {
    /// Version of the schema the object is written in.
    #[serde(rename = "apiVersion", default = "api_version")]
    api_version: String,
    /// Always [`KIND`].
    #[serde(default = "kind")]
    kind: String,
    /// Name, namespace, labels, annotations and versions.
    #[serde(default, deserialize_with = "lenient::annotated_metadata")]
    pub metadata: ObjectMeta,
    /// What was sealed, as stored; null when it is nested too deep.
    #[serde(default, skip_serializing_if = "Value::is_null", deserialize_with = "lenient::value")]
    pub spec: Value,
    /// What was last said about the object, as stored.
    #[serde(default, skip_serializing_if = "Value::is_null", deserialize_with = "lenient::value")]
    pub status: Value,
}

fn api_version() -> String {
    API_VERSION.to_owned()
}

fn kind() -> String {
    KIND.to_owned()
}

impl SealedSecret {
    /// An object with these parts.
    pub fn new(metadata: ObjectMeta, spec: Value, status: Value) -> Self {
        Self { api_version: api_version(), kind: kind(), metadata, spec, status }
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

    /// The object as plain data.
    ///
    /// # Errors
    /// When it is not such an object. One without items is, one without a place for them is not: it would blank the
    /// Secret that an earlier version of it made.
    pub fn read(&self) -> Result<Sealed, ObjectError> {
        if !self.spec.get("encryptedData").is_some_and(Value::is_object) {
            return Err(ObjectError("spec.encryptedData is not an object, or nested too deep".to_owned()));
        }
        let metadata = &self.metadata;
        Sealed::from_json(&json!({
            "metadata": {
                "name": metadata.name,
                "namespace": metadata.namespace,
                "uid": metadata.uid,
                "generation": metadata.generation,
                "labels": metadata.labels,
                "annotations": metadata.annotations,
            },
            "spec": self.spec,
        }))
    }
}

impl Resource for SealedSecret {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_an_author_writes_the_object_is_listed() {
        let deep = "{\"a\":".repeat(200) + "1" + &"}".repeat(200);
        let texts = [
            r#"{"metadata": {"name": "db"}, "spec": {"encryptedData": {"a": 5, "b": null, "c": {}}}}"#.to_owned(),
            r#"{"metadata": {"name": "db", "managedFields": [{"time": "soon"}]}, "spec": 5, "status": "odd"}"#.to_owned(),
            r#"{"metadata": {"name": "db"}, "spec": {"template": []}, "status": {"conditions": [{"lastUpdateTime": 7}]}}"#.to_owned(),
            format!(r#"{{"metadata": {{"name": "db"}}, "spec": {{"template": {{"metadata": {deep}}}}}}}"#),
        ];
        for text in texts {
            assert_eq!(serde_json::from_str::<SealedSecret>(&text).unwrap().name(), "db", "{text}");
        }
    }

    #[test]
    fn an_object_without_a_place_for_items_is_no_empty_one() {
        let of = |spec: Value| SealedSecret::new(ObjectMeta::default(), spec, Value::Null).read();
        for spec in [Value::Null, json!({}), json!({"encryptedData": "x"}), json!({"encryptedData": null})] {
            assert!(of(spec.clone()).is_err(), "{spec}");
        }
        assert!(of(json!({"encryptedData": {}})).is_ok());
    }

    #[test]
    fn annotations_come_along_but_for_the_copy_of_the_object_that_kubectl_keeps_in_them() {
        let text = r#"{"metadata": {"annotations": {
            "sealedsecrets.bitnami.com/cluster-wide": "true",
            "kubectl.kubernetes.io/last-applied-configuration": "{}"
        }}}"#;
        let object: SealedSecret = serde_json::from_str(text).unwrap();
        let names: Vec<_> = object.metadata.annotations.into_iter().flatten().map(|(name, _)| name).collect();
        assert_eq!(names, ["sealedsecrets.bitnami.com/cluster-wide"]);
    }
}

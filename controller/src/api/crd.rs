//! The custom resource definitions, made from the types in [`crate::api`].
//!
//! Plaintext is refused at admission by one rule on each *map* of sealed values. A pattern or rule on a value would
//! print the value that it refuses, and with it the secret, into logs and status of whatever applied it.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, CustomResourceSubresourceStatus,
    CustomResourceSubresources, CustomResourceValidation, JSONSchemaProps,
};
use kube::api::ObjectMeta;
use kube::core::schema::StructuralSchemaRewriter;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema, json_schema};
use serde_json::{Value, json};

use super::{EncryptedSecretSpec, EncryptedSecretStatus, GROUP, KIND, PLURAL, VERSION};

mod sealed;

pub use sealed::sealed_secret;

/// Most keys in one map of sealed values. A bound is what lets the API server estimate the cost of the rule.
pub const SEALED_KEYS_MAX: usize = 512;

/// Most characters of one sealed value: what a Secret of 1 MiB can grow to, and the most etcd would store.
pub const SEALED_VALUE_CHARS_MAX: usize = 1_500_000;

/// Only ENC texts of strings, or empty values, which sops leaves as they are. The full form is checked when the
/// object is opened: a complete pattern would exceed the API server's budget a hundred times.
const SEALED_RULE: &str = "self.all(key, self[key] == '' || \
    (self[key].startsWith('ENC[AES256_GCM,data:') && self[key].endsWith(',type:str]')))";

/// The definition of `EncryptedSecret`.
///
/// # Panics
/// Never on a build that passes its tests: the schema depends on nothing but the types.
pub fn encrypted_secret() -> CustomResourceDefinition {
    CustomResourceDefinition {
        metadata: ObjectMeta { name: Some(format!("{PLURAL}.{GROUP}")), ..ObjectMeta::default() },
        spec: CustomResourceDefinitionSpec {
            group: GROUP.to_owned(),
            names: CustomResourceDefinitionNames {
                kind: KIND.to_owned(),
                list_kind: Some(format!("{KIND}List")),
                plural: PLURAL.to_owned(),
                short_names: Some(vec!["encsec".to_owned()]),
                singular: Some(KIND.to_lowercase()),
                ..CustomResourceDefinitionNames::default()
            },
            scope: "Namespaced".to_owned(),
            versions: vec![version()],
            ..CustomResourceDefinitionSpec::default()
        },
        status: None,
    }
}

fn version() -> CustomResourceDefinitionVersion {
    let schema: JSONSchemaProps =
        serde_json::from_value(root_schema()).expect("the schema has the form that a definition holds");
    CustomResourceDefinitionVersion {
        name: VERSION.to_owned(),
        served: true,
        storage: true,
        additional_printer_columns: Some(vec![
            column("Ready", "string", r#".status.conditions[?(@.type=="Ready")].status"#),
            column("Reason", "string", r#".status.conditions[?(@.type=="Ready")].reason"#),
            column("Age", "date", ".metadata.creationTimestamp"),
        ]),
        schema: Some(CustomResourceValidation { open_api_v3_schema: Some(schema) }),
        subresources: Some(CustomResourceSubresources {
            status: Some(CustomResourceSubresourceStatus(json!({}))),
            ..CustomResourceSubresources::default()
        }),
        ..CustomResourceDefinitionVersion::default()
    }
}

fn column(name: &str, type_: &str, json_path: &str) -> CustomResourceColumnDefinition {
    CustomResourceColumnDefinition {
        name: name.to_owned(),
        type_: type_.to_owned(),
        json_path: json_path.to_owned(),
        ..CustomResourceColumnDefinition::default()
    }
}

fn root_schema() -> Value {
    let mut status = schema_of::<EncryptedSecretStatus>();
    // An object without status counts as done for whoever follows kstatus: until the first look it says that it is not.
    status["default"] = json!({"observedGeneration": -1});
    json!({
        "type": "object",
        "description": "A sops file that is also a Kubernetes object; it becomes the Secret of the same name.",
        "required": ["spec", "sops"],
        "properties": {
            "spec": schema_of::<EncryptedSecretSpec>(),
            "sops": {
                "type": "object",
                "description": "Recipients, MAC and seal of the values in spec, as sops and Lacre write them.",
                "x-kubernetes-preserve-unknown-fields": true,
                "x-kubernetes-map-type": "atomic",
            },
            "status": status,
        },
    })
}

fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .with_transform(StructuralSchemaRewriter);
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    let mut schema = schema.to_value();
    drop_closed_worlds_and_defaults(&mut schema);
    schema
}

/// Takes out what the types say for the reader's sake alone. `additionalProperties: false` has no place in a
/// structural schema, since the API server prunes or refuses unknown fields by itself. A `default` would be written
/// into `spec` by the API server, which GitOps tools then report as drift for ever.
fn drop_closed_worlds_and_defaults(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("additionalProperties") == Some(&Value::Bool(false)) {
                members.remove("additionalProperties");
            }
            if members.contains_key("type") {
                members.remove("default");
            }
            members.values_mut().for_each(drop_closed_worlds_and_defaults);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_closed_worlds_and_defaults),
        _ => {}
    }
}

/// Schema of a map from key to sealed value. Atomic, so that two writers cannot leave stale keys behind.
pub(super) fn sealed_map(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": SEALED_KEYS_MAX,
        "additionalProperties": {"type": "string", "maxLength": SEALED_VALUE_CHARS_MAX},
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-validations": [{"rule": SEALED_RULE, "message": "plaintext refused"}],
    })
}

/// Schema of `metav1.Condition`, a list keyed by type.
pub(super) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {"type": "string", "format": "date-time"},
                "message": {"type": "string", "maxLength": 32_768},
                "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
                "reason": {"type": "string", "minLength": 1, "maxLength": 1024},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "type": {"type": "string", "maxLength": 316},
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(pointer: &str) -> Value {
        root_schema().pointer(pointer).cloned().unwrap_or_default()
    }

    #[test]
    fn sealed_maps_and_the_sops_block_are_replaced_as_a_whole() {
        for map in
            ["/properties/spec/properties/data", "/properties/spec/properties/stringData", "/properties/sops"]
        {
            assert_eq!(schema(map)["x-kubernetes-map-type"], "atomic", "{map}");
        }
    }

    #[test]
    fn rules_stand_on_maps_and_never_on_a_value() {
        for map in ["data", "stringData"] {
            let map = schema(&format!("/properties/spec/properties/{map}"));
            assert!(map["x-kubernetes-validations"].is_array() && map["maxProperties"].is_number());
            let value = map["additionalProperties"].as_object().unwrap();
            assert_eq!(value.keys().collect::<Vec<_>>(), ["type", "maxLength"]);
        }
    }

    #[test]
    fn the_schema_sets_no_defaults_that_gitops_tools_would_see_as_drift() {
        for field in ["spec", "sops"] {
            assert!(!schema(&format!("/properties/{field}")).to_string().contains("\"default\""), "{field}");
        }
    }

    #[test]
    fn the_schema_is_structural() {
        let text = root_schema().to_string();
        for word in ["$ref", "\"additionalProperties\":false", "anyOf", "\"title\"", "$schema"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }
}

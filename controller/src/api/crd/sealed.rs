//! The definition of `SealedSecret`, which clusters that come from Sealed Secrets have already.
//!
//! It accepts and keeps exactly what theirs does, so that one may stand for the other at any time. New are what a person
//! reads: descriptions, and columns that show the condition [`READY`] wherever it stands in the list.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, CustomResourceSubresourceStatus,
    CustomResourceSubresources, CustomResourceValidation, JSONSchemaProps,
};
use kube::api::ObjectMeta;
use serde_json::{Value, json};

use super::column;

/// API group of the kind.
const GROUP: &str = "bitnami.com";
/// Its only version.
const VERSION: &str = "v1alpha1";
/// Its name.
const KIND: &str = "SealedSecret";
/// Its plural name in addresses and roles.
const PLURAL: &str = "sealedsecrets";
/// The condition that Sealed Secrets knows; it stays the first of the list, where its own columns look for it.
const READY: &str = "Synced";

/// The definition of `SealedSecret`.
///
/// # Panics
/// Never on a build that passes its tests: the schema is a constant.
pub fn sealed_secret() -> CustomResourceDefinition {
    CustomResourceDefinition {
        metadata: ObjectMeta { name: Some(format!("{PLURAL}.{GROUP}")), ..ObjectMeta::default() },
        spec: CustomResourceDefinitionSpec {
            group: GROUP.to_owned(),
            names: CustomResourceDefinitionNames {
                kind: KIND.to_owned(),
                list_kind: Some(format!("{KIND}List")),
                plural: PLURAL.to_owned(),
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
        additional_printer_columns: Some(columns()),
        schema: Some(CustomResourceValidation { open_api_v3_schema: Some(schema) }),
        subresources: Some(CustomResourceSubresources {
            status: Some(CustomResourceSubresourceStatus(json!({}))),
            ..CustomResourceSubresources::default()
        }),
        ..CustomResourceDefinitionVersion::default()
    }
}

fn columns() -> Vec<CustomResourceColumnDefinition> {
    let of_condition = |member: &str| format!(r#".status.conditions[?(@.type=="{READY}")].{member}"#);
    vec![
        column("Status", "string", &of_condition("message")),
        column("Synced", "string", &of_condition("status")),
        column("Age", "date", ".metadata.creationTimestamp"),
    ]
}

fn root_schema() -> Value {
    json!({
        "type": "object",
        "description": "A Secret whose values only the controller of one cluster can open; it becomes the Secret of the same name.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec(),
            "status": status(),
        },
    })
}

fn spec() -> Value {
    json!({
        "type": "object",
        "description": "The sealed values and what the Secret looks like beside them.",
        "required": ["encryptedData"],
        "properties": {
            "data": {
                "type": "string",
                "format": "byte",
                "description": "A whole Secret sealed at once, as the first releases of Sealed Secrets wrote it.",
            },
            "encryptedData": {
                "type": "object",
                "description": "Sealed values by key, base64.",
                "additionalProperties": {"type": "string"},
                "x-kubernetes-preserve-unknown-fields": true,
            },
            "template": {
                "type": "object",
                "description": "What the Secret looks like.",
                "properties": {
                    "data": {
                        "type": "object",
                        "nullable": true,
                        "description": "Templates of values, over the opened ones; null leaves the opened value of that key out.",
                        "additionalProperties": {"type": "string"},
                    },
                    "immutable": {
                        "type": "boolean",
                        "description": "Whether the values of the Secret can never be changed.",
                    },
                    "metadata": template_metadata(),
                    "type": {"type": "string", "description": "Type of the Secret; Opaque when absent."},
                },
            },
        },
    })
}

fn template_metadata() -> Value {
    let strings = json!({"type": "object", "additionalProperties": {"type": "string"}});
    json!({
        "type": "object",
        "nullable": true,
        "description": "Metadata of the Secret. Its name and namespace are those of the SealedSecret, whatever stands here.",
        "properties": {
            "annotations": strings,
            "finalizers": {"type": "array", "items": {"type": "string"}},
            "labels": strings,
            "name": {"type": "string"},
            "namespace": {"type": "string"},
        },
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

fn status() -> Value {
    let time = |about: &str| json!({"type": "string", "format": "date-time", "description": about});
    let text = |about: &str| json!({"type": "string", "description": about});
    json!({
        "type": "object",
        "description": "What the controller says about the object.",
        "properties": {
            "conditions": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["status", "type"],
                    "properties": {
                        "lastTransitionTime": time("When the status last became another one."),
                        "lastUpdateTime": time("When anything of the condition was last written."),
                        "message": text("What is wrong, in words."),
                        "observedGeneration": {"type": "integer", "format": "int64"},
                        "reason": text("What is wrong, in one word."),
                        "status": text("True, False or Unknown."),
                        "type": text("Synced first."),
                    },
                },
            },
            "observedGeneration": {
                "type": "integer",
                "format": "int64",
                "description": "Generation of the object that this status is about.",
            },
        },
    })
}

//! Objects in the form in which the tools of Kubernetes print them: JSON with the fields of a type in the order in which
//! the type has them, YAML with all of them by name.
//!
//! Scripts cut lines out of it and repositories hold it, so that every byte is theirs.

mod json;
mod yaml;

use serde_json::{Map, Value};

use crate::error::{CommandError, Kind};

/// The form of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Indented by two.
    Json,
    /// After a line of three dashes.
    Yaml,
}

impl Form {
    /// The form that `word` names, in letters of any case; JSON for no word.
    pub(crate) fn from_word(word: &str) -> Result<Self, CommandError> {
        match word.to_lowercase().as_str() {
            "" | "json" => Ok(Self::Json),
            "yaml" => Ok(Self::Yaml),
            _ => Err(CommandError::new(Kind::General, format!("unsupported output format: {word}"))
                .hint("it is json or yaml")),
        }
    }

    /// `object` in this form, with the line break at its end.
    pub(crate) fn print(self, object: &Value) -> String {
        match self {
            Self::Json => format!("{}\n", json::print(&in_order(object))),
            Self::Yaml => format!("---\n{}", yaml::print(object)),
        }
    }
}

/// Fields of objects, in their order.
const OBJECT: &[&str] =
    &["kind", "apiVersion", "metadata", "spec", "status", "immutable", "data", "stringData", "type"];
/// Fields of metadata, in their order.
const METADATA: &[&str] = &[
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];
/// Fields of the specification of a SealedSecret, in their order.
const SPEC: &[&str] = &["template", "data", "encryptedData"];
/// Fields of its template, in their order.
const TEMPLATE: &[&str] = &["metadata", "type", "immutable", "data"];
/// Fields of a reference to an owner, in their order.
const OWNER: &[&str] = &["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
/// Fields of an entry that says who manages what, in their order.
const MANAGED: &[&str] =
    &["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource"];

/// The object with its fields in the order of their types, and the keys of maps in their own.
fn in_order(object: &Value) -> Value {
    ordered(object, &mut Vec::new())
}

fn ordered<'v>(value: &'v Value, path: &mut Vec<&'v str>) -> Value {
    match value {
        // Kept there as the bytes that came in.
        raw if path.last() == Some(&"fieldsV1") => raw.clone(),
        Value::Object(map) => {
            let known = fields(path);
            let rank = |key: &str| known.iter().position(|field| *field == key).unwrap_or(known.len());
            let mut entries: Vec<(&String, &Value)> = map.iter().collect();
            entries.sort_by(|(first, _), (second, _)| (rank(first), first).cmp(&(rank(second), second)));
            let mut sorted = Map::new();
            for (key, value) in entries {
                path.push(key);
                sorted.insert(key.clone(), ordered(value, path));
                path.pop();
            }
            Value::Object(sorted)
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| ordered(item, path)).collect()),
        other => other.clone(),
    }
}

fn fields(path: &[&str]) -> &'static [&'static str] {
    match path {
        [] => OBJECT,
        ["metadata"] | ["spec", "template", "metadata"] => METADATA,
        ["spec"] => SPEC,
        ["spec", "template"] => TEMPLATE,
        [.., "metadata", "ownerReferences"] => OWNER,
        [.., "metadata", "managedFields"] => MANAGED,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_has_fields_in_the_order_of_types() {
        let object = json!({
            "apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret",
            "spec": {"encryptedData": {"b": "1", "a": "<&>"}, "template": {"type": "Opaque", "metadata": {"namespace": "n", "name": "x"}}},
            "metadata": {"namespace": "n", "annotations": {}, "name": "x"},
        });
        let expected = "{\n  \"kind\": \"SealedSecret\",\n  \"apiVersion\": \"bitnami.com/v1alpha1\",\n  \"metadata\": {\n    \
            \"name\": \"x\",\n    \"namespace\": \"n\",\n    \"annotations\": {}\n  },\n  \"spec\": {\n    \"template\": {\n      \
            \"metadata\": {\n        \"name\": \"x\",\n        \"namespace\": \"n\"\n      },\n      \"type\": \"Opaque\"\n    },\n    \
            \"encryptedData\": {\n      \"a\": \"\\u003c\\u0026\\u003e\",\n      \"b\": \"1\"\n    }\n  }\n}\n";
        assert_eq!(Form::Json.print(&object), expected);
    }

    #[test]
    fn forms_are_named_in_any_case() {
        assert_eq!(Form::from_word("YAML").unwrap(), Form::Yaml);
        assert_eq!(Form::from_word("").unwrap(), Form::Json);
        let error = Form::from_word("toml").unwrap_err();
        assert_eq!(error.cause.to_string(), "unsupported output format: toml");
    }
}

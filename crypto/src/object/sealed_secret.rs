//! `SealedSecret` (bitnami.com/v1alpha1) as plain data: read, opened, verified and made.
//!
//! The object is read leniently where one bad item must fail alone (nothing is worse than a watch that stops at an object
//! of somebody else), and written as its own client writes it. Scope, namespace and name that decide about opening are
//! those of the object itself, never those of its template. Who owns the Secret that results, and whether it is written,
//! is the controller's to say; which keys there are and in which order they are tried is the caller's.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::ObjectError;

pub mod diagnosis;
mod legacy;
pub mod open;
pub mod reseal;
pub mod rewrap;
pub mod scope;
pub mod seal;
pub mod unseal_error;

pub use diagnosis::{Cause, Diagnosis, ItemPlace};
pub use open::{MissingKey, PlainSecret, TEMPLATES_MAX, UnsealOptions};
pub use reseal::{Extent, ResealError, Resealed};
pub use rewrap::{SealedManifest, SealedObject};
pub use scope::ItemScope;
pub use seal::{SealSecretError, SealSecretOptions, is_nothing, seal_secret};
pub use unseal_error::{ItemFailure, TemplateFailure, UnsealError};

/// API group of the kind.
pub const GROUP: &str = "bitnami.com";
/// `apiVersion` of the kind.
pub const API_VERSION: &str = "bitnami.com/v1alpha1";
/// The kind.
pub const KIND: &str = "SealedSecret";

/// One object as the API server or a manifest has it.
#[derive(Clone, Debug, PartialEq)]
pub struct SealedSecret {
    /// Namespace of the object itself; empty where a manifest leaves it to whoever applies it.
    pub namespace: String,
    /// Name of the object itself.
    pub name: String,
    /// Its UID; empty in a manifest.
    pub uid: String,
    /// Its generation, in a cluster.
    pub generation: Option<i64>,
    /// Its own labels.
    pub labels: BTreeMap<String, String>,
    /// Its own annotations.
    pub annotations: BTreeMap<String, String>,
    /// The scope that its own annotations say.
    pub scope: ItemScope,
    /// Its items as base64. What is no text stands here as an empty one, which never opens.
    pub items: BTreeMap<String, String>,
    /// The single blob of the first version, as base64.
    pub legacy_data: Option<String>,
    /// What the Secret is made with besides the items.
    pub template: Template,
}

/// The clear part of the Secret that results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Template {
    /// Its metadata; namespace and name in it mean nothing.
    pub metadata: Map<String, Value>,
    /// Its type; empty means `Opaque`.
    pub type_: String,
    /// Whether it may never change.
    pub immutable: Option<bool>,
    /// Templates over the items, by key. Nothing in place of a text drops the key from the Secret.
    pub data: BTreeMap<String, Option<String>>,
}

impl SealedSecret {
    /// The object in `value`.
    ///
    /// # Errors
    /// When it is of another kind, or a member other than an item has a type that the API server would refuse.
    pub fn from_json(value: &Value) -> Result<Self, ObjectError> {
        let root = value.as_object().ok_or_else(|| ObjectError::new("it is no object"))?;
        for (field, expected) in [("apiVersion", API_VERSION), ("kind", KIND)] {
            // The members of a list come without them.
            let found = text(root, field)?;
            if !found.is_empty() && found != expected {
                return Err(ObjectError::new(format!("its {field} is {found}, not {expected}")));
            }
        }
        let empty = Map::new();
        let metadata = object(root, "metadata")?.unwrap_or(&empty);
        let spec = object(root, "spec")?.unwrap_or(&empty);
        let annotations = texts(metadata, "annotations")?;
        Ok(Self {
            namespace: text(metadata, "namespace")?,
            name: text(metadata, "name")?,
            uid: text(metadata, "uid")?,
            generation: metadata.get("generation").and_then(Value::as_i64),
            labels: texts(metadata, "labels")?,
            scope: ItemScope::from_annotations(&annotations),
            annotations,
            items: items(spec.get("encryptedData")),
            legacy_data: member(spec, "data", "text", |value| value.as_str().map(str::to_owned))?,
            template: object(spec, "template")?.map_or(Ok(Template::default()), Template::read)?,
        })
    }

    /// The label that its items are bound to.
    pub fn label(&self) -> Vec<u8> {
        self.scope.label(&self.namespace, &self.name)
    }
}

impl Template {
    fn read(template: &Map<String, Value>) -> Result<Self, ObjectError> {
        let mut data = BTreeMap::new();
        for (key, value) in object(template, "data")?.into_iter().flatten() {
            let value = match value {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                _ => return Err(ObjectError::new(format!("spec.template.data.{key} is no text: quote it"))),
            };
            data.insert(key.clone(), value);
        }
        Ok(Self {
            metadata: object(template, "metadata")?.cloned().unwrap_or_default(),
            type_: text(template, "type")?,
            immutable: member(template, "immutable", "true or false", Value::as_bool)?,
            data,
        })
    }

    /// An annotation of the Secret that results.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata.get("annotations")?.get(name)?.as_str()
    }
}

/// The member as `read` takes it; absent and null are the same.
fn member<'a, T>(
    parent: &'a Map<String, Value>,
    name: &str,
    expected: &str,
    read: impl Fn(&'a Value) -> Option<T>,
) -> Result<Option<T>, ObjectError> {
    match parent.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match read(value) {
            Some(read) => Ok(Some(read)),
            None => Err(ObjectError::new(format!("its {name} is not {expected}"))),
        },
    }
}

fn object<'a>(
    parent: &'a Map<String, Value>,
    name: &str,
) -> Result<Option<&'a Map<String, Value>>, ObjectError> {
    member(parent, name, "an object", Value::as_object)
}

fn text(parent: &Map<String, Value>, name: &str) -> Result<String, ObjectError> {
    member(parent, name, "text", |value| value.as_str().map(str::to_owned)).map(Option::unwrap_or_default)
}

fn texts(parent: &Map<String, Value>, name: &str) -> Result<BTreeMap<String, String>, ObjectError> {
    let mut texts = BTreeMap::new();
    for (key, value) in object(parent, name)?.into_iter().flatten() {
        let text = match value {
            Value::Null => "",
            Value::String(text) => text,
            _ => return Err(ObjectError::new(format!("{key} in its {name} is no text: quote it"))),
        };
        texts.insert(key.clone(), text.to_owned());
    }
    Ok(texts)
}

/// The items, where the schema lets anything through and the object's own controller swallows every type.
fn items(value: Option<&Value>) -> BTreeMap<String, String> {
    let items = value.and_then(Value::as_object).into_iter().flatten();
    items.map(|(name, item)| (name.clone(), item.as_str().unwrap_or_default().to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Result<SealedSecret, String> {
        SealedSecret::from_json(value).map_err(|error| error.0)
    }

    #[test]
    fn one_bad_item_does_not_hide_the_others() {
        let object = json!({"spec": {"encryptedData": {"a": "x", "b": 5, "c": null, "d": {}, "e": ["x"]}}});
        let items = read(&object).unwrap().items;
        let of = |name: &str| items[name].as_str();
        assert_eq!([of("a"), of("b"), of("c"), of("d"), of("e")], ["x", "", "", "", ""]);
        for odd in [json!("text"), json!(5), json!(null), json!(["a"])] {
            assert!(read(&json!({"spec": {"encryptedData": odd}})).unwrap().items.is_empty());
        }
    }

    #[test]
    fn another_kind_and_other_types_are_refused() {
        for (object, part) in [
            (json!([]), "no object"),
            (json!({"kind": "Secret"}), "its kind is Secret"),
            (json!({"apiVersion": "bitnami.com/v1"}), "its apiVersion is bitnami.com/v1"),
            (json!({"kind": 5}), "its kind is not text"),
            (json!({"metadata": {"name": 5}}), "its name is not text"),
            (json!({"metadata": {"annotations": {"a": true}}}), "a in its annotations is no text"),
            (json!({"spec": []}), "its spec is not an object"),
            (json!({"spec": {"data": 5}}), "its data is not text"),
            (json!({"spec": {"template": {"immutable": "yes"}}}), "its immutable is not true or false"),
            (json!({"spec": {"template": {"data": {"k": 5}}}}), "spec.template.data.k is no text"),
        ] {
            let error = read(&object).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn the_scope_is_that_of_the_object_and_not_of_its_template() {
        let wide = json!({"annotations": {"sealedsecrets.bitnami.com/cluster-wide": "true"}});
        let object = json!({"metadata": {"namespace": "shop", "name": "db"},
            "spec": {"template": {"metadata": wide.clone()}}});
        assert_eq!(read(&object).unwrap().label(), b"shop/db");
        assert_eq!(read(&json!({"metadata": wide})).unwrap().label(), b"");
    }

    #[test]
    fn a_null_in_the_template_is_told_from_an_absent_key() {
        let object = json!({"spec": {"template": {"data": {"a": null, "b": ""}}}});
        let data = read(&object).unwrap().template.data;
        assert_eq!(data, BTreeMap::from([("a".to_owned(), None), ("b".to_owned(), Some(String::new()))]));
    }
}

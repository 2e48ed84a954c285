//! From a Secret's manifest to a SealedSecret, with the cleaning rules and the field order of its own client.
//!
//! What is read here as JSON was YAML or JSON before: which scalars a reader may take for text is settled by who read it.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Value, json};

use super::{API_VERSION, ItemScope, KIND, member, object, scope, text, texts};
use crate::object::ObjectError;
use crate::parallel;
use crate::sealed_item::{self, SealedItemError, base64_text};
use crate::sealing_key::PublicSealingKey;
use crate::secret::SecretBytes;

/// Metadata of an object that lives: it says nothing about the one that will be made.
const LIVE_FIELDS: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];
/// Annotations that hold a copy of the whole object, values included.
const COPY_ANNOTATIONS: [&str; 2] =
    ["kubectl.kubernetes.io/last-applied-configuration", "kubecfg.ksonnet.io/last-applied-configuration"];
/// Fields of metadata in the order in which they are written.
const METADATA_ORDER: [&str; 7] =
    ["name", "generateName", "namespace", "labels", "annotations", "finalizers", "managedFields"];

/// How a Secret is sealed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SealSecretOptions<'a> {
    /// The scope. Nothing, and the strict one, mean what the manifest's annotations say.
    pub scope: Option<ItemScope>,
    /// A name that takes the place of the manifest's.
    pub name: Option<&'a str>,
    /// A namespace that takes the place of the manifest's.
    pub namespace: Option<&'a str>,
    /// The namespace of a manifest that has none.
    pub default_namespace: Option<&'a str>,
    /// Whether somebody asked for [`SealSecretOptions::default_namespace`], so that another one in the manifest is a
    /// contradiction.
    pub default_namespace_is_explicit: bool,
    /// Whether a Secret without values is sealed.
    pub allow_empty_data: bool,
}

/// Why a Secret is not sealed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealSecretError {
    /// There is no value in it.
    #[error(
        "secret.data is empty in input Secret, assuming this is an error and aborting. To work with empty data, --allow-empty-data can be used"
    )]
    Empty,
    /// A value of `data` is not base64.
    #[error("data.{key} is not base64 from byte {at} on: encode it, or move it to stringData")]
    InvalidBase64 {
        /// The key.
        key: String,
        /// Where, counted from 0.
        at: usize,
    },
    /// A value is not text.
    #[error("{field}.{key} is not text: quote it")]
    NotText {
        /// `data` or `stringData`.
        field: &'static str,
        /// The key.
        key: String,
    },
    /// It has no name.
    #[error("missing metadata.name in input Secret")]
    NoName,
    /// Its scope needs a namespace and it has none.
    #[error("secret must declare a namespace")]
    NoNamespace,
    /// It is for one namespace and another was asked for.
    #[error("namespace mismatch: input secret is in namespace {found:?} but {asked:?} was specified")]
    NamespaceMismatch {
        /// That of the manifest.
        found: String,
        /// That of the command.
        asked: String,
    },
    /// It is no Secret, or a member has a wrong type.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The cipher failed.
    #[error(transparent)]
    Item(#[from] SealedItemError),
}

/// The SealedSecret of a `v1` Secret, with its fields in the order in which their own client prints them.
///
/// # Errors
/// See [`SealSecretError`]: nothing is sealed in part.
pub fn seal_secret(
    secret: &Value,
    key: &PublicSealingKey,
    options: &SealSecretOptions<'_>,
) -> Result<Value, SealSecretError> {
    let root = secret.as_object().ok_or_else(|| ObjectError::new("it is no object"))?;
    check_kind(root)?;
    let values = values(root)?;
    if values.is_empty() && !options.allow_empty_data {
        return Err(SealSecretError::Empty);
    }
    let place = Place::of(root, options)?;
    let label = place.scope.label(&place.namespace, &place.name);
    let mut spec = Map::new();
    spec.insert("template".to_owned(), template(root, &place)?);
    spec.insert("encryptedData".to_owned(), Value::Object(seal_values(key, &label, &values)?));
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), place.name.clone().into());
    if !place.namespace.is_empty() {
        metadata.insert("namespace".to_owned(), place.namespace.clone().into());
    }
    if let Some(annotation) = place.scope.annotation() {
        metadata.insert("annotations".to_owned(), json!({ annotation: scope::ANNOTATION_ON }));
    }
    Ok(json!({"kind": KIND, "apiVersion": API_VERSION, "metadata": metadata, "spec": spec}))
}

fn check_kind(root: &Map<String, Value>) -> Result<(), ObjectError> {
    for (field, expected) in [("apiVersion", "v1"), ("kind", "Secret")] {
        let found = text(root, field)?;
        // A document without either is read as what was asked for.
        if !found.is_empty() && found != expected {
            return Err(ObjectError::new(format!("its {field} is {found}, and a {expected} is sealed")));
        }
    }
    Ok(())
}

/// Where the items will open, and what the object and its Secret are called.
struct Place {
    name: String,
    namespace: String,
    scope: ItemScope,
    annotations: BTreeMap<String, String>,
}

impl Place {
    fn of(root: &Map<String, Value>, options: &SealSecretOptions<'_>) -> Result<Self, SealSecretError> {
        let empty = Map::new();
        let metadata = object(root, "metadata")?.unwrap_or(&empty);
        let said = |option: Option<&str>, field| match option.filter(|text| !text.is_empty()) {
            Some(text) => Ok(text.to_owned()),
            None => text(metadata, field),
        };
        let (name, mut namespace) = (said(options.name, "name")?, said(options.namespace, "namespace")?);
        if name.is_empty() {
            return Err(SealSecretError::NoName);
        }
        let mut annotations = texts(metadata, "annotations")?;
        if let Some(wide) = options.scope.filter(|scope| *scope != ItemScope::Strict) {
            annotations.remove(scope::CLUSTER_WIDE_ANNOTATION);
            annotations.remove(scope::NAMESPACE_WIDE_ANNOTATION);
            let annotation = wide.annotation().map(str::to_owned);
            annotations.extend(annotation.map(|name| (name, scope::ANNOTATION_ON.to_owned())));
        }
        let scope = ItemScope::from_annotations(&annotations);
        if scope != ItemScope::ClusterWide {
            let asked = options.default_namespace.unwrap_or_default();
            let is_other = !namespace.is_empty() && namespace != asked;
            if options.default_namespace_is_explicit && is_other {
                return Err(SealSecretError::NamespaceMismatch { found: namespace, asked: asked.to_owned() });
            }
            if namespace.is_empty() {
                namespace = asked.to_owned();
            }
            if namespace.is_empty() {
                return Err(SealSecretError::NoNamespace);
            }
        }
        COPY_ANNOTATIONS.iter().for_each(|name| drop(annotations.remove(*name)));
        Ok(Self { name, namespace, scope, annotations })
    }
}

/// The Secret without its values, and without what belongs to a living object.
fn template(root: &Map<String, Value>, place: &Place) -> Result<Value, ObjectError> {
    let mut found = object(root, "metadata")?.cloned().unwrap_or_default();
    found.retain(|field, value| !LIVE_FIELDS.contains(&field.as_str()) && !is_nothing(value));
    let set = |found: &mut Map<String, Value>, field: &str, text: &str| match text.is_empty() {
        true => drop(found.remove(field)),
        false => drop(found.insert(field.to_owned(), text.into())),
    };
    set(&mut found, "name", &place.name);
    set(&mut found, "namespace", &place.namespace);
    found.remove("annotations");
    if !place.annotations.is_empty() {
        found.insert("annotations".to_owned(), json!(place.annotations));
    }
    let labels = texts(&found, "labels")?;
    if !labels.is_empty() {
        found.insert("labels".to_owned(), json!(labels));
    }
    let known = METADATA_ORDER.iter().filter_map(|field| found.get_key_value(*field));
    let metadata: Map<_, _> = known.map(|(field, value)| (field.clone(), value.clone())).collect();
    let mut template = Map::new();
    template.insert("metadata".to_owned(), Value::Object(metadata));
    let type_ = text(root, "type")?;
    if !type_.is_empty() {
        template.insert("type".to_owned(), type_.into());
    }
    if let Some(immutable) = member(root, "immutable", "true or false", Value::as_bool)? {
        template.insert("immutable".to_owned(), immutable.into());
    }
    Ok(Value::Object(template))
}

/// Whether clients of Kubernetes leave the value of a field out when they write it.
pub fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// All values; clear ones win.
fn values(root: &Map<String, Value>) -> Result<BTreeMap<String, SecretBytes>, SealSecretError> {
    let mut values = BTreeMap::new();
    for field in ["data", "stringData"] {
        for (key, value) in object(root, field)?.into_iter().flatten() {
            let text = match value {
                Value::Null => "",
                Value::String(text) => text,
                _ => return Err(SealSecretError::NotText { field, key: key.clone() }),
            };
            let bytes = match field {
                "data" => base64_text::decode(text)
                    .map(SecretBytes::new)
                    .map_err(|at| SealSecretError::InvalidBase64 { key: key.clone(), at })?,
                _ => SecretBytes::from(text),
            };
            values.insert(key.clone(), bytes);
        }
    }
    Ok(values)
}

fn seal_values(
    key: &PublicSealingKey,
    label: &[u8],
    values: &BTreeMap<String, SecretBytes>,
) -> Result<Map<String, Value>, SealedItemError> {
    let values: Vec<_> = values.iter().collect();
    let work = |range: Range<usize>| {
        let seal = |(name, value): &(&String, &SecretBytes)| {
            sealed_item::seal(key, label, value).map(|item| ((*name).clone(), Value::String(item)))
        };
        values[range].iter().map(seal).collect::<Vec<_>>()
    };
    parallel::by_processors(values.len(), work).into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The unused half of it: the cleaning needs no key.
    fn place(secret: &Value, options: &SealSecretOptions<'_>) -> Result<Place, String> {
        Place::of(secret.as_object().unwrap(), options).map_err(|error| error.to_string())
    }

    #[test]
    fn what_belongs_to_a_living_object_does_not_go_into_the_template() {
        let secret = json!({"metadata": {"uid": "1", "labels": {"b": "2", "a": "1"}, "name": "db",
            "namespace": "shop", "resourceVersion": "5", "finalizers": ["x"], "generateName": "g",
            "creationTimestamp": null, "ownerReferences": [{}], "unknown": "u",
            "annotations": {"note": "n", "kubectl.kubernetes.io/last-applied-configuration": "{}"}},
            "type": "Opaque", "immutable": false, "data": {"a": "YQ=="}});
        let place = place(&secret, &SealSecretOptions::default()).unwrap();
        let template = template(secret.as_object().unwrap(), &place).unwrap();
        assert_eq!(
            template.to_string(),
            r#"{"metadata":{"name":"db","generateName":"g","namespace":"shop","labels":{"a":"1","b":"2"},"annotations":{"note":"n"},"finalizers":["x"]},"type":"Opaque","immutable":false}"#
        );
    }

    #[test]
    fn place_and_scope_follow_what_was_said() {
        let secret = json!({"metadata": {"name": "db"}});
        let default = SealSecretOptions { default_namespace: Some("shop"), ..Default::default() };
        assert_eq!(place(&secret, &default).unwrap().namespace, "shop");
        let wide = SealSecretOptions { scope: Some(ItemScope::ClusterWide), ..default };
        assert_eq!(place(&secret, &wide).unwrap().namespace, "");
        let over = SealSecretOptions { name: Some("x"), namespace: Some("y"), ..default };
        let over = place(&secret, &over).unwrap();
        assert_eq!((over.name.as_str(), over.namespace.as_str()), ("x", "y"));
        let both = json!({"metadata": {"name": "db", "namespace": "a", "annotations":
            {"sealedsecrets.bitnami.com/cluster-wide": "true"}}});
        let narrower = SealSecretOptions { scope: Some(ItemScope::NamespaceWide), ..Default::default() };
        let narrower = place(&both, &narrower).unwrap();
        assert_eq!(narrower.scope, ItemScope::NamespaceWide);
        assert_eq!(narrower.annotations.len(), 1);
    }

    #[test]
    fn what_cannot_be_sealed_is_refused() {
        let none = SealSecretOptions::default();
        let explicit =
            SealSecretOptions { default_namespace: Some("b"), default_namespace_is_explicit: true, ..none };
        for (secret, options, part) in [
            (json!({}), none, "missing metadata.name"),
            (json!({"metadata": {"name": "x"}}), none, "must declare a namespace"),
            (json!({"metadata": {"name": "x", "namespace": "a"}}), explicit, "namespace mismatch"),
            (json!({"metadata": {"name": 5}}), none, "its name is not text"),
            (json!({"metadata": {"name": "x", "annotations": {"a": 1}}}), none, "a in its annotations"),
        ] {
            let error = place(&secret, &options).err().unwrap();
            assert!(error.contains(part), "{error}");
        }
        for (secret, part) in [
            (json!({"data": {"k": 5}}), "data.k is not text"),
            (json!({"data": {"k": "a b"}}), "data.k is not base64 from byte 1"),
            (json!({"stringData": {"k": true}}), "stringData.k is not text"),
            (json!({"stringData": []}), "its stringData is not an object"),
        ] {
            let error = values(secret.as_object().unwrap()).err().unwrap().to_string();
            assert!(error.contains(part), "{error}");
        }
        assert!(check_kind(json!({"kind": "ConfigMap"}).as_object().unwrap()).is_err());
    }

    #[test]
    fn clear_values_win_and_null_is_empty() {
        let secret = json!({"data": {"a": "b25l", "b": "b25l", "c": null}, "stringData": {"b": "two"}});
        let values = values(secret.as_object().unwrap()).unwrap();
        let of = |key: &str| values[key].expose_secret();
        assert_eq!([of("a"), of("b"), of("c")], [&b"one"[..], b"two", b""]);
    }
}

//! Makes the Secret what it shall be: creates it by POST, replaces it by PUT in the very version that was read.
//!
//! Guarantees: what is equal already is not written, whoever wrote it; of a Secret that is there only values, labels,
//! annotations and owners change; a change that the API server refuses for ever is not sent. Whether the Secret may be
//! written at all is for [`super::target`] to say, and is said of the version that is replaced.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource;
use kube::api::{Api, DeleteParams, ObjectMeta, PostParams, Preconditions};
use lacre_crypto::object::sealed_secret::scope::ANNOTATION_ON;
use lacre_crypto::secret::SecretBytes;
use serde_json::{Map, Value};

use super::api::SealedSecret;
use super::target::{MANAGER, MANAGER_OF_PATCHES, MANAGER_WITHOUT_OWNER, SKIP_OWNER};
use super::unseal::Opened;
use crate::apply::PlainSecret;
use crate::error::{Failure, Reason};

/// The type of Secrets that name none.
const OPAQUE: &str = "Opaque";

/// What the names begin with under which Secrets are tried out.
const TRIED_NAME: &str = "lacre-tried-";

/// What of a template's metadata a Secret takes. All the rest is the API server's to set, and would only make it refuse
/// the Secret.
const TEMPLATE_FIELDS: [&str; 5] = ["annotations", "finalizers", "generateName", "labels", "ownerReferences"];

type Texts = BTreeMap<String, String>;

/// The Secret as it shall be.
pub struct Wanted {
    metadata: ObjectMeta,
    type_: String,
    immutable: Option<bool>,
    data: BTreeMap<String, SecretBytes>,
    has_owner: bool,
    opened_by: Vec<String>,
}

impl Wanted {
    /// What `object`, once opened, wants its Secret to be.
    ///
    /// # Errors
    /// [`Reason::InvalidObject`] when the template's metadata is none.
    pub fn new(object: &SealedSecret, opened: Opened) -> Result<Self, Failure> {
        let Opened { secret, keys } = opened;
        let mut metadata = template_metadata(&secret.metadata)?;
        metadata.name = object.metadata.name.clone();
        metadata.namespace = object.metadata.namespace.clone();
        let skips = metadata.annotations.as_ref().and_then(|annotations| annotations.get(SKIP_OWNER));
        let has_owner = skips.is_none_or(|value| value != ANNOTATION_ON);
        if has_owner {
            metadata.owner_references = Some(object.controller_owner_ref(&()).into_iter().collect());
        }
        Ok(Self {
            metadata,
            type_: secret.type_,
            immutable: secret.immutable,
            data: secret.data,
            has_owner,
            opened_by: keys,
        })
    }

    /// Its type; never empty.
    pub fn type_(&self) -> &str {
        if self.type_.is_empty() { OPAQUE } else { &self.type_ }
    }

    /// Its metadata.
    pub fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    /// Whether the object shall own it.
    pub fn has_owner(&self) -> bool {
        self.has_owner
    }

    /// Names of the keys that opened it.
    pub fn opened_by(&self) -> &[String] {
        &self.opened_by
    }

    fn manager(&self) -> &'static str {
        if self.has_owner { MANAGER } else { MANAGER_WITHOUT_OWNER }
    }

    fn new_secret(&self) -> PlainSecret {
        let values = self.data.iter().map(|(key, value)| (key.clone(), value.expose_secret()));
        PlainSecret::build(self.metadata.clone(), self.type_().to_owned(), self.immutable, values)
    }
}

fn template_metadata(template: &Map<String, Value>) -> Result<ObjectMeta, Failure> {
    let taken =
        TEMPLATE_FIELDS.iter().filter_map(|field| Some((field.to_string(), template.get(*field)?.clone())));
    // The words of the reader may repeat what it cannot read.
    serde_json::from_value(Value::Object(taken.collect()))
        .map_err(|_| Failure::new(Reason::InvalidObject, "spec.template.metadata is no metadata of a Secret"))
}

/// How a live Secret is brought in line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// It becomes exactly what is wanted.
    Whole,
    /// What is wanted is added to it; its owners are replaced only if `take_over`.
    Added {
        /// Whether the object becomes its owner.
        take_over: bool,
    },
}

/// A Secret in its next version.
pub struct Revision {
    secret: PlainSecret,
    /// Names of what changes: keys, labels, annotations, owners. Nothing when the live Secret is as it shall be.
    pub changes: Vec<String>,
    manager: &'static str,
}

/// Why a live Secret cannot be brought in line by writing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fixed {
    /// It is immutable, and these keys differ.
    Immutable(Vec<String>),
    /// It is of another type, this one.
    Type(String),
}

/// The next version of `live`.
///
/// # Errors
/// When only another Secret could be what is wanted.
pub fn revise(live: &PlainSecret, wanted: &Wanted, extent: Extent) -> Result<Revision, Fixed> {
    let live_type = live.type_.as_deref().unwrap_or(OPAQUE);
    // Whoever only adds, and names no type, has no opinion on it.
    let has_opinion = extent == Extent::Whole || !wanted.type_.is_empty();
    if has_opinion && live_type != wanted.type_() {
        return Err(Fixed::Type(live_type.to_owned()));
    }
    let values = merged_values(live, wanted, extent);
    let mut changes = changed_values(live, &values);
    if live.immutable == Some(true) && !changes.is_empty() {
        return Err(Fixed::Immutable(changes));
    }
    let mut metadata = live.metadata.clone();
    // Left out, the API server keeps its own record.
    metadata.managed_fields = None;
    for (word, of) in
        [("label", labels as fn(&mut ObjectMeta) -> &mut Option<Texts>), ("annotation", annotations)]
    {
        let mut wanted = wanted.metadata.clone();
        changes.extend(merge(word, of(&mut metadata), of(&mut wanted).take().unwrap_or_default(), extent));
    }
    if extent != (Extent::Added { take_over: false }) {
        let owners = wanted.metadata.owner_references.clone().unwrap_or_default();
        if metadata.owner_references.as_deref().unwrap_or_default() != owners {
            changes.push(describe(&owners));
            metadata.owner_references = Some(owners);
        }
    }
    let secret = PlainSecret::build(metadata, live_type.to_owned(), live.immutable, values.into_iter());
    let manager = if extent == Extent::Whole { wanted.manager() } else { MANAGER_OF_PATCHES };
    Ok(Revision { secret, changes, manager })
}

fn labels(metadata: &mut ObjectMeta) -> &mut Option<Texts> {
    &mut metadata.labels
}

fn annotations(metadata: &mut ObjectMeta) -> &mut Option<Texts> {
    &mut metadata.annotations
}

fn describe(owners: &[OwnerReference]) -> String {
    if owners.is_empty() { "no owner" } else { "owner" }.to_owned()
}

fn merged_values<'a>(
    live: &'a PlainSecret,
    wanted: &'a Wanted,
    extent: Extent,
) -> BTreeMap<String, &'a [u8]> {
    let mut values = BTreeMap::new();
    if extent != Extent::Whole {
        values.extend(live.data.iter().flatten().map(|(key, value)| (key.clone(), value.0.as_slice())));
    }
    values.extend(wanted.data.iter().map(|(key, value)| (key.clone(), value.expose_secret())));
    values
}

fn changed_values(live: &PlainSecret, values: &BTreeMap<String, &[u8]>) -> Vec<String> {
    let differing = values.iter().filter(|(key, value)| live.value(key) != Some(**value)).map(|(key, _)| key);
    let stale = live.data.iter().flatten().map(|(key, _)| key).filter(|key| !values.contains_key(*key));
    differing.chain(stale).cloned().collect()
}

/// Brings `live` in line with `wanted`; gives what that changes.
fn merge(word: &str, live: &mut Option<Texts>, wanted: Texts, extent: Extent) -> Vec<String> {
    let found = live.take().unwrap_or_default();
    let differing = wanted.iter().filter(|(key, value)| found.get(*key) != Some(value)).map(|(key, _)| key);
    let mut changes: Vec<_> = differing.map(|key| format!("{word} {key}")).collect();
    let next = match extent {
        Extent::Whole => {
            let stale = found.keys().filter(|key| !wanted.contains_key(*key));
            changes.extend(stale.map(|key| format!("{word} {key}")));
            wanted
        }
        Extent::Added { .. } => found.into_iter().chain(wanted).collect(),
    };
    *live = (!next.is_empty()).then_some(next);
    changes
}

/// Makes a new Secret; gives its version.
///
/// # Errors
/// The API server's answer.
pub async fn create(secrets: &Api<Secret>, wanted: &Wanted) -> Result<Option<String>, Failure> {
    let answer = secrets.create(&by(wanted.manager()), wanted.new_secret().as_secret()).await;
    finish("creating", &wanted.metadata, answer)
}

/// Whether the API server would make the Secret now, asked under a name that it chooses, because its own is taken. Nothing
/// is made.
///
/// # Errors
/// The API server's answer.
pub async fn try_out(secrets: &Api<Secret>, wanted: &Wanted) -> Result<(), Failure> {
    let mut tried = wanted.new_secret();
    let metadata = tried.metadata_mut();
    (metadata.name, metadata.generate_name) = (None, Some(TRIED_NAME.to_owned()));
    let how = PostParams { dry_run: true, ..by(wanted.manager()) };
    let answer = secrets.create(&how, tried.as_secret()).await;
    finish("trying out", &wanted.metadata, answer).map(drop)
}

/// Replaces the version of the Secret that `revision` was made from; gives its new version.
///
/// # Errors
/// The API server's answer: [`Reason::WriteConflict`] when the Secret has changed meanwhile.
pub async fn replace(secrets: &Api<Secret>, revision: &Revision) -> Result<Option<String>, Failure> {
    let metadata = &revision.secret.metadata;
    let name = metadata.name.as_deref().unwrap_or_default();
    let answer = secrets.replace(name, &by(revision.manager), revision.secret.as_secret()).await;
    finish("replacing", metadata, answer)
}

/// Deletes the very version of a Secret that was read.
///
/// # Errors
/// The API server's answer. That it is gone already is none.
pub async fn delete(secrets: &Api<Secret>, live: &ObjectMeta) -> Result<(), Failure> {
    let preconditions =
        Preconditions { resource_version: live.resource_version.clone(), uid: live.uid.clone() };
    let how = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match secrets.delete(live.name.as_deref().unwrap_or_default(), &how).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        answer => finish_with("deleting", live, answer.map(drop)),
    }
}

fn by(manager: &str) -> PostParams {
    PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() }
}

fn finish(
    what: &str,
    metadata: &ObjectMeta,
    answer: kube::Result<Secret>,
) -> Result<Option<String>, Failure> {
    // What the server sends back is plaintext, too.
    let answer = answer.map(|secret| PlainSecret::new(secret).metadata.resource_version.clone());
    finish_with(what, metadata, answer)
}

fn finish_with<T>(what: &str, metadata: &ObjectMeta, answer: kube::Result<T>) -> Result<T, Failure> {
    let place =
        [&metadata.namespace, &metadata.name].map(|part| part.as_deref().unwrap_or_default()).join("/");
    answer.map_err(|error| Failure::from_api(&format!("{what} Secret {place}"), &error))
}

#[cfg(test)]
mod tests {
    use lacre_crypto::object::sealed_secret;
    use serde_json::json;

    use super::*;

    fn object() -> SealedSecret {
        let metadata = ObjectMeta {
            name: Some("db".to_owned()),
            namespace: Some("shop".to_owned()),
            uid: Some("1-2-3".to_owned()),
            ..ObjectMeta::default()
        };
        SealedSecret::new(metadata, Value::Null, Value::Null)
    }

    fn wanted_as(metadata: Value, type_: &str, values: &[(&str, &str)]) -> Wanted {
        let value = |(key, value): &(&str, &str)| (key.to_string(), SecretBytes::from(*value));
        let secret = sealed_secret::PlainSecret {
            metadata: metadata.as_object().cloned().unwrap_or_default(),
            type_: type_.to_owned(),
            immutable: None,
            data: values.iter().map(value).collect(),
            opened_by: Vec::new(),
        };
        Wanted::new(&object(), Opened { secret, keys: Vec::new() }).unwrap()
    }

    fn wanted(values: &[(&str, &str)]) -> Wanted {
        wanted_as(json!({"labels": {"new": "1"}}), "", values)
    }

    /// A Secret with the owner that the object would set.
    fn live(labels: Value, values: &[(&str, &str)]) -> PlainSecret {
        let mut live = wanted_as(json!({"labels": labels}), "", values).new_secret();
        live.metadata_mut().resource_version = Some("7".to_owned());
        live
    }

    fn changes(live: &PlainSecret, wanted: &Wanted, extent: Extent) -> Vec<String> {
        revise(live, wanted, extent).ok().map(|revision| revision.changes).unwrap()
    }

    #[test]
    fn an_equal_secret_needs_nothing_although_the_object_names_no_type() {
        let equal = live(json!({"new": "1"}), &[("k", "v")]);
        assert_eq!(equal.type_.as_deref(), Some("Opaque"));
        assert_eq!(changes(&equal, &wanted(&[("k", "v")]), Extent::Whole), [""; 0]);
        let empty = live(Value::Null, &[]);
        assert_eq!(changes(&empty, &wanted_as(json!({"labels": {}}), "Opaque", &[]), Extent::Whole), [""; 0]);
    }

    #[test]
    fn a_whole_revision_leaves_nothing_of_what_was_there() {
        let found = live(json!({"keep": "1"}), &[("k", "old"), ("extra", "e")]);
        let revision = revise(&found, &wanted(&[("k", "new")]), Extent::Whole).ok().unwrap();
        assert_eq!(revision.changes, ["k", "extra", "label new", "label keep"]);
        assert_eq!(revision.secret.data.iter().flatten().count(), 1);
        assert_eq!(
            revision.secret.metadata.labels,
            Some(BTreeMap::from([("new".to_owned(), "1".to_owned())]))
        );
        assert_eq!(
            revision.secret.metadata.resource_version.as_deref(),
            Some("7"),
            "only what was read is replaced"
        );
        assert_eq!(revision.manager, MANAGER);
    }

    #[test]
    fn an_added_revision_keeps_what_was_there() {
        let mut found = live(json!({"keep": "1"}), &[("k", "old"), ("extra", "e")]);
        found.metadata_mut().owner_references = None;
        let revision =
            revise(&found, &wanted(&[("k", "new")]), Extent::Added { take_over: false }).ok().unwrap();
        assert_eq!(revision.changes, ["k", "label new"]);
        assert_eq!(
            (revision.secret.value("k"), revision.secret.value("extra")),
            (Some(&b"new"[..]), Some(&b"e"[..]))
        );
        assert_eq!(revision.secret.metadata.labels.as_ref().map(BTreeMap::len), Some(2));
        assert_eq!(
            (&revision.secret.metadata.owner_references, revision.manager),
            (&None, MANAGER_OF_PATCHES)
        );
        let taken = revise(&found, &wanted(&[("k", "old")]), Extent::Added { take_over: true }).ok().unwrap();
        assert_eq!(taken.changes, ["label new", "owner"]);
    }

    #[test]
    fn immutable_is_never_changed_and_stops_changes_of_values_only() {
        let mut found = live(json!({}), &[("k", "old")]);
        let mut frozen = PlainSecret::build(
            found.metadata.clone(),
            OPAQUE.to_owned(),
            Some(true),
            [("k".to_owned(), &b"old"[..])].into_iter(),
        );
        let of_values = revise(&frozen, &wanted(&[("k", "new")]), Extent::Whole).err();
        assert_eq!(of_values, Some(Fixed::Immutable(vec!["k".to_owned()])));
        assert_eq!(changes(&frozen, &wanted(&[("k", "old")]), Extent::Whole), ["label new"]);
        frozen.metadata_mut().labels = None;
        let mut wants_it = wanted(&[("k", "old")]);
        wants_it.immutable = Some(true);
        found.metadata_mut().labels = wants_it.metadata.labels.clone();
        assert_eq!(changes(&found, &wants_it, Extent::Whole), [""; 0]);
    }

    #[test]
    fn another_type_is_another_secret_unless_the_object_only_adds_and_names_none() {
        let tls = wanted_as(json!({}), "kubernetes.io/tls", &[]);
        let found = live(json!({}), &[]);
        assert_eq!(revise(&found, &tls, Extent::Whole).err(), Some(Fixed::Type(OPAQUE.to_owned())));
        let found = tls.new_secret();
        let fixed = Some(Fixed::Type("kubernetes.io/tls".to_owned()));
        assert_eq!(revise(&found, &wanted(&[]), Extent::Whole).err(), fixed);
        let added = Extent::Added { take_over: false };
        assert_eq!(changes(&found, &wanted(&[]), added), ["label new"]);
        assert_eq!(revise(&found, &wanted_as(json!({}), OPAQUE, &[]), added).err(), fixed);
    }

    #[test]
    fn a_template_gives_metadata_and_nothing_that_is_the_servers() {
        let template = json!({
            "name": "other", "namespace": "other", "uid": "x", "resourceVersion": "5", "managedFields": [{"time": "soon"}],
            "labels": {"a": "1"}, "annotations": {"b": "2"}, "finalizers": ["example.com/f"],
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}],
        });
        let metadata = wanted_as(template, "", &[]).metadata;
        assert_eq!((metadata.name.as_deref(), metadata.namespace.as_deref()), (Some("db"), Some("shop")));
        assert_eq!(
            (&metadata.uid, &metadata.resource_version, &metadata.managed_fields),
            (&None, &None, &None)
        );
        assert_eq!(metadata.finalizers.as_deref(), Some(&["example.com/f".to_owned()][..]));
        let owners = metadata.owner_references.unwrap();
        assert_eq!(owners.len(), 1);
        let owner = &owners[0];
        assert_eq!(
            (owner.kind.as_str(), owner.uid.as_str(), owner.controller),
            ("SealedSecret", "1-2-3", Some(true))
        );
        assert_eq!(owner.block_owner_deletion, None);
    }

    #[test]
    fn a_template_that_asks_for_no_owner_keeps_its_own_ones() {
        let template = json!({
            "annotations": {(SKIP_OWNER): "true"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}],
        });
        let free = wanted_as(template, "", &[]);
        assert!(!free.has_owner());
        assert_eq!(
            free.metadata.owner_references.as_ref().map(|owners| owners[0].kind.as_str()),
            Some("Pod")
        );
        assert_eq!(free.manager(), MANAGER_WITHOUT_OWNER);
        assert!(wanted_as(json!({"annotations": {(SKIP_OWNER): "yes"}}), "", &[]).has_owner());
    }

    #[test]
    fn what_is_no_metadata_is_told_without_repeating_it() {
        let secret = sealed_secret::PlainSecret {
            metadata: json!({"labels": {"a": ["CANARY"]}}).as_object().cloned().unwrap(),
            type_: String::new(),
            immutable: None,
            data: BTreeMap::new(),
            opened_by: Vec::new(),
        };
        let failure = Wanted::new(&object(), Opened { secret, keys: Vec::new() }).err().unwrap();
        assert_eq!(failure.reason, Reason::InvalidObject);
        assert!(!failure.message.contains("CANARY"), "{failure}");
    }
}

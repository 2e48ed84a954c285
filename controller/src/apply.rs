//! Writes the Secret, and only a Secret that is this object's own.
//!
//! Guarantees: a Secret whose controller is not the object is never touched; nothing is written when the live Secret
//! already is what it shall be; labels, annotations and keys that others set survive; keys that left the object leave
//! the Secret; nothing is ever deleted or blanked.
//!
//! A Secret is created by POST and later changed by server-side apply. Apply alone would adopt a foreign Secret of the
//! same name without a word, and create one where another was just deleted; so ownership is checked on the live object
//! first, and its uid and version stand in the body.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, OwnerReference};
use kube::Resource;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::api::EncryptedSecret;
use crate::error::{Failure, Reason};
use crate::policy;
use crate::unseal::Unsealed;

mod difference;
mod live;

pub use difference::differences;
pub use live::PlainSecret;

/// Name under which the API server keeps which fields of a Secret are ours.
pub const FIELD_MANAGER: &str = "lacre-controller";

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// Nothing: the Secret already was as it shall be.
    Nothing,
    /// A new Secret.
    Created,
    /// These parts of the Secret: names of keys, labels and annotations, no values.
    Changed(Vec<String>),
}

/// A Secret that is as it shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// What it took.
    pub written: Written,
    /// The Secret's resource version now, by which the watch's echo of our own write is known.
    pub version: Option<String>,
}

/// Looks at the Secret as it is, and whether it may be written.
///
/// # Errors
/// [`Reason::TargetConflict`] and [`Reason::ForbiddenTarget`] for one that may not; the API server's answer.
pub async fn look(secrets: &Api<Secret>, object: &EncryptedSecret) -> Result<Option<PlainSecret>, Failure> {
    let found = secrets.get_opt(object.name()).await;
    let found =
        found.map_err(|error| Failure::from_api(&format!("reading Secret {}", place(object)), &error))?;
    let Some(live) = found.map(PlainSecret::new) else { return Ok(None) };
    check_owner(object, &live.metadata)?;
    if policy::is_marked_as_keys(live.metadata.labels.as_ref()) {
        let message = format!("Secret {} carries the label {}", place(object), policy::KEY_LABEL);
        return Err(Failure::new(Reason::ForbiddenTarget, message));
    }
    Ok(Some(live))
}

/// Makes the Secret what it shall be. `live` is what [`look`] gave.
///
/// # Errors
/// [`Reason::ImmutableField`] when that cannot be done by changing it; the API server's answer.
pub async fn apply(
    secrets: &Api<Secret>,
    object: &EncryptedSecret,
    unsealed: &Unsealed,
    live: Option<PlainSecret>,
) -> Result<Applied, Failure> {
    let Some(live) = live else { return create(secrets, object, unsealed).await };
    let changes = differences(&live, unsealed)?;
    if changes.is_empty() {
        return Ok(Applied { written: Written::Nothing, version: live.metadata.resource_version.clone() });
    }
    let version = take_over_created_fields(secrets, object, &live).await?;
    let mut wanted = wanted(object, unsealed);
    // Opening takes time, in which the Secret may change hands: only the very one that was looked at is written.
    wanted.metadata_mut().resource_version = version;
    wanted.metadata_mut().uid.clone_from(&live.metadata.uid);
    // Forced, because the fields are ours by the owner reference that was checked: whoever changed one has drifted.
    let how = PatchParams::apply(FIELD_MANAGER).force();
    let answer = secrets.patch(object.name(), &how, &Patch::Apply(wanted.as_secret())).await;
    finish("applying", object, answer, Written::Changed(changes))
}

async fn create(
    secrets: &Api<Secret>,
    object: &EncryptedSecret,
    unsealed: &Unsealed,
) -> Result<Applied, Failure> {
    let how = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let answer = secrets.create(&how, wanted(object, unsealed).as_secret()).await;
    finish("creating", object, answer, Written::Created)
}

fn finish(
    what: &str,
    object: &EncryptedSecret,
    answer: kube::Result<Secret>,
    written: Written,
) -> Result<Applied, Failure> {
    let secret =
        answer.map_err(|error| Failure::from_api(&format!("{what} Secret {}", place(object)), &error))?;
    Ok(Applied { written, version: PlainSecret::new(secret).metadata.resource_version.clone() })
}

/// Renames the record of the fields that our POST set into one of our applies.
///
/// The API server keeps "created" and "applied" apart even for one manager, and removes a key that left an apply only
/// if no record but the apply's holds it. Without this, keys that left the object would stay in the Secret. It costs a
/// second request once in a Secret's life, when it changes for the first time. Gives the Secret's version then.
async fn take_over_created_fields(
    secrets: &Api<Secret>,
    object: &EncryptedSecret,
    live: &PlainSecret,
) -> Result<Option<String>, Failure> {
    // The resource version makes the server refuse it if anything changed since the look.
    let version = &live.metadata.resource_version;
    let Some(entries) = taken_over(live.metadata.managed_fields.as_deref().unwrap_or_default()) else {
        return Ok(version.clone());
    };
    let patch = json!({"metadata": {"resourceVersion": version, "managedFields": entries}});
    let answer = secrets.patch(object.name(), &PatchParams::default(), &Patch::Merge(&patch)).await;
    finish("applying", object, answer, Written::Nothing).map(|applied| applied.version)
}

fn taken_over(entries: &[ManagedFieldsEntry]) -> Option<Vec<ManagedFieldsEntry>> {
    let created = entries.iter().position(|entry| is_ours(entry, "Update"))?;
    let mut entries = entries.to_vec();
    if entries.iter().any(|entry| is_ours(entry, "Apply")) {
        entries.remove(created);
    } else {
        entries[created].operation = Some("Apply".to_owned());
    }
    Some(entries)
}

fn is_ours(entry: &ManagedFieldsEntry, operation: &str) -> bool {
    entry.manager.as_deref() == Some(FIELD_MANAGER)
        && entry.operation.as_deref() == Some(operation)
        && entry.subresource.is_none()
}

/// The Secret as we want it: our fields and no others. `data` only, since keys set through `stringData` can never be
/// taken out again by an apply.
fn wanted(object: &EncryptedSecret, unsealed: &Unsealed) -> PlainSecret {
    let some = |map: &std::collections::BTreeMap<_, _>| (!map.is_empty()).then(|| map.clone());
    let metadata = ObjectMeta {
        name: Some(object.name().to_owned()),
        namespace: Some(object.namespace().to_owned()),
        labels: some(&unsealed.labels),
        annotations: some(&unsealed.annotations),
        owner_references: Some(object.controller_owner_ref(&()).into_iter().collect()),
        ..ObjectMeta::default()
    };
    let values = unsealed.data.iter().map(|(key, value)| (key.clone(), value.expose_secret()));
    PlainSecret::build(metadata, unsealed.type_.clone(), unsealed.immutable.then_some(true), values)
}

/// Whether the Secret's controller is this very object: the same uid, not just the same name.
fn check_owner(object: &EncryptedSecret, live: &ObjectMeta) -> Result<(), Failure> {
    let owners = live.owner_references.as_deref().unwrap_or_default();
    let controller = owners.iter().find(|owner| owner.controller == Some(true));
    if controller.is_some_and(|owner| owner.uid == object.uid()) {
        return Ok(());
    }
    let message = format!(
        "Secret {} exists and is not this object's: {}; delete it, or name this object otherwise",
        place(object),
        describe_owner(controller, live)
    );
    Err(Failure::new(Reason::TargetConflict, message))
}

/// Whose a Secret is, as far as it says.
pub(crate) fn describe_owner(controller: Option<&OwnerReference>, live: &ObjectMeta) -> String {
    if let Some(owner) = controller {
        return format!("it is controlled by {} {} (uid {})", owner.kind, owner.name, owner.uid);
    }
    let managers = live.managed_fields.iter().flatten().filter_map(|entry| entry.manager.as_deref());
    let managers: BTreeSet<_> = managers.collect();
    match managers.is_empty() {
        true => "it has no owner".to_owned(),
        false => format!(
            "it has no owner and was written by {}",
            managers.into_iter().collect::<Vec<_>>().join(", ")
        ),
    }
}

fn place(object: &EncryptedSecret) -> String {
    format!("{}/{}", object.namespace(), object.name())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn object() -> EncryptedSecret {
        let metadata = ObjectMeta {
            name: Some("db".to_owned()),
            namespace: Some("shop".to_owned()),
            uid: Some("1-2-3".to_owned()),
            ..ObjectMeta::default()
        };
        EncryptedSecret::new(metadata, Value::Null, Value::Null)
    }

    fn owned_by(kind: &str, uid: &str, controller: bool) -> ObjectMeta {
        let owner = OwnerReference {
            api_version: "lacre.dev/v1alpha1".to_owned(),
            kind: kind.to_owned(),
            name: "db".to_owned(),
            uid: uid.to_owned(),
            controller: Some(controller),
            block_owner_deletion: None,
        };
        ObjectMeta { owner_references: Some(vec![owner]), ..ObjectMeta::default() }
    }

    fn managed(manager: &str, operation: &str) -> ManagedFieldsEntry {
        ManagedFieldsEntry {
            manager: Some(manager.to_owned()),
            operation: Some(operation.to_owned()),
            ..ManagedFieldsEntry::default()
        }
    }

    #[test]
    fn a_secret_controlled_by_the_object_is_ours() {
        assert!(check_owner(&object(), &owned_by("EncryptedSecret", "1-2-3", true)).is_ok());
    }

    #[test]
    fn an_object_of_the_same_name_that_lived_before_is_another_owner() {
        let failure = check_owner(&object(), &owned_by("EncryptedSecret", "9-9-9", true)).unwrap_err();
        assert_eq!(failure.reason, Reason::TargetConflict);
        assert!(failure.message.contains("EncryptedSecret db (uid 9-9-9)"), "{failure}");
    }

    #[test]
    fn an_owner_that_does_not_control_gives_no_right() {
        assert!(check_owner(&object(), &owned_by("EncryptedSecret", "1-2-3", false)).is_err());
    }

    #[test]
    fn a_secret_without_owner_is_foreign_and_its_writers_are_named() {
        let live = ObjectMeta {
            managed_fields: Some(vec![managed("kubectl-create", "Update")]),
            ..Default::default()
        };
        let failure = check_owner(&object(), &live).unwrap_err();
        assert!(failure.message.contains("no owner and was written by kubectl-create"), "{failure}");
        assert!(check_owner(&object(), &ObjectMeta::default()).unwrap_err().message.contains("no owner"));
    }

    #[test]
    fn the_record_of_our_post_becomes_one_of_our_applies_once() {
        let foreign = managed("kubectl-patch", "Update");
        let entries = taken_over(&[foreign.clone(), managed(FIELD_MANAGER, "Update")]).unwrap();
        assert_eq!(entries, [foreign.clone(), managed(FIELD_MANAGER, "Apply")]);
        assert_eq!(taken_over(&entries), None);
        let both = taken_over(&[managed(FIELD_MANAGER, "Update"), managed(FIELD_MANAGER, "Apply")]).unwrap();
        assert_eq!(both, [managed(FIELD_MANAGER, "Apply")]);
    }
}

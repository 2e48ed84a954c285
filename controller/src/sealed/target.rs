//! What a live Secret is to an object of its name: whether it may be written, and how much of it. Pure.
//!
//! The rules are those of Sealed Secrets: a Secret is the object's own when its controller is the object, uid and all; or
//! when whoever may write the Secret has marked it as managed, or as to be patched. Three go further. A Secret that was
//! made without an owner, because the object asks for that, is known by the name under which we wrote it. One whose
//! controller is an object of the same kind, name and namespace with another uid was left by one that is gone, for two
//! cannot stand in one place. And nothing that holds keys is ever written.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use lacre_crypto::object::sealed_secret::scope::ANNOTATION_ON;
use lacre_crypto::object::sealed_secret::{GROUP, KIND};

use super::keys;
use crate::apply::describe_owner;
use crate::policy;

/// The annotation by which the owner of a Secret gives it to the object of its name.
pub const MANAGED: &str = "sealedsecrets.bitnami.com/managed";

/// The annotation by which the owner of a Secret lets the object of its name add to it.
pub const PATCH: &str = "sealedsecrets.bitnami.com/patch";

/// The annotation of a template that makes a Secret without an owner, which outlives its object.
pub const SKIP_OWNER: &str = "sealedsecrets.bitnami.com/skip-set-owner-references";

/// Name under which we write Secrets that their object owns.
pub const MANAGER: &str = "lacre-sealed-secrets";

/// The same for Secrets without owner: the API server keeps it with what we wrote, and that is what tells them from
/// Secrets of others. Whoever can take this name can write the Secret, and could mark it as managed just as well.
pub const MANAGER_WITHOUT_OWNER: &str = "lacre-sealed-secrets-without-owner";

/// The same for Secrets that are only patched, which are nobody's proof of anything.
pub const MANAGER_OF_PATCHES: &str = "lacre-sealed-secrets-patch";

/// What may be done with a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Nothing: it is another's, who is described.
    Foreign(String),
    /// Nothing: it carries this label, by which keys are found.
    HoldsKeys(&'static str),
    /// All of it is replaced.
    Own,
    /// All of it is replaced, once it is certain that the uid is not that of a younger object.
    OwnOfPredecessor,
    /// Values, labels and annotations are added. With `take_over` the object becomes its owner, too.
    Patched {
        /// Whether it is marked as managed, too.
        take_over: bool,
    },
}

/// What the live Secret is to the object of its name with this `uid`.
pub fn claim(uid: &str, live: &ObjectMeta) -> Claim {
    if let Some(label) = key_label(live.labels.as_ref()) {
        return Claim::HoldsKeys(label);
    }
    let owners = live.owner_references.as_deref().unwrap_or_default();
    let controller = owners.iter().find(|owner| owner.controller == Some(true));
    if is_on(live, PATCH) {
        return Claim::Patched { take_over: is_on(live, MANAGED) };
    }
    if is_on(live, MANAGED) {
        return Claim::Own;
    }
    match controller {
        Some(owner) if owner.uid == uid => Claim::Own,
        Some(owner) if is_predecessor(owner, live) => Claim::OwnOfPredecessor,
        None if was_written_without_owner(live) => Claim::Own,
        _ => Claim::Foreign(describe_owner(controller, live)),
    }
}

/// The label among `labels`, whatever its value, by which a controller finds its keys. Its owner may be about to set the
/// value that counts.
pub fn key_label(labels: Option<&BTreeMap<String, String>>) -> Option<&'static str> {
    let labels = labels?;
    [keys::KEY_LABEL, policy::KEY_LABEL].into_iter().find(|label| labels.contains_key(*label))
}

fn is_on(live: &ObjectMeta, annotation: &str) -> bool {
    let value = live.annotations.as_ref().and_then(|annotations| annotations.get(annotation));
    value.is_some_and(|value| value == ANNOTATION_ON)
}

fn is_predecessor(owner: &OwnerReference, live: &ObjectMeta) -> bool {
    let group = owner.api_version.split_once('/').map(|(group, _)| group);
    group == Some(GROUP) && owner.kind == KIND && Some(&owner.name) == live.name.as_ref()
}

fn was_written_without_owner(live: &ObjectMeta) -> bool {
    let mut entries = live.managed_fields.iter().flatten();
    entries.any(|entry| {
        entry.manager.as_deref() == Some(MANAGER_WITHOUT_OWNER)
            && entry.operation.as_deref() == Some("Update")
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;

    use super::*;

    fn live() -> ObjectMeta {
        ObjectMeta { name: Some("db".to_owned()), ..ObjectMeta::default() }
    }

    fn owned_by(kind: &str, name: &str, uid: &str, controller: bool) -> ObjectMeta {
        let owner = OwnerReference {
            api_version: "bitnami.com/v1alpha1".to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
            controller: Some(controller),
            block_owner_deletion: None,
        };
        ObjectMeta { owner_references: Some(vec![owner]), ..live() }
    }

    fn annotated(mut live: ObjectMeta, pairs: &[(&str, &str)]) -> ObjectMeta {
        let pairs = pairs.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        live.annotations.get_or_insert_default().extend(pairs);
        live
    }

    fn written_by(manager: &str, operation: &str) -> ObjectMeta {
        let entry = ManagedFieldsEntry {
            manager: Some(manager.to_owned()),
            operation: Some(operation.to_owned()),
            ..ManagedFieldsEntry::default()
        };
        ObjectMeta { managed_fields: Some(vec![entry]), ..live() }
    }

    fn check(live: &ObjectMeta, expected: Claim) {
        assert_eq!(claim("1-2-3", live), expected, "{live:?}");
    }

    fn check_foreign(live: &ObjectMeta, described: &str) {
        let Claim::Foreign(description) = claim("1-2-3", live) else { panic!("{live:?} is not foreign") };
        assert!(description.contains(described), "{description}");
    }

    #[test]
    fn a_secret_controlled_by_the_object_is_its_own() {
        check(&owned_by("SealedSecret", "db", "1-2-3", true), Claim::Own);
    }

    #[test]
    fn an_owner_that_does_not_control_gives_no_right() {
        check_foreign(&owned_by("SealedSecret", "db", "1-2-3", false), "no owner");
    }

    #[test]
    fn a_secret_left_by_an_object_of_the_same_name_that_is_gone_is_its_own() {
        check(&owned_by("SealedSecret", "db", "9-9-9", true), Claim::OwnOfPredecessor);
    }

    #[test]
    fn a_secret_of_another_object_or_kind_is_foreign() {
        check_foreign(&owned_by("SealedSecret", "web", "9-9-9", true), "SealedSecret web (uid 9-9-9)");
        check_foreign(&owned_by("EncryptedSecret", "db", "9-9-9", true), "EncryptedSecret db");
        let mut other = owned_by("SealedSecret", "db", "9-9-9", true);
        other
            .owner_references
            .iter_mut()
            .flatten()
            .for_each(|owner| owner.api_version = "bitnami.com.example/v1".to_owned());
        check_foreign(&other, "SealedSecret db");
    }

    #[test]
    fn a_secret_without_owner_is_foreign_and_its_writers_are_named() {
        check_foreign(&live(), "it has no owner");
        check_foreign(&written_by("kubectl-create", "Update"), "no owner and was written by kubectl-create");
    }

    #[test]
    fn a_secret_that_its_owner_marked_as_managed_is_the_objects_own() {
        check(&annotated(live(), &[(MANAGED, "true")]), Claim::Own);
        check(&annotated(owned_by("Deployment", "x", "9", true), &[(MANAGED, "true")]), Claim::Own);
        for not_on in ["True", "1", "false", ""] {
            check_foreign(&annotated(live(), &[(MANAGED, not_on), (PATCH, not_on)]), "no owner");
        }
    }

    #[test]
    fn a_secret_that_is_to_be_patched_is_added_to_and_owned_only_if_managed_too() {
        check(&annotated(live(), &[(PATCH, "true")]), Claim::Patched { take_over: false });
        let own = owned_by("SealedSecret", "db", "1-2-3", true);
        check(&annotated(own, &[(PATCH, "true")]), Claim::Patched { take_over: false });
        let both = annotated(live(), &[(PATCH, "true"), (MANAGED, "true")]);
        check(&both, Claim::Patched { take_over: true });
    }

    #[test]
    fn a_secret_that_we_wrote_without_owner_is_known_by_its_writer() {
        check(&written_by(MANAGER_WITHOUT_OWNER, "Update"), Claim::Own);
    }

    #[test]
    fn what_we_only_patched_or_owned_before_proves_nothing() {
        check_foreign(&written_by(MANAGER_OF_PATCHES, "Update"), MANAGER_OF_PATCHES);
        check_foreign(&written_by(MANAGER, "Update"), MANAGER);
        check_foreign(&written_by(MANAGER_WITHOUT_OWNER, "Apply"), MANAGER_WITHOUT_OWNER);
    }

    #[test]
    fn an_owner_of_today_outweighs_a_writer_of_yesterday() {
        let mut owned = owned_by("Deployment", "x", "9", true);
        owned.managed_fields = written_by(MANAGER_WITHOUT_OWNER, "Update").managed_fields;
        check_foreign(&owned, "Deployment x");
    }

    #[test]
    fn a_secret_that_holds_keys_is_never_written_whatever_it_is_marked_as() {
        for label in [keys::KEY_LABEL, policy::KEY_LABEL] {
            for value in ["active", "true", "compromised", ""] {
                let mut own = annotated(owned_by("SealedSecret", "db", "1-2-3", true), &[(MANAGED, "true")]);
                own.labels = Some(BTreeMap::from([(label.to_owned(), value.to_owned())]));
                check(&own, Claim::HoldsKeys(label));
            }
        }
    }
}

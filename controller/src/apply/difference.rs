//! What of a live Secret is not as it shall be. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::{FIELD_MANAGER, PlainSecret};
use crate::error::{Failure, Reason};
use crate::unseal::Unsealed;

/// Names of what has to be written: keys, labels, annotations, `immutable`. Nothing when the Secret is as it shall be,
/// whoever wrote it.
///
/// What others set beside is no difference. What we once set and no longer want is.
///
/// # Errors
/// [`Reason::ImmutableField`] when the Secret can only be replaced: another type, or any difference while immutable.
pub fn differences(live: &PlainSecret, wanted: &Unsealed) -> Result<Vec<String>, Failure> {
    let live_type = live.type_.as_deref().unwrap_or("Opaque");
    if live_type != wanted.type_ {
        let message = format!(
            "the Secret is of type {live_type} and cannot become {}; delete it, and it is made again",
            wanted.type_
        );
        return Err(Failure::new(Reason::ImmutableField, message));
    }
    let mut changes = changed_values(live, wanted);
    let fixed = live.immutable == Some(true);
    if wanted.immutable && !fixed {
        // The other way is no difference: once set, by whom ever, the API server never takes it back.
        changes.push("immutable".to_owned());
    }
    if fixed && !changes.is_empty() {
        let message = format!(
            "the Secret is immutable and differs in {}; delete it, and it is made again",
            changes.join(", ")
        );
        return Err(Failure::new(Reason::ImmutableField, message));
    }
    changes.extend(changed_metadata(live, wanted));
    Ok(changes)
}

fn changed_values(live: &PlainSecret, wanted: &Unsealed) -> Vec<String> {
    let differing = wanted.data.iter().filter(|(key, value)| live.value(key) != Some(value.expose_secret()));
    let stale = our_fields(live, "/f:data").into_iter();
    let stale = stale.filter(|key| live.value(key).is_some() && !wanted.data.contains_key(key));
    differing.map(|(key, _)| key.clone()).chain(stale).collect()
}

fn changed_metadata(live: &PlainSecret, wanted: &Unsealed) -> Vec<String> {
    let empty = BTreeMap::new();
    let (labels, annotations) = (&live.metadata.labels, &live.metadata.annotations);
    let labels =
        changed_map("label", "/f:metadata/f:labels", live, labels.as_ref().unwrap_or(&empty), &wanted.labels);
    let annotations = changed_map(
        "annotation",
        "/f:metadata/f:annotations",
        live,
        annotations.as_ref().unwrap_or(&empty),
        &wanted.annotations,
    );
    labels.into_iter().chain(annotations).collect()
}

fn changed_map(
    word: &str,
    fields: &str,
    live: &PlainSecret,
    found: &BTreeMap<String, String>,
    wanted: &BTreeMap<String, String>,
) -> Vec<String> {
    let differing =
        wanted.iter().filter(|(key, value)| found.get(*key) != Some(value)).map(|(key, _)| key.clone());
    let stale = our_fields(live, fields).into_iter();
    let stale = stale.filter(|key| found.contains_key(key) && !wanted.contains_key(key));
    differing.chain(stale).map(|key| format!("{word} {key}")).collect()
}

/// Names below `pointer` that the API server recorded as set by us.
fn our_fields(live: &PlainSecret, pointer: &str) -> BTreeSet<String> {
    let entries = live.metadata.managed_fields.iter().flatten();
    let ours = entries.filter(|entry| entry.manager.as_deref() == Some(FIELD_MANAGER));
    let fields = ours.filter_map(|entry| entry.fields_v1.as_ref()?.0.pointer(pointer)?.as_object());
    fields
        .flat_map(|fields| fields.keys())
        .filter_map(|key| key.strip_prefix("f:"))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
    use kube::api::ObjectMeta;
    use lacre_crypto::secret::SecretBytes;
    use serde_json::json;

    use super::*;
    use crate::policy::Scope;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }

    fn wanted(values: &[(&str, &str)], labels: &[(&str, &str)]) -> Unsealed {
        let value =
            |(key, value): &(&str, &str)| (key.to_string(), SecretBytes::new(value.as_bytes().to_vec()));
        Unsealed {
            type_: "Opaque".to_owned(),
            immutable: false,
            labels: map(labels),
            annotations: BTreeMap::new(),
            data: values.iter().map(value).collect(),
            last_modified: String::new(),
            scope: Scope::Strict,
            fingerprints: BTreeMap::new(),
        }
    }

    fn live(values: &[(&str, &str)], labels: &[(&str, &str)], ours: &[&str]) -> PlainSecret {
        let fields: serde_json::Map<_, _> = ours.iter().map(|key| (format!("f:{key}"), json!({}))).collect();
        let entry = ManagedFieldsEntry {
            manager: Some(FIELD_MANAGER.to_owned()),
            fields_v1: Some(FieldsV1(json!({"f:data": fields.clone(), "f:metadata": {"f:labels": fields}}))),
            ..ManagedFieldsEntry::default()
        };
        let metadata = ObjectMeta {
            labels: Some(map(labels)),
            managed_fields: Some(vec![entry]),
            ..ObjectMeta::default()
        };
        let values = values.iter().map(|(key, value)| (key.to_string(), value.as_bytes()));
        PlainSecret::build(metadata, "Opaque".to_owned(), None, values)
    }

    fn check(live: PlainSecret, wanted: Unsealed, expected: &[&str]) {
        assert_eq!(differences(&live, &wanted).unwrap(), expected);
    }

    #[test]
    fn an_equal_secret_differs_in_nothing() {
        let values = [("password", "a"), ("user", "b")];
        check(live(&values, &[("tier", "back")], &[]), wanted(&values, &[("tier", "back")]), &[]);
    }

    #[test]
    fn a_changed_a_missing_and_a_new_value_are_told_by_key() {
        check(
            live(&[("a", "1"), ("b", "2")], &[], &[]),
            wanted(&[("a", "1"), ("b", "3"), ("c", "4")], &[]),
            &["b", "c"],
        );
    }

    #[test]
    fn keys_and_labels_of_others_are_no_difference() {
        check(
            live(&[("a", "1"), ("extra", "x")], &[("team", "blue")], &["a"]),
            wanted(&[("a", "1")], &[]),
            &[],
        );
    }

    #[test]
    fn keys_and_labels_that_left_the_object_are_told_when_we_set_them() {
        let live = live(&[("a", "1"), ("old", "x")], &[("tier", "back")], &["a", "old", "tier"]);
        check(live, wanted(&[("a", "1")], &[]), &["old", "label tier"]);
    }

    #[test]
    fn a_field_of_ours_that_someone_else_removed_already_is_no_difference() {
        check(live(&[("a", "1")], &[], &["a", "old"]), wanted(&[("a", "1")], &[]), &[]);
    }

    #[test]
    fn another_type_cannot_be_applied() {
        let mut wanted = wanted(&[("a", "1")], &[]);
        wanted.type_ = "kubernetes.io/tls".to_owned();
        let failure = differences(&live(&[("a", "1")], &[], &[]), &wanted).unwrap_err();
        assert_eq!(failure.reason, Reason::ImmutableField);
    }

    #[test]
    fn an_immutable_secret_is_fine_while_equal_and_refused_when_it_differs() {
        let metadata = || ObjectMeta::default();
        let immutable = |value: &'static [u8]| {
            let values = [("a".to_owned(), value)].into_iter();
            PlainSecret::build(metadata(), "Opaque".to_owned(), Some(true), values)
        };
        assert_eq!(differences(&immutable(b"1"), &wanted(&[("a", "1")], &[])).unwrap(), [""; 0]);
        let failure = differences(&immutable(b"2"), &wanted(&[("a", "1")], &[])).unwrap_err();
        assert_eq!(failure.reason, Reason::ImmutableField);
        assert!(failure.message.contains("differs in a"), "{failure}");
    }

    #[test]
    fn immutable_is_set_when_asked_for() {
        let mut wanted = wanted(&[("a", "1")], &[]);
        wanted.immutable = true;
        check(live(&[("a", "1")], &[], &[]), wanted, &["immutable"]);
    }
}

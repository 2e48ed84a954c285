//! Says what became of an object: status, event and metric, all from one outcome.
//!
//! The conditions are complete in the sense of kstatus: Ready always, Reconciling and Stalled only while they are true,
//! each with the generation it is about. A status that would not change is not written.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::Resource;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::events::{Event, EventType, Recorder};
use serde_json::json;

use crate::api::{AppliedSecret, EncryptedSecret, EncryptedSecretStatus, GROUP, KIND, VERSION};
use crate::apply::Written;
use crate::error::{Failure, Retry};
use crate::memory::{Memory, place};
use crate::metrics::Metrics;

/// Name under which the API server keeps that the status is ours.
const FIELD_MANAGER: &str = "lacre-controller-status";

/// The conditions that are ours.
const CONDITIONS: [&str; 3] = ["Ready", "Reconciling", "Stalled"];

/// Longest note of an event that the API server takes, in bytes.
const EVENT_NOTE_BYTES_MAX: usize = 1024;

/// What became of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Its Secret is as it shall be.
    Synced {
        /// What that took.
        written: Written,
        /// What the Secret was made from.
        secret: AppliedSecret,
    },
    /// It is to be left alone.
    Suspended,
    /// It could not be turned into its Secret, which stays as it was.
    Failed(Failure),
}

/// The ways to speak.
pub struct Reporter {
    /// To the API server.
    pub client: kube::Client,
    /// As events.
    pub recorder: Recorder,
    /// As numbers.
    pub metrics: std::sync::Arc<Metrics>,
}

impl Reporter {
    /// Says it, where it is not said already.
    ///
    /// # Errors
    /// The API server's answer to the status. An event that is lost is only logged.
    pub async fn report(
        &self,
        object: &EncryptedSecret,
        outcome: &Outcome,
        memory: &Memory<EncryptedSecretStatus>,
    ) -> Result<(), Failure> {
        let mut before = memory.status(&object.metadata, object.status.as_ref()).unwrap_or_default();
        // Those of others stay where they are: an apply names our own alone.
        before.conditions.retain(|condition| CONDITIONS.contains(&condition.type_.as_str()));
        let status = next_status(object, &before, outcome, Timestamp::now());
        let Some(ready) = condition(&status, "Ready") else { return Ok(()) };
        let suspended = matches!(outcome, Outcome::Suspended);
        self.metrics.report(&place(&object.metadata), ready.status == "True", suspended, &ready.reason);
        if drifted(object, &before, outcome) {
            self.metrics.repaired();
        }
        let event = event(object, &before, ready, outcome);
        if status != before {
            // First, so that a status which has to be tried again does not repeat the event.
            self.write(object, &status).await?;
            memory.tell(&object.metadata, status);
        }
        if let Some(event) = event {
            self.say(object, &event).await;
        }
        Ok(())
    }

    async fn write(&self, object: &EncryptedSecret, status: &EncryptedSecretStatus) -> Result<(), Failure> {
        let objects: Api<EncryptedSecret> = Api::namespaced(self.client.clone(), object.namespace());
        // The uid keeps the word about one object from landing on another of the same name.
        let patch = json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": KIND,
            "metadata": {"name": object.name(), "namespace": object.namespace(), "uid": object.uid()},
            "status": status,
        });
        let how = PatchParams::apply(FIELD_MANAGER).force();
        let answer = objects.patch_status(object.name(), &how, &Patch::Apply(&patch)).await;
        answer.map(drop).map_err(|error| Failure::from_api("writing the status", &error))
    }

    async fn say(&self, object: &EncryptedSecret, event: &Event) {
        if let Err(error) = self.recorder.publish(event, &object.object_ref(&())).await {
            tracing::warn!(reason = event.reason, error = %Failure::from_api("writing an event", &error), "event lost");
        }
    }
}

/// The status that `outcome` gives an object whose status was `before`.
pub fn next_status(
    object: &EncryptedSecret,
    before: &EncryptedSecretStatus,
    outcome: &Outcome,
    now: Timestamp,
) -> EncryptedSecretStatus {
    let generation = object.metadata.generation;
    let of = |type_: &str, status: &str, reason: &str, message: &str| {
        let last = condition(before, type_).filter(|last| last.status == status);
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            observed_generation: generation,
            last_transition_time: last
                .map_or_else(|| Time(to_seconds(now)), |last| last.last_transition_time.clone()),
        }
    };
    let conditions = match outcome {
        Outcome::Synced { .. } => vec![of("Ready", "True", "Synced", "the Secret is as it was sealed")],
        Outcome::Suspended => {
            vec![of("Ready", "Unknown", "Suspended", "spec.suspend is set: the Secret is left alone")]
        }
        Outcome::Failed(failure) => {
            let reason = failure.reason.to_string();
            let abnormal = match failure.reason.retry() {
                Retry::Never => "Stalled",
                Retry::Later | Retry::WhenItComes => "Reconciling",
            };
            vec![
                of("Ready", "False", &reason, &failure.message),
                of(abnormal, "True", &reason, &failure.message),
            ]
        }
    };
    let secret = match outcome {
        Outcome::Synced { secret, .. } => Some(secret.clone()),
        Outcome::Suspended | Outcome::Failed(_) => before.secret.clone(),
    };
    EncryptedSecretStatus { observed_generation: generation, conditions, secret }
}

/// The condition of a type.
pub fn condition<'a>(status: &'a EncryptedSecretStatus, type_: &str) -> Option<&'a Condition> {
    status.conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the Secret had been right for this very version of the object and was changed or deleted since.
fn drifted(object: &EncryptedSecret, before: &EncryptedSecretStatus, outcome: &Outcome) -> bool {
    let Outcome::Synced { written, .. } = outcome else { return false };
    let synced = condition(before, "Ready").is_some_and(|ready| {
        ready.status == "True" && ready.observed_generation == object.metadata.generation
    });
    synced && *written != Written::Nothing
}

/// The event that is worth a person's notice: a Secret was written, or Ready changed.
fn event(
    object: &EncryptedSecret,
    before: &EncryptedSecretStatus,
    ready: &Condition,
    outcome: &Outcome,
) -> Option<Event> {
    let last = condition(before, "Ready");
    let changed = last.is_none_or(|last| {
        (&last.status, &last.reason, &last.message) != (&ready.status, &ready.reason, &ready.message)
    });
    let (action, note) = match outcome {
        Outcome::Synced { written: Written::Nothing, .. } if !changed => return None,
        Outcome::Synced { written: Written::Nothing, .. } => ("Decrypt", ready.message.clone()),
        Outcome::Synced { written: Written::Created, secret } => {
            (action(object, before, outcome), format!("made Secret {}", secret.name))
        }
        Outcome::Synced { written: Written::Changed(what), secret } => {
            (action(object, before, outcome), format!("set {} in Secret {}", what.join(", "), secret.name))
        }
        Outcome::Suspended | Outcome::Failed(_) if !changed => return None,
        Outcome::Suspended => ("Suspend", ready.message.clone()),
        Outcome::Failed(failure) => ("Decrypt", failure.message.clone()),
    };
    let type_ = match outcome {
        Outcome::Failed(_) => EventType::Warning,
        Outcome::Synced { .. } | Outcome::Suspended => EventType::Normal,
    };
    Some(Event {
        type_,
        reason: ready.reason.clone(),
        note: Some(shorten(note)),
        action: action.to_owned(),
        secondary: None,
    })
}

fn action(object: &EncryptedSecret, before: &EncryptedSecretStatus, outcome: &Outcome) -> &'static str {
    if drifted(object, before, outcome) { "Repair" } else { "Apply" }
}

fn shorten(mut note: String) -> String {
    let mut end = note.len().min(EVENT_NOTE_BYTES_MAX);
    while !note.is_char_boundary(end) {
        end -= 1;
    }
    note.truncate(end);
    note
}

/// The API server keeps whole seconds; anything finer would make our own status differ from what it stored.
fn to_seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use kube::api::ObjectMeta;
    use serde_json::Value;

    use super::*;
    use crate::error::Reason;

    fn object(generation: i64) -> EncryptedSecret {
        let metadata = ObjectMeta { generation: Some(generation), ..ObjectMeta::default() };
        EncryptedSecret::new(metadata, Value::Null, Value::Null)
    }

    fn synced(written: Written) -> Outcome {
        Outcome::Synced {
            written,
            secret: AppliedSecret { name: "db".to_owned(), ..AppliedSecret::default() },
        }
    }

    fn failed(reason: Reason) -> Outcome {
        Outcome::Failed(Failure::new(reason, "because"))
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn status(
        generation: i64,
        before: &EncryptedSecretStatus,
        outcome: &Outcome,
        second: i64,
    ) -> EncryptedSecretStatus {
        next_status(&object(generation), before, outcome, at(second))
    }

    fn first(outcome: &Outcome) -> EncryptedSecretStatus {
        status(1, &EncryptedSecretStatus::default(), outcome, 100)
    }

    fn types(status: &EncryptedSecretStatus) -> Vec<(&str, &str, &str)> {
        let tuple = |condition: &'static Condition| -> (&str, &str, &str) {
            (&condition.type_, &condition.status, &condition.reason)
        };
        let conditions: &'static [Condition] = Box::leak(status.conditions.clone().into_boxed_slice());
        conditions.iter().map(tuple).collect()
    }

    #[test]
    fn ready_stands_alone_when_all_is_well() {
        assert_eq!(types(&first(&synced(Written::Created))), [("Ready", "True", "Synced")]);
    }

    #[test]
    fn a_cause_that_a_deletion_alone_may_end_is_still_for_a_person_to_mend() {
        for reason in [Reason::ForbiddenTarget, Reason::ImmutableField, Reason::TargetConflict] {
            assert!(reason.lies_in_the_live_secret() && reason.retry() == Retry::Never, "{reason}");
        }
    }

    #[test]
    fn a_permanent_cause_stalls() {
        let expected = [("Ready", "False", "ScopeMismatch"), ("Stalled", "True", "ScopeMismatch")];
        assert_eq!(types(&first(&failed(Reason::ScopeMismatch))), expected);
    }

    #[test]
    fn a_cause_that_time_or_others_heal_is_being_reconciled() {
        for reason in [Reason::KmsUnreachable, Reason::IdentityNotFound] {
            let name = reason.to_string();
            let expected = [("Ready", "False", name.as_str()), ("Reconciling", "True", name.as_str())];
            assert_eq!(types(&first(&failed(reason))), expected);
        }
    }

    #[test]
    fn a_suspended_object_is_neither_ready_nor_not() {
        assert_eq!(types(&first(&Outcome::Suspended)), [("Ready", "Unknown", "Suspended")]);
    }

    #[test]
    fn each_condition_names_the_generation_it_is_about() {
        let status = status(7, &first(&synced(Written::Created)), &failed(Reason::MacMismatch), 200);
        assert_eq!(status.observed_generation, Some(7));
        assert!(status.conditions.iter().all(|condition| condition.observed_generation == Some(7)));
    }

    #[test]
    fn the_same_outcome_gives_the_same_status_at_any_time() {
        let before = first(&synced(Written::Created));
        assert_eq!(status(1, &before, &synced(Written::Nothing), 999), before);
    }

    #[test]
    fn a_transition_is_dated_only_when_the_status_changes() {
        let before = first(&failed(Reason::KmsDenied));
        let time =
            |status: &EncryptedSecretStatus| condition(status, "Ready").unwrap().last_transition_time.0;
        let other = status(1, &before, &failed(Reason::KmsUnreachable), 200);
        assert_eq!(time(&other), at(100), "still False, for another reason");
        assert_eq!(time(&status(1, &other, &synced(Written::Created), 300)), at(300));
    }

    #[test]
    fn a_failure_keeps_what_was_applied_last() {
        let before = first(&synced(Written::Created));
        assert_eq!(status(2, &before, &failed(Reason::SealBroken), 200).secret, before.secret);
        assert_eq!(status(2, &before, &Outcome::Suspended, 200).secret, before.secret);
    }

    fn event_of(before: &EncryptedSecretStatus, outcome: &Outcome) -> Option<(String, String, String)> {
        let status = status(1, before, outcome, 200);
        let event = event(&object(1), before, condition(&status, "Ready").unwrap(), outcome)?;
        Some((event.reason, event.action, event.note.unwrap_or_default()))
    }

    fn text(parts: (&str, &str, &str)) -> Option<(String, String, String)> {
        Some((parts.0.to_owned(), parts.1.to_owned(), parts.2.to_owned()))
    }

    #[test]
    fn an_event_tells_of_writes_and_changes_and_of_nothing_else() {
        let (new, ready) = (EncryptedSecretStatus::default(), first(&synced(Written::Created)));
        assert_eq!(event_of(&new, &synced(Written::Created)), text(("Synced", "Apply", "made Secret db")));
        assert_eq!(event_of(&ready, &synced(Written::Nothing)), None);
        let failure = failed(Reason::KmsDenied);
        assert_eq!(event_of(&ready, &failure), text(("KmsDenied", "Decrypt", "because")));
        assert_eq!(event_of(&first(&failure), &failure), None, "told once");
    }

    #[test]
    fn a_write_for_a_generation_that_was_synced_already_is_a_repair() {
        let changed = synced(Written::Changed(vec!["password".to_owned()]));
        let ready = first(&synced(Written::Created));
        assert_eq!(event_of(&ready, &changed), text(("Synced", "Repair", "set password in Secret db")));
        assert_eq!(event_of(&ready, &synced(Written::Created)), text(("Synced", "Repair", "made Secret db")));
        assert!(!drifted(&object(2), &ready, &changed), "the object changed");
        assert!(!drifted(&object(1), &first(&Outcome::Suspended), &changed), "resumed");
    }

    #[test]
    fn notes_of_events_are_cut_to_what_the_api_server_takes() {
        assert_eq!(shorten("ä".repeat(600)).len(), EVENT_NOTE_BYTES_MAX);
        assert_eq!(shorten("x".repeat(1025)).len(), EVENT_NOTE_BYTES_MAX);
    }
}

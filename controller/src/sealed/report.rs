//! Says what became of a SealedSecret: status, event and metric, all from one outcome.
//!
//! `Synced` stays the first condition and keeps the text by which dashboards and scripts know it: none when all is well,
//! the cause when not. `Ready` says more, and with `Reconciling` and `Stalled`, which are there only while they are true,
//! is complete in the sense of kstatus. A status is written upon the live one, again if somebody else wrote meanwhile,
//! and only when it says something new. Conditions of others stay.

use std::sync::Arc;

use jiff::Timestamp;
use kube::api::{Api, ObjectMeta, PostParams};
use serde_json::{Map, Value, json};

use super::api::SealedSecret;
use super::events::{Events, Kind};
use crate::apply::Written;
use crate::error::{Failure, Reason, Retry};
use crate::memory::{Memory, place};
use crate::metrics::Metrics;

/// The conditions that are ours.
const CONDITIONS: [&str; 4] = ["Synced", "Ready", "Reconciling", "Stalled"];

/// The label by which Argo CD and Helm say what an object belongs to; it stands in the metrics of conditions.
const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";

/// How often a status is written upon the live one before the object has to wait for another look.
const ATTEMPTS_MAX: usize = 5;

/// What says that all is well, in events; scripts look for it.
const UNSEALED: &str = "SealedSecret unsealed successfully";

/// Where a look at an object failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// While it was read and opened.
    Unseal,
    /// When its Secret turned out to be another's.
    Unmanaged,
    /// While its Secret was read or written.
    Update,
}

impl Stage {
    /// The reason in `sealed_secrets_controller_unseal_errors_total`.
    pub fn metric(self) -> &'static str {
        match self {
            Self::Unseal => "unseal",
            Self::Unmanaged => "unmanaged",
            Self::Update => "update",
        }
    }
}

/// Why an object has no Secret as it was sealed.
#[derive(Clone, Debug, PartialEq)]
pub struct Trouble {
    /// Where it came to light.
    pub stage: Stage,
    /// The cause, and what to do about it.
    pub failure: Failure,
    /// The cause in the words of Sealed Secrets, where it has words of its own for it.
    pub known: Option<String>,
}

impl Trouble {
    /// Trouble that Sealed Secrets has no words for.
    pub fn new(stage: Stage, failure: Failure) -> Self {
        Self { stage, failure, known: None }
    }

    fn text(&self) -> &str {
        self.known.as_deref().unwrap_or(&self.failure.message)
    }
}

/// What is done about a SealedSecret that failed for `reason`. A Secret that was refused is tried again, other than for
/// an EncryptedSecret: quotas and admission change without a sign.
pub fn retry(reason: Reason) -> Retry {
    if reason == Reason::RejectedSecret { Retry::Later } else { reason.retry() }
}

/// What became of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Its Secret is as it shall be.
    Synced {
        /// What that took.
        written: Written,
        /// Names of the keys that it still needs.
        keys: Vec<String>,
    },
    /// Its Secret was right and is not any more in these parts, and is only to be watched.
    Drifted(Vec<String>),
    /// It could not be turned into its Secret, which stays as it was.
    Failed(Trouble),
}

impl Outcome {
    fn reason(&self) -> String {
        match self {
            Self::Synced { .. } => "Unsealed".to_owned(),
            Self::Drifted(_) => Reason::Drifted.to_string(),
            Self::Failed(trouble) => trouble.failure.reason.to_string(),
        }
    }

    fn message(&self) -> String {
        match self {
            Self::Synced { keys, .. } => match keys.as_slice() {
                [] => "the Secret is as it was sealed".to_owned(),
                keys => format!("the Secret is as it was sealed; it needs the key {}", keys.join(", ")),
            },
            Self::Drifted(what) => {
                format!("the Secret was changed: {}; --drift=report leaves it so", what.join(", "))
            }
            Self::Failed(trouble) => trouble.failure.message.clone(),
        }
    }

    /// What `Synced` says: nothing when it is true.
    fn text(&self) -> String {
        match self {
            Self::Synced { .. } => String::new(),
            Self::Drifted(_) => self.message(),
            Self::Failed(trouble) if trouble.stage == Stage::Unmanaged => {
                format!("failed update: {}", trouble.text())
            }
            Self::Failed(trouble) => trouble.text().to_owned(),
        }
    }

    fn abnormal(&self) -> Option<&'static str> {
        match self {
            Self::Synced { .. } => None,
            Self::Drifted(_) => Some("Stalled"),
            Self::Failed(trouble) => Some(match retry(trouble.failure.reason) {
                Retry::Never => "Stalled",
                Retry::Later | Retry::WhenItComes => "Reconciling",
            }),
        }
    }
}

/// The ways to speak.
pub struct Reporter {
    /// To the API server.
    pub client: kube::Client,
    /// As events.
    pub events: Events,
    /// As numbers.
    pub metrics: Arc<Metrics>,
    /// Whether status is written at all.
    pub update_status: bool,
}

impl Reporter {
    /// Says it, where it is not said already.
    ///
    /// # Errors
    /// The API server's answer to the status. An event that is lost is only logged.
    pub async fn report(
        &self,
        object: &SealedSecret,
        outcome: &Outcome,
        memory: &Memory<Value>,
    ) -> Result<(), Failure> {
        let before = memory.status(&object.metadata, Some(&object.status)).unwrap_or_default();
        self.count(object, &before, outcome);
        let event = event(&before, object.metadata.generation, outcome);
        // First, so that a status which has to be tried again does not repeat the event.
        let written = self.write(object, before, outcome, memory).await;
        if let (Ok(()), Some((kind, reason, message))) = (&written, event) {
            self.events.publish(object, kind, &reason, &message).await;
        }
        written
    }

    fn count(&self, object: &SealedSecret, before: &Value, outcome: &Outcome) {
        let place = place(&object.metadata);
        let labels = object.metadata.labels.as_ref();
        let instance = labels.and_then(|labels| labels.get(INSTANCE_LABEL)).map_or("", String::as_str);
        let status = if matches!(outcome, Outcome::Synced { .. }) { "True" } else { "False" };
        for condition in ["Synced", "Ready"] {
            self.metrics.sealed.condition(&place, condition, status, instance);
        }
        match outcome {
            Outcome::Failed(trouble) => {
                self.metrics.sealed.unseal_failed(trouble.stage.metric(), object.namespace());
            }
            Outcome::Synced { written, .. } if *written != Written::Nothing => {
                if was_synced(before, object.metadata.generation) {
                    self.metrics.repaired();
                }
            }
            Outcome::Synced { .. } | Outcome::Drifted(_) => {}
        }
    }

    async fn write(
        &self,
        object: &SealedSecret,
        mut before: Value,
        outcome: &Outcome,
        memory: &Memory<Value>,
    ) -> Result<(), Failure> {
        let objects: Api<SealedSecret> = Api::namespaced(self.client.clone(), object.namespace());
        let mut version = object.metadata.resource_version.clone();
        for _ in 0..ATTEMPTS_MAX {
            let next = next_status(&before, object.metadata.generation, outcome, Timestamp::now());
            if says_the_same(&before, &next) || !self.update_status {
                memory.tell(&object.metadata, next);
                return Ok(());
            }
            let (how, body) = (PostParams::default(), upon(object, version, &next));
            match objects.replace_status(object.name(), &how, &body).await {
                Ok(_) => {
                    memory.tell(&object.metadata, next);
                    return Ok(());
                }
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
                Err(error) => return Err(Failure::from_api("writing the status", &error)),
            }
            let live = objects.get_opt(object.name()).await;
            let live = live.map_err(|error| Failure::from_api("reading the status", &error))?;
            let Some(live) = live.filter(|live| live.uid() == object.uid()) else { return Ok(()) };
            (before, version) = (live.status, live.metadata.resource_version);
        }
        Err(Failure::new(Reason::WriteConflict, "writing the status: others write it all the time"))
    }
}

/// What is sent: of the object only what says which version of which object the status is for.
fn upon(object: &SealedSecret, version: Option<String>, status: &Value) -> SealedSecret {
    let metadata = ObjectMeta {
        name: object.metadata.name.clone(),
        namespace: object.metadata.namespace.clone(),
        uid: object.metadata.uid.clone(),
        resource_version: version,
        ..ObjectMeta::default()
    };
    SealedSecret::new(metadata, Value::Null, status.clone())
}

/// The status that `outcome` gives an object of `generation` whose status was `before`.
pub fn next_status(before: &Value, generation: Option<i64>, outcome: &Outcome, now: Timestamp) -> Value {
    let now = to_seconds(now).to_string();
    let status = if matches!(outcome, Outcome::Synced { .. }) { "True" } else { "False" };
    let reason = outcome.reason();
    let of = |type_: &str, status: &str, message: &str| {
        let last = condition(before, type_).filter(|last| last["status"] == status);
        let since = last.and_then(|last| last["lastTransitionTime"].as_str()).unwrap_or(&now);
        json!({
            "type": type_,
            "status": status,
            "reason": reason,
            "message": message,
            "observedGeneration": generation,
            "lastTransitionTime": since,
            "lastUpdateTime": now,
        })
    };
    let message = outcome.message();
    let mut conditions = vec![of("Synced", status, &outcome.text()), of("Ready", status, &message)];
    conditions.extend(outcome.abnormal().map(|type_| of(type_, "True", &message)));
    conditions.extend(all(before).filter(|condition| !is_ours(condition)).cloned());
    // What others keep in the status stays.
    let mut next = before.as_object().cloned().unwrap_or_else(Map::new);
    next.insert("observedGeneration".to_owned(), generation.into());
    next.insert("conditions".to_owned(), conditions.into());
    Value::Object(next)
}

/// Whether two statuses tell the same, whenever they were written. A definition that does not know the generation of a
/// single condition drops it; that of the whole status is there then.
fn says_the_same(before: &Value, next: &Value) -> bool {
    let is_same = |(before, next): (&Value, &Value)| {
        let same = |member: &str| text(before, member) == text(next, member);
        let generation = &before["observedGeneration"];
        ["type", "status", "reason", "message"].into_iter().all(same)
            && (generation.is_null() || *generation == next["observedGeneration"])
    };
    before["observedGeneration"] == next["observedGeneration"]
        && all(before).count() == all(next).count()
        && all(before).zip(all(next)).all(is_same)
}

/// Whether the Secret had been right for this very version of the object, by a status that says so.
pub fn was_synced(status: &Value, generation: Option<i64>) -> bool {
    let is = |type_: &str, member: &str, value: &str| {
        condition(status, type_).is_some_and(|condition| condition[member] == value)
    };
    status["observedGeneration"].as_i64() == generation
        && (is("Synced", "status", "True") || is("Ready", "reason", &Reason::Drifted.to_string()))
}

/// The event that is worth a person's notice: the Secret was written, or what is said of the object changed.
fn event(before: &Value, generation: Option<i64>, outcome: &Outcome) -> Option<(Kind, String, String)> {
    let last = condition(before, "Synced");
    let is_new = last.is_none_or(|last| {
        let status = if matches!(outcome, Outcome::Synced { .. }) { "True" } else { "False" };
        last["status"] != status || text(last, "message") != outcome.text()
    });
    match outcome {
        Outcome::Synced { written: Written::Changed(what), .. } if was_synced(before, generation) => {
            let message = format!("{UNSEALED}; the Secret was changed and is put right: {}", what.join(", "));
            Some((Kind::Normal, "Unsealed".to_owned(), message))
        }
        Outcome::Synced { written, .. } => {
            let is_worth_it = is_new || *written != Written::Nothing;
            is_worth_it.then(|| (Kind::Normal, "Unsealed".to_owned(), UNSEALED.to_owned()))
        }
        _ if !is_new => None,
        Outcome::Drifted(_) => Some((Kind::Warning, outcome.reason(), outcome.message())),
        Outcome::Failed(trouble) => {
            let text = trouble.text();
            let (reason, message) = match trouble.stage {
                Stage::Unseal => ("ErrUnsealFailed", format!("Failed to unseal: {text}")),
                Stage::Unmanaged | Stage::Update => ("ErrUpdateFailed", text.to_owned()),
            };
            Some((Kind::Warning, reason.to_owned(), message))
        }
    }
}

/// The condition of a type.
fn condition<'a>(status: &'a Value, type_: &str) -> Option<&'a Value> {
    all(status).find(|condition| condition["type"] == type_)
}

fn all(status: &Value) -> impl Iterator<Item = &Value> {
    status["conditions"].as_array().into_iter().flatten()
}

fn is_ours(condition: &Value) -> bool {
    CONDITIONS.iter().any(|ours| condition["type"] == *ours)
}

/// Absent and empty are the same: the place that this one takes leaves empty messages out.
fn text<'a>(condition: &'a Value, member: &str) -> &'a str {
    condition[member].as_str().unwrap_or_default()
}

/// The precision of times in an object.
fn to_seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn failed(stage: Stage, reason: Reason, known: Option<&str>) -> Outcome {
        Outcome::Failed(Trouble {
            stage,
            failure: Failure::new(reason, "because"),
            known: known.map(str::to_owned),
        })
    }

    fn synced_by(written: Written) -> Outcome {
        Outcome::Synced { written, keys: vec!["key".to_owned()] }
    }

    fn synced() -> Outcome {
        synced_by(Written::Created)
    }

    fn first(outcome: &Outcome) -> Value {
        next_status(&Value::Null, Some(1), outcome, at(100))
    }

    fn types(status: &Value) -> Vec<String> {
        let line = |condition: &Value| {
            let [type_, status, reason] = ["type", "status", "reason"].map(|member| text(condition, member));
            format!("{type_}={status} {reason}")
        };
        all(status).map(line).collect()
    }

    #[test]
    fn synced_is_first_and_silent_when_all_is_well() {
        let status = first(&synced());
        assert_eq!(types(&status), ["Synced=True Unsealed", "Ready=True Unsealed"]);
        assert_eq!(
            (text(&status["conditions"][0], "message"), &status["observedGeneration"]),
            ("", &json!(1))
        );
    }

    #[test]
    fn synced_keeps_the_known_text_and_ready_says_more() {
        let known = r#"Resource "db" already exists and is not managed by SealedSecret"#;
        let status = first(&failed(Stage::Unmanaged, Reason::TargetConflict, Some(known)));
        assert_eq!(
            types(&status),
            ["Synced=False TargetConflict", "Ready=False TargetConflict", "Stalled=True TargetConflict"]
        );
        assert_eq!(text(&status["conditions"][0], "message"), format!("failed update: {known}"));
        assert_eq!(text(&status["conditions"][1], "message"), "because");
    }

    #[test]
    fn what_time_or_others_heal_is_being_reconciled() {
        for reason in [Reason::ApiUnavailable, Reason::WriteConflict, Reason::NoSealingKey] {
            assert!(
                types(&first(&failed(Stage::Update, reason, None)))[2].starts_with("Reconciling=True"),
                "{reason}"
            );
        }
    }

    #[test]
    fn a_status_that_their_controller_left_keeps_its_time_of_transition() {
        let theirs = json!({"observedGeneration": 1, "conditions": [{
            "type": "Synced", "status": "True",
            "lastTransitionTime": "1970-01-01T00:00:07Z", "lastUpdateTime": "1970-01-01T00:00:07Z",
        }]});
        let next = next_status(&theirs, Some(1), &synced(), at(100));
        assert_eq!(next["conditions"][0]["lastTransitionTime"], "1970-01-01T00:00:07Z");
        assert_eq!(next["conditions"][0]["lastUpdateTime"], "1970-01-01T00:01:40Z");
        assert_eq!(next["conditions"][1]["lastTransitionTime"], "1970-01-01T00:01:40Z");
    }

    #[test]
    fn conditions_and_members_of_others_stay_behind_ours() {
        let before = json!({"conditions": [{"type": "Audited", "status": "True"}], "seen": "x"});
        let next = next_status(&before, Some(1), &synced(), at(1));
        assert_eq!(types(&next)[2], "Audited=True ");
        assert_eq!(next["seen"], "x");
    }

    #[test]
    fn the_same_outcome_says_nothing_new_even_where_the_definition_drops_what_it_does_not_know() {
        let mut stored = first(&synced());
        let later = |stored: &Value, generation| next_status(stored, Some(generation), &synced(), at(999));
        assert!(says_the_same(&stored, &later(&stored, 1)));
        assert!(!says_the_same(&stored, &later(&stored, 2)));
        for condition in stored["conditions"].as_array_mut().unwrap() {
            condition.as_object_mut().unwrap().remove("observedGeneration");
        }
        assert!(says_the_same(&stored, &later(&stored, 1)));
        assert!(!says_the_same(&stored, &later(&stored, 2)));
        let failed = first(&failed(Stage::Unseal, Reason::NotOpened, None));
        assert!(!says_the_same(&failed, &later(&failed, 1)));
    }

    #[test]
    fn another_message_is_news_although_the_condition_stays_false() {
        let before =
            first(&failed(Stage::Unseal, Reason::NotOpened, Some("no key could decrypt secret (a)")));
        let next = next_status(
            &before,
            Some(1),
            &failed(Stage::Unseal, Reason::NotOpened, Some("no key could decrypt secret (b)")),
            at(200),
        );
        assert!(!says_the_same(&before, &next));
        assert_eq!(next["conditions"][0]["lastTransitionTime"], "1970-01-01T00:01:40Z");
    }

    fn told(before: &Value, outcome: &Outcome) -> Option<String> {
        let (_, reason, message) = event(before, Some(1), outcome)?;
        Some(format!("{reason}: {message}"))
    }

    #[test]
    fn events_tell_writes_and_changes_and_no_look_without_either() {
        let nothing = synced_by(Written::Nothing);
        assert_eq!(
            told(&Value::Null, &nothing).as_deref(),
            Some("Unsealed: SealedSecret unsealed successfully")
        );
        let synced = first(&nothing);
        assert_eq!(told(&synced, &nothing), None);
        assert_eq!(
            told(&synced, &synced_by(Written::Created)).as_deref(),
            Some("Unsealed: SealedSecret unsealed successfully")
        );
        let repaired = synced_by(Written::Changed(vec!["k".to_owned(), "label x".to_owned()]));
        assert!(told(&synced, &repaired).is_some_and(|told| told.ends_with("put right: k, label x")));
        let unknown = failed(Stage::Unseal, Reason::NotOpened, Some("no key could decrypt secret (k)"));
        let text = "ErrUnsealFailed: Failed to unseal: no key could decrypt secret (k)";
        assert_eq!(told(&synced, &unknown).as_deref(), Some(text));
        assert_eq!(told(&first(&unknown), &unknown), None);
        let update = failed(Stage::Update, Reason::RejectedSecret, None);
        assert!(types(&first(&update)).iter().any(|shown| shown == "Reconciling=True RejectedSecret"));
        assert_eq!(told(&first(&unknown), &update).as_deref(), Some("ErrUpdateFailed: because"));
    }

    #[test]
    fn drift_is_known_by_a_status_that_was_right_or_says_so_already() {
        let drifted = Outcome::Drifted(vec!["k".to_owned()]);
        assert!(was_synced(&first(&synced()), Some(1)));
        assert!(was_synced(&first(&drifted), Some(1)));
        assert!(!was_synced(&first(&synced()), Some(2)));
        assert!(!was_synced(&first(&failed(Stage::Update, Reason::WriteConflict, None)), Some(1)));
        assert_eq!(types(&first(&drifted))[2], "Stalled=True Drifted");
    }
}

//! One SealedSecret, once: look, open, apply, report.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use kube::runtime::controller::Action;
use lacre_crypto::object::SealedSecret as Sealed;
use lacre_crypto::object::sealed_secret::UnsealOptions;
use lacre_crypto::object::sealed_secret::scope::ANNOTATION_ON;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::api::SealedSecret;
use super::keys::SealingKeys;
use super::report::{Outcome, Reporter, Stage, Trouble, retry, was_synced};
use super::rules::Rules;
use super::target::{Claim, SKIP_OWNER, claim};
use super::unseal::WORK_MAX;
use super::write::{self, Extent, Fixed, Revision, Wanted, revise};
use super::{Options, unseal};
use crate::apply::{PlainSecret, Written};
use crate::args::sealed::Drift;
use crate::error::{Failure, Reason, Retry};
use crate::memory::{Backoff, Memory, jitter, place};
use crate::metrics::{Ended, Kind, Metrics};
use crate::reconcile::{guarded, next_look};

/// How often a Secret that changes while it is written is looked at again before the object has to wait.
const ATTEMPTS_MAX: usize = 3;

/// How long after the end of a Secret that was another's it is made anew: time for whoever replaces it to do so.
const PAUSE_AFTER_FOREIGN: Duration = Duration::from_secs(1);

/// How many changes to a Secret are put right at once. After that somebody seems to insist, and each takes longer.
const REPAIRS_AT_ONCE: u32 = 5;

/// All that a reconcile needs beside the object.
pub struct Context {
    /// To read and write Secrets.
    pub client: kube::Client,
    /// What opens.
    pub keys: Arc<SealingKeys>,
    /// What objects may not make.
    pub rules: Rules,
    /// What flags say.
    pub options: Options,
    /// How outcomes are told.
    pub reporter: Reporter,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What is remembered about objects.
    pub memory: Memory<Value>,
    /// When failed objects are tried again.
    pub backoff: Backoff,
    /// When objects are looked at again although nothing is known to have changed.
    pub resync: Duration,
    /// Bounds how many objects are worked on at a time, whatever the number of namespaces.
    pub permits: Semaphore,
}

/// What a look led to.
enum Settled {
    /// Something that can be told.
    Outcome(Outcome),
    /// Nothing yet: it is better to look again after a while.
    Wait(Duration),
}

/// Turns one object into its Secret and says what came of it.
///
/// # Errors
/// What kept it from being Ready, after that was reported.
pub async fn reconcile(object: Arc<SealedSecret>, context: Arc<Context>) -> Result<Action, Failure> {
    if object.metadata.deletion_timestamp.is_some() {
        // Its Secret goes with it, by the owner reference; making it again now would fight the garbage collector.
        return Ok(Action::await_change());
    }
    // The semaphore is never closed.
    let _permit = context.permits.acquire().await;
    let began = Instant::now();
    context.metrics.begin_of(Kind::SealedSecret);
    context.metrics.sealed.unseal_requested();
    let result = look_and_report(&object, &context).await;
    let ended = if result.is_ok() { Ended::Success } else { Ended::Error };
    context.metrics.end_of(Kind::SealedSecret, &place(&object.metadata), ended, began.elapsed());
    result
}

async fn look_and_report(object: &SealedSecret, context: &Context) -> Result<Action, Failure> {
    let settled = guarded(async { Ok(settle(object, context).await) }).await;
    let failed = |failure| Settled::Outcome(Outcome::Failed(Trouble::new(Stage::Update, failure)));
    let outcome = match settled.unwrap_or_else(failed) {
        Settled::Wait(delay) => return Ok(Action::requeue(delay)),
        Settled::Outcome(outcome) => outcome,
    };
    let reported = context.reporter.report(object, &outcome, &context.memory).await;
    if reported.is_err() {
        context.metrics.sealed.unseal_failed("status", object.namespace());
    }
    match outcome {
        Outcome::Failed(trouble) => reported.and(Err(trouble.failure)),
        Outcome::Synced { .. } | Outcome::Drifted(_) => reported,
    }?;
    context.memory.succeed(&object.metadata);
    Ok(next_look(context.resync))
}

/// What is done after a failure: it is tried again, without end and ever more rarely. What only the object or a key can
/// mend wakes it by itself, so that it costs no arithmetic in between.
pub fn error_policy(object: Arc<SealedSecret>, failure: &Failure, context: Arc<Context>) -> Action {
    let jitter = match retry(failure.reason) {
        Retry::Later => jitter(),
        Retry::Never if !failure.reason.lies_in_the_live_secret() => return next_look(context.resync),
        // Nearly the whole delay: each look at a Secret in the way is one request for nothing.
        Retry::Never | Retry::WhenItComes => 0.9 + jitter() / 10.0,
    };
    Action::requeue(context.backoff.delay(context.memory.fail(&object.metadata), jitter))
}

async fn settle(object: &SealedSecret, context: &Context) -> Settled {
    let look = Look {
        object,
        context,
        secrets: Api::namespaced(context.client.clone(), object.namespace()),
        synced: {
            let status = context.memory.status(&object.metadata, Some(&object.status));
            was_synced(&status.unwrap_or_default(), object.metadata.generation)
        },
    };
    look.settle().await.unwrap_or_else(|trouble| Settled::Outcome(Outcome::Failed(trouble)))
}

struct Look<'a> {
    object: &'a SealedSecret,
    context: &'a Context,
    secrets: Api<Secret>,
    /// Whether the Secret had been right for this version of the object: then whatever is wrong with it now is drift.
    synced: bool,
}

impl Look<'_> {
    async fn settle(&self) -> Result<Settled, Trouble> {
        let sealed = self.object.read().map_err(|error| {
            Trouble::new(Stage::Unseal, Failure::new(Reason::InvalidObject, error.to_string()))
        })?;
        let placed = self.context.rules.check_place(self.object.namespace(), sealed.scope);
        placed.map_err(|failure| Trouble::new(Stage::Unseal, failure))?;
        let mut live = self.live().await?;
        if self.foreign_is_gone(live.as_ref()) {
            return Ok(Settled::Wait(PAUSE_AFTER_FOREIGN));
        }
        if sealed.template.annotation(SKIP_OWNER) != Some(ANNOTATION_ON)
            && let Some(live) = &live
        {
            // Before the object is opened, which would be work for nothing.
            self.extent(live).await?;
        }
        let wanted = self.open(sealed).await?;
        for _ in 1..ATTEMPTS_MAX {
            match self.apply(&wanted, live.as_ref()).await {
                Err(trouble) if trouble.failure.reason == Reason::WriteConflict => live = self.live().await?,
                settled => return settled,
            }
        }
        self.apply(&wanted, live.as_ref()).await
    }

    async fn live(&self) -> Result<Option<PlainSecret>, Trouble> {
        let found = self.secrets.get_opt(self.object.name()).await;
        let found =
            found.map_err(|error| Failure::from_api(&format!("reading Secret {}", self.place()), &error));
        found.map(|found| found.map(PlainSecret::new)).map_err(updating)
    }

    /// Whether a Secret that was not the object's own, and was there at the last look, has gone since.
    fn foreign_is_gone(&self, live: Option<&PlainSecret>) -> bool {
        let is_foreign = live.is_some_and(|live| {
            let claim = claim(self.object.uid(), &live.metadata);
            matches!(claim, Claim::Foreign(_) | Claim::Patched { take_over: false })
        });
        self.context.memory.see_foreign(&self.object.metadata, is_foreign) && live.is_none()
    }

    /// How much of the live Secret may be written.
    async fn extent(&self, live: &PlainSecret) -> Result<Extent, Trouble> {
        match claim(self.object.uid(), &live.metadata) {
            Claim::Own => Ok(Extent::Whole),
            Claim::OwnOfPredecessor => self.confirm().await.map(|()| Extent::Whole),
            Claim::Patched { take_over } => Ok(Extent::Added { take_over }),
            Claim::HoldsKeys(label) => {
                let message = format!("Secret {} carries the label {label}", self.place());
                Err(updating(Failure::new(Reason::ForbiddenTarget, message)))
            }
            Claim::Foreign(description) => Err(self.unmanaged(&description)),
        }
    }

    /// Whether the object is still the one that is there: the uid in the Secret could be that of a younger one.
    async fn confirm(&self) -> Result<(), Trouble> {
        let objects: Api<SealedSecret> =
            Api::namespaced(self.context.client.clone(), self.object.namespace());
        let found = objects.get_opt(self.object.name()).await;
        let found = found.map_err(|error| {
            updating(Failure::from_api(&format!("reading SealedSecret {}", self.place()), &error))
        })?;
        if found.is_some_and(|found| found.uid() == self.object.uid()) {
            return Ok(());
        }
        let message = format!("SealedSecret {} was deleted or made anew", self.place());
        Err(updating(Failure::new(Reason::WriteConflict, message)))
    }

    fn unmanaged(&self, description: &str) -> Trouble {
        let message = format!(
            "Secret {} exists and is not this object's: {description}; delete it, or annotate it with {}=true",
            self.place(),
            super::target::MANAGED
        );
        let known =
            format!("Resource {:?} already exists and is not managed by SealedSecret", self.object.name());
        Trouble {
            stage: Stage::Unmanaged,
            failure: Failure::new(Reason::TargetConflict, message),
            known: Some(known),
        }
    }

    async fn open(&self, sealed: Sealed) -> Result<Wanted, Trouble> {
        let how = UnsealOptions {
            accept_v1: self.context.options.accept_deprecated_v1_data,
            missing_key: self.context.options.missing_key,
            render: true,
            deadline: Some(Instant::now() + WORK_MAX),
        };
        let opened = unseal::open(sealed, &self.context.keys, how).await?;
        let wanted =
            Wanted::new(self.object, opened).map_err(|failure| Trouble::new(Stage::Unseal, failure))?;
        self.context.rules.check(&wanted).map_err(updating)?;
        Ok(wanted)
    }

    async fn apply(&self, wanted: &Wanted, live: Option<&PlainSecret>) -> Result<Settled, Trouble> {
        let Some(live) = live else { return self.create(wanted).await };
        let extent = match self.extent(live).await {
            // Nothing has to be written, so nobody has to be asked.
            Err(trouble) if trouble.stage == Stage::Unmanaged => match revise(live, wanted, Extent::Whole) {
                Ok(equal) if equal.changes.is_empty() => Extent::Whole,
                _ => return Err(trouble),
            },
            extent => extent?,
        };
        match revise(live, wanted, extent) {
            Ok(revision) if revision.changes.is_empty() => {
                Ok(self.settled(wanted, Written::Nothing, live.metadata.resource_version.clone()))
            }
            Ok(revision) => self.replace(wanted, revision).await,
            Err(Fixed::Type(_)) if self.synced && extent == Extent::Whole => {
                self.exchange(wanted, live).await
            }
            Err(fixed) => Err(self.fixed(&fixed, wanted)),
        }
    }

    async fn create(&self, wanted: &Wanted) -> Result<Settled, Trouble> {
        if let Some(settled) = self.hold_back(|| vec!["it is gone".to_owned()]) {
            return Ok(settled);
        }
        let version = write::create(&self.secrets, wanted).await.map_err(updating)?;
        Ok(self.settled(wanted, Written::Created, version))
    }

    async fn replace(&self, wanted: &Wanted, revision: Revision) -> Result<Settled, Trouble> {
        if let Some(settled) = self.hold_back(|| revision.changes.clone()) {
            return Ok(settled);
        }
        let version = write::replace(&self.secrets, &revision).await.map_err(updating)?;
        Ok(self.settled(wanted, Written::Changed(revision.changes), version))
    }

    /// Puts a Secret of the right type in the place of one that somebody exchanged for another. Only of a Secret that had
    /// the right type for this version of the object before, so that it is known to be one that can be made.
    async fn exchange(&self, wanted: &Wanted, live: &PlainSecret) -> Result<Settled, Trouble> {
        if let Some(settled) = self.hold_back(|| vec!["type".to_owned()]) {
            return Ok(settled);
        }
        let is_fixed = || self.fixed(&Fixed::Type(live.type_.clone().unwrap_or_default()), wanted);
        // Admission may have changed since: better the wrong type than nothing.
        match write::try_out(&self.secrets, wanted).await {
            Err(failure) if matches!(failure.reason, Reason::ApiForbidden | Reason::RejectedSecret) => {
                return Err(is_fixed());
            }
            tried => tried.map_err(updating)?,
        }
        match write::delete(&self.secrets, &live.metadata).await {
            Err(failure) if failure.reason == Reason::ApiForbidden => return Err(is_fixed()),
            deleted => deleted.map_err(updating)?,
        }
        let version = write::create(&self.secrets, wanted).await.map_err(updating)?;
        Ok(self.settled(wanted, Written::Changed(vec!["type".to_owned()]), version))
    }

    /// Whether drift is left alone: for ever, because it is only to be told, or for a while, because it was repaired again
    /// and again.
    fn hold_back(&self, what: impl Fn() -> Vec<String>) -> Option<Settled> {
        if !self.synced {
            return None;
        }
        if self.context.options.drift == Drift::Report {
            return Some(Settled::Outcome(Outcome::Drifted(what())));
        }
        let now = Instant::now();
        let (repairs, since) = self.context.memory.repairs(&self.object.metadata, now);
        let delay = self.context.backoff.delay(repairs.saturating_sub(REPAIRS_AT_ONCE), 1.0);
        if repairs > REPAIRS_AT_ONCE && since < delay {
            return Some(Settled::Wait(delay - since));
        }
        self.context.memory.repair(&self.object.metadata, now);
        None
    }

    fn fixed(&self, fixed: &Fixed, wanted: &Wanted) -> Trouble {
        let (message, known) = match fixed {
            Fixed::Immutable(keys) => {
                let message = format!(
                    "the target Secret is immutable and differs in {}; delete it, and it is made again",
                    keys.join(", ")
                );
                (message.clone(), Some(format!("Error updating {}: {message}", self.place())))
            }
            Fixed::Type(type_) => {
                let message = format!(
                    "the Secret is of type {type_} and cannot become {}; delete it, and it is made again",
                    wanted.type_()
                );
                (message, None)
            }
        };
        Trouble { stage: Stage::Update, failure: Failure::new(Reason::ImmutableField, message), known }
    }

    fn settled(&self, wanted: &Wanted, written: Written, version: Option<String>) -> Settled {
        self.context.memory.settle(&self.object.metadata, version);
        let keys = wanted.opened_by().to_vec();
        Settled::Outcome(Outcome::Synced { written, keys })
    }

    fn place(&self) -> String {
        format!("{}/{}", self.object.namespace(), self.object.name())
    }
}

fn updating(failure: Failure) -> Trouble {
    Trouble::new(Stage::Update, failure)
}

//! One object, once: look, verify and decrypt, apply, report.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use k8s_openapi::api::core::v1::Secret;
use kube::api::Api;
use kube::runtime::controller::Action;

use crate::api::{AppliedSecret, EncryptedSecret, EncryptedSecretStatus};
use crate::apply;
use crate::error::{Failure, Reason, Retry};
use crate::keyring::Keyring;
use crate::memory::{Backoff, Memory, jitter, place};
use crate::metrics::{Ended, Metrics};
use crate::policy::Policy;
use crate::report::{Outcome, Reporter};
use crate::unseal;

/// Longest time that one object may take. Beyond it an answer was lost somewhere on the way, and the place among the
/// objects worked on at a time is given to others.
const DEADLINE: Duration = Duration::from_secs(120);

/// All that a reconcile needs beside the object.
pub struct Context {
    /// To read and write Secrets.
    pub client: kube::Client,
    /// What objects may not ask for.
    pub policy: Policy,
    /// Name of this cluster, which seals may be limited to.
    pub cluster_name: Option<String>,
    /// Who may open what.
    pub keyring: Arc<Keyring>,
    /// How outcomes are told.
    pub reporter: Reporter,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What is remembered about objects.
    pub memory: Memory<EncryptedSecretStatus>,
    /// When failed objects are tried again.
    pub backoff: Backoff,
    /// When objects are looked at again although nothing is known to have changed.
    pub resync: Duration,
}

/// Turns one object into its Secret and says what came of it.
///
/// # Errors
/// What kept it from being Ready, after that was reported.
pub async fn reconcile(object: Arc<EncryptedSecret>, context: Arc<Context>) -> Result<Action, Failure> {
    if object.metadata.deletion_timestamp.is_some() {
        // Its Secret goes with it, by the owner reference; making it again now would fight the garbage collector.
        return Ok(Action::await_change());
    }
    let began = Instant::now();
    context.metrics.begin();
    let settled = guarded(settle(&object, &context)).await;
    let outcome = settled.unwrap_or_else(Outcome::Failed);
    let reported = context.reporter.report(&object, &outcome, &context.memory).await;
    let result = match outcome {
        Outcome::Failed(failure) => reported.and(Err(failure)),
        Outcome::Synced { .. } | Outcome::Suspended => reported,
    };
    let ended = if result.is_ok() { Ended::Success } else { Ended::Error };
    context.metrics.end(&place(&object.metadata), ended, began.elapsed());
    result.map(|()| {
        context.memory.succeed(&object.metadata);
        next_look(context.resync)
    })
}

/// Does the work on one object, and ends it when it takes too long or panics.
pub(crate) async fn guarded<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    // A panic that left here would end the loop, and with it the work for all objects. Nothing is shared by the work on
    // an object and the rest that it could leave half done.
    let work = AssertUnwindSafe(work).catch_unwind();
    match tokio::time::timeout(DEADLINE, work).await {
        Err(_) => Err(took_too_long()),
        Ok(Err(_)) => Err(ended_unexpectedly()),
        Ok(Ok(done)) => done,
    }
}

/// Spread over half of `resync`, so that objects of one start do not come back together.
pub(crate) fn next_look(resync: Duration) -> Action {
    Action::requeue(resync.mul_f64(0.5 + jitter() / 2.0))
}

/// What is done after a failure: nothing, until something changes, or another attempt after a while.
pub fn error_policy(object: Arc<EncryptedSecret>, failure: &Failure, context: Arc<Context>) -> Action {
    match failure.reason.retry() {
        // The end of a Secret that was in the way is not told to a watch that was interrupted meanwhile.
        Retry::Never if failure.reason.lies_in_the_live_secret() => next_look(context.resync),
        Retry::Never | Retry::WhenItComes => Action::await_change(),
        Retry::Later => {
            Action::requeue(context.backoff.delay(context.memory.fail(&object.metadata), jitter()))
        }
    }
}

fn ended_unexpectedly() -> Failure {
    Failure::new(Reason::InvalidObject, "the work on it ended unexpectedly: a bug of the controller")
}

fn took_too_long() -> Failure {
    Failure::new(Reason::ApiUnavailable, format!("no end after {} seconds", DEADLINE.as_secs()))
}

async fn settle(object: &EncryptedSecret, context: &Context) -> Result<Outcome, Failure> {
    if unseal::is_suspended(object) {
        context.memory.settle(&object.metadata, None);
        return Ok(Outcome::Suspended);
    }
    context.policy.check_namespace(object.namespace())?;
    let sealed = unseal::read(object)?;
    sealed.check(&context.policy)?;

    let secrets: Api<Secret> = Api::namespaced(context.client.clone(), object.namespace());
    let live = apply::look(&secrets, object).await?;
    let unsealed = verify_and_decrypt(object, sealed, context).await?;
    context.policy.check_scope(unsealed.scope)?;

    let applied = apply::apply(&secrets, object, &unsealed, live).await?;
    context.memory.settle(&object.metadata, applied.version);
    let secret = AppliedSecret {
        name: object.name().to_owned(),
        last_modified: unsealed.last_modified.clone(),
        scope: unsealed.scope.to_string(),
        fingerprints: unsealed.fingerprints.clone(),
    };
    Ok(Outcome::Synced { written: applied.written, secret })
}

async fn verify_and_decrypt(
    object: &EncryptedSecret,
    sealed: unseal::Sealed,
    context: &Context,
) -> Result<unseal::Unsealed, Failure> {
    let held = context.keyring.identities_for(object.namespace(), sealed.keys_from()).await?;
    let uid = object.uid().to_owned();
    let cluster_name = context.cluster_name.clone();
    // On a thread that may block: it computes, and key services answer when they like.
    let opening = tokio::task::spawn_blocking(move || sealed.open(&held, &uid, cluster_name.as_deref()));
    opening.await.map_err(|_| ended_unexpectedly())?
}

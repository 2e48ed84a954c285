//! What wakes an object: its own generation, its Secret, a key Secret it names, the controller's own identities.
//!
//! Secrets are watched as metadata: their values never come over the wire for it, and none is kept, so memory does
//! not grow with the Secrets of others.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt};
use kube::api::{Api, ObjectMeta};
use kube::runtime::controller::{Action, Config, Controller, Error};
use kube::runtime::reflector::{ObjectRef, Store, store};
use kube::runtime::utils::Backoff;
use kube::runtime::{PredicateConfig, WatchStreamExt, predicates, watcher};

use crate::api::{EncryptedSecret, SecretMetadata};
use crate::error::Failure;
use crate::memory::Place;
use crate::policy::KEY_LABEL;
use crate::reconcile::{Context, error_policy, reconcile};
use crate::server::Health;

/// How often the loop shows that it is alive and forgets objects that are gone.
const TICK: Duration = Duration::from_secs(2);

/// The first pause after a watch failed.
const PAUSE: Duration = Duration::from_millis(250);
/// The longest.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// How the loop runs.
#[derive(Clone, Debug)]
pub struct LoopOptions {
    /// The one namespace that is served; all of them when absent.
    pub namespace: Option<String>,
    /// Most objects that are worked on at a time.
    pub concurrency: u16,
}

/// Reconciles until `shutdown`, then finishes what is being written.
///
/// `own_keys_changed` wakes every object.
pub async fn run(
    context: Arc<Context>,
    options: LoopOptions,
    health: Arc<Health>,
    own_keys_changed: impl Stream<Item = ()> + Send + 'static,
    shutdown: impl Future<Output = ()> + Send + Sync + 'static,
) {
    let (reader, writer) = store();
    let objects: Api<EncryptedSecret> = scoped(&context.client, &options);
    // The API server counts a generation up when spec or sops change, not when labels or our own status do.
    let objects = watcher(objects, watcher::Config::default())
        .backoff(Pauses::of_a_watch())
        .reflect(writer)
        .applied_objects()
        .predicate_filter(predicates::generation, PredicateConfig::default());
    let secrets: Api<SecretMetadata> = scoped(&context.client, &options);
    let labelled = watcher::Config::default().labels(&format!("{KEY_LABEL}=true"));
    let all =
        watcher(secrets.clone(), watcher::Config::default()).backoff(Pauses::of_a_watch()).touched_objects();
    let labelled = watcher(secrets, labelled).backoff(Pauses::of_a_watch()).touched_objects();
    let (by_name, by_key) = (object_of_secret(&reader, &context), objects_of_key(&reader));
    let reconciles = Controller::for_stream(objects, reader.clone())
        .with_config(Config::default().concurrency(options.concurrency))
        .trigger_backoff(Pauses::of_all_watches())
        .watches_stream(all, by_name)
        .watches_stream(labelled, by_key)
        .reconcile_all_on(own_keys_changed)
        .graceful_shutdown_on(shutdown)
        .run(reconcile, error_policy, context.clone());
    tokio::join!(drain(reconciles, &reader, &context, &options, &health), tell_when_listed(&reader, &health));
}

/// The pauses after each failure of one watch in a row.
///
/// kube's own grow to half a minute, and only shrink when two minutes went well: too long for Secrets to be missing once
/// the API server is back.
#[derive(Debug)]
pub(crate) struct Pauses {
    next: Duration,
    longest: Duration,
}

impl Pauses {
    /// For one watch.
    pub(crate) fn of_a_watch() -> Self {
        Self { next: PAUSE, longest: PAUSE_MAX }
    }

    /// For all watches of a controller together, each of which pauses by itself: one that fails for ever, such as for
    /// want of a right, must not hold the others up.
    pub(crate) fn of_all_watches() -> Self {
        Self { next: Duration::ZERO, longest: Duration::ZERO }
    }
}

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        Some(pause)
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        self.next = PAUSE.min(self.longest);
    }
}

async fn drain<S, Q>(
    reconciles: S,
    reader: &Store<EncryptedSecret>,
    context: &Context,
    options: &LoopOptions,
    health: &Health,
) where
    S: Stream<Item = Result<(ObjectRef<EncryptedSecret>, Action), Error<Failure, Q>>>,
    Q: std::error::Error + 'static,
{
    let mut reconciles = std::pin::pin!(reconciles);
    let mut tick = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            ended = reconciles.next() => match ended {
                None => return,
                Some(Ok((object, _))) => tracing::debug!(%object, "done"),
                Some(Err(Error::ReconcilerFailed(failure, object))) => {
                    tracing::warn!(%object, reason = %failure.reason, cause = failure.message, "not ready");
                }
                // An object that went while it waited for its turn.
                Some(Err(Error::ObjectNotFound(_))) => {}
                Some(Err(error)) => tracing::warn!(%error, "a watch was interrupted"),
            },
            _ = tick.tick() => {
                health.beat();
                let is_elsewhere = |place: &Place| options.namespace.as_ref().is_some_and(|own| *own != place.0);
                let is_there = |place: &Place| is_elsewhere(place) || reader.get(&reference(place)).is_some();
                let gone = context.memory.forget_all_but(is_there);
                gone.iter().for_each(|place| context.metrics.forget(place));
            }
        }
    }
}

async fn tell_when_listed(reader: &Store<EncryptedSecret>, health: &Health) {
    // An error means that the loop ended before.
    if reader.wait_until_ready().await.is_ok() {
        health.caches_are_listed();
    }
}

/// A Secret wakes the object of its name, whoever owns it: it may be ours and changed, or another's and gone at last.
fn object_of_secret(
    reader: &Store<EncryptedSecret>,
    context: &Arc<Context>,
) -> impl Fn(SecretMetadata) -> Option<ObjectRef<EncryptedSecret>> + Send + Sync + 'static {
    let (reader, context) = (reader.clone(), context.clone());
    move |secret| {
        let place = place_of(&secret.metadata);
        let object = reference(&place);
        // No deletion is taken for an echo: the API server shows a deleted Secret in a version of its own.
        let echo = context.memory.is_echo(&place, secret.metadata.resource_version.as_deref());
        (!echo && reader.get(&object).is_some()).then_some(object)
    }
}

/// A key Secret wakes the objects of its namespace that name it.
fn objects_of_key(
    reader: &Store<EncryptedSecret>,
) -> impl Fn(SecretMetadata) -> Vec<ObjectRef<EncryptedSecret>> + Send + Sync + 'static {
    let reader = reader.clone();
    move |secret| {
        let (namespace, name) = place_of(&secret.metadata);
        let named = |object: &EncryptedSecret| {
            object.namespace() == namespace && object.key_secret_names().any(|key| key == name)
        };
        reader.state_filter(named).iter().map(|object| ObjectRef::from_obj(object.as_ref())).collect()
    }
}

fn scoped<K>(client: &kube::Client, options: &LoopOptions) -> Api<K>
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
{
    match &options.namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

fn place_of(metadata: &ObjectMeta) -> Place {
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

fn reference((namespace, name): &Place) -> ObjectRef<EncryptedSecret> {
    ObjectRef::new(name).within(namespace)
}

//! What wakes a SealedSecret: itself, its Secret, the sealing keys.
//!
//! Its generation alone is not enough: labels and annotations are no part of it, and an annotation says how far its items
//! reach. Secrets are watched as metadata: their values never come over the wire for it, and none is kept, so memory
//! does not grow with the Secrets of others. Where only some namespaces are served, each has a loop of its own, and one
//! that cannot be listed stops no other.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::{FutureExt, Stream, StreamExt};
use kube::api::Api;
use kube::runtime::controller::{Action, Config, Controller, Error};
use kube::runtime::reflector::{ObjectRef, Store, store};
use kube::runtime::{Predicate, PredicateConfig, WatchStreamExt, predicates, watcher};
use tokio::sync::watch::{Receiver, channel};

use super::api::SealedSecret;
use super::gone::delete_secret;
use super::reconcile::{Context, error_policy, reconcile};
use crate::api::SecretMetadata;
use crate::error::Failure;
use crate::memory::{Place, place};
use crate::server::Health;
use crate::watch::Pauses;

/// How often the loop shows that it is alive and forgets objects that are gone.
const TICK: Duration = Duration::from_secs(2);

/// How long an object must be left in peace before it is looked at.
///
/// Whoever replaces a Secret by a SealedSecret does it in two steps, in either order. Sealed Secrets is slow enough to see
/// both, and its own tests rest on that: a Secret that is deleted at once after its SealedSecret was made stays away for
/// a moment.
const SETTLED: Duration = Duration::from_millis(300);

/// How the loop runs.
#[derive(Clone, Debug)]
pub struct SealedLoopOptions {
    /// The namespaces that are served; all of them when absent.
    pub namespaces: Option<Vec<String>>,
    /// Labels that objects must have, as kubectl writes selectors.
    pub label_selector: Option<String>,
    /// Whether Secrets are watched.
    pub watch_secrets: bool,
    /// Most objects that are worked on at a time in one namespace; [`Context::permits`] bounds all of them.
    pub concurrency: u16,
}

/// Reconciles until `shutdown`, then finishes what is being written.
///
/// `keys_changed` wakes every object.
pub async fn run(
    context: Arc<Context>,
    options: SealedLoopOptions,
    health: Arc<Health>,
    keys_changed: impl Stream<Item = ()> + Send + 'static,
    shutdown: impl Future<Output = ()> + Send + Sync + 'static,
) {
    let (changed, changes) = channel(());
    let (stop, stopped) = channel(false);
    let namespaces = match &options.namespaces {
        Some(namespaces) => namespaces.iter().map(|namespace| Some(namespace.as_str())).collect(),
        None => vec![None],
    };
    let (mut stores, mut loops) = (Vec::new(), Vec::new());
    for namespace in namespaces {
        let (reader, one) = loop_of(&context, &options, namespace, changes.clone(), stopped.clone());
        stores.push(reader);
        loops.push(one.boxed());
    }
    let until_stopped = async {
        shutdown.await;
        stop.send_replace(true);
        std::future::pending::<()>().await;
    };
    let forward = async {
        let mut keys_changed = std::pin::pin!(keys_changed);
        while keys_changed.next().await.is_some() {
            changed.send_replace(());
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = join_all(loops) => {}
        () = until_stopped => {}
        () = forward => {}
        () = show_life(&stores, &context, &health) => {}
    }
}

/// The objects of one namespace, or of all, and the loop that reconciles them.
fn loop_of(
    context: &Arc<Context>,
    options: &SealedLoopOptions,
    namespace: Option<&str>,
    changes: Receiver<()>,
    mut stopped: Receiver<bool>,
) -> (Store<SealedSecret>, impl Future<Output = ()> + Send + use<>) {
    let (reader, writer) = store();
    let api: Api<SealedSecret> = scoped(&context.client, namespace);
    let selected =
        watcher::Config { label_selector: options.label_selector.clone(), ..watcher::Config::default() };
    let what_counts = predicates::generation.combine(predicates::labels).combine(predicates::annotations);
    let deletes = context.clone();
    let objects = watcher(api, selected)
        .backoff(Pauses::of_a_watch())
        .reflect(writer)
        .inspect(move |event| {
            if let (true, Ok(watcher::Event::Delete(object))) = (deletes.options.old_gc_behavior, event) {
                tokio::spawn(delete_secret(deletes.client.clone(), object.clone(), deletes.backoff));
            }
        })
        .applied_objects()
        .predicate_filter(what_counts, PredicateConfig::default());
    let mut controller = Controller::for_stream(objects, reader.clone())
        .with_config(Config::default().concurrency(options.concurrency).debounce(SETTLED))
        .trigger_backoff(Pauses::of_all_watches())
        .reconcile_all_on(each(changes));
    if options.watch_secrets {
        let secrets: Api<SecretMetadata> = scoped(&context.client, namespace);
        let secrets =
            watcher(secrets, watcher::Config::default()).backoff(Pauses::of_a_watch()).touched_objects();
        controller = controller.watches_stream(secrets, object_of_secret(&reader, context));
    }
    let reconciles = controller
        .graceful_shutdown_on(async move {
            // An error means that nobody is left to say it.
            let _ = stopped.wait_for(|stopped| *stopped).await;
        })
        .run(reconcile, error_policy, context.clone());
    let named = namespace.unwrap_or("all").to_owned();
    (reader, async move { reconciles.for_each(async |ended| log(&named, ended)).await })
}

fn each(changes: Receiver<()>) -> impl Stream<Item = ()> + Send + 'static {
    futures::stream::unfold(changes, async |mut changes| Some((changes.changed().await.ok()?, changes)))
}

fn log<Q: std::error::Error + 'static>(
    namespace: &str,
    ended: Result<(ObjectRef<SealedSecret>, Action), Error<Failure, Q>>,
) {
    match ended {
        Ok((object, _)) => tracing::debug!(%object, "done"),
        Err(Error::ReconcilerFailed(failure, object)) => {
            tracing::warn!(%object, reason = %failure.reason, cause = failure.message, "not ready");
        }
        // An object that went while it waited for its turn.
        Err(Error::ObjectNotFound(_)) => {}
        Err(error) => tracing::warn!(%error, namespace, "a watch was interrupted"),
    }
}

async fn show_life(stores: &[Store<SealedSecret>], context: &Context, health: &Health) {
    let listed = join_all(stores.iter().map(|store| store.wait_until_ready()));
    let mut listed = std::pin::pin!(listed.fuse());
    let mut tick = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            listed = &mut listed => {
                // An error means that the loop ended before.
                if listed.iter().all(Result::is_ok) {
                    health.sealed_are_listed();
                }
            }
            _ = tick.tick() => {
                health.sealed_beat();
                let is_there = |place: &Place| stores.iter().any(|store| store.get(&reference(place)).is_some());
                for place in context.memory.forget_all_but(is_there) {
                    context.metrics.sealed.forget(&place);
                    context.keys.forget(&place);
                    context.reporter.events.forget(&place);
                }
            }
        }
    }
}

/// A Secret wakes the object of its name, whoever owns it: it may be ours and changed, or another's and gone at last.
fn object_of_secret(
    reader: &Store<SealedSecret>,
    context: &Arc<Context>,
) -> impl Fn(SecretMetadata) -> Option<ObjectRef<SealedSecret>> + Send + Sync + 'static {
    let (reader, context) = (reader.clone(), context.clone());
    move |secret| {
        let place = place(&secret.metadata);
        let object = reference(&place);
        // No deletion is taken for an echo: the API server shows a deleted Secret in a version of its own.
        let echo = context.memory.is_echo(&place, secret.metadata.resource_version.as_deref());
        (!echo && reader.get(&object).is_some()).then_some(object)
    }
}

fn scoped<K>(client: &kube::Client, namespace: Option<&str>) -> Api<K>
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

fn reference((namespace, name): &Place) -> ObjectRef<SealedSecret> {
    ObjectRef::new(name).within(namespace)
}

//! Joins the parts: identities, probes, lease, loop, and the orderly end of all of them.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, unbounded};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::sync::watch::{Receiver, channel};
use tokio::task::JoinSet;

use crate::args::Args;
use crate::keyring::upkeep::OwnKeysUpkeep;
use crate::leader::{Leader, LeaseOptions};
use crate::metrics::Metrics;
use crate::reconcile::Context;
use crate::sealed;
use crate::sealed::keys::SealingKeys;
use crate::sealed::keys::mint::MintOptions;
use crate::sealed::keys::upkeep::SealingKeysUpkeep;
use crate::sealed::watch::SealedLoopOptions;
use crate::server::connection::Timeouts;
use crate::server::sealing::Sealing;
use crate::server::{Counted, Health, Part, Presence, listen, serve, serve_metrics};
use crate::watch::{self, LoopOptions};

mod connect;
mod contexts;
pub mod kinds;

use connect::connect;
use contexts::{context, sealed_context};
use kinds::{ENCRYPTED_SECRET, SEALED_SECRET};

/// Name of the controller in events.
const NAME: &str = "lacre-controller";

/// How long writes that are under way may take when the process is asked to end; pods are killed after 30 seconds.
const GRACE: Duration = Duration::from_secs(20);

/// How long answers that are under way may take then.
const ANSWERS_GRACE: Duration = Duration::from_secs(3);

/// What all parts share.
#[derive(Clone)]
struct Shared {
    args: Arc<Args>,
    context: Arc<Context>,
    health: Arc<Health>,
    keys: Arc<SealingKeys>,
    demanded: Arc<Notify>,
}

/// Runs the controller until the process is asked to end.
///
/// # Errors
/// The cluster or the listener is not to be had, or the lease was lost.
pub async fn run(args: Args) -> anyhow::Result<()> {
    args.check().map_err(anyhow::Error::msg)?;
    // First of all: without a handler the signal ends the process.
    let demanded = new_keys_demanded()?;
    let client = connect(&args).await?;
    let given = args.namespace.clone().filter(|namespace| !namespace.is_empty());
    let namespace = given.unwrap_or_else(|| client.default_namespace().to_owned());
    let api = listen(&args.sealed.listen_addr).await?;
    let scraped = listen(&args.sealed.listen_metrics_addr).await?;
    let (address, metrics) = (api.local_addr()?, scraped.local_addr()?);
    tracing::info!(namespace, %address, %metrics, "lacre-controller starts");
    for flag in args.sealed.without_effect() {
        tracing::warn!(flag, "has no effect here: see --help");
    }

    let keys = Arc::new(SealingKeys::default());
    let metrics = Arc::new(Metrics::new(keys.clone(), args.sealed.metrics_omit_secret_labels));
    let context = Arc::new(context(&args, client.clone(), namespace, metrics.clone()));
    let shared =
        Shared { args: Arc::new(args), context, health: Arc::default(), keys: keys.clone(), demanded };
    let (stop, stopped) = channel(false);
    let (close, closed) = channel(false);
    let sealing = Arc::new(Sealing::new(&shared.args.sealed, client, keys, metrics.clone()));
    let counted = Counted { metrics, keyring: shared.context.keyring.clone() };
    let timeouts =
        Timeouts { read: shared.args.sealed.read_timeout, write: shared.args.sealed.write_timeout };
    let server = tokio::spawn(serve(api, shared.health.clone(), sealing, timeouts, until(closed)));
    let scraped = tokio::spawn(serve_metrics(scraped, counted, timeouts));
    tokio::spawn(async move {
        asked_to_end().await;
        tracing::info!("asked to end");
        stop.send_replace(true);
    });
    let ended = lead_and_work(&shared, stopped).await;
    // Not before: the probes answer until the work has ended.
    close.send_replace(true);
    tokio::time::timeout(ANSWERS_GRACE, server).await.map(drop).unwrap_or_default();
    scraped.abort();
    ended
}

async fn lead_and_work(shared: &Shared, stopped: Receiver<bool>) -> anyhow::Result<()> {
    let args = &shared.args;
    let (lead, leads) = channel(!args.leader_elect);
    // Ended when it is dropped.
    let mut upkeep = JoinSet::new();
    let encrypted = keep_identities(shared, &mut upkeep);
    let sealed = keep_sealing_keys(shared, &mut upkeep, leads);

    let options = LeaseOptions { duration: args.lease_duration, interval: args.lease_interval };
    let own_namespace = &shared.context.policy.own_namespace;
    let mut leader = Leader::new(shared.context.client.clone(), own_namespace, unique_name(), options);
    if args.leader_elect {
        let parts = [Part::EncryptedSecrets, Part::SealedSecrets];
        tokio::select! {
            () = leader.acquire() => {}
            () = stand_by(&shared.health, parts) => {}
            () = until(stopped.clone()) => return Ok(()),
            _ = upkeep.join_next() => anyhow::bail!("the care for keys ended unexpectedly"),
        }
        for (part, kind) in parts.iter().zip([&encrypted, &sealed]) {
            if *kind.is_there.borrow() {
                shared.health.set(*part, Presence::Missing);
            }
        }
        tracing::info!("holds the lease");
    }
    lead.send_replace(true);
    shared.context.metrics.lead(true);
    tokio::select! {
        ended = work(shared, [encrypted, sealed], &mut leader, stopped) => ended,
        _ = upkeep.join_next() => anyhow::bail!("the care for keys ended unexpectedly"),
    }
}

/// A kind that may be served: whether it is, and what wakes its objects when keys change.
struct Kind {
    is_there: Receiver<bool>,
    keys_changed: UnboundedReceiver<()>,
}

fn keep_identities(shared: &Shared, upkeep: &mut JoinSet<()>) -> Kind {
    let (changed, keys_changed) = unbounded();
    let (there, is_there) = channel(false);
    let own_keys = OwnKeysUpkeep {
        client: shared.context.client.clone(),
        namespace: shared.context.policy.own_namespace.clone(),
        keyring: shared.context.keyring.clone(),
        health: shared.health.clone(),
    };
    let shared = shared.clone();
    upkeep.spawn(async move {
        let namespaces = served_namespaces(&shared);
        let namespace = namespaces.as_ref().and_then(|namespaces| namespaces.first());
        let client = shared.context.client.clone();
        ENCRYPTED_SECRET.until_there(client, namespace.map(String::as_str), &shared.health).await;
        // Before the first object is looked at, or those that need these identities would fail once for nothing.
        let loaded = own_keys.refresh().await;
        there.send_replace(true);
        own_keys.keep(loaded, changed).await;
    });
    Kind { is_there, keys_changed }
}

fn keep_sealing_keys(shared: &Shared, upkeep: &mut JoinSet<()>, leads: Receiver<bool>) -> Kind {
    let (changed, keys_changed) = unbounded();
    let (there, is_there) = channel(false);
    let shared = shared.clone();
    let namespaces = served_namespaces(&shared);
    let keys = SealingKeysUpkeep {
        client: shared.context.client.clone(),
        namespace: shared.context.policy.own_namespace.clone(),
        keys: shared.keys.clone(),
        options: MintOptions::from(&shared.args.sealed),
        cutoff: shared.args.sealed.key_cutoff_time.0,
        health: shared.health.clone(),
        recorder: shared.context.reporter.recorder.clone(),
        leads,
        demanded: shared.demanded.clone(),
    };
    upkeep.spawn(async move {
        let namespace = namespaces.as_ref().and_then(|namespaces| namespaces.first());
        let client = shared.context.client.clone();
        SEALED_SECRET.until_there(client, namespace.map(String::as_str), &shared.health).await;
        there.send_replace(true);
        keys.keep(changed).await;
    });
    Kind { is_there, keys_changed }
}

/// The namespaces whose objects are served; none for all.
fn served_namespaces(shared: &Shared) -> Option<Vec<String>> {
    match &shared.args.watch_namespace {
        Some(namespace) => Some(vec![namespace.clone()]),
        None => shared.args.sealed.namespaces(&shared.context.policy.own_namespace),
    }
}

async fn work(
    shared: &Shared,
    [encrypted, sealed]: [Kind; 2],
    leader: &mut Leader,
    stopped: Receiver<bool>,
) -> anyhow::Result<()> {
    let (end, ending) = channel(false);
    let mut reconciles = JoinSet::new();
    reconciles.spawn(reconcile_encrypted(shared.clone(), encrypted, ending.clone()));
    reconciles.spawn(reconcile_sealed(shared.clone(), sealed, ending.clone()));
    tokio::select! {
        () = until(stopped) => {}
        () = leader.keep(), if shared.args.leader_elect => {
            // Another process may work already: what is under way is cut off, at a point where nothing is half written.
            reconciles.abort_all();
            anyhow::bail!("the lease was lost");
        }
        _ = reconciles.join_next() => anyhow::bail!("a loop ended unexpectedly"),
    }
    end.send_replace(true);
    let all = async { while reconciles.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, all).await.is_err() {
        tracing::warn!("writes under way were cut off");
    }
    if shared.args.leader_elect {
        leader.release().await;
    }
    Ok(())
}

/// One loop for all namespaces, or one for each.
async fn reconcile_encrypted(shared: Shared, mut kind: Kind, ending: Receiver<bool>) {
    tokio::select! {
        () = until(kind.is_there) => {}
        () = until(ending.clone()) => return,
    }
    let namespaces =
        served_namespaces(&shared).map_or_else(|| vec![None], |list| list.into_iter().map(Some).collect());
    let (mut loops, mut wakers) = (JoinSet::new(), Vec::new());
    for namespace in namespaces {
        let (waker, woken) = unbounded();
        wakers.push(waker);
        let options = LoopOptions { namespace, concurrency: shared.args.concurrency };
        let (context, health) = (shared.context.clone(), shared.health.clone());
        loops.spawn(watch::run(context, options, health, woken, until(ending.clone())));
    }
    let wake = async {
        while kind.keys_changed.next().await.is_some() {
            // An error means that the loop which would be woken has ended.
            wakers.iter().for_each(|waker| waker.unbounded_send(()).unwrap_or_default());
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = wake => {}
        _ = loops.join_next() => {}
    }
    if *ending.borrow() {
        while loops.join_next().await.is_some() {}
    }
}

async fn reconcile_sealed(shared: Shared, kind: Kind, ending: Receiver<bool>) {
    let known = async {
        until(kind.is_there).await;
        shared.keys.until_known().await;
    };
    tokio::select! {
        () = known => {}
        () = until(ending.clone()) => return,
    }
    let options = SealedLoopOptions {
        namespaces: served_namespaces(&shared),
        label_selector: Some(shared.args.sealed.label_selector.clone()).filter(|text| !text.is_empty()),
        watch_secrets: !shared.args.sealed.skip_recreate,
        concurrency: shared.args.concurrency,
    };
    let (context, health) = (Arc::new(sealed_context(&shared)), shared.health.clone());
    sealed::watch::run(context, options, health, kind.keys_changed, until(ending)).await;
}

/// Shows for ever that a standby has nothing to list.
async fn stand_by(health: &Health, parts: [Part; 2]) {
    let mut tick = tokio::time::interval(Duration::from_millis(500));
    loop {
        tick.tick().await;
        parts.iter().for_each(|part| health.set(*part, Presence::NotNeeded));
    }
}

/// The pod's name, or the controller's, and something that no other process has.
fn unique_name() -> String {
    let name = std::env::var("POD_NAME").unwrap_or_else(|_| NAME.to_owned());
    format!("{name}-{:08x}", RandomState::new().hash_one(()) >> 32)
}

/// SIGUSR1 asks for a new sealing key.
fn new_keys_demanded() -> anyhow::Result<Arc<Notify>> {
    let mut signals = signal(SignalKind::user_defined1()).context("cannot handle signals")?;
    let demanded = Arc::new(Notify::new());
    let notified = demanded.clone();
    tokio::spawn(async move {
        while signals.recv().await.is_some() {
            tracing::info!("asked for a new sealing key");
            notified.notify_one();
        }
    });
    Ok(demanded)
}

async fn asked_to_end() {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        // Without handlers the signals keep their default: the process ends at once.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

async fn until(mut stopped: Receiver<bool>) {
    // An error means that the sender is gone, and then nothing is left to wait for.
    stopped.wait_for(|stopped| *stopped).await.map(drop).unwrap_or_default();
}

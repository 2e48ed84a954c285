//! Joins the parts: identities, probes, lease, loop, and the orderly end of all of them.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures::channel::mpsc::unbounded;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::events::{Recorder, Reporter as EventReporter};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch::{Receiver, channel};
use tokio::task::JoinHandle;

use crate::args::Args;
use crate::keyring::entries::EntryOptions;
use crate::keyring::upkeep::OwnKeysUpkeep;
use crate::keyring::{KeyOptions, Keyring};
use crate::leader::{Leader, LeaseOptions};
use crate::memory::{Backoff, Memory};
use crate::metrics::Metrics;
use crate::policy::Policy;
use crate::reconcile::Context;
use crate::report::Reporter;
use crate::server::connection::Timeouts;
use crate::server::{Health, Part, Presence, Served, listen, serve, serve_metrics};
use crate::watch::{self, LoopOptions};

/// Name of the controller in events.
const NAME: &str = "lacre-controller";

/// How long writes that are under way may take when the process is asked to end; pods are killed after 30 seconds.
const GRACE: Duration = Duration::from_secs(20);

/// Runs the controller until the process is asked to end.
///
/// # Errors
/// The cluster or the listener is not to be had, or the lease was lost.
pub async fn run(args: Args) -> anyhow::Result<()> {
    args.check().map_err(anyhow::Error::msg)?;
    let client = connect(&args).await?;
    let given = args.namespace.clone().filter(|namespace| !namespace.is_empty());
    let namespace = given.unwrap_or_else(|| client.default_namespace().to_owned());
    let api = listen(&args.sealed.listen_addr).await?;
    let scraped = listen(&args.sealed.listen_metrics_addr).await?;
    let (address, metrics) = (api.local_addr()?, scraped.local_addr()?);
    tracing::info!(namespace, %address, %metrics, "lacre-controller starts");

    let context = Arc::new(context(&args, client, namespace));
    let health = Arc::new(Health::default());
    let (stop, stopped) = channel(false);
    let served =
        Served { health: health.clone(), metrics: context.metrics.clone(), keyring: context.keyring.clone() };
    let timeouts = Timeouts { read: args.sealed.read_timeout, write: args.sealed.write_timeout };
    let servers = [
        tokio::spawn(serve(api, served.clone(), timeouts)),
        tokio::spawn(serve_metrics(scraped, served, timeouts)),
    ];
    tokio::spawn(async move {
        asked_to_end().await;
        tracing::info!("asked to end");
        stop.send_replace(true);
    });
    let ended = lead_and_work(&args, context, health, stopped).await;
    // Not before: the probes answer until the work has ended.
    servers.iter().for_each(JoinHandle::abort);
    ended
}

async fn lead_and_work(
    args: &Args,
    context: Arc<Context>,
    health: Arc<Health>,
    stopped: Receiver<bool>,
) -> anyhow::Result<()> {
    // Not served yet.
    health.set(Part::SealedSecrets, Presence::NotNeeded);
    health.set(Part::SealingKeys, Presence::NotNeeded);
    let namespace = context.policy.own_namespace.clone();
    let (changed, own_keys_changed) = unbounded();
    let own_keys = OwnKeysUpkeep {
        client: context.client.clone(),
        namespace: namespace.clone(),
        keyring: context.keyring.clone(),
        health: health.clone(),
    };
    // Before the first object is looked at, or those that need these identities would fail once for nothing.
    let loaded = own_keys.refresh().await;
    let upkeep = tokio::spawn(own_keys.keep(loaded, changed));

    let options = LeaseOptions { duration: args.lease_duration, interval: args.lease_interval };
    let mut leader = Leader::new(context.client.clone(), &namespace, unique_name(), options);
    if args.leader_elect {
        health.set(Part::EncryptedSecrets, Presence::NotNeeded);
        tokio::select! {
            () = stand_by(&mut leader, &health) => {}
            () = until(stopped.clone()) => return Ok(()),
        }
        tracing::info!("holds the lease");
    }
    context.metrics.lead(true);
    let ended = work(args, context, health, own_keys_changed, &mut leader, stopped).await;
    upkeep.abort();
    ended
}

async fn work(
    args: &Args,
    context: Arc<Context>,
    health: Arc<Health>,
    own_keys_changed: futures::channel::mpsc::UnboundedReceiver<()>,
    leader: &mut Leader,
    stopped: Receiver<bool>,
) -> anyhow::Result<()> {
    let options = LoopOptions { namespace: args.watch_namespace.clone(), concurrency: args.concurrency };
    let (end, ending) = channel(false);
    let mut reconciles = tokio::spawn(watch::run(context, options, health, own_keys_changed, until(ending)));
    tokio::select! {
        () = until(stopped) => {}
        () = leader.keep(), if args.leader_elect => {
            // Another process may work already: what is under way is cut off, at a point where nothing is half written.
            reconciles.abort();
            anyhow::bail!("the lease was lost");
        }
        _ = &mut reconciles => anyhow::bail!("the loop ended unexpectedly"),
    }
    end.send_replace(true);
    if tokio::time::timeout(GRACE, reconciles).await.is_err() {
        tracing::warn!("writes under way were cut off");
    }
    if args.leader_elect {
        leader.release().await;
    }
    Ok(())
}

async fn stand_by(leader: &mut Leader, health: &Health) {
    let mut tick = tokio::time::interval(Duration::from_secs(2));
    let beat = async {
        loop {
            tick.tick().await;
            health.beat();
        }
    };
    tokio::select! {
        () = leader.acquire() => {}
        () = beat => {}
    }
}

fn context(args: &Args, client: Client, namespace: String) -> Context {
    let metrics = Arc::new(Metrics::new());
    let keyring = Arc::new(Keyring::new(client.clone(), key_options(args)));
    let reporter = EventReporter { controller: NAME.to_owned(), instance: Some(unique_name()) };
    Context {
        policy: Policy {
            own_namespace: namespace,
            allow_own_namespace: args.allow_own_namespace,
            allowed_types: args.allow_type.clone(),
            allowed_template_keys: args.allow_template_key.clone(),
            max_scope: args.max_scope,
        },
        cluster_name: args.cluster_name.clone(),
        keyring,
        reporter: Reporter {
            client: client.clone(),
            recorder: Recorder::new(client.clone(), reporter),
            metrics: metrics.clone(),
        },
        client,
        metrics,
        memory: Memory::default(),
        backoff: Backoff { delay_min: args.retry_delay, delay_max: args.retry_delay_max },
        resync: args.resync,
    }
}

fn key_options(args: &Args) -> KeyOptions {
    KeyOptions {
        entries: EntryOptions {
            enable_pgp: args.enable_pgp,
            aws_kms_endpoint: args.aws_kms_endpoint.clone(),
            key_service_deadline: args.key_service_deadline,
        },
        ambient_namespaces: args.ambient_cloud_namespace.iter().cloned().collect(),
        cache_entries_max: args.key_cache,
    }
}

async fn connect(args: &Args) -> anyhow::Result<Client> {
    let config = match &args.kubeconfig {
        None => kube::Config::infer().await.context("neither a kubeconfig nor a service account is there")?,
        Some(path) => {
            let file = Kubeconfig::read_from(path).context("cannot read the kubeconfig")?;
            let options = KubeConfigOptions::default();
            kube::Config::from_custom_kubeconfig(file, &options).await.context("cannot use the kubeconfig")?
        }
    };
    Client::try_from(config).context("cannot build a client")
}

/// The pod's name, or the controller's, and something that no other process has.
fn unique_name() -> String {
    let name = std::env::var("POD_NAME").unwrap_or_else(|_| NAME.to_owned());
    format!("{name}-{:08x}", RandomState::new().hash_one(()) >> 32)
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

//! Keeps the sealing keys as the cluster has them, through their whole life, and makes new ones when they are due.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc::UnboundedSender;
use futures::stream::{BoxStream, select};
use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ObjectReference, Secret};
use kube::api::{Api, ListParams};
use kube::runtime::events::{Event as Told, EventType, Recorder};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use tokio::sync::Notify;
use tokio::sync::watch::Receiver;

use super::mint::{MintOptions, mint};
use super::publish::publish;
use super::read::key_set;
use super::{KEY_ACTIVE, KEY_LABEL, KeySet, Problem, SealingKeys};
use crate::api::SecretMetadata;
use crate::apply::PlainSecret;
use crate::error::{Failure, Reason};
use crate::server::{Health, Part, Presence};
use crate::watch::Pauses;

/// How long changes are gathered before the keys are loaded again.
const SETTLE: Duration = Duration::from_millis(200);

/// How long to wait before another attempt after a failure.
const RETRY: Duration = Duration::from_secs(5);

/// Longest time after which keys are looked at again although nothing is known to have changed: clocks jump.
const LOOK_AGAIN: Duration = Duration::from_secs(600);

/// The same where the right to watch is missing.
const LOOK_AGAIN_BLIND: Duration = Duration::from_secs(60);

/// The care for the sealing keys in one namespace.
pub struct SealingKeysUpkeep {
    /// To the API server.
    pub client: Client,
    /// The controller's own namespace.
    pub namespace: String,
    /// Where they are used.
    pub keys: Arc<SealingKeys>,
    /// What new ones are like, and when they are made.
    pub options: MintOptions,
    /// A key older than this at the start is followed by another at once.
    pub cutoff: Option<Timestamp>,
    /// Where it shows whether one is there.
    pub health: Arc<Health>,
    /// For what is wrong with single Secrets.
    pub recorder: Recorder,
    /// Whether this process makes keys and publishes; others only use them.
    pub leads: Receiver<bool>,
    /// Notified when somebody asks for a new key.
    pub demanded: Arc<Notify>,
}

/// What was said already.
#[derive(Default)]
struct Said {
    problems: BTreeSet<Problem>,
    unsaved: BTreeSet<String>,
    cannot_publish: bool,
    cannot_watch: bool,
}

impl SealingKeysUpkeep {
    /// Keeps them until it is dropped. Sends on `changed` each time other keys open than before, for what failed to open
    /// may open now.
    pub async fn keep(mut self, changed: UnboundedSender<()>) {
        let mut said = Said::default();
        let mut events = self.watch();
        let (mut is_asked, mut is_loaded) = (false, false);
        loop {
            let (wait, is_left) = match self.turn(is_asked, &changed, &mut said, &mut is_loaded).await {
                Ok(due) => (due.unwrap_or(LOOK_AGAIN).max(Duration::from_millis(10)), false),
                Err(failure) => {
                    tracing::error!(%failure, "the sealing keys are not as they should be");
                    (RETRY, is_asked)
                }
            };
            if is_loaded {
                // Also when making one failed: then objects say that there is none.
                self.keys.are_known();
            }
            is_asked = self.wait(wait, &mut events, &mut said).await || is_left;
        }
    }

    /// Loads the keys, makes one if it is due or asked for, publishes. Gives how long until the next is due.
    async fn turn(
        &mut self,
        is_asked: bool,
        changed: &UnboundedSender<()>,
        said: &mut Said,
        is_loaded: &mut bool,
    ) -> Result<Option<Duration>, Failure> {
        self.load(changed).await?;
        *is_loaded = true;
        let leads = *self.leads.borrow_and_update();
        let due = |this: &Self| {
            this.options.due_in(&this.keys.snapshot(), this.cutoff.filter(|_| leads), Timestamp::now())
        };
        if leads && (is_asked || due(self) == Some(Duration::ZERO)) {
            let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
            let found: Api<SecretMetadata> = Api::namespaced(self.client.clone(), &self.namespace);
            mint(&secrets, &found, &self.options, &self.keys.snapshot(), &self.namespace).await?;
            self.load(changed).await?;
        }
        if leads {
            // It is about the start. Once more would be for ever, if the time lies ahead.
            self.cutoff = None;
        }
        let set = self.keys.snapshot();
        self.say(&set, leads, said).await;
        if leads && let Err(failure) = publish(&self.client, &self.namespace, &set).await {
            if failure.reason != Reason::ApiForbidden {
                return Err(failure);
            }
            if !std::mem::replace(&mut said.cannot_publish, true) {
                tracing::warn!(%failure, "certificates are not published in a ConfigMap: the right is missing");
            }
        }
        Ok(if leads { due(self) } else { None })
    }

    async fn load(&self, changed: &UnboundedSender<()>) -> Result<(), Failure> {
        let secrets = self.secrets().await?;
        let order = self.options.order;
        let read = tokio::task::spawn_blocking(move || key_set(secrets, order)).await;
        let stopped = |_| Failure::new(Reason::InvalidIdentity, "the sealing keys cannot be read");
        let set = read.map_err(stopped)?;
        let presence = if set.newest().is_some() { Presence::There } else { Presence::Missing };
        let names = set.keys.iter().map(|key| key.name.as_str()).collect::<Vec<_>>().join(" ");
        let newest = set.newest().map(|key| key.name.clone()).unwrap_or_default();
        if self.keys.replace(set) {
            tracing::info!(keys = names, newest, "sealing keys loaded");
            // An error means that the loop which would be woken has ended.
            changed.unbounded_send(()).unwrap_or_default();
        }
        self.health.set(Part::SealingKeys, presence);
        Ok(())
    }

    /// Those that are labelled, and one of the time before labels, which is named as the prefix alone.
    async fn secrets(&self) -> Result<Vec<PlainSecret>, Failure> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let active = ListParams::default().labels(&format!("{KEY_LABEL}={KEY_ACTIVE}"));
        let list = secrets.list(&active).await;
        let list = list.map_err(|error| Failure::from_api("listing sealing keys", &error))?;
        let mut found: Vec<_> = list.items.into_iter().map(PlainSecret::new).collect();
        let prefix = self.options.prefix.trim_end_matches('-');
        if prefix == self.options.prefix && !found.iter().any(|secret| secret.name_any() == prefix) {
            match secrets.get_opt(prefix).await {
                Ok(legacy) => found.extend(legacy.map(PlainSecret::new)),
                // Roles name the Secret of the prefix that they were made for.
                Err(kube::Error::Api(status)) if status.code == 403 => {}
                Err(error) => return Err(Failure::from_api("reading a sealing key", &error)),
            }
        }
        Ok(found)
    }

    /// Says what is new: once in the log, and once on the Secret.
    async fn say(&self, set: &KeySet, leads: bool, said: &mut Said) {
        let problems: BTreeSet<_> = set.problems.iter().cloned().collect();
        for problem in problems.difference(&said.problems) {
            tracing::warn!(
                secret = problem.secret,
                "a sealing key is not used as it should be: {}",
                problem.what
            );
            if leads {
                self.tell(problem).await;
            }
        }
        said.problems = problems;
        let unsaved = set.keys.iter().filter(|key| !key.backed_up).map(|key| key.name.clone());
        let unsaved: BTreeSet<_> = unsaved.collect();
        if !unsaved.is_subset(&said.unsaved) {
            let keys = unsaved.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
            tracing::warn!(keys, "sealing keys are not known to be backed up: `lacre kube keys backup`");
        }
        said.unsaved = unsaved;
    }

    async fn tell(&self, problem: &Problem) {
        let event = Told {
            type_: EventType::Warning,
            reason: "InvalidSealingKey".to_owned(),
            note: Some(problem.what.chars().take(1000).collect()),
            action: "LoadKeys".to_owned(),
            secondary: None,
        };
        let about = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Secret".to_owned()),
            namespace: Some(self.namespace.clone()),
            name: Some(problem.secret.clone()),
            uid: Some(problem.uid.clone()),
            ..ObjectReference::default()
        };
        if let Err(error) = self.recorder.publish(&event, &about).await {
            let failure = Failure::from_api("writing an event", &error);
            tracing::debug!(%failure, "an event about a sealing key was not written");
        }
    }

    fn watch(&self) -> BoxStream<'static, watcher::Result<Event<SecretMetadata>>> {
        let secrets: Api<SecretMetadata> = Api::namespaced(self.client.clone(), &self.namespace);
        let labelled = watcher::Config::default().labels(&format!("{KEY_LABEL}={KEY_ACTIVE}"));
        let legacy = watcher::Config::default().fields(&format!("metadata.name={}", self.options.prefix));
        let labelled = watcher(secrets.clone(), labelled).backoff(Pauses::of_a_watch());
        select(labelled, watcher(secrets, legacy).backoff(Pauses::of_a_watch())).boxed()
    }

    /// Waits until something happened that the keys may depend on. Gives whether somebody asks for a new one.
    async fn wait(
        &mut self,
        time: Duration,
        events: &mut BoxStream<'static, watcher::Result<Event<SecretMetadata>>>,
        said: &mut Said,
    ) -> bool {
        let began = tokio::time::Instant::now();
        let demanded = self.demanded.clone();
        loop {
            // Whether the right to watch is missing may turn out only now.
            let longest = if said.cannot_watch { LOOK_AGAIN_BLIND } else { LOOK_AGAIN };
            tokio::select! {
                () = tokio::time::sleep_until(began + time.min(longest)) => return false,
                () = demanded.notified() => return true,
                Ok(()) = self.leads.changed() => return false,
                Some(event) = events.next() => {
                    if self.is_news(event, said) {
                        break;
                    }
                }
            }
        }
        tokio::time::sleep(SETTLE).await;
        // What came meanwhile is in what is loaded next.
        while events.next().now_or_never().flatten().is_some() {}
        false
    }

    fn is_news(&self, event: watcher::Result<Event<SecretMetadata>>, said: &mut Said) -> bool {
        match event {
            Ok(Event::Apply(secret) | Event::InitApply(secret)) => {
                !self.keys.snapshot().has_looked_at(&secret.metadata)
            }
            // Some may have gone while nobody watched.
            Ok(Event::Delete(_) | Event::InitDone) => true,
            Ok(Event::Init) => false,
            Err(error) => {
                if is_forbidden(&error) && !std::mem::replace(&mut said.cannot_watch, true) {
                    let seconds = LOOK_AGAIN_BLIND.as_secs();
                    tracing::warn!(
                        seconds,
                        "sealing keys are listed from time to time: the right to watch is missing"
                    );
                }
                false
            }
        }
    }
}

fn is_forbidden(error: &watcher::Error) -> bool {
    let status = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => status.code,
        watcher::Error::WatchError(status) => status.code,
        _ => return false,
    };
    status == 403
}

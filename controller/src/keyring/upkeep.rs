//! Keeps the controller's own identities as the cluster has them, from the first start on.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::channel::mpsc::UnboundedSender;
use kube::Client;
use kube::api::Api;
use kube::runtime::{WatchStreamExt, watcher};

use super::{Keyring, own};
use crate::api::SecretMetadata;
use crate::policy::KEY_LABEL;
use crate::server::Health;

/// How long changes are gathered before the identities are loaded again.
const SETTLE: Duration = Duration::from_millis(200);

/// How long to wait before another attempt after a failure.
const RETRY: Duration = Duration::from_secs(5);

/// The care for the identities in one namespace.
pub struct OwnKeysUpkeep {
    /// To the API server.
    pub client: Client,
    /// The controller's own namespace.
    pub namespace: String,
    /// Where they are used.
    pub keyring: Arc<Keyring>,
    /// Where it shows whether they are there.
    pub health: Arc<Health>,
}

impl OwnKeysUpkeep {
    /// Loads the identities; those loaded before stay when that fails. Gives whether it went well.
    pub async fn refresh(&self) -> bool {
        let loaded = own::bring_up(&self.client, &self.namespace, self.keyring.entry_options()).await;
        self.health.identities_are_loaded(loaded.is_ok());
        match loaded {
            Err(error) => tracing::error!(%error, "the controller's own identities are not loaded"),
            Ok(own) => {
                let (published, unreadable) = (own.published().join(" "), own.unreadable().join("; "));
                tracing::info!(published, unreadable, "identities loaded");
                self.keyring.set_own(own);
                return true;
            }
        }
        false
    }

    /// Loads them again whenever a key Secret changes, and while `loaded` is not so. Sends on `changed` each time, for
    /// what failed to open may open now. Runs until it is dropped.
    pub async fn keep(self, mut loaded: bool, changed: UnboundedSender<()>) {
        let secrets: Api<SecretMetadata> = Api::namespaced(self.client.clone(), &self.namespace);
        let labelled = watcher::Config::default().labels(&format!("{KEY_LABEL}=true"));
        let mut events = std::pin::pin!(watcher(secrets, labelled).default_backoff().touched_objects());
        let is_news = |event: watcher::Result<SecretMetadata>| {
            event.is_ok_and(|secret| !self.keyring.has_loaded(&secret.metadata))
        };
        loop {
            tokio::select! {
                () = tokio::time::sleep(RETRY), if !loaded => {}
                event = events.next() => {
                    let mut news = event.is_some_and(is_news);
                    while let Ok(Some(event)) = tokio::time::timeout(SETTLE, events.next()).await {
                        news |= is_news(event);
                    }
                    if !news {
                        continue;
                    }
                }
            }
            loaded = self.refresh().await;
            if loaded {
                // An error means that the loop which would be woken has ended.
                changed.unbounded_send(()).unwrap_or_default();
            }
        }
    }
}

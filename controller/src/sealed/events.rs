//! Events about SealedSecrets, as Sealed Secrets writes them: of the core group, for which its role gives the right, and
//! from the component whose name people filter by.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, EventSource};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;

use super::api::SealedSecret;
use crate::error::Failure;
use crate::memory::{Place, place};

/// Who speaks.
const COMPONENT: &str = "sealed-secrets";

/// Longest message of an event, in bytes.
const MESSAGE_BYTES_MAX: usize = 1024;

/// How an event is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// All is well.
    Normal,
    /// Somebody should look.
    Warning,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// The last event about an object: the same again is counted, not repeated.
struct Told {
    name: String,
    uid: String,
    reason: String,
    message: String,
    count: i32,
}

/// Writes events.
pub struct Events {
    client: kube::Client,
    /// One for each object that there is: see [`Events::forget`].
    told: Mutex<HashMap<Place, Told>>,
}

impl Events {
    /// Events that go to the cluster of `client`.
    pub fn new(client: kube::Client) -> Self {
        Self { client, told: Mutex::default() }
    }

    /// Tells of `object`. What is lost is only logged.
    pub async fn publish(&self, object: &SealedSecret, kind: Kind, reason: &str, message: &str) {
        let message = shorten(message);
        if let Err(error) = self.tell(object, kind, reason, message).await {
            tracing::warn!(reason, error = %Failure::from_api("writing an event", &error), "event lost");
        }
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, place: &Place) {
        self.told().remove(place);
    }

    async fn tell(&self, object: &SealedSecret, kind: Kind, reason: &str, message: &str) -> kube::Result<()> {
        let events: Api<Event> = Api::namespaced(self.client.clone(), object.namespace());
        if let Some((name, count)) = self.count_again(object, reason, message) {
            let patch = json!({"count": count, "lastTimestamp": Time(Timestamp::now())});
            match events.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await {
                // The cluster keeps events for an hour.
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                answer => return answer.map(drop),
            }
        }
        let event = new_event(object, kind, reason, message, Timestamp::now());
        events.create(&PostParams::default(), &event).await?;
        let told = Told {
            name: event.metadata.name.unwrap_or_default(),
            uid: object.uid().to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            count: 1,
        };
        self.told().insert(place(&object.metadata), told);
        Ok(())
    }

    fn count_again(&self, object: &SealedSecret, reason: &str, message: &str) -> Option<(String, i32)> {
        let mut told = self.told();
        let last = told.get_mut(&place(&object.metadata))?;
        if (last.uid.as_str(), last.reason.as_str(), last.message.as_str()) != (object.uid(), reason, message)
        {
            return None;
        }
        last.count = last.count.saturating_add(1);
        Some((last.name.clone(), last.count))
    }

    fn told(&self) -> MutexGuard<'_, HashMap<Place, Told>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn new_event(object: &SealedSecret, kind: Kind, reason: &str, message: &str, now: Timestamp) -> Event {
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{}.{:x}", object.name(), now.as_nanosecond())),
            namespace: object.metadata.namespace.clone(),
            ..ObjectMeta::default()
        },
        involved_object: object.object_ref(&()),
        type_: Some(kind.name().to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        source: Some(EventSource { component: Some(COMPONENT.to_owned()), host: None }),
        reporting_component: Some(COMPONENT.to_owned()),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        count: Some(1),
        ..Event::default()
    }
}

fn shorten(message: &str) -> &str {
    let mut end = message.len().min(MESSAGE_BYTES_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    &message[..end]
}

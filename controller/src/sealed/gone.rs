//! Deletes the Secret of a SealedSecret that was deleted, where `--old-gc-behavior` does not leave that to the cluster's
//! garbage collector.
//!
//! Only a Secret that the object owned, uid and all, and only when the object is really gone: one that merely lost the
//! label by which objects are selected looks the same to a watch.

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;

use super::api::SealedSecret;
use super::write;
use crate::apply::PlainSecret;
use crate::error::Failure;
use crate::memory::{Backoff, jitter};

/// How often it is tried. The garbage collector does it anyway, later.
const ATTEMPTS_MAX: u32 = 10;

/// Deletes the Secret that `object` owned.
pub async fn delete_secret(client: Client, object: SealedSecret, backoff: Backoff) {
    let place = format!("{}/{}", object.namespace(), object.name());
    for attempt in 1..=ATTEMPTS_MAX {
        match try_to_delete(&client, &object).await {
            Ok(true) => return tracing::info!(secret = place, "deleted with its SealedSecret"),
            Ok(false) => return,
            Err(failure) => tracing::warn!(secret = place, %failure, "not deleted with its SealedSecret"),
        }
        tokio::time::sleep(backoff.delay(attempt, jitter())).await;
    }
}

async fn try_to_delete(client: &Client, object: &SealedSecret) -> Result<bool, Failure> {
    let objects: Api<SealedSecret> = Api::namespaced(client.clone(), object.namespace());
    let secrets: Api<Secret> = Api::namespaced(client.clone(), object.namespace());
    let found = objects.get_opt(object.name()).await;
    let found = found.map_err(|error| Failure::from_api("reading the SealedSecret", &error))?;
    if found.is_some_and(|found| found.uid() == object.uid()) {
        return Ok(false);
    }
    let live = secrets.get_opt(object.name()).await;
    let live = live.map_err(|error| Failure::from_api("reading the Secret", &error))?.map(PlainSecret::new);
    let is_own = |live: &&PlainSecret| {
        let owners = live.metadata.owner_references.as_deref().unwrap_or_default();
        owners.iter().any(|owner| owner.controller == Some(true) && owner.uid == object.uid())
    };
    match live.as_ref().filter(is_own) {
        Some(live) => write::delete(&secrets, &live.metadata).await.map(|()| true),
        None => Ok(false),
    }
}

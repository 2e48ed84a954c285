//! Which kinds are served: those that the cluster knows and the controller may list. Others are named once in the log
//! and looked for again, so that a definition or a right that comes later needs no restart.

use std::time::Duration;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};

use crate::api;
use crate::error::Failure;
use crate::server::{Health, Part, Presence};

/// How long until a kind that is not there is looked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// How long until the API server is asked again when it did not answer.
const RETRY: Duration = Duration::from_secs(1);

/// A kind, and what readiness needs of it.
#[derive(Clone, Copy, Debug)]
pub struct ServedKind {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    parts: [Part; 2],
}

/// Lacre's own.
pub const ENCRYPTED_SECRET: ServedKind = ServedKind {
    group: api::GROUP,
    version: api::VERSION,
    kind: api::KIND,
    plural: api::PLURAL,
    parts: [Part::Identities, Part::EncryptedSecrets],
};

/// That of Sealed Secrets.
pub const SEALED_SECRET: ServedKind = ServedKind {
    group: lacre_crypto::object::sealed_secret::GROUP,
    version: "v1alpha1",
    kind: lacre_crypto::object::sealed_secret::KIND,
    plural: "sealedsecrets",
    parts: [Part::SealingKeys, Part::SealedSecrets],
};

impl ServedKind {
    /// Waits until objects of this kind can be listed, in one namespace or in all.
    pub async fn until_there(self, client: Client, namespace: Option<&str>, health: &Health) {
        let resource = ApiResource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            api_version: format!("{}/{}", self.group, self.version),
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        };
        let objects: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        };
        let mut is_told = false;
        loop {
            let wait = match objects.list_metadata(&ListParams::default().limit(1)).await {
                Ok(_) => break,
                Err(kube::Error::Api(status)) if [403, 404].contains(&status.code) => {
                    if !std::mem::replace(&mut is_told, true) {
                        let cause = if status.code == 404 {
                            "the cluster does not know it"
                        } else {
                            "no right to list it"
                        };
                        tracing::warn!(kind = self.kind, cause, "a kind is not served");
                    }
                    self.parts.iter().for_each(|part| health.set(*part, Presence::NotNeeded));
                    LOOK_AGAIN
                }
                Err(error) => {
                    let failure = Failure::from_api("listing objects", &error);
                    tracing::warn!(
                        kind = self.kind,
                        cause = failure.message,
                        "the API server does not answer yet"
                    );
                    RETRY
                }
            };
            tokio::time::sleep(wait).await;
        }
        self.parts.iter().for_each(|part| health.set(*part, Presence::Missing));
        tracing::info!(kind = self.kind, "a kind is served");
    }
}

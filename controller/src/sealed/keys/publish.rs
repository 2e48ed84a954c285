//! Shows the certificates where any authenticated user may read them, so that sealing needs no way to this process.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, PostParams};

use super::KeySet;
use crate::error::Failure;
use crate::keyring::own::PUBLIC_CONFIG_MAP;

/// The entry with all certificates that are sealed for, as PEM, the newest first.
pub const CERTIFICATES: &str = "sealing-certificates.pem";

/// Attempts when somebody else changes the ConfigMap at the same time, as the upkeep of identities may.
const ATTEMPTS: usize = 5;

/// Writes the certificates of `set`, if they are not there as they are.
///
/// # Errors
/// The API server's answer.
pub async fn publish(client: &Client, namespace: &str, set: &KeySet) -> Result<(), Failure> {
    let text: String = set.certificates().map(lacre_crypto::sealing_key::Certificate::pem).collect();
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let mut attempt = 1;
    loop {
        match write(&config_maps, &text).await {
            Err(kube::Error::Api(status)) if status.code == 409 && attempt < ATTEMPTS => attempt += 1,
            answer => {
                return answer.map_err(|error| Failure::from_api("publishing the certificates", &error));
            }
        }
    }
}

async fn write(config_maps: &Api<ConfigMap>, text: &str) -> kube::Result<()> {
    let record = config_maps.get_opt(PUBLIC_CONFIG_MAP).await?;
    let live = record.as_ref().and_then(|record| record.data.as_ref()?.get(CERTIFICATES));
    if live.is_some_and(|live| live == text) {
        return Ok(());
    }
    let exists = record.is_some();
    let mut wanted = record.unwrap_or_default();
    wanted.metadata.name = Some(PUBLIC_CONFIG_MAP.to_owned());
    wanted.data.get_or_insert_default().insert(CERTIFICATES.to_owned(), text.to_owned());
    let how = PostParams::default();
    match exists {
        // The record's resource version goes along: nobody else's change is lost.
        true => config_maps.replace(PUBLIC_CONFIG_MAP, &how, &wanted).await.map(drop),
        false => config_maps.create(&how, &wanted).await.map(drop),
    }
}

//! The controller's own identities: made on the first start, all of them opening for ever, and the public halves of
//! those it made itself published.
//!
//! Whoever could plant a Secret in the controller's namespace must not thereby become the recipient that everybody
//! seals for. So a Secret there that is labelled as holding keys *opens*, because that harms nobody; but *published* is
//! only what the controller made: of its type, under its name, recorded in it as a fingerprint, and recorded in the
//! published list since its first start.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, ListParams, ObjectMeta, PostParams};
use kube::{Client, ResourceExt};
use lacre_crypto::recipient::Identity;
use lacre_crypto::recipient::age::AgeIdentity;

use super::cache::KeyScope;
use super::entries::{self, EntryOptions};
use crate::apply::PlainSecret;
use crate::error::Failure;
use crate::policy::{IDENTITY_TYPE, KEY_LABEL};

/// What the name of every identity made by the controller begins with.
pub const NAME_PREFIX: &str = "lacre-identity-";

/// The ConfigMap that any authenticated user may read.
pub const PUBLIC_CONFIG_MAP: &str = "lacre-public-keys";

/// Its entry with age recipients, one per line, the newest first.
pub const PUBLIC_RECIPIENTS: &str = "age-recipients";

/// Where an identity's Secret records the public half that it was made with.
pub const FINGERPRINT: &str = "lacre.dev/fingerprint";

const IDENTITY_ENTRY: &str = "identity.agekey";

/// The controller's own identities, as loaded.
#[derive(Default)]
pub struct OwnKeys {
    pub(super) keys: Vec<OwnKey>,
    pub(super) unreadable: Vec<String>,
    published: Vec<String>,
}

pub(super) struct OwnKey {
    pub(super) scope: KeyScope,
    pub(super) identities: Vec<Arc<dyn Identity>>,
    /// The public half, when the controller made it itself.
    made: Option<String>,
    created: Option<Timestamp>,
}

impl OwnKeys {
    /// Public halves that are published, the newest first.
    pub fn published(&self) -> &[String] {
        &self.published
    }

    /// Entries that could not be read: names and reasons, never content.
    pub fn unreadable(&self) -> &[String] {
        &self.unreadable
    }
}

/// The controller's own identities could not be brought up.
#[derive(Debug, thiserror::Error)]
pub enum OwnKeysError {
    /// The API server's answer.
    #[error(transparent)]
    Api(#[from] Failure),
    /// A Secret has the name of the first identity and is none.
    #[error(
        "Secret {NAME_PREFIX}1 exists and is no identity of this controller: its label {KEY_LABEL}=true, its type, its \
         fingerprint or its entry is not as it was made"
    )]
    Foreign,
    /// Identities were published, and none of them is there any more.
    #[error(
        "ConfigMap {PUBLIC_CONFIG_MAP} lists identities, and no Secret {NAME_PREFIX}* holds one of them: restore them \
         from the backup, or delete the ConfigMap to start anew (what was sealed for them never opens again then)"
    )]
    Lost,
}

/// Loads the identities in `namespace`; makes the first one when there never was any; publishes.
///
/// # Errors
/// [`OwnKeysError`]. Nothing is made or published then that would have to be taken back.
pub async fn bring_up(
    client: &Client,
    namespace: &str,
    options: &EntryOptions,
) -> Result<OwnKeys, OwnKeysError> {
    let config_maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let record = config_maps.get_opt(PUBLIC_CONFIG_MAP).await.map_err(api("reading the published keys"))?;
    let recorded = record.as_ref().map(recipients).unwrap_or_default();
    let mut own = load(&secrets, options).await?;
    match decide(&own.made(), &recorded) {
        Decision::Lost => return Err(OwnKeysError::Lost),
        Decision::Publish(published) => own.published = published,
        Decision::Make => {
            make_first(&secrets).await?;
            own = load(&secrets, options).await?;
            own.published = own.made();
            if own.published.is_empty() {
                return Err(OwnKeysError::Foreign);
            }
        }
    }
    publish(&config_maps, record.as_ref(), &own.published).await?;
    Ok(own)
}

#[derive(Debug, PartialEq, Eq)]
enum Decision {
    Lost,
    Make,
    Publish(Vec<String>),
}

/// What to do about identities `made` by the controller, newest first, when those of `recorded` were published. A
/// record decides what is published; without one, as after a restore without it, the Secrets' own word counts.
fn decide(made: &[String], recorded: &[String]) -> Decision {
    let held: Vec<_> = made.iter().filter(|made| recorded.contains(made)).cloned().collect();
    match (recorded.is_empty(), made.is_empty()) {
        (true, true) => Decision::Make,
        (true, false) => Decision::Publish(made.to_vec()),
        (false, _) if held.is_empty() => Decision::Lost,
        (false, _) => Decision::Publish(held),
    }
}

impl OwnKeys {
    fn made(&self) -> Vec<String> {
        let mut made: Vec<_> =
            self.keys.iter().filter_map(|key| Some((key.created, key.made.clone()?))).collect();
        made.sort_by(|left, right| right.0.cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
        made.into_iter().map(|(_, public)| public).collect()
    }
}

async fn load(secrets: &Api<Secret>, options: &EntryOptions) -> Result<OwnKeys, Failure> {
    let labelled = ListParams::default().labels(&format!("{KEY_LABEL}=true"));
    let found = secrets.list(&labelled).await.map_err(api("listing the controller's own identities"))?;
    let mut own = OwnKeys::default();
    for secret in found.items.into_iter().map(PlainSecret::new) {
        let name = secret.name_any();
        let read = entries::read(&secret, options);
        own.unreadable.extend(read.unreadable.iter().map(|entry| format!("Secret {name}: {entry}")));
        own.keys.push(OwnKey {
            scope: KeyScope {
                namespace: String::new(),
                uid: secret.uid().unwrap_or_default(),
                version: secret.resource_version().unwrap_or_default(),
            },
            made: made_by_us(&secret, &read.identities),
            created: secret.metadata.creation_timestamp.as_ref().map(|time| time.0),
            identities: read.identities,
        });
    }
    Ok(own)
}

/// The public half of an identity that the controller made, by the Secret's type, name, and recorded fingerprint.
fn made_by_us(secret: &PlainSecret, identities: &[Arc<dyn Identity>]) -> Option<String> {
    let [identity] = identities else { return None };
    let public = recipient_of(identity.as_ref());
    let ours = secret.type_.as_deref() == Some(IDENTITY_TYPE)
        && secret.name_any().starts_with(NAME_PREFIX)
        && secret.annotations().get(FINGERPRINT) == Some(&public);
    ours.then_some(public)
}

fn recipient_of(identity: &dyn Identity) -> String {
    let public = identity.public();
    public.strip_prefix("age ").unwrap_or(&public).to_owned()
}

/// Makes the first identity. Its name is fixed, so that of several controllers that start at once one makes it and
/// the others find it.
async fn make_first(secrets: &Api<Secret>) -> Result<(), Failure> {
    let identity = AgeIdentity::generate();
    let text = identity.to_file_text(Timestamp::now());
    let value = [(IDENTITY_ENTRY.to_owned(), text.expose_secret().as_bytes())];
    let metadata = ObjectMeta {
        name: Some(format!("{NAME_PREFIX}1")),
        labels: Some(BTreeMap::from([(KEY_LABEL.to_owned(), "true".to_owned())])),
        annotations: Some(BTreeMap::from([(FINGERPRINT.to_owned(), recipient_of(&identity))])),
        ..ObjectMeta::default()
    };
    let secret = PlainSecret::build(metadata, IDENTITY_TYPE.to_owned(), Some(true), value.into_iter());
    match secrets.create(&PostParams::default(), secret.as_secret()).await {
        Ok(created) => {
            tracing::info!(secret = created.name_any(), public = recipient_of(&identity), "made an identity");
            drop(PlainSecret::new(created));
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(error) => Err(Failure::from_api("making an identity", &error)),
    }
}

async fn publish(
    config_maps: &Api<ConfigMap>,
    record: Option<&ConfigMap>,
    published: &[String],
) -> Result<(), Failure> {
    let text: String = published.iter().map(|recipient| format!("{recipient}\n")).collect();
    let live = record.and_then(|record| record.data.as_ref()?.get(PUBLIC_RECIPIENTS));
    if live == Some(&text) {
        return Ok(());
    }
    let mut wanted = record.cloned().unwrap_or_default();
    wanted.metadata.name = Some(PUBLIC_CONFIG_MAP.to_owned());
    wanted.data.get_or_insert_default().insert(PUBLIC_RECIPIENTS.to_owned(), text);
    let how = PostParams::default();
    let answer = match record {
        // The record's resource version goes along: nobody else's change is lost.
        Some(_) => config_maps.replace(PUBLIC_CONFIG_MAP, &how, &wanted).await,
        None => config_maps.create(&how, &wanted).await,
    };
    answer.map(drop).map_err(api("publishing the public keys"))
}

fn recipients(config_map: &ConfigMap) -> Vec<String> {
    let text = config_map.data.as_ref().and_then(|data| data.get(PUBLIC_RECIPIENTS));
    text.into_iter().flat_map(|text| text.lines()).map(|line| line.trim().to_owned()).collect()
}

fn api(what: &'static str) -> impl Fn(kube::Error) -> Failure {
    move |error| Failure::from_api(what, &error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(publics: &[&str]) -> Vec<String> {
        publics.iter().map(|public| public.to_string()).collect()
    }

    #[test]
    fn the_first_start_makes_an_identity() {
        assert_eq!(decide(&[], &[]), Decision::Make);
    }

    #[test]
    fn what_the_record_does_not_list_is_never_published() {
        assert_eq!(decide(&list(&["planted", "ours"]), &list(&["ours"])), Decision::Publish(list(&["ours"])));
    }

    #[test]
    fn without_a_record_the_secrets_own_word_counts() {
        assert_eq!(decide(&list(&["new", "old"]), &[]), Decision::Publish(list(&["new", "old"])));
    }

    #[test]
    fn a_lost_identity_is_not_silently_replaced_by_another() {
        assert_eq!(decide(&[], &list(&["gone"])), Decision::Lost);
        assert_eq!(decide(&list(&["planted"]), &list(&["gone"])), Decision::Lost);
    }

    #[test]
    fn only_type_name_and_fingerprint_together_make_an_identity_ours() {
        let identity = AgeIdentity::generate();
        let public = recipient_of(&identity);
        let identities: [Arc<dyn Identity>; 1] = [Arc::new(identity)];
        let secret = |name: &str, type_: &str, fingerprint: &str| {
            let metadata = ObjectMeta {
                name: Some(name.to_owned()),
                annotations: Some(BTreeMap::from([(FINGERPRINT.to_owned(), fingerprint.to_owned())])),
                ..ObjectMeta::default()
            };
            PlainSecret::build(metadata, type_.to_owned(), None, std::iter::empty())
        };
        let made = |name, type_, fingerprint| made_by_us(&secret(name, type_, fingerprint), &identities);
        assert_eq!(made("lacre-identity-1", IDENTITY_TYPE, &public), Some(public.clone()));
        assert_eq!(made("other", IDENTITY_TYPE, &public), None);
        assert_eq!(made("lacre-identity-1", "Opaque", &public), None);
        assert_eq!(made("lacre-identity-1", IDENTITY_TYPE, "age1other"), None);
    }
}

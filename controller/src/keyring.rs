//! Which identities may open which object.
//!
//! With `keysFrom`, only those in the named Secrets of the object's namespace, each of which must carry the label
//! `lacre.dev/keys=true`: its owner's consent. Without it, only the controller's own. No object can reach another
//! namespace's keys, and no unwrapped key is ever used for another namespace or another version of a key Secret, see
//! [`cache`].
//!
//! Key Secrets are read when they are needed, by name: what is found is never older than the object, and no tenant's
//! key stays in memory that no object uses. The controller's own are loaded at the start and when they change.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ObjectMeta};
use kube::{Client, ResourceExt};
use lacre_crypto::recipient::{Effort, Identity};

use crate::apply::PlainSecret;
use crate::error::{Failure, Reason};
use crate::policy;

pub mod cache;
pub mod entries;
pub mod own;
pub mod upkeep;

use cache::{Cached, KeyScope, UnwrapCache};
use entries::EntryOptions;
use own::OwnKeys;

/// Most identities that one object may be tried with. Each is compared with every recipient of the object, and both are
/// in the hands of whoever writes the object and its key Secrets.
pub const IDENTITIES_MAX: usize = 256;

/// The administrator's choices about identities.
#[derive(Clone, Debug)]
pub struct KeyOptions {
    /// What entries of key Secrets are read, and how key services are reached.
    pub entries: EntryOptions,
    /// Namespaces whose objects may be opened with the credentials of the controller's own environment.
    pub ambient_namespaces: BTreeSet<String>,
    /// Most unwrapped keys that are remembered.
    pub cache_entries_max: usize,
}

/// The identities that may open one object.
#[derive(Default)]
pub struct Held {
    /// In the order in which they were found.
    pub identities: Vec<Arc<dyn Identity>>,
    /// Entries that could not be read: names and reasons, never content.
    pub unreadable: Vec<String>,
}

/// The way to every identity.
pub struct Keyring {
    client: Client,
    options: KeyOptions,
    own: Mutex<Arc<OwnKeys>>,
    cache: Arc<UnwrapCache>,
}

impl Keyring {
    /// A keyring without own identities yet: see [`own`].
    pub fn new(client: Client, options: KeyOptions) -> Self {
        let cache = Arc::new(UnwrapCache::new(options.cache_entries_max));
        Self { client, options, own: Mutex::default(), cache }
    }

    /// What entries of key Secrets are read.
    pub fn entry_options(&self) -> &EntryOptions {
        &self.options.entries
    }

    /// The remembered unwrapped keys.
    pub fn cache(&self) -> &UnwrapCache {
        &self.cache
    }

    /// Takes over the controller's own identities.
    pub fn set_own(&self, own: OwnKeys) {
        *self.own.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(own);
    }

    /// Whether a key Secret of the controller's own was loaded in the very version that this is the metadata of.
    pub fn has_loaded(&self, secret: &ObjectMeta) -> bool {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner).clone();
        own.keys.iter().any(|key| {
            secret.uid.as_ref() == Some(&key.scope.uid)
                && secret.resource_version.as_ref() == Some(&key.scope.version)
        })
    }

    /// The identities that may open an object in `namespace` that names these key Secrets.
    ///
    /// # Errors
    /// [`Reason::IdentityNotFound`] for a key Secret that is absent or not labelled; [`Reason::InvalidIdentity`] when
    /// nothing in them can be read, or they hold more than [`IDENTITIES_MAX`]; the API server's answer.
    pub async fn identities_for(&self, namespace: &str, keys_from: &[String]) -> Result<Held, Failure> {
        if keys_from.is_empty() {
            return self.own_for(namespace);
        }
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let mut held = Held::default();
        let mut publics = BTreeSet::new();
        for name in keys_from.iter().collect::<BTreeSet<_>>() {
            let secret = key_secret(&secrets, namespace, name).await?;
            let scope = Arc::new(KeyScope {
                namespace: namespace.to_owned(),
                uid: secret.uid().unwrap_or_default(),
                version: secret.resource_version().unwrap_or_default(),
            });
            let options = self.options.entries.clone();
            // A megabyte of keys takes a while to compute.
            let found = tokio::task::spawn_blocking(move || entries::read(&secret, &options)).await;
            let stopped = |_| Failure::new(Reason::InvalidIdentity, format!("Secret {name} cannot be read"));
            let found = found.map_err(stopped)?;
            let mut inner = found.identities;
            // The same key in another entry opens nothing more. Credentials of services are told apart by the service.
            inner.retain(|inner| inner.effort() != Effort::Silent || publics.insert(inner.public()));
            held.identities.extend(inner.into_iter().map(|inner| self.remembering(inner, &scope)));
            held.unreadable.extend(found.unreadable.iter().map(|entry| format!("Secret {name}: {entry}")));
            if held.identities.len() > IDENTITIES_MAX {
                let message = format!("the Secrets of keysFrom hold more than {IDENTITIES_MAX} identities");
                return Err(Failure::new(Reason::InvalidIdentity, message));
            }
        }
        match held.identities.is_empty() {
            true => Err(Failure::new(Reason::InvalidIdentity, held.unreadable.join("; "))),
            false => Ok(held),
        }
    }

    fn own_for(&self, namespace: &str) -> Result<Held, Failure> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut held = Held { identities: Vec::new(), unreadable: own.unreadable.clone() };
        for key in &own.keys {
            let scope = Arc::new(KeyScope { namespace: namespace.to_owned(), ..key.scope.clone() });
            held.identities
                .extend(key.identities.iter().map(|inner| self.remembering(inner.clone(), &scope)));
        }
        if self.options.ambient_namespaces.contains(namespace) {
            let scope = Arc::new(KeyScope { namespace: namespace.to_owned(), ..KeyScope::default() });
            held.identities.push(self.remembering(entries::ambient_aws(&self.options.entries), &scope));
        }
        match held.identities.is_empty() {
            true => {
                Err(Failure::new(Reason::IdentityNotFound, "the controller holds no identity of its own"))
            }
            false => Ok(held),
        }
    }

    fn remembering(&self, inner: Arc<dyn Identity>, scope: &Arc<KeyScope>) -> Arc<dyn Identity> {
        Arc::new(Cached::new(inner, self.cache.clone(), scope.clone()))
    }
}

async fn key_secret(secrets: &Api<Secret>, namespace: &str, name: &str) -> Result<PlainSecret, Failure> {
    let missing = |what: &str| {
        let message = format!("Secret {namespace}/{name}, which keysFrom names, {what}");
        Err(Failure::new(Reason::IdentityNotFound, message))
    };
    let found = secrets.get_opt(name).await;
    let found =
        found.map_err(|error| Failure::from_api(&format!("reading key Secret {namespace}/{name}"), &error));
    let Some(secret) = found?.map(PlainSecret::new) else { return missing("does not exist") };
    match policy::is_key_source(secret.metadata.labels.as_ref()) {
        true => Ok(secret),
        false => missing(&format!("is not labelled {}=true", policy::KEY_LABEL)),
    }
}

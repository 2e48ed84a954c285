//! The key pairs that open SealedSecrets, and the certificate that everybody seals for.
//!
//! Every Secret in the controller's namespace that is labelled as an active sealing key *opens*, whoever brought it: so
//! a cluster's keys are taken over from Sealed Secrets, and restored ones work at once. *Sealed for* is only a key whose
//! certificate belongs to it, and whose Secret was not itself made from a sealed object: whoever may write such objects
//! there must not thereby become the recipient of everybody's secrets. A Secret that cannot be read is told and passed
//! over, and the others go on.
//!
//! [`upkeep`] keeps the keys as the cluster has them, [`mint`] makes new ones, [`publish`] shows the certificates.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use lacre_crypto::sealing_key::{Certificate, SealingKey};
use tokio::sync::watch;

use crate::memory::Place;

pub mod mint;
pub mod publish;
pub mod read;
pub mod upkeep;

/// The label by which sealing keys are found. No Secret that is made from a sealed object may carry it, or whoever may
/// write such objects in the controller's namespace would choose its keys.
pub const KEY_LABEL: &str = "sealedsecrets.bitnami.com/sealed-secrets-key";

/// The value of [`KEY_LABEL`] for a key that opens. With any other the key is out of use.
pub const KEY_ACTIVE: &str = "active";

/// The annotation by which `lacre kube keys backup` says when a key was backed up.
pub const BACKED_UP: &str = "lacre.dev/backed-up-at";

/// A key pair of the cluster.
pub struct HeldKey {
    /// Name of its Secret.
    pub name: String,
    /// The public half's fingerprint.
    pub fingerprint: String,
    /// What opens.
    pub key: SealingKey,
    /// What is sealed for; absent when the key only opens.
    pub certificate: Option<Certificate>,
    /// The time that says which key is the newest.
    pub ordered_by: Timestamp,
    /// When its Secret was made.
    pub created: Timestamp,
    /// Whether it says that it was backed up.
    pub backed_up: bool,
}

/// Why a key Secret is not used, or not sealed for. Never holds any of its content.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// Name of the Secret.
    pub secret: String,
    /// Its unique id.
    pub uid: String,
    /// What is wrong with it.
    pub what: String,
}

/// The keys of one moment.
#[derive(Default)]
pub struct KeySet {
    /// The newest first; each key once.
    pub keys: Vec<Arc<HeldKey>>,
    /// What is wrong with single Secrets, in their order.
    pub problems: Vec<Problem>,
    /// Uid and version of each Secret that was looked at.
    pub(super) looked_at: BTreeMap<String, String>,
}

impl KeySet {
    /// The key that is sealed for.
    pub fn newest(&self) -> Option<&Arc<HeldKey>> {
        self.keys.iter().find(|key| key.certificate.is_some())
    }

    /// All certificates, the newest first.
    pub fn certificates(&self) -> impl Iterator<Item = &Certificate> {
        self.keys.iter().filter_map(|key| key.certificate.as_ref())
    }

    /// Whether a Secret was looked at in the very version that this is the metadata of.
    fn has_looked_at(&self, secret: &ObjectMeta) -> bool {
        let version = self.looked_at.get(secret.uid.as_deref().unwrap_or_default());
        version.is_some() && version == secret.resource_version.as_ref()
    }
}

/// The keys, shared by all who open.
#[derive(Default)]
pub struct SealingKeys {
    set: Mutex<Arc<KeySet>>,
    used: Mutex<HashMap<Place, BTreeMap<String, usize>>>,
    looked: watch::Sender<bool>,
}

impl From<KeySet> for SealingKeys {
    fn from(set: KeySet) -> Self {
        Self { set: Mutex::new(Arc::new(set)), used: Mutex::default(), looked: watch::Sender::new(true) }
    }
}

impl SealingKeys {
    /// Waits until the cluster's keys were looked at once, and made if there was none: whoever opens before that fails
    /// for nothing.
    pub async fn until_known(&self) {
        // The sender is this very value.
        let _ = self.looked.subscribe().wait_for(|looked| *looked).await;
    }

    /// The keys of this moment.
    pub fn snapshot(&self) -> Arc<KeySet> {
        lock(&self.set).clone()
    }

    /// The keys in the order in which they are tried for the object at `place`: those that opened it last, most items
    /// first, then the newest.
    pub fn ordered_for(&self, place: &Place) -> Vec<Arc<HeldKey>> {
        let used = lock(&self.used).get(place).cloned().unwrap_or_default();
        let mut keys = self.snapshot().keys.clone();
        // Stable: those that opened nothing stay in their order.
        keys.sort_by_key(|key| std::cmp::Reverse(used.get(&key.fingerprint).copied().unwrap_or_default()));
        keys
    }

    /// Remembers how many items of the object at `place` each key opened, by fingerprint.
    pub fn remember(&self, place: &Place, opened_by: &BTreeMap<String, usize>) {
        lock(&self.used).insert(place.clone(), opened_by.clone());
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, place: &Place) {
        lock(&self.used).remove(place);
    }

    /// What each object still needs, by fingerprint of the key.
    pub fn needed(&self) -> BTreeMap<Place, BTreeMap<String, usize>> {
        lock(&self.used).iter().map(|(place, used)| (place.clone(), used.clone())).collect()
    }

    /// Says that the keys are those of the cluster, as far as they can be had.
    fn are_known(&self) {
        self.looked.send_replace(true);
    }

    /// Takes over the keys of a new moment; gives whether other keys open now than before.
    fn replace(&self, set: KeySet) -> bool {
        let fingerprints =
            |set: &KeySet| set.keys.iter().map(|key| key.fingerprint.clone()).collect::<Vec<_>>();
        let mut current = lock(&self.set);
        let changed = fingerprints(&current) != fingerprints(&set);
        *current = Arc::new(set);
        changed
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(name: &str) -> Arc<HeldKey> {
        let key = SealingKey::generate(2048).unwrap();
        Arc::new(HeldKey {
            name: name.to_owned(),
            fingerprint: key.public().fingerprint(),
            key,
            certificate: None,
            ordered_by: Timestamp::UNIX_EPOCH,
            created: Timestamp::UNIX_EPOCH,
            backed_up: false,
        })
    }

    #[test]
    fn keys_that_opened_an_object_are_tried_first_for_it_and_only_for_it() {
        let keys = SealingKeys::default();
        let set = ["c", "b", "a"].map(held);
        let fingerprint = |index: usize| set[index].fingerprint.clone();
        keys.replace(KeySet { keys: set.to_vec(), ..KeySet::default() });
        let order = |place: &Place| {
            keys.ordered_for(place).iter().map(|key| key.name.clone()).collect::<Vec<_>>().concat()
        };
        let (db, web) = (("shop".to_owned(), "db".to_owned()), ("shop".to_owned(), "web".to_owned()));
        assert_eq!(order(&db), "cba");
        keys.remember(&db, &BTreeMap::from([(fingerprint(1), 1), (fingerprint(2), 2)]));
        assert_eq!((order(&db), order(&web)), ("abc".to_owned(), "cba".to_owned()));
        keys.forget(&db);
        assert_eq!(order(&db), "cba");
    }

    #[test]
    fn a_set_with_the_same_keys_is_no_change() {
        let (keys, key) = (SealingKeys::default(), held("a"));
        let set = |keys: &[&Arc<HeldKey>]| KeySet {
            keys: keys.iter().map(|key| Arc::clone(key)).collect(),
            ..KeySet::default()
        };
        assert!(keys.replace(set(&[&key])));
        assert!(!keys.replace(set(&[&key])));
        assert!(keys.replace(set(&[])));
    }
}

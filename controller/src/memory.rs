//! What the controller remembers about each object between two reconciles. Nothing of it is secret, and nothing of it
//! is needed after a restart: it only saves work.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::api::{EncryptedSecret, EncryptedSecretStatus};

/// How long to wait before another attempt.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// After the first failure.
    pub delay_min: Duration,
    /// After many.
    pub delay_max: Duration,
}

impl Backoff {
    /// The delay after `failures` failures in a row, with `jitter` from 0 to 1: between half of and the whole of a
    /// time that doubles with each failure, so that objects which failed together do not come back together.
    pub fn delay(&self, failures: u32, jitter: f64) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let delay = self.delay_min.saturating_mul(1 << doublings).min(self.delay_max);
        delay.mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0)
    }
}

/// A number from 0 to 1 that differs from call to call; nobody's security rests on it.
pub fn jitter() -> f64 {
    f64::from(u32::try_from(RandomState::new().hash_one(()) >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}

/// Namespace and name.
pub type Place = (String, String);

#[derive(Default)]
struct Remembered {
    uid: String,
    failures: u32,
    told: Option<Told>,
    secret_version: Option<String>,
}

/// A status that was written, and the version of the object that it was written upon.
struct Told {
    upon: Option<String>,
    status: EncryptedSecretStatus,
}

/// The memory of all objects.
#[derive(Default)]
pub struct Memory(Mutex<HashMap<Place, Remembered>>);

impl Memory {
    fn with<T>(&self, object: &EncryptedSecret, act: impl FnOnce(&mut Remembered) -> T) -> T {
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let remembered = memory.entry(place(object)).or_default();
        if remembered.uid != object.uid() {
            // Another object under the same name: nothing of the old one holds.
            *remembered = Remembered { uid: object.uid().to_owned(), ..Remembered::default() };
        }
        act(remembered)
    }

    /// Counts one more failure in a row.
    pub fn fail(&self, object: &EncryptedSecret) -> u32 {
        self.with(object, |remembered| {
            remembered.failures = remembered.failures.saturating_add(1);
            remembered.failures
        })
    }

    /// Ends a row of failures.
    pub fn succeed(&self, object: &EncryptedSecret) {
        self.with(object, |remembered| remembered.failures = 0);
    }

    /// The status as the API server has it: the object's, or a newer one that we wrote and the watch has not shown
    /// yet.
    pub fn status(&self, object: &EncryptedSecret) -> Option<EncryptedSecretStatus> {
        self.with(object, |remembered| match &remembered.told {
            Some(told) if told.upon == object.metadata.resource_version => Some(told.status.clone()),
            _ => object.status.clone(),
        })
    }

    /// Remembers that `status` was written upon this version of the object.
    pub fn tell(&self, object: &EncryptedSecret, status: EncryptedSecretStatus) {
        let upon = object.metadata.resource_version.clone();
        self.with(object, |remembered| remembered.told = Some(Told { upon, status }));
    }

    /// Remembers the version in which the object's Secret was last seen to be right.
    pub fn settle(&self, object: &EncryptedSecret, secret_version: Option<String>) {
        self.with(object, |remembered| remembered.secret_version = secret_version);
    }

    /// Whether the Secret at `place` was seen to be right in this very version: then its watch event is the echo of
    /// our own write or of what was just compared.
    pub fn is_echo(&self, place: &Place, secret_version: Option<&str>) -> bool {
        let memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let settled = memory.get(place).and_then(|remembered| remembered.secret_version.as_deref());
        settled.is_some() && settled == secret_version
    }

    /// Forgets every object that is not there any more; gives those forgotten.
    pub fn forget_all_but(&self, is_there: impl Fn(&Place) -> bool) -> Vec<Place> {
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gone: Vec<_> = memory.keys().filter(|place| !is_there(place)).cloned().collect();
        gone.iter().for_each(|place| drop(memory.remove(place)));
        gone
    }
}

/// Where the object is.
pub fn place(object: &EncryptedSecret) -> Place {
    (object.namespace().to_owned(), object.name().to_owned())
}

#[cfg(test)]
mod tests {
    use kube::api::ObjectMeta;
    use serde_json::Value;

    use super::*;

    fn object(uid: &str, version: &str) -> EncryptedSecret {
        let metadata = ObjectMeta {
            name: Some("db".to_owned()),
            namespace: Some("shop".to_owned()),
            uid: Some(uid.to_owned()),
            resource_version: Some(version.to_owned()),
            ..ObjectMeta::default()
        };
        EncryptedSecret::new(metadata, Value::Null, Value::Null)
    }

    fn status(generation: i64) -> EncryptedSecretStatus {
        EncryptedSecretStatus { observed_generation: Some(generation), ..EncryptedSecretStatus::default() }
    }

    #[test]
    fn delays_double_up_to_a_bound() {
        let backoff = Backoff { delay_min: Duration::from_secs(1), delay_max: Duration::from_secs(60) };
        let whole = |failures| backoff.delay(failures, 1.0).as_secs();
        assert_eq!([1, 2, 3, 7, 8, 4_000_000_000].map(whole), [1, 2, 4, 60, 60, 60]);
    }

    #[test]
    fn delays_are_spread_over_half_of_their_length() {
        let backoff = Backoff { delay_min: Duration::from_secs(4), delay_max: Duration::from_secs(60) };
        assert_eq!(backoff.delay(1, 0.0), Duration::from_secs(2));
        assert_eq!(backoff.delay(1, 0.5), Duration::from_secs(3));
        assert!((0..100).map(|_| jitter()).all(|jitter| (0.0..=1.0).contains(&jitter)));
    }

    #[test]
    fn failures_count_in_a_row_and_per_object() {
        let memory = Memory::default();
        assert_eq!([memory.fail(&object("1", "1")), memory.fail(&object("1", "2"))], [1, 2]);
        memory.succeed(&object("1", "2"));
        assert_eq!(memory.fail(&object("1", "3")), 1);
        assert_eq!(memory.fail(&object("2", "4")), 1, "an object that was made anew starts anew");
    }

    #[test]
    fn our_own_status_counts_until_the_watch_shows_a_newer_object() {
        let memory = Memory::default();
        assert_eq!(memory.status(&object("1", "10")), None);
        memory.tell(&object("1", "10"), status(1));
        assert_eq!(memory.status(&object("1", "10")), Some(status(1)));
        assert_eq!(memory.status(&object("1", "11")), None, "the newer object's own status counts");
        assert_eq!(memory.status(&object("2", "10")), None);
    }

    #[test]
    fn only_the_version_that_was_seen_to_be_right_is_an_echo() {
        let memory = Memory::default();
        let place = place(&object("1", "1"));
        assert!(!memory.is_echo(&place, None) && !memory.is_echo(&place, Some("7")));
        memory.settle(&object("1", "1"), Some("7".to_owned()));
        assert!(memory.is_echo(&place, Some("7")) && !memory.is_echo(&place, Some("8")));
        memory.settle(&object("1", "1"), None);
        assert!(!memory.is_echo(&place, Some("7")) && !memory.is_echo(&place, None));
    }

    #[test]
    fn objects_that_are_gone_are_forgotten() {
        let memory = Memory::default();
        memory.fail(&object("1", "1"));
        assert!(memory.forget_all_but(|_| true).is_empty());
        assert_eq!(memory.forget_all_but(|_| false), [place(&object("1", "1"))]);
        assert_eq!(memory.fail(&object("1", "1")), 1);
    }
}

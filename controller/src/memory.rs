//! What the controller remembers about each object between two reconciles. Nothing of it is secret, and nothing of it
//! is needed after a restart: it only saves work.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kube::api::ObjectMeta;

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

/// How long a Secret must be left alone before a change to it counts as the first again.
const REPAIRS_FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

struct Remembered<S> {
    uid: String,
    generation: Option<i64>,
    failures: u32,
    told: Option<Told<S>>,
    secret_version: Option<String>,
    secret_was_foreign: bool,
    repairs: u32,
    repaired: Option<Instant>,
}

impl<S> Remembered<S> {
    fn new(uid: &str) -> Self {
        Self {
            uid: uid.to_owned(),
            generation: None,
            failures: 0,
            told: None,
            secret_version: None,
            secret_was_foreign: false,
            repairs: 0,
            repaired: None,
        }
    }
}

/// A status that was written, and the version of the object that it was written upon.
struct Told<S> {
    upon: Option<String>,
    status: S,
}

/// The memory of all objects of one kind, whose status is an `S`. Objects are known by their metadata.
pub struct Memory<S>(Mutex<HashMap<Place, Remembered<S>>>);

impl<S> Default for Memory<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<S: Clone> Memory<S> {
    fn with<T>(&self, object: &ObjectMeta, act: impl FnOnce(&mut Remembered<S>) -> T) -> T {
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let uid = object.uid.as_deref().unwrap_or_default();
        let remembered = memory.entry(place(object)).or_insert_with(|| Remembered::new(uid));
        if remembered.uid != uid {
            // Another object under the same name: nothing of the old one holds.
            *remembered = Remembered::new(uid);
        }
        if remembered.generation != object.generation {
            // What failed has been changed, and deserves a prompt answer.
            remembered.generation = object.generation;
            remembered.failures = 0;
        }
        act(remembered)
    }

    /// Counts one more failure in a row.
    pub fn fail(&self, object: &ObjectMeta) -> u32 {
        self.with(object, |remembered| {
            remembered.failures = remembered.failures.saturating_add(1);
            remembered.failures
        })
    }

    /// Ends a row of failures.
    pub fn succeed(&self, object: &ObjectMeta) {
        self.with(object, |remembered| remembered.failures = 0);
    }

    /// The status as the API server has it: `shown`, which is the object's, or a newer one that we wrote and the watch
    /// has not shown yet.
    pub fn status(&self, object: &ObjectMeta, shown: Option<&S>) -> Option<S> {
        self.with(object, |remembered| match &remembered.told {
            Some(told) if told.upon == object.resource_version => Some(told.status.clone()),
            _ => shown.cloned(),
        })
    }

    /// Remembers that `status` was written upon this version of the object.
    pub fn tell(&self, object: &ObjectMeta, status: S) {
        let upon = object.resource_version.clone();
        self.with(object, |remembered| remembered.told = Some(Told { upon, status }));
    }

    /// Remembers the version in which the object's Secret was last seen to be right.
    pub fn settle(&self, object: &ObjectMeta, secret_version: Option<String>) {
        self.with(object, |remembered| remembered.secret_version = secret_version);
    }

    /// Remembers whether the Secret that was seen under the object's name is another's; gives what was remembered.
    pub fn see_foreign(&self, object: &ObjectMeta, is_foreign: bool) -> bool {
        self.with(object, |remembered| std::mem::replace(&mut remembered.secret_was_foreign, is_foreign))
    }

    /// Counts one more repair of the object's Secret at `now`; gives how many there were without a long pause.
    pub fn repair(&self, object: &ObjectMeta, now: Instant) -> u32 {
        self.with(object, |remembered| {
            remembered.repairs = 1 + recent_repairs(remembered, now);
            remembered.repaired = Some(now);
            remembered.repairs
        })
    }

    /// How many repairs there were without a long pause, and how long ago the last one was.
    pub fn repairs(&self, object: &ObjectMeta, now: Instant) -> (u32, Duration) {
        self.with(object, |remembered| {
            let since = remembered.repaired.map(|last| now.saturating_duration_since(last));
            (recent_repairs(remembered, now), since.unwrap_or(Duration::MAX))
        })
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

fn recent_repairs<S>(remembered: &Remembered<S>, now: Instant) -> u32 {
    let is_recent = |last| now.saturating_duration_since(last) < REPAIRS_FORGOTTEN_AFTER;
    if remembered.repaired.is_some_and(is_recent) { remembered.repairs } else { 0 }
}

/// Where the object is.
pub fn place(object: &ObjectMeta) -> Place {
    (object.namespace.clone().unwrap_or_default(), object.name.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(uid: &str, version: &str) -> ObjectMeta {
        ObjectMeta {
            name: Some("db".to_owned()),
            namespace: Some("shop".to_owned()),
            uid: Some(uid.to_owned()),
            resource_version: Some(version.to_owned()),
            ..ObjectMeta::default()
        }
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
        let memory = Memory::<i64>::default();
        assert_eq!([memory.fail(&object("1", "1")), memory.fail(&object("1", "2"))], [1, 2]);
        memory.succeed(&object("1", "2"));
        assert_eq!(memory.fail(&object("1", "3")), 1);
        assert_eq!(memory.fail(&object("2", "4")), 1, "an object that was made anew starts anew");
        let changed = ObjectMeta { generation: Some(2), ..object("2", "5") };
        memory.fail(&object("2", "4"));
        assert_eq!(memory.fail(&changed), 1, "what was changed starts anew, too");
    }

    #[test]
    fn our_own_status_counts_until_the_watch_shows_a_newer_object() {
        let memory = Memory::<i64>::default();
        assert_eq!(memory.status(&object("1", "10"), None), None);
        memory.tell(&object("1", "10"), 1);
        assert_eq!(memory.status(&object("1", "10"), None), Some(1));
        assert_eq!(memory.status(&object("1", "11"), None), None, "the newer object's own status counts");
        assert_eq!(memory.status(&object("2", "10"), None), None);
    }

    #[test]
    fn only_the_version_that_was_seen_to_be_right_is_an_echo() {
        let memory = Memory::<i64>::default();
        let place = place(&object("1", "1"));
        assert!(!memory.is_echo(&place, None) && !memory.is_echo(&place, Some("7")));
        memory.settle(&object("1", "1"), Some("7".to_owned()));
        assert!(memory.is_echo(&place, Some("7")) && !memory.is_echo(&place, Some("8")));
        memory.settle(&object("1", "1"), None);
        assert!(!memory.is_echo(&place, Some("7")) && !memory.is_echo(&place, None));
    }

    #[test]
    fn repairs_count_until_there_is_a_long_pause() {
        let (memory, object, now) = (Memory::<i64>::default(), object("1", "1"), Instant::now());
        assert_eq!(memory.repairs(&object, now), (0, Duration::MAX));
        assert_eq!([memory.repair(&object, now), memory.repair(&object, now)], [1, 2]);
        let later = now + Duration::from_secs(9);
        assert_eq!(memory.repairs(&object, later), (2, Duration::from_secs(9)));
        assert_eq!(memory.repair(&object, now + REPAIRS_FORGOTTEN_AFTER), 1);
    }

    #[test]
    fn what_was_seen_last_is_remembered() {
        let memory = Memory::<i64>::default();
        let see = |is_foreign| memory.see_foreign(&object("1", "1"), is_foreign);
        assert_eq!([see(true), see(true), see(false), see(false)], [false, true, true, false]);
    }

    #[test]
    fn objects_that_are_gone_are_forgotten() {
        let memory = Memory::<i64>::default();
        memory.fail(&object("1", "1"));
        assert!(memory.forget_all_but(|_| true).is_empty());
        assert_eq!(memory.forget_all_but(|_| false), [place(&object("1", "1"))]);
        assert_eq!(memory.fail(&object("1", "1")), 1);
    }
}

//! A file's data key: wrapped for each recipient, or one share of it for each group of them, and recovered.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Attempt, EncryptError, NoKeyError};
use crate::recipient::{
    Effort, Identity, Recipient, RecipientId, SHARE_BYTES, UnwrapFailure, WRAPPED_KEY_BYTES_MAX, WrappedKey,
};
use crate::secret::{DATA_KEY_BYTES, DataKey, SecretBytes};
use crate::shamir;
use crate::timestamp;

mod order;

pub use order::DecryptionOrder;

/// Most calls to key services at a time for one file.
const REMOTE_CALLS_MAX: usize = 16;

/// Recipients in their groups. One group wraps the whole key for each; of several, `threshold` open the file.
pub struct Groups<'a> {
    /// The recipients, group by group.
    pub groups: Vec<Vec<&'a dyn Recipient>>,
    /// How many groups are needed; all when not said.
    pub threshold: Option<usize>,
}

impl<'a> Groups<'a> {
    /// One group.
    pub fn one(recipients: Vec<&'a dyn Recipient>) -> Self {
        Self { groups: vec![recipients], threshold: None }
    }

    /// The threshold that is in force, when there are several groups.
    pub(crate) fn effective_threshold(&self) -> Option<usize> {
        (self.groups.len() > 1).then(|| self.threshold.unwrap_or(self.groups.len()))
    }

    /// Everyone, group after group.
    pub fn ids(&self) -> Vec<RecipientId> {
        self.groups.iter().flatten().map(|recipient| recipient.id()).collect()
    }

    fn check(&self) -> Result<(), EncryptError> {
        if self.groups.is_empty() || self.groups.iter().any(Vec::is_empty) {
            return Err(EncryptError::NoRecipient);
        }
        if self.groups.iter().map(Vec::len).sum::<usize>() > crate::metadata::RECIPIENTS_MAX {
            return Err(EncryptError::Limit(format!(
                "more than {} recipients",
                crate::metadata::RECIPIENTS_MAX
            )));
        }
        match self.effective_threshold() {
            Some(threshold) if !(2..=self.groups.len()).contains(&threshold) => Err(EncryptError::Limit(
                format!("the threshold must be within 2 and {} groups", self.groups.len()),
            )),
            _ => Ok(()),
        }
    }
}

/// Wraps `key` for everyone. An entry of `kept` for the same recipient in the same group is taken as it is, which is
/// only right while key and groups stay what they were.
pub(crate) fn wrap(
    key: &DataKey,
    groups: &Groups<'_>,
    kept: &[Vec<WrappedKey>],
    now: jiff::Timestamp,
) -> Result<Vec<Vec<WrappedKey>>, EncryptError> {
    groups.check()?;
    let whole = key.to_secret_bytes();
    let shares = match groups.effective_threshold() {
        None => vec![whole],
        Some(threshold) => shamir::split(&whole, groups.groups.len(), threshold),
    };
    let created_at = timestamp(now);
    let wrap_one = |recipient: &&dyn Recipient, share: &SecretBytes, kept: &[WrappedKey]| {
        let id = recipient.id();
        if let Some(kept) = kept.iter().find(|kept| id.means(&kept.recipient)) {
            return Ok(kept.clone());
        }
        let created_at = (!matches!(id, RecipientId::Age(_))).then(|| created_at.clone());
        // Who it is is asked for after the call: which version of a key was used may be known only then.
        let enc = recipient.wrap(share)?;
        Ok(WrappedKey { enc, recipient: recipient.id(), created_at })
    };
    let none = Vec::new();
    let wrap_group = |(index, (group, share)): (usize, (&Vec<&dyn Recipient>, &SecretBytes))| {
        let kept = kept.get(index).unwrap_or(&none);
        group.iter().map(|recipient| wrap_one(recipient, share, kept)).collect()
    };
    groups.groups.iter().zip(&shares).enumerate().map(wrap_group).collect()
}

/// Recovers the data key with whichever identities can: silent ones first, then remote ones at the same time, then
/// those that ask a person and other key services, one after the other. Where `order` names kinds, entries are tried
/// in that order instead, one after the other, each with all identities.
///
/// # Errors
/// [`NoKeyError`] with everyone wanted and held, and what each attempt said.
pub fn recover(
    groups: &[Vec<WrappedKey>],
    threshold: Option<usize>,
    identities: &[&dyn Identity],
    order: &DecryptionOrder,
) -> Result<DataKey, NoKeyError> {
    let needed = if groups.len() > 1 { threshold.unwrap_or(groups.len()) } else { 1 };
    let lengths: &[usize] = if groups.len() > 1 { &[SHARE_BYTES] } else { &[DATA_KEY_BYTES] };
    let mut search = Search { identities, order, lengths, attempts: Vec::new() };
    let mut shares = Vec::new();
    for group in groups {
        if shares.len() < needed {
            shares.extend(search.group(group));
        }
    }
    let key = match (shares.len() >= needed, groups.len() > 1) {
        (false, _) => None,
        (true, false) => shares.pop(),
        (true, true) => shamir::combine(&shares),
    };
    key.as_ref().and_then(DataKey::from_unwrapped).ok_or_else(|| search.failure(groups.iter().flatten()))
}

/// Unwraps one entry on behalf of someone else, who knows whether it holds a whole key or a share.
///
/// # Errors
/// [`NoKeyError`] as for [`recover`].
pub fn unwrap_entry(wrapped: &WrappedKey, identities: &[&dyn Identity]) -> Result<SecretBytes, NoKeyError> {
    let (order, lengths) = (DecryptionOrder::default(), &[DATA_KEY_BYTES, SHARE_BYTES]);
    let mut search = Search { identities, order: &order, lengths, attempts: Vec::new() };
    search.group(std::slice::from_ref(wrapped)).ok_or_else(|| search.failure(std::iter::once(wrapped)))
}

/// What is tried, and what came of it.
struct Search<'a> {
    identities: &'a [&'a dyn Identity],
    order: &'a DecryptionOrder,
    /// How long what comes out may be.
    lengths: &'a [usize],
    attempts: Vec<Attempt>,
}

impl<'a> Search<'a> {
    fn group(&mut self, group: &[WrappedKey]) -> Option<SecretBytes> {
        match self.order.sorted(group) {
            Some(entries) => self.entry_by_entry(&entries),
            None => self.by_effort(group),
        }
    }

    fn entry_by_entry(&mut self, entries: &[&WrappedKey]) -> Option<SecretBytes> {
        let mut identities = self.identities.to_vec();
        identities.sort_by_key(|identity| identity.effort());
        let (lengths, attempts) = (self.lengths, &mut self.attempts);
        entries.iter().find_map(|wrapped| {
            identities.iter().find_map(|identity| unwrap_one(*identity, wrapped, lengths, attempts))
        })
    }

    fn by_effort(&mut self, group: &[WrappedKey]) -> Option<SecretBytes> {
        self.one_by_one(Effort::Silent, group)
            .or_else(|| unwrap_remotely(&self.of(Effort::Remote), group, self.lengths, &mut self.attempts))
            .or_else(|| self.one_by_one(Effort::Interactive, group))
            .or_else(|| self.one_by_one(Effort::Served, group))
    }

    fn of(&self, effort: Effort) -> Vec<&'a dyn Identity> {
        self.identities.iter().copied().filter(|identity| identity.effort() == effort).collect()
    }

    fn one_by_one(&mut self, effort: Effort, group: &[WrappedKey]) -> Option<SecretBytes> {
        let identities = self.of(effort);
        let (lengths, attempts) = (self.lengths, &mut self.attempts);
        identities.iter().find_map(|identity| {
            group.iter().find_map(|wrapped| unwrap_one(*identity, wrapped, lengths, attempts))
        })
    }

    fn failure<'k>(&mut self, entries: impl Iterator<Item = &'k WrappedKey>) -> NoKeyError {
        NoKeyError {
            wanted: entries.map(|wrapped| wrapped.recipient.clone()).collect(),
            held: self.identities.iter().map(|identity| identity.public()).collect(),
            attempts: std::mem::take(&mut self.attempts),
        }
    }
}

fn unwrap_one(
    identity: &dyn Identity,
    wrapped: &WrappedKey,
    lengths: &[usize],
    attempts: &mut Vec<Attempt>,
) -> Option<SecretBytes> {
    let mut failed = |failure, reason: String| {
        attempts.push(Attempt { recipient: wrapped.recipient.clone(), failure, reason });
        None
    };
    if wrapped.enc.len() > WRAPPED_KEY_BYTES_MAX {
        return failed(UnwrapFailure::Broken, "the wrapped key is larger than 64 KiB".to_owned());
    }
    match identity.unwrap(wrapped)? {
        Ok(key) if lengths.contains(&key.len()) => Some(key),
        Ok(_) => {
            let lengths: Vec<String> = lengths.iter().map(usize::to_string).collect();
            failed(UnwrapFailure::Broken, format!("it does not open to {} bytes", lengths.join(" or ")))
        }
        Err(error) => failed(error.kind, error.reason),
    }
}

/// Pairs of a remote identity and an entry, [`REMOTE_CALLS_MAX`] of them at a time, until one gives the key; each call
/// has its own deadline. A pair that is of two kinds costs nothing.
fn unwrap_remotely(
    identities: &[&dyn Identity],
    group: &[WrappedKey],
    lengths: &[usize],
    attempts: &mut Vec<Attempt>,
) -> Option<SecretBytes> {
    let pairs: Vec<(&dyn Identity, &WrappedKey)> = identities
        .iter()
        .flat_map(|identity| group.iter().map(move |wrapped| (*identity, wrapped)))
        .collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(None));
    let said = Mutex::new(Vec::new());
    let work = || {
        while lock(&found).is_none() {
            let Some((identity, wrapped)) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
            let mut attempts = Vec::new();
            if let Some(key) = unwrap_one(*identity, wrapped, lengths, &mut attempts) {
                *lock(&found) = Some(key);
            }
            lock(&said).append(&mut attempts);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..REMOTE_CALLS_MAX.min(pairs.len()) {
            // Where the system has no thread to give, those that there are do the work.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    attempts.append(&mut lock(&said));
    lock(&found).take()
}

/// A lock whose holder panicked still guards plain data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::recipient::UnwrapError;

    /// A service that counts how many calls it has, and how many at a time.
    struct Service {
        running: AtomicUsize,
        most: AtomicUsize,
        calls: AtomicUsize,
        opens: bool,
        /// Where as many calls wait for each other as may be made at a time.
        meeting: Option<Barrier>,
    }

    impl Service {
        fn new(opens: bool, meeting: Option<Barrier>) -> Self {
            let zero = || AtomicUsize::new(0);
            Self { running: zero(), most: zero(), calls: zero(), opens, meeting }
        }
    }

    impl Identity for Service {
        fn public(&self) -> String {
            "service".to_owned()
        }

        fn effort(&self) -> Effort {
            Effort::Remote
        }

        fn unwrap(&self, _: &WrappedKey) -> Option<Result<SecretBytes, UnwrapError>> {
            self.calls.fetch_add(1, Ordering::SeqCst);
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(running, Ordering::SeqCst);
            if let Some(meeting) = &self.meeting {
                meeting.wait();
            }
            self.running.fetch_sub(1, Ordering::SeqCst);
            let denied = || UnwrapError::new(UnwrapFailure::Denied, "no");
            Some(if self.opens { Ok(SecretBytes::new(vec![7; 32])) } else { Err(denied()) })
        }
    }

    fn entries(count: usize) -> Vec<WrappedKey> {
        let entry = |number: usize| WrappedKey {
            recipient: RecipientId::Age(number.to_string()),
            enc: number.to_string(),
            created_at: None,
        };
        (0..count).map(entry).collect()
    }

    #[test]
    fn remote_calls_are_bounded_and_end_with_the_first_that_opens() {
        let count = |counter: &AtomicUsize| counter.load(Ordering::SeqCst);
        // Each of the first calls opens, none before all of them run: whoever made one has nothing more to do.
        let service = Service::new(true, Some(Barrier::new(REMOTE_CALLS_MAX)));
        assert!(recover(&[entries(500)], None, &[&service], &DecryptionOrder::default()).is_ok());
        assert_eq!((count(&service.calls), count(&service.most)), (REMOTE_CALLS_MAX, REMOTE_CALLS_MAX));
        let service = Service::new(false, None);
        let error = recover(&[entries(100)], None, &[&service], &DecryptionOrder::default()).unwrap_err();
        assert_eq!((error.attempts.len(), count(&service.calls)), (100, 100));
        assert!(count(&service.most) <= REMOTE_CALLS_MAX);
    }

    #[test]
    fn what_opens_to_another_length_is_no_key() {
        let service = Service::new(true, None);
        let groups = [entries(1), entries(1)];
        let error = recover(&groups, Some(2), &[&service], &DecryptionOrder::default()).unwrap_err();
        assert!(error.attempts[0].reason.contains("33 bytes"), "{error}");
    }
}

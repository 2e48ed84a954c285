//! Unwrapped keys, remembered so that an unchanged object costs its key service one call.
//!
//! What is remembered is found again only under all that the unwrapping depended on: the recipient's kind with all its
//! parameters, the wrapped key itself, the object's namespace, and the key Secret's uid and version, which stand for
//! the credentials and the endpoint in it. By the wrapped key alone, one tenant would open what only another's key can.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lacre_crypto::recipient::{Effort, Identity, RecipientId, UnwrapError, WrappedKey};
use lacre_crypto::secret::SecretBytes;

/// Most bytes of a wrapped key with its recipient that is remembered. Real ones have a tenth of it; whoever writes
/// documents could fill the memory with larger ones.
const ENTRY_BYTES_MAX: usize = 8 * 1024;

/// Where an identity comes from and for whom it works.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeyScope {
    /// Namespace of the object that is opened.
    pub namespace: String,
    /// Unique id of the key Secret; empty for the controller's environment.
    pub uid: String,
    /// Resource version of the key Secret.
    pub version: String,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct CacheKey {
    scope: Arc<KeyScope>,
    recipient: RecipientId,
    enc: String,
}

impl CacheKey {
    fn size(&self) -> usize {
        self.enc.len()
            + self.recipient.to_string().len()
            + match &self.recipient {
                RecipientId::AwsKms(key) => {
                    let role = key.role.as_ref().map_or(0, String::len);
                    let context =
                        key.context.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
                    key.arn.len() + key.profile.len() + role + context
                }
                _ => 0,
            }
    }
}

struct Entry {
    key: SecretBytes,
    last_used: u64,
}

/// Unwrapped keys: bounded in number, wiped when they go.
pub struct UnwrapCache {
    entries_max: usize,
    entries: Mutex<HashMap<CacheKey, Entry>>,
    clock: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl UnwrapCache {
    /// A cache of at most `entries_max` keys; 0 remembers nothing.
    pub fn new(entries_max: usize) -> Self {
        Self {
            entries_max,
            entries: Mutex::default(),
            clock: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// How often a key was found.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// How often a key had to be unwrapped.
    pub fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }

    fn find(&self, key: &CacheKey) -> Option<SecretBytes> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get_mut(key)?;
        entry.last_used = self.clock.fetch_add(1, Ordering::Relaxed);
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(entry.key.clone())
    }

    fn keep(&self, key: CacheKey, unwrapped: SecretBytes) {
        self.misses.fetch_add(1, Ordering::Relaxed);
        if self.entries_max == 0 || key.size() > ENTRY_BYTES_MAX {
            return;
        }
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= self.entries_max && !entries.contains_key(&key) {
            // A walk over all of them, which is cheaper than one unwrapping for any bound worth having.
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.last_used).map(|(key, _)| key.clone());
            oldest.iter().for_each(|oldest| drop(entries.remove(oldest)));
        }
        let last_used = self.clock.fetch_add(1, Ordering::Relaxed);
        entries.insert(key, Entry { key: unwrapped, last_used });
    }
}

/// An identity that remembers what it unwrapped.
pub struct Cached {
    inner: Arc<dyn Identity>,
    cache: Arc<UnwrapCache>,
    scope: Arc<KeyScope>,
}

impl Cached {
    /// `inner`, which comes from and works for `scope`.
    pub fn new(inner: Arc<dyn Identity>, cache: Arc<UnwrapCache>, scope: Arc<KeyScope>) -> Self {
        Self { inner, cache, scope }
    }
}

impl Identity for Cached {
    fn public(&self) -> String {
        self.inner.public()
    }

    fn effort(&self) -> Effort {
        self.inner.effort()
    }

    fn unwrap(&self, wrapped: &WrappedKey) -> Option<Result<SecretBytes, UnwrapError>> {
        let key = CacheKey {
            scope: self.scope.clone(),
            recipient: wrapped.recipient.clone(),
            enc: wrapped.enc.clone(),
        };
        if let Some(found) = self.cache.find(&key) {
            return Some(Ok(found));
        }
        let answer = self.inner.unwrap(wrapped)?;
        if let Ok(unwrapped) = &answer {
            self.cache.keep(key, unwrapped.clone());
        }
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use lacre_crypto::recipient::{AwsKmsKey, UnwrapFailure};

    use super::*;

    /// Opens everything with the bytes it was made with, and counts.
    struct Counting(AtomicU64, u8);

    impl Identity for Counting {
        fn public(&self) -> String {
            "test".to_owned()
        }

        fn unwrap(&self, wrapped: &WrappedKey) -> Option<Result<SecretBytes, UnwrapError>> {
            self.0.fetch_add(1, Ordering::Relaxed);
            match wrapped.enc.as_str() {
                "refused" => Some(Err(UnwrapError { kind: UnwrapFailure::Denied, reason: "no".to_owned() })),
                "foreign" => None,
                _ => Some(Ok(SecretBytes::new(vec![self.1; 32]))),
            }
        }
    }

    fn wrapped(enc: &str) -> WrappedKey {
        WrappedKey { recipient: RecipientId::Age("age1x".to_owned()), enc: enc.to_owned(), created_at: None }
    }

    fn scope(namespace: &str, uid: &str, version: &str) -> Arc<KeyScope> {
        Arc::new(KeyScope {
            namespace: namespace.to_owned(),
            uid: uid.to_owned(),
            version: version.to_owned(),
        })
    }

    fn counted(
        cache: &Arc<UnwrapCache>,
        inner: &Arc<Counting>,
        scope: Arc<KeyScope>,
        wrapped: &WrappedKey,
    ) -> u64 {
        let identity = Cached::new(inner.clone(), cache.clone(), scope);
        identity.unwrap(wrapped);
        inner.0.load(Ordering::Relaxed)
    }

    #[test]
    fn the_same_wrapped_key_in_the_same_scope_is_unwrapped_once() {
        let (cache, inner) = (Arc::new(UnwrapCache::new(8)), Arc::new(Counting(AtomicU64::new(0), 1)));
        for _ in 0..3 {
            assert_eq!(counted(&cache, &inner, scope("a", "1", "1"), &wrapped("x")), 1);
        }
        assert_eq!((cache.hits(), cache.misses()), (2, 1));
    }

    #[test]
    fn each_part_that_unwrapping_depends_on_tells_keys_apart() {
        let (cache, inner) = (Arc::new(UnwrapCache::new(8)), Arc::new(Counting(AtomicU64::new(0), 1)));
        let kms = |context: &str| WrappedKey {
            recipient: RecipientId::AwsKms(AwsKmsKey {
                arn: "arn:aws:kms:eu-west-1:1:key/1".to_owned(),
                context: [("app".to_owned(), context.to_owned())].into(),
                ..AwsKmsKey::default()
            }),
            ..wrapped("x")
        };
        let base = || scope("a", "1", "1");
        let cases = [
            (base(), wrapped("x")),
            (scope("b", "1", "1"), wrapped("x")),
            (scope("a", "2", "1"), wrapped("x")),
            (scope("a", "1", "2"), wrapped("x")),
            (base(), wrapped("y")),
            (base(), kms("one")),
            (base(), kms("two")),
        ];
        for (unwrapped_before, (scope, wrapped)) in (0..).zip(cases) {
            assert_eq!(counted(&cache, &inner, scope, &wrapped), unwrapped_before + 1);
        }
    }

    #[test]
    fn refusals_and_foreign_keys_are_not_remembered() {
        let (cache, inner) = (Arc::new(UnwrapCache::new(8)), Arc::new(Counting(AtomicU64::new(0), 1)));
        for (count, enc) in (1..).zip(["refused", "refused", "foreign", "foreign"]) {
            assert_eq!(counted(&cache, &inner, scope("a", "1", "1"), &wrapped(enc)), count);
        }
    }

    #[test]
    fn wrapped_keys_that_are_larger_than_any_real_one_are_not_remembered() {
        let (cache, inner) = (Arc::new(UnwrapCache::new(8)), Arc::new(Counting(AtomicU64::new(0), 1)));
        let large = wrapped(&"x".repeat(ENTRY_BYTES_MAX));
        let context = [("a".to_owned(), "x".repeat(ENTRY_BYTES_MAX))].into();
        let kms = RecipientId::AwsKms(AwsKmsKey { context, ..AwsKmsKey::default() });
        let kms = WrappedKey { recipient: kms, ..wrapped("x") };
        for (count, wrapped) in (1..).zip([&large, &large, &kms, &kms]) {
            assert_eq!(counted(&cache, &inner, scope("a", "1", "1"), wrapped), count);
        }
    }

    #[test]
    fn the_least_recently_used_key_goes_when_the_bound_is_reached() {
        let (cache, inner) = (Arc::new(UnwrapCache::new(2)), Arc::new(Counting(AtomicU64::new(0), 1)));
        let unwrap = |enc: &str| counted(&cache, &inner, scope("a", "1", "1"), &wrapped(enc));
        assert_eq!([unwrap("x"), unwrap("y"), unwrap("x"), unwrap("z")], [1, 2, 2, 3]);
        assert_eq!([unwrap("x"), unwrap("y")], [3, 4], "y was used longest ago");
        let none = Arc::new(UnwrapCache::new(0));
        assert_eq!(counted(&none, &inner, scope("a", "1", "1"), &wrapped("x")), 5);
        assert_eq!(counted(&none, &inner, scope("a", "1", "1"), &wrapped("x")), 6);
    }
}

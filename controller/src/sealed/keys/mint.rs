//! Makes sealing keys as Sealed Secrets makes them, so that it would take them over again.
//!
//! Two controllers that find at the same time that a key is due must not both make one: the spare would be backed up by
//! nobody. So the name of a key follows from the key that it comes after. Both ask the API server for the same name, one
//! gets it, and the other takes what is there. This needs no right beyond making Secrets.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{Api, ListParams, ObjectMeta, PostParams};
use lacre_crypto::sealing_key::{Certificate, SealingKey, SealingKeyError};

use super::read::entries;
use super::{KEY_ACTIVE, KEY_LABEL, KeySet};
use crate::api::SecretMetadata;
use crate::apply::PlainSecret;
use crate::args::sealed::{KeyOrder, Pairs, SealedArgs};
use crate::error::{Failure, Reason};

/// Type of the Secrets.
const TYPE: &str = "kubernetes.io/tls";

/// What the API server makes the random ends of names of.
const NAME_CHARACTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// How many of them.
const NAME_SUFFIX_CHARS: usize = 5;

/// Most names that are tried. A name is taken only by a key that came after the same one and is out of use since.
const NAMES_MAX: usize = 16;

/// What keys are made like, and when.
#[derive(Clone, Debug)]
pub struct MintOptions {
    /// What names begin with.
    pub prefix: String,
    /// Size in bits.
    pub bits: usize,
    /// How long the certificate is valid.
    pub validity: Duration,
    /// Common name in the certificate.
    pub common_name: String,
    /// Annotations of the Secret.
    pub annotations: Pairs,
    /// Labels of the Secret, besides that by which keys are found.
    pub labels: Pairs,
    /// Which time orders keys.
    pub order: KeyOrder,
    /// Age of the newest key at which another is due; zero for never.
    pub renew_period: Duration,
    /// Whether no key is ever made.
    pub bring_your_own: bool,
}

impl From<&SealedArgs> for MintOptions {
    fn from(args: &SealedArgs) -> Self {
        Self {
            prefix: args.key_prefix.clone(),
            bits: args.key_size,
            validity: args.key_ttl,
            common_name: args.my_cn.clone(),
            annotations: args.privatekey_annotations.clone(),
            labels: args.privatekey_labels.clone(),
            order: args.key_order_priority,
            renew_period: args.key_renew_period,
            bring_your_own: args.bring_your_own_keys,
        }
    }
}

impl MintOptions {
    /// How long until a key is due after `set`, or nothing when none ever is.
    ///
    /// The age counts from the later of two times: the one that orders keys, and the making of the Secret. So a key that
    /// was restored from a backup, or brought by somebody, is used for a whole period before another one is made.
    pub fn due_in(&self, set: &KeySet, cutoff: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
        if self.bring_your_own {
            return None;
        }
        let Some(newest) = set.newest() else { return Some(Duration::ZERO) };
        if cutoff.is_some_and(|cutoff| newest.ordered_by < cutoff) {
            return Some(Duration::ZERO);
        }
        if self.renew_period.is_zero() {
            return None;
        }
        let age = now.duration_since(newest.ordered_by.max(newest.created));
        // Of a key from the future, the age is below zero.
        Some(match Duration::try_from(age) {
            Ok(age) => self.renew_period.saturating_sub(age),
            Err(_) => self.renew_period.saturating_add(age.unsigned_abs()),
        })
    }
}

/// Makes the key that comes after `set`, unless another controller just did.
///
/// # Errors
/// The API server's answer, or no key could be made.
pub async fn mint(
    secrets: &Api<Secret>,
    found: &Api<SecretMetadata>,
    options: &MintOptions,
    set: &KeySet,
    namespace: &str,
) -> Result<(), Failure> {
    let predecessor = set.newest().map(|key| key.fingerprint.clone()).unwrap_or_default();
    let (key, certificate) = generate(options.clone()).await?;
    for attempt in 0..NAMES_MAX {
        let name = format!("{}{}", options.prefix, suffix(&[namespace, &predecessor, &attempt.to_string()]));
        let private = key.to_pem();
        let entries = entries(private.expose_secret(), certificate.pem());
        let metadata = metadata(name.clone(), options);
        let secret = PlainSecret::build(metadata, TYPE.to_owned(), None, entries.into_iter());
        match secrets.create(&PostParams::default(), secret.as_secret()).await {
            Ok(created) => {
                drop(PlainSecret::new(created));
                tracing::info!(secret = name, fingerprint = key.public().fingerprint(), "made a sealing key");
                return Ok(());
            }
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                if is_active(found, &name).await? {
                    tracing::info!(secret = name, "another controller made the sealing key");
                    return Ok(());
                }
            }
            Err(error) => return Err(Failure::from_api("making a sealing key", &error)),
        }
    }
    Err(Failure::new(Reason::WriteConflict, "making a sealing key: every name is taken"))
}

/// Seconds of work, off the threads that serve.
async fn generate(options: MintOptions) -> Result<(SealingKey, Certificate), Failure> {
    let made = tokio::task::spawn_blocking(move || -> Result<_, SealingKeyError> {
        let key = SealingKey::generate(options.bits)?;
        let certificate =
            Certificate::self_signed(&key, &options.common_name, Timestamp::now(), options.validity)?;
        Ok((key, certificate))
    });
    let failed = |what: &dyn std::fmt::Display| {
        Failure::new(Reason::ApiUnavailable, format!("making a sealing key: {what}"))
    };
    made.await.map_err(|_| failed(&"the work ended unexpectedly"))?.map_err(|error| failed(&error))
}

fn metadata(name: String, options: &MintOptions) -> ObjectMeta {
    let mut labels = options.labels.clone();
    labels.insert(KEY_LABEL.to_owned(), KEY_ACTIVE.to_owned());
    let annotations = options.annotations.clone();
    ObjectMeta {
        name: Some(name),
        generate_name: Some(options.prefix.clone()),
        labels: Some(labels),
        annotations: Some(annotations).filter(|annotations: &BTreeMap<_, _>| !annotations.is_empty()),
        ..ObjectMeta::default()
    }
}

/// Whether the Secret is a key in use. By a list, since that is a right which key keepers have.
async fn is_active(found: &Api<SecretMetadata>, name: &str) -> Result<bool, Failure> {
    let active = ListParams::default().labels(&format!("{KEY_LABEL}={KEY_ACTIVE}"));
    let list = found.list(&active).await;
    let list = list.map_err(|error| Failure::from_api("listing sealing keys", &error))?;
    Ok(list.items.iter().any(|secret| secret.name_any() == name))
}

/// The end of a name, the same for the same words. Not secret, and spread well enough: FNV-1a, 64 bits.
fn suffix(words: &[&str]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in words.iter().flat_map(|word| word.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let mut suffix = String::new();
    for _ in 0..NAME_SUFFIX_CHARS {
        let count = NAME_CHARACTERS.len() as u64;
        let index = usize::try_from(hash % count).unwrap_or_default();
        suffix.push(char::from(NAME_CHARACTERS[index]));
        hash /= count;
    }
    suffix
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use clap::Parser;

    use super::*;
    use crate::args::Args;
    use crate::sealed::keys::HeldKey;

    const DAY: i64 = 86_400;

    fn at(days: i64) -> Timestamp {
        Timestamp::from_second(days * DAY).unwrap()
    }

    fn options(flags: &[&str]) -> MintOptions {
        let args = Args::parse_from(["lacre-controller"].iter().chain(flags));
        MintOptions::from(&args.sealed)
    }

    fn set(begin: i64, created: i64) -> KeySet {
        let key = SealingKey::generate(2048).unwrap();
        let certificate = Certificate::self_signed(&key, "", at(begin), Duration::from_secs(1)).unwrap();
        let held = HeldKey {
            name: "a".to_owned(),
            fingerprint: key.public().fingerprint(),
            key,
            certificate: Some(certificate),
            ordered_by: at(begin),
            created: at(created),
            backed_up: false,
        };
        KeySet { keys: vec![Arc::new(held)], ..KeySet::default() }
    }

    fn days(due: Option<Duration>) -> Option<u64> {
        due.map(|due| due.as_secs() / DAY as u64)
    }

    #[test]
    fn a_key_is_due_when_there_is_none_or_the_newest_is_as_old_as_the_period() {
        let options = options(&[]);
        assert_eq!(options.due_in(&KeySet::default(), None, at(0)), Some(Duration::ZERO));
        let set = set(100, 100);
        let due = |now| days(options.due_in(&set, None, at(now)));
        assert_eq!([due(100), due(129), due(130), due(500), due(90)], [30, 1, 0, 0, 40].map(Some));
    }

    #[test]
    fn a_restored_key_is_used_for_a_period_before_another_one_is_made() {
        assert_eq!(days(options(&[]).due_in(&set(100, 500), None, at(501))), Some(29));
    }

    #[test]
    fn keys_older_than_the_cut_off_are_followed_at_once() {
        let (options, set) = (options(&["--key-renew-period=0"]), set(100, 100));
        assert_eq!(options.due_in(&set, Some(at(101)), at(102)), Some(Duration::ZERO));
        assert_eq!(options.due_in(&set, Some(at(100)), at(102)), None);
    }

    #[test]
    fn nobody_makes_a_key_unasked() {
        let never = options(&["--bring-your-own-keys"]);
        assert_eq!(never.due_in(&KeySet::default(), Some(at(1)), at(0)), None);
        assert_eq!(options(&["--key-renew-period=0"]).due_in(&set(1, 1), None, at(9999)), None);
    }

    #[test]
    fn names_follow_from_the_key_before() {
        assert_eq!(suffix(&["kube-system", "", "0"]), suffix(&["kube-system", "", "0"]));
        assert_ne!(suffix(&["kube-system", "", "0"]), suffix(&["kube-system", "", "1"]));
        assert_ne!(suffix(&["ab", "c"]), suffix(&["a", "bc"]));
        assert!(
            suffix(&["x"]).len() == 5 && suffix(&["x"]).bytes().all(|byte| NAME_CHARACTERS.contains(&byte))
        );
    }

    #[test]
    fn the_label_of_keys_cannot_be_given_another_value() {
        let options =
            options(&["--privatekey-labels=team=ops,sealedsecrets.bitnami.com/sealed-secrets-key=x"]);
        let labels = metadata("a".to_owned(), &options).labels.unwrap();
        assert_eq!((labels[KEY_LABEL].as_str(), labels["team"].as_str()), ("active", "ops"));
    }
}

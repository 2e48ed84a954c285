//! Opens a SealedSecret with the keys of this moment, and says why it does not open.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lacre_crypto::object::SealedSecret;
use lacre_crypto::object::sealed_secret::{Cause, Diagnosis, PlainSecret, UnsealError, UnsealOptions};
use lacre_crypto::sealed_item::ItemError;

use super::keys::SealingKeys;
use super::report::{Stage, Trouble};
use crate::error::{Failure, Reason};

/// How long an object may be worked on. Such work cannot be broken off from outside: whoever waits may give up, and it
/// would still hold a processor.
pub const WORK_MAX: Duration = Duration::from_secs(60);

/// A Secret, and the names of the keys that opened it, sorted.
pub struct Opened {
    /// The Secret.
    pub secret: PlainSecret,
    /// The keys.
    pub keys: Vec<String>,
}

/// The Secret that `sealed` stands for. Which keys opened it is remembered.
///
/// # Errors
/// Why it does not open, in the words of Sealed Secrets and in ours.
pub async fn open(sealed: SealedSecret, keys: &SealingKeys, how: UnsealOptions) -> Result<Opened, Trouble> {
    let place = (sealed.namespace.clone(), sealed.name.clone());
    let held = keys.ordered_for(&place);
    let (opening, has_keys) = (held.clone(), !held.is_empty());
    // On a thread that may block: it computes, and spreads over the processors by itself.
    let opened = tokio::task::spawn_blocking(move || {
        let keys: Vec<_> = opening.iter().map(|held| &held.key).collect();
        sealed.open(&keys, &how).map_err(|error| {
            let diagnoses = sealed.diagnose(&error, &keys, &[]);
            trouble(&error, &diagnoses, has_keys)
        })
    });
    let secret = opened.await.map_err(|_| ended_unexpectedly())??;
    let opened_by: Vec<_> = secret.opened_by.iter().filter_map(|index| held.get(*index)).collect();
    let used: BTreeMap<_, _> = opened_by.iter().map(|key| (key.fingerprint.clone(), 1)).collect();
    keys.remember(&place, &used);
    let keys = opened_by.iter().map(|key| key.name.clone()).collect::<BTreeSet<_>>();
    Ok(Opened { secret, keys: keys.into_iter().collect() })
}

fn ended_unexpectedly() -> Trouble {
    let message = "the work on it ended unexpectedly: a bug of the controller";
    Trouble::new(Stage::Unseal, Failure::new(Reason::InvalidObject, message))
}

fn trouble(error: &UnsealError, diagnoses: &[Diagnosis], has_keys: bool) -> Trouble {
    let (reason, message) = match error {
        UnsealError::Items(_) | UnsealError::Legacy(_) if !has_keys => (
            Reason::NoSealingKey,
            "there is no sealing key yet; it is opened as soon as there is one".to_owned(),
        ),
        UnsealError::Items(_) | UnsealError::Legacy(_) => {
            let lines = diagnoses.iter().map(ToString::to_string).collect::<Vec<_>>();
            (gravest(diagnoses), lines.join("; "))
        }
        UnsealError::LegacyBesideItems | UnsealError::LegacyContent | UnsealError::LegacyRefused => {
            (Reason::InvalidObject, error.to_string())
        }
        UnsealError::Templates(_) => (Reason::TemplateFailed, error.to_string()),
        UnsealError::TooManyTemplates | UnsealError::TooMuchWork => (Reason::TooMuchWork, error.to_string()),
    };
    Trouble {
        stage: Stage::Unseal,
        failure: Failure::new(reason, message),
        known: Some(Failure::new(reason, error.to_string()).message),
    }
}

/// Of several causes the one that another key would not heal.
fn gravest(diagnoses: &[Diagnosis]) -> Reason {
    let reasons = diagnoses.iter().map(|diagnosis| reason(&diagnosis.cause));
    reasons.filter(|reason| *reason != Reason::NotOpened).min().unwrap_or(Reason::NotOpened)
}

fn reason(cause: &Cause) -> Reason {
    match cause {
        Cause::Item(ItemError::Base64 { .. }) => Reason::InvalidBase64,
        Cause::Item(ItemError::Corrupt { .. } | ItemError::TooShort { .. }) => Reason::ValueMismatch,
        Cause::SealedFor { .. } => Reason::ScopeMismatch,
        Cause::Item(ItemError::NoKeyOfSize { .. } | ItemError::NotOpened { .. }) | Cause::Unknown { .. } => {
            Reason::NotOpened
        }
    }
}

#[cfg(test)]
mod tests {
    use lacre_crypto::object::sealed_secret::ItemFailure;

    use super::*;
    use crate::error::Retry;

    fn told(causes: &[(&str, ItemError)], has_keys: bool) -> Trouble {
        let failure =
            |(item, error): &(&str, ItemError)| ItemFailure { item: item.to_string(), error: error.clone() };
        let diagnosis = |(item, error): &(&str, ItemError)| Diagnosis {
            item: item.to_string(),
            cause: Cause::Item(error.clone()),
        };
        let diagnoses: Vec<_> = causes.iter().map(diagnosis).collect();
        trouble(&UnsealError::Items(causes.iter().map(failure).collect()), &diagnoses, has_keys)
    }

    #[test]
    fn the_known_text_stands_beside_the_precise_one() {
        let unknown = ItemError::NotOpened { tried: 2 };
        let trouble = told(&[("b", unknown.clone()), ("a", unknown)], true);
        assert_eq!(trouble.known.as_deref(), Some("no key could decrypt secret (a, b)"));
        assert_eq!(trouble.failure.reason, Reason::NotOpened);
        assert!(trouble.failure.message.contains("a: none of the 2 keys"), "{}", trouble.failure);
    }

    #[test]
    fn what_no_key_heals_outweighs_what_one_might() {
        let unknown = ItemError::NotOpened { tried: 1 };
        let reason = |causes: &[(&str, ItemError)]| told(causes, true).failure.reason;
        assert_eq!(
            reason(&[("a", unknown.clone()), ("b", ItemError::Base64 { at: 4 })]),
            Reason::InvalidBase64
        );
        assert_eq!(reason(&[("a", ItemError::Corrupt { key: 0 }), ("b", unknown)]), Reason::ValueMismatch);
    }

    #[test]
    fn what_takes_too_long_is_not_tried_again_by_itself() {
        for error in [UnsealError::TooMuchWork, UnsealError::TooManyTemplates] {
            let reason = trouble(&error, &[], true).failure.reason;
            assert_eq!((reason, reason.retry()), (Reason::TooMuchWork, Retry::Never));
        }
    }

    #[test]
    fn without_any_key_one_is_waited_for() {
        let trouble = told(&[("a", ItemError::NotOpened { tried: 0 })], false);
        assert_eq!(trouble.failure.reason, Reason::NoSealingKey);
        assert_eq!(trouble.known.as_deref(), Some("no key could decrypt secret (a)"));
    }
}

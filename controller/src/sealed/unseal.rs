//! Opens a SealedSecret with the keys of this moment, and says why it does not open.

use std::collections::BTreeMap;

use lacre_crypto::object::SealedSecret;
use lacre_crypto::object::sealed_secret::{PlainSecret, UnsealError, UnsealOptions};
use lacre_crypto::sealed_item::ItemError;

use super::keys::SealingKeys;
use super::report::{Stage, Trouble};
use crate::error::{Failure, Reason};

/// The Secret that `sealed` stands for. Which keys opened it is remembered.
///
/// # Errors
/// Why it does not open, in the words of Sealed Secrets and in ours.
pub async fn open(
    sealed: SealedSecret,
    keys: &SealingKeys,
    how: UnsealOptions,
) -> Result<PlainSecret, Trouble> {
    let place = (sealed.namespace.clone(), sealed.name.clone());
    let held = keys.ordered_for(&place);
    let (fingerprints, has_keys) =
        (held.iter().map(|key| key.fingerprint.clone()).collect::<Vec<_>>(), !held.is_empty());
    // On a thread that may block: it computes, and spreads over the processors by itself.
    let opening = tokio::task::spawn_blocking(move || {
        let keys: Vec<_> = held.iter().map(|held| &held.key).collect();
        sealed.open(&keys, &how)
    });
    let opened = opening.await.map_err(|_| ended_unexpectedly())?;
    let opened = opened.map_err(|error| trouble(&error, has_keys))?;
    let opened_by = opened.opened_by.iter().filter_map(|index| Some((fingerprints.get(*index)?.clone(), 1)));
    keys.remember(&place, &opened_by.collect::<BTreeMap<_, _>>());
    Ok(opened)
}

fn ended_unexpectedly() -> Trouble {
    let message = "the work on it ended unexpectedly: a bug of the controller";
    Trouble::new(Stage::Unseal, Failure::new(Reason::InvalidObject, message))
}

fn trouble(error: &UnsealError, has_keys: bool) -> Trouble {
    let (reason, message) = match error {
        UnsealError::Items(_) | UnsealError::Legacy(_) if !has_keys => (
            Reason::NoSealingKey,
            "there is no sealing key yet; it is opened as soon as there is one".to_owned(),
        ),
        UnsealError::Items(failures) => {
            let lines = failures.iter().map(|failure| format!("{}: {}", failure.item, failure.error));
            (gravest(failures.iter().map(|failure| &failure.error)), lines.collect::<Vec<_>>().join("; "))
        }
        UnsealError::Legacy(error) => (reason(error), format!("spec.data: {error}")),
        UnsealError::LegacyBesideItems | UnsealError::LegacyContent | UnsealError::LegacyRefused => {
            (Reason::InvalidObject, error.to_string())
        }
        UnsealError::Templates(_) => (Reason::TemplateFailed, error.to_string()),
    };
    Trouble {
        stage: Stage::Unseal,
        failure: Failure::new(reason, message),
        known: Some(Failure::new(reason, error.to_string()).message),
    }
}

/// Of several causes the one that another key would not heal.
fn gravest<'a>(errors: impl Iterator<Item = &'a ItemError>) -> Reason {
    let reasons = errors.map(reason).filter(|reason| *reason != Reason::NotOpened);
    reasons.min().unwrap_or(Reason::NotOpened)
}

fn reason(error: &ItemError) -> Reason {
    match error {
        ItemError::Base64 { .. } => Reason::InvalidBase64,
        ItemError::Corrupt { .. } | ItemError::TooShort { .. } => Reason::ValueMismatch,
        ItemError::NoKeyOfSize { .. } | ItemError::NotOpened { .. } => Reason::NotOpened,
    }
}

#[cfg(test)]
mod tests {
    use lacre_crypto::object::sealed_secret::ItemFailure;

    use super::*;

    fn items(failures: &[(&str, ItemError)]) -> UnsealError {
        let failure =
            |(item, error): &(&str, ItemError)| ItemFailure { item: item.to_string(), error: error.clone() };
        UnsealError::Items(failures.iter().map(failure).collect())
    }

    #[test]
    fn the_known_text_stands_beside_the_precise_one() {
        let error =
            items(&[("b", ItemError::NotOpened { tried: 2 }), ("a", ItemError::NotOpened { tried: 2 })]);
        let trouble = trouble(&error, true);
        assert_eq!(trouble.known.as_deref(), Some("no key could decrypt secret (a, b)"));
        assert_eq!(trouble.failure.reason, Reason::NotOpened);
        assert!(trouble.failure.message.contains("a: none of the 2 keys"), "{}", trouble.failure);
    }

    #[test]
    fn what_no_key_heals_outweighs_what_one_might() {
        let unknown = ItemError::NotOpened { tried: 1 };
        let reason = |error: &UnsealError| trouble(error, true).failure.reason;
        assert_eq!(
            reason(&items(&[("a", unknown.clone()), ("b", ItemError::Base64 { at: 4 })])),
            Reason::InvalidBase64
        );
        assert_eq!(
            reason(&items(&[("a", ItemError::Corrupt { key: 0 }), ("b", unknown)])),
            Reason::ValueMismatch
        );
    }

    #[test]
    fn without_any_key_one_is_waited_for() {
        let error = items(&[("a", ItemError::NotOpened { tried: 0 })]);
        assert_eq!(trouble(&error, false).failure.reason, Reason::NoSealingKey);
        assert_eq!(trouble(&error, false).known.as_deref(), Some("no key could decrypt secret (a)"));
    }
}

//! A file's data key: wrapped for each recipient, or one share of it for each group of them, and recovered.

use crate::error::{Attempt, EncryptError, NoKeyError};
use crate::recipient::{
    Effort, Identity, Recipient, RecipientId, UnwrapFailure, WRAPPED_KEY_BYTES_MAX, WrappedKey,
};
use crate::secret::{DATA_KEY_BYTES, DataKey, SecretBytes};
use crate::shamir;
use crate::timestamp;

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
        if let Some(kept) = kept.iter().find(|kept| kept.recipient == id) {
            return Ok(kept.clone());
        }
        let created_at = (!matches!(id, RecipientId::Age(_))).then(|| created_at.clone());
        Ok(WrappedKey { enc: recipient.wrap(share)?, recipient: id, created_at })
    };
    let none = Vec::new();
    let wrap_group = |(index, (group, share)): (usize, (&Vec<&dyn Recipient>, &SecretBytes))| {
        let kept = kept.get(index).unwrap_or(&none);
        group.iter().map(|recipient| wrap_one(recipient, share, kept)).collect()
    };
    groups.groups.iter().zip(&shares).enumerate().map(wrap_group).collect()
}

/// Recovers the data key with whichever identities can: silent ones first, then remote ones at the same time, then
/// those that ask a person, one after the other.
///
/// # Errors
/// [`NoKeyError`] with everyone wanted and held, and what each attempt said.
pub fn recover(
    groups: &[Vec<WrappedKey>],
    threshold: Option<usize>,
    identities: &[&dyn Identity],
) -> Result<DataKey, NoKeyError> {
    let mut attempts = Vec::new();
    let needed = if groups.len() > 1 { threshold.unwrap_or(groups.len()) } else { 1 };
    let mut shares = Vec::new();
    for group in groups {
        if shares.len() < needed {
            shares.extend(unwrap_group(group, identities, groups.len() > 1, &mut attempts));
        }
    }
    let key = match (shares.len() >= needed, groups.len() > 1) {
        (false, _) => None,
        (true, false) => shares.pop(),
        (true, true) => shamir::combine(&shares),
    };
    key.as_ref().and_then(DataKey::from_unwrapped).ok_or_else(|| NoKeyError {
        wanted: groups.iter().flatten().map(|wrapped| wrapped.recipient.clone()).collect(),
        held: identities.iter().map(|identity| identity.public()).collect(),
        attempts,
    })
}

fn unwrap_group(
    group: &[WrappedKey],
    identities: &[&dyn Identity],
    is_share: bool,
    attempts: &mut Vec<Attempt>,
) -> Option<SecretBytes> {
    let of = |effort| identities.iter().copied().filter(move |identity| identity.effort() == effort);
    let one_by_one = |effort, attempts: &mut Vec<Attempt>| {
        of(effort).find_map(|identity| unwrap_with(identity, group, is_share, attempts))
    };
    one_by_one(Effort::Silent, attempts)
        .or_else(|| unwrap_remotely(&of(Effort::Remote).collect::<Vec<_>>(), group, is_share, attempts))
        .or_else(|| one_by_one(Effort::Interactive, attempts))
}

fn unwrap_with(
    identity: &dyn Identity,
    group: &[WrappedKey],
    is_share: bool,
    attempts: &mut Vec<Attempt>,
) -> Option<SecretBytes> {
    group.iter().find_map(|wrapped| unwrap_one(identity, wrapped, is_share, attempts))
}

fn unwrap_one(
    identity: &dyn Identity,
    wrapped: &WrappedKey,
    is_share: bool,
    attempts: &mut Vec<Attempt>,
) -> Option<SecretBytes> {
    let mut failed = |failure, reason: String| {
        attempts.push(Attempt { recipient: wrapped.recipient.clone(), failure, reason });
        None
    };
    if wrapped.enc.len() > WRAPPED_KEY_BYTES_MAX {
        return failed(UnwrapFailure::Broken, "the wrapped key is larger than 64 KiB".to_owned());
    }
    let wanted = DATA_KEY_BYTES + usize::from(is_share);
    match identity.unwrap(wrapped)? {
        Ok(key) if key.len() == wanted => Some(key),
        Ok(_) => failed(UnwrapFailure::Broken, format!("it does not open to {wanted} bytes")),
        Err(error) => failed(error.kind, error.reason),
    }
}

/// Every pair of a remote identity and an entry at the same time; each call has its own deadline.
fn unwrap_remotely(
    identities: &[&dyn Identity],
    group: &[WrappedKey],
    is_share: bool,
    attempts: &mut Vec<Attempt>,
) -> Option<SecretBytes> {
    let pairs = identities.iter().flat_map(|identity| group.iter().map(move |wrapped| (*identity, wrapped)));
    std::thread::scope(|scope| {
        let call = |(identity, wrapped): (&'_ dyn Identity, &'_ WrappedKey)| {
            let mut attempts = Vec::new();
            (unwrap_one(identity, wrapped, is_share, &mut attempts), attempts)
        };
        let calls: Vec<_> = pairs.map(|pair| scope.spawn(move || call(pair))).collect();
        let mut found = None;
        for answer in calls {
            let Ok((key, said)) = answer.join() else { continue };
            attempts.extend(said);
            found = found.or(key);
        }
        found
    })
}

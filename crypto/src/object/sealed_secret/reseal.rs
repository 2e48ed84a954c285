//! Re-wrapping: the same values in the same places under another key.
//!
//! Item by item, so that nothing of the object but ciphertext can change. A plaintext lives from its opening to its
//! sealing inside this file and is shown to nobody.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{SealedSecret, UnsealError};
use crate::parallel;
use crate::sealed_item::{self, SealedItemError};
use crate::sealing_key::{PublicSealingKey, SealingKey};
use crate::secret::SecretBytes;

/// Which items are sealed again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// All of them.
    All,
    /// Those that are under another key.
    #[default]
    Outdated,
}

/// What takes the place of what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Base64 by item, of those that changed.
    pub items: BTreeMap<String, String>,
    /// The single blob of the first version, when there is one and it changed.
    pub legacy_data: Option<String>,
    /// How many stay as they are.
    pub kept: usize,
}

/// Why nothing was sealed again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResealError {
    /// The cipher failed.
    #[error(transparent)]
    Item(#[from] SealedItemError),
    /// Not everything opens.
    #[error(transparent)]
    Unseal(#[from] UnsealError),
}

impl SealedSecret {
    /// Its items under `newest`. Every item is opened first, so that none is lost among others that are fresh.
    ///
    /// # Errors
    /// When one item does not open: then none is sealed.
    pub fn reseal(
        &self,
        keys: &[&SealingKey],
        newest: &PublicSealingKey,
        extent: Extent,
    ) -> Result<Resealed, ResealError> {
        let is_due = |key: usize| extent == Extent::All || keys[key].public() != newest;
        let label = self.label();
        if let Some(blob) = self.legacy(true)? {
            let opened = sealed_item::open(keys, &label, blob).map_err(UnsealError::Legacy)?;
            return Ok(match is_due(opened.key) {
                true => {
                    let sealed = sealed_item::seal(newest, &label, &opened.plaintext)?;
                    Resealed { legacy_data: Some(sealed), ..Resealed::default() }
                }
                false => Resealed { kept: 1, ..Resealed::default() },
            });
        }
        let opened = self.open_items(keys)?;
        let count = opened.len();
        let due: Vec<_> = opened.into_iter().filter(|(_, item)| is_due(item.key)).collect();
        let due: Vec<_> = due.into_iter().map(|(name, item)| (name, item.plaintext)).collect();
        Ok(Resealed { kept: count - due.len(), items: sealed(newest, &label, &due)?, legacy_data: None })
    }
}

fn sealed(
    key: &PublicSealingKey,
    label: &[u8],
    values: &[(String, SecretBytes)],
) -> Result<BTreeMap<String, String>, SealedItemError> {
    let work = |range: Range<usize>| {
        let seal = |(name, value): &(String, SecretBytes)| {
            sealed_item::seal(key, label, value).map(|item| (name.clone(), item))
        };
        values[range].iter().map(seal).collect::<Vec<_>>()
    };
    parallel::by_processors(values.len(), work).into_iter().flatten().collect()
}

//! From a sealed file to its data key.

use super::SealedFile;
use crate::data_key::{self, DecryptionOrder};
use crate::error::NoKeyError;
use crate::recipient::Identity;
use crate::secret::DataKey;

impl SealedFile {
    /// Recovers the data key with the identities at hand.
    ///
    /// # Errors
    /// [`NoKeyError`] when none of them can.
    pub fn unwrap_key(&self, identities: &[&dyn Identity]) -> Result<DataKey, NoKeyError> {
        self.unwrap_key_in_order(identities, &DecryptionOrder::default())
    }

    /// As [`Self::unwrap_key`], trying kinds of keys in this order.
    ///
    /// # Errors
    /// [`NoKeyError`] when none of them can.
    pub fn unwrap_key_in_order(
        &self,
        identities: &[&dyn Identity],
        order: &DecryptionOrder,
    ) -> Result<DataKey, NoKeyError> {
        data_key::recover(&self.metadata.groups, self.metadata.shamir_threshold, identities, order)
    }
}

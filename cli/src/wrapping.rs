//! Recipients made ready to wrap, once for all files of one call that are sealed for the same ones.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use lacre_crypto::recipient::RecipientId;

use crate::commands::Context;
use crate::error::CommandError;
use crate::recipients::ReadyGroups;

/// Groups and how many of them are needed.
type Wanted = (Vec<Vec<RecipientId>>, Option<usize>);

/// What was made ready so far. Making a recipient ready may run a program or call a service.
#[derive(Default)]
pub(crate) struct Ready(Mutex<HashMap<Wanted, Arc<ReadyGroups>>>);

impl Ready {
    /// The groups, ready to wrap. The first recipient that cannot be used is an error that names it.
    pub(crate) fn groups(
        &self,
        groups: &[Vec<RecipientId>],
        threshold: Option<usize>,
        context: &Context,
    ) -> Result<Arc<ReadyGroups>, CommandError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = (groups.to_vec(), threshold);
        if let Some(ready) = known.get(&wanted) {
            return Ok(Arc::clone(ready));
        }
        let ready = Arc::new(ReadyGroups::new(groups, threshold, context)?);
        known.insert(wanted, Arc::clone(&ready));
        Ok(ready)
    }
}

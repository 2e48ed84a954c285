//! SealedSecrets, as Sealed Secrets 0.40 has them, so that a cluster changes controllers and git does not notice.
//!
//! The way of an object: [`watch`] wakes it; [`reconcile`] looks at the live Secret, asks [`target`] whether it may be
//! written, has it opened ([`unseal`]), checks what it may not make ([`rules`]), creates or replaces it ([`write`](mod@write)) and
//! reports ([`report`], [`events`]). [`gone`] deletes what a flag wants deleted. [`keys`] holds the key pairs, [`rewrap`]
//! serves those who have no cluster's keys.

use lacre_crypto::object::sealed_secret::MissingKey;

use crate::args::sealed::Drift;

pub mod api;
pub mod events;
pub mod gone;
pub mod keys;
pub mod reconcile;
pub mod report;
pub mod rewrap;
pub mod rules;
pub mod target;
pub mod unseal;
pub mod watch;
pub mod write;

/// What flags say about SealedSecrets.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether `spec.data` of the first releases is read.
    pub accept_deprecated_v1_data: bool,
    /// Whether the Secret of an object that was deleted is deleted by us.
    pub old_gc_behavior: bool,
    /// What a template makes of a key that is not there.
    pub missing_key: MissingKey,
    /// What happens to a Secret that is no longer as it was sealed.
    pub drift: Drift,
}

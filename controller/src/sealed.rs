//! SealedSecrets, as Sealed Secrets 0.40 has them, so that a cluster changes controllers and git does not notice.
//!
//! [`keys`] holds the key pairs.

pub mod keys;

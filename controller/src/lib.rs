//! Lacre's controller: turns `EncryptedSecret` objects into Kubernetes Secrets.
//!
//! The way of an object: [`watch`] wakes it; [`reconcile`] looks at the live Secret ([`apply::look`]), verifies and
//! decrypts ([`unseal`], with identities from the [`keyring`]), applies ([`apply::apply`]) and reports ([`report`]).
//! What objects may not ask for stands in [`policy`].
//!
//! What never happens here: a cipher is named (that is `lacre-crypto`'s part); a Secret that is not the object's own is
//! written; a Secret is deleted or blanked; a value reaches a log, an event, a status or an error.

pub mod api;
pub mod apply;
pub mod args;
pub mod error;
pub mod keyring;
pub mod leader;
pub mod log;
pub mod memory;
pub mod metrics;
pub mod policy;
pub mod process;
pub mod reconcile;
pub mod report;
pub mod run;
pub mod sealed;
pub mod server;
pub mod unseal;
pub mod watch;

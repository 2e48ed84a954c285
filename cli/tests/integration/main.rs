//! Tests of the command as its users meet it: the real binary, real files, a real git, real peers.

#![allow(clippy::unwrap_used, reason = "all of this is tests: what cannot go on panics where it stands")]

mod age_keys;
mod canary;
mod cases;
#[cfg(all(feature = "aws", feature = "azure", feature = "gcp", feature = "vault"))]
mod cloud_keys;
mod docs;
mod drop_in;
mod editor;
mod files;
mod git;
mod hooks;
mod interop;
#[cfg(feature = "key-service")]
mod key_service;
mod killed;
#[cfg(feature = "kube")]
mod kube;
#[cfg(feature = "kube")]
mod kubeseal;
mod many;
#[cfg(feature = "pgp")]
mod pgp;
mod publish;
mod removing;
mod running;
mod sandbox;
mod shells;
mod status;
mod tamper;

//! The controller's binary against a real API server, with no more rights than `deploy/cluster-wide`
//! gives.
//!
//! Each test has a controller, an own namespace for it and one for its objects; tests wait for states and assert order
//! and count, never time. Writes are counted in the API server's audit log.

mod admission;
mod deploy;
mod drift;
mod flags;
mod harness;
mod hostile;
mod identities;
mod key_services;
mod keys_from;
mod ownership;
mod policy;
mod sealed;
mod sealed_drift;
mod sealed_object;
mod sealed_ownership;
mod sealed_scope;
mod sealed_status;
mod sealing;
mod sealing_http;
mod sealing_keys;
mod service;
mod tampered;

//! Against the real peers, which `cargo xtask peers` installs. One binary: components are shared.

#![allow(clippy::unwrap_used, reason = "a test that unwraps names the place")]

mod constructs;
mod conversions;
mod documents;
mod formats;
mod fuzz;
mod interop;
mod objects;
mod recipients;
mod refused;
mod removals;
mod rewrapping;
mod sealed_items;
mod sealed_secrets;
mod support;
mod tamper;
mod templates;
mod vectors;
mod writers;

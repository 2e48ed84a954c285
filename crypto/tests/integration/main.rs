//! Against the real peers, which `cargo xtask peers` installs. One binary: components are shared.

mod documents;
mod interop;
mod objects;
mod recipients;
mod support;
mod tamper;
mod writers;

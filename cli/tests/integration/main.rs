//! Tests of the command as its users meet it: the real binary, real files, a real git, real peers.

#![allow(clippy::unwrap_used, reason = "all of this is tests: what cannot go on panics where it stands")]

mod canary;
mod cases;
mod docs;
mod drop_in;
mod editor;
mod files;
mod git;
mod hooks;
mod interop;
mod killed;
mod many;
mod publish;
mod removing;
mod running;
mod sandbox;
mod shells;
mod status;
mod tamper;

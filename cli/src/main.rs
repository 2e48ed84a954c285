//! The `lacre` command: seals secrets in git and opens them where they are needed.
//!
//! A command is a file in `commands/`. It reads what was typed, asks [`config`] and [`identities`] who may open a
//! file, lets `lacre-crypto` do the work, and hands the result to [`files`] or [`output`]. No cipher is named in
//! this crate, and nothing but [`output`] prints. Called by the name of a tool whose place it takes, it speaks that
//! tool's command line ([`compat`]).

mod args;
mod batch;
mod child;
#[cfg(feature = "kube")]
mod cluster;
mod commands;
mod compat;
mod config;
mod delivery;
mod editor;
mod environment;
mod error;
mod files;
mod git;
mod identities;
mod opening;
mod output;
mod private;
mod process;
mod publish;
mod recipients;
#[cfg(feature = "kube")]
mod sealed_secrets;
mod sealing;
mod targets;
mod user;
mod wrapping;

fn main() -> std::process::ExitCode {
    compat::run(std::env::args_os())
}

//! `cargo xtask deny`: licences, sources and duplicates of the dependencies, by the rules of `deny.toml`.
//!
//! Not part of `cargo xtask test`: building the tool takes minutes on a new machine.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::install::{self, Component, Source};
use crate::{root, versions};

/// The tool, built from the crate registry.
pub const COMPONENT: Component = Component {
    name: "cargo-deny",
    version: versions::CARGO_DENY,
    source: Source::Cargo,
    program: "bin/cargo-deny",
};

/// Installs the tool unless it is there, and runs it.
///
/// Without its check of advisories, which clones a Git repository.
///
/// # Errors
/// The tool cannot be had.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let [] = super::switches(arguments, [])?;
    install::ensure(&COMPONENT)?;
    let mut command = Command::new(COMPONENT.path()?);
    command.args(["--locked", "--workspace", "check", "bans", "licenses", "sources"]).current_dir(root());
    let passed = command.status().context("cannot start cargo-deny")?.success();
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

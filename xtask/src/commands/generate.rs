//! `cargo xtask generate`.

use std::process::ExitCode;

use anyhow::{Result, bail};

/// Not yet.
///
/// # Errors
/// Always.
pub fn run(_arguments: &[String]) -> Result<ExitCode> {
    bail!("not yet")
}

//! Programs that are built from the crate registry.

use std::path::Path;

use anyhow::Result;

use super::{background, step};

/// Builds the program of this name and version below `target`.
///
/// Beside the result, not in the target folder of the workspace, whose profile settings are other ones.
pub(super) fn install(name: &str, version: &str, target: &Path, log: &Path) -> Result<()> {
    let build = target.with_extension("build");
    let mut command = background("cargo");
    command.args([
        "-n",
        "10",
        "cargo",
        "install",
        "--locked",
        "--quiet",
        name,
        "--version",
        version,
        "--root",
    ]);
    step(command.arg(target).env("CARGO_TARGET_DIR", &build), log)?;
    Ok(std::fs::remove_dir_all(build)?)
}

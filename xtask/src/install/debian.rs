//! Programs that the distribution has.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::step;

/// Where `program` is on `PATH`.
pub(super) fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Installs a package, with new package lists only if the ones at hand do not lead to it.
pub(super) fn install(package: &str, log: &Path) -> Result<()> {
    if apt_get(&["install", "--yes", "--no-install-recommends", package], log).is_ok() {
        return Ok(());
    }
    apt_get(&["update"], log)?;
    apt_get(&["install", "--yes", "--no-install-recommends", package], log)
        .with_context(|| format!("install the package `{package}` by hand if you are not root"))
}

fn apt_get(arguments: &[&str], log: &Path) -> Result<()> {
    step(Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"), log)
}

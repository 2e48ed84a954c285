//! Where installed programs live: outside the clone, so that a clean clone finds them again.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// `$XDG_CACHE_HOME/lacre`, or `~/.cache/lacre`.
///
/// # Errors
/// Neither `XDG_CACHE_HOME` nor `HOME` is set.
pub fn folder() -> Result<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
        Some(cache) => PathBuf::from(cache),
        None => PathBuf::from(std::env::var_os("HOME").context("neither XDG_CACHE_HOME nor HOME is set")?)
            .join(".cache"),
    };
    Ok(base.join("lacre"))
}

/// The folder of installed peers.
///
/// # Errors
/// As [`folder`].
pub fn peers() -> Result<PathBuf> {
    Ok(folder()?.join("peers"))
}

/// A lock between processes, held until dropped.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held for its lock alone")] File);

/// Waits for the lock file at `path`, making it if need be.
///
/// The file stays: removing it would let a third process lock a new one while a second waits for the old.
///
/// # Errors
/// The file cannot be made or locked.
pub fn lock(path: &Path) -> Result<Lock> {
    let file = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
    file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
    Ok(Lock(file))
}

//! Temporary folders that vanish even when their process is killed.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};

use anyhow::{Context, Result};
use tempfile::TempDir;

/// A temporary folder with a short path (sockets have room for about a hundred bytes).
///
/// Dropping it removes it. Statics are never dropped and a killed process drops nothing, so a shell outside our
/// process group waits for the end of a pipe that only we hold, then removes the folder.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    _alive: ChildStdin,
}

impl Scratch {
    /// Makes one; `cleanup` is a shell command that runs before an orphaned folder is removed (`$1` is the folder).
    ///
    /// # Errors
    /// The folder or the shell cannot be made.
    pub fn new(prefix: &str, cleanup: &str) -> Result<Self> {
        // Not `std::env::temp_dir()`: a long TMPDIR would leave no room for the name of a socket.
        let folder = tempfile::Builder::new().prefix(prefix).rand_bytes(6).tempdir_in("/tmp")?;
        let alive = watch(folder.path(), cleanup).context("cannot start the shell that cleans up")?;
        Ok(Self { folder, _alive: alive })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn watch(folder: &Path, cleanup: &str) -> io::Result<ChildStdin> {
    let script = format!("cat >/dev/null; [ -d \"$1\" ] || exit 0; {cleanup}; sleep 1; rm -rf -- \"$1\"");
    let mut shell = Command::new("/bin/sh")
        .args(["-c", &script, "sh"])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    shell.stdin.take().ok_or_else(|| io::Error::other("no pipe"))
}

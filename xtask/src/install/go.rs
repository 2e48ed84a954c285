//! Programs that are built from Go modules.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{background, step};

/// Builds `package` in the module at `recipe`, to the file `program`; several, with spaces between them, to its folder
/// under their own names.
pub(super) fn build(recipe: &Path, package: &str, program: &Path, log: &Path) -> Result<()> {
    let output = if package.contains(' ') { folder(program)? } else { program };
    let mut command = go(&["build"], recipe, output)?;
    step(command.args(package.split_whitespace()), log)
}

/// Builds the tests of `package`, those that the build tag `tag` names too, to the file `program`.
pub(super) fn build_tests(recipe: &Path, package: &str, tag: &str, program: &Path, log: &Path) -> Result<()> {
    let mut command = go(&["test", "-c", "-tags", tag], recipe, program)?;
    step(command.arg(package), log)
}

/// `-mod=readonly` holds the build to the committed `go.sum`. Low priority and two jobs leave the machine usable;
/// Go's own cache makes a build that was cut short continue.
fn go(verb: &[&str], recipe: &Path, output: &Path) -> Result<Command> {
    std::fs::create_dir_all(folder(output)?)?;
    let mut command = background("go");
    command
        .args(verb)
        .args(["-p", "2", "-mod=readonly", "-buildvcs=false", "-o"])
        .arg(output)
        .current_dir(recipe)
        .env("GOTOOLCHAIN", "local")
        .env("GOWORK", "off");
    Ok(command)
}

fn folder(program: &Path) -> Result<&Path> {
    program.parent().context("a program without folder")
}

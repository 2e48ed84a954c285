//! Building our own programs for the commands that run them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::test::cargo;

/// How programs are built, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// All of the workspace, as for tests.
    Debug,
    /// `lacre` and the controller, as for users: what is measured.
    Release,
}

/// Builds our programs; gives the file of each by name.
///
/// # Errors
/// The build fails.
pub fn programs(profile: Profile) -> Result<BTreeMap<String, PathBuf>> {
    let mut command = cargo(&["build", "--bins", "--locked", "--message-format=json-render-diagnostics"]);
    match profile {
        Profile::Debug => command.arg("--workspace"),
        Profile::Release => {
            command.args(["--release", "--package", "lacre", "--package", "lacre-controller"])
        }
    };
    let output = command.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    ensure!(output.status.success(), "the build failed");
    let mut programs = BTreeMap::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let message: Value = serde_json::from_str(line)?;
        if let (Some(name), Some(file)) = (message["target"]["name"].as_str(), message["executable"].as_str())
        {
            programs.insert(name.to_owned(), PathBuf::from(file));
        }
    }
    Ok(programs)
}

/// The file of one of them.
///
/// # Errors
/// There is none of that name.
pub fn find<'a>(programs: &'a BTreeMap<String, PathBuf>, name: &str) -> Result<&'a PathBuf> {
    programs.get(name).with_context(|| format!("the workspace has no program `{name}`"))
}

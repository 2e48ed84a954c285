//! `cargo xtask test`: format, clippy and all tests, with whatever they need started before and stopped after.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::peers;
use crate::peers::cluster::{self, Cluster};
use crate::{output, root};

/// What cargo told us of our own package; build scripts that look at it would run again for nothing.
const OF_OUR_OWN_RUN: [&str; 3] = ["CARGO_BIN_", "CARGO_MANIFEST_", "CARGO_PKG_"];

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Arguments {
    /// Take the installed programs for granted, and start no cluster ahead.
    no_peers: bool,
    /// Arguments of the test runner.
    filter: Vec<String>,
}

/// Runs everything that must hold before a change is published.
///
/// The last lines are those of the test runner.
///
/// # Errors
/// A step fails, or the tests left traces in the work tree.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let arguments = parse(arguments)?;
    if !arguments.no_peers {
        peers::run(&[])?;
    }
    let before = tree()?;
    step("format", cargo(&["fmt", "--all", "--check"]))?;
    let lints = ["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings"];
    step("clippy", cargo(&lints))?;
    // What only some features use must be gone with them.
    let bare = [
        "clippy",
        "--package",
        "lacre",
        "--no-default-features",
        "--locked",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ];
    step("clippy without features", cargo(&bare))?;
    // Built before the servers start, so that the two do not compete.
    step("build of the tests", cargo(&["test", "--workspace", "--locked", "--quiet", "--no-run"]))?;
    let passed = tests(&arguments)?;
    let after = tree()?;
    ensure!(before == after, "the tests changed the work tree, from:\n{before}to:\n{after}");
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tests(arguments: &Arguments) -> Result<bool> {
    let mut command = cargo(&["test", "--workspace", "--locked", "--no-fail-fast"]);
    if !arguments.filter.is_empty() {
        command.arg("--").args(&arguments.filter);
    }
    let cluster = if arguments.no_peers { None } else { Some(Cluster::start()?) };
    if let Some(cluster) = &cluster {
        command.env(cluster::VARIABLE, cluster.folder());
    }
    Ok(command.status().context("cannot start cargo")?.success())
}

fn step(name: &str, mut command: Command) -> Result<()> {
    let start = Instant::now();
    output::line(&format!("{name}: started"));
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{name} failed");
    }
    output::line(&format!("{name}: done in {} s", start.elapsed().as_secs()));
    Ok(())
}

/// cargo at the root of the repository; the one that runs us, if one does.
pub(super) fn cargo(arguments: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    for (name, _) in std::env::vars_os() {
        if OF_OUR_OWN_RUN.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command
}

/// The state of the work tree: a line per changed or unknown file.
fn tree() -> Result<String> {
    let output = Command::new("git").args(["status", "--porcelain"]).current_dir(root()).output();
    let output = output.context("cannot start git")?;
    ensure!(output.status.success(), "git status: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn parse(arguments: &[String]) -> Result<Arguments> {
    let end = arguments.iter().position(|argument| argument == "--").unwrap_or(arguments.len());
    let [no_peers] = super::switches(&arguments[..end], ["--no-peers"])?;
    Ok(Arguments { no_peers, filter: arguments.iter().skip(end + 1).cloned().collect() })
}

#[cfg(test)]
mod tests {
    use super::{Arguments, parse};

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_follows_two_dashes_goes_to_the_test_runner() {
        let parsed = parse(&words("--no-peers -- scope --nocapture")).unwrap();
        assert_eq!(parsed, Arguments { no_peers: true, filter: words("scope --nocapture") });
    }

    #[test]
    fn a_word_before_the_dashes_is_refused() {
        assert!(parse(&words("scope")).unwrap_err().to_string().contains("`scope` is not understood"));
    }
}

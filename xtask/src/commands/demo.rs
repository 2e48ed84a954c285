//! `cargo xtask demo`: runs what the README shows, so that it cannot show what does not work.
//!
//! Run is what stands in blocks of the README fenced as `sh demo`; with `--cluster` also, after those and in the same
//! shell, what stands in blocks fenced as `sh demo cluster`. The shell starts in an empty folder that is also its home,
//! with our programs first on `PATH`; it stops at the first command that fails. The cluster is a real API server with
//! our controller, which has the rights of `controller/deploy/cluster-wide` and no more; `kubectl` is on `PATH` then,
//! and is its administrator.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use super::build::{self, Profile};
use crate::install;
use crate::peers::{cluster, etcd, kube_apiserver, kube_controller_manager, kubectl};
use crate::{output, root};

mod script;
mod stage;

pub use stage::ClusterStage;

/// What a block of the first part is fenced as.
const PLAIN: &str = "sh demo";
/// What a block that needs a cluster is fenced as.
const CLUSTER: &str = "sh demo cluster";
/// What a cluster is made of.
const CLUSTER_PARTS: [&install::Component; 4] =
    [&etcd::COMPONENT, &kubectl::COMPONENT, &kube_apiserver::COMPONENT, &kube_controller_manager::COMPONENT];

/// Builds our programs, runs the README's commands, prints each with its output.
///
/// # Errors
/// A command fails, or there is none.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let [with_cluster] = super::switches(arguments, ["--cluster"])?;
    let programs = build::programs(Profile::Debug)?;
    let stage = if with_cluster { Some(start_cluster(&programs)?) } else { None };
    play(&programs, stage.as_ref(), &mut output::line)?;
    Ok(ExitCode::SUCCESS)
}

fn start_cluster(programs: &BTreeMap<String, PathBuf>) -> Result<ClusterStage> {
    CLUSTER_PARTS.into_iter().try_for_each(install::ensure)?;
    ClusterStage::start(cluster::Cluster::start()?, build::find(programs, "lacre-controller")?)
}

/// Runs the README's commands and hands on what they print, line by line.
///
/// Through a pipe, never on the terminal itself: what a program shows must not depend on who watches the demo.
///
/// # Errors
/// A command fails, or there is none.
pub fn play(
    programs: &BTreeMap<String, PathBuf>,
    stage: Option<&ClusterStage>,
    show: &mut dyn FnMut(&str),
) -> Result<()> {
    let readme = fs::read_to_string(root().join("README.md")).context("no README.md")?;
    let mut blocks = script::blocks(&readme, PLAIN);
    ensure!(!blocks.is_empty(), "README.md has no block fenced as `{PLAIN}`");
    if stage.is_some() {
        let more = script::blocks(&readme, CLUSTER);
        ensure!(!more.is_empty(), "README.md has no block fenced as `{CLUSTER}`");
        blocks.extend(more);
    }
    let folder = tempfile::tempdir()?;
    let mut shell = shell(folder.path(), build::find(programs, "lacre")?, &script::assemble(&blocks)?)?;
    if let Some(stage) = stage {
        stage.prepare(&mut shell)?;
    }
    let mut child = shell.spawn().context("cannot start bash")?;
    let pipe = child.stdout.take().context("no pipe from bash")?;
    for line in BufReader::new(pipe).lines() {
        show(&line?);
    }
    let status = child.wait()?;
    ensure!(status.success(), "the last command above failed: {status}");
    Ok(())
}

/// bash on `script`, in an environment of its own.
fn shell(folder: &Path, lacre: &Path, script: &str) -> Result<Command> {
    let (work, file) = (folder.join("demo"), folder.join("script"));
    fs::create_dir(&work)?;
    fs::write(&file, script)?;
    let mut command = Command::new("bash");
    command.arg(&file).current_dir(&work).env_clear().env("HOME", &work).env("LC_ALL", "C.UTF-8");
    command.env("PATH", stage::path_with(&[lacre])?);
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "Demo").env(format!("GIT_{role}_EMAIL"), "demo@example.org");
    }
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_PAGER", "cat");
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    Ok(command)
}

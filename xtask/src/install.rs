//! Getting a component: once, by version, resumable.
//!
//! A component is installed under a temporary name and renamed when complete, so what has its final name is whole.
//! A lock per component lets runs in parallel share the work; three tries outlast a registry's bad minute.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::{cache, output, root};

mod cargo;
mod debian;
mod go;
mod pypi;

/// How often an installation is tried.
const TRIES: u32 = 3;
/// Time between two tries.
const PAUSE: Duration = Duration::from_secs(10);

/// A program that tests need.
#[derive(Debug)]
pub struct Component {
    /// What `cargo xtask peers NAME` and the folders call it.
    pub name: &'static str,
    /// Its version, or the distribution that decides it.
    pub version: &'static str,
    /// Where it comes from.
    pub source: Source,
    /// The file that is run: inside the folder of the component, or on `PATH` if the distribution has it.
    pub program: &'static str,
}

/// Where a component comes from.
#[derive(Debug)]
pub enum Source {
    /// The crate of the component's name and version.
    Cargo,
    /// The package of this name in the distribution; whatever version it has.
    Debian(&'static str),
    /// The main package of this path, built in the module `xtask/peers/FOLDER`.
    Go {
        /// The folder with `go.mod` and `go.sum`.
        folder: &'static str,
        /// The import path; several have spaces between them.
        package: &'static str,
    },
    /// The tests of a package, as a program.
    GoTests {
        /// As for [`Go`](Self::Go).
        folder: &'static str,
        /// The import path.
        package: &'static str,
        /// The build tag without which they are empty.
        tag: &'static str,
    },
    /// The packages of `xtask/peers/NAME/requirements.txt`, hashes and all.
    Pypi,
}

impl Component {
    /// The program's path.
    ///
    /// # Errors
    /// It is not installed; the error names the command that installs it.
    pub fn path(&self) -> Result<PathBuf> {
        match self.find()? {
            Some(path) => Ok(path),
            None => bail!("{0} {1} is not installed: run `cargo xtask peers {0}`", self.name, self.version),
        }
    }

    /// The folder it is installed in, if it has one of its own.
    ///
    /// # Errors
    /// There is no cache folder.
    pub fn folder(&self) -> Result<PathBuf> {
        Ok(cache::peers()?.join(format!("{}-{}", self.name, self.version)))
    }

    fn find(&self) -> Result<Option<PathBuf>> {
        if let Source::Debian(_) = self.source {
            return Ok(debian::which(self.program));
        }
        let path = self.folder()?.join(self.program);
        Ok(path.is_file().then_some(path))
    }

    fn fetch(&self, target: &Path, log: &Path) -> Result<()> {
        match &self.source {
            Source::Cargo => cargo::install(self.name, self.version, target, log),
            Source::Debian(package) => debian::install(package, log),
            Source::Go { folder, package } => {
                go::build(&recipe(folder), package, &target.join(self.program), log)
            }
            Source::GoTests { folder, package, tag } => {
                go::build_tests(&recipe(folder), package, tag, &target.join(self.program), log)
            }
            Source::Pypi => pypi::install(&recipe(self.name), target, &target.join(self.program), log),
        }
    }
}

/// Installs `component` unless it is there.
///
/// # Errors
/// It could not be had in three tries; the error ends with the tail of the log.
pub fn ensure(component: &Component) -> Result<()> {
    if component.find()?.is_some() {
        return Ok(());
    }
    let peers = cache::peers()?;
    fs::create_dir_all(&peers).with_context(|| format!("cannot make {}", peers.display()))?;
    let label = format!("{}-{}", component.name, component.version);
    // The package manager has one lock for all; everything else may run side by side.
    let lock = if let Source::Debian(_) = component.source { "debian" } else { label.as_str() };
    let _lock = cache::lock(&peers.join(format!("{lock}.lock")))?;
    if component.find()?.is_some() {
        return Ok(());
    }
    let log = peers.join(format!("{label}.log"));
    let start = Instant::now();
    output::line(&format!("{label}: installing, log in {}", log.display()));
    attempt(component, &log)?;
    output::line(&format!("{label}: installed in {} s", start.elapsed().as_secs()));
    Ok(())
}

fn attempt(component: &Component, log: &Path) -> Result<()> {
    let target = component.folder()?;
    let part = target.with_file_name(format!("{}-{}.part", component.name, component.version));
    for try_number in 1..=TRIES {
        remove(&part)?;
        let result = component.fetch(&part, log);
        match result {
            Ok(()) if matches!(component.source, Source::Debian(_)) => break,
            Ok(()) => {
                remove(&target)?;
                fs::rename(&part, &target)
                    .with_context(|| format!("cannot rename {} to {}", part.display(), target.display()))?;
                break;
            }
            Err(error) if try_number == TRIES => {
                return Err(error.context(format!("{} {}", component.name, component.version)));
            }
            Err(error) => {
                output::problem(&format!("{}: try {try_number} of {TRIES} failed: {error}", component.name));
                std::thread::sleep(PAUSE);
            }
        }
    }
    component.path().map(|_| ())
}

/// Runs one step of an installation with its output appended to `log`.
///
/// # Errors
/// It cannot be started or fails; the error ends with the tail of the log.
pub fn step(command: &mut Command, log: &Path) -> Result<()> {
    let output_file = File::options()
        .create(true)
        .append(true)
        .open(log)
        .with_context(|| format!("cannot write {}", log.display()))?;
    let line = format!("{command:?}");
    let status = command
        .stdin(Stdio::null())
        .stdout(output_file.try_clone()?)
        .stderr(output_file)
        .status()
        .with_context(|| format!("cannot start {line}"))?;
    if !status.success() {
        bail!("{line}: {status}; the end of {}:\n{}", log.display(), output::tail(log));
    }
    Ok(())
}

/// A command at low priority that dies with us: an orphan would go on writing to a folder that the next run makes anew.
fn background(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", "nice", "-n", "10", program]);
    command
}

/// The committed folder that pins a component.
fn recipe(folder: &str) -> PathBuf {
    root().join("xtask/peers").join(folder)
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}

//! Running programs: once with a clean environment ([`Tool`]), or as a [`Server`] that never outlives us.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process_group};

mod server;
mod spawner;

pub use server::{Server, start_on_free_port};
pub(crate) use server::{command, free_port, start_again};

/// How long a tool may take unless told otherwise.
const DEADLINE: Duration = Duration::from_secs(120);

/// A program to run once, in an environment that holds nothing of ours but `PATH`.
///
/// `HOME` points nowhere unless set, so that no configuration or key of the person at the keyboard takes part.
#[derive(Debug)]
pub struct Tool {
    command: Command,
    stdin: Vec<u8>,
    deadline: Duration,
}

impl Tool {
    /// A run of `program`.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", "/nonexistent").env("LC_ALL", "C.UTF-8");
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        Self { command, stdin: Vec::new(), deadline: DEADLINE }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.command.args(arguments);
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Sets environment variables.
    #[must_use]
    pub fn envs(mut self, all: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>) -> Self {
        self.command.envs(all);
        self
    }

    /// Sets the working folder.
    #[must_use]
    pub fn dir(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// What the program reads from standard input; nothing unless set.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// How long the program may take.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Runs the program to its end.
    ///
    /// # Errors
    /// It cannot be started, or is killed for passing its deadline. Its exit code is the caller's to judge: see
    /// [`Finished::success`].
    pub fn run(mut self) -> Result<Finished> {
        let line = format!("{:?}", self.command);
        let command =
            self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let child = command.spawn().with_context(|| format!("cannot start {line}"))?;
        let (status, stdout, stderr) =
            talk(child, &self.stdin, self.deadline).with_context(|| line.clone())?;
        Ok(Finished { command: line, code: status.code(), stdout, stderr })
    }
}

/// How a program ended.
#[derive(Debug)]
pub struct Finished {
    command: String,
    /// The exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error.
    pub stderr: Vec<u8>,
}

impl Finished {
    /// Standard output of a program that ended with 0.
    ///
    /// # Errors
    /// Any other end, with the command and what it wrote to standard error.
    pub fn success(self) -> Result<Vec<u8>> {
        if self.code == Some(0) {
            return Ok(self.stdout);
        }
        bail!("{} ended with {:?}:\n{}{}", self.command, self.code, self.stdout_text(), self.stderr_text())
    }

    /// Standard output as text.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// Feeds and drains all three pipes at once, since a full one would stop the program for ever.
fn talk(mut child: Child, stdin: &[u8], deadline: Duration) -> Result<(ExitStatus, Vec<u8>, Vec<u8>)> {
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let group = Pid::from_child(&child);
    let (done, late) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        // A program may end without reading all: a broken pipe is its choice, not our error.
        scope.spawn(move || input.map(|mut pipe| pipe.write_all(stdin)));
        let output = scope.spawn(move || drain(output));
        let errors = scope.spawn(move || drain(errors));
        let guard = scope.spawn(move || {
            let passed = late.recv_timeout(deadline) == Err(mpsc::RecvTimeoutError::Timeout);
            passed && kill_process_group(group, Signal::KILL).is_ok()
        });
        let status = child.wait();
        drop(done);
        let killed = guard.join().unwrap_or(false);
        let output = output.join().unwrap_or_default();
        let errors = errors.join().unwrap_or_default();
        if killed {
            bail!("killed after {} s; it wrote:\n{}", deadline.as_secs(), String::from_utf8_lossy(&errors));
        }
        Ok((status?, output, errors))
    })
}

fn drain(pipe: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // What arrived before an error is all there is to show.
        let _ = pipe.read_to_end(&mut bytes);
    }
    bytes
}

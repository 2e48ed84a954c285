//! A program that runs until it is stopped, and never longer than we do.

use std::ffi::OsStr;
use std::fs::File;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

use super::spawner;
use crate::output;

/// How long a server may take until it is ready.
const READY: Duration = Duration::from_secs(60);
/// How long a server may take to end after SIGTERM before it is killed.
const GRACE: Duration = Duration::from_secs(5);
/// How many ports are tried when others are faster to take one.
const ATTEMPTS: usize = 5;
/// Time between two looks at a starting or stopping server.
const PAUSE: Duration = Duration::from_millis(30);
/// What every component writes when its port is in use.
const PORT_TAKEN: &str = "address already in use";

/// A running server with a process group and a log file of its own.
///
/// Dropping it sends SIGTERM to the group, and SIGKILL after a grace. If we are killed, or end while it sits in a
/// static, the kernel kills it. When it is dropped by a panicking test it shows the end of its log.
#[derive(Debug)]
pub struct Server {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Server {
    /// Starts `command` with its output going to `log`.
    ///
    /// `setpriv` makes the promise to the kernel, since doing so between fork and exec would be unsafe code.
    ///
    /// # Errors
    /// The log cannot be made or the program not be started.
    pub fn spawn(name: &'static str, command: &Command, log: &Path) -> Result<Self> {
        let output = File::create(log).with_context(|| format!("cannot make {}", log.display()))?;
        let mut guarded = Command::new("setpriv");
        guarded.args(["--pdeathsig", "KILL", "--"]).arg(command.get_program()).args(command.get_args());
        guarded.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(path) = std::env::var_os("PATH") {
            guarded.env("PATH", path);
        }
        guarded.current_dir(log.parent().unwrap_or(Path::new("/")));
        guarded.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).process_group(0);
        let child = spawner::spawn(guarded)
            .with_context(|| format!("cannot start {name} (is util-linux installed?)"))?;
        Ok(Self { name, child, log: log.to_path_buf() })
    }

    /// Its log file.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Its process.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends a signal to it and all that it started.
    ///
    /// # Errors
    /// It has ended.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill_process_group(self.pid(), signal).with_context(|| format!("{} has ended", self.name))
    }

    /// Waits until `probe` says that it is ready.
    fn wait(&mut self, mut probe: impl FnMut() -> bool) -> Result<State> {
        let start = Instant::now();
        loop {
            let ready = probe();
            // Looked at after the probe: what answered must be ours, not a stranger on the port we lost.
            if self.child.try_wait()?.is_some() {
                return Ok(State::Ended);
            }
            if ready {
                return Ok(State::Ready);
            }
            if start.elapsed() > READY {
                bail!("{} is not ready after {} s:\n{}", self.name, READY.as_secs(), output::tail(&self.log));
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn stop(&mut self) {
        let group = self.pid();
        // One that was paused would not hear the first signal.
        let _ = kill_process_group(group, Signal::CONT);
        // The group is gone already if the server ended by itself.
        let _ = kill_process_group(group, Signal::TERM);
        let start = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && start.elapsed() < GRACE {
            std::thread::sleep(PAUSE);
        }
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        if std::thread::panicking() {
            output::show_log(self.name, &self.log);
        }
    }
}

enum State {
    Ended,
    Ready,
}

/// Starts a server on a loopback port that it binds itself, trying another port when that one was taken meanwhile.
///
/// `command` makes the command line for a port, with an environment of exactly what it sets; `probe` asks whether
/// the server on that port is ready.
///
/// # Errors
/// The server ended, or was not ready in time; with the end of its log.
pub fn start_on_free_port(
    name: &'static str,
    log: &Path,
    command: impl Fn(u16) -> Command,
    mut probe: impl FnMut(u16) -> bool,
) -> Result<(Server, u16)> {
    for _ in 0..ATTEMPTS {
        let port = free_port()?;
        if let Some(server) = start(name, log, &command(port), || probe(port))? {
            return Ok((server, port));
        }
    }
    bail!("{name} found none of {ATTEMPTS} ports free")
}

/// Starts a server again on the port that it had: those who know it must find it there.
///
/// # Errors
/// As [`start_on_free_port`]; or the port is taken.
pub(crate) fn start_again(
    name: &'static str,
    log: &Path,
    command: &Command,
    probe: impl FnMut() -> bool,
) -> Result<Server> {
    start(name, log, command, probe)?.with_context(|| format!("{name} lost its port"))
}

/// None when somebody else has the port.
fn start(
    name: &'static str,
    log: &Path,
    command: &Command,
    probe: impl FnMut() -> bool,
) -> Result<Option<Server>> {
    let mut server = Server::spawn(name, command, log)?;
    match server.wait(probe)? {
        State::Ready => Ok(Some(server)),
        State::Ended if output::tail(log).to_lowercase().contains(PORT_TAKEN) => Ok(None),
        State::Ended => bail!("{name} ended instead of serving:\n{}", output::tail(log)),
    }
}

/// A port of loopback that nobody has, at the moment.
///
/// # Errors
/// There is none.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0)).context("no free port on loopback")?.local_addr()?.port())
}

/// A command with arguments, for [`start_on_free_port`].
pub(crate) fn command(program: &Path, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

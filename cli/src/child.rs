//! Running another program in our place: it gets our streams and the signals meant for it, and its exit status
//! becomes ours.
//!
//! A signal that the terminal sends goes to all programs in the foreground, the child among them, so it is not passed
//! on a second time. What another program sends reaches us alone, and is.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::low_level::siginfo::Cause;

use crate::error::{CommandError, Kind};
use crate::files;

/// The signals that are passed on.
const FORWARDED: [(i32, Signal); 7] = [
    (SIGHUP, Signal::HUP),
    (SIGINT, Signal::INT),
    (SIGQUIT, Signal::QUIT),
    (SIGTERM, Signal::TERM),
    (SIGUSR1, Signal::USR1),
    (SIGUSR2, Signal::USR2),
    (SIGWINCH, Signal::WINCH),
];

/// What to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// A program and its arguments, as they are.
    Program(Vec<OsString>),
    /// A text for `sh -c`.
    Shell(OsString),
}

impl Words {
    /// The same with `new` for each `old`, in all words.
    pub(crate) fn replaced(self, old: &str, new: &OsStr) -> Self {
        match self {
            Self::Program(words) => {
                Self::Program(words.iter().map(|word| replaced(word, old, new)).collect())
            }
            Self::Shell(text) => Self::Shell(replaced(&text, old, new)),
        }
    }

    /// The command that runs it.
    pub(crate) fn command(&self) -> Command {
        match self {
            Self::Program(words) => {
                let mut words = words.iter();
                let mut command = Command::new(words.next().map_or(OsStr::new(""), OsString::as_os_str));
                command.args(words);
                command
            }
            Self::Shell(text) => {
                let mut command = Command::new("/bin/sh");
                command.arg("-c").arg(text);
                command
            }
        }
    }
}

fn replaced(word: &OsStr, old: &str, new: &OsStr) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let (mut rest, old, mut made) = (word.as_bytes(), old.as_bytes(), Vec::new());
    while let Some(found) = rest.windows(old.len()).position(|window| window == old) {
        made.extend_from_slice(&rest[..found]);
        made.extend_from_slice(new.as_bytes());
        rest = &rest[found + old.len()..];
    }
    made.extend_from_slice(rest);
    OsString::from_vec(made)
}

/// Runs `command` to its end. Its failure is ours, and says nothing more.
pub(crate) fn run(mut command: Command) -> Result<(), CommandError> {
    let lost =
        |error: std::io::Error| CommandError::on(Kind::General, "the command", files::plain_words(&error));
    // From before the start, so that no signal is missed.
    let mut signals = SignalsInfo::<WithOrigin>::new(FORWARDED.map(|(number, _)| number)).map_err(lost)?;
    let mut child = command.spawn().map_err(|error| not_run(&command, &error))?;
    let pid = Pid::from_child(&child);
    let handle = signals.handle();
    let forwarder = std::thread::spawn(move || {
        for origin in signals.forever().filter(|origin| origin.cause != Cause::Kernel) {
            if let Some((_, signal)) = FORWARDED.iter().find(|(number, _)| *number == origin.signal) {
                let _ = kill_process(pid, *signal);
            }
        }
    });
    // Its number stays its own until it is collected, which is after the last signal was passed on.
    let ended = wait_until_ended(pid);
    handle.close();
    let _ = forwarder.join();
    ended.map_err(lost)?;
    status(&mut child)
        .map_err(lost)
        .and_then(|status| code(status).map_or(Ok(()), |code| Err(ended_with(code))))
}

/// Becomes `command`; comes back only if that fails.
pub(crate) fn replace(mut command: Command) -> CommandError {
    let error = command.exec();
    not_run(&command, &error)
}

/// Starts `command` without our streams and leaves it to itself.
pub(crate) fn detach(mut command: Command) -> Result<(), CommandError> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop).map_err(|error| not_run(&command, &error))
}

fn wait_until_ended(pid: Pid) -> std::io::Result<()> {
    loop {
        match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Err(rustix::io::Errno::INTR) => {}
            result => return result.map(drop).map_err(Into::into),
        }
    }
}

fn status(child: &mut Child) -> std::io::Result<ExitStatus> {
    child.wait()
}

/// The exit code that a shell would give it; nothing for a success.
fn code(status: ExitStatus) -> Option<u8> {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).map_or(Some(1), |code| (code != 0).then_some(code))
}

fn ended_with(code: u8) -> CommandError {
    CommandError::new(Kind::Child(code), format!("the command ended with exit status {code}"))
}

/// With the exit codes of a shell. The program's name is told, and none of its arguments.
fn not_run(command: &Command, error: &std::io::Error) -> CommandError {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound => Kind::NotRun(127),
        _ => Kind::NotRun(126),
    };
    CommandError::on(kind, command.get_program().display(), files::plain_words(error))
        .hint("a program and its arguments stand behind `--`; a line for the shell is one word in quotes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_replaced_in_all_words() {
        let words = |words: &[&str]| Words::Program(words.iter().map(OsString::from).collect());
        let found = words(&["a", "{}", "x={}{}", "{"]).replaced("{}", "/p q".as_ref());
        assert_eq!(found, words(&["a", "/p q", "x=/p q/p q", "{"]));
        let shell = Words::Shell("cat {} {}".into()).replaced("{}", "f".as_ref());
        assert_eq!(shell, Words::Shell("cat f f".into()));
    }

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        let raw = |status| code(ExitStatus::from_raw(status));
        assert_eq!((raw(0), raw(3 << 8), raw(15), raw(9)), (None, Some(3), Some(143), Some(137)));
    }
}

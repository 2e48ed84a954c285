//! The buffer that a person edits: in memory, private, wiped, and never lost by accident.
//!
//! The rules: plaintext goes to a memory file system only (`XDG_RUNTIME_DIR`, then `/dev/shm`), or to a folder that
//! the caller named on purpose; the folder has mode 0700, the file 0600 and the sealed file's name, so that editors
//! pick its syntax. When the buffer goes out of scope it is overwritten and removed together with whatever the
//! editor left beside it; a signal to end does the same. Editors that keep swap files, undo files or registers
//! elsewhere are asked not to, where we know how. What the kernel may have swapped out is out of reach.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use lacre_crypto::SecretText;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::error::{CommandError, Kind};
use crate::files;
use crate::output::Output;
use crate::private::PrivateFolder;

/// How long an editor may take to end once it was told to.
const EDITOR_GRACE: Duration = Duration::from_secs(2);

/// How often a running editor and the signals are looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Editors that are tried when neither `SOPS_EDITOR` nor `EDITOR` names one.
const EDITORS_DEFAULT: [&str; 3] = ["vim", "nano", "vi"];

/// Asks vim and its kin to keep nothing outside the buffer: no swap file, no registers, no undo file, no backup.
const VIM_ARGUMENTS: [&str; 5] = ["-n", "-i", "NONE", "-c", "set noundofile nobackup nowritebackup"];

/// Plaintext in a file of its own, for as long as this value lives.
pub(crate) struct Buffer {
    folder: PrivateFolder,
    file: PathBuf,
    signal: Arc<AtomicUsize>,
}

impl Buffer {
    /// Makes a buffer called like `name` that holds `text`; in `chosen` if the caller insists on a folder.
    pub(crate) fn new(name: &Path, text: &SecretText, chosen: Option<&Path>) -> Result<Self, CommandError> {
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register_usize(number, Arc::clone(&signal), number.unsigned_abs() as usize)
                .map_err(|error| CommandError::on(Kind::Editor, "signals", error))?;
        }
        let folder = private_folder(chosen)?;
        let name = Path::new(name.file_name().unwrap_or("buffer".as_ref()));
        let failed =
            |error| CommandError::on(Kind::Editor, folder.place(name).display(), files::plain_words(&error));
        let file = folder.create(name, text.expose_secret().as_bytes()).map_err(failed)?;
        Ok(Self { folder, file, signal })
    }

    /// Runs the editor on the buffer and waits for it.
    pub(crate) fn edit(&self) -> Result<(), CommandError> {
        let words = editor_words()?;
        let spawned = Command::new(&words[0]).args(&words[1..]).arg(&self.file).spawn();
        let mut child = spawned.map_err(|error| {
            let program = words[0].to_string_lossy().into_owned();
            CommandError::on(Kind::Editor, program, files::plain_words(&error))
                .hint("set SOPS_EDITOR or EDITOR to an editor that is installed")
        })?;
        let status = self.wait(&mut child)?;
        match status.success() {
            true => Ok(()),
            false => Err(CommandError::new(Kind::Editor, format!("the editor ended with {status}"))
                .hint("nothing was changed")),
        }
    }

    /// Whether the editor left it.
    pub(crate) fn exists(&self) -> bool {
        self.file.exists()
    }

    /// What stands in the buffer now.
    pub(crate) fn text(&self) -> Result<SecretText, CommandError> {
        Ok(files::read(Some(&self.file), None)?.content)
    }

    /// Ends with the signal's error when one has come.
    pub(crate) fn check_signals(&self) -> Result<(), CommandError> {
        match self.signal.load(Ordering::Relaxed) {
            0 => Ok(()),
            number => {
                let number = u8::try_from(number).unwrap_or_default();
                Err(CommandError::new(
                    Kind::Interrupted(number),
                    "interrupted; the buffer is wiped, nothing changed",
                ))
            }
        }
    }

    /// Asks a question while signals are still heard; nothing when nobody is there to answer.
    pub(crate) fn ask(&self, output: Output, question: &'static str) -> Result<Option<String>, CommandError> {
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || sender.send(output.ask(question)));
        loop {
            self.check_signals()?;
            match answers.recv_timeout(POLL_INTERVAL) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }

    /// Leaves the buffer where it is, for its owner alone, and says where.
    pub(crate) fn keep(self) -> PathBuf {
        let name = self.file.file_name().unwrap_or_default().to_owned();
        self.folder.keep().join(name)
    }

    fn wait(&self, child: &mut Child) -> Result<ExitStatus, CommandError> {
        let lost = |error| CommandError::on(Kind::Editor, "the editor", error);
        loop {
            if let Some(status) = child.try_wait().map_err(lost)? {
                return self.check_signals().map(|()| status);
            }
            if let Err(interrupted) = self.check_signals() {
                end(child);
                return Err(interrupted);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// A folder for this buffer alone, in memory unless the caller chose another place.
fn private_folder(chosen: Option<&Path>) -> Result<PrivateFolder, CommandError> {
    if let Some(parent) = chosen {
        return PrivateFolder::inside(parent).map_err(|error| {
            CommandError::on(Kind::Editor, parent.display(), files::plain_words(&error))
                .hint("name a folder that you can write to with `--buffer-directory DIR`")
        });
    }
    PrivateFolder::in_memory().ok_or_else(|| {
        CommandError::new(Kind::Editor, "no memory file system to hold the plaintext while it is edited")
            .hint("set XDG_RUNTIME_DIR to a folder on tmpfs that you can write to")
            .hint("or accept that plaintext reaches a disk, with `--buffer-directory DIR`")
    })
}

/// The editor's command line: `SOPS_EDITOR`, then `EDITOR`, split as a shell would, then what is installed.
fn editor_words() -> Result<Vec<OsString>, CommandError> {
    let named = ["SOPS_EDITOR", "EDITOR"].into_iter().find_map(|variable| {
        std::env::var(variable).ok().filter(|value| !value.trim().is_empty()).map(|value| (variable, value))
    });
    let mut words: Vec<OsString> = match named {
        Some((variable, value)) => shlex::split(&value)
            .filter(|words| !words.is_empty())
            .ok_or_else(|| {
                CommandError::on(Kind::Editor, variable, "has an open quote")
                    .hint(format!("write {variable} as a shell would take it"))
            })?
            .into_iter()
            .map(OsString::from)
            .collect(),
        None => vec![installed_editor()?.into()],
    };
    let program = Path::new(&words[0]).file_name().unwrap_or_default();
    if ["vim", "nvim", "gvim"].iter().any(|vim| program == *vim) {
        words.splice(1..1, VIM_ARGUMENTS.map(OsString::from));
    }
    Ok(words)
}

fn installed_editor() -> Result<PathBuf, CommandError> {
    let folders: Vec<_> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    let mut candidates = EDITORS_DEFAULT.iter().flat_map(|name| folders.iter().map(move |f| f.join(name)));
    candidates
        .find(|program| program.metadata().is_ok_and(|found| found.mode() & 0o111 != 0))
        .ok_or_else(|| CommandError::new(Kind::Editor, "no editor found").hint("set SOPS_EDITOR or EDITOR"))
}

/// Tells the editor to end, and ends it after a grace.
fn end(child: &mut Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    let deadline = Instant::now() + EDITOR_GRACE;
    while Instant::now() < deadline {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_buffer_is_private_and_gone_afterwards() {
        let place = tempfile::tempdir().unwrap();
        let buffer = Buffer::new("a/secret.yaml".as_ref(), &"k: v\n".into(), Some(place.path())).unwrap();
        let (file, folder) = (buffer.file.clone(), buffer.file.parent().unwrap().to_owned());
        assert_eq!(file.file_name().unwrap(), "secret.yaml");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(folder.join("secret.yaml~"), "left by the editor").unwrap();
        drop(buffer);
        assert!(!folder.exists());
    }

    #[test]
    fn a_kept_buffer_stays() {
        let place = tempfile::tempdir().unwrap();
        let buffer = Buffer::new("x.json".as_ref(), &"{}".into(), Some(place.path())).unwrap();
        assert_eq!(fs::read_to_string(buffer.keep()).unwrap(), "{}");
    }
}

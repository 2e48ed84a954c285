//! The `gpg` program, for secret keys that live in its agent or on a card.
//!
//! The message goes in by standard input and the key comes out by standard output; neither is ever an argument or
//! a file. What is decrypted by this program was looked at before for being a message for keys and nothing else.

use std::env;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;

use super::message::check_envelope;
use crate::recipient::{
    Effort, Identity, KEY_FILE_BYTES_MAX, KeyError, RecipientId, UnwrapError, UnwrapFailure, WrappedKey,
    read_key,
};
use crate::secret::SecretBytes;

/// What gpg, its agent and the window that asks for a passphrase need to find each other and the person. Nothing
/// else of our environment is handed on: it may hold keys of other kinds.
const ENVIRONMENT: [&str; 22] = [
    "APPDATA",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "GNUPGHOME",
    "GPG_TTY",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LOCALAPPDATA",
    "LOGNAME",
    "PATH",
    "PINENTRY_USER_DATA",
    "SystemRoot",
    "TERM",
    "USER",
    "USERPROFILE",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
];

/// Where gpg stops when a message decompresses to more. Far above a key, far below harm.
const OUTPUT_BYTES_MAX: &str = "4096";

/// How much of what gpg says is kept.
const REPORT_BYTES_MAX: u64 = 64 * 1024;

/// How much of it a message repeats.
const QUOTE_CHARS_MAX: usize = 200;

/// Codes of libgpg-error for a person who said no: bad passphrase, canceled, fully canceled.
const REFUSALS: [u32; 3] = [11, 99, 198];

/// Which program to run, and with which keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpgProgram {
    /// Name or path of the program.
    pub program: PathBuf,
    /// Its home directory (`GNUPGHOME`), or nothing for what the environment says.
    pub home: Option<PathBuf>,
}

impl GpgProgram {
    /// The certificate with this fingerprint, binary; empty when gpg has none.
    pub(super) fn export(&self, digits: &str) -> Result<Vec<u8>, KeyError> {
        let arguments = ["--export-options", "export-minimal", "--export", "--", digits];
        let read = |stdout: ChildStdout| {
            let mut certificate = Vec::new();
            stdout.take(KEY_FILE_BYTES_MAX as u64 + 1).read_to_end(&mut certificate).map(|_| certificate)
        };
        let (certificate, _) = self
            .run(&arguments, b"", read)
            .map_err(|error| KeyError::new(format!("cannot run {}: {error}", self.program.display())))?;
        certificate.map_err(|error| KeyError::new(format!("cannot read what gpg exports: {error}")))
    }

    /// Runs the program to its end. `read` takes standard output; what it leaves unread ends the program.
    fn run<T>(
        &self,
        arguments: &[&str],
        input: &[u8],
        read: impl FnOnce(ChildStdout) -> T,
    ) -> io::Result<(T, Report)> {
        let mut child = self.command(arguments).spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(end(&mut child));
        };
        // All three at once: a program that waits for one of them to move must not stop the others.
        let (value, text) = thread::scope(|scope| {
            scope.spawn(move || {
                // A program that ends early leaves a broken pipe here, and says why in its report.
                let _ = stdin.write_all(input);
            });
            let text = scope.spawn(|| read_report(stderr));
            let value = read(stdout);
            (value, text.join().unwrap_or_default())
        });
        Ok((value, Report { status: child.wait()?, text }))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear();
        command.envs(ENVIRONMENT.iter().filter_map(|name| Some((name, env::var_os(name)?))));
        if let Some(home) = &self.home {
            command.arg("--homedir").arg(home);
        }
        command.args(["--batch", "--quiet", "--status-fd", "2"].map(OsStr::new)).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn open(&self, enc: &str) -> Option<Result<SecretBytes, UnwrapError>> {
        let armored = match check_envelope(enc) {
            Ok(armored) => armored,
            Err(error) => return Some(Err(error)),
        };
        let arguments = ["--max-output", OUTPUT_BYTES_MAX, "--decrypt"];
        match self.run(&arguments, armored.as_bytes(), |mut stdout| read_key(&mut stdout)) {
            Ok((key, report)) if report.opened() => Some(key),
            Ok((_, report)) => report.failure().map(Err),
            Err(error) => {
                let reason = format!("cannot run {}: {error}", self.program.display());
                Some(Err(UnwrapError::new(UnwrapFailure::Unreachable, reason)))
            }
        }
    }
}

impl Identity for GpgProgram {
    fn public(&self) -> String {
        match &self.home {
            Some(home) => format!("pgp keys of {} in {}", self.program.display(), home.display()),
            None => format!("pgp keys of {}", self.program.display()),
        }
    }

    fn effort(&self) -> Effort {
        Effort::Interactive
    }

    /// gpg alone knows which keys it has: each OpenPGP entry is put to it, and nothing comes back when it holds no
    /// secret key for it.
    fn unwrap(&self, wrapped: &WrappedKey) -> Option<Result<SecretBytes, UnwrapError>> {
        let RecipientId::Pgp(_) = &wrapped.recipient else { return None };
        self.open(&wrapped.enc)
    }
}

/// How gpg ended and what it said, status lines among it. Neither ever holds what was decrypted.
struct Report {
    status: ExitStatus,
    text: String,
}

impl Report {
    /// The arguments of the first status line with this keyword.
    fn status_line(&self, keyword: &str) -> Option<&str> {
        let mut lines = self.text.lines().filter_map(|line| line.strip_prefix("[GNUPG:] "));
        lines.find_map(|line| {
            line.strip_prefix(keyword).filter(|rest| rest.is_empty() || rest.starts_with(' '))
        })
    }

    /// gpg ends well on messages without integrity protection when told so by its configuration; the status line
    /// is what counts.
    fn opened(&self) -> bool {
        self.status.success() && self.status_line("DECRYPTION_OKAY").is_some()
    }

    /// Nothing when gpg has no secret key for the message.
    fn failure(&self) -> Option<UnwrapError> {
        if let Some(code) = self.refusal_code()
            && REFUSALS.contains(&code)
        {
            return Some(UnwrapError::new(UnwrapFailure::Denied, "gpg got no passphrase, or a wrong one"));
        }
        if self.status_line("ERROR").is_none() && self.status_line("NO_SECKEY").is_some() {
            return None;
        }
        let kind = match self.status_line("BEGIN_DECRYPTION") {
            Some(_) => UnwrapFailure::Broken,
            None => UnwrapFailure::Unreachable,
        };
        Some(UnwrapError::new(kind, format!("gpg could not open the message: {}", self.quote())))
    }

    /// The error code in `ERROR pkdecrypt_failed CODE`, without the source in its upper half.
    fn refusal_code(&self) -> Option<u32> {
        let code: u32 =
            self.status_line("ERROR pkdecrypt_failed")?.split_whitespace().next()?.parse().ok()?;
        Some(code & 0xffff)
    }

    /// The last line that is meant for people.
    fn quote(&self) -> String {
        let line = self.text.lines().rfind(|line| !line.starts_with("[GNUPG:]") && !line.trim().is_empty());
        let printable = |character: &char| !character.is_control();
        line.unwrap_or("it did not say why").chars().filter(printable).take(QUOTE_CHARS_MAX).collect()
    }
}

/// Keeps the beginning and drops the rest, so that the program never waits for a full pipe.
fn read_report(mut stderr: ChildStderr) -> String {
    let mut kept = Vec::new();
    let read = stderr.by_ref().take(REPORT_BYTES_MAX).read_to_end(&mut kept);
    let _ = read.and_then(|_| io::copy(&mut stderr, &mut io::sink()));
    String::from_utf8_lossy(&kept).into_owned()
}

/// Cannot happen with the pipes asked for; then no child must stay behind.
fn end(child: &mut Child) -> io::Error {
    let _ = child.kill();
    let _ = child.wait();
    io::Error::other("no pipes to the program")
}

//! The `gpg` program, for secret keys that live in its agent or on a card, and for certificates too weak for us.
//!
//! What is opened or sealed goes in by standard input and the outcome comes by standard output; neither is ever an argument or
//! a file. What is decrypted by this program was looked at before for being a message for keys and nothing else.

use std::env;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;

use super::message::check_envelope;
use crate::recipient::{
    Effort, Identity, KEY_FILE_BYTES_MAX, KeyError, RecipientId, UnwrapError, UnwrapFailure,
    WRAPPED_KEY_BYTES_MAX, WrappedKey, read_key,
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
const QUOTE_CHARS_MAX: usize = 300;

/// Codes of libgpg-error for a person who said no: bad passphrase, canceled, fully canceled.
const REFUSALS: [u32; 3] = [11, 99, 198];

/// Sources of libgpg-error for the ciphers and for gpg itself; the others are the agent, the window that asks for
/// the passphrase, and the card.
const OWN_SOURCES: [u32; 2] = [1, 2];

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

    /// Wraps `key` for the certificate with this fingerprint, which a `!` may end. Whom the program's configuration
    /// would add is left out, and whether somebody signed the certificate is not asked: the fingerprint names it.
    pub(super) fn seal(&self, fingerprint: &str, key: &SecretBytes) -> Result<String, String> {
        let whom = ["--no-encrypt-to", "--trust-model", "always", "--recipient", fingerprint];
        let arguments =
            [&["--armor", "--no-comments", "--no-emit-version"][..], &whom, &["--encrypt"]].concat();
        let read = |stdout: ChildStdout| {
            let mut armored = String::new();
            stdout.take(WRAPPED_KEY_BYTES_MAX as u64 + 1).read_to_string(&mut armored).map(|_| armored)
        };
        let (armored, report) = self
            .run(&arguments, key.expose_secret(), read)
            .map_err(|error| format!("cannot run {}: {error}", self.program.display()))?;
        if !report.sealed() {
            return Err(format!("gpg did not seal: {}", report.quote()));
        }
        let armored = armored.map_err(|error| format!("cannot read what gpg sealed: {error}"))?;
        check_envelope(&armored).map(str::to_owned).map_err(|error| format!("what gpg sealed: {error}"))
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
        // Not `--quiet`: that leaves status lines out, too.
        let mut command = Command::new(&self.program);
        command.env_clear();
        command.envs(ENVIRONMENT.iter().filter_map(|name| Some((name, env::var_os(name)?))));
        if let Some(home) = &self.home {
            command.arg("--homedir").arg(home);
        }
        command.args(["--batch", "--status-fd", "2"].map(OsStr::new)).args(arguments);
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

    fn sealed(&self) -> bool {
        self.status.success() && self.status_line("END_ENCRYPTION").is_some()
    }

    /// Nothing when gpg has no secret key for the message.
    fn failure(&self) -> Option<UnwrapError> {
        let kind = match self.private_key_error() {
            Some((_, code)) if REFUSALS.contains(&code) => UnwrapFailure::Denied,
            Some((source, _)) if OWN_SOURCES.contains(&source) => UnwrapFailure::Broken,
            Some(_) => UnwrapFailure::Unreachable,
            None if self.status_line("DECRYPTION_KEY").is_some() => UnwrapFailure::Broken,
            None if self.status_line("NO_SECKEY").is_some() => return None,
            None => UnwrapFailure::Unreachable,
        };
        Some(UnwrapError::new(kind, format!("gpg could not open the message: {}", self.quote())))
    }

    /// Source and code of the error in `ERROR pkdecrypt_failed NUMBER`.
    fn private_key_error(&self) -> Option<(u32, u32)> {
        let number = self.status_line("ERROR pkdecrypt_failed")?.split_whitespace().next()?;
        let number: u32 = number.parse().ok()?;
        Some((number >> 24, number & 0xffff))
    }

    /// The lines that are meant for people.
    fn quote(&self) -> String {
        let lines: Vec<&str> = self.text.lines().filter_map(|line| line.strip_prefix("gpg: ")).collect();
        if lines.is_empty() {
            return "it did not say why".to_owned();
        }
        lines.join("; ").chars().filter(|character| !character.is_control()).take(QUOTE_CHARS_MAX).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str) -> Report {
        Report { status: ExitStatus::default(), text: text.to_owned() }
    }

    #[test]
    fn a_key_of_somebody_else_is_nothing_and_failures_are_told_apart() {
        let failed = |text: &str| report(text).failure().map(|error| error.kind);
        for (text, kind) in [
            ("[GNUPG:] NO_SECKEY 28475C6B8DDDEB1D\n[GNUPG:] DECRYPTION_FAILED\n", None),
            ("[GNUPG:] ERROR pkdecrypt_failed 83886179\n", Some(UnwrapFailure::Denied)),
            ("[GNUPG:] ERROR pkdecrypt_failed 67108875\n", Some(UnwrapFailure::Denied)),
            ("[GNUPG:] ERROR pkdecrypt_failed 67108949\n", Some(UnwrapFailure::Unreachable)),
            ("[GNUPG:] ERROR pkdecrypt_failed 33554450\n", Some(UnwrapFailure::Broken)),
            ("[GNUPG:] DECRYPTION_KEY A A u\n[GNUPG:] BADMDC\n", Some(UnwrapFailure::Broken)),
            ("gpg: Fatal: cannot create directory\n", Some(UnwrapFailure::Unreachable)),
            ("", Some(UnwrapFailure::Unreachable)),
        ] {
            assert_eq!(failed(text), kind, "{text}");
        }
    }

    #[test]
    fn a_good_end_without_the_status_line_is_none() {
        assert!(!report("[GNUPG:] DECRYPTION_FAILED\n").opened());
        assert!(!report("gpg: DECRYPTION_OKAY\n").opened());
        assert!(report("[GNUPG:] DECRYPTION_OKAY\n").opened());
    }

    #[test]
    fn the_quote_is_bounded_printable_and_holds_no_status_lines() {
        let text = format!("[GNUPG:] X\ngpg: a\x1b[2J\n      \"d@b\"\ngpg: {}\n", "b".repeat(1000));
        let quote = report(&text).quote();
        assert!(quote.starts_with("a[2J; bbb") && quote.len() == QUOTE_CHARS_MAX, "{quote}");
    }
}

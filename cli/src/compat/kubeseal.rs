//! The command line of kubeseal 0.40: its flags, its modes in their order, its exit codes and its words.
//!
//! What was typed and what the environment says becomes a [`Line`]; the first mode that it asks for is run by a file of
//! its own. Where kubeseal does harm without a word (a document that is left out, a namespace `n` that becomes `false`,
//! a file that is emptied), this one refuses and says what to do; docs/guides.md lists those places.

mod flags;
mod help;
mod line;
mod online;
mod open;
mod seal;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use lacre_crypto::SecretText;

use crate::cluster::ClusterOptions;
use crate::error::{CommandError, Kind};
use crate::files::{self, Input, Privacy};
use crate::output::{self, Output};
use crate::process;
use crate::sealed_secrets::manifest::{self, Manifest};
use crate::sealed_secrets::print::Form;
use line::Line;

/// What `--version` says, so that scripts that look for a version find the one whose place we take.
const VERSION_ANSWER: &str = concat!(
    "kubeseal version: v0.40.0 (the command line of kubeseal, spoken by lacre ",
    env!("CARGO_PKG_VERSION"),
    ")\n"
);
/// Exit code for a command line that cannot be read; everything else that fails ends in 1.
const MISUSE: u8 = 2;

/// Runs what `words` ask for.
pub(super) fn run(words: &[OsString]) -> ExitCode {
    process::harden();
    let output = Output::default();
    let line = match Line::read(words, |name| std::env::var_os(name)) {
        Ok(line) => line,
        Err(problem) => {
            output.error(&CommandError::general(problem).hint("`kubeseal --help` lists the flags"));
            return ExitCode::from(MISUSE);
        }
    };
    match (Call { line, output }).run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output.error(&error);
            ExitCode::FAILURE
        }
    }
}

/// One call of kubeseal.
struct Call {
    line: Line,
    output: Output,
}

impl Call {
    /// The first mode that is asked for; others are not looked at.
    fn run(&self) -> Result<(), CommandError> {
        let line = &self.line;
        if line.is_on("version") {
            return self.output.text(VERSION_ANSWER);
        }
        if line.is_on("help") {
            return self.output.text(&help::text());
        }
        if !line.all("from-file").is_empty() && !line.is_on("raw") {
            return Err(CommandError::general("--from-file requires --raw")
                .hint("a whole Secret comes in with `--secret-file`, or on standard input"));
        }
        for word in &line.operands {
            self.output.warn(&format!("\"{}\" belongs to no flag and is not looked at", word.display()));
        }
        if line.is_on("rotate") {
            self.output.warn("--rotate is called --re-encrypt now");
        }
        match () {
            () if line.is_on("recovery-unseal") => open::recover(self),
            () if line.is_on("validate") => online::validate(self),
            () if line.is_on("re-encrypt") || line.is_on("rotate") => online::re_encrypt(self),
            () if line.is_on("fetch-cert") => online::fetch_certificate(self),
            () if line.value("merge-into").is_some() => seal::merge(self),
            () if line.is_on("raw") => seal::one_value(self),
            () => seal::whole(self),
        }
    }

    /// The form of what is printed: a file's name decides before any flag.
    fn form(&self) -> Result<Form, CommandError> {
        let extension = self.output_path().and_then(|path| path.extension().map(OsString::from));
        match extension {
            Some(extension) if extension == "yaml" || extension == "yml" => Ok(Form::Yaml),
            _ => Form::from_word(&self.line.text_or_default("format")),
        }
    }

    fn output_path(&self) -> Option<PathBuf> {
        self.line.value("sealed-secret-file").map(PathBuf::from)
    }

    /// Brings `text` to where it was asked for.
    fn deliver(&self, text: &str) -> Result<(), CommandError> {
        match self.output_path() {
            // Files of kubeseal are their owner's alone, whatever is in them.
            Some(path) => files::write(&path, text.as_bytes(), Privacy::OwnerAlone),
            None => self.output.secret(text.as_bytes()),
        }
    }

    /// Says that a file that was named is not written.
    fn leave_output_alone(&self, mode: &str) {
        if let Some(path) = self.output_path() {
            self.output.warn(&format!("{mode} writes nothing to {}, which stays as it is", path.display()));
        }
    }

    /// What came in, as text.
    fn input(&self) -> Result<Input, CommandError> {
        let path = self.line.value("secret-file").map(PathBuf::from);
        let (name, bytes) = match &path {
            Some(path) => {
                let bytes = files::read_bytes(path).map_err(|error| {
                    CommandError::new(error.kind, "Could not read file specified with --secret-file")
                        .hint(error.cause.to_string())
                })?;
                (path.clone(), bytes)
            }
            None => {
                self.tell_terminal("expecting json/yaml k8s resource in stdin");
                let bytes =
                    files::read_bounded(io::stdin().lock(), files::FILE_BYTES_MAX).map_err(|error| {
                        CommandError::on(Kind::Read, "standard input", files::plain_words(&error))
                            .hint("name a file with `--secret-file`")
                    })?;
                (PathBuf::from("standard input"), bytes)
            }
        };
        let content = bytes.into_text().map_err(|_| {
            CommandError::on(Kind::Read, name.display(), "not UTF-8 text").hint("save it as UTF-8")
        })?;
        Ok(Input { name, path, content })
    }

    /// Tells a person at a terminal that something is waited for.
    fn tell_terminal(&self, what: &str) {
        if output::stdin_is_terminal() {
            self.output.note(&format!("(tty detected: {what})"));
        }
    }

    /// The objects in what came in.
    fn objects(&self, name: &Path, content: &SecretText) -> Result<Vec<Manifest>, CommandError> {
        let found = manifest::read(&name.display().to_string(), content, Some(self.output))?;
        if found.is_empty() {
            return Err(CommandError::new(
                Kind::NoDocument,
                "no secrets found. Ensure the input is valid and UTF-8 encoded",
            )
            .hint("give a manifest with `--secret-file`, or on standard input"));
        }
        Ok(found)
    }

    /// How the cluster is reached.
    fn cluster(&self) -> Result<ClusterOptions, CommandError> {
        let line = &self.line;
        let limit = line.text_or_default("request-timeout");
        let secret = |name: &str| line.text(name).map(SecretText::new);
        Ok(ClusterOptions {
            kubeconfig: line.value("kubeconfig").map(PathBuf::from),
            context: line.text("context"),
            cluster: line.text("cluster"),
            user: line.text("user"),
            namespace: line.text("namespace"),
            server: line.text("server"),
            certificate_authority: line.text("certificate-authority"),
            insecure_skip_tls_verify: line.is_on("insecure-skip-tls-verify"),
            tls_server_name: line.text("tls-server-name"),
            proxy_url: line.text("proxy-url"),
            disable_compression: line.is_on("disable-compression"),
            token: secret("token"),
            username: line.text("username"),
            password: secret("password"),
            client_certificate: line.text("client-certificate"),
            client_key: line.text("client-key"),
            impersonate: line.text("as"),
            impersonate_uid: line.text("as-uid"),
            impersonate_groups: line
                .all("as-group")
                .iter()
                .map(|group| group.to_string_lossy().into_owned())
                .collect(),
            request_timeout: duration(&limit).map(Some).ok_or_else(|| {
                CommandError::general(format!("invalid timeout value \"{limit}\""))
                    .hint("give `--request-timeout` as in 30s, 2m or 1h; 0 for no limit")
            })?,
        })
    }
}

/// A time as in `1h30m`, `1.5s` or `250ms`; seconds if nothing says what it counts.
fn duration(text: &str) -> Option<Duration> {
    if text.is_empty() {
        return Some(Duration::ZERO);
    }
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let (mut total, mut rest) = (0.0, text);
    while !rest.is_empty() {
        let digits = rest.find(|next: char| !next.is_ascii_digit() && next != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let units =
            [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
        let (unit, seconds) = units.into_iter().find(|(unit, _)| rest[digits..].starts_with(unit))?;
        total += number * seconds;
        rest = &rest[digits + unit.len()..];
    }
    Duration::try_from_secs_f64(total).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_there() {
        for (text, milliseconds) in [
            ("0", Some(0)),
            ("", Some(0)),
            ("5", Some(5000)),
            ("250ms", Some(250)),
            ("1m30s", Some(90_000)),
            ("1.5s", Some(1500)),
            ("1h", Some(3_600_000)),
            ("1d", None),
            ("s", None),
            ("-1s", None),
            ("1m3", None),
        ] {
            assert_eq!(duration(text), milliseconds.map(Duration::from_millis), "{text}");
        }
    }
}

//! The situation of this machine: what a command would find before it looks at any file.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::Report;
use crate::commands::Context;
use crate::error::CommandError;
use crate::identities::Keyring;
use crate::private::PrivateFolder;
use crate::{config, environment};

/// What this build can do beyond age, and whether it can.
const FEATURES: [(&str, bool); 8] = [
    ("age-plugin", cfg!(feature = "age-plugin")),
    ("age-ssh", cfg!(feature = "age-ssh")),
    ("aws", cfg!(feature = "aws")),
    ("azure", cfg!(feature = "azure")),
    ("gcp", cfg!(feature = "gcp")),
    ("key-service", cfg!(feature = "key-service")),
    ("pgp", cfg!(feature = "pgp")),
    ("vault", cfg!(feature = "vault")),
];

/// Explains the machine.
pub(super) fn explain(context: &Context, report: &mut Report) -> Result<(), CommandError> {
    let version = env!("CARGO_PKG_VERSION");
    let features: Vec<&str> = FEATURES.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect();
    report.section(format!("lacre {version}"));
    report.line(format!("built with {}", features.join(", ")));
    report.value("version", version);
    report.value("features", features);
    configuration(context, report);
    identities(report, context);
    programs(report);
    protection(report);
    Ok(())
}

fn configuration(context: &Context, report: &mut Report) {
    report.section("configuration for files in this folder");
    match config::survey(Path::new("any"), context) {
        Ok(Some(survey)) => {
            report.line(format!("{}, with {} creation rules", survey.config.display(), survey.rules.len()));
            report.value("configuration", json!(survey.config));
        }
        Ok(None) => {
            report.line("none: make one with `lacre init`");
            report.value("configuration", Value::Null);
        }
        Err(error) => report.trouble(error.cause.to_string()),
    }
}

fn identities(report: &mut Report, context: &Context) {
    report.section("identities");
    let keyring = Keyring::survey(&context.global);
    let mut told = Vec::new();
    for (name, outcome) in keyring.places() {
        report.line(format!("{name}: {outcome}"));
        told.push(json!({ "place": name, "outcome": outcome }));
    }
    let found: Vec<String> = keyring.as_refs().iter().map(|identity| identity.public()).collect();
    found.iter().for_each(|public| report.line(format!("found: {public}")));
    if found.is_empty() {
        report.line("none found: make one with `lacre keygen`");
    }
    report.value("places", told);
    report.value("identities", found);
}

/// Programs that some kinds of keys and some commands need, and what they say they are.
fn programs(report: &mut Report) {
    report.section("programs");
    let gpg = environment::text("SOPS_GPG_EXEC").unwrap_or_else(|| "gpg".to_owned());
    let mut told = serde_json::Map::new();
    for (name, program, words, without) in [
        ("gpg", gpg.as_str(), &["--version"][..], "OpenPGP keys in an agent or on a card cannot be used"),
        (
            "gpg-agent",
            "gpg-connect-agent",
            &["--no-autostart", "GETINFO version", "/bye"],
            "no agent runs; gpg starts one",
        ),
        ("git", "git", &["--version"], "no readable diffs, and no `lacre check --staged`"),
    ] {
        match first_line(program, words) {
            Some(line) => {
                report.line(format!("{name}: {line}"));
                told.insert(name.to_owned(), line.into());
            }
            None => {
                report.line(format!("{name}: none: {without}"));
                told.insert(name.to_owned(), Value::Null);
            }
        }
    }
    let home = environment::text("GNUPGHOME").unwrap_or_else(|| "~/.gnupg".to_owned());
    report.line(format!("OpenPGP keys are in {home}"));
    report.value("programs", told);
}

/// Where plaintext may come to lie.
fn protection(report: &mut Report) {
    report.section("protection");
    let memory = PrivateFolder::in_memory();
    let place = memory.as_ref().map(|folder| folder.place(Path::new("")));
    let parent = place.as_deref().and_then(|place| place.components().as_path().parent()).map(Path::to_owned);
    match &parent {
        Some(parent) => report.line(format!("edit buffers are in memory, in {}", parent.display())),
        None => report.trouble(
            "no memory file system for edit buffers: set XDG_RUNTIME_DIR to a folder on tmpfs that you can write to",
        ),
    }
    let limit = rustix::process::getrlimit(rustix::process::Resource::Core);
    match limit.maximum {
        Some(0) => report.line("core dumps are off while lacre runs"),
        _ => report.trouble("core dumps are on: whatever crashes may leave secrets on a disk"),
    }
    report.value("buffers", json!(parent));
    report.value("core_dumps", limit.maximum != Some(0));
}

/// The first line that a program prints, when it ends well.
fn first_line(program: &str, words: &[&str]) -> Option<String> {
    let done = Command::new(program).args(words).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let line = text.lines().next()?.trim();
    let line = line.strip_prefix("D ").unwrap_or(line);
    (done.status.success() && !line.is_empty()).then(|| line.to_owned())
}

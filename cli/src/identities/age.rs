//! The places where sops looks for age identities.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lacre_crypto::recipient::age::read_identities;
use lacre_crypto::recipient::{Identity, KEY_FILE_BYTES_MAX, RecipientId};
use lacre_crypto::{SecretBytes, SecretText};

use super::Keyring;
use crate::files;

/// Adds what the places hold to `keyring`, in their fixed order.
pub(super) fn gather(wanted: &[RecipientId], keyring: &mut Keyring) {
    match std::env::var("SOPS_AGE_KEY").ok().filter(|text| !text.is_empty()) {
        Some(text) => take(keyring, "SOPS_AGE_KEY", parse(&one_per_line(&SecretText::new(text)))),
        None => keyring.note("SOPS_AGE_KEY", "not set"),
    }
    match path_variable("SOPS_AGE_KEY_FILE") {
        Some(path) => take(keyring, &format!("SOPS_AGE_KEY_FILE {}", path.display()), read(&path)),
        None => keyring.note("SOPS_AGE_KEY_FILE", "not set"),
    }
    match std::env::var("SOPS_AGE_KEY_CMD").ok().filter(|words| !words.trim().is_empty()) {
        Some(words) => gather_from_command(&words, wanted, keyring),
        None => keyring.note("SOPS_AGE_KEY_CMD", "not set"),
    }
    match default_file() {
        Some(path) if path.exists() => take(keyring, &path.display().to_string(), read(&path)),
        Some(path) => keyring.note(path.display().to_string(), "not there"),
        None => keyring.note("sops/age/keys.txt", "no home folder is known"),
    }
}

/// The user's own key file, where sops looks for it: `sops/age/keys.txt` in the folder for configuration.
pub(crate) fn default_file() -> Option<PathBuf> {
    let configured = path_variable("XDG_CONFIG_HOME");
    let below_home = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".config" };
    let folder = configured.or_else(|| Some(path_variable("HOME")?.join(below_home)))?;
    Some(folder.join("sops/age/keys.txt"))
}

type Found = Result<Vec<Box<dyn Identity>>, String>;

fn take(keyring: &mut Keyring, name: &str, found: Found) {
    match found {
        Ok(identities) => keyring.add(name, identities),
        Err(reason) => keyring.note(name, reason),
    }
}

fn read(path: &Path) -> Found {
    let file = File::open(path).map_err(|error| files::plain_words(&error))?;
    let bytes =
        files::read_bounded(file, KEY_FILE_BYTES_MAX as u64).map_err(|error| files::plain_words(&error))?;
    parse_bytes(bytes)
}

fn parse_bytes(bytes: SecretBytes) -> Found {
    parse(&bytes.into_text().map_err(|_| "not text".to_owned())?)
}

fn parse(text: &SecretText) -> Found {
    let identities = read_identities(text).map_err(|error| error.to_string())?;
    Ok(identities.into_iter().map(|identity| Box::new(identity) as Box<dyn Identity>).collect())
}

/// Runs the command once for each recipient that nothing found so far answers to, since it is told which one is
/// wanted and may ask a person.
fn gather_from_command(words: &str, wanted: &[RecipientId], keyring: &mut Keyring) {
    let Some(words) = shlex::split(words).filter(|words| !words.is_empty()) else {
        return keyring.note("SOPS_AGE_KEY_CMD", "has an open quote");
    };
    for id in wanted {
        let RecipientId::Age(recipient) = id else { continue };
        if keyring.identities.iter().any(|identity| identity.public() == id.to_string()) {
            continue;
        }
        take(keyring, &format!("SOPS_AGE_KEY_CMD for {recipient}"), run(&words, recipient));
    }
}

fn run(words: &[String], recipient: &str) -> Found {
    let spawned = Command::new(&words[0])
        .args(&words[1..])
        .env("SOPS_AGE_RECIPIENT", recipient)
        .stdout(Stdio::piped())
        .spawn();
    let mut child = spawned.map_err(|error| format!("{}: {}", words[0], files::plain_words(&error)))?;
    let bytes = child.stdout.take().map(|stdout| files::read_bounded(stdout, KEY_FILE_BYTES_MAX as u64));
    let status = child.wait().map_err(|error| files::plain_words(&error))?;
    if !status.success() {
        return Err(format!("{} ended with {status}", words[0]));
    }
    parse_bytes(bytes.transpose().map_err(|error| files::plain_words(&error))?.unwrap_or_default())
}

/// Keys may stand on one line with spaces between them; comments keep their line.
fn one_per_line(text: &SecretText) -> SecretText {
    let mut lines = String::with_capacity(text.len() + 1);
    for line in text.expose_secret().lines() {
        match line.trim_start().starts_with('#') {
            true => lines += line,
            false => line.split_whitespace().for_each(|word| lines.extend([word, "\n"])),
        }
        lines += "\n";
    }
    SecretText::new(lines)
}

fn path_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_on_one_line_are_told_apart() {
        let text = one_per_line(&"# a b\nK1 K2\n\nK3".into());
        let words: Vec<_> = text.expose_secret().lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(words, ["# a b", "K1", "K2", "K3"]);
    }

    #[test]
    fn a_command_that_fails_says_so_without_its_output() {
        let failure = run(&["sh".into(), "-c".into(), "echo CANARY; exit 3".into()], "age1x").err().unwrap();
        assert!(failure.contains("exit status: 3") && !failure.contains("CANARY"), "{failure}");
    }
}

//! The places where sops looks for age identities, and SSH keys that are used as such.
//!
//! Files and variables come first, in one order: `SOPS_AGE_SSH_PRIVATE_KEY_FILE`, `~/.ssh/id_ed25519`, `~/.ssh/id_rsa`,
//! `SOPS_AGE_KEY`, `SOPS_AGE_KEY_FILE`, the user's `sops/age/keys.txt`. Then the programs of
//! `SOPS_AGE_SSH_PRIVATE_KEY_CMD` and `SOPS_AGE_KEY_CMD`, for recipients that nothing so far answers to, since they may
//! ask a person. All of it is read once in a run, however many files are opened, so nobody is asked twice.

mod programs;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use lacre_crypto::recipient::age::{Unlocking, is_locked, read_key_file};
use lacre_crypto::recipient::{Effort, Identity, KEY_FILE_BYTES_MAX, RecipientId, UnwrapError, WrappedKey};
use lacre_crypto::{SecretBytes, SecretText};

use super::Keyring;
use super::terminal::Terminal;
use crate::{environment, files};

/// The plugin that gives the passphrase of a key file where nobody is there to be asked.
const PASSPHRASE_PLUGIN: &str = "batchpass";

/// Where that plugin takes the passphrase from. Either is the user's word that it shall.
const PASSPHRASE_VARIABLES: [&str; 2] = ["AGE_PASSPHRASE", "AGE_PASSPHRASE_FD"];

/// Adds what the places hold to `keyring`, in their fixed order, if one of `wanted` is an age key.
pub(super) fn gather(wanted: &[RecipientId], keyring: &mut Keyring) {
    if !wanted.iter().any(|id| matches!(id, RecipientId::Age(_))) {
        return;
    }
    gather_silently(keyring);
    programs::gather(wanted, keyring);
}

/// Adds what files and variables hold to `keyring`. No program is run, so nobody is asked.
pub(super) fn gather_silently(keyring: &mut Keyring) {
    static PLACES: OnceLock<Vec<Place>> = OnceLock::new();
    PLACES.get_or_init(read_places).iter().for_each(|place| place.add_to(keyring));
}

/// The user's own key file, where sops looks for it: `sops/age/keys.txt` in the folder for configuration.
pub(crate) fn default_file() -> Option<PathBuf> {
    let configured = path_variable("XDG_CONFIG_HOME");
    let below_home = if cfg!(target_os = "macos") { "Library/Application Support" } else { ".config" };
    let folder = configured.or_else(|| Some(path_variable("HOME")?.join(below_home)))?;
    Some(folder.join("sops/age/keys.txt"))
}

/// How keys that are not there in the clear are reached: by asking at the terminal, or a plugin that was told.
pub(crate) fn unlocking() -> Unlocking {
    let told = PASSPHRASE_VARIABLES.iter().any(|name| text_variable(name).is_some());
    let passphrase_plugin = told.then(|| PASSPHRASE_PLUGIN.to_owned());
    Unlocking { prompt: Arc::new(Terminal), passphrase_plugin }
}

type Found = Result<Vec<Box<dyn Identity>>, String>;

/// A place that was read, and what it holds or why it holds nothing.
struct Place {
    name: String,
    held: Result<Vec<Arc<dyn Identity>>, String>,
}

impl Place {
    fn new(name: impl Into<String>, found: Found) -> Self {
        let held = found.map(|identities| identities.into_iter().map(Arc::from).collect());
        Self { name: name.into(), held }
    }

    fn add_to(&self, keyring: &mut Keyring) {
        let shared = |identity: &Arc<dyn Identity>| Box::new(Shared(identity.clone())) as Box<dyn Identity>;
        match &self.held {
            Ok(identities) => keyring.add(&self.name, identities.iter().map(shared).collect()),
            Err(reason) => keyring.note(&self.name, reason),
        }
    }
}

/// An identity that several key rings hold, with whatever was unlocked in it.
struct Shared(Arc<dyn Identity>);

impl Identity for Shared {
    fn public(&self) -> String {
        self.0.public()
    }

    fn effort(&self) -> Effort {
        self.0.effort()
    }

    fn unwrap(&self, wrapped: &WrappedKey) -> Option<Result<SecretBytes, UnwrapError>> {
        self.0.unwrap(wrapped)
    }
}

fn read_places() -> Vec<Place> {
    let unlocking = unlocking();
    let mut places = Vec::new();
    let ssh_file = path_variable("SOPS_AGE_SSH_PRIVATE_KEY_FILE");
    places.push(file_place("SOPS_AGE_SSH_PRIVATE_KEY_FILE", ssh_file, |path| read_ssh(path, &unlocking)));
    for name in ["id_ed25519", "id_rsa"] {
        let path = path_variable("HOME").map(|home| home.join(".ssh").join(name));
        places.push(usual_place(&format!("~/.ssh/{name}"), path, |path| read_ssh(path, &unlocking)));
    }
    places.push(match text_variable("SOPS_AGE_KEY") {
        Some(text) => Place::new("SOPS_AGE_KEY", parse_variable(text, &unlocking)),
        None => Place::new("SOPS_AGE_KEY", Err("not set".to_owned())),
    });
    let file = path_variable("SOPS_AGE_KEY_FILE");
    places.push(file_place("SOPS_AGE_KEY_FILE", file, |path| read(path, &unlocking)));
    places.push(usual_place("sops/age/keys.txt", default_file(), |path| read(path, &unlocking)));
    places
}

/// A file that a variable names.
fn file_place(variable: &str, path: Option<PathBuf>, read: impl Fn(&Path) -> Found) -> Place {
    match path {
        Some(path) => Place::new(format!("{variable} {}", path.display()), read(&path)),
        None => Place::new(variable, Err("not set".to_owned())),
    }
}

/// A file that is looked for without being named.
fn usual_place(name: &str, path: Option<PathBuf>, read: impl Fn(&Path) -> Found) -> Place {
    match path {
        Some(path) if path.exists() => Place::new(path.display().to_string(), read(&path)),
        Some(path) => Place::new(path.display().to_string(), Err("not there".to_owned())),
        None => Place::new(name, Err("no home folder is known".to_owned())),
    }
}

fn read(path: &Path, unlocking: &Unlocking) -> Found {
    parse(read_file(path)?, &path.display().to_string(), unlocking)
}

fn read_ssh(path: &Path, unlocking: &Unlocking) -> Found {
    parse_ssh(read_file(path)?, &path.display().to_string(), unlocking)
}

fn read_file(path: &Path) -> Result<SecretBytes, String> {
    let file = File::open(path).map_err(|error| files::plain_words(&error))?;
    files::read_bounded(file, KEY_FILE_BYTES_MAX as u64).map_err(|error| files::plain_words(&error))
}

fn parse(bytes: SecretBytes, name: &str, unlocking: &Unlocking) -> Found {
    read_key_file(bytes, name, unlocking).map_err(|error| error.to_string())
}

#[cfg(feature = "age-ssh")]
fn parse_ssh(bytes: SecretBytes, name: &str, unlocking: &Unlocking) -> Found {
    let text = bytes.into_text().map_err(|_| "not text".to_owned())?;
    let key = lacre_crypto::recipient::age::read_ssh_identity(&text, name, &unlocking.prompt);
    key.map(|key| vec![key]).map_err(|error| error.to_string())
}

#[cfg(not(feature = "age-ssh"))]
fn parse_ssh(_: SecretBytes, _: &str, _: &Unlocking) -> Found {
    Err("this build has no SSH keys".to_owned())
}

fn parse_variable(text: String, unlocking: &Unlocking) -> Found {
    let text = SecretText::new(text);
    let bytes = text.clone().into_bytes();
    let bytes = if is_locked(&bytes) { bytes } else { one_per_line(&text).into_bytes() };
    parse(bytes, "in SOPS_AGE_KEY", unlocking)
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
    environment::words(name).map(PathBuf::from)
}

fn text_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.trim().is_empty())
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
}

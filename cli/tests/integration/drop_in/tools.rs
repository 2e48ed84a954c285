//! The two tools, each in a folder of its own.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sandbox::{self, Sandbox};
use tempfile::TempDir;
use xtask::peers::sops::Sops;

/// How long one command may take; none is expected to come near it.
const SECONDS_MAX: &str = "20";

/// The real sops, and our link of that name.
pub(super) struct Twins {
    sandbox: Sandbox,
    programs: [PathBuf; 2],
}

/// How a command ended.
pub(super) struct Ended {
    pub(super) code: i32,
    pub(super) output: Vec<u8>,
    errors: Vec<u8>,
    pub(super) files: BTreeMap<String, Vec<u8>>,
}

impl Ended {
    pub(super) fn errors(&self) -> String {
        String::from_utf8_lossy(&self.errors).into_owned()
    }
}

impl Twins {
    pub(super) fn new() -> Self {
        let sandbox = Sandbox::new();
        let link = sandbox.home().join("sops");
        std::os::unix::fs::symlink(sandbox::lacre(), &link).unwrap();
        let stock = Sops::v3_13().unwrap().program().to_owned();
        Self { sandbox, programs: [stock, link] }
    }

    /// Runs the same words with both, each in a folder that holds `files`.
    pub(super) fn run(
        &self,
        words: &[String],
        env: &[(String, String)],
        stdin: Option<&[u8]>,
        files: &BTreeMap<String, Vec<u8>>,
    ) -> [Ended; 2] {
        [0, 1].map(|side| {
            let folder = tempfile::tempdir().unwrap();
            fill(folder.path(), files);
            let mut command = self.command(side, &folder);
            command.args(words).envs(env.iter().cloned());
            let done = match stdin {
                Some(input) => sandbox::with_input(command, input),
                None => command.output().unwrap(),
            };
            Ended {
                code: done.status.code().unwrap_or(-1),
                output: done.stdout,
                errors: done.stderr,
                files: found(folder.path(), folder.path()),
            }
        })
    }

    /// `text` sealed by the real one.
    pub(super) fn seal_with_sops(&self, name: &str, text: &str, recipients: &str) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), text).unwrap();
        let done = self.command(0, &folder).args(["encrypt", "--age", recipients, name]).output().unwrap();
        assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
        done.stdout
    }

    /// Whether both are the same; what is sealed is opened by the other tool first.
    pub(super) fn compare(&self, what: &str, stock: &[u8], ours: &[u8]) -> Result<(), String> {
        // sops ends INI with a blank line of its own.
        let ends = |text: &[u8]| {
            if text.starts_with(b"[") { text.trim_ascii_end().to_owned() } else { text.to_owned() }
        };
        let same = |stock: &[u8], ours: &[u8]| ends(stock) == ends(ours);
        if same(stock, ours) {
            return Ok(());
        }
        let opened = match (sealed_form(stock), sealed_form(ours)) {
            (Some(form), Some(other)) if form == other => {
                [(1, stock), (0, ours)].map(|(side, text)| self.open(side, text, form))
            }
            _ => [stock, ours].map(|text| Ok(text.to_owned())),
        };
        match opened {
            [Ok(stock), Ok(ours)] if same(&stock, &ours) => Ok(()),
            [stock, ours] => {
                let shown = |side: Result<Vec<u8>, String>| {
                    side.map_or_else(|error| error, |text| String::from_utf8_lossy(&text).into_owned())
                };
                Err(format!("{what} differs\nstock:\n{}\nours:\n{}", shown(stock), shown(ours)))
            }
        }
    }

    fn open(&self, side: usize, text: &[u8], form: &str) -> Result<Vec<u8>, String> {
        let folder = tempfile::tempdir().unwrap();
        let name = format!("sealed.{form}");
        fs::write(folder.path().join(&name), text).unwrap();
        let mut command = self.command(side, &folder);
        let keys = ["ops", "stranger"].map(|role| fs::read_to_string(sandbox::key_file(role)).unwrap());
        command.env(
            "SOPS_AGE_KEY",
            keys.concat().lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n"),
        );
        let done = command.args(["decrypt", &name]).output().unwrap();
        match done.status.success() {
            true => Ok(done.stdout),
            false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
        }
    }

    fn command(&self, side: usize, folder: &TempDir) -> Command {
        // sops waits for a person, or for a reader of its pipe, in some places; no row is to do that.
        let mut command = self.sandbox.command("timeout");
        command.arg(SECONDS_MAX).arg(&self.programs[side]);
        command.current_dir(folder.path()).env("SOPS_DISABLE_VERSION_CHECK", "true");
        command.env("XDG_RUNTIME_DIR", self.sandbox.tmp());
        command
    }
}

/// `text` with recipients in it.
pub(super) fn filled(text: &str) -> String {
    let text = text.replace("{ops}", &sandbox::recipient("ops"));
    text.replace("{stranger}", &sandbox::recipient("stranger"))
}

/// The ending of a sealed text's name; nothing for one that is not sealed.
fn sealed_form(text: &[u8]) -> Option<&'static str> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.contains("ENC[AES256_GCM,"))?;
    match text {
        _ if text.starts_with('{') && text.contains("\"data\": \"ENC[") => Some("txt"),
        _ if text.starts_with('{') => Some("json"),
        _ if text.contains("\nsops:\n") => Some("yaml"),
        _ if text.contains("\n[sops]\n") => Some("ini"),
        _ if text.contains("\nsops_mac=") => Some("env"),
        _ => None,
    }
}

fn fill(folder: &Path, files: &BTreeMap<String, Vec<u8>>) {
    for (name, content) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        if name.ends_with(".sh") {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
}

fn found(root: &Path, folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => files.append(&mut found(root, &entry.path())),
            false => {
                let name = entry.path().strip_prefix(root).unwrap().display().to_string();
                files.insert(name, fs::read(entry.path()).unwrap());
            }
        }
    }
    files
}

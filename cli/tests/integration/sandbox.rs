//! A home of its own for one test: a work folder, an empty folder for temporary files, a clean environment.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// Folders of one test, removed with it.
pub(crate) struct Sandbox {
    root: TempDir,
}

/// The program under test.
pub(crate) fn lacre() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_lacre"))
}

/// The key file of a role.
pub(crate) fn key_file(role: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/keys/{role}.agekey"))
}

/// The age recipient of a role.
pub(crate) fn recipient(role: &str) -> String {
    let text = fs::read_to_string(key_file(role)).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("# public key: ")).unwrap();
    line.to_owned()
}

impl Sandbox {
    /// Folders `work`, `home` and `tmp`, and nothing in them.
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["work", "home", "tmp"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        Self { root }
    }

    /// Where commands run.
    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// Where temporary files would go; on no memory file system as far as the command knows.
    pub(crate) fn tmp(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    /// The user's home folder.
    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// Writes a file in the work folder.
    pub(crate) fn write(&self, name: &str, content: &str) {
        let path = self.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Reads a file in the work folder.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// A program in the work folder, with the ops identity and little else in its environment.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [lacre().parent().unwrap().to_owned()].into_iter().chain(std::env::split_paths(&path));
        command
            .env_clear()
            .env("PATH", std::env::join_paths(folders).unwrap())
            .env("HOME", self.home())
            .env("TMPDIR", self.tmp())
            .env("LC_ALL", "C.UTF-8")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("SOPS_AGE_KEY_FILE", key_file("ops"))
            .current_dir(self.work())
            .stdin(Stdio::null());
        command
    }

    /// Runs `lacre` with `words`.
    pub(crate) fn lacre(&self, words: &[&str]) -> Output {
        self.command(lacre()).args(words).output().unwrap()
    }

    /// Runs `lacre` with `words`, which must succeed, and gives its standard output.
    pub(crate) fn lacre_ok(&self, words: &[&str]) -> String {
        succeeded(self.lacre(words), words)
    }

    /// Runs git with `words`, which must succeed, and gives its standard output.
    pub(crate) fn git(&self, words: &[&str]) -> String {
        let identity = ["-c", "user.name=ops", "-c", "user.email=ops@example.org", "-c", "core.pager=cat"];
        succeeded(self.command("git").args(identity).args(words).output().unwrap(), words)
    }
}

/// Runs `command` with `input` on its standard input.
pub(crate) fn with_input(mut command: Command, input: &[u8]) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || {
        // A command that refuses early does not read its input; that is no failure of the test.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn succeeded(output: Output, words: &[&str]) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

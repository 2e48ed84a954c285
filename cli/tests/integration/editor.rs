//! What becomes of the buffer when editing does not end as planned.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::sandbox::{self, Sandbox};

fn sealed() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a.yaml", "a: b\n");
    sandbox.lacre_ok(&["encrypt", "--in-place", "--age", &sandbox::recipient("ops"), "a.yaml"]);
    sandbox
}

/// Where the editor said that the buffer is.
fn noted(sandbox: &Sandbox) -> Option<PathBuf> {
    let text = fs::read_to_string(sandbox.home().join("buffer")).ok()?;
    text.ends_with('\n').then(|| PathBuf::from(text.trim()))
}

/// Where a buffer is when it was kept: in a folder that is not taken for the leftover of a killed process.
fn kept(buffer: &Path) -> PathBuf {
    let folder = buffer.parent().unwrap();
    let name = format!("kept-{}", folder.file_name().unwrap().display());
    folder.with_file_name(name).join(buffer.file_name().unwrap())
}

#[test]
fn a_signal_wipes_the_buffer_and_leaves_the_file() {
    for (signal, code) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
        let sandbox = sealed();
        let before = sandbox.read("a.yaml");
        let editor = "echo c: d >> $0; echo $0 > $HOME/buffer; exec sleep 60";
        let mut command = sandbox.command(sandbox::lacre());
        command.stderr(Stdio::null());
        let mut child =
            command.args(["edit", "a.yaml"]).env("EDITOR", format!("sh -c '{editor}'")).spawn().unwrap();
        let started = std::time::Instant::now();
        let buffer = loop {
            if let Some(buffer) = noted(&sandbox) {
                break buffer;
            }
            assert!(started.elapsed() < Duration::from_secs(20), "the editor did not start");
            std::thread::sleep(Duration::from_millis(10));
        };
        assert!(buffer.exists());
        let kill = ["-s", signal, &child.id().to_string()];
        assert!(sandbox.command("kill").args(kill).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        assert!(!buffer.parent().unwrap().exists(), "{signal}: the buffer is still there");
        assert_eq!(sandbox.read("a.yaml"), before);
    }
}

#[test]
fn what_a_killed_edit_left_is_wiped_by_the_next_command_that_needs_such_a_place() {
    let sandbox = sealed();
    let editor = "echo c: d >> $0; echo $0 > $HOME/buffer; kill -KILL $PPID";
    let mut command = sandbox.command(sandbox::lacre());
    let output =
        command.args(["edit", "a.yaml"]).env("EDITOR", format!("sh -c '{editor}'")).output().unwrap();
    assert_eq!(output.status.code(), None);
    let buffer = noted(&sandbox).unwrap();
    sandbox.lacre(&["exec-file", "--no-fifo", "a.yaml", "true"]);
    assert!(!buffer.parent().unwrap().exists());
}

#[test]
fn an_edit_that_cannot_be_sealed_is_kept_when_nobody_answers() {
    let sandbox = sealed();
    let before = sandbox.read("a.yaml");
    let editor = "echo \"c: [\" >> $0; echo $0 > $HOME/buffer";
    let mut command = sandbox.command(sandbox::lacre());
    let output =
        command.args(["edit", "a.yaml"]).env("EDITOR", format!("sh -c '{editor}'")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let buffer = kept(&noted(&sandbox).unwrap());
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains(&format!("your edit is kept in {}", buffer.display())), "{errors}");
    assert_eq!(fs::read_to_string(&buffer).unwrap(), "a: b\nc: [\n");
    assert_eq!(sandbox.read("a.yaml"), before);
    fs::remove_dir_all(buffer.parent().unwrap()).unwrap();
}

#[test]
fn a_file_that_changed_while_the_editor_ran_is_left_alone() {
    let sandbox = sealed();
    let editor = "echo c: d >> $0; echo $0 > $HOME/buffer; echo other > a.yaml";
    let mut command = sandbox.command(sandbox::lacre());
    let output =
        command.args(["edit", "a.yaml"]).env("EDITOR", format!("sh -c '{editor}'")).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(sandbox.read("a.yaml"), "other\n");
    let buffer = kept(&noted(&sandbox).unwrap());
    assert_eq!(fs::read_to_string(&buffer).unwrap(), "a: b\nc: d\n", "the edit is lost");
    fs::remove_dir_all(buffer.parent().unwrap()).unwrap();
}

#[test]
fn plaintext_goes_to_a_disk_only_where_the_caller_says_so() {
    let sandbox = sealed();
    let mut command = sandbox.command(sandbox::lacre());
    command.args(["edit", "--buffer-directory"]).arg(sandbox.tmp()).arg("a.yaml");
    command.env("EDITOR", "sh -c 'echo $0 > $HOME/buffer'").output().unwrap();
    let buffer = noted(&sandbox).unwrap();
    assert!(buffer.starts_with(sandbox.tmp()) && !buffer.exists());
    assert_eq!(fs::read_dir(sandbox.tmp()).unwrap().count(), 0);
}

//! How files are replaced, seen from outside.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Stdio;

use crate::sandbox::{self, Sandbox};

fn sealed() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a.yaml", "a: b\n");
    sandbox.lacre_ok(&["encrypt", "--in-place", "--age", &sandbox::recipient("ops"), "a.yaml"]);
    sandbox
}

fn mode(sandbox: &Sandbox, name: &str) -> u32 {
    fs::metadata(sandbox.work().join(name)).unwrap().mode() & 0o777
}

#[test]
fn plaintext_is_for_its_owner_alone() {
    let sandbox = sealed();
    sandbox.lacre_ok(&["decrypt", "--output", "plain.yaml", "a.yaml"]);
    assert_eq!(mode(&sandbox, "plain.yaml"), 0o600);
    fs::set_permissions(sandbox.work().join("plain.yaml"), Permissions::from_mode(0o644)).unwrap();
    sandbox.lacre_ok(&["decrypt", "--output", "plain.yaml", "a.yaml"]);
    assert_eq!(mode(&sandbox, "plain.yaml"), 0o600, "a file that was there stayed readable for others");
    fs::set_permissions(sandbox.work().join("a.yaml"), Permissions::from_mode(0o644)).unwrap();
    sandbox.lacre_ok(&["decrypt", "--in-place", "a.yaml"]);
    assert_eq!(mode(&sandbox, "a.yaml"), 0o600);
    sandbox.lacre_ok(&["keygen", "--output", "x.agekey"]);
    assert_eq!(mode(&sandbox, "x.agekey"), 0o600);
}

#[test]
fn mode_and_link_survive_a_write() {
    let sandbox = sealed();
    fs::set_permissions(sandbox.work().join("a.yaml"), Permissions::from_mode(0o664)).unwrap();
    std::os::unix::fs::symlink("a.yaml", sandbox.work().join("link.yaml")).unwrap();
    let before = sandbox.read("a.yaml");
    sandbox.lacre_ok(&["set", "link.yaml", r#"["a"]"#, "1"]);
    assert_ne!(sandbox.read("a.yaml"), before);
    assert_eq!(mode(&sandbox, "a.yaml"), 0o664);
    assert!(fs::symlink_metadata(sandbox.work().join("link.yaml")).unwrap().is_symlink());
    assert_eq!(fs::read_dir(sandbox.work()).unwrap().count(), 2, "a temporary file stayed behind");
}

#[test]
fn streams_are_written_directly() {
    let sandbox = sealed();
    let stdout = sandbox.lacre_ok(&["decrypt", "--output", "/dev/stdout", "a.yaml"]);
    assert_eq!(stdout, "a: b\n");
    assert!(sandbox.command("mkfifo").arg("pipe").status().unwrap().success());
    let reader = sandbox.command("cat").arg("pipe").stdout(Stdio::piped()).spawn().unwrap();
    sandbox.lacre_ok(&["decrypt", "--output", "pipe", "a.yaml"]);
    assert_eq!(reader.wait_with_output().unwrap().stdout, b"a: b\n");
}

#[test]
fn standard_input_can_be_named_as_a_file() {
    let sandbox = sealed();
    for name in ["-", "/dev/stdin"] {
        let mut command = sandbox.command(sandbox::lacre());
        command.args(["decrypt", "--input-type", "yaml", name]);
        let output = sandbox::with_input(command, sandbox.read("a.yaml").as_bytes());
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "a: b\n",
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn a_stream_is_not_changed_in_place() {
    let sandbox = sealed();
    let mut command = sandbox.command(sandbox::lacre());
    command.args(["decrypt", "--in-place", "--input-type", "yaml", "/dev/stdin"]);
    let output = sandbox::with_input(command, sandbox.read("a.yaml").as_bytes());
    assert!(!output.status.success());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.starts_with("error: /dev/stdin cannot be changed in place"), "{told}");
}

#[test]
fn what_is_not_text_is_refused_with_its_place() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.work().join("a.yaml"), b"a: \xff\n").unwrap();
    let output = sandbox.lacre(&["encrypt", "--age", &sandbox::recipient("ops"), "a.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: a.yaml: line 1, column 4: not UTF-8 text\n\
         hint: save it as UTF-8, or seal all of it as one value with `--input-type binary`\n"
    );
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let sandbox = sealed();
    let mut command = sandbox.command("sh");
    let script = "trap '' PIPE; { lacre decrypt a.yaml; echo $? >&2; } | true";
    let output = command.args(["-c", script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "0\n");
}

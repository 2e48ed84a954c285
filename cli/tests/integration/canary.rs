//! A secret value shows up where it was asked for, and nowhere else: no message, no argument, no temporary file.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::sandbox::{self, Sandbox};

const CANARY: &str = "hunter2-CANARY";

/// Looks for the canary in every file below `folder`.
fn files_with_canary(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with_canary(&path));
        } else if String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).contains(CANARY) {
            found.push(path.display().to_string());
        }
    }
    found
}

fn assert_silent(output: &Output, what: &str) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("CANARY"), "{what}: {errors}");
}

/// A sealed file with the canary in it, and no other trace of it.
fn sealed() -> Sandbox {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(sandbox::lacre());
    command.args(["encrypt", "--age", &sandbox::recipient("ops"), "--filename-override", "a.yaml"]);
    let output =
        sandbox::with_input(command, format!("# {CANARY}\npassword: {CANARY}\nother: 1\n").as_bytes());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    sandbox.write("a.yaml", &String::from_utf8(output.stdout).unwrap());
    assert_eq!(files_with_canary(&sandbox.work()), Vec::<String>::new());
    sandbox
}

#[test]
fn no_command_tells_a_secret_on_standard_error() {
    let sandbox = sealed();
    for words in [
        &["decrypt", "a.yaml"][..],
        &["decrypt", "--extract", r#"["password"]["deeper"]"#, "a.yaml"],
        &["decrypt", "--extract", r#"["nope"]"#, "a.yaml"],
        &["set", "a.yaml", r#"["other"]"#, "2"],
        &["rotate", "--in-place", "a.yaml"],
        &["reseal", "a.yaml"],
        &["updatekeys", "--yes", "a.yaml"],
        &["textconv", "a.yaml"],
        &["encrypt", "a.yaml"],
        &["filestatus", "a.yaml"],
        &["groups", "add", "--file", "a.yaml", "--age", "nobody"],
        &["groups", "delete", "--file", "a.yaml", "7"],
        &["exec-env", "a.yaml", "--", "no-such-program"],
        &["exec-env", "a.yaml", "exit 3"],
        &["exec-file", "a.yaml", "--", "no-such-program", "{}"],
        &["exec-file", "--no-fifo", "a.yaml", "exit 3"],
        &["unset", "a.yaml", r#"["password"]["deeper"]"#],
        &["unset", "a.yaml", r#"["other"]"#],
    ] {
        assert_silent(&sandbox.lacre(words), &format!("{words:?}"));
    }
    assert_eq!(files_with_canary(&sandbox.work()), Vec::<String>::new());
    assert_eq!(fs::read_dir(sandbox.tmp()).unwrap().count(), 0);
}

#[test]
fn plaintext_that_cannot_be_sealed_is_not_repeated() {
    let sandbox = Sandbox::new();
    let ops = sandbox::recipient("ops");
    for (name, text) in [
        ("a.yaml", format!("a: {CANARY}\na: {CANARY}\n")),
        ("a.yaml", format!("a: [{CANARY}\n")),
        ("a.yaml", format!("a: !!int {CANARY}\n")),
        ("a.yaml", format!("- {CANARY}\n")),
        ("a.yaml", format!("a: &x {CANARY}\nb_unencrypted: *x\n")),
        ("a.json", format!("{{\"a\": \"{CANARY}\" x}}")),
        ("a.json", format!("{{\"a\": {CANARY}}}")),
        ("a.json", format!("[\"{CANARY}\"]")),
    ] {
        sandbox.write(name, &text);
        let output = sandbox.lacre(&["encrypt", "--in-place", "--age", &ops, name]);
        assert!(!output.status.success(), "{text} was sealed");
        assert_silent(&output, &text);
        assert_eq!(sandbox.read(name), text);
    }
    assert_eq!(fs::read_dir(sandbox.tmp()).unwrap().count(), 0);
}

#[test]
fn while_an_editor_runs_plaintext_is_in_memory_alone() {
    let sandbox = sealed();
    let editor = r#"#!/bin/sh
echo "$@" >> "$HOME/arguments"
tr '\0' ' ' < /proc/$PPID/cmdline >> "$HOME/arguments"
env >> "$HOME/environment"
stat -f -c %T "$1" > "$HOME/system"
stat -c %a "$1" "$(dirname "$1")" > "$HOME/modes"
grep -rl hunter2-CANARY "$HOME/.." > "$HOME/found"
echo "new: value" >> "$1"
"#;
    let program = sandbox.home().join("editor");
    fs::write(&program, editor).unwrap();
    let mut command = sandbox.command("sh");
    command.args(["-c", "chmod +x $HOME/editor && EDITOR=$HOME/editor exec lacre edit a.yaml"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_silent(&output, "edit");
    let noted = |name: &str| fs::read_to_string(sandbox.home().join(name)).unwrap();
    assert_eq!(noted("system"), "tmpfs\n");
    assert_eq!(noted("modes"), "600\n700\n");
    assert_eq!(
        noted("found").replace(&format!("{}/editor", sandbox.home().join("..").display()), ""),
        noted("found")
    );
    let found: Vec<String> =
        noted("found").lines().filter(|line| !line.ends_with("/editor")).map(str::to_owned).collect();
    assert_eq!(found, Vec::<String>::new(), "plaintext on a disk");
    assert!(!noted("arguments").contains("CANARY") && !noted("environment").contains("CANARY"));
    let buffer = noted("arguments").split_whitespace().next().unwrap().to_owned();
    assert!(!Path::new(&buffer).parent().unwrap().exists(), "the buffer is still there");
}

#[test]
fn key_material_is_not_repeated() {
    let sandbox = sealed();
    let secret = "AGE-SECRET-KEY-1CANARY";
    for (variable, value) in
        [("SOPS_AGE_KEY", secret.to_owned()), ("SOPS_AGE_KEY_CMD", format!("echo {CANARY}"))]
    {
        let mut command = sandbox.command(sandbox::lacre());
        command.args(["decrypt", "a.yaml"]).env_remove("SOPS_AGE_KEY_FILE").env(variable, value);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(128));
        assert_silent(&output, variable);
    }
    let output = sandbox.lacre(&["encrypt", "--age", secret, "a.yaml"]);
    assert_silent(&output, "--age");
}

#[test]
fn a_process_with_secrets_leaves_no_core_file() {
    let sandbox = sealed();
    let editor = "cat /proc/$PPID/limits > $HOME/limits; stat -c %U /proc/$PPID/mem > $HOME/owner";
    let mut command = sandbox.command(sandbox::lacre());
    command.args(["edit", "a.yaml"]).env("EDITOR", format!("sh -c '{editor}'"));
    command.output().unwrap();
    let limits = fs::read_to_string(sandbox.home().join("limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    assert_eq!(core.split_whitespace().skip(4).take(2).collect::<Vec<_>>(), ["0", "0"], "{core}");
}

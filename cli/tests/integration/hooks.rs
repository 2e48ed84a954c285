//! `lacre check` before a commit: what counts is what will be committed.

use std::fs;

use crate::sandbox::{self, Sandbox};

/// A repository whose rule asks for all below `secrets` to be sealed, with a hook that checks what is staged.
fn repository() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.git(&["init", "--quiet"]);
    sandbox.lacre_ok(&["init", "--age", &sandbox::recipient("ops"), "--path-regex", "^secrets/"]);
    let hook = sandbox.work().join(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, format!("#!/bin/sh\nexec {}\n", entry())).unwrap();
    assert!(sandbox.command("chmod").arg("+x").arg(hook).status().unwrap().success());
    sandbox
}

/// The command of the hook that this repository offers to others.
fn entry() -> String {
    let hooks = fs::read_to_string(xtask::root().join(".pre-commit-hooks.yaml")).unwrap();
    let line =
        hooks.lines().find_map(|line| line.trim().strip_prefix("entry: ")).expect("a hook has an entry");
    line.to_owned()
}

/// Commits what is staged; says what the hook said, and whether it let it pass.
fn commit(sandbox: &Sandbox) -> (bool, String) {
    let identity = ["-c", "user.name=ops", "-c", "user.email=ops@example.org"];
    let output = sandbox.command("git").args(identity).args(["commit", "-qm", "x"]).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn plaintext_is_not_committed() {
    let sandbox = repository();
    sandbox.write("secrets/a b.yaml", "password: hunter2\n");
    sandbox.git(&["add", "--all"]);
    let (passed, said) = commit(&sandbox);
    assert!(!passed && said.contains("secrets/a b.yaml:1: should be sealed"), "{said}");
    sandbox.lacre_ok(&["encrypt", "--in-place", "secrets/a b.yaml"]);
    let (passed, said) = commit(&sandbox);
    assert!(!passed, "the sealed file is not what is staged\n{said}");
    sandbox.git(&["add", "--all"]);
    let (passed, said) = commit(&sandbox);
    assert!(passed, "{said}");
}

#[test]
fn only_what_changes_is_checked() {
    let sandbox = repository();
    sandbox.write("secrets/a.yaml", "password: hunter2\n");
    sandbox.lacre_ok(&["encrypt", "--in-place", "secrets/a.yaml"]);
    sandbox.git(&["add", "--all"]);
    assert!(commit(&sandbox).0);
    // Plain in the work tree and not staged; renamed and sealed; removed.
    sandbox.write("secrets/draft.yaml", "password: hunter2\n");
    sandbox.git(&["mv", "secrets/a.yaml", "secrets/b.yaml"]);
    let (passed, said) = commit(&sandbox);
    assert!(passed && said.contains("1 sealed"), "{said}");
    sandbox.git(&["rm", "-q", "secrets/b.yaml"]);
    assert!(commit(&sandbox).0);
}

#[test]
fn a_value_put_in_by_hand_is_found() {
    let sandbox = repository();
    sandbox.write("secrets/a.yaml", "password: hunter2\nuser: app\n");
    sandbox.lacre_ok(&["encrypt", "--in-place", "secrets/a.yaml"]);
    let sealed = sandbox.read("secrets/a.yaml");
    let line = sealed.lines().find(|line| line.starts_with("user: ")).unwrap();
    sandbox.write("secrets/a.yaml", &sealed.replace(line, "user: hunter2"));
    sandbox.git(&["add", "--all"]);
    let (passed, said) = commit(&sandbox);
    assert!(!passed && said.contains("secrets/a.yaml:2: `user` should be sealed"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
}

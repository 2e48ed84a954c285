//! Promises about git: small diffs, readable ones, and none at all when nothing changed.

use std::time::SystemTime;

use crate::sandbox::{self, Sandbox};

const FILE: &str = "secrets.yaml";

/// A repository with a sealed file of 100 values, committed.
fn repository() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.git(&["init", "--quiet"]);
    sandbox.lacre_ok(&["init", "--age", &sandbox::recipient("ops")]);
    let values: String = (0..100).map(|number| format!("key_{number}: value {number}\n")).collect();
    sandbox.write(FILE, &values);
    sandbox.lacre_ok(&["encrypt", "--in-place", FILE]);
    commit(&sandbox);
    sandbox
}

fn commit(sandbox: &Sandbox) {
    sandbox.git(&["add", "--all"]);
    sandbox.git(&["commit", "--quiet", "--message", "sealed"]);
}

/// The lines that a diff takes away or adds, without its head.
fn changed_lines(diff: &str) -> Vec<&str> {
    let head = |line: &&str| !line.starts_with("---") && !line.starts_with("+++");
    diff.lines().filter(|line| line.starts_with(['-', '+'])).filter(head).collect()
}

#[test]
fn one_changed_value_is_one_plain_line() {
    let sandbox = repository();
    sandbox.lacre_ok(&["set", FILE, r#"["key_42"]"#, "\"changed\""]);
    let opened = sandbox.git(&["diff"]);
    assert_eq!(changed_lines(&opened), ["-key_42: value 42", "+key_42: changed"]);
    let sealed = sandbox.git(&["diff", "--no-textconv"]);
    let lines = changed_lines(&sealed);
    let (values, metadata): (Vec<&str>, Vec<&str>) =
        lines.iter().partition(|line| line[1..].starts_with("key_42: ENC["));
    assert_eq!(values.len(), 2, "{sealed}");
    let names: Vec<&str> = metadata.iter().map(|line| line[1..].trim().split(':').next().unwrap()).collect();
    assert!(names.iter().all(|name| ["lacre", "lastmodified", "mac"].contains(name)), "{sealed}");
    assert!(!sealed.contains("changed") && !sealed.contains("value 42"), "{sealed}");
}

#[test]
fn what_changes_nothing_leaves_the_file_untouched() {
    let sandbox = repository();
    let time = || sandbox.work().join(FILE).metadata().unwrap().modified().unwrap();
    let before: SystemTime = time();
    sandbox.lacre_ok(&["set", FILE, r#"["key_42"]"#, "\"value 42\""]);
    sandbox.lacre_ok(&["updatekeys", "--yes", FILE]);
    sandbox.lacre_ok(&["reseal", FILE]);
    sandbox.lacre_ok(&["decrypt", FILE]);
    let edit =
        sandbox.command(sandbox::lacre()).args(["edit", FILE]).env("EDITOR", "touch").output().unwrap();
    assert_eq!(edit.status.code(), Some(200));
    assert_eq!(time(), before);
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
}

#[test]
fn rotation_changes_every_sealed_value_and_no_plain_one() {
    let sandbox = repository();
    sandbox.lacre_ok(&["rotate", "--in-place", FILE]);
    assert_eq!(changed_lines(&sandbox.git(&["diff"])), Vec::<&str>::new());
    let sealed = sandbox.git(&["diff", "--no-textconv"]);
    let added = changed_lines(&sealed).iter().filter(|line| line.starts_with("+key_")).count();
    assert_eq!(added, 100);
}

#[test]
fn a_new_recipient_changes_no_value_and_opens_the_file() {
    let sandbox = repository();
    let rules = sandbox.read(".sops.yaml");
    sandbox.write(".sops.yaml", &format!("{rules}      - {}\n", sandbox::recipient("ci")));
    sandbox.lacre_ok(&["updatekeys", "--yes", FILE]);
    let sealed = sandbox.git(&["diff", "--no-textconv", FILE]);
    assert!(!changed_lines(&sealed).iter().any(|line| line.contains("key_")), "{sealed}");
    let armor = |line: &&&str| line.starts_with('-') && line.contains("-----BEGIN AGE");
    assert_eq!(changed_lines(&sealed).iter().filter(armor).count(), 0, "the wrapped key of ops changed");
    let opened = sandbox
        .command(sandbox::lacre())
        .args(["decrypt", FILE])
        .env("SOPS_AGE_KEY_FILE", sandbox::key_file("ci"))
        .output()
        .unwrap();
    assert!(String::from_utf8(opened.stdout).unwrap().starts_with("key_0: value 0\n"));
}

#[test]
fn a_removed_recipient_does_not_open_what_comes_after() {
    let sandbox = Sandbox::new();
    let rule = |roles: &[&str]| {
        let list: Vec<String> = roles.iter().map(|role| sandbox::recipient(role)).collect();
        format!("creation_rules:\n  - age: {}\n", list.join(","))
    };
    sandbox.write(".sops.yaml", &rule(&["ops", "ci"]));
    sandbox.write(FILE, "a: b\n");
    sandbox.lacre_ok(&["encrypt", "--in-place", FILE]);
    let before = sandbox.read(FILE);
    sandbox.write(".sops.yaml", &rule(&["ops"]));
    sandbox.lacre_ok(&["updatekeys", "--yes", FILE]);
    let value = |text: &str| text.lines().next().unwrap().to_owned();
    assert_ne!(value(&before), value(&sandbox.read(FILE)), "the data key was kept");
    let refused = sandbox
        .command(sandbox::lacre())
        .args(["decrypt", FILE])
        .env("SOPS_AGE_KEY_FILE", sandbox::key_file("ci"))
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(128));
}

//! What is written about the command is true of it.

use std::fs;

use crate::sandbox::{self, Sandbox};

fn page(name: &str) -> String {
    let path = xtask::root().join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_reference_is_that_of_the_command() {
    let found = Sandbox::new().lacre_ok(&["reference"]);
    assert!(
        found == page("docs/cli.md"),
        "docs/cli.md is not what `lacre reference` prints: run `cargo xtask gen`"
    );
}

#[test]
fn every_help_has_an_example_that_parses_as_help() {
    for words in [
        &["check"][..],
        &["decrypt"],
        &["doctor"],
        &["edit"],
        &["encrypt"],
        &["init"],
        &["keygen"],
        &["keyservice"],
        &["kube", "seal"],
        &["reseal"],
        &["rotate"],
        &["set"],
        &["textconv"],
        &["updatekeys"],
    ] {
        let help = Sandbox::new().lacre_ok(&[words, &["--help"]].concat());
        assert!(help.contains("Example:\n  "), "{words:?} shows no example");
    }
}

#[test]
fn the_commands_of_the_readme_run() {
    let readme = page("README.md");
    let script = readme.split("```sh demo\n").nth(1).expect("a demo block").split("```").next().unwrap();
    let sandbox = Sandbox::new();
    let mut command = sandbox.command("sh");
    for (name, value) in [("AUTHOR", "ops"), ("COMMITTER", "ops")] {
        command.env(format!("GIT_{name}_NAME"), value).env(format!("GIT_{name}_EMAIL"), "ops@example.org");
    }
    let output = command
        .args(["-e", "-c", script])
        .env_remove("SOPS_AGE_KEY_FILE")
        .env("GIT_PAGER", "cat")
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    let plain = |line: &&str| line.starts_with(['-', '+']) && line.contains("password: ");
    let changed: Vec<&str> = stdout.lines().filter(plain).collect();
    assert_eq!(changed.len(), 2, "the diff does not show one changed line\n{stdout}");
    assert!(sandbox::lacre().exists());
}

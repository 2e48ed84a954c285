//! What shells and `man` make of what is generated for them.

use crate::sandbox::{self, Sandbox};

#[test]
fn bash_completes_our_verbs_and_flags() {
    let sandbox = Sandbox::new();
    let complete = "source <(\"$1\" completion bash); \
        ask() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); \
        \"$name\" lacre \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD - 1]}\"; \
        echo \"${COMPREPLY[*]}\"; }; \
        name=$(complete -p lacre | sed 's/.*-F \\([^ ]*\\).*/\\1/'); \
        ask lacre updatek; ask lacre exec-env --pris; ask lacre groups del";
    let mut command = sandbox.command("bash");
    command.args(["--norc", "-c", complete, "bash"]).arg(sandbox::lacre());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "updatekeys\n--pristine\ndelete\n", "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_link_called_sops_is_completed_by_that_name() {
    let sandbox = Sandbox::new();
    let link = sandbox.home().join("sops");
    std::os::unix::fs::symlink(sandbox::lacre(), &link).unwrap();
    let mut command = sandbox.command("bash");
    command.args(["--norc", "-c", "source <(\"$1\" completion bash); complete -p sops", "bash"]).arg(&link);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn other_shells_take_their_scripts_where_they_are_installed() {
    let sandbox = Sandbox::new();
    for shell in ["fish", "zsh"] {
        let script = sandbox.lacre_ok(&["completion", shell]);
        assert!(script.contains("updatekeys"), "{shell}");
        sandbox.write("script", &script);
        // Neither is a peer that we install: its own check of the syntax is run where it is there.
        if let Ok(output) = sandbox.command(shell).args(["-n", "script"]).output() {
            assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn manual_pages_are_there_for_all_commands_and_read_without_a_warning() {
    let sandbox = Sandbox::new();
    sandbox.lacre_ok(&["man", "man1"]);
    let reference = sandbox.lacre_ok(&["reference"]);
    let commands = reference.lines().filter_map(|line| line.strip_prefix("## `")?.strip_suffix('`'));
    for command in commands {
        let page = format!("man1/{}.1", command.replace(' ', "-"));
        assert!(sandbox.read(&page).contains(".SH SYNOPSIS"), "{page}");
        let read = sandbox.command("groff").args(["-man", "-Kutf8", "-Tutf8", "-ww", "-z", &page]).output();
        // groff is no peer that we install either.
        if let Ok(read) = read {
            assert_eq!(String::from_utf8_lossy(&read.stderr), "", "{page}");
        }
    }
}

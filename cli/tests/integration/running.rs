//! `exec-env` and `exec-file` while their command runs: signals, pipes, users, and what is left behind.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::{self, Sandbox};

const PLAIN: &str = "A: 1\nB: two words\n";

fn sealed() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a.yaml", PLAIN);
    sandbox.lacre_ok(&["encrypt", "--in-place", "--age", &sandbox::recipient("ops"), "a.yaml"]);
    sandbox
}

fn start(sandbox: &Sandbox, words: &[&str]) -> Child {
    let mut command = sandbox.command(sandbox::lacre());
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

/// The next line that the command says.
fn line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Says its own number, then each signal that it gets, and ends with 9 on USR2.
const LISTENER: &str = "for s in INT TERM HUP QUIT USR1 WINCH; do trap \"echo $s\" $s; done; \
    trap 'exit 9' USR2; echo ready; while :; do sleep 0.01; done";

#[test]
fn signals_reach_the_command_and_its_exit_status_comes_back() {
    let sandbox = sealed();
    for words in [["exec-env", "a.yaml", LISTENER], ["exec-file", "a.yaml", LISTENER]] {
        let mut child = start(&sandbox, &words);
        let mut says = BufReader::new(child.stdout.take().unwrap());
        assert_eq!(line(&mut says), "ready");
        for (signal, name) in [
            (Signal::INT, "INT"),
            (Signal::TERM, "TERM"),
            (Signal::HUP, "HUP"),
            (Signal::QUIT, "QUIT"),
            (Signal::USR1, "USR1"),
            (Signal::WINCH, "WINCH"),
        ] {
            send(&child, signal);
            assert_eq!(line(&mut says), name, "{words:?}");
        }
        send(&child, Signal::USR2);
        assert_eq!(child.wait().unwrap().code(), Some(9));
    }
}

#[test]
fn a_command_that_a_signal_ends_is_told_as_a_shell_tells_it() {
    let sandbox = sealed();
    let mut child = start(&sandbox, &["exec-env", "a.yaml", "--", "sh", "-c", "echo ready; exec sleep 600"]);
    let mut says = BufReader::new(child.stdout.take().unwrap());
    assert_eq!(line(&mut says), "ready");
    send(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    // With `--same-process` there is nobody in between.
    let words = ["exec-env", "--same-process", "a.yaml", "--", "sh", "-c", "echo ready; exec sleep 600"];
    let mut child = start(&sandbox, &words);
    let mut says = BufReader::new(child.stdout.take().unwrap());
    assert_eq!(line(&mut says), "ready");
    send(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().signal(), Some(15));
}

#[test]
fn no_value_stands_in_any_argument() {
    let sandbox = sealed();
    let mut child = start(&sandbox, &["exec-env", "a.yaml", "--", "sh", "-c", "echo $$; read x"]);
    let mut says = BufReader::new(child.stdout.take().unwrap());
    let command = line(&mut says);
    for id in [child.id().to_string(), command] {
        let arguments = std::fs::read(format!("/proc/{id}/cmdline")).unwrap();
        assert!(!String::from_utf8_lossy(&arguments).contains("two words"));
    }
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_pipe_serves_readers_that_stop_in_the_middle_and_leaves_nothing() {
    let sandbox = sealed();
    let words = [
        "exec-file",
        "a.yaml",
        "head -c 1 {} >/dev/null; for i in 1 2 3 4 5 6 7 8; do cat {}; done; echo {}",
    ];
    let said = sandbox.lacre_ok(&words);
    let place = said.strip_prefix(&PLAIN.repeat(8)).unwrap();
    assert!(!Path::new(place.trim_end()).parent().unwrap().exists(), "{place}");
}

#[test]
fn a_reader_that_holds_the_pipe_does_not_keep_the_next_one_waiting() {
    let sandbox = sealed();
    assert_eq!(sandbox.lacre_ok(&["exec-file", "a.yaml", "exec 3<{}; cat {}; cat <&3"]), PLAIN.repeat(2));
}

#[test]
fn a_file_is_in_memory_and_gone_after_a_signal() {
    let sandbox = sealed();
    let words = ["exec-file", "--no-fifo", "a.yaml", "echo {}; stat -f -c %T {}; exec sleep 600"];
    let mut child = start(&sandbox, &words);
    let mut says = BufReader::new(child.stdout.take().unwrap());
    let (place, system) = (line(&mut says), line(&mut says));
    assert_eq!(system, "tmpfs");
    assert_eq!(std::fs::read_to_string(&place).unwrap(), PLAIN);
    send(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert!(!Path::new(&place).parent().unwrap().exists());
}

#[test]
fn bytes_of_any_kind_arrive() {
    let sandbox = Sandbox::new();
    let content: Vec<u8> = (0..100_000u32).map(|number| (number * 7 % 256) as u8).collect();
    std::fs::write(sandbox.work().join("a.bin"), &content).unwrap();
    let seal =
        ["encrypt", "--in-place", "--input-type", "binary", "--age", &sandbox::recipient("ops"), "a.bin"];
    sandbox.lacre_ok(&seal);
    for way in [&[][..], &["--no-fifo"]] {
        let words =
            [&["exec-file", "--input-type", "binary"], way, &["a.bin", "--", "cat", "{}", "{}"]].concat();
        let output = sandbox.lacre(&words);
        assert_eq!(output.stdout, content.repeat(2), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn nobody_waits_for_a_command_in_the_background() {
    let sandbox = sealed();
    let line = "while [ ! -e go ]; do sleep 0.01; done; printf %s \"$B\" > made; mv made done";
    let output = sandbox.lacre(&["exec-env", "--background", "a.yaml", line]);
    assert!(output.status.success() && String::from_utf8_lossy(&output.stderr).contains("deprecated"));
    sandbox.write("go", "");
    let done = || Ok(sandbox.work().join("done").exists().then_some(()));
    xtask::wait::until(Duration::from_secs(20), "the command in the background", done).unwrap();
    assert_eq!(sandbox.read("done"), "two words");
}

#[test]
fn root_runs_a_command_as_another_user_and_nobody_else_does() {
    let sandbox = sealed();
    let whoami = "id -un; id -Gn; echo $HOME $USER $LOGNAME $B";
    let is_root = rustix::process::geteuid().is_root();
    let output = sandbox.lacre(&["exec-env", "--user", "nobody", "a.yaml", whoami]);
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !is_root {
        assert!(!output.status.success() && said.is_empty());
        assert!(error.contains("only root can"), "{error}");
        return;
    }
    assert_eq!(said, "nobody\nnogroup\n/nonexistent nobody nobody two words\n", "{error}");
    let file = ["exec-file", "--user", "nobody", "--no-fifo", "a.yaml", "id -un; cat {}"];
    assert_eq!(sandbox.lacre_ok(&file), format!("nobody\n{PLAIN}"));
    let pipe = ["exec-file", "--user", "nobody", "a.yaml", "id -un; cat {}"];
    assert_eq!(sandbox.lacre_ok(&pipe), format!("nobody\n{PLAIN}"));
}

/// What a terminal sends goes to the command as well, which must not hear it twice.
#[test]
fn what_the_terminal_sends_is_heard_once() {
    let sandbox = sealed();
    let listener = "trap 'echo INT' INT; trap 'exit 9' USR2; echo ready $PPID; while :; do sleep 0.01; done";
    let line_for_shell = format!("exec {} exec-env a.yaml {}", sandbox::lacre().display(), quoted(listener));
    let mut command = sandbox.command("script");
    command.args(["--quiet", "--return", "--command", &line_for_shell, "/dev/null"]);
    let Ok(mut child) = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
        panic!("the program `script` gives a command a terminal, and is not there");
    };
    let mut says = BufReader::new(child.stdout.take().unwrap());
    let ready = line(&mut says);
    let ours = ready.strip_prefix("ready ").unwrap().parse().unwrap();
    let mut typed = child.stdin.take().unwrap();
    typed.write_all(b"\x03").unwrap();
    assert!(line(&mut says).ends_with("INT"));
    kill_process(Pid::from_raw(ours).unwrap(), Signal::USR2).unwrap();
    let mut rest = String::new();
    says.read_to_string(&mut rest).unwrap();
    assert_eq!(rest.trim(), "");
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[test]
fn sops_and_we_give_a_command_the_same_environment() {
    let sandbox = Sandbox::new();
    sandbox.write("a.env", "A=1\nB=two words\nC=x\\ny\nD='quoted'\nexport E=e\n");
    sandbox.write("a.json", "{\"A\": 1, \"B\": 1.50, \"C\": true, \"D\": \"\", \"E\": 1e30}\n");
    for file in ["a.env", "a.json"] {
        sandbox.lacre_ok(&["encrypt", "--in-place", "--age", &sandbox::recipient("ops"), file]);
        let ours = sandbox.lacre_ok(&["exec-env", "--pristine", file, "env | sort | grep -v ^PWD="]);
        for sops in xtask::peers::sops::Sops::all().unwrap() {
            let mut command = Command::new(sops.program());
            command.env("SOPS_AGE_KEY_FILE", sandbox::key_file("ops")).current_dir(sandbox.work());
            command.args(["exec-env", "--pristine", file, "env | sort | grep -v ^PWD="]);
            let theirs = String::from_utf8(command.output().unwrap().stdout).unwrap();
            assert_eq!(ours, theirs, "{file}, sops {}", sops.version());
        }
    }
}

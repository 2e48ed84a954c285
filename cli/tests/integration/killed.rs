//! `kill -9` at any moment: the old file or the new one, never a mixture, and nothing beside it that is not known.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::sandbox::{self, Sandbox};

/// How often each command is killed, at moments spread over the time that it takes.
const ROUNDS: u32 = 16;

/// Values of a file: enough for a command to be met at work, and few enough for many rounds.
const VALUES: usize = 200;

struct Stage {
    sandbox: Sandbox,
    values: String,
}

impl Stage {
    /// A sealed file, a plain one, and a rule that names one recipient more than the file has.
    fn new() -> Self {
        let sandbox = Sandbox::new();
        let values: String = (0..VALUES).map(|number| format!("key_{number}: value {number}\n")).collect();
        let rule =
            format!("creation_rules:\n  - age: {},{}\n", sandbox::recipient("ops"), sandbox::recipient("ci"));
        for name in ["sealed.yaml", "other.yaml", "plain.yaml"] {
            sandbox.write(name, &values);
        }
        let ops = sandbox::recipient("ops");
        sandbox.lacre_ok(&["encrypt", "--in-place", "--age", &ops, "sealed.yaml", "other.yaml"]);
        sandbox.write(".sops.yaml", &rule);
        Self { sandbox, values }
    }

    /// Starts the command, kills it after `delay`, and says whether it was still at work.
    fn kill(&self, words: &[&str], delay: Duration) -> bool {
        let mut command = self.sandbox.command(sandbox::lacre());
        let mut child = command.args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(delay);
        child.kill().unwrap();
        !child.wait().unwrap().success()
    }

    /// How long the command takes when it is left alone.
    fn time(&self, words: &[&str]) -> Duration {
        let start = Instant::now();
        self.sandbox.lacre(words);
        start.elapsed()
    }

    fn names(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.sandbox.work()).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// What a killed command left has a known name, is its owner's alone if it is plain, and `check` names it. It is taken
    /// away here.
    fn clear_what_is_left_behind(&self, expected: &BTreeSet<String>) {
        for name in self.names().difference(expected) {
            assert!(name.starts_with(".lacre-"), "{name} was left behind");
            let path = self.sandbox.work().join(name);
            let is_plain = fs::read_to_string(&path).unwrap().contains("value 1\n");
            let mode = fs::metadata(&path).unwrap().mode() & 0o077;
            assert!(!is_plain || mode == 0, "{name} holds plaintext and can be read by others");
            let said = self.sandbox.lacre(&["check", name]);
            assert!(
                String::from_utf8_lossy(&said.stdout).contains("left behind"),
                "check says nothing of {name}"
            );
            fs::remove_file(path).unwrap();
        }
    }

    /// The file opens to its values, or stands in the clear where it may.
    fn assert_whole(&self, name: &str, may_be_plain: bool, what: &str) {
        if may_be_plain && self.sandbox.read(name) == self.values {
            return;
        }
        let opened = self.sandbox.lacre_ok(&["decrypt", name]);
        let same = |line: &str| line.starts_with("key_0: ") || self.values.contains(line);
        assert!(opened.lines().count() == VALUES && opened.lines().all(same), "{what}: {name}\n{opened}");
    }
}

/// Moments over the whole time of a command, in an order without pattern, the same in every run.
fn moments(time: Duration) -> impl Iterator<Item = Duration> {
    (0..ROUNDS).map(move |round| time * ((round * 7) % ROUNDS) / (ROUNDS - 2))
}

/// Kills the command again and again; `prepare` brings the files back to where it has work to do.
fn kill_often(words: &[&str], files: &[&str], may_be_plain: bool, prepare: impl Fn(&Stage)) {
    let stage = Stage::new();
    let expected = stage.names();
    prepare(&stage);
    let time = stage.time(words);
    let mut met_at_work = 0;
    for (round, delay) in moments(time).enumerate() {
        prepare(&stage);
        met_at_work += u32::from(stage.kill(words, delay));
        stage.clear_what_is_left_behind(&expected);
        for name in files {
            stage.assert_whole(name, may_be_plain, &format!("{words:?}, round {round}, after {delay:?}"));
        }
    }
    assert!(met_at_work > 0, "{words:?} was never met at work");
}

#[test]
fn rotate() {
    kill_often(&["rotate", "--in-place", "sealed.yaml"], &["sealed.yaml"], false, |_| {});
}

#[test]
fn rotate_many() {
    let words = ["rotate", "--in-place", "sealed.yaml", "other.yaml"];
    kill_often(&words, &["sealed.yaml", "other.yaml"], false, |_| {});
}

#[test]
fn encrypt() {
    let words = ["encrypt", "--in-place", "plain.yaml"];
    kill_often(&words, &["plain.yaml"], true, |stage| stage.sandbox.write("plain.yaml", &stage.values));
}

#[test]
fn decrypt() {
    let sealed = |stage: &Stage| {
        let from = stage.sandbox.work().join("other.yaml");
        fs::copy(from, stage.sandbox.work().join("sealed.yaml")).unwrap();
    };
    kill_often(&["decrypt", "--in-place", "sealed.yaml"], &["sealed.yaml"], true, sealed);
}

#[test]
fn set() {
    let path = r#"["key_0"]"#;
    let before = |stage: &Stage| drop(stage.sandbox.lacre_ok(&["set", "sealed.yaml", path, "\"before\""]));
    kill_often(&["set", "sealed.yaml", path, "\"after\""], &["sealed.yaml"], false, before);
}

#[test]
fn updatekeys() {
    let fewer = |stage: &Stage| {
        let from = stage.sandbox.work().join("other.yaml");
        fs::copy(from, stage.sandbox.work().join("sealed.yaml")).unwrap();
    };
    kill_often(&["updatekeys", "--yes", "sealed.yaml"], &["sealed.yaml"], false, fewer);
}

//! All kinds of age keys, as their users hold them: with the real programs that make and use them, and with stock sops.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use xtask::peers::age::Age;
use xtask::peers::sops::Sops;
use xtask::peers::ssh_keygen::SshKeygen;
use xtask::process::Tool;

use crate::sandbox::{self, Sandbox};

const PLAIN: &str = "# a comment\nuser: admin\nport: 5432\n";
/// What stands for the plugin's own passphrase: a recipient and an identity without payload.
const BATCHPASS_RECIPIENT: &str = "age1batchpass1s48w5f";
const BATCHPASS_IDENTITY: &str = "AGE-PLUGIN-BATCHPASS-1JCS0Q9";
const PASSPHRASE: &str = "CANARY-hunter2";

/// A sandbox with a plain file, where the ops identity is not found and plugins are.
struct Place {
    sandbox: Sandbox,
    environment: Vec<(String, String)>,
}

impl Place {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        sandbox.write("plain.yaml", PLAIN);
        Self { sandbox, environment: Vec::new() }
    }

    fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.sandbox.command(program);
        let age = Age::v1_3().unwrap();
        let path = format!("{}:{}", age.folder().display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).env_remove("SOPS_AGE_KEY_FILE").envs(self.environment.iter().cloned());
        command
    }

    fn lacre(&self, words: &[&str]) -> Output {
        let output = self.command(sandbox::lacre().to_str().unwrap()).args(words).output().unwrap();
        let said = format!("{output:?}");
        assert!(!said.contains("CANARY") && !said.contains("AGE-SECRET-KEY"), "{said}");
        output
    }

    fn lacre_ok(&self, words: &[&str]) -> String {
        let output = self.lacre(words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn lacre_refused(&self, words: &[&str]) -> String {
        let output = self.lacre(words);
        assert!(!output.status.success(), "{words:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn seal(&self, recipient: &str) {
        self.lacre_ok(&["encrypt", "--age", recipient, "--output", "ours.yaml", "plain.yaml"]);
    }

    fn opens(&self, name: &str) {
        assert_eq!(self.lacre_ok(&["decrypt", name]), PLAIN);
    }

    fn sops(&self, sops: &Sops, words: &[&str]) -> String {
        let path = format!("{}:/usr/bin:/bin", Age::v1_3().unwrap().folder().display());
        let tool: Tool =
            self.environment.iter().fold(sops.tool(), |tool, (name, value)| tool.env(name, value));
        let tool = tool.env("HOME", self.sandbox.home()).env("PATH", path).dir(self.sandbox.work());
        String::from_utf8(tool.args(words).run().unwrap().success().unwrap()).unwrap()
    }

    fn sops_opens_ours(&self, sops: &Sops) {
        let opened = self.sops(sops, &["decrypt", "ours.yaml"]);
        assert!(opened.contains("port: 5432"), "{}: {opened}", sops.version());
    }

    /// Seals with each tool, and opens with the other.
    fn both_ways(&self, recipient: &str, peers: &[Sops]) {
        self.seal(recipient);
        self.opens("ours.yaml");
        for sops in peers {
            self.sops_opens_ours(sops);
            let theirs = self.sops(sops, &["encrypt", "--age", recipient, "plain.yaml"]);
            self.sandbox.write("theirs.yaml", &theirs);
            self.opens("theirs.yaml");
        }
        self.lacre_ok(&["rotate", "--in-place", "ours.yaml"]);
        self.opens("ours.yaml");
    }

    /// Makes an SSH key with the real program, and gives its public line.
    fn ssh_keygen(&self, name: &str, kind: &str, passphrase: &str) -> String {
        let key = SshKeygen::new().unwrap().generate(&["-t", kind], passphrase).unwrap();
        let path = self.home(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, key.identity).unwrap();
        key.recipient
    }

    fn home(&self, name: &str) -> PathBuf {
        self.sandbox.home().join(name)
    }

    /// Runs `lacre` at a terminal where `typed` answers its question, and gives all that could be seen there.
    fn at_terminal(&self, words: &str, typed: &str) -> String {
        let line = format!("{} {words}", sandbox::lacre().display());
        let mut command = self.command("script");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut stdin, mut stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let (mut shown, mut chunk) = (Vec::new(), [0; 4096]);
        while let count @ 1.. = stdout.read(&mut chunk).unwrap() {
            shown.extend(&chunk[..count]);
            // What is typed before the question would be shown, as by every program.
            if String::from_utf8_lossy(&shown).contains("Passphrase of")
                && shown.ends_with(b": ")
                && let Some(mut stdin) = stdin.take()
            {
                stdin.write_all(typed.as_bytes()).unwrap();
            }
        }
        child.wait().unwrap();
        String::from_utf8_lossy(&shown).replace('\r', "")
    }

    /// Writes `content` to `name` in the home folder, under [`PASSPHRASE`], with the real age.
    fn lock(&self, name: &str, content: &str, armor: &[&str]) {
        let age = Age::v1_3().unwrap();
        let mut command = self.command(age.folder().join("age").to_str().unwrap());
        command.args(["--encrypt", "-j", "batchpass"]).args(armor);
        command.env("AGE_PASSPHRASE", PASSPHRASE).env("AGE_PASSPHRASE_WORK_FACTOR", "10");
        let output = sandbox::with_input(command, content.as_bytes());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let path = self.home(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, output.stdout).unwrap();
    }
}

#[test]
fn post_quantum_keys_of_ours_and_of_age() {
    let place = Place::new();
    let ours = place.lacre_ok(&["keygen", "--pq"]);
    assert!(ours.starts_with("age1pq1"), "{ours}");
    place.both_ways(ours.trim(), &[Sops::v3_13().unwrap()]);
    let theirs = Age::v1_3().unwrap().keygen_pq().unwrap();
    let place = Place::new().with("SOPS_AGE_KEY", theirs.identity);
    place.both_ways(&theirs.recipient, &[Sops::v3_13().unwrap()]);
}

#[test]
fn a_plugins_identity_opens_for_the_native_kind_it_speaks_for() {
    let age = Age::v1_3().unwrap();
    let theirs = age.keygen_pq().unwrap();
    let place = Place::new();
    place.seal(&theirs.recipient);
    let mut command = place.command(age.folder().join("age-plugin-pq").to_str().unwrap());
    command.arg("-identity");
    let output = sandbox::with_input(command, format!("{}\n", theirs.identity).as_bytes());
    let identity = String::from_utf8(output.stdout).unwrap();
    let identity = identity.lines().find(|line| line.starts_with("AGE-PLUGIN-PQ-1")).unwrap();
    let place = Place { environment: vec![("SOPS_AGE_KEY".to_owned(), identity.to_owned())], ..place };
    place.opens("ours.yaml");
}

#[test]
#[cfg(feature = "age-ssh")]
fn ssh_keys_in_their_usual_places() {
    for kind in ["ed25519", "rsa"] {
        let place = Place::new();
        let recipient = place.ssh_keygen(&format!(".ssh/id_{kind}"), kind, "");
        assert!(recipient.ends_with(" ops@example.org"), "{recipient}");
        place.both_ways(&recipient, &Sops::all().unwrap());
    }
}

#[test]
#[cfg(feature = "age-ssh")]
fn ssh_keys_that_variables_name() {
    for kind in ["ed25519", "rsa"] {
        let place = Place::new();
        let recipient = place.ssh_keygen("elsewhere", kind, "");
        let path = place.home("elsewhere").display().to_string();
        let place = place.with("SOPS_AGE_SSH_PRIVATE_KEY_FILE", &path);
        place.both_ways(&recipient, &Sops::all().unwrap());
        let place = Place { environment: Vec::new(), ..place };
        let place = place.with("SOPS_AGE_SSH_PRIVATE_KEY_CMD", format!("cat {path}"));
        // sops 3.11 does not know the second variable.
        place.both_ways(&recipient, &[Sops::v3_13().unwrap()]);
    }
}

#[test]
#[cfg(feature = "age-ssh")]
fn a_broken_ssh_key_hides_no_other() {
    let place = Place::new().with("SOPS_AGE_KEY_FILE", sandbox::key_file("ops").display().to_string());
    fs::create_dir(place.home(".ssh")).unwrap();
    fs::write(place.home(".ssh/id_ed25519"), "-----BEGIN OPENSSH PRIVATE KEY-----\nCANARY\n").unwrap();
    fs::write(place.home(".ssh/id_rsa"), b"\xffCANARY").unwrap();
    place.seal(&sandbox::recipient("ops"));
    place.opens("ours.yaml");
    place.seal(&sandbox::recipient("ci"));
    let said = place.lacre_refused(&["decrypt", "ours.yaml"]);
    assert!(said.contains("id_ed25519: not an SSH private key, or a damaged one"), "{said}");
    assert!(said.contains("id_rsa: not text"), "{said}");
}

#[test]
#[cfg(feature = "age-ssh")]
fn an_ssh_key_under_a_passphrase_asks_its_owner() {
    let place = Place::new();
    let recipient = place.ssh_keygen(".ssh/id_ed25519", "ed25519", PASSPHRASE);
    place.seal(&recipient);
    let shown = place.at_terminal("decrypt ours.yaml", &format!("{PASSPHRASE}\n"));
    assert!(shown.contains("Passphrase of the SSH key") && shown.contains("port: 5432"), "{shown}");
    assert!(!shown.contains("CANARY"), "{shown}");
    let shown = place.at_terminal("decrypt ours.yaml", "CANARY-wrong\n");
    assert!(shown.contains("wrong passphrase") && !shown.contains("CANARY"), "{shown}");
    place.seal(&sandbox::recipient("ops"));
    let shown = place.at_terminal("decrypt ours.yaml", "");
    assert!(!shown.contains("Passphrase"), "nobody is asked for a key that is not wanted: {shown}");
}

#[test]
#[cfg(feature = "age-plugin")]
fn the_batchpass_plugin_wraps_and_unwraps() {
    let place = Place::new()
        .with("AGE_PASSPHRASE", PASSPHRASE)
        .with("AGE_PASSPHRASE_WORK_FACTOR", "10")
        .with("SOPS_AGE_KEY", BATCHPASS_IDENTITY);
    place.seal(BATCHPASS_RECIPIENT);
    place.opens("ours.yaml");
    place.lacre_ok(&["rotate", "--in-place", "ours.yaml"]);
    place.opens("ours.yaml");
    for sops in Sops::all().unwrap() {
        place.sops_opens_ours(&sops);
    }
    let wrong = Place::new().with("AGE_PASSPHRASE", "CANARY-wrong").with("SOPS_AGE_KEY", BATCHPASS_IDENTITY);
    wrong.sandbox.write("ours.yaml", &place.sandbox.read("ours.yaml"));
    let said = wrong.lacre_refused(&["decrypt", "ours.yaml"]);
    assert!(said.contains("incorrect passphrase") && said.contains("age plugin batchpass"), "{said}");
}

#[test]
#[cfg(feature = "age-plugin")]
fn a_plugin_that_is_not_there_is_named() {
    let place = Place::new().with("PATH", "/usr/bin:/bin").with("SOPS_AGE_KEY", BATCHPASS_IDENTITY);
    let words = ["encrypt", "--age", BATCHPASS_RECIPIENT, "plain.yaml"];
    let said = place.lacre_refused(&words);
    assert!(said.contains("age-plugin-batchpass is not on the search path"), "{said}");
}

#[test]
fn a_key_file_under_a_passphrase() {
    let content = fs::read_to_string(sandbox::key_file("ops")).unwrap();
    for (armor, name) in [(&["--armor"][..], ".config/sops/age/keys.txt"), (&[], "elsewhere")] {
        let mut place = Place::new();
        place.lock(name, &content, armor);
        if name == "elsewhere" {
            place = place.with("SOPS_AGE_KEY_FILE", "../home/elsewhere");
        }
        place.seal(&sandbox::recipient("ops"));
        let shown = place.at_terminal("decrypt ours.yaml", &format!("wrong\u{15}{PASSPHRASE}\n"));
        assert!(shown.contains("Passphrase of the age key file") && shown.contains("port: 5432"), "{shown}");
        assert!(!shown.contains("CANARY") && !shown.contains("wrong"), "{shown}");
        let shown = place.at_terminal("decrypt ours.yaml", "CANARY-other\n");
        assert!(shown.contains("wrong passphrase") && !shown.contains("CANARY"), "{shown}");
        let shown = place.at_terminal("decrypt ours.yaml", "CANARY\u{3}");
        assert!(shown.contains("nobody gave its passphrase") && !shown.contains("CANARY"), "{shown}");
        #[cfg(feature = "age-plugin")]
        place.with("AGE_PASSPHRASE", PASSPHRASE).opens("ours.yaml");
    }
}

#[test]
#[cfg(feature = "age-plugin")]
fn a_script_whose_passphrase_is_wrong_is_told() {
    let place = Place::new().with("AGE_PASSPHRASE", "CANARY-wrong");
    place.lock(".config/sops/age/keys.txt", &fs::read_to_string(sandbox::key_file("ops")).unwrap(), &[]);
    place.seal(&sandbox::recipient("ops"));
    let said = place.lacre_refused(&["decrypt", "ours.yaml"]);
    assert!(said.contains("stays locked") && said.contains("incorrect passphrase"), "{said}");
}

#[test]
fn a_recipient_that_voids_post_quantum_protection_is_told_wherever_keys_are_wrapped() {
    let place = Place::new();
    let quantum = place.lacre_ok(&["keygen", "--pq"]).trim().to_owned();
    let other = place.lacre_ok(&["keygen", "--pq", "--output", "other"]).trim().to_owned();
    let ops = sandbox::recipient("ops");
    let warns = |words: &[&str]| {
        let output = place.lacre(words);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{words:?}: {said}");
        said.contains("warning: a recipient that is not post-quantum stands beside one that is")
    };
    let encrypt = |keys: &str| warns(&["encrypt", "--age", keys, "--output", "a.yaml", "plain.yaml"]);
    assert!(encrypt(&format!("{quantum},{ops}")));
    assert!(warns(&["rotate", "--in-place", "a.yaml"]));
    assert!(!warns(&["rotate", "--in-place", "--rm-age", &ops, "a.yaml"]));
    assert!(!encrypt(&format!("{quantum},{other}")));
    assert!(!encrypt(&quantum));
    place.sandbox.write(".sops.yaml", &format!("creation_rules:\n  - age: {quantum},{ops}\n"));
    assert!(warns(&["updatekeys", "--yes", "a.yaml"]));
    assert!(warns(&["encrypt", "--output", "b.yaml", "plain.yaml"]));
}

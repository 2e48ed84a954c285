//! `filestatus` beside that of the real sops.

use crate::sandbox::{self, Sandbox};
use xtask::peers::sops::Sops;

const PLAIN: [(&str, &str); 9] = [
    ("plain.yaml", "a: 1\n"),
    ("plain.json", "{\"a\": 1}\n"),
    ("plain.env", "A=1\n"),
    ("plain.ini", "[s]\na = 1\n"),
    ("stream.yaml", "a: 1\n---\nb: 2\n"),
    ("numbers.yaml", "1: x\n"),
    ("large.yaml", "a: 18446744073709551615\n"),
    ("twice.json", "{\"a\": 1, \"a\": 2}\n"),
    ("empty.yaml", ""),
];

#[test]
fn both_say_the_same() {
    let sandbox = Sandbox::new();
    let peer = Sops::v3_13().unwrap();
    let recipient = sandbox::recipient("stranger");
    let mut files = Vec::new();
    for (name, text) in PLAIN {
        sandbox.write(name, text);
        files.push(name.to_owned());
    }
    for name in ["plain.yaml", "plain.json", "plain.env", "plain.ini"] {
        let sealed = sandbox.lacre_ok(&["encrypt", "--age", &recipient, name]);
        sandbox.write(&format!("sealed-{name}"), &sealed);
        files.push(format!("sealed-{name}"));
    }
    let yaml = sandbox.read("sealed-plain.yaml");
    let without = |name: &str| {
        let kept = yaml.lines().filter(|line| !line.trim_start().starts_with(name));
        kept.map(|line| format!("{line}\n")).collect::<String>()
    };
    sandbox.write("no-mac.yaml", &without("mac:"));
    files.push("no-mac.yaml".to_owned());
    for file in files {
        let tool = peer.tool().dir(sandbox.work()).args(["filestatus", &file]).run().unwrap();
        let theirs = String::from_utf8(tool.success().unwrap()).unwrap();
        assert_eq!(sandbox.lacre_ok(&["filestatus", &file]), theirs, "{file}");
    }
}

#[test]
fn neither_answers_for_a_file_that_is_not_there() {
    let sandbox = Sandbox::new();
    let peer = Sops::v3_13().unwrap();
    let tool = peer.tool().dir(sandbox.work()).args(["filestatus", "none.yaml"]).run().unwrap();
    assert!(tool.success().is_err());
    let ours = sandbox.lacre(&["filestatus", "none.yaml"]);
    assert!(!ours.status.success() && ours.stdout.is_empty());
}

//! `unset` and `groups` with the real sops: what one takes out or adds, the other still opens.

use crate::sandbox::{self, Sandbox};
use xtask::peers::sops::Sops;

fn sops(sops: &Sops, sandbox: &Sandbox, words: &[&str]) -> String {
    let tool = sops.tool().env("SOPS_AGE_KEY_FILE", sandbox::key_file("ops")).env("HOME", sandbox.home());
    String::from_utf8(tool.dir(sandbox.work()).args(words).run().unwrap().success().unwrap()).unwrap()
}

/// Lines of `text` that are not among those of `other`, without the block's that change with every write.
fn new_lines(text: &str, other: &str) -> Vec<String> {
    let changes = |line: &str| ["mac", "lastmodified", "lacre"].iter().any(|name| line.contains(name));
    let kept: Vec<&str> = other.lines().collect();
    text.lines().filter(|line| !kept.contains(line) && !changes(line)).map(str::to_owned).collect()
}

const DOCUMENTS: [(&str, &str, &str); 6] = [
    (
        "a.yaml",
        "# head\n\na: 1\n# own\nb:\n  c: x\n  d: [1, 2]\nl:\n  - x\n  - y\n  - x\n---\nb: 2\n",
        r#"["b"]"#,
    ),
    ("b.yaml", "l:\n  - a: 1\n    b: 2\n  - c: 3\n  - c: 3\n", r#"["l"][0]["a"]"#),
    ("c.yaml", "{a: 1, b: {c: 2}}\n", r#"["b"]["c"]"#),
    ("a.json", "{\n  \"a\": 1,\n  \"l\": [\"x\", \"y\"]\n}\n", r#"["l"][1]"#),
    ("a.env", "A=1\n# own\nB=2\nC=3\n", r#"["B"]"#),
    ("a.ini", "[s]\na = 1\n; own\nb = 2\n[t]\nc = 3\n", r#"["s"]["b"]"#),
];

#[test]
fn what_we_take_out_is_gone_for_sops_too_and_nothing_else_is() {
    let sandbox = Sandbox::new();
    for (file, plain, path) in DOCUMENTS {
        sandbox.write(file, plain);
        sandbox.lacre_ok(&["encrypt", "--in-place", "--age", &sandbox::recipient("ops"), file]);
        let before = sandbox.read(file);
        sandbox.lacre_ok(&["unset", file, path]);
        let after = sandbox.read(file);
        let new = new_lines(&after, &before);
        assert!(new.len() <= 1, "{file}: {new:?}");
        let opened = sandbox.lacre_ok(&["decrypt", file]);
        sandbox.write(&format!("expected-{file}"), &opened);
        for peer in Sops::all().unwrap() {
            let theirs = sops(&peer, &sandbox, &["decrypt", file]);
            // The same document as the one that we open, in sops' spelling.
            sandbox.write(&format!("theirs-{file}"), &theirs);
            let seal = ["encrypt", "--age", &sandbox::recipient("ops")];
            let spelled = |name: &str| {
                let name = format!("{name}-{file}");
                let sealed = sops(&peer, &sandbox, &[&seal[..], &[&name]].concat());
                sandbox.write(&format!("sealed-{name}"), &sealed);
                sops(&peer, &sandbox, &["decrypt", &format!("sealed-{name}")])
            };
            assert_eq!(spelled("theirs"), spelled("expected"), "{file}, sops {}", peer.version());
        }
    }
}

#[test]
fn we_open_what_sops_took_something_out_of() {
    let sandbox = Sandbox::new();
    let peer = Sops::v3_13().unwrap();
    for (file, plain, path) in DOCUMENTS {
        sandbox.write(file, plain);
        sandbox.lacre_ok(&["encrypt", "--in-place", "--age", &sandbox::recipient("ops"), file]);
        sops(&peer, &sandbox, &["unset", file, path]);
        sandbox.lacre_ok(&["decrypt", file]);
        let again = sandbox.lacre(&["unset", "--idempotent", file, path]);
        assert!(String::from_utf8_lossy(&again.stderr).contains("unchanged"), "{file}: {again:?}");
    }
}

#[test]
fn groups_open_in_both_tools_whoever_made_them() {
    let sandbox = Sandbox::new();
    let (ops, ci) = (sandbox::recipient("ops"), sandbox::recipient("ci"));
    // What sops writes has lost its seal, as somebody may have wanted it to: that is looked at, and made again.
    let reseal = || {
        assert_eq!(sandbox.lacre(&["decrypt", "a.yaml"]).status.code(), Some(51));
        sandbox.lacre_ok(&["reseal", "a.yaml"]);
        assert_eq!(sandbox.lacre_ok(&["decrypt", "a.yaml"]), "a: b\n");
    };
    for peer in Sops::all().unwrap() {
        sandbox.write("a.yaml", "a: b\n");
        sandbox.lacre_ok(&["encrypt", "--in-place", "--age", &ops, "a.yaml"]);
        let value = |text: &str| text.lines().next().unwrap().to_owned();
        let first = sandbox.read("a.yaml");
        sandbox.lacre_ok(&["groups", "add", "-f", "a.yaml", "-i", "--age", &ops]);
        assert_eq!(sops(&peer, &sandbox, &["decrypt", "a.yaml"]), "a: b\n");
        sops(&peer, &sandbox, &["groups", "add", "-f", "a.yaml", "-i", "--age", &ci]);
        reseal();
        assert_eq!(value(&sandbox.read("a.yaml")), value(&first), "values stay when a group is added");
        sandbox.lacre_ok(&["groups", "delete", "-f", "a.yaml", "-i", "2"]);
        assert_ne!(value(&sandbox.read("a.yaml")), value(&first), "values change with the data key");
        assert_eq!(sops(&peer, &sandbox, &["decrypt", "a.yaml"]), "a: b\n");
        sops(
            &peer,
            &sandbox,
            &["groups", "delete", "-f", "a.yaml", "-i", "--shamir-secret-sharing-threshold", "1", "1"],
        );
        reseal();
    }
}

#[test]
fn recipients_that_the_rule_does_not_name_are_not_carried_into_new_groups() {
    let sandbox = Sandbox::new();
    let (ops, ci) = (sandbox::recipient("ops"), sandbox::recipient("ci"));
    let stranger = sandbox::recipient("stranger");
    sandbox.write(".sops.yaml", &format!("creation_rules:\n  - age: {ops}\n"));
    sandbox.write("a.yaml", "a: b\n");
    let peer = Sops::v3_13().unwrap();
    sops(&peer, &sandbox, &["encrypt", "-i", "--age", &format!("{ops},{stranger}"), "a.yaml"]);
    let words = ["groups", "add", "-f", "a.yaml", "-i", "--age", &ci];
    let refused = sandbox.lacre(&words);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains(&stranger));
    sandbox.lacre_ok(&[&words[..], &["--accept-recipients"]].concat());
}

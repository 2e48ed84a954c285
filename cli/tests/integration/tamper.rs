//! What someone without the key does to a sealed file is noticed, whatever the command, and no plaintext comes out.

use std::process::Output;

use crate::sandbox::{self, Sandbox};

const PLAIN: &str =
    "# first\nalpha: one\nbeta: two\nempty: \"\"\nclear_unencrypted: visible\nlist:\n  - p\n  - q\n";

fn sealed() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    sandbox.write("a.yaml", PLAIN);
    sandbox.lacre_ok(&["encrypt", "--in-place", "--age", &sandbox::recipient("ops"), "a.yaml"]);
    let text = sandbox.read("a.yaml");
    (sandbox, text)
}

/// The text between the first `ENC[` after `key` and its bracket.
fn token<'a>(text: &'a str, key: &str) -> &'a str {
    let start = text.find(key).unwrap() + text[text.find(key).unwrap()..].find("ENC[").unwrap();
    &text[start..=start + text[start..].find(']').unwrap()]
}

fn refused(sandbox: &Sandbox, words: &[&str], what: &str) -> Output {
    let before = sandbox.read("a.yaml");
    let output = sandbox.lacre(words);
    let code = output.status.code().unwrap();
    assert!([1, 2, 25, 51].contains(&code), "{what}: {words:?} ended with {code}");
    assert!(output.stdout.is_empty(), "{what}: {words:?} gave something away");
    assert_eq!(sandbox.read("a.yaml"), before, "{what}: {words:?} wrote");
    output
}

#[test]
fn no_command_takes_a_file_that_was_changed() {
    let (sandbox, text) = sealed();
    let (alpha, beta) = (token(&text, "alpha:").to_owned(), token(&text, "beta:").to_owned());
    let swapped = text.replace(&alpha, "@").replace(&beta, &alpha).replace('@', &beta);
    let items: Vec<&str> = text.lines().filter(|line| line.starts_with("  - ENC[")).collect();
    let list = text.replace(items[0], "@").replace(items[1], items[0]).replace('@', items[1]);
    let stranger = sandbox::recipient("stranger");
    let tampered = [
        ("values swapped", swapped),
        ("list items swapped", list),
        ("a sealed value removed", text.replace(&format!("alpha: {alpha}\n"), "")),
        ("a sealed value emptied", text.replace(&alpha, "\"\"")),
        ("a sealed value put in the clear", text.replace(&alpha, "known")),
        ("an empty value filled", text.replace("empty: \"\"", &format!("empty: {alpha}"))),
        ("a clear value changed", text.replace("visible", "other")),
        ("a clear key renamed", text.replace("clear_unencrypted", "other_unencrypted")),
        ("an empty value added", format!("extra: \"\"\n{text}")),
        ("a null added", format!("extra: null\n{text}")),
        ("a type word changed", text.replace(&alpha, &alpha.replace("type:str", "type:int"))),
        ("a comment removed", text.split_once('\n').unwrap().1.to_owned()),
        ("a clear comment added", text.replace("beta:", "# note\nbeta:")),
        ("a recipient renamed", text.replace(&sandbox::recipient("ops"), &stranger)),
        (
            "the selector changed",
            text.replace("unencrypted_suffix: _unencrypted", "unencrypted_suffix: _clear"),
        ),
        ("the time changed", text.replace("lastmodified: \"20", "lastmodified: \"21")),
        ("the version changed", text.replace("version: 3.13.3", "version: 3.13.2")),
        ("the seal damaged", text.replace("lacre: ENC[AES256_GCM,data:", "lacre: ENC[AES256_GCM,data:AAAA")),
        (
            "the MAC removed",
            text.lines()
                .filter(|line| !line.starts_with("    mac:"))
                .map(|line| format!("{line}\n"))
                .collect(),
        ),
    ];
    for (what, changed) in &tampered {
        assert_ne!(*changed, text, "{what}: the test changes nothing");
        sandbox.write("a.yaml", changed);
        for words in [
            &["decrypt", "a.yaml"][..],
            &["decrypt", "--extract", r#"["beta"]"#, "a.yaml"],
            &["set", "a.yaml", r#"["beta"]"#, "1"],
            &["rotate", "--in-place", "a.yaml"],
            &["reseal", "a.yaml"],
        ] {
            if *what == "a recipient renamed" {
                assert_eq!(sandbox.lacre(words).status.code(), Some(128), "{what}");
            } else {
                refused(&sandbox, words, what);
            }
        }
    }
}

#[test]
fn a_removed_seal_is_told_from_none_and_can_be_put_back() {
    let (sandbox, text) = sealed();
    let stripped: String =
        text.lines().filter(|line| !line.starts_with("    lacre:")).map(|line| format!("{line}\n")).collect();
    sandbox.write("a.yaml", &stripped);
    let output = refused(&sandbox, &["decrypt", "a.yaml"], "the seal removed");
    assert_eq!(output.status.code(), Some(51));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`lacre reseal`"));
    refused(&sandbox, &["set", "a.yaml", r#"["beta"]"#, "1"], "the seal removed");
    sandbox.lacre_ok(&["reseal", "a.yaml"]);
    assert_eq!(sandbox.lacre_ok(&["decrypt", "a.yaml"]), PLAIN);
    assert_eq!(sandbox.read("a.yaml").lines().count(), text.lines().count());
}

#[test]
fn a_recipient_added_to_a_stripped_file_is_not_taken_over() {
    let (sandbox, text) = sealed();
    let (ops, stranger) = (sandbox::recipient("ops"), sandbox::recipient("stranger"));
    sandbox.write(".sops.yaml", &format!("creation_rules:\n  - age: {ops}\n"));
    let added = format!("    age:\n        - enc: nothing\n          recipient: {stranger}\n");
    let stripped: String =
        text.lines().filter(|line| !line.starts_with("    lacre:")).map(|line| format!("{line}\n")).collect();
    sandbox.write("a.yaml", &stripped.replace("    age:\n", &added));
    let output = refused(&sandbox, &["reseal", "a.yaml"], "a recipient added");
    assert!(String::from_utf8_lossy(&output.stderr).contains(&format!("does not name age {stranger}")));
    sandbox.lacre_ok(&["reseal", "--accept-recipients", "a.yaml"]);
    sandbox.lacre_ok(&["updatekeys", "--yes", "a.yaml"]);
    assert!(!sandbox.read("a.yaml").contains(&stranger));
}

//! The verbs that rewrite a sealed text: what they leave alone, and what other tools make of it.

use std::collections::BTreeSet;

use lacre_crypto::recipient::Recipient;
use lacre_crypto::recipient::age::AgeIdentity;
use lacre_crypto::{
    Format, Groups, OpenOptions, SecretText, TreePath, Verdict, reencrypt, reseal, rotate, set, update_keys,
};
use xtask::peers::sops::Sops;

use crate::support::{Bench, open, open_with, seal, write_options};

fn hundred() -> String {
    (0..100).map(|number| format!("key{number:02}: value {number}\n")).collect()
}

/// Lines of `new` that `old` does not have.
fn changed<'a>(old: &str, new: &'a str) -> Vec<&'a str> {
    let old: BTreeSet<&str> = old.lines().collect();
    new.lines().filter(|line| !old.contains(line)).collect()
}

fn starts(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| line.trim().split(':').next().unwrap_or_default().to_owned()).collect()
}

fn path(text: &str) -> TreePath {
    TreePath::parse(text).unwrap()
}

fn json(text: &str) -> SecretText {
    SecretText::from(text)
}

#[test]
fn one_changed_value_changes_its_line_and_the_metadata() {
    let identity = AgeIdentity::generate();
    let sealed = seal(hundred(), Format::Yaml, &identity).unwrap();
    let mut later = write_options();
    later.now = "2026-01-02T03:04:06Z".parse().unwrap();
    let opened = open(&sealed, Format::Yaml, &identity).unwrap();
    let changed_text = set(&opened, &path("[\"key42\"]"), &json("\"other\""), &later).unwrap().unwrap();
    let lines = changed(&sealed, &changed_text);
    assert_eq!(starts(&lines), ["key42", "lacre", "lastmodified", "mac"]);
    assert_eq!(changed_text.lines().count(), sealed.lines().count());
}

#[test]
fn what_is_there_already_is_not_written() {
    let identity = AgeIdentity::generate();
    let recipient = identity.recipient();
    let opened =
        open(&seal("a: x\nb: 5\nc: [1]\n", Format::Yaml, &identity).unwrap(), Format::Yaml, &identity)
            .unwrap();
    for (at, value) in [("[\"a\"]", "\"x\""), ("[\"b\"]", "5"), ("[\"c\"]", "[1]"), ("[\"c\"][0]", "1")] {
        assert_eq!(set(&opened, &path(at), &json(value), &write_options()).unwrap(), None, "{at}");
    }
    assert_eq!(reencrypt(&opened, opened.plaintext(), &write_options()).unwrap(), None);
    assert_eq!(update_keys(&opened, &Groups::one(vec![&recipient]), &write_options()).unwrap(), None);
    assert_eq!(reseal(&opened, &write_options()).unwrap(), None);
}

/// Text before, path, value, text after; the rest of the text stays to the byte.
const SETS: &[(&str, &str, &str, &str)] = &[
    ("a: x # c\n", "[\"a\"]", "\"w\"", "a: w # c\n"),
    ("a: 'x'\n", "[\"a\"]", "\"it's\"", "a: 'it''s'\n"),
    ("a: \"x\"\n", "[\"a\"]", "5", "a: 5\n"),
    ("a: x\n", "[\"a\"]", "\"5\"", "a: \"5\"\n"),
    ("a: x\n", "[\"a\"]", "true", "a: true\n"),
    ("a: |\n  x\n  y\nb: z\n", "[\"a\"]", "\"p\\nq\\n\"", "a: |\n  p\n  q\nb: z\n"),
    ("a: |\n  x\nb: z\n", "[\"a\"]", "5", "a: 5\nb: z\n"),
    ("a: |-\n  x\nb: z\n", "[\"a\"]", "\"p\\n\"", "a: \"p\\n\"\nb: z\n"),
    ("a: x\n", "[\"b\"]", "\"new\"", "a: x\nb: new\n"),
    ("a:\n    b: x\nc: d\n", "[\"a\"][\"new\"]", "1", "a:\n    b: x\n    new: 1\nc: d\n"),
    ("a:\n- x\nc: d\n", "[\"a\"][1]", "\"w\"", "a:\n- x\n- w\nc: d\n"),
    ("a: {b: x}\n", "[\"a\"][\"c\"]", "\"y\"", "a: {b: x, c: \"y\"}\n"),
    ("a: [x]\n", "[\"a\"][1]", "\"y\"", "a: [x, \"y\"]\n"),
    ("a: x\n", "[\"b\"][\"c\"]", "\"y\"", "a: x\nb: {\"c\": \"y\"}\n"),
    ("a: x\nb:\n", "[\"b\"]", "\"w\"", "a: x\nb: w\n"),
    ("a: x", "[\"b\"]", "\"y\"", "a: x\nb: \"y\"\n"),
    ("a: x\n", "[\"m\"]", "\"p\\nq\\n\"", "a: x\nm: |\n  p\n  q\n"),
    ("a:\n- x\n-\n", "[\"a\"][1]", "\"w\"", "a:\n- x\n- w\n"),
    ("a: | # c\n  x\nb: z\n", "[\"a\"]", "5", "a: 5 # c\nb: z\n"),
    ("a: |\n  x\nb: z\n", "[\"a\"]", "\"p\\nq\"", "a: |-\n  p\n  q\nb: z\n"),
    ("a: |\n  x\n\nb: z\n", "[\"a\"]", "\"p\\n\\n\"", "a: \"p\\n\\n\"\n\nb: z\n"),
    ("a: |\nb: z\n", "[\"a\"]", "5", "a: 5\nb: z\n"),
    ("a:\n- x\n- y\nb: z\n", "[\"a\"]", "\"w\"", "a:\n w\nb: z\n"),
    ("a:\n- - x\n- y\nb: z\n", "[\"a\"]", "[1]", "a:\n [1]\nb: z\n"),
    ("a: # c\n  b: x\n  d : # e\n", "[\"a\"]", "\"w\"", "a: # c\n  w # e\n"),
    ("a :\nb: x\n", "[\"a\"]", "1", "a : 1\nb: x\n"),
    ("a: x\nb: y\n", "[\"a\"]", "{\"c\": [1]}", "a: {\"c\": [1]}\nb: y\n"),
];

#[test]
fn set_puts_a_value_in_its_place_and_style() {
    let identity = AgeIdentity::generate();
    for (before, at, value, after) in SETS {
        let opened = open(&seal(before, Format::Yaml, &identity).unwrap(), Format::Yaml, &identity).unwrap();
        let written = set(&opened, &path(at), &json(value), &write_options());
        let written = written.unwrap_or_else(|error| panic!("{before} {at}: {error}")).unwrap();
        assert_eq!(
            open(&written, Format::Yaml, &identity).unwrap().plaintext().as_text().unwrap(),
            *after,
            "{at}"
        );
    }
    let opened =
        open(&seal("{\n  \"a\": 1\n}\n", Format::Json, &identity).unwrap(), Format::Json, &identity).unwrap();
    let written = set(&opened, &path("[\"b\"]"), &json("[\"x\"]"), &write_options()).unwrap().unwrap();
    let text = "{\n  \"a\": 1,\n  \"b\": [\n    \"x\"\n  ]\n}\n";
    assert_eq!(open(&written, Format::Json, &identity).unwrap().plaintext().as_text().unwrap(), text);
}

#[test]
fn set_refuses_paths_that_lead_nowhere() {
    let identity = AgeIdentity::generate();
    let text = "a: x\nl: [1]\nm: {k: v}\nal: &al {b: 1}\nuse: *al\n";
    let opened = open(&seal(text, Format::Yaml, &identity).unwrap(), Format::Yaml, &identity).unwrap();
    let cases = [
        ("[\"a\"][\"b\"]", "1", "in the way"),
        ("[\"l\"][5]", "1", "beyond"),
        ("[\"l\"][\"k\"]", "1", "a list here"),
        ("[\"m\"][0]", "1", "a mapping here"),
        ("[\"use\"][\"b\"]", "2", "alias"),
        ("[\"n\"][3]", "1", "position 0"),
        ("[\"a\"]", "{", "not JSON"),
        ("[\"a\"]", "CANARY", "not JSON"),
    ];
    for (at, value, reason) in cases {
        let error = set(&opened, &path(at), &json(value), &write_options()).unwrap_err().to_string();
        assert!(error.contains(reason) && !error.contains("CANARY"), "{at}: {error}");
    }
}

#[test]
fn recipients_that_stay_keep_their_entries_and_values_theirs() {
    let (stays, comes) = (AgeIdentity::generate(), AgeIdentity::generate());
    let sealed = seal(hundred(), Format::Yaml, &stays).unwrap();
    let opened = open(&sealed, Format::Yaml, &stays).unwrap();
    let (first, second) = (stays.recipient(), comes.recipient());
    let both = update_keys(&opened, &Groups::one(vec![&first, &second]), &write_options()).unwrap().unwrap();
    let removed: Vec<&str> = changed(&both, &sealed);
    assert_eq!(starts(&removed), ["lacre"]);
    assert_eq!(open(&both, Format::Yaml, &comes).unwrap().plaintext(), opened.plaintext());
    let alone = open(&both, Format::Yaml, &comes).unwrap();
    let alone = update_keys(&alone, &Groups::one(vec![&second]), &write_options()).unwrap().unwrap();
    assert!(open(&alone, Format::Yaml, &stays).is_err());
    assert!(open(&alone, Format::Yaml, &comes).is_ok());
}

#[test]
fn rotate_draws_everything_anew() {
    let identity = AgeIdentity::generate();
    let sealed = seal(hundred(), Format::Yaml, &identity).unwrap();
    let opened = open(&sealed, Format::Yaml, &identity).unwrap();
    let recipient = identity.recipient();
    let rotated = rotate(&opened, &Groups::one(vec![&recipient]), &write_options()).unwrap();
    assert_eq!(changed(&sealed, &rotated).iter().filter(|line| line.starts_with("key")).count(), 100);
    assert_eq!(open(&rotated, Format::Yaml, &identity).unwrap().plaintext().as_text().unwrap(), hundred());
}

#[test]
fn what_stock_sops_does_to_a_sealed_file_is_told_apart() {
    let bench = Bench::new();
    let text = "a: x # why\nb:\n  - y\n";
    for sops in Sops::all().unwrap() {
        let sealed = seal(text, Format::Yaml, &bench.identity).unwrap();
        // A new MAC has no mark: honestly a file of stock sops.
        let written =
            bench.sops(&sops, &["set", "FILE", "[\"a\"]", "\"z\""], "set.yaml", &sealed).unwrap().file;
        let opened = open(&written, Format::Yaml, &bench.identity).unwrap();
        assert_eq!(opened.verdict(), Verdict::NeverSealed, "{}", sops.version());
        let resealed = reseal(&opened, &write_options()).unwrap().unwrap();
        assert_eq!(open(&resealed, Format::Yaml, &bench.identity).unwrap().verdict(), Verdict::Valid);
        assert!(opened.plaintext().as_text().unwrap().contains("a: z"));
        // Groups and updatekeys keep the MAC and drop the seal.
        let arguments = [
            "groups",
            "add",
            "-i",
            "-f",
            "FILE",
            "--age",
            &AgeIdentity::generate().recipient().id().to_string()[4..],
        ];
        let written = bench.sops(&sops, &arguments, "groups.yaml", &sealed);
        let Ok(written) = written else { continue };
        let error = open(&written.file, Format::Yaml, &bench.identity).unwrap_err();
        assert!(error.contains("seal was removed") || error.contains("cannot unwrap"), "{error}");
    }
    let sealed = seal(text, Format::Yaml, &bench.identity).unwrap();
    let stripped: String = sealed
        .lines()
        .filter(|line| !line.starts_with("    lacre:"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(open(&stripped, Format::Yaml, &bench.identity).unwrap_err().contains("seal was removed"));
    let options = OpenOptions { accept_removed_seal: true, ..OpenOptions::default() };
    let opened = open_with(&stripped, Format::Yaml, &bench.identity, options).unwrap();
    assert_eq!((opened.verdict(), opened.warnings().len()), (Verdict::Removed, 1));
    let resealed = reseal(&opened, &write_options()).unwrap().unwrap();
    assert_eq!(starts(&changed(&stripped, &resealed)), ["lacre"]);
}

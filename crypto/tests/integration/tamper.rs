//! What someone without the data key can do to a sealed file: each change is refused, and says where.

use lacre_crypto::recipient::age::AgeIdentity;
use lacre_crypto::{Format, Selector, SelectorKind, TreePath, set};

use crate::support::{open, seal, seal_with, write_options};

const TEXT: &str = "\
# head
a: one
b: two
n: 5
e: \"\"
z: ~
m:
  k: three
l: [p, q]
clear_unencrypted: open
";

/// The sealed text of a line that starts with `key`.
fn line<'a>(sealed: &'a str, key: &str) -> &'a str {
    sealed.lines().find(|line| line.trim_start().starts_with(key)).unwrap_or_else(|| panic!("no line {key}"))
}

fn enc<'a>(sealed: &'a str, key: &str) -> &'a str {
    let line = line(sealed, key);
    &line[line.find("ENC[").unwrap()..=line.rfind(']').unwrap()]
}

#[test]
fn every_change_is_refused() {
    let identity = AgeIdentity::generate();
    let sealed = seal(TEXT, Format::Yaml, &identity).unwrap();
    let (a, b) = (enc(&sealed, "a:"), enc(&sealed, "b:"));
    let opened = open(&sealed, Format::Yaml, &identity).unwrap();
    let path = TreePath::parse("[\"a\"]").unwrap();
    let newer = set(&opened, &path, &"\"new\"".into(), &write_options()).unwrap().unwrap();
    let stranger = AgeIdentity::generate();
    let foreign = seal(TEXT, Format::Yaml, &stranger).unwrap();
    let mac = line(&sealed, "mac:");
    let cases: Vec<(&str, String)> = vec![
        ("values exchanged", sealed.replace(a, "@").replace(b, a).replace('@', b)),
        ("a value copied elsewhere", sealed.replace(b, a)),
        ("an older value pasted back", newer.replace(enc(&newer, "a:"), a)),
        ("a key renamed", sealed.replace("\nb: ", "\nbb: ")),
        ("a value removed", sealed.replace(&format!("{}\n", line(&sealed, "b:")), "")),
        ("a null added", sealed.replace("\nb: ", "\nx: ~\nb: ")),
        ("an empty value added", sealed.replace("\nb: ", "\nx: \"\"\nb: ")),
        ("a null made empty", sealed.replace("z: ~", "z: \"\"")),
        ("an empty mapping added", sealed.replace("\nb: ", "\nx: {}\nb: ")),
        (
            "keys in another order",
            sealed
                .replacen(line(&sealed, "a:"), "@", 1)
                .replacen(line(&sealed, "b:"), line(&sealed, "a:"), 1)
                .replacen('@', line(&sealed, "b:"), 1),
        ),
        ("list items exchanged", {
            let items = line(&sealed, "l:");
            let (first, second) = items.split_once("\", \"").unwrap();
            let (first, second) = (&first["l: [\"".len()..], &second[..second.len() - 2]);
            sealed.replace(items, &format!("l: [\"{second}\", \"{first}\"]"))
        }),
        ("a clear value changed", sealed.replace("clear_unencrypted: open", "clear_unencrypted: shut")),
        (
            "a clear value added",
            sealed.replace("clear_unencrypted: open", "clear_unencrypted: open\nx_unencrypted: y"),
        ),
        ("a sealed value replaced by a clear one", sealed.replace(a, "one")),
        (
            "ciphertext moved to the clear",
            sealed.replace("clear_unencrypted: open", &format!("clear_unencrypted: {a}")),
        ),
        (
            "a type changed",
            sealed.replace(enc(&sealed, "n:"), &enc(&sealed, "n:").replace("type:int", "type:str")),
        ),
        ("junk after a value", sealed.replace(a, &format!("{a}junk"))),
        ("a value cut short", sealed.replace(a, &a[..a.len() - 10])),
        ("a custom tag added", sealed.replace("m:\n", "m: !x\n")),
        ("a comment removed", sealed.lines().skip(1).map(|line| format!("{line}\n")).collect()),
        ("a comment added", format!("# do not rotate\n{sealed}")),
        ("a selector changed", sealed.replace("unencrypted_suffix: _unencrypted", "unencrypted_suffix: b")),
        ("the selector removed", sealed.replace("    unencrypted_suffix: _unencrypted\n", "")),
        (
            "another selector in its place",
            sealed.replace("unencrypted_suffix: _unencrypted", "encrypted_regex: ^[abnem]"),
        ),
        ("a recipient added", sealed.replace("    age:\n", &format!("    age:\n{}", entries(&foreign)))),
        ("the time changed", sealed.replace("2026-01-02T03:04:05Z", "2036-01-02T03:04:05Z")),
        ("the version changed", sealed.replace("version: 3.13.3", "version: 3.9.0")),
        ("an unknown field added", sealed.replace("    version:", "    attention: x\n    version:")),
        ("a threshold added", sealed.replace("    version:", "    shamir_threshold: 2\n    version:")),
        (
            "MAC rule changed",
            sealed.replace("    unencrypted", "    mac_only_encrypted: true\n    unencrypted"),
        ),
        ("the MAC removed", sealed.replace(&format!("{mac}\n"), "")),
        ("a foreign MAC", sealed.replace(mac, line(&foreign, "mac:"))),
        ("the seal removed", sealed.replace(&format!("{}\n", line(&sealed, "lacre:")), "")),
        ("a foreign seal", sealed.replace(line(&sealed, "lacre:"), line(&foreign, "lacre:"))),
        ("an older seal", newer.replace(line(&newer, "lacre:"), line(&sealed, "lacre:"))),
        (
            "an older seal and MAC",
            newer.replace(line(&newer, "lacre:"), line(&sealed, "lacre:")).replace(line(&newer, "mac:"), mac),
        ),
        ("a document added", format!("{sealed}---\nx_unencrypted: y\n")),
        ("a field in other letters", sealed.replace("    version:", "    MAC: x\n    version:")),
        ("a duplicate key", sealed.replace("\nb: ", "\na: x\nb: ")),
        ("a duplicate field", sealed.replace("    version:", "    version: 3.9.0\n    version:")),
    ];
    for (change, tampered) in cases {
        assert_ne!(tampered, sealed, "{change}: the case changes nothing");
        assert!(open(&tampered, Format::Yaml, &identity).is_err(), "{change} was not noticed");
    }
}

/// The lines of the age entries of a sealed text.
fn entries(sealed: &str) -> String {
    let lines = sealed.lines().skip_while(|line| *line != "    age:").skip(1);
    lines.take_while(|line| line.starts_with("     ")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn white_space_and_quotes_are_free() {
    let identity = AgeIdentity::generate();
    let sealed = seal(TEXT, Format::Yaml, &identity).unwrap();
    let a = enc(&sealed, "a:");
    for free in [
        sealed.replace('\n', "\r\n"),
        sealed.replace("\nb: ", "\n\n\nb: "),
        sealed.replace(a, &format!("\"{a}\"")),
        sealed.replace("m:\n  ", "m:\n      "),
        format!("---\n{sealed}"),
        sealed.replace("clear_unencrypted: open", "'clear_unencrypted':   \"open\""),
    ] {
        assert!(open(&free, Format::Yaml, &identity).is_ok(), "{free}");
    }
}

#[test]
fn files_that_would_leave_secrets_in_the_clear_are_refused() {
    let identity = AgeIdentity::generate();
    let refused = |text: &str, selector: Selector| {
        seal_with(text, Format::Yaml, &identity, selector, write_options()).expect_err(text)
    };
    let regex = |pattern: &str| Selector::new(SelectorKind::EncryptedRegex, pattern).unwrap();
    assert!(refused("a: x\n", regex("^nothing$")).contains("matches none of the 1 values"));
    assert!(refused("a: &x s\nb_unencrypted: *x\n", Selector::default()).contains("in the clear"));
    assert!(
        refused("a: x\nb_unencrypted: ENC[AES256_GCM,data:x]\n", Selector::default())
            .contains("form of a sealed")
    );
    assert!(Selector::new(SelectorKind::EncryptedRegex, "(").is_err());
    assert!(refused("a: x\nsops: y\n", Selector::default()).contains("sops"));
    let mut insist = write_options();
    insist.allow_plaintext = true;
    assert!(seal_with("a: x\n", Format::Yaml, &identity, regex("^nothing$"), insist).is_ok());
}

#[test]
fn what_stock_tools_would_misread_is_refused_with_its_place() {
    let identity = AgeIdentity::generate();
    let cases = [
        ("a: x\n1: y\n", Format::Yaml, "line 2, column 1"),
        ("a: x\ntrue: y\n", Format::Yaml, "line 2, column 1"),
        ("a: x\na: y\n", Format::Yaml, "line 2, column 1"),
        ("a: x\n---\nb: y\nb: z\n", Format::Yaml, "line 4, column 1"),
        ("? [a]\n: x\n", Format::Yaml, "column 3"),
        ("- a\n", Format::Yaml, "root must be a mapping"),
        ("just text\n", Format::Yaml, "root must be a mapping"),
        ("# nothing\n", Format::Yaml, ""),
        ("", Format::Yaml, ""),
        ("a: !!int abc\n", Format::Yaml, "!!int"),
        ("a: x\nb: 18446744073709551615\n", Format::Yaml, "line 2, column 4"),
        ("%YAML 1.2\n---\na: x\n", Format::Yaml, "%YAML"),
        ("a: x # one\u{85}b: y\n", Format::Yaml, ""),
        ("a_unencrypted: x\u{2028}y\nb: z\n", Format::Yaml, "line 1, column 17"),
        ("a_unencrypted: \"\\/\"\nb: z\n", Format::Yaml, "escapes"),
        ("\"\\ud83d\\ude00\": z\n", Format::Yaml, ""),
        ("a: x\nb_unencrypted: |\n  ends", Format::Yaml, "final line break"),
        ("a: x\nb_unencrypted: |+\n ", Format::Yaml, "final line break"),
        ("a: x\nb_unencrypted: |\n  \ttab\n", Format::Yaml, "tab"),
        ("a: x\nb_unencrypted: >\n\n  \ttab\n", Format::Yaml, "tab"),
        ("a: !!binary |\n  aGk=\n", Format::Yaml, "line 1, column 4"),
        ("a: !!int # c\n  5\n", Format::Yaml, "line 1, column 4"),
        ("\n\u{feff}a: x\nb: y\n", Format::Yaml, "line 2, column 1"),
        ("a: *nowhere\n", Format::Yaml, ""),
        ("a: [x\n", Format::Yaml, ""),
        ("a: \"x\n", Format::Yaml, ""),
        ("{\"a_unencrypted\": 9007199254740993, \"b\": 1}", Format::Json, "readers disagree"),
    ];
    for (text, format, reason) in cases {
        let error = seal(text, format, &identity).expect_err(text);
        assert!(error.contains(reason), "{text}: {error}");
    }
}

//! The formats without a structure of their own: what of a sealed text may not change, what is refused, and what
//! each verb does.

use lacre_crypto::recipient::age::AgeIdentity;
use lacre_crypto::{
    Format, Groups, OpenOptions, SecretBytes, SecretText, Selector, SelectorKind, TreePath, Verdict,
    reencrypt, reseal, rotate, set,
};

use crate::support::{open, open_with, seal, seal_with, write_options};

/// The part of `sealed` from `start` to the next closing bracket.
fn enc<'a>(sealed: &'a str, start: &str) -> &'a str {
    let from = sealed.find(start).unwrap_or_else(|| panic!("no {start} in {sealed}")) + start.len();
    &sealed[from..=from + sealed[from..].find(']').unwrap()]
}

/// `sealed` without the line that starts with `start`.
fn without_line(sealed: &str, start: &str) -> String {
    let kept = sealed.lines().filter(|line| !line.trim_start().starts_with(start));
    kept.map(|line| format!("{line}\n")).collect()
}

/// None of the changed texts opens.
fn refused(format: Format, identity: &AgeIdentity, sealed: &str, cases: &[(&str, String)]) {
    assert!(open(sealed, format, identity).is_ok());
    for (change, tampered) in cases {
        assert_ne!(tampered, sealed, "{change}: the case changes nothing");
        assert!(open(tampered, format, identity).is_err(), "{change} was not noticed");
    }
}

/// A seal that was stripped is missed, and put back for whoever insists.
fn misses_its_seal(format: Format, identity: &AgeIdentity, sealed: &str, seal: &str) {
    let stripped = without_line(sealed, seal);
    assert!(open(&stripped, format, identity).unwrap_err().contains("seal was removed"), "{stripped}");
    let options = OpenOptions { accept_removed_seal: true, ..OpenOptions::default() };
    let opened = open_with(&stripped, format, identity, options).unwrap();
    assert_eq!(opened.verdict(), Verdict::Removed);
    let resealed = reseal(&opened, &write_options()).unwrap().unwrap();
    let again = open(&resealed, format, identity).unwrap();
    assert_eq!((again.verdict(), again.plaintext()), (Verdict::Valid, opened.plaintext()));
    assert_eq!(without_line(&resealed, seal), stripped);
}

/// Sealing anew under another key, and sealing another content under the same one.
fn is_rewritten(format: Format, identity: &AgeIdentity, sealed: &str, other: &[u8]) {
    let opened = open(sealed, format, identity).unwrap();
    let recipient = identity.recipient();
    let rotated = rotate(&opened, &Groups::one(vec![&recipient]), &write_options()).unwrap();
    assert_eq!(open(&rotated, format, identity).unwrap().plaintext(), opened.plaintext());
    assert_eq!(reencrypt(&opened, opened.plaintext(), &write_options()).unwrap(), None);
    let other = SecretBytes::new(other.to_vec());
    let changed = reencrypt(&opened, &other, &write_options()).unwrap().unwrap();
    assert_eq!(open(&changed, format, identity).unwrap().plaintext(), &other);
}

#[test]
fn a_sealed_binary_file_may_not_change() {
    let identity = AgeIdentity::generate();
    let sealed = seal(b"\xffsecret\0", Format::Binary, &identity).unwrap();
    let same_key = open(&sealed, Format::Binary, &identity).unwrap();
    let other = reencrypt(&same_key, &SecretText::from("other"), &write_options()).unwrap().unwrap();
    let data = enc(&sealed, "\"data\": \"");
    let line = |start: &str| sealed.lines().find(|line| line.trim_start().starts_with(start)).unwrap();
    let cases = vec![
        ("an older value", other.replace(enc(&other, "\"data\": \""), data)),
        ("the value of another file", {
            let foreign = seal(b"x", Format::Binary, &AgeIdentity::generate()).unwrap();
            sealed.replace(data, enc(&foreign, "\"data\": \""))
        }),
        ("an empty value", sealed.replace(data, "")),
        ("a clear value", sealed.replace(data, "c2VjcmV0")),
        ("the value under another key", sealed.replace("\"data\"", "\"date\"")),
        ("a second value", sealed.replacen("{", "{\"x_unencrypted\": 1,", 1)),
        ("junk behind the value", sealed.replace(data, &format!("{data}x"))),
        ("a selector", sealed.replace("\"_unencrypted\"", "\"data\"")),
        ("the MAC rule", sealed.replace("\"mac\":", "\"mac_only_encrypted\": true, \"mac\":")),
        ("the time", sealed.replace("2026-01-02", "2036-01-02")),
        ("the MAC removed", without_line(&sealed, "\"mac\"")),
        (
            "the seal of another text",
            sealed.replace(line("\"lacre\""), {
                other.lines().find(|line| line.trim_start().starts_with("\"lacre\"")).unwrap()
            }),
        ),
        ("text behind the object", format!("{sealed}x")),
    ];
    refused(Format::Binary, &identity, &sealed, &cases);
    misses_its_seal(Format::Binary, &identity, &sealed, "\"lacre\"");
    is_rewritten(Format::Binary, &identity, &sealed, b"\0\xfe");
}

#[test]
fn a_binary_file_is_sealed_whatever_the_selector() {
    let identity = AgeIdentity::generate();
    let selector = Selector::new(SelectorKind::EncryptedRegex, "^nothing$").unwrap();
    let sealed = seal_with(b"\xff", Format::Binary, &identity, selector, write_options()).unwrap();
    assert!(sealed.starts_with("{\n\t\"data\": \"ENC[") && !sealed.contains("nothing"), "{sealed}");
    let opened = open(&sealed, Format::Binary, &identity).unwrap();
    let path = |text: &str| TreePath::parse(text).unwrap();
    assert_eq!(opened.extract(&path("[\"data\"]")).unwrap().expose_secret(), b"\xff");
    for at in ["[\"data\"]", "[\"more\"]"] {
        let error = set(&opened, &path(at), &"\"x\"".into(), &write_options()).unwrap_err();
        assert!(error.to_string().contains("one value"), "{error}");
    }
    let error = open("no JSON", Format::Binary, &identity).unwrap_err();
    assert!(error.contains("line 1"), "{error}");
}

#[test]
fn what_is_no_text_is_refused_by_every_other_format() {
    let identity = AgeIdentity::generate();
    for format in [Format::Json, Format::Yaml] {
        let error = seal(b"a: b\nc: \xe9\n", format, &identity).unwrap_err();
        assert!(error.contains("line 2, column 4") && error.contains("binary"), "{error}");
    }
}

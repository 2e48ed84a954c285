//! The formats without a structure of their own: what of a sealed text may not change, what is refused, and what
//! each verb does.

use lacre_crypto::recipient::age::AgeIdentity;
use lacre_crypto::recipient::{Identity, Recipient};
use lacre_crypto::{
    EncryptOptions, Format, Groups, Layout, OpenOptions, SealedFile, SecretBytes, SecretText, Selector,
    SelectorKind, TreePath, Verdict, reencrypt, reseal, rotate, set,
};

use xtask::peers::sops::Sops;

use crate::support::{Bench, open, open_with, seal, seal_with, write_options};

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
    assert_eq!(
        opened.extract(&path("[\"data\"]"), Format::Binary, &Layout::default()).unwrap().expose_secret(),
        b"\xff"
    );
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

const DOTENV: &str = "# head\nA=one\nB=two\nE=\nREGION_unencrypted=eu\n# tail\nC=three\n";

#[test]
fn a_sealed_dotenv_file_may_not_change() {
    let identity = AgeIdentity::generate();
    let sealed = seal(DOTENV, Format::Dotenv, &identity).unwrap();
    let (a, b) = (enc(&sealed, "\nA="), enc(&sealed, "\nB="));
    let opened = open(&sealed, Format::Dotenv, &identity).unwrap();
    let path = TreePath::parse("[\"A\"]").unwrap();
    let newer = set(&opened, &path, &"\"new\"".into(), &write_options()).unwrap().unwrap();
    let foreign = seal(DOTENV, Format::Dotenv, &AgeIdentity::generate()).unwrap();
    let line = |text: &str, start: &str| {
        text.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned()
    };
    let cases = vec![
        ("values exchanged", sealed.replace(a, "@").replace(b, a).replace('@', b)),
        ("an older value", newer.replace(enc(&newer, "\nA="), a)),
        ("a key renamed", sealed.replace("\nB=", "\nBB=")),
        ("a value removed", without_line(&sealed, "B=")),
        ("an empty value added", sealed.replace("\nB=", "\nX=\nB=")),
        ("an empty value removed", without_line(&sealed, "E=")),
        ("a value doubled", sealed.replace("\nB=", &format!("\nA={a}\nB="))),
        ("a line moved", format!("{}\n{}", line(&sealed, "C="), without_line(&sealed, "C="))),
        ("a clear value changed", sealed.replace("=eu\n", "=us\n")),
        ("a clear value added", sealed.replace("\nB=", "\nX_unencrypted=x\nB=")),
        ("a sealed value in the clear", sealed.replace(a, "one")),
        ("a carriage return behind a value", sealed.replace(b, &format!("{b}\r"))),
        ("a comment removed", sealed.lines().skip(1).map(|line| format!("{line}\n")).collect()),
        ("a comment added", format!("# x\n{sealed}")),
        ("a value commented out", sealed.replace("\nB=", "\n#B=")),
        ("a selector", sealed.replace("unencrypted_suffix=_unencrypted", "unencrypted_suffix=B")),
        ("the MAC rule", format!("{sealed}sops_mac_only_encrypted=true\n")),
        ("a threshold", format!("{sealed}sops_shamir_threshold=2\n")),
        ("an unknown field", format!("{sealed}sops_attention=x\n")),
        ("a field in other letters", format!("{sealed}sops_MAC=x\n")),
        ("a field twice", format!("{sealed}sops_version=3.9.0\n")),
        ("a gap in a list", sealed.replace("__list_0", "__list_1")),
        ("a list that is a mapping", format!("{sealed}sops_age__map_x=y\n")),
        ("a position beyond the limit", format!("{sealed}sops_x__list_1000=y\n")),
        ("a recipient added", {
            let lines = foreign.lines().filter(|line| line.starts_with("sops_age"));
            lines.fold(sealed.clone(), |text, line| text + &line.replace("list_0", "list_1") + "\n")
        }),
        ("the time", sealed.replace("2026-01-02", "2036-01-02")),
        ("the MAC removed", without_line(&sealed, "sops_mac=")),
        ("an older seal", newer.replace(&line(&newer, "sops_lacre"), &line(&sealed, "sops_lacre"))),
        ("a foreign seal", sealed.replace(&line(&sealed, "sops_lacre"), &line(&foreign, "sops_lacre"))),
    ];
    refused(Format::Dotenv, &identity, &sealed, &cases);
    misses_its_seal(Format::Dotenv, &identity, &sealed, "sops_lacre=");
    is_rewritten(Format::Dotenv, &identity, &sealed, b"A=one\nX=new\r\n");
    let free = ["\n\n\n", "\n"].map(|lines| sealed.replace("\nB=", &format!("{lines}\nB=")));
    let moved: String = {
        let (block, rest): (Vec<&str>, Vec<&str>) =
            sealed.lines().partition(|line| line.starts_with("sops_"));
        block.iter().rev().chain(&rest).map(|line| format!("{line}\n")).collect()
    };
    for text in free.into_iter().chain([moved]) {
        assert!(open(&text, Format::Dotenv, &identity).is_ok(), "{text}");
    }
}

#[test]
fn the_seal_of_a_dotenv_file_stands_before_the_time() {
    let identity = AgeIdentity::generate();
    let sealed = seal(DOTENV, Format::Dotenv, &identity).unwrap();
    let names: Vec<&str> = sealed.lines().filter_map(|line| line.split('=').next()).collect();
    assert_eq!(
        names[names.len() - 7..],
        [
            "sops_age__list_0__map_enc",
            "sops_age__list_0__map_recipient",
            "sops_lacre",
            "sops_lastmodified",
            "sops_mac",
            "sops_unencrypted_suffix",
            "sops_version"
        ]
    );
}

#[test]
fn what_dotenv_readers_would_lose_is_refused_with_its_place() {
    let identity = AgeIdentity::generate();
    let cases = [
        ("", "nothing in it"),
        ("\n\n", "nothing in it"),
        ("A=x\nB\n", "line 2, column 1: a line is a comment, or a key"),
        ("A=x\n  # c\n", "line 2, column 1: a comment starts in the first column"),
        ("A=x\r\n\r\nB=y\r\n", "line 2, column 1: a line of blanks"),
        ("A=\"x\ny\"\n", "line 2, column 1"),
        ("A=x\nsops=y\n", "line 2, column 1: the key `sops`"),
        ("A=x\nsops_y=z\n", "sops"),
        ("A=x\nB_unencrypted=ENC[AES256_GCM,data:x]\n", "line 2: `B_unencrypted` stays in the clear"),
        ("A=x\nB_unencrypted=a\u{2028}b\n", "line 2, column 16"),
    ];
    for (text, reason) in cases {
        let error = seal(text, Format::Dotenv, &identity).expect_err(text);
        assert!(error.contains(reason), "{text}: {error}");
    }
    let selector = |pattern: &str| Selector::new(SelectorKind::EncryptedRegex, pattern).unwrap();
    let with =
        |pattern: &str| seal_with("A=x\n", Format::Dotenv, &identity, selector(pattern), write_options());
    assert!(with("^B$").unwrap_err().contains("matches none of the 1 values"));
    assert!(with("A|\\n").unwrap_err().contains("cannot hold"));
    assert!(with("^A$").is_ok());
}

#[test]
fn set_writes_dotenv_values() {
    let identity = AgeIdentity::generate();
    let opened =
        open(&seal("A=x\n\nB=y", Format::Dotenv, &identity).unwrap(), Format::Dotenv, &identity).unwrap();
    let set =
        |at: &str, json: &str| set(&opened, &TreePath::parse(at).unwrap(), &json.into(), &write_options());
    let cases = [
        ("[\"A\"]", "\"p\\nq \"", "A=p\\nq \n\nB=y"),
        ("[\"A\"]", "5", "A=5\n\nB=y"),
        ("[\"C\"]", "true", "A=x\n\nB=y\nC=true\n"),
    ];
    for (at, json, text) in cases {
        let written = set(at, json).unwrap().unwrap();
        assert_eq!(open(&written, Format::Dotenv, &identity).unwrap().plaintext().as_text(), Some(text));
    }
    let refused = [
        ("[\"A\"]", "\"a\\\\nb\"", "backslash"),
        ("[\"A\"]", "[1]", "is text"),
        ("[\"A\"]", "null", "is text"),
        ("[\"A\"][\"b\"]", "1", "in the way"),
        ("[\"a=b\"]", "1", "cannot be a key"),
        ("[\"#b\"]", "1", "cannot be a key"),
        ("[\"sops_b\"]", "1", "sops block"),
        ("[0]", "1", "position"),
    ];
    for (at, json, reason) in refused {
        let error = set(at, json).unwrap_err().to_string();
        assert!(error.contains(reason), "{at}: {error}");
    }
}

/// The keys, values and comments that we sealed come out of stock tools to the byte, without the empty lines; values
/// that those typed come out of ours as text.
#[test]
fn dotenv_files_are_the_same_on_both_sides() {
    let (bench, text) = (Bench::new(), "# head\nA=one\\ntwo\r\n#\nA= x\n# tail\n");
    for sops in Sops::all().unwrap() {
        let ours = seal(text, Format::Dotenv, &bench.identity).unwrap();
        let opened = bench.sops(&sops, &["decrypt", "FILE"], "ours.env", &ours).unwrap();
        assert_eq!((opened.stdout.as_str(), opened.remarks.as_str()), (text, ""), "{}", sops.version());
        let arguments = ["decrypt", "--input-type", "dotenv", "--output-type", "dotenv", "FILE"];
        assert_eq!(bench.sops(&sops, &arguments, "ours.env.sealed", &ours).unwrap().stdout, text);
        let mut theirs = ours;
        for (key, value) in [("B", "5"), ("C", "true"), ("D", "1500000.5"), ("E", "\"a\\nb\"")] {
            let at = format!("[\"{key}\"]");
            theirs = bench.sops(&sops, &["set", "FILE", &at, value], "theirs.env", &theirs).unwrap().file;
        }
        let opened = open(&theirs, Format::Dotenv, &bench.identity).unwrap();
        assert_eq!(opened.verdict(), Verdict::NeverSealed, "{}", sops.version());
        let expected = format!("{text}B=5.0\nC=true\nD=1.5000005E+06\nE=a\\nb\n");
        let found = opened.plaintext().as_text().unwrap();
        assert_eq!(found, expected, "{}", sops.version());
        let decrypted = bench.sops(&sops, &["decrypt", "FILE"], "theirs.env", &theirs).unwrap().stdout;
        assert_eq!(decrypted, found, "{}", sops.version());
    }
}

/// A number and a boolean of the block are text in these formats, and the digest of the block has to find them again.
#[test]
fn key_groups_and_the_mac_rule_come_back_from_flat_blocks() {
    let benches = [Bench::new(), Bench::new(), Bench::new()];
    let recipients: Vec<_> = benches.iter().map(|bench| bench.identity.recipient()).collect();
    let files = [
        (Format::Dotenv, "groups.env", "A=x\nB_unencrypted=y\n"),
        (Format::Ini, "groups.ini", "[s]\na             = x\nb_unencrypted = y\n"),
    ];
    for (format, name, text) in files {
        let groups = recipients.iter().map(|recipient| vec![recipient as &dyn Recipient]).collect();
        let options = EncryptOptions {
            groups: Groups { groups, threshold: Some(2) },
            selector: Selector::default(),
            mac_only_encrypted: true,
            bind: None,
            write: write_options(),
        };
        let sealed = lacre_crypto::encrypt(&SecretText::from(text), format, &options).unwrap();
        let identities: [&dyn Identity; 2] = [&benches[0].identity, &benches[2].identity];
        let file = SealedFile::read(&sealed, format).unwrap();
        let key = file.unwrap_key(&identities).unwrap();
        let opened = file.open(key, &OpenOptions::default()).unwrap();
        assert_eq!((opened.verdict(), opened.plaintext().as_text()), (Verdict::Valid, Some(text)));
        let keys = format!("{}\n{}", benches[0].key.identity, benches[1].key.identity);
        std::fs::write(benches[0].folder.path().join("key.txt"), keys).unwrap();
        for sops in Sops::all().unwrap() {
            assert_eq!(benches[0].sops(&sops, &["decrypt", "FILE"], name, &sealed).unwrap().stdout, text);
        }
    }
}

const INI: &str = "\
; head
; of it
top = zero
[s]
a = one
b = \"two\" # behind
e =
region_unencrypted = eu
[t]
; above
a = three
[s]
a = four
; tail
";

#[test]
fn a_sealed_ini_file_may_not_change() {
    let identity = AgeIdentity::generate();
    let sealed = seal(INI, Format::Ini, &identity).unwrap();
    let (a, b) = (enc(&sealed, "\na = "), enc(&sealed, "\nb = "));
    let opened = open(&sealed, Format::Ini, &identity).unwrap();
    let path = TreePath::parse("[\"s\"][\"a\"]").unwrap();
    let newer = set(&opened, &path, &"\"new\"".into(), &write_options()).unwrap().unwrap();
    let foreign = seal(INI, Format::Ini, &AgeIdentity::generate()).unwrap();
    let line = |text: &str, start: &str| {
        text.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned()
    };
    let last = sealed.rfind("\na = ").unwrap();
    let fourth = enc(&sealed[last..], "\na = ");
    let cases = vec![
        ("values exchanged", sealed.replace(a, "@").replace(b, a).replace('@', b)),
        ("values of two sections of one name exchanged", {
            sealed.replace(a, "@").replace(fourth, a).replace('@', fourth)
        }),
        ("an older value", newer.replace(enc(&newer, "\na = "), a)),
        ("a key renamed", sealed.replace("\nb = ", "\nbb = ")),
        ("a section renamed", sealed.replace("[t]", "[tt]")),
        ("a section removed", sealed.replace("[t]\n", "")),
        ("an empty section added", sealed.replace("[t]\n", "[x]\n[t]\n")),
        ("a section named DEFAULT", sealed.replacen("; ENC", "[DEFAULT]\n[x]\n; ENC", 1)),
        ("an empty value added", sealed.replace("\nb = ", "\nx =\nb = ")),
        ("an empty value removed", without_line(&sealed, "e =")),
        ("a clear value changed", sealed.replace("= eu\n", "= us\n")),
        ("a sealed value in the clear", sealed.replace(a, "one")),
        ("a value behind the value", sealed.replace(b, &format!("{b} x"))),
        ("a comment added", sealed.replace("e =\n", "; x\ne =\n")),
        ("a comment removed", sealed.lines().skip(1).map(|line| format!("{line}\n")).collect()),
        ("the last comment removed", {
            let tail = sealed.rfind("; ENC").unwrap();
            format!("{}{}", &sealed[..tail], &sealed[sealed.find("[sops]").unwrap()..])
        }),
        ("a comment in the clear", sealed.replace(enc(&sealed, "; "), "head\n; of it")),
        ("a value commented out", sealed.replace("\nb = ", "\n;b = ")),
        ("a selector", sealed.replace("suffix = _unencrypted", "suffix = b")),
        ("the MAC rule", format!("{sealed}mac_only_encrypted = true\n")),
        ("a threshold", format!("{sealed}shamir_threshold = 2\n")),
        ("an unknown field", format!("{sealed}attention = x\n")),
        ("a field in other letters", format!("{sealed}MAC = x\n")),
        ("a field twice", format!("{sealed}version = 3.9.0\n")),
        ("a second block", format!("{sealed}[sops]\nversion = 3.9.0\n")),
        ("a gap in a list", sealed.replace("__list_0", "__list_1")),
        ("a recipient added", {
            let lines = foreign.lines().filter(|line| line.starts_with("age"));
            lines.fold(sealed.clone(), |text, line| text + &line.replace("list_0", "list_1") + "\n")
        }),
        ("the time", sealed.replace("2026-01-02", "2036-01-02")),
        ("the MAC removed", without_line(&sealed, "mac =")),
        ("an older seal", newer.replace(&line(&newer, "lacre"), &line(&sealed, "lacre"))),
        ("a foreign seal", sealed.replace(&line(&sealed, "lacre"), &line(&foreign, "lacre"))),
    ];
    refused(Format::Ini, &identity, &sealed, &cases);
    misses_its_seal(Format::Ini, &identity, &sealed, "lacre =");
    is_rewritten(Format::Ini, &identity, &sealed, b"[s]\r\na = `one;`\r\nx = new");
    let free = [
        sealed.replace("\nb = ", "\n\n  b: "),
        sealed.replace('\n', "\r\n"),
        sealed.replace(a, &format!("`{a}`")),
        sealed.replace("; ENC", "# ENC"),
    ];
    for text in free {
        assert_ne!(text, sealed);
        assert!(open(&text, Format::Ini, &identity).is_ok(), "{text}");
    }
}

#[test]
fn what_ini_readers_would_lose_is_refused_with_its_place() {
    let identity = AgeIdentity::generate();
    let cases = [
        ("", "line 1, column 1: there is no section"),
        ("; only\n", "no section and no key"),
        ("[s]\npw = p;q#r\n", "line 2, column 7: other readers take"),
        ("[s]\npw = \"p ;q\"\n", "line 2, column 9"),
        ("[s]\ncolor = #fff\n", "line 2, column 9"),
        ("[s]\nk = 1\nx = y\nk = 2\n", "line 4, column 1: the key stands twice"),
        ("[s]\nk = a \\\n  b\n", "line 2, column 5: a backslash"),
        ("[s]\nk = `a` b\n", "line 2, column 8: other readers drop"),
        ("[s]\nk = \"\"\"a\nb\n", "line 2, column 5: the value's quotes"),
        ("[s]\nk\n", "line 2, column 1: a line is a comment, a section, or a key"),
        ("[s]\n= v\n", "line 2, column 1: other readers give"),
        ("[s]\n- = v\n", "line 2, column 1: other readers give"),
        ("[s]\n`#k` = v\n", "line 2, column 1: other readers give"),
        ("[s]\n`a` b = v\n", "line 2, column 1: after a quoted key"),
        ("[s]\n\"a = v\n", "line 2, column 1: the key's quotes"),
        ("[s] junk\nk = v\n", "line 1, column 4: other readers end"),
        ("[s] ; c\nk = v\n", "line 1, column 4: other readers end"),
        ("[s\nk = v\n", "line 1, column 1: the section's name"),
        ("[]\nk = v\n", "line 1, column 1: a section needs a name"),
        ("[s]\n; above\nk = v ; behind\n", "line 3, column 7: other readers make one comment"),
        ("[s]\n;\n; c\nk = v\n", "line 2, column 1: stock tools crash"),
        ("[s]\nk = '\"v\"'\n", "line 2, column 5: other tools would print"),
        ("[s]\nk = `a\\`\n", "line 2, column 5: other tools would print"),
        ("[s]\nk = v\r", "line 2, column 6"),
        ("[s]\nk = v\n[sops]\n", "sops"),
        ("[s]\nk_unencrypted = a\u{2028}b\nx = y\n", "line 2, column 18"),
        ("[s]\nk_unencrypted = ENC[AES256_GCM,data:x]\nx = y\n", "line 2: `s.k_unencrypted`"),
    ];
    for (text, reason) in cases {
        let error = seal(text, Format::Ini, &identity).expect_err(text);
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn set_writes_ini_values() {
    let identity = AgeIdentity::generate();
    let text = "g = 1\n[s]\na = 'x'\n\n[t]\nb = y";
    let opened = open(&seal(text, Format::Ini, &identity).unwrap(), Format::Ini, &identity).unwrap();
    let set =
        |at: &str, json: &str| set(&opened, &TreePath::parse(at).unwrap(), &json.into(), &write_options());
    let cases = [
        ("[\"s\"][\"a\"]", "\"p;q\"", "g = 1\n[s]\na = `p;q`\n\n[t]\nb = y"),
        ("[\"s\"][\"n\"]", "5", "g = 1\n[s]\na = 'x'\nn = 5\n\n[t]\nb = y"),
        ("[\"DEFAULT\"][\"n\"]", "true", "g = 1\nn = true\n[s]\na = 'x'\n\n[t]\nb = y"),
        ("[\"t\"][\"n\"]", "\"p\\nq\"", "g = 1\n[s]\na = 'x'\n\n[t]\nb = y\nn = `p\nq`\n"),
        ("[\"u\"][\"n\"]", "\" v\"", "g = 1\n[s]\na = 'x'\n\n[t]\nb = y\n[u]\nn = \" v\"\n"),
    ];
    for (at, json, text) in cases {
        let written = set(at, json).unwrap().unwrap();
        assert_eq!(open(&written, Format::Ini, &identity).unwrap().plaintext().as_text(), Some(text), "{at}");
    }
    let refused = [
        ("[\"s\"][\"a\"]", "[1]", "is text"),
        ("[\"s\"][\"a\"]", "\"`\\\"\\\"\\\"'\"", "cannot hold"),
        ("[\"s\"]", "\"v\"", "whole section"),
        ("[\"n\"]", "\"v\"", "stands in a section"),
        ("[\"n]\"][\"k\"]", "1", "cannot be a section"),
        ("[\"s\"][\"k=\"]", "1", "cannot be a key"),
        ("[\"s\"][\";k\"]", "1", "cannot be a key"),
        ("[\"s\"][0]", "1", "position"),
    ];
    for (at, json, reason) in refused {
        let error = set(at, json).unwrap_err().to_string();
        assert!(error.contains(reason), "{at}: {error}");
    }
}

/// Comments included, stock tools print the same for the text that we sealed and for one of their own.
#[test]
fn ini_files_are_the_same_on_both_sides() {
    let bench = Bench::new();
    for sops in Sops::all().unwrap() {
        let ours = seal(INI, Format::Ini, &bench.identity).unwrap();
        let opened = bench.sops(&sops, &["decrypt", "FILE"], "ours.ini", &ours).unwrap();
        assert_eq!(opened.remarks, "", "{}", sops.version());
        let arguments = ["encrypt", "--age", &bench.key.recipient, "FILE"];
        let theirs = bench.sops(&sops, &arguments, "theirs.ini", INI).unwrap().stdout;
        let stock = bench.sops(&sops, &["decrypt", "FILE"], "theirs.ini", &theirs).unwrap().stdout;
        assert_eq!(opened.stdout, stock, "{}", sops.version());
        for line in ["; head", "; of it", "; behind", "; above"] {
            assert!(stock.lines().any(|found| found == line), "{line}: {stock}");
        }
        let opened = open(&theirs, Format::Ini, &bench.identity).unwrap();
        assert_eq!(opened.plaintext().as_text().unwrap().trim_end(), stock.trim_end(), "{}", sops.version());
        let set = ["set", "FILE", "[\"s\"][\"n\"]", "1.5"];
        let theirs = bench.sops(&sops, &set, "set.ini", &ours).unwrap().file;
        let opened = open(&theirs, Format::Ini, &bench.identity).unwrap();
        assert_eq!(opened.verdict(), Verdict::NeverSealed, "{}", sops.version());
        assert!(opened.plaintext().as_text().unwrap().contains("= 1.5\n"), "{theirs}");
    }
}

//! The documents in every other format, byte for byte as stock sops prints them.

use std::fs;

use lacre_crypto::{Format, Layout, SecretBytes, SecretText, TreePath, convert};
use xtask::peers::sops::Sops;

use crate::documents::{documents, format_of};
use crate::support::{Bench, open, seal};

const FORMATS: [Format; 5] = [Format::Binary, Format::Dotenv, Format::Ini, Format::Json, Format::Yaml];

/// Why Lacre refuses what stock sops prints with a loss.
const REFUSALS: &[(Format, &str, &str)] = &[
    (Format::Dotenv, "a line break", "the key would be read as something else"),
    (Format::Dotenv, "is not text", "bytes that are no text do not come back"),
    (Format::Dotenv, "several documents", "stock drops the others"),
    (Format::Ini, "below a section", "stock prints lists and mappings as Go shows them"),
    (Format::Json, "not text", "stock puts other characters for bytes that are no text"),
    (Format::Json, "several documents", "stock drops the others"),
];

/// Where Lacre prints something else than stock sops, and why.
const EXCEPTIONS: &[(&str, Format, &str)] = &[
    ("dotenv-cr-middle.env", Format::Yaml, "stock continues the line of a comment at a carriage return"),
    ("dotenv-crlf-comments.env", Format::Yaml, "stock continues the line of a comment at a carriage return"),
    ("dotenv-crlf.env", Format::Yaml, "stock continues the line of a comment at a carriage return"),
    ("escapes-unicode.json", Format::Yaml, "stock writes U+2028 itself, which ends a line for some readers"),
];

/// Of two comments in front of one section INI keeps one: here the first, in stock sops the one behind the anchor.
const OTHER_COMMENT: &str = "comments-properties-lines.yaml";

/// How a file comes out on either side; nothing when it is refused.
fn compared(ours: Option<&[u8]>, stock: Option<&[u8]>) -> Result<(), String> {
    let shown = |side: Option<&[u8]>| {
        side.map_or("(refused)".into(), |text| String::from_utf8_lossy(text).into_owned())
    };
    match ours == stock {
        true => Ok(()),
        false => Err(format!("ours:\n{}\nstock:\n{}", shown(ours), shown(stock))),
    }
}

/// Converts all documents, sealed by `seal`, and compares with stock sops.
fn over_all_conversions(seal: impl Fn(&Bench, &Sops, &str, Vec<u8>) -> String) {
    let (bench, sops) = (Bench::new(), Sops::v3_13().unwrap());
    let (mut failures, mut exceptions) = (Vec::new(), EXCEPTIONS.to_vec());
    for path in documents().into_iter().filter(|path| !path.ends_with(OTHER_COMMENT)) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let sealed = seal(&bench, &sops, name, fs::read(&path).unwrap());
        let opened = open(&sealed, format_of(&path), &bench.identity).unwrap();
        for to in FORMATS.into_iter().filter(|to| *to != format_of(&path)) {
            let ours = opened.converted(to, &Layout::default());
            let refusal = ours.as_ref().err().map(ToString::to_string).unwrap_or_default();
            let ours = ours.as_ref().ok().map(|bytes| bytes.expose_secret());
            let stock = bench.sops(&sops, &["decrypt", "--output-type", to.word(), "FILE"], name, &sealed);
            let stock = stock.as_ref().ok().map(|ran| ran.bytes.as_slice());
            if REFUSALS.iter().any(|(format, reason, _)| *format == to && refusal.contains(reason)) {
                continue;
            }
            let known = exceptions.iter().position(|(file, format, _)| (*file, *format) == (name, to));
            match (compared(ours, stock), known) {
                (Ok(()), None) => {}
                (Err(_), Some(known)) => drop(exceptions.swap_remove(known)),
                (Ok(()), Some(_)) => failures.push(format!("{name} as {}: no exception", to.word())),
                (Err(error), None) => failures.push(format!("{name} as {}: {error}", to.word())),
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n---- "));
    assert!(exceptions.is_empty(), "no such file: {exceptions:?}");
}

#[test]
fn documents_convert_as_in_stock_sops() {
    over_all_conversions(|bench, _, name, content| {
        seal(content, Format::of_file(name), &bench.identity).unwrap()
    });
}

#[test]
fn documents_of_stock_sops_convert_as_there() {
    over_all_conversions(|bench, sops, name, content| {
        bench.sops(sops, &["encrypt", "--age", &bench.key.recipient, "FILE"], name, content).unwrap().stdout
    });
}

/// What is converted before it is sealed opens in stock sops to the same data as without.
#[test]
fn converted_and_sealed_opens_in_stock_sops() {
    let (bench, sops) = (Bench::new(), Sops::v3_13().unwrap());
    let (mut failures, mut count) = (Vec::new(), 0);
    for path in documents().into_iter().filter(|path| format_of(path) != Format::Binary) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let content = SecretBytes::new(fs::read(&path).unwrap());
        let data = |format: Format, text: &str, name: &str| {
            let sealed = seal(text, format, &bench.identity)?;
            let words = ["decrypt", "--input-type", format.word(), "--output-type", "json", "FILE"];
            let ran = bench.sops(&sops, &words, name, &sealed)?;
            // JSON's negative zero is an integer in YAML.
            serde_json::from_str::<serde_json::Value>(&ran.stdout.replace(": -0,", ": 0,"))
                .map_err(|error| error.to_string())
        };
        for to in [Format::Json, Format::Yaml].into_iter().filter(|to| *to != format_of(&path)) {
            let Ok(converted) = convert(&content, format_of(&path), to, &Layout::default()) else { continue };
            count += 1;
            let text = std::str::from_utf8(converted.expose_secret()).unwrap();
            let source = std::str::from_utf8(content.expose_secret()).unwrap();
            match (data(to, text, name), data(format_of(&path), source, name)) {
                (Ok(ours), Ok(theirs)) if ours == theirs => {}
                (ours, theirs) => failures.push(format!("{name} as {}: {ours:?}\n{theirs:?}", to.word())),
            }
        }
    }
    assert!(count > 80, "only {count} conversions");
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n---- "));
}

/// Texts that printers stumble over, as keys and as values, in mappings and lists.
#[test]
fn odd_texts_convert_as_in_stock_sops() {
    let (bench, sops) = (Bench::new(), Sops::v3_13().unwrap());
    let long = "x".repeat(129);
    let mut texts: Vec<String> = [
        "",
        " ",
        "a ",
        " a",
        "~",
        "null",
        "Null",
        "true",
        "yes",
        "y",
        "off",
        "1",
        "1.0",
        "1e3",
        "0x1f",
        "017",
        "08",
        "+.5",
        ".inf",
        ".",
        "-",
        "--",
        "---",
        "----",
        "... x",
        "2001-01-01",
        "2001-01-01T00:00:00Z",
        "1:30",
        "1:60",
        "+1_0:5.2",
        "<<",
        "=",
        "?",
        "? a",
        "?a",
        ":",
        ": a",
        ":a",
        "a:",
        "a: b",
        "a :b",
        "a:\tb",
        "#",
        "a#",
        "a #",
        "a\t#",
        "- a",
        "-a",
        "-\ta",
        "[a",
        "]",
        "{",
        "}",
        ",",
        "&a",
        "*a",
        "!a",
        "|",
        ">",
        "'",
        "\"",
        "%",
        "@",
        "`",
        "it's",
        "say \"x\"",
        "back\\slash",
        "a'b: c",
        "tab\there",
        "\ta",
        "a\t",
        "\u{1}",
        "\u{7f}",
        "\u{80}",
        "\u{85}",
        "\u{a0}",
        "é",
        "\u{feff}",
        "\u{feff}ab\n",
        "\u{fffd}",
        "\u{ffff}",
        "😀",
        "a\nb",
        "a\nb\n",
        "a\nb\n\n",
        "a\n",
        "\n",
        "\n\n",
        "a\r\nb",
        "a \nb",
        "a\n b",
        "a\nb ",
        "a\tb\nc",
        "a\n# b",
        "a\n---\nb",
        "😀\n",
        "é\nb",
        "18446744073709551615",
        "9223372036854775808",
        "1e400",
        "<a>&</a>",
        "\u{8}\u{c}",
        "$x",
        "https://a/b?c=d&e=f#g",
        "C:\\new",
        "a=b",
        "a;b",
        ";a",
        "\"\"\"",
        "a`b",
        "longer words in a row",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.push(long.clone());
    texts.push(format!("{long} {long}\n{long}"));
    let keys: serde_json::Map<String, serde_json::Value> = texts
        .iter()
        .filter(|text| !text.contains("\n") || *text == "a\nb")
        .map(|text| (text.clone(), 1.into()))
        .collect();
    let nested =
        serde_json::json!([[], {}, [[]], [{}], [[1, "a\nb"], [{"a": {"b": ["c\nd", {"e": "f\ng\n"}]}}]]]);
    let document = serde_json::json!({"texts": texts, "keys": keys, "nested": nested})
        .to_string()
        .replace('\u{85}', "\\u0085");
    let sealed = seal(&document, Format::Json, &bench.identity).unwrap();
    let opened = open(&sealed, Format::Json, &bench.identity).unwrap();
    for indent in [0, 1, 2, 3, 4, 7, 9, 10] {
        let layout = Layout { yaml_indent: if indent == 0 { 4 } else { indent }, json_indent: None };
        let ours = opened.converted(Format::Yaml, &layout).unwrap();
        let indent = indent.to_string();
        let arguments = ["--indent", &indent, "decrypt", "--output-type", "yaml", "FILE"];
        let stock = bench.sops(&sops, &arguments, "odd.json", &sealed).unwrap();
        compared(Some(ours.expose_secret()), Some(&stock.bytes))
            .map_err(|error| eprintln!("{error}"))
            .unwrap();
    }
}

/// Blocks that begin with a space or a line break below a list: stock sops counts their digit from the wrong column,
/// so that its own text cannot be read.
#[test]
fn blocks_that_begin_blank_can_be_read() {
    let texts = serde_json::json!({"a": [" b\nc", "\tk\nl", "\nd\n", {"e": " f\ng", "h": {"i": ["\n\n", " j\n\n"]}}]});
    let layout = Layout::default();
    for indent in [2, 3, 4, 8] {
        let layout = Layout { yaml_indent: indent, ..layout };
        let text = SecretText::new(texts.to_string());
        let yaml = convert(&text, Format::Json, Format::Yaml, &layout).unwrap();
        let json = convert(&yaml, Format::Yaml, Format::Json, &layout).unwrap();
        let back: serde_json::Value = serde_json::from_slice(json.expose_secret()).unwrap();
        assert_eq!(back, texts);
    }
}

#[test]
fn parts_are_printed_as_in_stock_sops() {
    const YAML: &str = "\
# top
map:  # beside map
  # above a
  a: 1 # beside a
  t_unencrypted: x # beside t
  # last
list:
- one
- [2, {b: c}]
- d_unencrypted: e # beside e
float: 1.50
int: 0x1F
flag: yes
true: false
time: 2001-12-14 21:59:43.5
nothing: ~
empty: {}
text: |
  a
  b
";
    let (bench, sops) = (Bench::new(), Sops::v3_13().unwrap());
    let text = YAML.replace("\ntrue:", "\nyes_no:");
    let sealed = seal(&text, Format::Yaml, &bench.identity).unwrap();
    let opened = open(&sealed, Format::Yaml, &bench.identity).unwrap();
    let mut failures = Vec::new();
    for path in [
        r#"["map"]"#,
        r#"["map"]["a"]"#,
        r#"["list"]"#,
        r#"["list"][0]"#,
        r#"["list"][1]"#,
        r#"["list"][1][1]"#,
        r#"["list"][2]"#,
        r#"["float"]"#,
        r#"["int"]"#,
        r#"["flag"]"#,
        r#"["yes_no"]"#,
        r#"["time"]"#,
        r#"["nothing"]"#,
        r#"["empty"]"#,
        r#"["text"]"#,
        r#"["nope"]"#,
        r#"["list"][9]"#,
        r#"["text"][0]"#,
    ] {
        for to in [Format::Dotenv, Format::Json, Format::Yaml] {
            let ours = opened.extract(&TreePath::parse(path).unwrap(), to, &Layout::default());
            let ours = ours.as_ref().ok().map(|bytes| bytes.expose_secret());
            let arguments = ["decrypt", "--output-type", to.word(), "--extract", path, "FILE"];
            let stock = bench.sops(&sops, &arguments, "a.yaml", &sealed);
            let stock = stock.as_ref().ok().map(|ran| ran.bytes.as_slice());
            if let Err(error) = compared(ours, stock) {
                failures.push(format!("{path} as {}: {error}", to.word()));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n---- "));
}

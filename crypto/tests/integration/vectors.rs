//! The format as docs/format.md says it, read by a second reader that was written from that page: a script for Node.js.

use std::fs;

use lacre_crypto::recipient::age::AgeIdentity;
use lacre_crypto::value::ValueType;
use lacre_crypto::{DataKey, Format, OpenOptions, SealedFile, SecretBytes, Verdict};
use serde_json::{Value as Plain, json};
use xtask::process::Tool;

use crate::documents::documents;
use crate::support::seal;

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits = hexadecimal.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// What the second reader makes of a sealed document.
fn second_reader(key: &str, sealed: &str) -> Result<Plain, String> {
    let script = xtask::root().join("testdata/vectors/read.mjs");
    let input = json!({ "key": key, "sealed": sealed }).to_string();
    let finished = Tool::new("node").arg(script).stdin(input).run().map_err(|error| error.to_string())?;
    match finished.code {
        Some(0) => serde_json::from_slice(&finished.stdout).map_err(|error| error.to_string()),
        _ => Err(finished.stderr_text()),
    }
}

/// Types and texts of all values that the second reader opened, in order.
fn flattened(value: &Plain, into: &mut Vec<(String, String)>) {
    match value {
        Plain::Object(map) if map.len() == 2 && map.contains_key("type") && map.contains_key("text") => {
            into.push((map["type"].as_str().unwrap().to_owned(), map["text"].as_str().unwrap().to_owned()));
        }
        Plain::Object(map) => map.values().for_each(|value| flattened(value, into)),
        Plain::Array(values) => values.iter().for_each(|value| flattened(value, into)),
        _ => {}
    }
}

#[test]
fn a_second_reader_agrees_on_every_json_document() {
    let identity = AgeIdentity::generate();
    let documents = documents();
    let is_json = |path: &&std::path::PathBuf| path.extension().is_some_and(|ending| ending == "json");
    let mut read = 0;
    for path in documents.iter().filter(is_json) {
        let text = fs::read_to_string(path).unwrap();
        let sealed = seal(&text, Format::Json, &identity).unwrap();
        let key = SealedFile::read(&sealed, Format::Json).unwrap().unwrap_key(&[&identity]).unwrap();
        let answer = second_reader(&hexadecimal(key.expose_secret()), &sealed);
        let answer = answer.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut theirs = Vec::new();
        flattened(&answer["opened"], &mut theirs);
        let document = lacre_crypto::document::Document::read(&text, Format::Json).unwrap();
        let sealable = document.leaves.iter().map(|leaf| &leaf.value).filter(|value| value.is_sealable());
        let ours: Vec<(String, String)> = sealable
            .map(|value| {
                (value.kind().map_or("", ValueType::word).to_owned(), value.as_text().unwrap().to_owned())
            })
            .collect();
        assert_eq!(theirs, ours, "{}", path.display());
        read += 1;
    }
    assert!(read >= 10, "only {read} documents");
}

#[test]
fn files_sealed_by_earlier_versions_stay_readable() {
    let folder = xtask::root().join("testdata/vectors");
    let mut read = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let vector: Plain = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let (key, sealed) = (vector["key"].as_str().unwrap(), vector["sealed"].as_str().unwrap());
        let format = Format::from_word(vector["format"].as_str().unwrap()).unwrap();
        let file = SealedFile::read(sealed, format).unwrap();
        let data_key = DataKey::from_unwrapped(&SecretBytes::new(bytes(key))).unwrap();
        let open = file.open(data_key, &OpenOptions::default()).unwrap();
        assert_eq!(open.verdict(), Verdict::Valid, "{}", path.display());
        let plain: &[u8] = AsRef::<[u8]>::as_ref(open.plaintext().expose_secret());
        assert_eq!(plain, vector["plain"].as_str().unwrap().as_bytes(), "{}", path.display());
        if format == Format::Json {
            second_reader(key, sealed).unwrap();
        }
        read += 1;
    }
    assert!(read >= 2, "only {read} vectors");
}

/// Makes a vector from a document: `LACRE_VECTOR=path cargo test -- --ignored make_a_vector --nocapture`.
#[test]
#[ignore = "makes a file by hand, when the format gets a new version"]
fn make_a_vector() {
    let path = std::path::PathBuf::from(std::env::var_os("LACRE_VECTOR").unwrap());
    let format = Format::from_file_name(path.to_str().unwrap()).unwrap();
    let (identity, plain) = (AgeIdentity::generate(), fs::read_to_string(&path).unwrap());
    let sealed = seal(&plain, format, &identity).unwrap();
    let key = SealedFile::read(&sealed, format).unwrap().unwrap_key(&[&identity]).unwrap();
    let key = hexadecimal(key.expose_secret());
    let vector = json!({ "format": format.word(), "key": key, "plain": plain, "sealed": sealed });
    println!("{}", serde_json::to_string_pretty(&vector).unwrap());
}

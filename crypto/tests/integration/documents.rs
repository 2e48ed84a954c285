//! Every file of `testdata/documents/` through sealing and opening.
//!
//! What each file is there for stands in `testdata/documents/INDEX`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use lacre_crypto::Format;
use lacre_crypto::recipient::age::AgeIdentity;

use crate::support::{open, seal};

/// All documents, in the order of their names.
pub(crate) fn documents() -> Vec<PathBuf> {
    let folder = xtask::root().join("testdata/documents");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap() != "INDEX")
        .collect();
    files.sort();
    assert!(files.len() >= 300, "only {} documents", files.len());
    files
}

pub(crate) fn format_of(path: &Path) -> Format {
    Format::of_file(path.to_str().unwrap())
}

fn round_trip(path: &Path) -> Result<(), String> {
    let identity = AgeIdentity::generate();
    let content = fs::read(path).unwrap();
    let sealed = seal(&content, format_of(path), &identity)?;
    let open = open(&sealed, format_of(path), &identity)?;
    if open.plaintext().expose_secret() != content {
        return Err(format!("differs: {}", String::from_utf8_lossy(open.plaintext().expose_secret())));
    }
    if open.warnings().is_empty() { Ok(()) } else { Err(open.warnings().join("; ")) }
}

#[test]
fn every_document_comes_back_byte_for_byte() {
    let failed = |path: &PathBuf| round_trip(path).err().map(|error| format!("{}: {error}", path.display()));
    let failures: Vec<String> = documents().iter().filter_map(failed).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn the_index_names_every_document() {
    let index = fs::read_to_string(xtask::root().join("testdata/documents/INDEX")).unwrap();
    let named: BTreeSet<&str> = index.lines().skip(1).filter_map(|line| line.split(':').next()).collect();
    let documents = documents();
    let there: BTreeSet<&str> =
        documents.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(named, there);
}

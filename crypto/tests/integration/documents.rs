//! Every file of `testdata/documents/` through sealing and opening, and through the real peers both ways.
//!
//! What each file is there for stands in `testdata/documents/INDEX`.

use std::fs;
use std::path::{Path, PathBuf};

use lacre_crypto::recipient::age::AgeIdentity;
use lacre_crypto::{
    EncryptOptions, Format, Groups, OpenOptions, SealedFile, SecretText, Selector, WriteOptions,
};

pub(crate) fn documents() -> Vec<PathBuf> {
    let folder = xtask::root().join("testdata/documents");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| Format::from_file_name(path.to_str().unwrap()).is_some())
        .collect();
    files.sort();
    assert!(files.len() >= 50, "only {} documents", files.len());
    files
}

pub(crate) fn seal(path: &Path, identity: &AgeIdentity) -> Result<String, String> {
    let text = SecretText::new(fs::read_to_string(path).unwrap());
    let recipient = identity.recipient();
    let options = EncryptOptions {
        groups: Groups::one(vec![&recipient]),
        selector: Selector::default(),
        mac_only_encrypted: false,
        bind: None,
        write: WriteOptions {
            now: "2026-01-02T03:04:05Z".parse().unwrap(),
            seal: true,
            allow_plaintext: false,
        },
    };
    let format = Format::from_file_name(path.to_str().unwrap()).unwrap();
    lacre_crypto::encrypt(&text, format, &options).map_err(|error| error.to_string())
}

fn round_trip(path: &Path) -> Result<(), String> {
    let identity = AgeIdentity::generate();
    let format = Format::from_file_name(path.to_str().unwrap()).unwrap();
    let sealed = seal(path, &identity)?;
    let file = SealedFile::read(&sealed, format).map_err(|error| error.to_string())?;
    let key = file.unwrap_key(&[&identity]).map_err(|error| error.to_string())?;
    let open = file.open(key, &OpenOptions::default()).map_err(|error| error.to_string())?;
    if open.plaintext().expose_secret() != fs::read_to_string(path).unwrap() {
        return Err(format!("differs: {}", open.plaintext().expose_secret()));
    }
    if open.warnings().is_empty() { Ok(()) } else { Err(open.warnings().join("; ")) }
}

#[test]
fn every_document_comes_back_byte_for_byte() {
    let failures: Vec<String> = documents()
        .iter()
        .filter_map(|path| round_trip(path).err().map(|error| format!("{}: {error}", path.display())))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

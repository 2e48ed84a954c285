//! The documents and stock sops, both ways: what one seals the other opens to the same data.

use std::fs;
use std::path::Path;

use lacre_crypto::document::Document;
use lacre_crypto::recipient::age::{AgeIdentity, read_identities};
use lacre_crypto::value::{Value, ValueType};
use lacre_crypto::{Format, OpenOptions, SealedFile, SecretText, Verdict};
use xtask::peers::age::{Age, AgeKey};
use xtask::peers::sops::Sops;

use crate::documents::{documents, seal};

/// Documents that stock sops cannot take, and why; it is our own reading that they are here for.
const OURS_ALONE: [(&str, &str); 0] = [];

struct Bench {
    key: AgeKey,
    identity: AgeIdentity,
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let key = Age::new().unwrap().keygen().unwrap();
        let identity = read_identities(&SecretText::from(key.identity.as_str())).unwrap().remove(0);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("key.txt"), &key.identity).unwrap();
        Self { key, identity, folder }
    }

    fn sops(
        &self,
        sops: &Sops,
        arguments: &[&str],
        name: &str,
        text: &str,
    ) -> Result<(String, String), String> {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        let finished = sops
            .tool()
            .env("SOPS_AGE_KEY_FILE", self.folder.path().join("key.txt").to_str().unwrap())
            .args(arguments)
            .arg(path.to_str().unwrap())
            .run()
            .map_err(|error| error.to_string())?;
        let (stdout, stderr) = (finished.stdout_text(), finished.stderr_text());
        if finished.code == Some(0) {
            Ok((stdout, stderr))
        } else {
            Err(format!("{:?}: {stderr}", finished.code))
        }
    }
}

/// Type and bytes of each value, in order; comments left out.
fn values(text: &str, format: Format) -> Result<Vec<(Option<ValueType>, Vec<u8>)>, String> {
    let document = Document::read(text, format).map_err(|error| format!("{error} in {text}"))?;
    let is_value = |value: &&Value| value.kind() != Some(ValueType::Comment);
    let leaves = document.leaves.iter().map(|leaf| &leaf.value).filter(is_value);
    Ok(leaves.map(|value| (value.kind(), value.bytes().to_vec())).collect())
}

fn format_of(path: &Path) -> Format {
    Format::from_file_name(path.to_str().unwrap()).unwrap()
}

/// What stock sops gives for our sealed text holds the values of the original, and it has nothing to remark.
fn opens_ours(bench: &Bench, sops: &Sops, path: &Path) -> Result<(), String> {
    let name = path.file_name().unwrap().to_str().unwrap();
    let sealed = seal(path, &bench.identity)?;
    let (opened, remarks) =
        bench.sops(sops, &["decrypt"], name, &sealed).map_err(|error| format!("{error}\n{sealed}"))?;
    let remarks: Vec<&str> = remarks.lines().filter(|line| !line.trim().is_empty()).collect();
    if !remarks.is_empty() {
        return Err(format!("it remarks: {}", remarks.join("; ")));
    }
    let (theirs, ours) = (bytes(&opened, path)?, bytes(&fs::read_to_string(path).unwrap(), path)?);
    if theirs == ours { Ok(()) } else { Err(format!("other values:\n{opened}")) }
}

/// The values' bytes; numbers as numbers, since stock tools print them in other spellings.
fn bytes(text: &str, path: &Path) -> Result<Vec<Vec<u8>>, String> {
    let normal = |(kind, bytes): (Option<ValueType>, Vec<u8>)| match (kind, String::from_utf8(bytes.clone()))
    {
        (Some(ValueType::Int | ValueType::Float), Ok(text)) => match text.parse::<f64>() {
            Ok(0.0) => b"0".to_vec(),
            Ok(float) if float.abs() > 1e15 => float.to_string().into_bytes(),
            _ => bytes,
        },
        _ => bytes,
    };
    Ok(values(text, format_of(path))?.into_iter().map(normal).collect())
}

/// What stock sops seals we open: same values, MAC verified.
fn is_opened_by_us(bench: &Bench, sops: &Sops, path: &Path) -> Result<(), String> {
    let name = path.file_name().unwrap().to_str().unwrap();
    let text = fs::read_to_string(path).unwrap();
    let (sealed, _) = bench.sops(sops, &["encrypt", "--age", &bench.key.recipient], name, &text)?;
    let file = SealedFile::read(&sealed, format_of(path)).map_err(|error| format!("{error}\n{sealed}"))?;
    let key = file.unwrap_key(&[&bench.identity]).map_err(|error| error.to_string())?;
    let open = file.open(key, &OpenOptions::default()).map_err(|error| format!("{error}\n{sealed}"))?;
    if open.verdict() != Verdict::NeverSealed {
        return Err(format!("the verdict is {:?}", open.verdict()));
    }
    if !open.warnings().is_empty() {
        return Err(format!("{}\n{sealed}", open.warnings().join("; ")));
    }
    let (theirs, ours) = (bytes(open.plaintext().expose_secret(), path)?, bytes(&text, path)?);
    if theirs == ours { Ok(()) } else { Err(format!("other values:\n{}", open.plaintext().expose_secret())) }
}

fn over_all_documents(check: impl Fn(&Bench, &Sops, &Path) -> Result<(), String>) {
    let bench = Bench::new();
    let mut failures = Vec::new();
    for sops in Sops::all().unwrap() {
        for path in documents() {
            let name = path.file_name().unwrap().to_str().unwrap();
            if OURS_ALONE.iter().any(|(ours, _)| *ours == name) {
                continue;
            }
            if let Err(error) = check(&bench, &sops, &path) {
                failures.push(format!("{} {name}: {error}", sops.version()));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n---- "));
}

#[test]
fn stock_sops_opens_what_we_seal() {
    over_all_documents(opens_ours);
}

#[test]
fn we_open_what_stock_sops_seals() {
    over_all_documents(is_opened_by_us);
}

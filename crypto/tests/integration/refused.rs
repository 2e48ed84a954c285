//! Every file of `testdata/refused/`: what is not sealed, with the place and the reason.
//!
//! A file is a head of `name: value` lines, an empty line, and the document, to the byte. The file's ending tells the
//! format. In the head stand
//!
//! - `error`: what the refusal says, or a part of it;
//! - `stock`: whether stock sops `refuses` the same document or `takes` it, and then loses something of it without a
//!   word, leaves a secret in the clear, or makes what it cannot read itself.

use std::fs;
use std::path::{Path, PathBuf};

use lacre_crypto::recipient::age::AgeIdentity;
use xtask::peers::sops::Sops;

use crate::documents::format_of;
use crate::support::{Bench, seal};

/// One file, taken apart.
struct Case {
    path: PathBuf,
    error: String,
    stock_refuses: bool,
    document: Vec<u8>,
}

impl Case {
    fn read(path: PathBuf) -> Self {
        let bytes = fs::read(&path).unwrap();
        let end = bytes.windows(2).position(|pair| pair == b"\n\n").expect("a head and an empty line");
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let field = |name: &str| {
            let found = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            found.unwrap_or_else(|| panic!("{}: no `{name}`", path.display())).to_owned()
        };
        let (error, stock) = (field("error"), field("stock"));
        assert!(matches!(stock.as_str(), "refuses" | "takes"), "{}: stock: {stock}", path.display());
        Self { error, stock_refuses: stock == "refuses", document: bytes[end + 2..].to_vec(), path }
    }

    fn name(&self) -> &str {
        self.path.file_name().unwrap().to_str().unwrap()
    }
}

fn cases() -> Vec<Case> {
    let folder = xtask::root().join("testdata/refused");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 100, "only {} cases", paths.len());
    paths.into_iter().map(Case::read).collect()
}

#[test]
fn what_is_refused_is_refused_with_place_and_reason() {
    let identity = AgeIdentity::generate();
    let failure = |case: &Case| match seal(&case.document, format_of(Path::new(case.name())), &identity) {
        Err(error) if error.contains(&case.error) => None,
        Err(error) => Some(format!("{}: {error}", case.name())),
        Ok(_) => Some(format!("{}: sealed", case.name())),
    };
    let failures: Vec<String> = cases().iter().filter_map(failure).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn stock_sops_refuses_what_we_say_it_refuses() {
    let (bench, newest) = (Bench::new(), Sops::v3_13().unwrap());
    let arguments = ["encrypt", "--age", &bench.key.recipient, "FILE"];
    let failures: Vec<String> = cases()
        .iter()
        .filter(|case| {
            bench.sops(&newest, &arguments, case.name(), &case.document).is_err() != case.stock_refuses
        })
        .map(|case| format!("{}: stock takes it: {}", case.name(), !case.stock_refuses))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

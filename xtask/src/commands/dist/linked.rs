//! What a program is linked from: its packages, and the licences that they come with.
//!
//! Which packages, cargo's tree of the one program says: `cargo metadata` unites the features of the whole workspace, and
//! would list what is in neither program. Macros and build scripts run and are not linked, so they are not listed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::super::test::cargo;
use crate::root;

/// How files begin that hold a licence or what it asks to be passed on, in small letters.
const LICENCE_FILES: [&str; 7] =
    ["licence", "license", "unlicense", "copying", "copyright", "notice", "patents"];
/// Folders of a package that nothing is linked from.
const UNLINKED_FOLDERS: [&str; 4] = ["benches", "examples", "fuzz", "tests"];

/// Packages without a licence text that are under neither Apache-2.0 (whose text is the same for all) nor our own: the
/// one they name, and who holds the copyright, from their sources, their lists of authors, or the place they come from.
const WITHOUT_TEXT: [(&str, &str, &str); 10] = [
    ("azure_core", "MIT", "Copyright (c) Microsoft Corporation."),
    ("azure_identity", "MIT", "Copyright (c) Microsoft Corporation."),
    ("azure_security_keyvault_keys", "MIT", "Copyright (c) Microsoft Corporation."),
    ("base64-simd", "MIT", "Copyright (c) the authors of https://github.com/Nugine/simd"),
    ("bech32", "MIT", "Copyright (c) 2017 Clark Moody"),
    ("cookie-factory", "MIT", "Copyright (c) Geoffroy Couprie, Pierre Chifflier"),
    (
        "cx448",
        "BSD-3-Clause",
        "Copyright (c) 2016-2021 Isis Agora Lovecruft, 2016-2019 Henry de Valence, 2020 Kevaundray Wedderburn, and the \
         authors of https://github.com/dignifiedquire/cx448",
    ),
    ("typespec", "MIT", "Copyright (c) Microsoft Corporation."),
    ("typespec_client_core", "MIT", "Copyright (c) Microsoft Corporation."),
    ("vsimd", "MIT", "Copyright (c) the authors of https://github.com/Nugine/simd"),
];
/// The same for packages that another one of this list has the text of, since both come from one repository.
const TEXT_IN: [(&str, &str); 1] = [("tonic-prost", "tonic")];

/// A program of ours and the features it is built with.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    /// The package, which is called as the program is.
    pub package: &'a str,
    /// Whether the default features are on.
    pub default_features: bool,
}

/// A package of somebody else that is linked into a program.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Package {
    /// What it is called.
    pub name: String,
    /// Which one.
    pub version: String,
    /// The expression that it states.
    pub licence: String,
    /// Where it is made.
    pub repository: String,
    /// Its sources on this machine.
    pub folder: PathBuf,
}

impl Package {
    /// Whether there is no way to use it but under the LGPL.
    pub fn is_lgpl(&self) -> bool {
        self.licence.contains("LGPL") && !self.licence.contains(" OR ")
    }

    /// Whether its user may choose `licence`.
    fn offers(&self, licence: &str) -> bool {
        self.licence.replace('/', " ").split([' ', '(', ')']).any(|word| word == licence)
            && !self.licence.contains(" AND ")
    }
}

/// All packages of others that the programs are linked from, on `target`.
///
/// # Errors
/// cargo fails, or its two answers do not go together.
pub fn packages(programs: &[Program<'_>], target: &str) -> Result<BTreeSet<Package>> {
    let known = known(target)?;
    let mut found = BTreeSet::new();
    for program in programs {
        for name_and_version in tree(program, target)? {
            let package = known
                .get(&name_and_version)
                .with_context(|| format!("cargo metadata does not know {name_and_version:?}"))?;
            found.extend(package.clone());
        }
    }
    Ok(found)
}

/// Names and versions in the tree of a program.
fn tree(program: &Program<'_>, target: &str) -> Result<BTreeSet<(String, String)>> {
    let mut command = cargo(&["tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none"]);
    command.args(["--format", "{p}", "--target", target, "--package", program.package]);
    if !program.default_features {
        command.arg("--no-default-features");
    }
    let output = command.output().context("cannot start cargo")?;
    ensure!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    let mut found = BTreeSet::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        if let Some((name, rest)) = line.split_once(" v") {
            let version = rest.split(' ').next().unwrap_or(rest);
            found.insert((name.to_owned(), version.to_owned()));
        }
    }
    Ok(found)
}

/// What cargo knows of each package by name and version; nothing of those of this workspace.
fn known(target: &str) -> Result<BTreeMap<(String, String), Option<Package>>> {
    let output = cargo(&["metadata", "--locked", "--format-version", "1", "--filter-platform", target])
        .output()
        .context("cannot start cargo")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let mut known = BTreeMap::new();
    for package in metadata["packages"].as_array().context("cargo metadata lists no packages")? {
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        let manifest = text("manifest_path");
        let folder = Path::new(&manifest).parent().context("a manifest without a folder")?;
        let of_others = (!package["source"].is_null()).then(|| Package {
            name: text("name"),
            version: text("version"),
            licence: text("license"),
            repository: text("repository"),
            folder: folder.to_path_buf(),
        });
        known.insert((text("name"), text("version")), of_others);
    }
    Ok(known)
}

/// The licence texts of one package, or the general one where it ships none and [`WITHOUT_TEXT`] says why that holds.
///
/// # Errors
/// There is no text, and no reason why.
pub fn licence_texts(package: &Package, all: &BTreeSet<Package>) -> Result<Vec<String>> {
    let own = texts_below(&package.folder)?;
    if !own.is_empty() {
        return Ok(own);
    }
    if package.offers("Apache-2.0") {
        return Ok(vec![fs::read_to_string(root().join("LICENSE-APACHE"))?]);
    }
    if let Some((_, twin)) = TEXT_IN.iter().find(|(name, _)| *name == package.name) {
        let twin = all.iter().find(|other| other.name == *twin && other.repository == package.repository);
        let twin =
            twin.with_context(|| format!("{} has its text in a package that is gone", package.name))?;
        return texts_below(&twin.folder);
    }
    let (_, licence, holder) = WITHOUT_TEXT
        .iter()
        .find(|(name, licence, _)| *name == package.name && *licence == package.licence)
        .with_context(|| {
            format!("{} {} ({}) has no licence text", package.name, package.version, package.licence)
        })?;
    let general = root().join("licences").join(format!("{licence}.txt"));
    let general = fs::read_to_string(&general).with_context(|| format!("no {}", general.display()))?;
    Ok(vec![format!("{holder}\n\n{general}")])
}

/// The licence files of a package, in the order of their paths, also of code in it that is somebody else's.
fn texts_below(folder: &Path) -> Result<Vec<String>> {
    let mut entries = fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    let mut texts = Vec::new();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if entry.file_type()?.is_dir() {
            if !UNLINKED_FOLDERS.contains(&name.as_str()) {
                texts.extend(texts_below(&entry.path())?);
            }
        } else if is_licence(&name) {
            texts.push(fs::read_to_string(entry.path())?);
        }
    }
    Ok(texts)
}

/// Whether a file of this name is passed on. A GPL that a package offers beside others is not what we take it under.
fn is_licence(name: &str) -> bool {
    LICENCE_FILES.iter().any(|start| name.starts_with(start))
        && !name.ends_with(".rs")
        && !name.contains("gpl")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn under(licence: &str) -> Package {
        let name = "a".to_owned();
        Package {
            version: name.clone(),
            repository: name.clone(),
            folder: PathBuf::new(),
            licence: licence.to_owned(),
            name,
        }
    }

    #[test]
    fn a_choice_is_told_from_a_sum() {
        assert!(under("MIT OR Apache-2.0").offers("Apache-2.0"));
        assert!(under("MIT/Apache-2.0").offers("Apache-2.0"));
        assert!(under("Apache-2.0").offers("Apache-2.0"));
        assert!(!under("Apache-2.0 AND ISC").offers("Apache-2.0"));
        assert!(!under("Apache-2.0-or-so").offers("Apache-2.0"));
        assert!(!under("MIT").offers("Apache-2.0"));
    }

    #[test]
    fn only_what_leaves_no_other_choice_is_lgpl() {
        assert!(under("LGPL-2.0-or-later").is_lgpl());
        assert!(!under("MIT OR Apache-2.0 OR LGPL-2.1-or-later").is_lgpl());
    }

    #[test]
    fn licences_are_found_by_name() {
        for name in
            ["license", "license-mit.md", "licence.txt", "copying", "notice", "unlicense", "copyright"]
        {
            assert!(is_licence(name), "{name}");
        }
        for name in ["readme.md", "license.rs", "license-gplv2", "lib.rs"] {
            assert!(!is_licence(name), "{name}");
        }
    }
}

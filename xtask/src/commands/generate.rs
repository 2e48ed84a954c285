//! `cargo xtask gen`: files that are made from the code, so that they cannot tell something else.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use super::build::{self, Profile};
use crate::{output, root};

pub mod argocd;
pub mod chart;

/// A file and what prints it.
struct Generated {
    /// From the root of the repository.
    file: &'static str,
    /// A program of the workspace.
    program: &'static str,
    arguments: &'static [&'static str],
}

/// All of them.
const GENERATED: [Generated; 5] = [
    Generated {
        file: "controller/deploy/crd/encryptedsecrets.yaml",
        program: "crd",
        arguments: &["encryptedsecrets"],
    },
    Generated {
        file: "controller/deploy/crd/sealedsecrets.yaml",
        program: "crd",
        arguments: &["sealedsecrets"],
    },
    Generated {
        file: "controller/deploy/helm/lacre/files/encryptedsecrets.yaml",
        program: "crd",
        arguments: &["encryptedsecrets"],
    },
    Generated {
        file: "controller/deploy/helm/lacre/files/sealedsecrets.yaml",
        program: "crd",
        arguments: &["sealedsecrets"],
    },
    Generated { file: "docs/cli.md", program: "lacre", arguments: &["reference"] },
];

/// The Helm chart.
const CHART: &str = "controller/deploy/helm/lacre";

/// Writes the files; with `--check` only compares them.
///
/// # Errors
/// A program fails; or a file is stale and was only to be compared.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let [check] = super::switches(arguments, ["--check"])?;
    let stale = stale(&build::programs(Profile::Debug)?)?;
    if check && !stale.is_empty() {
        let files: Vec<_> = stale.iter().map(|(file, _)| *file).collect();
        bail!("not what the code says: {}; run `cargo xtask gen`", files.join(", "));
    }
    for (file, text) in stale {
        let path = root().join(file);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        output::line(&format!("wrote {file}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The files that are not what they should be, and what they should be.
///
/// # Errors
/// A program is missing or fails.
pub fn stale(programs: &BTreeMap<String, PathBuf>) -> Result<Vec<(&'static str, Vec<u8>)>> {
    let mut stale = Vec::new();
    for Generated { file, program, arguments } in &GENERATED {
        let program = build::find(programs, program)?;
        let made = Command::new(program).args(*arguments).env_clear().output()?;
        let trouble = String::from_utf8_lossy(&made.stderr);
        ensure!(made.status.success(), "{} ended with {}:\n{trouble}", program.display(), made.status);
        keep_if_stale(&mut stale, file, made.stdout);
    }
    let values = chart::entries(&fs::read_to_string(root().join(CHART).join("values.yaml"))?)?;
    keep_if_stale(
        &mut stale,
        "controller/deploy/helm/lacre/values.schema.json",
        chart::schema(&values)?.into(),
    );
    keep_if_stale(&mut stale, "docs/chart.md", chart::page(&values).into());
    keep_if_stale(&mut stale, argocd::FILE, argocd::config_map()?.into());
    Ok(stale)
}

/// A file that does not exist yet is as stale as one that differs.
fn keep_if_stale(stale: &mut Vec<(&'static str, Vec<u8>)>, file: &'static str, made: Vec<u8>) {
    if fs::read(root().join(file)).ok().as_ref() != Some(&made) {
        stale.push((file, made));
    }
}

//! `cargo xtask dist`: what is given to people who do not build for themselves.
//!
//! Two archives in `dist` below cargo's target folder: the programs with what belongs to them, and the sources that the
//! LGPL of two libraries asks for, ours and theirs. They are made from what is committed, and time and user leave no trace
//! in how they are packed.
//!
//! The programs are linked with the system's C library: one of their own would be one more library under the LGPL, and
//! names of users and hosts would be looked up in other ways than the machine is set up for. Each is built by itself,
//! since cargo unites the features of what it builds at once, and the controller must not get those of the command.
//! `--debug` packs debug builds, to try the packing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::test::cargo;
use crate::{output, root};

pub mod archive;
pub mod linked;
pub mod notices;

use linked::{Package, Program};

/// What is given out.
pub const PROGRAMS: [Program<'_>; 2] = [
    Program { package: "lacre", default_features: true },
    Program { package: "lacre-controller", default_features: true },
];
/// What is packed as it is, each a file or a folder.
const AS_THEY_ARE: [&str; 8] = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "docs",
    "controller/deploy",
];
/// Shells, and what each wants a file with completions for `lacre` to be called.
const COMPLETIONS: [(&str, &str); 3] = [("bash", "lacre.bash"), ("fish", "lacre.fish"), ("zsh", "_lacre")];

/// Builds the programs and makes both archives.
///
/// # Errors
/// A build fails; something is not committed; a package has no licence text.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let [debug] = super::switches(arguments, ["--debug"])?;
    ensure!(
        debug || said("git", &["status", "--porcelain"])?.is_empty(),
        "commit first: the sources are packed, too"
    );
    let (version, target) = (env!("CARGO_PKG_VERSION"), host()?);
    let packages = linked::packages(&PROGRAMS, &target)?;
    let lgpl: Vec<_> = packages.iter().filter(|package| package.is_lgpl()).collect();
    let programs = PROGRAMS.iter().map(|program| build(program, debug)).collect::<Result<Vec<_>>>()?;

    let scratch = tempfile::tempdir()?;
    let folder = scratch.path().join(format!("lacre-{version}-{target}"));
    fill(&folder, &programs)?;
    notices(&folder, version, &packages, &lgpl)?;
    let sources = scratch.path().join(format!("lacre-{version}-source"));
    unpack_sources(&sources, &lgpl)?;

    let seconds = said("git", &["log", "-1", "--format=%ct"])?.trim().parse()?;
    for folder in [folder, sources] {
        output::line(&pack(&folder, seconds)?.display().to_string());
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds one program; gives its file.
fn build(program: &Program<'_>, debug: bool) -> Result<PathBuf> {
    let name = program.package;
    let mut command = cargo(&["build", "--locked", "--message-format=json-render-diagnostics"]);
    command.args(["--package", name, "--bin", name]);
    if !debug {
        // Messages of a panic name source files: by what they are, not by where the builder keeps them.
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).context("no home folder")?;
        let remap = |from: &Path, to: &str| format!("\"--remap-path-prefix={}={to}\"", from.display());
        let flags = [remap(&home, "cargo"), remap(&root(), "lacre")].join(",");
        command.args(["--release", "--config", &format!("build.rustflags=[{flags}]")]);
    }
    let output = command.stderr(Stdio::inherit()).output().context("cannot start cargo")?;
    ensure!(output.status.success(), "the build of {name} failed");
    for line in String::from_utf8(output.stdout)?.lines() {
        let message: Value = serde_json::from_str(line)?;
        if let (Some(file), true) = (message["executable"].as_str(), message["target"]["name"] == name) {
            return Ok(PathBuf::from(file));
        }
    }
    bail!("cargo built no program {name}")
}

/// The programs, what describes them, and what `lacre` says of itself: manual pages and completions.
fn fill(folder: &Path, programs: &[PathBuf]) -> Result<()> {
    fs::create_dir_all(folder.join("completions"))?;
    for program in programs {
        fs::copy(program, folder.join(program.file_name().context("a program without a name")?))?;
    }
    for name in AS_THEY_ARE {
        let to = folder.join(name);
        fs::create_dir_all(to.parent().context("no folder")?)?;
        run_in(&root(), "cp", &["--recursive".as_ref(), name.as_ref(), to.as_os_str()])?;
    }
    let lacre = folder.join("lacre");
    run_in(folder, &lacre, &["man".as_ref(), "man/man1".as_ref()])?;
    for (shell, file) in COMPLETIONS {
        let script = run_in(folder, &lacre, &["completion".as_ref(), shell.as_ref()])?;
        fs::write(folder.join("completions").join(file), script)?;
    }
    Ok(())
}

/// What the owners of code in the programs ask to be told.
fn notices(folder: &Path, version: &str, packages: &BTreeSet<Package>, lgpl: &[&Package]) -> Result<()> {
    fs::write(folder.join("THIRD-PARTY"), notices::third_party(packages)?)?;
    let rust = Path::new(said("rustc", &["--print", "sysroot"])?.trim()).join("share/doc/rust");
    fs::copy(rust.join("COPYRIGHT-library.html"), folder.join("RUST.html"))
        .with_context(|| format!("no licences of the standard library in {}", rust.display()))?;
    let Some(library) = lgpl.first() else { return Ok(()) };
    fs::create_dir(folder.join("lgpl"))?;
    fs::copy(library.folder.join("LICENSE.txt"), folder.join("lgpl/LGPL-2.0.txt"))?;
    let programs = PROGRAMS.map(|program| program.package);
    fs::write(folder.join("lgpl/RELINKING"), notices::relinking(version, &programs, lgpl))?;
    Ok(())
}

/// Our sources as committed, with those of the libraries beside them.
///
/// # Errors
/// git fails, or a library's sources are not on this machine.
pub fn unpack_sources(folder: &Path, lgpl: &[&Package]) -> Result<()> {
    fs::create_dir_all(folder)?;
    let packed = folder.join("lacre.tar");
    run_in(
        &root(),
        "git",
        &[
            "archive".as_ref(),
            "--prefix=lacre/".as_ref(),
            "--output".as_ref(),
            packed.as_os_str(),
            "HEAD".as_ref(),
        ],
    )?;
    run_in(folder, "tar", &["-xf".as_ref(), packed.as_os_str()])?;
    fs::remove_file(packed)?;
    for Package { name, version, folder: from, .. } in lgpl {
        let to = folder.join(format!("{name}-{version}"));
        run_in(&root(), "cp", &["--recursive".as_ref(), from.as_os_str(), to.as_os_str()])?;
    }
    Ok(())
}

/// Packs a folder into the place for what is given out.
fn pack(folder: &Path, seconds: u64) -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let (dist, name) = (target.join("dist"), folder.file_name().context("a folder without a name")?);
    fs::create_dir_all(&dist)?;
    let file = dist.join(format!("{}.tar.gz", name.to_string_lossy()));
    archive::pack(folder, seconds, &file)?;
    Ok(file)
}

/// The target that this machine's compiler builds for.
///
/// # Errors
/// There is no compiler.
pub fn host() -> Result<String> {
    let about = said("rustc", &["--version", "--verbose"])?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say what it builds for")?.to_owned())
}

/// What a program prints, run in our root.
fn said(program: &str, arguments: &[&str]) -> Result<String> {
    let arguments: Vec<_> = arguments.iter().map(std::convert::AsRef::as_ref).collect();
    Ok(String::from_utf8(run_in(&root(), program, &arguments)?)?)
}

fn run_in(folder: &Path, program: impl AsRef<Path>, arguments: &[&std::ffi::OsStr]) -> Result<Vec<u8>> {
    let program = program.as_ref();
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let trouble = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} {arguments:?} failed: {trouble}", program.display());
    Ok(output.stdout)
}

//! `cargo xtask fuzz`: the targets of `crypto/fuzz` under LLVM's fuzzer, one after the other.
//!
//! The compiler's own coverage and the fuzzer's source in its crate are all it takes, so no other toolchain and no
//! installed program. What a target learns is kept in the cache, so that the next run goes on from there.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use crate::{cache, output, root};

/// What the fuzzer needs to see which code an input reaches.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// The platform, named so that build scripts are built without coverage.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Seconds for each target unless said otherwise: an hour and a quarter for all fifteen.
const SECONDS_EACH: u64 = 300;

/// Longest time that one input may take, in seconds.
const HANG_SECONDS: u64 = 10;

/// Which targets there are, and the ending of the documents that each starts from.
const TARGETS: [(&str, &str); 16] = [
    ("binary", "txt"),
    ("dotenv", "env"),
    ("ini", "ini"),
    ("json", "json"),
    ("keys", ""),
    ("rewrapped-json", "json"),
    ("rewrapped-yaml", "yaml"),
    ("sealed-dotenv", "env"),
    ("sealed-ini", "ini"),
    ("sealed-items", ""),
    ("sealed-json", "json"),
    ("sealed-yaml", "yaml"),
    ("tampered", "yaml"),
    ("templates", ""),
    ("words", ""),
    ("yaml", "yaml"),
];

/// Builds the fuzzer and runs the named targets, or all: `[--seconds N] [TARGET…]`.
///
/// # Errors
/// The fuzzer cannot be built, or a target fails; the input that broke it is kept, and named.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let (seconds, names) = parse(arguments)?;
    let program = build()?;
    for (name, ending) in
        TARGETS.iter().filter(|(name, _)| names.is_empty() || names.iter().any(|n| n == name))
    {
        output::line(&format!("{name}: {seconds} s"));
        fuzz(&program, name, ending, seconds)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn parse(arguments: &[String]) -> Result<(u64, Vec<String>)> {
    let (mut seconds, mut names, mut rest) = (SECONDS_EACH, Vec::new(), arguments.iter());
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--seconds" => seconds = rest.next().context("--seconds takes a number")?.parse()?,
            name if TARGETS.iter().any(|(known, _)| *known == name) => names.push(name.to_owned()),
            other => bail!("there is no target `{other}`: {}", TARGETS.map(|(name, _)| name).join(", ")),
        }
    }
    Ok((seconds, names))
}

fn build() -> Result<PathBuf> {
    let target = cache::folder()?.join("fuzz/target");
    let mut cargo = super::test::cargo(&["build", "--release", "--locked", "--target", PLATFORM]);
    cargo.current_dir(root().join("crypto/fuzz")).env("CARGO_TARGET_DIR", &target).env("RUSTFLAGS", COVERAGE);
    ensure!(cargo.status().context("cannot start cargo")?.success(), "the fuzzer cannot be built");
    Ok(target.join(PLATFORM).join("release/lacre-fuzz"))
}

fn fuzz(program: &Path, name: &str, ending: &str, seconds: u64) -> Result<()> {
    let folder = cache::folder()?.join("fuzz").join(name);
    let (corpus, seeds) = (folder.join("corpus"), folder.join("seeds"));
    for folder in [&corpus, &seeds] {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    for entry in std::fs::read_dir(root().join("testdata/documents"))? {
        let path = entry?.path();
        if ending.is_empty() || path.extension().is_some_and(|of| of == ending) {
            std::fs::copy(&path, seeds.join(path.file_name().context("a file has a name")?))?;
        }
    }
    let passed = Command::new(program)
        .env("LACRE_FUZZ_TARGET", name)
        .args([format!("-max_total_time={seconds}"), format!("-timeout={HANG_SECONDS}")])
        .args(["-max_len=4096", "-print_final_stats=1", "-verbosity=0"])
        .arg(format!("-artifact_prefix={}/", folder.display()))
        .args([&corpus, &seeds])
        .status()
        .with_context(|| format!("cannot start {}", program.display()))?
        .success();
    ensure!(passed, "{name}: the input that broke it is in {}", folder.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_and_seconds_are_read() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(parse(&words("--seconds 5 yaml")).unwrap(), (5, words("yaml")));
        assert_eq!(parse(&[]).unwrap(), (SECONDS_EACH, Vec::new()));
        assert!(parse(&words("nothing")).is_err() && parse(&words("--seconds x")).is_err());
    }

    #[test]
    fn the_targets_are_those_of_the_fuzzer() {
        let source = std::fs::read_to_string(root().join("crypto/fuzz/src/targets.rs")).unwrap();
        let named: Vec<&str> =
            source.lines().filter_map(|line| line.strip_prefix("    (\"")?.split('"').next()).collect();
        let ours: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
        assert_eq!(named[..ours.len()], ours);
    }
}

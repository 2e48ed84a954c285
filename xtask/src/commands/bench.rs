//! `cargo xtask bench`: lacre against sops, and what takes the place of Sealed Secrets against it; whole processes, in
//! alternating pairs of the same run.
//!
//! `--files` and `--sealed-secrets` choose one of the two.
//!
//! Only ratios mean something: the machine and its mood are the same for both halves of a pair.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::build::{self, Profile};
use crate::install;
use crate::output;
use crate::peers::age::{self, Age};
use crate::peers::sops::{self, Sops};

mod growth;
mod input;
mod many;
mod measure;
mod sealed;

use measure::{Comparison, Sample};

/// Format and values of each file, and how many pairs are run.
const SIZES: [(&str, usize, usize); 3] = [("yaml", 10, 21), ("yaml", 20_000, 5), ("json", 20_000, 5)];
/// The two programs, in the order of a pair.
const NAMES: [&str; 2] = ["lacre", "sops"];

/// One program with all that a run of it needs.
struct Contestant {
    program: std::path::PathBuf,
    identity: std::path::PathBuf,
    recipient: String,
}

#[derive(Clone, Copy)]
enum Verb {
    Decrypt,
    Encrypt,
}

impl Verb {
    fn name(self) -> &'static str {
        match self {
            Self::Decrypt => "decrypt",
            Self::Encrypt => "encrypt",
        }
    }
}

/// What was measured.
struct Results {
    comparisons: Vec<Comparison>,
    grown: Vec<growth::Growth>,
    sealed: Option<sealed::Results>,
}

/// Builds our programs, measures them and the peers, prints medians and ratios.
///
/// # Errors
/// A program is missing or fails, or the two do not agree on what a file holds.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let [as_json, files, sealed] = super::switches(arguments, ["--json", "--files", "--sealed-secrets"])?;
    // Neither is both.
    let (files, sealed) = if files || sealed { (files, sealed) } else { (true, true) };
    let folder = tempfile::tempdir()?;
    let programs = build::programs(Profile::Release)?;
    let lacre = build::find(&programs, NAMES[0])?;
    let mut results = Results { comparisons: Vec::new(), grown: Vec::new(), sealed: None };
    if files {
        (results.comparisons, results.grown) = of_files(folder.path(), lacre)?;
    }
    if sealed {
        let controller = build::find(&programs, "lacre-controller")?;
        results.sealed = Some(sealed::measure(folder.path(), lacre, controller)?);
    }
    report(&results, as_json)?;
    Ok(ExitCode::SUCCESS)
}

fn of_files(folder: &Path, lacre: &Path) -> Result<(Vec<Comparison>, Vec<growth::Growth>)> {
    install::ensure(&age::COMPONENT)?;
    install::ensure(&sops::V3_13)?;
    let contestants = contestants(folder, lacre)?;
    let mut comparisons = Vec::new();
    for (format, values, pairs) in SIZES {
        let (plain, sealed) = self::files(folder, &contestants, format, values)?;
        for (verb, file) in [(Verb::Decrypt, &sealed), (Verb::Encrypt, &plain)] {
            let work = format!("{} of {values} values, {format}", verb.name());
            output::problem(&format!("{work}: {pairs} pairs"));
            let samples = pairs_of(&contestants, verb, file, pairs)?;
            comparisons.push(Comparison::of(NAMES, work, samples));
        }
    }
    output::problem(&format!("{} files of {} values each", many::FILES, many::VALUES));
    comparisons.push(many::compare(folder, &contestants)?);
    let [lacre, _] = &contestants;
    output::problem("growth with the number of values");
    Ok((comparisons, growth::measure(folder, lacre)?))
}

fn contestants(folder: &Path, lacre: &Path) -> Result<[Contestant; 2]> {
    let key = Age::new()?.keygen()?;
    let identity = folder.join("keys.txt");
    fs::write(&identity, format!("{}\n", key.identity))?;
    let contestant =
        |program| Contestant { program, identity: identity.clone(), recipient: key.recipient.clone() };
    Ok([contestant(lacre.to_path_buf()), contestant(Sops::v3_13()?.program().to_path_buf())])
}

/// Makes the file in clear and, by sops, sealed; checks that each program gives back the values of the other's file.
fn files(
    folder: &Path,
    contestants: &[Contestant; 2],
    format: &str,
    values: usize,
) -> Result<(std::path::PathBuf, std::path::PathBuf)> {
    let plain = folder.join(format!("plain-{values}.{format}"));
    input::write(&plain, values)?;
    let sealed = NAMES.map(|name| folder.join(format!("sealed-by-{name}-{values}.{format}")));
    for (contestant, target) in contestants.iter().zip(&sealed) {
        contestant.run(Verb::Encrypt, &plain, File::create(target)?)?;
    }
    let opened = folder.join("opened");
    for contestant in contestants {
        for file in &sealed {
            contestant.run(Verb::Decrypt, file, File::create(&opened)?)?;
            ensure!(
                fs::read(&opened)? == fs::read(&plain)?,
                "{} does not give back what {} holds",
                contestant.program.display(),
                file.display()
            );
        }
    }
    let [_, by_sops] = sealed;
    Ok((plain, by_sops))
}

fn pairs_of(
    contestants: &[Contestant; 2],
    verb: Verb,
    file: &Path,
    pairs: usize,
) -> Result<[Vec<Sample>; 2]> {
    let mut samples = [Vec::new(), Vec::new()];
    // The first pair warms up and is not counted.
    for pair in 0..=pairs {
        for (contestant, taken) in contestants.iter().zip(&mut samples) {
            let sample = contestant.run(verb, file, File::create("/dev/null")?)?;
            if pair > 0 {
                taken.push(sample);
            }
        }
    }
    Ok(samples)
}

impl Contestant {
    /// The program with its identity and nothing else in its environment.
    fn command(&self) -> Command {
        self.command_of(&self.program)
    }

    /// The same environment for another program, which calls it.
    fn command_of(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("HOME", "/nonexistent").env("SOPS_AGE_KEY_FILE", &self.identity);
        command.env("SOPS_DISABLE_VERSION_CHECK", "true");
        command
    }

    fn run(&self, verb: Verb, file: &Path, stdout: File) -> Result<Sample> {
        let mut command = self.command();
        command.arg(verb.name());
        if let Verb::Encrypt = verb {
            command.args(["--age", &self.recipient]);
        }
        command.arg(file).stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped());
        command.current_dir(file.parent().context("a file without folder")?);
        measure::sample(command)
    }
}

fn report(results: &Results, as_json: bool) -> Result<()> {
    let Results { comparisons, grown, sealed } = results;
    if as_json {
        let compared: Vec<_> = comparisons.iter().map(Comparison::to_json).collect();
        let grown: Vec<_> = grown.iter().map(growth::Growth::to_json).collect();
        let sealed = sealed.as_ref().map(sealed::Results::to_json);
        let all = json!({"names": NAMES, "results": compared, "growth": grown, "sealed_secrets": sealed});
        output::line(&format!("{all:#}"));
        return Ok(());
    }
    if !comparisons.is_empty() {
        table(NAMES, comparisons);
    }
    grown.iter().for_each(|growth| output::line(&growth.to_line()));
    if let Some(sealed) = sealed {
        table(sealed::NAMES, &sealed.comparisons);
        output::line(&sealed.to_line());
    }
    output::line(&format!("peaks below {:.1} MiB cannot be told: see `measure`", measure::floor_mib()?));
    Ok(())
}

fn table([us, them]: [&str; 2], comparisons: &[Comparison]) {
    let wide = measure::WORK_CHARS;
    output::line(&format!(
        "{:<wide$}{:<24}{:<24}{}",
        "medians of whole processes", "   wall ms", "   CPU ms", "   peak MiB"
    ));
    let columns = format!("{us:>8}{them:>8}{:>8}", "ratio").repeat(3);
    output::line(&format!("{:<wide$}{columns}", ""));
    comparisons.iter().for_each(|comparison| output::line(&comparison.to_line()));
}

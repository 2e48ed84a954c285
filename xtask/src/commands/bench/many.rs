//! Many small files: one call of lacre against a loop of sops, since sops takes one file per call.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use super::measure::{self, Comparison, Sample};
use super::{Contestant, NAMES, Verb, input};

/// How many files.
pub(super) const FILES: usize = 200;
/// Values in each of them.
pub(super) const VALUES: usize = 50;
/// How many pairs are run.
const PAIRS: usize = 5;

/// Opens all files by both programs into a folder of its own, and checks that they agree on every byte.
///
/// # Errors
/// A program fails, or the two disagree.
pub(super) fn compare(folder: &Path, contestants: &[Contestant; 2]) -> Result<Comparison> {
    let sealed = folder.join("many");
    fs::create_dir(&sealed)?;
    let plain = folder.join("many.yaml");
    input::write(&plain, VALUES)?;
    for number in 0..FILES {
        contestants[1].run(Verb::Encrypt, &plain, File::create(sealed.join(format!("{number:03}.yaml")))?)?;
    }
    let mut samples = [Vec::new(), Vec::new()];
    // The first pair warms up and is not counted.
    for pair in 0..=PAIRS {
        let results = [folder.join(format!("ours-{pair}")), folder.join(format!("theirs-{pair}"))];
        for ((contestant, decrypt), (result, taken)) in
            contestants.iter().zip([at_once, one_by_one]).zip(results.iter().zip(&mut samples))
        {
            fs::create_dir(result)?;
            let sample = decrypt(contestant, &sealed, result)?;
            if pair > 0 {
                taken.push(sample);
            }
        }
        agree(&plain, &results)?;
    }
    Ok(Comparison::of(NAMES, format!("decrypt {FILES} files of {VALUES} values"), samples))
}

fn at_once(contestant: &Contestant, sealed: &Path, result: &Path) -> Result<Sample> {
    let mut command = contestant.command();
    command.arg("decrypt").arg("--output-dir").arg(result).arg("--recursive").arg(sealed);
    run(command)
}

/// The shell's loop is measured with all that it starts.
fn one_by_one(contestant: &Contestant, sealed: &Path, result: &Path) -> Result<Sample> {
    let mut command = contestant.command_of("sh".as_ref());
    let script = r#"cd "$2" && for file in *; do "$1" decrypt --output "$3/$file" "$file" || exit; done"#;
    command.args(["-c", script, "sh"]).arg(&contestant.program).arg(sealed).arg(result);
    run(command)
}

fn run(mut command: Command) -> Result<Sample> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    measure::sample(command)
}

fn agree(plain: &Path, results: &[PathBuf; 2]) -> Result<()> {
    let wanted = fs::read(plain)?;
    for result in results {
        for number in 0..FILES {
            let file = result.join(format!("{number:03}.yaml"));
            ensure!(fs::read(&file)? == wanted, "{} is not what was sealed", file.display());
        }
        fs::remove_dir_all(result)?;
    }
    Ok(())
}

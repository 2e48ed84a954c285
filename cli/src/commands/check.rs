//! `lacre check`: whether files are sealed, fully and for whom their rules say. Needs no key.

mod judging;

use std::path::{Path, PathBuf};

use clap::Args;
use lacre_crypto::Format;

use super::Context;
use crate::args::{FormatArgs, JsonArgs};
use crate::error::{CommandError, Kind};
use crate::output::{Replay, printable, recorded};
use crate::targets::{self, Target};
use crate::{batch, config, files, git};

pub(super) use judging::{Judgment, Origin, Status, judge};

/// Tell, without any key, whether files are fully and properly sealed for the recipients of their creation rules.
///
/// Finds values in the clear that should be sealed, damaged ones, reused nonces, recipients and selectors that are
/// not those of the rule, and files that a rule names by its `path_regex` and that are not sealed at all. Whether
/// values open and the seal is right only a key can tell. Exit code: 0 without findings, 1 with findings, 2 when a
/// file cannot be read.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  lacre check --recursive .\n  lacre check --staged    before a commit")]
pub(crate) struct CheckArgs {
    /// Files, or folders with `--recursive`; this folder with all below it if absent.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Take the files of folders, too. Hidden folders and symbolic links in them are left out.
    #[arg(long, short)]
    recursive: bool,
    /// Check what is staged in git, as it will be committed.
    #[arg(long, conflicts_with = "recursive")]
    staged: bool,
    #[command(flatten)]
    pub(super) script: JsonArgs,
    /// Read the documents in this format, whatever their names: `yaml`, `json`, `dotenv`, `ini` or `binary`.
    #[arg(long, value_name = "FORMAT")]
    input_type: Option<String>,
}

pub(crate) fn run(args: &CheckArgs, context: &Context) -> Result<(), CommandError> {
    let mut tally = Tally::default();
    if args.staged {
        let staged = git::staged(&args.files)?;
        let judge_one = |file: &git::Staged| match file.content() {
            Ok(content) => {
                let format = args.format(&Target::named(&file.path));
                judge(&file.path, content.expose_secret(), format, Origin::Found, context)
            }
            Err(error) => Judgment::lost(&error),
        };
        let here = config::absolute(Path::new("."))?;
        all(
            &staged,
            |file| file.path.strip_prefix(&here).unwrap_or(&file.path),
            judge_one,
            &mut tally,
            context,
        )?;
    } else {
        let here = [PathBuf::from(".")];
        let named: &[PathBuf] = if args.files.is_empty() { &here } else { &args.files };
        let found = targets::candidates(named, args.recursive || args.files.is_empty())?;
        let judge_one = |target: &Target| match files::read_bytes(&target.path) {
            Ok(content) => {
                let origin = if target.folder.is_some() { Origin::Found } else { Origin::Named };
                judge(&target.path, content.expose_secret(), args.format(target), origin, context)
            }
            Err(error) => Judgment::lost(&error),
        };
        all(&found, |target| &target.path, judge_one, &mut tally, context)?;
    }
    tally.conclude(context)
}

impl CheckArgs {
    /// A name that tells no format means binary: such a file is looked at only if it is sealed or a rule names it.
    fn format(&self, target: &Target) -> Format {
        let typed = FormatArgs { input_type: self.input_type.clone(), ..FormatArgs::default() };
        target.format(&typed).unwrap_or(Format::Binary)
    }
}

/// Judges all of `items`, and tells what is wrong with each in their order.
fn all<Item: Sync>(
    items: &[Item],
    path: impl Fn(&Item) -> &Path,
    judge_one: impl Fn(&Item) -> Judgment + Sync,
    tally: &mut Tally,
    context: &Context,
) -> Result<(), CommandError> {
    let (mut replay, mut told) = (Replay::default(), Ok(()));
    let mut finished = 0;
    batch::in_order(
        items,
        |item| recorded(|| judge_one(item)),
        |item, (judgment, said)| {
            context.output.progress(None);
            let name = path(item).display().to_string();
            let before = std::mem::replace(&mut told, Ok(()));
            told = before.and_then(|()| replay.print(said)).and_then(|()| tell(&name, &judgment, context));
            tally.add(&judgment);
            finished += 1;
            context.output.progress(Some(&format!("{finished}/{} {name}", items.len())));
        },
    );
    context.output.progress(None);
    told
}

fn tell(name: &str, judgment: &Judgment, context: &Context) -> Result<(), CommandError> {
    if judgment.status == Status::Free {
        return Ok(());
    }
    let mut lines = Vec::new();
    for finding in &judgment.findings {
        let weight = if finding.is_warning { "warning: " } else { "" };
        lines.push(format!("{name}:{}: {weight}{}", finding.line, finding.what));
        lines.push(format!("  next: {}", finding.next));
    }
    match lines.is_empty() && !context.output.json {
        true => Ok(()),
        false => context.output.answer(&printable(&lines.join("\n")), &judgment.as_json(name)),
    }
}

/// What was found in all files.
#[derive(Default)]
struct Tally {
    sealed: usize,
    free: usize,
    unreadable: usize,
    faults: usize,
    faulty: usize,
    empty: usize,
}

impl Tally {
    fn add(&mut self, judgment: &Judgment) {
        match judgment.status {
            Status::Free => self.free += 1,
            Status::Plain => {}
            Status::Sealed => self.sealed += 1,
            Status::Unreadable => self.unreadable += 1,
        }
        self.faults += judgment.faults();
        self.faulty += usize::from(judgment.faults() > 0);
        self.empty += judgment.inspection.as_ref().map_or(0, |found| found.empty);
    }

    fn conclude(&self, context: &Context) -> Result<(), CommandError> {
        let mut seen = format!("{} sealed, {} that need not be", self.sealed, self.free);
        if self.empty > 0 {
            seen += &format!("; {} null or empty values are never sealed", self.empty);
        }
        context.output.note(&seen);
        if self.faults == 0 {
            return Ok(());
        }
        let kind = if self.unreadable > 0 { Kind::Read } else { Kind::General };
        let plural = |count: usize, one: &str| format!("{count} {one}{}", if count == 1 { "" } else { "s" });
        let text = format!("{} in {}", plural(self.faults, "finding"), plural(self.faulty, "file"));
        Err(CommandError::new(kind, text).hint("each finding says what to do next"))
    }
}

//! `lacre updatekeys`: the recipients of sealed documents made equal to their creation rule.
//!
//! Planning needs no key. All plans are shown at once, and one answer is for all of them; a file whose plan is another
//! one by the time that it is written is left alone.

mod plan;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;
use lacre_crypto::{Format, OpenFile, SealedFile, Timestamp, WriteOptions};

use super::Context;
use crate::args::{FormatArgs, JsonArgs};
use crate::config::{self, Rule};
use crate::error::{CommandError, Kind};
use crate::files::{self, Input, Privacy};
use crate::opening::{self, Leniency, Opener};
use crate::output::{Replay, recorded};
use crate::targets::{Target, Targets};
use crate::wrapping::Ready;
use crate::{batch, compat, recipients};

pub(super) use plan::Plan;

/// Make the recipients of sealed documents those of their creation rule in `.sops.yaml`.
///
/// The plan is shown first. Wrapped keys of recipients that stay are kept as they are. Removing a recipient draws a
/// new data key, since the removed one knows the old.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  lacre updatekeys secrets.yaml\n  lacre updatekeys --yes --recursive secrets\n  \
    lacre updatekeys --check --recursive ."
)]
pub(crate) struct UpdatekeysArgs {
    /// The sealed documents, or folders with `--recursive`.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Take the sealed files of folders, too. Hidden folders and symbolic links in them are left out.
    #[arg(long, short)]
    recursive: bool,
    /// Do it without asking.
    #[arg(long, short)]
    yes: bool,
    /// Change nothing, and fail when something would change. This needs no key.
    #[arg(long, visible_alias = "dry-run", conflicts_with = "yes")]
    check: bool,
    /// Keep the data key although a recipient that is removed knows it.
    #[arg(long)]
    keep_data_key: bool,
    #[command(flatten)]
    pub(super) script: JsonArgs,
    /// Read the documents in this format, whatever their names: `yaml`, `json`, `dotenv`, `ini` or `binary`.
    #[arg(long, value_name = "FORMAT")]
    input_type: Option<String>,
}

pub(crate) fn run(args: &UpdatekeysArgs, context: &Context) -> Result<(), CommandError> {
    let typed = args.format();
    let targets = Targets::sealed(&args.files, args.recursive, &typed)?;
    if args.check {
        return check(args, &targets, context);
    }
    let agreed = agree(args, &targets, context)?;
    let (opener, ready) = (Opener::expecting(context, &targets.recipients), Ready::default());
    batch::run(&targets, context, |target| {
        let planned = Planned::read(target, args, context)?;
        match agreed.get(&target.path) {
            _ if planned.plan.changes_nothing() => planned.tell_unchanged(context).map(|()| "unchanged"),
            Some(plan) if *plan == planned.plan => update(&planned, args, &opener, &ready, context),
            _ => {
                Err(CommandError::on(Kind::Write, target.path.display(), "changed since the plan was shown")
                    .hint("run the command again"))
            }
        }
    })
}

/// Says of each file whether its recipients are those of its rule.
fn check(args: &UpdatekeysArgs, targets: &Targets, context: &Context) -> Result<(), CommandError> {
    let outdated = AtomicUsize::new(0);
    batch::run(targets, context, |target| {
        let planned = Planned::read(target, args, context)?;
        if planned.plan.changes_nothing() {
            return planned.tell_unchanged(context).map(|()| "unchanged");
        }
        outdated.fetch_add(1, Ordering::Relaxed);
        let rotates = planned.rotates(args);
        let line = planned.plan.as_text(&planned.name, &planned.rule, rotates);
        context.output.done(&line, &planned.plan.as_json(&planned.name, false, rotates))?;
        Ok("to be updated")
    })?;
    match outdated.into_inner() {
        0 => Ok(()),
        1 => Err(CommandError::general("1 file is not sealed for whom its rule names")),
        count => {
            Err(CommandError::general(format!("{count} files are not sealed for whom their rules name")))
        }
    }
    .map_err(|error| error.hint("update them with `lacre updatekeys`"))
}

/// Shows what is to happen to all files, and asks. Gives the plans that were agreed to; a file that cannot be planned
/// for says why when its turn comes.
fn agree(
    args: &UpdatekeysArgs,
    targets: &Targets,
    context: &Context,
) -> Result<HashMap<PathBuf, Plan>, CommandError> {
    let (mut plans, mut shown, mut replay, mut told) =
        (HashMap::new(), Vec::new(), Replay::default(), Ok(()));
    batch::in_order(
        &targets.files,
        |target| recorded(|| Planned::read(target, args, context)),
        |target, (planned, said)| {
            let Ok(planned) = planned else { return };
            told = std::mem::replace(&mut told, Ok(())).and_then(|()| replay.print(said));
            if !planned.plan.changes_nothing() {
                shown.push(planned.plan.as_text(&planned.name, &planned.rule, planned.rotates(args)));
                plans.insert(target.path.clone(), planned.plan);
            }
        },
    );
    told?;
    let shown = shown.join("\n");
    if plans.is_empty() {
        return Ok(plans);
    }
    if args.yes {
        context.output.note(&shown);
        return Ok(plans);
    }
    let answer = context.output.ask(&format!("{shown}\nIs this right? (y/n) "));
    let kind = match answer.as_deref() {
        Some("y" | "Y" | "yes") => return Ok(plans),
        Some("n" | "N" | "no") => Kind::Declined,
        _ => Kind::General,
    };
    let what = targets.only().map_or("all files".to_owned(), |only| only.path.display().to_string());
    Err(CommandError::new(kind, format!("{what}: unchanged, since nobody agreed"))
        .hint("answer `y`, or give `--yes`"))
}

/// A file that was read, and what is to happen to it.
struct Planned {
    name: String,
    input: Input,
    format: Format,
    rule: Rule,
    plan: Plan,
}

impl Planned {
    fn read(target: &Target, args: &UpdatekeysArgs, context: &Context) -> Result<Self, CommandError> {
        let input = files::read(Some(&target.path), None)
            .map_err(|error| CommandError { kind: missing_or(error.kind), ..error })?;
        let format = target.format(&args.format())?;
        let mut rule = rule(&target.path, context)?;
        let name = input.name.display().to_string();
        let sealed = SealedFile::read(input.content.expose_secret(), format)
            .map_err(|error| CommandError::opening(&name, error))?;
        if compat::as_sops() {
            keep_threshold(&name, sealed.metadata().shamir_threshold, &mut rule, context);
        }
        let held = opening::ids(&sealed.metadata().groups);
        rule.groups = rule.groups.iter().map(|group| recipients::pinned(group, &held.concat())).collect();
        let plan = Plan::new(&held, sealed.metadata().shamir_threshold, &rule);
        Ok(Self { name, input, format, rule, plan })
    }

    fn rotates(&self, args: &UpdatekeysArgs) -> bool {
        !self.plan.removed.is_empty() && !args.keep_data_key
    }

    fn tell_unchanged(&self, context: &Context) -> Result<(), CommandError> {
        let line = format!("{}: unchanged, its recipients are those of {}", self.name, self.rule.name());
        context.output.done(&line, &self.plan.as_json(&self.name, false, false))
    }
}

impl UpdatekeysArgs {
    fn format(&self) -> FormatArgs {
        FormatArgs { input_type: self.input_type.clone(), ..FormatArgs::default() }
    }
}

fn rule(file: &Path, context: &Context) -> Result<Rule, CommandError> {
    let rule = config::rule_required(file, context)?;
    match rule.groups.is_empty() {
        true => Err(CommandError::general(format!("{}: names no key", rule.name()))
            .hint("add `age: age1…` to the rule")),
        false => Ok(rule),
    }
}

/// sops leaves a file's own threshold as it is, as far as the rule has that many groups.
fn keep_threshold(name: &str, held: Option<usize>, rule: &mut Rule, context: &Context) {
    let kept = held.map(|held| held.min(rule.groups.len())).filter(|_| rule.groups.len() > 1);
    if kept != rule.shamir_threshold && rule.groups.len() > 1 {
        context
            .output
            .warn(&format!("{name}: keeps its threshold, as in sops, whatever {} says", rule.name()));
    }
    rule.shamir_threshold = kept;
}

fn update(
    planned: &Planned,
    args: &UpdatekeysArgs,
    opener: &Opener<'_>,
    ready: &Ready,
    context: &Context,
) -> Result<&'static str, CommandError> {
    let (name, rotates) = (&planned.name, planned.rotates(args));
    let open = opener.open_to_write(&planned.input, planned.format, Leniency::default())?;
    if compat::as_sops() && !planned.plan.removed.is_empty() {
        context.output.warn(&format!(
            "{name}: whom it is no longer sealed for still knows its data key: draw a new one with `sops rotate -i {name}`"
        ));
    }
    let sealed = sealed(name, &open, &planned.rule, rotates, ready, context)?;
    if let Some(text) = &sealed {
        files::replace(&planned.input, text.as_bytes(), Privacy::Shared)?;
    }
    context
        .output
        .done(&format!("{name}: updated"), &planned.plan.as_json(name, sealed.is_some(), rotates))?;
    Ok("updated")
}

fn sealed(
    name: &str,
    open: &OpenFile,
    rule: &Rule,
    rotates: bool,
    ready: &Ready,
    context: &Context,
) -> Result<Option<String>, CommandError> {
    let ready = ready.groups(&rule.groups, rule.shamir_threshold, context)?;
    let options = WriteOptions { now: Timestamp::now(), seal: rule.seal, allow_plaintext: true };
    let sealed = match rotates {
        true => lacre_crypto::rotate(open, &ready.as_groups(), &options).map(Some),
        false => lacre_crypto::update_keys(open, &ready.as_groups(), &options),
    };
    sealed.map_err(|error| CommandError::writing(name, error))
}

/// sops has an exit code of its own for changing the keys of a file that is not there.
fn missing_or(kind: Kind) -> Kind {
    if kind == Kind::NoFile { Kind::MissingFile } else { kind }
}

//! `lacre updatekeys`: the recipients of sealed documents made equal to their creation rule.

use std::path::{Path, PathBuf};

use clap::Args;
use lacre_crypto::recipient::RecipientId;
use lacre_crypto::{OpenFile, Timestamp, WriteOptions};
use serde_json::{Value, json};

use super::Context;
use crate::args::{FormatArgs, JsonArgs};
use crate::config::{self, Rule};
use crate::error::{CommandError, Kind};
use crate::files::{self, Input, Privacy};
use crate::opening::{self, Leniency};
use crate::recipients::{self, ReadyGroups};
use crate::sealing;

/// Make the recipients of sealed documents those of their creation rule in `.sops.yaml`.
///
/// The plan is shown first. Wrapped keys of recipients that stay are kept as they are. Removing a recipient draws a
/// new data key, since the removed one knows the old.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  lacre updatekeys secrets.yaml\n  lacre updatekeys --yes secrets/*.yaml")]
pub(crate) struct UpdatekeysArgs {
    /// The sealed documents.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Do it without asking.
    #[arg(long, short)]
    yes: bool,
    /// Keep the data key although a recipient that is removed knows it.
    #[arg(long)]
    keep_data_key: bool,
    #[command(flatten)]
    pub(super) script: JsonArgs,
    /// Read the documents as `yaml` or `json`, whatever their names.
    #[arg(long, value_name = "FORMAT")]
    input_type: Option<String>,
}

pub(crate) fn run(args: &UpdatekeysArgs, context: &Context) -> Result<(), CommandError> {
    args.files.iter().try_for_each(|file| update(file, args, context))
}

fn update(file: &Path, args: &UpdatekeysArgs, context: &Context) -> Result<(), CommandError> {
    let input = files::read(Some(file), None)
        .map_err(|error| CommandError { kind: missing_or(error.kind), ..error })?;
    let format = FormatArgs { input_type: args.input_type.clone(), ..FormatArgs::default() };
    let format = sealing::format(&input.name, &format)?;
    let mut rule = config::rule_required(file, context)?;
    if rule.groups.is_empty() {
        return Err(CommandError::general(format!("{}: names no key", rule.name())));
    }
    let open = opening::open_to_write(&input, format, Leniency::default(), context)?;
    let held = opening::groups(&open);
    rule.groups = rule.groups.iter().map(|group| recipients::pinned(group, &held.concat())).collect();
    let plan = Plan::new(&held, open.metadata().shamir_threshold, &rule);
    let name = input.name.display().to_string();
    if plan.changes_nothing() {
        let line = format!("{name}: unchanged, its recipients are those of {}", rule.name());
        return context.output.done(&line, &plan.as_json(&name, false, false));
    }
    let rotates = !plan.removed.is_empty() && !args.keep_data_key;
    let shown = plan.as_text(&name, &rule, rotates);
    if args.yes {
        context.output.note(&shown);
    } else if !agreed(&shown, context) {
        return Err(CommandError::general(format!("{name}: unchanged, since nobody agreed"))
            .hint("answer `y`, or give `--yes`"));
    }
    let sealed = sealed(&name, &open, &rule, rotates, context)?;
    write(&input, sealed.as_deref())?;
    context.output.done(&format!("{name}: updated"), &plan.as_json(&name, sealed.is_some(), rotates))
}

/// What is to happen to one file.
#[derive(Debug, Default)]
struct Plan {
    added: Vec<RecipientId>,
    removed: Vec<RecipientId>,
    kept: Vec<RecipientId>,
    /// Recipients move between groups, or the threshold changes.
    regrouped: bool,
}

impl Plan {
    fn new(held: &[Vec<RecipientId>], threshold: Option<usize>, rule: &Rule) -> Self {
        let wanted = || rule.groups.iter().flatten();
        let holds = |id: &RecipientId| held.iter().flatten().any(|other| other == id);
        let (kept, added): (Vec<_>, Vec<_>) = wanted().cloned().partition(holds);
        let removed =
            held.iter().flatten().filter(|id| !wanted().any(|other| other == *id)).cloned().collect();
        let sorted = |groups: &[Vec<RecipientId>]| {
            groups
                .iter()
                .map(|group| group.iter().cloned().collect())
                .collect::<Vec<std::collections::BTreeSet<_>>>()
        };
        let several = rule.groups.len() > 1 || held.len() > 1;
        let wanted_threshold = rule.shamir_threshold.unwrap_or(rule.groups.len());
        let other_threshold = threshold.unwrap_or(held.len()) != wanted_threshold;
        let regrouped = several && (sorted(held) != sorted(&rule.groups) || other_threshold);
        Self { added, removed, kept, regrouped }
    }

    fn changes_nothing(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && !self.regrouped
    }

    fn as_text(&self, name: &str, rule: &Rule, rotates: bool) -> String {
        let mut lines = vec![format!("{name}: by {}", rule.name())];
        lines.extend(self.removed.iter().map(|id| format!("  - {id}")));
        lines.extend(self.added.iter().map(|id| format!("  + {id}")));
        lines.extend(self.kept.iter().map(|id| format!("    {id}")));
        if self.regrouped {
            let threshold = rule.shamir_threshold.map_or("all".to_owned(), |count| count.to_string());
            lines.push(format!("  {} groups, of which {threshold} are needed", rule.groups.len()));
        }
        if rotates {
            lines.push("  a new data key, since a recipient is removed".to_owned());
        } else if !self.removed.is_empty() {
            lines.push("  the same data key, which the removed recipient knows".to_owned());
        }
        lines.join("\n")
    }

    fn as_json(&self, name: &str, changed: bool, rotated: bool) -> Value {
        let names = |ids: &[RecipientId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        json!({
            "file": name, "changed": changed, "rotated": rotated, "regrouped": self.regrouped,
            "added": names(&self.added), "removed": names(&self.removed), "kept": names(&self.kept),
        })
    }
}

fn sealed(
    name: &str,
    open: &OpenFile,
    rule: &Rule,
    rotates: bool,
    context: &Context,
) -> Result<Option<String>, CommandError> {
    let ready = ReadyGroups::new(&rule.groups, rule.shamir_threshold, context)?;
    let options = WriteOptions { now: Timestamp::now(), seal: rule.seal, allow_plaintext: true };
    let sealed = match rotates {
        true => lacre_crypto::rotate(open, &ready.as_groups(), &options).map(Some),
        false => lacre_crypto::update_keys(open, &ready.as_groups(), &options),
    };
    sealed.map_err(|error| CommandError::writing(name, error))
}

fn write(input: &Input, sealed: Option<&str>) -> Result<(), CommandError> {
    sealed.map_or(Ok(()), |text| files::replace(input, text.as_bytes(), Privacy::Shared))
}

fn agreed(plan: &str, context: &Context) -> bool {
    let answer = context.output.ask(&format!("{plan}\nIs this right? (y/n) "));
    answer.is_some_and(|answer| matches!(answer.as_str(), "y" | "Y" | "yes"))
}

/// sops has an exit code of its own for changing the keys of a file that is not there.
fn missing_or(kind: Kind) -> Kind {
    if kind == Kind::NoFile { Kind::MissingFile } else { kind }
}

//! `lacre groups`: key groups of a sealed document, one more or one less.

use std::path::PathBuf;

use clap::builder::Resettable;
use clap::{Arg, Args, Subcommand};
use lacre_crypto::OpenFile;
use lacre_crypto::recipient::RecipientId;
use serde_json::json;

use super::Context;
use crate::args::{FormatArgs, JsonArgs, KeyArgs, TargetArgs};
use crate::error::CommandError;
use crate::files::{self, Input};
use crate::opening::{self, Leniency, strangers};
use crate::recipients::{self, ReadyGroups};
use crate::{compat, delivery, sealing};

/// Add or delete key groups: of several groups, as many as the threshold says are needed to open a document.
#[derive(Args, Debug)]
pub(crate) struct GroupsArgs {
    #[command(subcommand)]
    verb: GroupsVerb,
}

#[derive(Debug, Subcommand)]
enum GroupsVerb {
    Add(AddArgs),
    Delete(DeleteArgs),
}

/// Add a key group.
///
/// The data key stays. It is split anew, so that all groups get new shares.
#[derive(Args, Debug)]
#[command(
    mut_args(without_variable),
    after_help = "Example:\n  lacre groups add --file secrets.yaml --in-place --age age1… \
    --shamir-secret-sharing-threshold 2"
)]
struct AddArgs {
    #[command(flatten)]
    file: GroupFileArgs,
    #[command(flatten, next_help_heading = "The new group")]
    keys: KeyArgs,
}

/// What the environment says about new files is not meant for a group that joins others.
fn without_variable(argument: Arg) -> Arg {
    argument.env(Resettable::Reset)
}

/// Delete a key group.
///
/// Its members know the data key if they could ever open the document, so a new one is drawn.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  lacre groups delete --file secrets.yaml --in-place 1")]
struct DeleteArgs {
    #[command(flatten)]
    file: GroupFileArgs,
    /// Which group, counted from 0.
    #[arg(value_name = "NUMBER")]
    group: usize,
    /// Keep the data key although members of the deleted group know it.
    #[arg(long)]
    keep_data_key: bool,
}

/// The document, and what is done with it in any case.
#[derive(Args, Debug)]
struct GroupFileArgs {
    /// The sealed document.
    #[arg(long, short, value_name = "FILE")]
    file: PathBuf,
    /// Replace the file instead of printing the result.
    #[arg(long, short)]
    in_place: bool,
    /// How many groups are needed to open it; as many as now if absent, and all if it never said.
    #[arg(long, value_name = "NUMBER")]
    shamir_secret_sharing_threshold: Option<usize>,
    /// Take over recipients of a file without a seal that its creation rule does not name.
    #[arg(long)]
    accept_recipients: bool,
    /// Read the document in this format, whatever its name: `yaml`, `json`, `dotenv`, `ini` or `binary`.
    #[arg(long, value_name = "FORMAT")]
    input_type: Option<String>,
    #[command(flatten)]
    script: JsonArgs,
}

impl GroupsArgs {
    /// Whether `--json` was given.
    pub(super) fn is_for_scripts(&self) -> bool {
        match &self.verb {
            GroupsVerb::Add(args) => args.file.script.json,
            GroupsVerb::Delete(args) => args.file.script.json,
        }
    }
}

pub(crate) fn run(args: &GroupsArgs, context: &Context) -> Result<(), CommandError> {
    match &args.verb {
        GroupsVerb::Add(args) => add(args, context),
        GroupsVerb::Delete(args) => delete(args, context),
    }
}

fn add(args: &AddArgs, context: &Context) -> Result<(), CommandError> {
    let group = recipients::typed(&args.keys)?;
    if group.is_empty() {
        return Err(CommandError::general("the new group has no recipient").hint(
            "name one with `--age`, `--pgp`, `--kms` or another of the flags under `lacre groups add --help`",
        ));
    }
    let (input, open) = args.file.open(context)?;
    let mut groups = opening::groups(&open);
    groups.push(group);
    let number = groups.len() - 1;
    let change = Change { groups, rotates: false };
    args.file.write(&input, &open, &change, &format!("added group {number}"), context)
}

fn delete(args: &DeleteArgs, context: &Context) -> Result<(), CommandError> {
    let (input, open) = args.file.open(context)?;
    let name = input.name.display().to_string();
    let mut groups = opening::groups(&open);
    let count = groups.len();
    if args.group >= count {
        let problem = format!("{name}: there is no group {}", args.group);
        return Err(CommandError::general(problem).hint(match count {
            1 => "its only group is number 0".to_owned(),
            _ => format!("its {count} groups are numbered from 0 to {}", count - 1),
        }));
    }
    groups.remove(args.group);
    if groups.is_empty() {
        return Err(CommandError::general(format!("{name}: without its only group nobody could open it"))
            .hint("change its recipients with `lacre rotate` or `lacre updatekeys`"));
    }
    // sops never draws a new data key here, and its users expect that values stay as they are.
    let keeps = args.keep_data_key || compat::as_sops();
    if keeps {
        context.output.warn(&format!(
            "{name}: the data key stays, and who could open it before can open what is sealed with it from now on; \
             `lacre rotate` draws a new one"
        ));
    }
    let change = Change { groups, rotates: !keeps };
    args.file.write(&input, &open, &change, &format!("deleted group {}", args.group), context)
}

/// What the groups are to be.
struct Change {
    groups: Vec<Vec<RecipientId>>,
    rotates: bool,
}

impl GroupFileArgs {
    fn open(&self, context: &Context) -> Result<(Input, OpenFile), CommandError> {
        let input = files::read(Some(&self.file), None)?;
        let typed = FormatArgs { input_type: self.input_type.clone(), ..FormatArgs::default() };
        let format = sealing::format(&input.name, &typed)?;
        let open = opening::open_to_write(&input, format, Leniency::default(), context)?;
        strangers::refuse(&input.name, &open, self.accept_recipients, context)?;
        Ok((input, open))
    }

    fn write(
        &self,
        input: &Input,
        open: &OpenFile,
        change: &Change,
        done: &str,
        context: &Context,
    ) -> Result<(), CommandError> {
        let name = input.name.display().to_string();
        let count = change.groups.len();
        let threshold = self.shamir_secret_sharing_threshold.or(open.metadata().shamir_threshold);
        if let Some(needed) = threshold.filter(|needed| *needed > count) {
            let have = if count == 1 { "1 group".to_owned() } else { format!("{count} groups") };
            return Err(CommandError::general(format!("{name}: {needed} groups would be needed of {have}"))
                .hint("lower the number with `--shamir-secret-sharing-threshold`"));
        }
        // One group alone is opened by any of its members.
        sealing::check_threshold(threshold.filter(|_| count > 1), count)?;
        let ready = ReadyGroups::new(&change.groups, threshold.filter(|_| count > 1), context)?;
        let options = sealing::write_options(&input.name, context);
        let sealed = match change.rotates {
            true => lacre_crypto::rotate(open, &ready.as_groups(), &options).map(Some),
            false => lacre_crypto::update_keys(open, &ready.as_groups(), &options),
        };
        let sealed = sealed.map_err(|error| CommandError::writing(&name, error))?;
        let target = TargetArgs { in_place: self.in_place, output: None };
        let text = sealed.as_deref().unwrap_or(input.content.expose_secret());
        delivery::sealed(text, &target, input, context.output)?;
        if !self.in_place {
            return Ok(());
        }
        let value = json!({
            "file": name, "changed": sealed.is_some(), "groups": count, "rotated": change.rotates,
        });
        context.output.done(&format!("{name}: {done}"), &value)
    }
}

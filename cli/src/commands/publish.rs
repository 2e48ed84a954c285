//! `lacre publish`: sealed documents to where they are used.

use std::path::{Path, PathBuf};

use clap::Args;
use lacre_crypto::{Format, Layout, SealedFile};
use serde_json::json;

use super::Context;
use crate::args::{FormatArgs, JsonArgs};
use crate::config::{self, Publication, Rule};
use crate::error::CommandError;
use crate::files::{self, Input};
use crate::opening::{Leniency, Opener};
use crate::publish::Payload;
use crate::sealing::Plan;
use crate::targets::{Target, Targets};
use crate::wrapping::Ready;

/// Upload sealed documents to the destination that a rule of `.sops.yaml` names.
///
/// A bucket of S3 or of Google Cloud Storage gets the sealed file, sealed anew if the rule has a `recreation_rule`.
/// Vault and OpenBao get the plaintext in their key-value store, and only if it differs from what is there.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  lacre publish secrets.yaml\n  lacre publish --yes --recursive secrets")]
pub(crate) struct PublishArgs {
    /// The sealed document, or a folder with `--recursive`.
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Do it without asking.
    #[arg(long, short)]
    yes: bool,
    /// Leave the endings of the files' names out at the destination.
    #[arg(long)]
    omit_extensions: bool,
    /// Take all sealed files of the folder.
    #[arg(long, short)]
    recursive: bool,
    /// Tell more of what is done.
    #[arg(long)]
    verbose: bool,
    #[command(flatten)]
    pub(super) script: JsonArgs,
}

pub(crate) fn run(args: &PublishArgs, context: &Context) -> Result<(), CommandError> {
    let targets = Targets::sealed(std::slice::from_ref(&args.path), args.recursive, &FormatArgs::default())?;
    let (opener, ready) = (Opener::expecting(context, &targets.recipients), Ready::default());
    // One by one, since each may ask a question.
    for target in &targets.files {
        publish(target, args, &opener, &ready, context)?;
    }
    Ok(())
}

fn publish(
    target: &Target,
    args: &PublishArgs,
    opener: &Opener<'_>,
    ready: &Ready,
    context: &Context,
) -> Result<(), CommandError> {
    let Publication { destination, recreation, omit_extensions } =
        config::destination(&target.path, context)?;
    destination.check(context.output)?;
    let name = name_there(target, args.omit_extensions || omit_extensions);
    let address = destination.address(&name);
    let input = files::read(Some(&target.path), None)?;
    let format = target.format(&FormatArgs::default())?;
    let open = || opener.open(&input, format, Leniency::default());
    let payload = match (&recreation, destination.takes_plaintext()) {
        (_, true) => {
            let object = open()?.converted(Format::Json, &Layout::default());
            Payload::Plain(object.map_err(|error| CommandError::converting(&shown(target), error))?)
        }
        (Some(rule), false) => {
            let plan = Plan::of_rule(rule);
            let groups = ready.groups(&plan.groups, plan.shamir_threshold, context)?;
            let sealed = lacre_crypto::encrypt(open()?.plaintext(), format, &plan.options(&groups))
                .map_err(|error| CommandError::writing(&shown(target), error))?;
            Payload::Sealed(sealed.into_bytes())
        }
        (None, false) => as_it_is(&input, format)?,
    };
    if args.verbose || !args.yes {
        context.output.note(&plan_in_words(target, &address, recreation.as_ref(), &payload));
    }
    if !args.yes && !agreed(&format!("uploading {} to {address} ? (y/n): ", shown(target)), context) {
        let canceled = format!("publication of {} canceled", shown(target));
        if args.recursive {
            context.output.note(&canceled);
            return Ok(());
        }
        return Err(CommandError::general(canceled).hint("answer `y`, or give `--yes`"));
    }
    let changed = destination.upload(&name, payload, context.output)?;
    let done = if changed { "published to" } else { "is up to date in" };
    let value = json!({ "file": shown(target), "destination": address, "changed": changed });
    context.output.done(&format!("{} {done} {address}", shown(target)), &value)
}

fn shown(target: &Target) -> String {
    target.path.display().to_string()
}

/// What the file is called at its destination: by its path below the folder that was named, or by its bare name.
fn name_there(target: &Target, omit_extension: bool) -> String {
    let path = target.below(Path::new(""));
    let path = if omit_extension { path.with_extension("") } else { path };
    let parts: Vec<_> = path.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.join("/")
}

/// The sealed file without a change, once it is known to be one.
fn as_it_is(input: &Input, format: Format) -> Result<Payload, CommandError> {
    let text = input.content.expose_secret();
    SealedFile::read(text, format)
        .map_err(|error| CommandError::opening(&input.name.display().to_string(), error))?;
    Ok(Payload::Sealed(text.as_bytes().to_vec()))
}

fn plan_in_words(target: &Target, address: &str, recreation: Option<&Rule>, payload: &Payload) -> String {
    let how = match (payload, recreation) {
        (Payload::Plain(_), _) => "its plaintext".to_owned(),
        (Payload::Sealed(_), None) => "the file as it is".to_owned(),
        (Payload::Sealed(_), Some(rule)) => {
            let recipients: Vec<String> = rule.groups.iter().flatten().map(ToString::to_string).collect();
            format!("the file sealed anew for {}", recipients.join(", "))
        }
    };
    format!("{}: {how} to {address}", target.path.display())
}

/// Asks until the answer is one. Nobody there is a no.
fn agreed(question: &str, context: &Context) -> bool {
    loop {
        match context.output.ask(question).as_deref() {
            Some("y") => return true,
            Some("n") | None => return false,
            Some(_) => {}
        }
    }
}

//! `lacre reseal`: the whole document sealed again after another tool rewrote it.

use std::path::PathBuf;

use clap::Args;
use lacre_crypto::{Timestamp, Verdict, WriteOptions};
use serde_json::json;

use super::Context;
use crate::args::{FormatArgs, JsonArgs};
use crate::batch;
use crate::error::CommandError;
use crate::files::{self, Privacy};
use crate::opening::{Leniency, Opener, strangers};
use crate::targets::{Target, Targets};

/// Take documents over as they are now, and seal the whole of each in place.
///
/// Stock sops drops the seal when it writes a file; this puts it back. Look at the files first: until now only the
/// sops MAC spoke for them, which covers neither keys nor comments nor recipients.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  git diff secrets.yaml\n  lacre reseal secrets.yaml")]
pub(crate) struct ResealArgs {
    /// The sealed documents, or folders with `--recursive`.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Take the sealed files of folders, too. Hidden folders and symbolic links in them are left out.
    #[arg(long, short)]
    recursive: bool,
    /// Take over recipients that the creation rule does not name, too.
    #[arg(long)]
    accept_recipients: bool,
    #[command(flatten)]
    pub(super) script: JsonArgs,
    #[command(flatten, next_help_heading = "Format")]
    format: FormatArgs,
}

pub(crate) fn run(args: &ResealArgs, context: &Context) -> Result<(), CommandError> {
    let targets = Targets::sealed(&args.files, args.recursive, &args.format)?;
    let opener = Opener::expecting(context, &targets.recipients);
    batch::run(&targets, context, |target| reseal(target, args, &opener, context))
}

fn reseal(
    target: &Target,
    args: &ResealArgs,
    opener: &Opener<'_>,
    context: &Context,
) -> Result<&'static str, CommandError> {
    let input = files::read(Some(&target.path), args.format.filename_override.as_deref())?;
    let format = target.format(&args.format)?;
    let leniency = Leniency { accept_removed_seal: true, accept_missing_seal: true, ..Leniency::default() };
    let open = opener.open(&input, format, leniency)?;
    strangers::refuse(&input.name, &open, args.accept_recipients, context)?;
    let name = input.name.display().to_string();
    let options = WriteOptions { now: Timestamp::now(), seal: true, allow_plaintext: true };
    let changed =
        lacre_crypto::reseal(&open, &options).map_err(|error| CommandError::writing(&name, error))?;
    if let Some(text) = &changed {
        files::replace(&input, text.as_bytes(), Privacy::Shared)?;
    }
    let (before, line) = match open.verdict() {
        Verdict::Valid => ("valid", "unchanged, its seal is valid"),
        Verdict::Removed => {
            ("removed", "sealed again; keys, comments and recipients were taken over unverified")
        }
        Verdict::NeverSealed => {
            ("never-sealed", "sealed; keys, comments and recipients were taken over unverified")
        }
    };
    let value = json!({ "file": name, "before": before, "changed": changed.is_some() });
    context.output.done(&format!("{name}: {line}"), &value)?;
    Ok(if changed.is_some() { "sealed again" } else { "unchanged" })
}

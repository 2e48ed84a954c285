//! `lacre reseal`: the whole document sealed again after another tool rewrote it.

use std::path::PathBuf;

use clap::Args;
use lacre_crypto::{Timestamp, Verdict, WriteOptions};
use serde_json::json;

use super::Context;
use crate::args::{FormatArgs, JsonArgs};
use crate::error::CommandError;
use crate::files::{self, Privacy};
use crate::opening::{self, Leniency};
use crate::sealing;

/// Take a document over as it is now, and seal the whole of it in place.
///
/// Stock sops drops the seal when it writes a file; this puts it back. Look at the file first: until now only the
/// sops MAC spoke for it, which covers neither keys nor comments nor recipients.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  git diff secrets.yaml\n  lacre reseal secrets.yaml")]
pub(crate) struct ResealArgs {
    /// The sealed document.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    pub(super) script: JsonArgs,
    #[command(flatten, next_help_heading = "Format")]
    format: FormatArgs,
}

pub(crate) fn run(args: &ResealArgs, context: &Context) -> Result<(), CommandError> {
    let input = files::read(Some(&args.file), args.format.filename_override.as_deref())?;
    let format = sealing::format(&input.name, &args.format)?;
    let leniency = Leniency { accept_removed_seal: true, ..Leniency::default() };
    let open = opening::open(&input, format, leniency, context)?;
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
    context.output.done(&format!("{name}: {line}"), &value)
}

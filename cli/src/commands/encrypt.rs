//! `lacre encrypt`: a new data key, and every selected value sealed under it.

use std::path::PathBuf;

use clap::Args;
use lacre_crypto::Format;
use lacre_crypto::secret::Plaintext;

use super::Context;
use crate::args::{FormatArgs, KeyArgs, SelectorArgs, TargetArgs};
use crate::delivery;
use crate::error::{CommandError, Kind};
use crate::files::{self, Input};
use crate::sealing::{self, Plan};

/// Seal the values of a document; keys, comments and layout stay readable.
///
/// Recipients and selectors come from the creation rule in `.sops.yaml` that matches the file, unless flags give
/// them.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  lacre encrypt --in-place secrets.yaml\n  \
    kubectl get cm app -o json | lacre encrypt --age age1… --filename-override app.json")]
pub(crate) struct EncryptArgs {
    /// The document; standard input if absent or `-`.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten, next_help_heading = "Recipients")]
    keys: KeyArgs,
    #[command(flatten, next_help_heading = "Selection")]
    selectors: SelectorArgs,
    #[command(flatten, next_help_heading = "Format")]
    format: FormatArgs,
}

pub(crate) fn run(args: &EncryptArgs, context: &Context) -> Result<(), CommandError> {
    let input = files::read_any(args.file.as_deref(), args.format.filename_override.as_deref())?;
    let format = sealing::format(&input.name, &args.format)?;
    if format == Format::Binary {
        return seal(&input, format, args, context);
    }
    let input = input.into_text()?;
    if input.content.expose_secret().trim().is_empty() {
        return Err(CommandError::on(Kind::NoDocument, input.name.display(), "is empty"));
    }
    seal(&input, format, args, context)
}

fn seal<Content: Plaintext>(
    input: &Input<Content>,
    format: Format,
    args: &EncryptArgs,
    context: &Context,
) -> Result<(), CommandError> {
    let plan = Plan::new(&input.name, &args.keys, &args.selectors, context)?;
    let ready = plan.ready()?;
    let sealed = lacre_crypto::encrypt(&input.content, format, &plan.options(&ready))
        .map_err(|error| CommandError::writing(&input.name.display().to_string(), error))?;
    delivery::sealed(&sealed, &args.target, input, context.output)
}

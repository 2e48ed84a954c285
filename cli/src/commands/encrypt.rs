//! `lacre encrypt`: a new data key, and every selected value sealed under it.

use std::path::PathBuf;

use clap::Args;
use lacre_crypto::Format;
use lacre_crypto::secret::Plaintext;
use serde_json::json;

use super::Context;
use crate::args::{FormatArgs, JsonArgs, RecipientArgs, SelectorArgs, TargetArgs};
use crate::error::{CommandError, Kind};
use crate::files::{self, Input};
use crate::sealing::{self, Plan};
use crate::targets::{ManyArgs, Target, Targets, is_stdin};
use crate::wrapping::Ready;
use crate::{batch, compat, config, delivery, recipients};

/// Seal the values of documents; keys, comments and layout stay readable.
///
/// Recipients and selectors come from the creation rule in `.sops.yaml` that matches the file, unless flags give
/// them. Of a folder, the files are taken that a rule is for and that are not sealed yet.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  lacre encrypt --in-place secrets.yaml\n  \
    lacre encrypt --in-place --recursive secrets\n  \
    kubectl get cm app -o json | lacre encrypt --age age1… --filename-override app.json")]
pub(crate) struct EncryptArgs {
    /// The documents, or folders with `--recursive`; standard input if absent or `-`.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    many: ManyArgs,
    #[command(flatten)]
    pub(super) script: JsonArgs,
    #[command(flatten, next_help_heading = "Recipients")]
    recipients: RecipientArgs,
    #[command(flatten, next_help_heading = "Selection")]
    selectors: SelectorArgs,
    #[command(flatten, next_help_heading = "Format")]
    format: FormatArgs,
}

pub(crate) fn run(args: &EncryptArgs, context: &Context) -> Result<(), CommandError> {
    let ready = Ready::default();
    if is_stdin(&args.files) {
        return encrypt(None, args, &ready, context);
    }
    let has_keys = !recipients::typed(&args.recipients.keys)?.is_empty();
    let typed = args.format.to_read();
    let targets = Targets::to_seal(&args.files, args.many.recursive, &typed, has_keys, context)?;
    args.many.check(&targets, &args.target)?;
    batch::run(&targets, context, |target| encrypt(Some(target), args, &ready, context).map(|()| "sealed"))
}

fn encrypt(
    target: Option<&Target>,
    args: &EncryptArgs,
    ready: &Ready,
    context: &Context,
) -> Result<(), CommandError> {
    let path = target.map(|target| target.path.as_path());
    let input = files::read_any(path, args.format.filename_override.as_deref())?;
    let typed = args.format.to_read();
    let format =
        target.map_or_else(|| sealing::format(&input.name, &typed), |target| target.format(&typed))?;
    let to = sealing::output_format(format, &args.format)?;
    let place = args.many.place(target, &args.target)?;
    let is_configuration = input.name.file_name().is_some_and(|name| name == config::CONFIG_NAME);
    if place.in_place && is_configuration && !compat::as_sops() {
        return Err(CommandError::on(
            Kind::Encrypt,
            input.name.display(),
            "holds the rules, which must stay readable",
        )
        .hint("name the files that hold secrets"));
    }
    if to != format {
        let layout = config::layout(&input.name, args.format.indent, context)?;
        let converted = lacre_crypto::convert(&input.content, format, to, &layout)
            .map_err(|error| CommandError::converting(&input.name.display().to_string(), error))?;
        return seal(&input, &converted, to, &place, args, ready, context);
    }
    if format == Format::Binary {
        return seal(&input, &input.content, format, &place, args, ready, context);
    }
    let input = input.into_text()?;
    if input.content.expose_secret().trim().is_empty() {
        // For stock sops an empty text is no JSON, rather than no document.
        let kind = if format == Format::Json { Kind::Read } else { Kind::NoDocument };
        return Err(CommandError::on(kind, input.name.display(), "is empty")
            .hint("write something into it first, or make a new sealed file with `lacre edit`"));
    }
    seal(&input, &input.content, format, &place, args, ready, context)
}

/// Seals `content`, which is that of `input` or made from it.
fn seal<Content: Plaintext>(
    input: &Input<Content>,
    content: &dyn Plaintext,
    format: Format,
    place: &TargetArgs,
    args: &EncryptArgs,
    ready: &Ready,
    context: &Context,
) -> Result<(), CommandError> {
    let plan = Plan::new(&input.name, &args.recipients, &args.selectors, context)?;
    let ready = ready.groups(&plan.groups, plan.shamir_threshold, context)?;
    let name = input.name.display().to_string();
    let sealed = lacre_crypto::encrypt(content, format, &plan.options(&ready))
        .map_err(|error| CommandError::writing(&name, error))?;
    delivery::sealed(&sealed, place, input, context.output)?;
    match context.output.json && (place.in_place || place.output.is_some()) {
        true => context.output.done("", &json!({ "file": name, "output": place.output, "changed": true })),
        false => Ok(()),
    }
}

//! `lacre decrypt`: the document as it was before it was sealed, byte for byte, or what is in it in another format.

use std::path::PathBuf;

use clap::Args;
use lacre_crypto::TreePath;
use serde_json::json;

use super::Context;
use crate::args::{FormatArgs, JsonArgs, MacArgs, TargetArgs};
use crate::error::{CommandError, Kind};
use crate::opening::{Leniency, Opener};
use crate::targets::{ManyArgs, Target, Targets, is_stdin};
use crate::{batch, config, delivery, files, sealing};

/// Open sealed documents, after verifying that nobody changed them.
///
/// Files that are made with plaintext, or replaced by it in place, are readable by their owner alone. Of a folder, the
/// sealed files are taken.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  lacre decrypt secrets.yaml\n  \
    lacre decrypt --extract '[\"db\"][\"password\"]' secrets.yaml\n  \
    lacre decrypt --output-dir /dev/shm/plain --recursive secrets")]
pub(crate) struct DecryptArgs {
    /// The sealed documents, or folders with `--recursive`; standard input if absent or `-`.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    many: ManyArgs,
    /// Print this value alone.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["in_place", "output_dir"])]
    extract: Option<String>,
    #[command(flatten)]
    mac: MacArgs,
    #[command(flatten)]
    pub(super) script: JsonArgs,
    #[command(flatten, next_help_heading = "Format")]
    format: FormatArgs,
}

pub(crate) fn run(args: &DecryptArgs, context: &Context) -> Result<(), CommandError> {
    if is_stdin(&args.files) {
        return decrypt(None, args, &Opener::new(context), context);
    }
    let targets = Targets::sealed(&args.files, args.many.recursive, &args.format.to_read())?;
    args.many.check(&targets, &args.target)?;
    let opener = Opener::expecting(context, &targets.recipients);
    batch::run(&targets, context, |target| decrypt(Some(target), args, &opener, context).map(|()| "opened"))
}

fn decrypt(
    target: Option<&Target>,
    args: &DecryptArgs,
    opener: &Opener<'_>,
    context: &Context,
) -> Result<(), CommandError> {
    let path = target.map(|target| target.path.as_path());
    let input = files::read(path, args.format.filename_override.as_deref())?;
    let typed = args.format.to_read();
    let format =
        target.map_or_else(|| sealing::format(&input.name, &typed), |target| target.format(&typed))?;
    let to = sealing::output_format(format, &args.format)?;
    let path = args.extract.as_deref().map(parse_path).transpose()?;
    let leniency = Leniency::from(args.mac);
    let open = opener.open(&input, format, leniency)?;
    let place = args.many.place(target, &args.target)?;
    if path.is_none() && to == format {
        delivery::plain(open.plaintext().expose_secret(), &place, &input, context.output)?;
    } else {
        let layout = config::layout(&input.name, args.format.indent, context)?;
        let printed = match path {
            None => open.converted(to, &layout),
            Some(path) => open.extract(&path, to, &layout),
        };
        let printed =
            printed.map_err(|error| CommandError::converting(&input.name.display().to_string(), error))?;
        delivery::plain(printed.expose_secret(), &place, &input, context.output)?;
    }
    match context.output.json && (place.in_place || place.output.is_some()) {
        true => {
            let name = input.name.display().to_string();
            context.output.done("", &json!({ "file": name, "output": place.output, "changed": true }))
        }
        false => Ok(()),
    }
}

/// A path to a value as sops writes it.
pub(super) fn parse_path(text: &str) -> Result<TreePath, CommandError> {
    TreePath::parse(text).map_err(|error| {
        CommandError::new(Kind::TreePath, format!("the path `{text}`: {error}"))
            .hint("a path looks like `[\"key\"][0]`")
    })
}

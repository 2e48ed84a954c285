//! `lacre decrypt`: the document as it was before it was sealed, byte for byte.

use std::path::PathBuf;

use clap::Args;
use lacre_crypto::TreePath;

use super::Context;
use crate::args::{FormatArgs, TargetArgs};
use crate::error::{CommandError, Kind};
use crate::opening::{self, Leniency};
use crate::{delivery, files, sealing};

/// Open a sealed document, after verifying that nobody changed it.
///
/// Files that are made or replaced with plaintext are readable by their owner alone.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  lacre decrypt secrets.yaml\n  \
    lacre decrypt --extract '[\"db\"][\"password\"]' secrets.yaml")]
pub(crate) struct DecryptArgs {
    /// The sealed document; standard input if absent or `-`.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
    /// Print this value alone.
    #[arg(long, value_name = "PATH", conflicts_with = "in_place")]
    extract: Option<String>,
    /// Open the document although the sops MAC does not match; this proves nothing about its content.
    #[arg(long)]
    ignore_mac: bool,
    #[command(flatten, next_help_heading = "Format")]
    format: FormatArgs,
}

pub(crate) fn run(args: &DecryptArgs, context: &Context) -> Result<(), CommandError> {
    let input = files::read(args.file.as_deref(), args.format.filename_override.as_deref())?;
    let format = sealing::format(&input.name, &args.format)?;
    let path = args.extract.as_deref().map(parse_path).transpose()?;
    let leniency = Leniency { ignore_mac: args.ignore_mac, ..Leniency::default() };
    let open = opening::open(&input, format, leniency, context)?;
    match path {
        None => delivery::plain(open.plaintext().expose_secret(), &args.target, &input, context.output),
        Some(path) => {
            let value = open.extract(&path).map_err(|error| {
                CommandError::on(Kind::TreePath, input.name.display(), error)
                    .hint("a path looks like `[\"key\"][0]`")
            })?;
            delivery::plain(value.expose_secret(), &args.target, &input, context.output)
        }
    }
}

/// A path to a value as sops writes it.
pub(super) fn parse_path(text: &str) -> Result<TreePath, CommandError> {
    TreePath::parse(text).map_err(|error| {
        CommandError::new(Kind::TreePath, format!("the path `{text}`: {error}"))
            .hint("a path looks like `[\"key\"][0]`")
    })
}

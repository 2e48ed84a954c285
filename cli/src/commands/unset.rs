//! `lacre unset`: one value of a sealed document less, without opening the rest for anyone to see.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{Context, decrypt};
use crate::args::{FormatArgs, JsonArgs, MacArgs};
use crate::error::{CommandError, Kind};
use crate::files::{self, Privacy};
use crate::opening::{self, Leniency, strangers};
use crate::sealing;

/// Remove one value of a sealed document in place, with its key and its own comments.
///
/// All other lines stay as they are. Own comments are those behind the value and those directly above its key. A
/// mapping or list that had nothing else becomes an empty one.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  lacre unset secrets.yaml '[\"db\"][\"password\"]'\n  \
    lacre unset --idempotent secrets.yaml '[\"users\"][0]'")]
pub(crate) struct UnsetArgs {
    /// The sealed document.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where the value stands, as `["key"][0]`. Of several documents the first is meant unless the path starts with
    /// the position of another, as `[1]["key"]`.
    #[arg(value_name = "PATH")]
    path: String,
    /// Succeed without a change when there is nothing at that path.
    #[arg(long)]
    idempotent: bool,
    #[command(flatten)]
    mac: MacArgs,
    #[command(flatten)]
    pub(super) script: JsonArgs,
    #[command(flatten, next_help_heading = "Format")]
    format: FormatArgs,
}

pub(crate) fn run(args: &UnsetArgs, context: &Context) -> Result<(), CommandError> {
    let path = decrypt::parse_path(&args.path)?;
    let input = files::read(Some(&args.file), args.format.filename_override.as_deref())?;
    let format = sealing::format(&input.name, &args.format)?;
    let leniency = Leniency::from(args.mac);
    let open = opening::open_to_write(&input, format, leniency, context)?;
    strangers::warn(&input.name, &open, context);
    let name = input.name.display().to_string();
    let options = sealing::write_options(&input.name, context);
    let changed =
        lacre_crypto::unset(&open, &path, &options).map_err(|error| CommandError::writing(&name, error))?;
    let line = match &changed {
        Some(text) => {
            files::replace(&input, text.as_bytes(), Privacy::Shared)?;
            format!("{name}: removed {}", args.path)
        }
        None if args.idempotent => format!("{name}: unchanged, there is nothing at {}", args.path),
        None => {
            let problem = format!("there is nothing at {}", args.path);
            return Err(CommandError::on(Kind::TreePath, name, problem)
                .hint("a path looks like `[\"key\"][0]`; with `--idempotent` this is no error"));
        }
    };
    context.output.done(&line, &json!({ "file": name, "path": args.path, "changed": changed.is_some() }))
}

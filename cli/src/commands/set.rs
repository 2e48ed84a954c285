//! `lacre set`: one value of a sealed document, without opening the rest for anyone to see.

use std::path::{Path, PathBuf};

use clap::Args;
use lacre_crypto::SecretText;
use serde_json::json;

use super::{Context, decrypt};
use crate::args::{FormatArgs, JsonArgs, MacArgs};
use crate::error::{CommandError, Kind};
use crate::files::{self, Privacy};
use crate::opening::{self, Leniency, strangers};
use crate::{compat, sealing};

/// Set one value of a sealed document in place; all other lines stay as they are.
///
/// The value is JSON: text needs its quotes. Standard input or a file keeps it out of the list of processes.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  lacre set --value-stdin secrets.yaml '[\"db\"][\"password\"]' <<< '\"correct horse\"'"
)]
pub(crate) struct SetArgs {
    /// The sealed document.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where the value stands, as `["key"][0]`; a key that is not there yet is made. Of several documents the first is
    /// meant unless the path starts with the position of another, as `[1]["key"]`.
    #[arg(value_name = "PATH")]
    path: String,
    /// The value as JSON, or the file that holds it with `--value-file`.
    #[arg(value_name = "VALUE", required_unless_present = "value_stdin", conflicts_with = "value_stdin")]
    value: Option<String>,
    /// Read the value from the file VALUE.
    #[arg(long, conflicts_with = "value_stdin")]
    value_file: bool,
    /// Read the value from standard input.
    #[arg(long)]
    value_stdin: bool,
    /// Accepted for scripts: a value that is there already is never written again.
    #[arg(long, hide = true)]
    idempotent: bool,
    #[command(flatten)]
    mac: MacArgs,
    #[command(flatten)]
    pub(super) script: JsonArgs,
    #[command(flatten, next_help_heading = "Format")]
    format: FormatArgs,
}

pub(crate) fn run(args: &SetArgs, context: &Context) -> Result<(), CommandError> {
    let path = decrypt::parse_path(&args.path)?;
    let value = value(args)?;
    let input = files::read(Some(&args.file), args.format.filename_override.as_deref())?;
    let format = sealing::format(&input.name, &args.format)?;
    let leniency = Leniency::from(args.mac);
    let open = opening::open_to_write(&input, format, leniency, context)?;
    strangers::warn(&input.name, &open, context);
    let name = input.name.display().to_string();
    let options = sealing::write_options(&input.name, context);
    let writing = |error| CommandError::writing(&name, error);
    let changed = lacre_crypto::set(&open, &path, &value, &options).map_err(writing)?;
    let again = match changed {
        // sops tells by the file's new time that the command ran.
        None if compat::as_sops() && !args.idempotent => {
            Some(lacre_crypto::refresh(&open, &options).map_err(writing)?)
        }
        _ => None,
    };
    if let Some(text) = changed.as_ref().or(again.as_ref()) {
        files::replace(&input, text.as_bytes(), Privacy::Shared)?;
    }
    let line = match changed {
        Some(_) => format!("{name}: set {}", args.path),
        None => format!("{name}: unchanged, {} has that value already", args.path),
    };
    context.output.done(&line, &json!({ "file": name, "path": args.path, "changed": changed.is_some() }))
}

/// The value to set, checked to be JSON. The text never appears in an error.
fn value(args: &SetArgs) -> Result<SecretText, CommandError> {
    let text = match &args.value {
        Some(path) if args.value_file => files::read(Some(Path::new(path)), None)?.content,
        Some(value) => SecretText::new(value.clone()),
        None => files::read(None, None)?.content,
    };
    serde_json::from_str::<serde::de::IgnoredAny>(text.expose_secret()).map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        CommandError::new(Kind::BadValue, format!("the value is not JSON at {place}"))
            .hint("text needs quotes of its own: '\"some text\"'")
    })?;
    Ok(text)
}

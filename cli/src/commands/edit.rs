//! `lacre edit`: a sealed document in the editor, sealed again afterwards.

use std::path::{Path, PathBuf};

use clap::Args;
use lacre_crypto::{Format, SecretText, Timestamp, WriteOptions};

use super::Context;
use crate::args::{FormatArgs, MacArgs, RecipientArgs, SelectorArgs};
use crate::editor::Buffer;
use crate::error::{CommandError, Kind};
use crate::files::{self, Privacy};
use crate::opening::{self, Leniency, strangers};
use crate::sealing::{self, Plan};

/// What a new file begins with.
const SAMPLE_YAML: &str = "# Replace this by your own keys and values.\nexample: value\n";
const SAMPLE_JSON: &str = "{\n  \"example\": \"value\"\n}\n";
const SAMPLE_DOTENV: &str = "# Replace this by your own keys and values.\nEXAMPLE=value\n";
const SAMPLE_INI: &str = "; Replace this by your own keys and values.\n[example]\nkey = value\n";
const SAMPLE_TEXT: &str = "Replace this by your own text.\n";

/// Edit a sealed document in place, or make a new one.
///
/// The plaintext is held in memory (XDG_RUNTIME_DIR or /dev/shm) for your user alone while the editor runs, and is
/// wiped afterwards. The editor is that of SOPS_EDITOR, else EDITOR. When the edited text cannot be sealed, it is
/// kept and the editor offered again. An editor that ends with a failure discards the edit.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  EDITOR=vim lacre edit secrets.yaml")]
pub(crate) struct EditArgs {
    /// The sealed document; one that is not there is made by its creation rule.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Hold the plaintext in this folder instead, which may be on a disk.
    #[arg(long, value_name = "DIR")]
    buffer_directory: Option<PathBuf>,
    #[command(flatten)]
    mac: MacArgs,
    #[command(flatten, next_help_heading = "Recipients of a new document")]
    recipients: RecipientArgs,
    #[command(flatten, next_help_heading = "Selection in a new document")]
    selectors: SelectorArgs,
    #[command(flatten, next_help_heading = "Format")]
    format: FormatArgs,
}

pub(crate) fn run(args: &EditArgs, context: &Context) -> Result<(), CommandError> {
    match args.file.exists() {
        true => change(args, context),
        false => create(args, context),
    }
}

fn change(args: &EditArgs, context: &Context) -> Result<(), CommandError> {
    let input = files::read(Some(&args.file), args.format.filename_override.as_deref())?;
    let format = sealing::format(&input.name, &args.format)?;
    let leniency = Leniency::from(args.mac);
    let open = opening::open_to_write(&input, format, leniency, context)?;
    strangers::warn(&input.name, &open, context);
    let before = sealing::write_options(&input.name, context);
    let name = args.file.display().to_string();
    let text = open.plaintext().as_text().map(SecretText::from).ok_or_else(|| {
        CommandError::on(Kind::Editor, &name, "holds bytes that are no text, and an editor would change them")
            .hint("decrypt it, change it with a tool of its own, and encrypt it again")
    })?;
    edit(args, &text, context, |text| {
        // The time of sealing, not of opening: an editor may stay open for a day.
        let (now, allow_plaintext) = (Timestamp::now(), args.selectors.allow_plaintext);
        let options = WriteOptions { now, allow_plaintext, ..before };
        let sealed = lacre_crypto::reencrypt(&open, text, &options)
            .map_err(|error| CommandError::writing(&name, error))?
            .ok_or_else(unchanged)?;
        files::replace(&input, sealed.as_bytes(), Privacy::Shared)
    })
}

fn create(args: &EditArgs, context: &Context) -> Result<(), CommandError> {
    let format = sealing::format(&args.file, &args.format)?;
    let plan = Plan::new(&args.file, &args.recipients, &args.selectors, context)?;
    let ready = plan.ready(context)?;
    let sample = match format {
        Format::Yaml => SAMPLE_YAML,
        Format::Json => SAMPLE_JSON,
        Format::Dotenv => SAMPLE_DOTENV,
        Format::Ini => SAMPLE_INI,
        Format::Binary => SAMPLE_TEXT,
    };
    let name = args.file.display().to_string();
    edit(args, &sample.into(), context, |text| {
        let sealed = lacre_crypto::encrypt(text, format, &plan.options(&ready))
            .map_err(|error| CommandError::writing(&name, error))?;
        files::create(&args.file, sealed.as_bytes(), Privacy::Shared)
    })
}

/// Runs the editor on `before` until `seal` takes the result, or the person gives up.
fn edit(
    args: &EditArgs,
    before: &SecretText,
    context: &Context,
    seal: impl Fn(&SecretText) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    let name: &Path = args.format.filename_override.as_deref().unwrap_or(&args.file);
    let buffer = Buffer::new(name, before, args.buffer_directory.as_deref())?;
    loop {
        buffer.edit()?;
        buffer.check_signals()?;
        let sealed =
            buffer.text().and_then(|text| if text == *before { Err(unchanged()) } else { seal(&text) });
        let Err(error) = sealed else { return Ok(()) };
        if error.kind == Kind::Unchanged {
            return Err(error);
        }
        context.output.error(&error);
        match buffer.ask(context.output, "Enter edits again, `discard` drops the edit: ")?.as_deref() {
            Some("discard") => return Err(error),
            Some(_) => {}
            None if !buffer.exists() => return Err(error),
            None => {
                let place = buffer.keep();
                return Err(
                    error.hint(format!("your edit is kept in {}; delete that when done", place.display()))
                );
            }
        }
    }
}

fn unchanged() -> CommandError {
    CommandError::new(Kind::Unchanged, "nothing was changed, so nothing is written")
}

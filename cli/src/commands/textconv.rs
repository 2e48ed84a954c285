//! `lacre textconv`: what `git diff` shows for a sealed file.
//!
//! git calls it for each side of a diff and gives up on the whole diff when it fails, so it never does: a file that
//! cannot be opened here is shown sealed, with a line that says so. Nothing is cached, by us or by git.

use std::path::PathBuf;

use clap::Args;
use lacre_crypto::{Format, SealedFile};

use super::Context;
use crate::error::CommandError;
use crate::files::{self, Input};
use crate::opening::{self, Leniency};
use crate::output::Output;

/// Print a file for `git diff`: opened if an identity is here, else as it is.
///
/// `lacre init` tells git to use it. It always succeeds.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  git config diff.lacre.textconv 'lacre textconv'\n  \
    echo '*.yaml diff=lacre' >> .gitattributes")]
pub(crate) struct TextconvArgs {
    /// The file, as git hands it over.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub(crate) fn run(args: &TextconvArgs, context: &Context) -> Result<(), CommandError> {
    let input = match files::read(Some(&args.file), None) {
        Ok(input) => input,
        Err(error) => return context.output.text(&format!("# lacre: {}\n", error.cause)),
    };
    let Some(format) = sealed_format(&input) else {
        return context.output.secret(input.content.expose_secret().as_bytes());
    };
    let quiet = Context { global: context.global.clone(), output: Output::default() };
    match opening::open(&input, format, Leniency::default(), &quiet) {
        Ok(open) => context.output.secret(open.plaintext().expose_secret()),
        Err(error) => {
            let reason = error.cause.to_string();
            let reason = reason.lines().next().unwrap_or_default();
            context.output.text(&format!("# lacre: shown sealed: {reason}\n"))?;
            context.output.secret(input.content.expose_secret().as_bytes())
        }
    }
}

/// The format of `input` if it is a sealed document at all.
fn sealed_format(input: &Input) -> Option<Format> {
    let format = Format::from_file_name(&input.name.to_string_lossy())?;
    SealedFile::read(input.content.expose_secret(), format).ok().map(|_| format)
}

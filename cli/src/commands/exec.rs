//! What `exec-env` and `exec-file` have in common: the command to run, and the document that is opened for it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use lacre_crypto::OpenFile;

use super::Context;
use crate::args::{FormatArgs, MacArgs};
use crate::child::Words;
use crate::error::{CommandError, Kind};
use crate::opening::{self, Leniency};
use crate::user::User;
use crate::{files, sealing};

/// The document and the command.
#[derive(Args, Debug)]
pub(super) struct CommandArgs {
    /// The sealed document.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// A line for the shell, in quotes.
    #[arg(value_name = "LINE", conflicts_with = "program")]
    line: Option<OsString>,
    /// Behind `--`, a program and its arguments, which run without a shell.
    #[arg(value_name = "PROGRAM", last = true)]
    program: Vec<OsString>,
    /// Run the command as this user; only root can.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    #[command(flatten)]
    mac: MacArgs,
}

impl CommandArgs {
    /// The document's file and what to run. Both may stand behind `--` as well, as in a line that was made by a program.
    pub(super) fn resolved(&self) -> Result<(PathBuf, Words), CommandError> {
        match (&self.file, &self.line, self.program.as_slice()) {
            (Some(file), Some(line), []) => Ok((file.clone(), Words::Shell(line.clone()))),
            (Some(file), None, program @ [_, ..]) => Ok((file.clone(), Words::Program(program.to_vec()))),
            (None, None, [file, line]) => Ok((PathBuf::from(file), Words::Shell(line.clone()))),
            _ => Err(CommandError::new(Kind::General, "a sealed document and a command are needed")
                .hint("put a line for the shell in quotes, or a program and its arguments behind `--`")),
        }
    }

    /// The document, opened.
    pub(super) fn open(
        &self,
        file: &std::path::Path,
        format: &FormatArgs,
        context: &Context,
    ) -> Result<OpenFile, CommandError> {
        let input = files::read(Some(file), None)?;
        let format = sealing::format(&input.name, &format.to_read())?;
        let leniency = Leniency::from(self.mac);
        opening::open(&input, format, leniency, context)
    }

    /// The user to become.
    pub(super) fn user(&self) -> Result<Option<User>, CommandError> {
        self.user.as_deref().map(User::find).transpose()
    }
}

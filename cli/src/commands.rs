//! The list of commands and their dispatch.
//!
//! A command is a file in this folder: its arguments with their help on top, one function below.

mod decrypt;
mod edit;
mod encrypt;
mod init;
mod keygen;
#[cfg(feature = "key-service")]
mod keyservice;
mod kube;
mod reference;
mod reseal;
mod rotate;
mod set;
mod textconv;
mod updatekeys;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use lacre_crypto::DecryptionOrder;

use crate::args::{CommandLine, GlobalArgs};
use crate::error::{CommandError, Kind};
use crate::output::Output;
use crate::process;

/// What a command is called with besides its own arguments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Context {
    pub(crate) global: GlobalArgs,
    pub(crate) output: Output,
}

/// All commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Decrypt(decrypt::DecryptArgs),
    Edit(edit::EditArgs),
    Encrypt(encrypt::EncryptArgs),
    Init(init::InitArgs),
    Keygen(keygen::KeygenArgs),
    #[cfg(feature = "key-service")]
    Keyservice(keyservice::KeyserviceArgs),
    Kube(kube::KubeArgs),
    #[command(hide = true)]
    Reference,
    Reseal(reseal::ResealArgs),
    Rotate(rotate::RotateArgs),
    Set(set::SetArgs),
    Textconv(textconv::TextconvArgs),
    Updatekeys(updatekeys::UpdatekeysArgs),
}

/// Runs the command line `words`, prints what there is to print, and gives the exit code.
pub(crate) fn run(words: impl Iterator<Item = OsString>) -> ExitCode {
    process::harden();
    let line = match CommandLine::try_parse_from(words) {
        Ok(line) => line,
        Err(error) => return usage(&error),
    };
    let output = Output { json: line.command.is_for_scripts() };
    for word in line.global.order().iter().flat_map(DecryptionOrder::unknown) {
        output.warn(&format!("decryption order: `{word}` is no kind of key"));
    }
    let context = Context { global: line.global, output };
    match line.command.run(&context) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output.error(&error);
            ExitCode::from(error.kind.exit_code())
        }
    }
}

impl Command {
    fn run(self, context: &Context) -> Result<(), CommandError> {
        match self {
            Self::Decrypt(args) => decrypt::run(&args, context),
            Self::Edit(args) => edit::run(&args, context),
            Self::Encrypt(args) => encrypt::run(&args, context),
            Self::Init(args) => init::run(&args, context),
            Self::Keygen(args) => keygen::run(&args, context),
            #[cfg(feature = "key-service")]
            Self::Keyservice(args) => keyservice::run(&args, context),
            Self::Kube(args) => kube::run(&args, context),
            Self::Reference => reference::run(context),
            Self::Reseal(args) => reseal::run(&args, context),
            Self::Rotate(args) => rotate::run(&args, context),
            Self::Set(args) => set::run(&args, context),
            Self::Textconv(args) => textconv::run(&args, context),
            Self::Updatekeys(args) => updatekeys::run(&args, context),
        }
    }

    /// Whether `--json` was given to a command that has it.
    fn is_for_scripts(&self) -> bool {
        match self {
            Self::Init(args) => args.script.json,
            Self::Keygen(args) => args.script.json,
            Self::Reseal(args) => args.script.json,
            Self::Rotate(args) => args.script.json,
            Self::Set(args) => args.script.json,
            Self::Updatekeys(args) => args.script.json,
            #[cfg(feature = "key-service")]
            Self::Keyservice(_) => false,
            Self::Decrypt(_)
            | Self::Edit(_)
            | Self::Encrypt(_)
            | Self::Kube(_)
            | Self::Reference
            | Self::Textconv(_) => false,
        }
    }
}

/// What the parser of the command line has to say: help, or what is wrong with it.
fn usage(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
        ErrorKind::ArgumentConflict => ExitCode::from(Kind::ConflictingFlags.exit_code()),
        _ => ExitCode::from(Kind::General.exit_code()),
    }
}

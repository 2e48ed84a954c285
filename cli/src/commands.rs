//! The list of commands and their dispatch.
//!
//! A command is a file in this folder: its arguments with their help on top, one function below.

mod check;
mod completion;
mod decrypt;
mod doctor;
mod edit;
mod encrypt;
mod exec;
mod exec_env;
mod exec_file;
mod filestatus;
mod groups;
mod init;
mod keygen;
#[cfg(feature = "key-service")]
mod keyservice;
mod kube;
mod man;
mod publish;
mod reference;
mod reseal;
mod rotate;
mod set;
mod textconv;
mod unset;
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
    Check(check::CheckArgs),
    Completion(completion::CompletionArgs),
    Decrypt(decrypt::DecryptArgs),
    Doctor(doctor::DoctorArgs),
    Edit(edit::EditArgs),
    Encrypt(encrypt::EncryptArgs),
    ExecEnv(exec_env::ExecEnvArgs),
    ExecFile(exec_file::ExecFileArgs),
    Filestatus(filestatus::FilestatusArgs),
    Groups(groups::GroupsArgs),
    Init(init::InitArgs),
    Keygen(keygen::KeygenArgs),
    #[cfg(feature = "key-service")]
    Keyservice(keyservice::KeyserviceArgs),
    Kube(kube::KubeArgs),
    #[command(hide = true)]
    Man(man::ManArgs),
    Publish(publish::PublishArgs),
    #[command(hide = true)]
    Reference,
    Reseal(reseal::ResealArgs),
    Rotate(rotate::RotateArgs),
    Set(set::SetArgs),
    Textconv(textconv::TextconvArgs),
    Unset(unset::UnsetArgs),
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

/// Runs the command line `words`, which one of another tool was put into, and leaves it to the caller to tell how
/// that ended.
pub(crate) fn attempt(words: &[OsString]) -> Result<(), CommandError> {
    let line = CommandLine::try_parse_from(words).map_err(|error| {
        CommandError::general(error.to_string().trim_start_matches("error: ").trim_end().to_owned())
            .hint("see `lacre --help` for what this build can do")
    })?;
    let context = Context { global: line.global, output: Output::default() };
    line.command.run(&context)
}

impl Command {
    fn run(self, context: &Context) -> Result<(), CommandError> {
        match self {
            Self::Check(args) => check::run(&args, context),
            Self::Completion(args) => completion::run(&args, context),
            Self::Decrypt(args) => decrypt::run(&args, context),
            Self::Doctor(args) => doctor::run(&args, context),
            Self::Edit(args) => edit::run(&args, context),
            Self::Encrypt(args) => encrypt::run(&args, context),
            Self::ExecEnv(args) => exec_env::run(&args, context),
            Self::ExecFile(args) => exec_file::run(&args, context),
            Self::Filestatus(args) => filestatus::run(&args, context),
            Self::Groups(args) => groups::run(&args, context),
            Self::Init(args) => init::run(&args, context),
            Self::Keygen(args) => keygen::run(&args, context),
            #[cfg(feature = "key-service")]
            Self::Keyservice(args) => keyservice::run(&args, context),
            Self::Kube(args) => kube::run(&args, context),
            Self::Man(args) => man::run(&args, context),
            Self::Publish(args) => publish::run(&args, context),
            Self::Reference => reference::run(context),
            Self::Reseal(args) => reseal::run(&args, context),
            Self::Rotate(args) => rotate::run(&args, context),
            Self::Set(args) => set::run(&args, context),
            Self::Textconv(args) => textconv::run(&args, context),
            Self::Unset(args) => unset::run(&args, context),
            Self::Updatekeys(args) => updatekeys::run(&args, context),
        }
    }

    /// Whether `--json` was given to a command that has it.
    fn is_for_scripts(&self) -> bool {
        match self {
            Self::Check(args) => args.script.json,
            Self::Decrypt(args) => args.script.json,
            Self::Doctor(args) => args.script.json,
            Self::Encrypt(args) => args.script.json,
            Self::Groups(args) => args.is_for_scripts(),
            Self::Init(args) => args.script.json,
            Self::Keygen(args) => args.script.json,
            Self::Kube(args) => args.is_for_scripts(),
            Self::Publish(args) => args.script.json,
            Self::Reseal(args) => args.script.json,
            Self::Rotate(args) => args.script.json,
            Self::Set(args) => args.script.json,
            Self::Unset(args) => args.script.json,
            Self::Updatekeys(args) => args.script.json,
            #[cfg(feature = "key-service")]
            Self::Keyservice(_) => false,
            Self::Completion(_)
            | Self::Edit(_)
            | Self::ExecEnv(_)
            | Self::ExecFile(_)
            | Self::Filestatus(_)
            | Self::Man(_)
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

//! `lacre exec-env`: a command with the values of a sealed document in its environment.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use clap::Args;
use lacre_crypto::Variable;

use super::Context;
use super::exec::CommandArgs;
use crate::args::FormatArgs;
use crate::error::{CommandError, Kind};
use crate::{child, compat};

/// Run a command with the values of a sealed document as environment variables.
///
/// The document is flat: no mappings and no lists. Null becomes an empty variable. The command gets our own
/// environment too, variables that hold private keys (`SOPS_AGE_KEY`) included, unless `--pristine` is given.
/// Signals are passed on, and the exit status is the command's.
#[derive(Args, Debug)]
#[command(override_usage = "lacre exec-env [OPTIONS] <FILE> <LINE>\n       \
    lacre exec-env [OPTIONS] <FILE> -- <PROGRAM> [ARGUMENT]...")]
#[command(after_help = "Example:\n  lacre exec-env prod.env -- ./server --port 8080\n  \
    lacre exec-env prod.env 'psql \"$DATABASE_URL\" < report.sql'")]
pub(crate) struct ExecEnvArgs {
    #[command(flatten)]
    command: CommandArgs,
    /// Give the command the values alone, and nothing of our own environment.
    #[arg(long)]
    pristine: bool,
    /// Become the command instead of waiting for it.
    #[arg(long)]
    same_process: bool,
    /// Do not wait for the command, which then has no input or output. Deprecated by sops.
    #[arg(long)]
    background: bool,
    /// Read the document in this format, whatever its name: `yaml`, `json`, `dotenv`, `ini` or `binary`.
    #[arg(long, value_name = "FORMAT")]
    input_type: Option<String>,
}

pub(crate) fn run(args: &ExecEnvArgs, context: &Context) -> Result<(), CommandError> {
    if args.background && args.same_process {
        let problem = "--same-process and --background exclude each other";
        return Err(CommandError::new(Kind::ConflictingFlags, problem).hint("give one of them"));
    }
    let (file, words) = args.command.resolved()?;
    let format = FormatArgs { input_type: args.input_type.clone(), ..FormatArgs::default() };
    let open = args.command.open(&file, &format, context)?;
    let refused = |problem: String| {
        CommandError::on(Kind::General, file.display(), problem)
            .hint("give the whole document to the command with `lacre exec-file`")
    };
    let variables = open.variables().map_err(|error| refused(error.to_string()))?;
    let user = args.command.user()?;
    let mut command = words.command();
    if args.pristine {
        command.env_clear();
    }
    command.envs(user.iter().flat_map(|user| user.variables()));
    variables.iter().try_for_each(|variable| add(&mut command, variable)).map_err(refused)?;
    drop((variables, open));
    if let Some(user) = user {
        user.assume()?;
    }
    match (args.same_process, args.background) {
        (true, _) => Err(child::replace(command)),
        (_, true) => {
            context.output.warn("--background is deprecated by sops; nobody waits for the command");
            child::detach(command)
        }
        _ => child::run(command),
    }
}

/// Puts a variable into the command's environment.
fn add(command: &mut Command, variable: &Variable) -> Result<(), String> {
    let Variable { name, value } = variable;
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(format!("the key `{name}` cannot be the name of a variable"));
    }
    let null = if compat::as_sops() { "<nil>" } else { "" };
    let value = value.as_ref().map_or(null.as_bytes(), |value| value.expose_secret());
    if value.contains(&0) {
        return Err(format!("the value of `{name}` holds a zero byte, which no variable can"));
    }
    command.env(name, OsStr::from_bytes(value));
    Ok(())
}

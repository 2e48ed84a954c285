//! `lacre completion`: what a shell needs to complete our commands and flags.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Context;
use crate::args::CommandLine;
use crate::compat;
use crate::error::{CommandError, Kind};

/// Print a script that teaches a shell to complete commands and flags.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  source <(lacre completion bash)\n  \
    lacre completion fish > ~/.config/fish/completions/lacre.fish")]
pub(crate) struct CompletionArgs {
    /// The shell.
    #[arg(value_name = "SHELL", value_parser = ["bash", "fish", "zsh"])]
    shell: String,
}

pub(crate) fn run(args: &CompletionArgs, context: &Context) -> Result<(), CommandError> {
    let shell = match args.shell.as_str() {
        "bash" => Shell::Bash,
        "fish" => Shell::Fish,
        _ => Shell::Zsh,
    };
    let name = if compat::as_sops() { "sops" } else { "lacre" };
    let script = String::from_utf8(script(shell, name))
        .map_err(|error| CommandError::on(Kind::Write, "the script", error))?;
    context.output.text(&script)
}

/// The script for the command that is called by `name`.
fn script(shell: Shell, name: &str) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), name, &mut script);
    script
}

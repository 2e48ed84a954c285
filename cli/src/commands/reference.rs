//! `lacre reference`, hidden: the command reference as Markdown, made from the definitions that parse the commands.

use clap::{Arg, Command, CommandFactory};

use super::Context;
use crate::args::CommandLine;
use crate::error::CommandError;

const HEAD: &str = "# The `lacre` command\n\nMade by `cargo xtask gen`; do not edit.\n";

pub(crate) fn run(context: &Context) -> Result<(), CommandError> {
    let mut root = CommandLine::command();
    root.build();
    let mut text = HEAD.to_owned();
    describe(&root, &mut text);
    context.output.text(&text)
}

fn describe(command: &Command, text: &mut String) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    // Global options are described once, at the top.
    if command.get_subcommands().next().is_none() || name == "lacre" {
        *text += &format!("\n## `{name}`\n\n");
        let about = command.get_long_about().or(command.get_about());
        *text += &format!("{}\n\n", about.map(ToString::to_string).unwrap_or_default().trim());
        *text +=
            &format!("`{}`\n\n", command.clone().render_usage().to_string().trim_start_matches("Usage: "));
        let inherited = |arg: &Arg| arg.is_global_set() && name != "lacre";
        for arg in command.get_arguments().filter(|arg| is_shown(arg) && !inherited(arg)) {
            describe_argument(arg, text);
        }
        if let Some(example) = command.get_after_help() {
            *text += &format!(
                "\n{}\n",
                example.to_string().replacen("Example:\n", "```sh\n", 1).replace("\n  ", "\n")
            );
            *text += if example.to_string().starts_with("Example:") { "```\n" } else { "" };
        }
    }
    for subcommand in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        if subcommand.get_name() != "help" {
            describe(subcommand, text);
        }
    }
}

fn describe_argument(arg: &Arg, text: &mut String) {
    let value = arg.get_num_args().filter(|count| count.takes_values()).and_then(|_| arg.get_value_names());
    let value = value.and_then(|names| names.first()).map(ToString::to_string);
    let name = match (arg.get_long(), arg.get_short(), value) {
        (None, _, value) => format!("`{}`", value.unwrap_or_else(|| arg.get_id().to_string())),
        (Some(long), short, value) => {
            let short = short.map(|short| format!("`-{short}`, ")).unwrap_or_default();
            let value = value.map(|value| format!(" {value}")).unwrap_or_default();
            format!("{short}`--{long}{value}`")
        }
    };
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let env = arg.get_env().map(|name| format!(" (`{}`)", name.to_string_lossy())).unwrap_or_default();
    *text += &format!("- {name}: {help}{env}\n");
}

fn is_shown(arg: &Arg) -> bool {
    !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version")
}

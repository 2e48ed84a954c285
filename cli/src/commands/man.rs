//! `lacre man`, hidden: the manual pages, for whoever packages the program.

use std::path::PathBuf;

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;

use super::Context;
use crate::args::CommandLine;
use crate::error::{CommandError, Kind};
use crate::files::{self, Privacy};

/// Write the manual pages into a folder, one per command.
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// The folder; it is made when it is not there.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(crate) fn run(args: &ManArgs, context: &Context) -> Result<(), CommandError> {
    let failed = |error: std::io::Error| {
        CommandError::on(Kind::Write, args.folder.display(), files::plain_words(&error))
            .hint("name a folder that you can write to")
    };
    std::fs::create_dir_all(&args.folder).map_err(failed)?;
    let mut root = CommandLine::command().disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    collect(&root, "lacre", &mut pages);
    for (name, command) in pages {
        let mut page = Vec::new();
        Man::new(command).title(name.to_uppercase()).render(&mut page).map_err(failed)?;
        files::write(&args.folder.join(format!("{name}.1")), &page, Privacy::Shared)?;
    }
    context.output.note(&format!("{}: the manual pages", args.folder.display()));
    Ok(())
}

/// The commands that are shown, each with the name of its page: like the command, with hyphens for the spaces.
fn collect(command: &Command, name: &str, pages: &mut Vec<(String, Command)>) {
    pages.push((name.to_owned(), command.clone()));
    for below in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        collect(below, &format!("{name}-{}", below.get_name()), pages);
    }
}

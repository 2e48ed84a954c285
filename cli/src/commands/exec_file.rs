//! `lacre exec-file`: a command with a sealed document, opened, in a file of its own.
//!
//! The file is a pipe with a name unless asked otherwise. A pipe can be read once, and programs read files twice: so
//! each time that somebody opens it, another one takes its name for the next reader, and only then is it filled.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use lacre_crypto::{OpenFile, SecretBytes};
use rustix::fs::{CWD, Mode, mkfifoat};

use super::Context;
use super::exec::CommandArgs;
use crate::args::FormatArgs;
use crate::error::{CommandError, Kind};
use crate::private::PrivateFolder;
use crate::{child, config, files, sealing};

/// What the file is called when nobody says.
const NAME_DEFAULT: &str = "tmp-file";

/// Run a command with a sealed document, opened, in a file: `{}` in the command stands for its path.
///
/// The file is a named pipe, so that the plaintext never lies anywhere; it can be read more than once, by one reader
/// at a time. A program that wants to jump around in the file needs `--no-fifo`, which puts it on a memory file
/// system, for its owner alone, and wipes it afterwards. Signals are passed on, and the exit status is the command's.
#[derive(Args, Debug)]
#[command(override_usage = "lacre exec-file [OPTIONS] <FILE> <LINE>\n       \
    lacre exec-file [OPTIONS] <FILE> -- <PROGRAM> [ARGUMENT]...")]
#[command(after_help = "Example:\n  lacre exec-file kubeconfig.yaml -- kubectl --kubeconfig {} get pods\n  \
    lacre exec-file --no-fifo --filename app.json app.json './server --config {}'")]
pub(crate) struct ExecFileArgs {
    #[command(flatten)]
    command: CommandArgs,
    /// Make a regular file on a memory file system instead of a named pipe.
    #[arg(long)]
    no_fifo: bool,
    /// What the file is called.
    #[arg(long, value_name = "NAME")]
    filename: Option<PathBuf>,
    /// Accepted for scripts: the plaintext is there only as long as we wait, so we do. Deprecated by sops.
    #[arg(long, hide = true)]
    background: bool,
    #[command(flatten, next_help_heading = "Format")]
    format: FormatArgs,
}

pub(crate) fn run(args: &ExecFileArgs, context: &Context) -> Result<(), CommandError> {
    let (file, words) = args.command.resolved()?;
    let name = args.filename.as_deref().unwrap_or(Path::new(NAME_DEFAULT));
    if !matches!(name.components().collect::<Vec<_>>()[..], [Component::Normal(_)]) {
        let problem = "must be a plain name, since the file stands in a folder of its own";
        return Err(CommandError::on(Kind::General, name.display(), problem).hint("give a name without `/`"));
    }
    let open = args.command.open(&file, &args.format, context)?;
    let content = content(&file, &open, args, context)?;
    drop(open);
    if args.background {
        context.output.warn("--background is deprecated by sops; the command is waited for all the same");
    }
    let user = args.command.user()?;
    if let Some(user) = &user {
        user.assume()?;
    }
    let failed = |error: std::io::Error| {
        CommandError::on(Kind::Write, "the file for the command", files::plain_words(&error))
            .hint("make room in the memory file system, or do without `--no-fifo`")
    };
    let folder = folder(args.no_fifo)?;
    let path = match args.no_fifo {
        true => folder.create(name, content.expose_secret()).map_err(failed)?,
        false => serve(&folder, name, content).map_err(failed)?,
    };
    let mut command = words.replaced("{}", path.as_os_str()).command();
    command.envs(user.iter().flat_map(|user| user.variables()));
    child::run(command)
}

/// The document as `lacre decrypt` would print it.
fn content(
    file: &Path,
    open: &OpenFile,
    args: &ExecFileArgs,
    context: &Context,
) -> Result<SecretBytes, CommandError> {
    let to = sealing::output_format(open.format(), &args.format)?;
    if to == open.format() {
        return Ok(SecretBytes::new(open.plaintext().expose_secret().to_vec()));
    }
    let layout = config::layout(file, args.format.indent, context)?;
    open.converted(to, &layout).map_err(|error| CommandError::converting(&file.display().to_string(), error))
}

/// In memory. A pipe holds nothing, so it may lie anywhere.
fn folder(needs_memory: bool) -> Result<PrivateFolder, CommandError> {
    match PrivateFolder::in_memory() {
        Some(folder) => Ok(folder),
        None if needs_memory => {
            Err(CommandError::new(Kind::Write, "no memory file system to hold the plaintext")
                .hint("set XDG_RUNTIME_DIR to a folder on tmpfs that you can write to")
                .hint("or do without `--no-fifo`"))
        }
        None => PrivateFolder::inside(&std::env::temp_dir()).map_err(|error| {
            CommandError::on(Kind::Write, "a folder", files::plain_words(&error))
                .hint("set TMPDIR to a folder that you can write to")
        }),
    }
}

/// Makes a pipe called `name` and fills it for everyone who opens it, until this process ends.
fn serve(folder: &PrivateFolder, name: &Path, content: SecretBytes) -> std::io::Result<PathBuf> {
    let (path, next) = (folder.place(name), folder.place(&next_name(name)));
    make_pipe(&path)?;
    let (content, served) = (Arc::new(content), path.clone());
    std::thread::spawn(move || {
        // Opening waits for a reader, and fails once the folder is gone.
        while let Ok(mut pipe) = OpenOptions::new().write(true).open(&served) {
            // Whoever opens the name from here on meets another pipe, so that nobody gets the content twice.
            if make_pipe(&next).and_then(|()| std::fs::rename(&next, &served)).is_err() {
                return;
            }
            let content = Arc::clone(&content);
            // A reader that stops in the middle keeps nobody else waiting. It may also go away before the end.
            std::thread::spawn(move || drop(pipe.write_all(content.expose_secret())));
        }
    });
    Ok(path)
}

fn next_name(name: &Path) -> PathBuf {
    let mut next = name.as_os_str().to_owned();
    next.push(".next");
    PathBuf::from(next)
}

fn make_pipe(path: &Path) -> std::io::Result<()> {
    mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).map_err(Into::into)
}

//! The controller's process.

use std::io::Write as _;
use std::process::ExitCode;

use lacre_controller::args::environment::{self, Read};
use lacre_controller::args::{Args, LogFormat};
use lacre_controller::{log, process, run};
use tracing::Level;
use tracing_subscriber::fmt::writer::{BoxMakeWriter, MakeWriterExt};

#[tokio::main]
async fn main() -> ExitCode {
    let read = match environment::read(std::env::args_os(), |name| std::env::var_os(name)) {
        Ok(read) => read,
        Err(error) => return wrong_line(&error),
    };
    match start(read).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do when standard error is closed.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn start(Read { args, ignored }: Read) -> anyhow::Result<()> {
    if args.version {
        // The words of Sealed Secrets, which scripts look for.
        writeln!(std::io::stdout(), "controller version: v{}", env!("CARGO_PKG_VERSION"))?;
        return Ok(());
    }
    process::harden()?;
    process::silence_panics();
    start_log(&args)?;
    for variable in ignored {
        tracing::warn!(variable, "ignored: its flag cannot have this value");
    }
    for word in &args.stray {
        tracing::warn!(word, "ignored: it belongs to no flag; values of switches are written --flag=false");
    }
    run::run(args).await
}

/// Help ends well, anything else with the exit code of a wrong command line.
fn wrong_line(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Logs warnings and errors to standard error, and the rest, too, unless `--log-info-stdout` sends it elsewhere. Nothing
/// that is logged holds a value: see `Failure`.
fn start_log(args: &Args) -> anyhow::Result<()> {
    let loud = std::io::stderr.with_max_level(Level::WARN);
    let writer = match args.sealed.log_info_stdout {
        true => BoxMakeWriter::new(loud.or_else(std::io::stdout)),
        false => BoxMakeWriter::new(std::io::stderr),
    };
    let filter = args.log.as_deref().unwrap_or(&args.sealed.log_level);
    let lines = tracing_subscriber::fmt().with_env_filter(log::filter(filter)?).with_writer(writer);
    match args.log_format {
        LogFormat::Text => lines.with_ansi(false).init(),
        LogFormat::Json => lines.json().init(),
    }
    Ok(())
}

//! The controller's process.

use clap::Parser;
use lacre_controller::args::{Args, LogFormat};
use lacre_controller::{process, run};
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    process::harden()?;
    process::silence_panics();
    let args = Args::parse();
    log(&args)?;
    run::run(args).await
}

/// Logs to standard error. Nothing that is logged holds a value: see `Failure`.
fn log(args: &Args) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&args.log)?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match args.log_format {
        LogFormat::Text => lines.with_ansi(false).init(),
        LogFormat::Json => lines.json().init(),
    }
    Ok(())
}

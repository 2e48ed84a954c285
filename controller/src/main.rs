//! The controller's process.

use clap::Parser;
use lacre_controller::args::{Args, LogFormat};
use lacre_controller::{log, process, run};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    process::harden()?;
    process::silence_panics();
    let args = Args::parse();
    start_log(&args)?;
    run::run(args).await
}

/// Logs to standard error. Nothing that is logged holds a value: see `Failure`.
fn start_log(args: &Args) -> anyhow::Result<()> {
    let lines =
        tracing_subscriber::fmt().with_env_filter(log::filter(&args.log)?).with_writer(std::io::stderr);
    match args.log_format {
        LogFormat::Text => lines.with_ansi(false).init(),
        LogFormat::Json => lines.json().init(),
    }
    Ok(())
}

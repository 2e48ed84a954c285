//! `cargo xtask`: see [`xtask::commands`] for what it can do.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match xtask::commands::run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            xtask::output::problem(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

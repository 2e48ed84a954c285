//! The commands of `cargo xtask`, a file each.

use std::process::ExitCode;

use anyhow::{Result, bail};

use crate::output;

pub mod bench;
pub mod build;
pub mod demo;
pub mod deny;
pub mod dist;
pub mod fuzz;
pub mod generate;
pub mod peers;
pub mod test;

/// What `cargo xtask` prints when asked, or when it does not understand.
const HELP: &str = "\
cargo xtask peers [NAME…]                    install the real programs that tests need (all, unless named)
cargo xtask test [--no-peers] [-- FILTER…]   format, clippy, all tests; installs and starts what they need
cargo xtask bench [--files|--sealed-secrets] [--json]
                                             measure our programs against their peers in the same run
cargo xtask demo [--cluster]                 run the commands of the README
cargo xtask gen [--check]                    write the generated files, or only compare them
cargo xtask fuzz [--seconds N] [TARGET…]     fuzz parsers and the whole way of opening
cargo xtask deny                             licences, sources and duplicates of the dependencies
cargo xtask dist                             pack the programs with what their licences ask for";

/// Runs the command of these arguments.
///
/// # Errors
/// The command fails, or there is none of that name.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let Some((name, rest)) = arguments.split_first() else {
        output::line(HELP);
        return Ok(ExitCode::SUCCESS);
    };
    match name.as_str() {
        "bench" => bench::run(rest),
        "demo" => demo::run(rest),
        "deny" => deny::run(rest),
        "dist" => dist::run(rest),
        "fuzz" => fuzz::run(rest),
        "gen" => generate::run(rest),
        "peers" => peers::run(rest),
        "test" => test::run(rest),
        "help" | "--help" | "-h" => {
            output::line(HELP);
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!("there is no command `{name}`\n\n{HELP}"),
    }
}

/// Reads the switches of a command that takes nothing else: for each known one, whether it was given.
fn switches<const N: usize>(arguments: &[String], known: [&str; N]) -> Result<[bool; N]> {
    if let Some(unknown) = arguments.iter().find(|argument| !known.contains(&argument.as_str())) {
        bail!("`{unknown}` is not understood\n\n{HELP}");
    }
    Ok(known.map(|switch| arguments.iter().any(|argument| argument == switch)))
}

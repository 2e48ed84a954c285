//! The one place that prints: everything else returns text or an error.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this module is the terminal of `cargo xtask`")]

use std::io::Write;
use std::path::Path;

/// How many lines of a log are shown when something failed.
const TAIL_LINES: usize = 40;

/// Prints one line of a result.
pub fn line(text: &str) {
    println!("{text}");
    // A line that waits in a buffer while the next step runs for minutes tells nobody anything.
    let _ = std::io::stdout().flush();
}

/// Prints one line of progress or trouble, apart from the result.
pub fn problem(text: &str) {
    eprintln!("{text}");
}

/// Shows the end of a component's log beside the failure of the test that used it.
pub fn show_log(name: &str, log: &Path) {
    eprintln!("--- {name}: the end of {} ---\n{}\n--- {name} ---", log.display(), tail(log));
}

/// The last lines of a log file; why it cannot be read, if it cannot.
pub fn tail(log: &Path) -> String {
    match std::fs::read(log) {
        Ok(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
        }
        Err(error) => format!("(no log: {error})"),
    }
}

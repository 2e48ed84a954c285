//! From a page of Markdown to a script that shows each command before it runs it.

use std::io::Write;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The blocks of `page` that are fenced as exactly `kind`.
pub(super) fn blocks(page: &str, kind: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut current: Option<(bool, String)> = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), current.take()) {
            (Some(info), None) => current = Some((info.trim() == kind, String::new())),
            (Some(_), Some((wanted, block))) => blocks.extend(wanted.then_some(block)),
            (None, Some((wanted, block))) => current = Some((wanted, block + line + "\n")),
            (None, None) => {}
        }
    }
    blocks
}

/// One bash script of all blocks, which ends with the first command that fails.
///
/// # Errors
/// A block ends within a command.
pub(super) fn assemble(blocks: &[String]) -> Result<String> {
    let mut script = "exec 2>&1\nset -eu -o pipefail\n".to_owned();
    for command in blocks.iter().map(|block| commands(block)).collect::<Result<Vec<_>>>()?.concat() {
        let shown = command.trim_end().replace('\'', r"'\''").replace('\n', "\n> ");
        // The empty line also ends the output of a command that leaves its last line open.
        script.push_str(&format!("printf '\\n%s\\n' '$ {shown}'\n{command}"));
    }
    Ok(script)
}

/// Cuts a block into commands, each of one or more whole lines; comments and empty lines between them are dropped.
fn commands(block: &str) -> Result<Vec<String>> {
    let mut commands = Vec::new();
    let mut open = String::new();
    for line in block.lines() {
        if open.is_empty() && (line.trim().is_empty() || line.starts_with('#')) {
            continue;
        }
        open.push_str(line);
        open.push('\n');
        if !line.ends_with('\\') && is_complete(&open)? {
            commands.push(std::mem::take(&mut open));
        }
    }
    if open.is_empty() { Ok(commands) } else { bail!("a command without end:\n{open}") }
}

/// Asks bash itself; it only warns of a here-document without end, so a warning counts as well.
fn is_complete(command: &str) -> Result<bool> {
    let mut bash = Command::new("bash");
    bash.args(["-n", "/dev/stdin"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut bash = bash.spawn().context("cannot start bash")?;
    bash.stdin.take().context("no pipe to bash")?.write_all(command.as_bytes())?;
    let output = bash.wait_with_output()?;
    Ok(output.status.success() && output.stderr.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{assemble, blocks, commands};

    #[test]
    fn only_blocks_of_the_kind_are_taken() {
        let page = "```sh demo\na\n```\n```sh\nb\n```\n```sh demo cluster\nc\n```\n```sh demo\nd\n```\n";
        assert_eq!(blocks(page, "sh demo"), ["a\n", "d\n"]);
        assert_eq!(blocks(page, "sh demo cluster"), ["c\n"]);
    }

    #[test]
    fn a_command_may_have_several_lines() {
        let block = "# why\na \\\n  b\n\nc <<X\nd\nX\nif e; then\n  f\nfi\necho 'g\nh'\n";
        let expected = ["a \\\n  b\n", "c <<X\nd\nX\n", "if e; then\n  f\nfi\n", "echo 'g\nh'\n"];
        assert_eq!(commands(block).unwrap(), expected);
    }

    #[test]
    fn a_command_without_end_is_an_error() {
        assert!(commands("echo 'a\n").unwrap_err().to_string().contains("without end"));
    }

    #[test]
    fn the_script_shows_and_runs_and_stops_at_a_failure() {
        let script = assemble(&["A='x y'\necho \"$A\"\nfalse\necho never\n".to_owned()]).unwrap();
        let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            "\n$ A='x y'\n\n$ echo \"$A\"\nx y\n\n$ false\n"
        );
        assert_eq!(output.status.code(), Some(1));
    }
}

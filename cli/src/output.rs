//! All printing. Results go to standard output, everything said about them to standard error.
//!
//! Rules: a secret reaches standard output only through [`Output::secret`], which a command calls because it was
//! asked to print one; text from files is stripped of terminal control characters before it is shown in a message;
//! with `--json` a result is one JSON object on standard output and an error one JSON object on standard error.
//! A reader that went away (`lacre decrypt x | head -1`) has what it wanted: a broken pipe is a success.
//!
//! A command over many files works on several at a time, and each of them says what it has to say while
//! [`recorded`]: it is printed when its turn comes. Secrets are never recorded.

mod recording;

use std::io::{self, ErrorKind, IsTerminal, Write};

use serde_json::{Value, json};

use crate::compat;
use crate::error::{CommandError, Kind};

pub(crate) use recording::{Replay, recorded};
use recording::{Stream, keep};

/// Where a command's words go.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Output {
    /// Whether a script reads along.
    pub(crate) json: bool,
}

impl Output {
    /// Prints a secret, because the command was asked for it.
    pub(crate) fn secret(self, bytes: &[u8]) -> Result<(), CommandError> {
        write_stdout(bytes)
    }

    /// Prints a document or other public text as it is.
    pub(crate) fn text(self, text: &str) -> Result<(), CommandError> {
        to_stdout(text.as_bytes())
    }

    /// Tells what was done: `line` to a person on standard error, `value` to a script on standard output. Like sops,
    /// whoever stands in for it says nothing about what went well.
    pub(crate) fn done(self, line: &str, value: &Value) -> Result<(), CommandError> {
        if self.json {
            return to_stdout(format!("{value}\n").as_bytes());
        }
        if !compat::as_sops() {
            self.note(line);
        }
        Ok(())
    }

    /// Gives the one value the command was called for: bare to a person or shell, inside `value` to a script.
    pub(crate) fn answer(self, line: &str, value: &Value) -> Result<(), CommandError> {
        match self.json {
            true => to_stdout(format!("{value}\n").as_bytes()),
            false => to_stdout(format!("{line}\n").as_bytes()),
        }
    }

    /// Says something that needs no action; scripts have no use for it.
    pub(crate) fn note(self, line: &str) {
        if self.json {
            return;
        }
        to_stderr(&format!("{}\n", printable(line)));
    }

    /// Says something that the reader should act on.
    pub(crate) fn warn(self, line: &str) {
        match self.json {
            true => to_stderr(&format!("{}\n", json!({ "warning": line }))),
            false => to_stderr(&format!("warning: {}\n", printable(line))),
        }
    }

    /// Says a sentence as sops does, for scripts that look for it.
    pub(crate) fn told_by_sops(self, sentence: Option<&str>) {
        if let Some(sentence) = sentence {
            to_stderr(&format!("{sentence}\n"));
        }
    }

    /// Says why the command failed and what to do next.
    pub(crate) fn error(self, error: &CommandError) {
        if let Kind::Child(_) = error.kind {
            return;
        }
        to_stderr(&match self.json {
            true => format!("{}\n", error_as_json(error)),
            false => error_as_text(error),
        });
    }

    /// Shows on a terminal how far the work is, in one line that the next one replaces; nothing takes it away.
    pub(crate) fn progress(self, line: Option<&str>) {
        if !self.json && io::stderr().is_terminal() {
            to_stderr(&format!("\r\u{1b}[K{}", printable(line.unwrap_or_default())));
        }
    }

    /// Asks a question and gives back the answer's first line, or nothing when nobody is there to answer.
    pub(crate) fn ask(self, question: &str) -> Option<String> {
        to_stderr(&printable(question));
        let mut answer = String::new();
        match io::stdin().read_line(&mut answer) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(answer.trim().to_owned()),
        }
    }
}

/// Whether standard input is a person's terminal, so that reading from it would wait for typing.
pub(crate) fn stdin_is_terminal() -> bool {
    io::stdin().is_terminal()
}

/// `text` without characters that would move a terminal's cursor or hide what follows; line breaks stay.
pub(crate) fn printable(text: &str) -> String {
    let escape = |character: char| match character {
        '\n' | '\t' => character.to_string(),
        _ if character.is_control()
            || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
        {
            character.escape_unicode().to_string()
        }
        _ => character.to_string(),
    };
    text.chars().map(escape).collect()
}

fn error_as_text(error: &CommandError) -> String {
    let mut text = String::new();
    for (depth, cause) in error.causes().enumerate() {
        text += if depth == 0 { "error: " } else { "caused by: " };
        text += &printable(&cause);
        text += "\n";
    }
    for hint in &error.hints {
        text += &format!("hint: {}\n", printable(hint));
    }
    text
}

fn error_as_json(error: &CommandError) -> Value {
    json!({ "error": {
        "kind": error.kind.word(),
        "exit_code": error.kind.exit_code(),
        "causes": error.causes().collect::<Vec<_>>(),
        "hints": error.hints,
    } })
}

fn to_stdout(bytes: &[u8]) -> Result<(), CommandError> {
    if keep(Stream::Results, bytes) { Ok(()) } else { write_stdout(bytes) }
}

fn write_stdout(bytes: &[u8]) -> Result<(), CommandError> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(CommandError::on(Kind::Write, "standard output", error))
        }
        _ => Ok(()),
    }
}

/// A message that cannot be shown has nowhere else to go, so a failure here is dropped.
fn to_stderr(text: &str) {
    if keep(Stream::Words, text.as_bytes()) {
        return;
    }
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb\r\u{202e}c\n"), "a\\u{1b}[2Jb\\u{d}\\u{202e}c\n");
    }

    #[test]
    fn an_error_tells_cause_and_next_step() {
        let error = CommandError::on(Kind::Read, "a.yaml", "not text").hint("use `--input-type`");
        assert_eq!(error_as_text(&error), "error: a.yaml: not text\nhint: use `--input-type`\n");
        assert_eq!(error_as_json(&error)["error"]["exit_code"], 2);
    }
}

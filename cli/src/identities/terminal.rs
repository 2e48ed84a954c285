//! Asking the person at the terminal, for passphrases of keys and on behalf of age plugins.
//!
//! The terminal is `/dev/tty`, since standard input and output may carry a document. Without one every answer is
//! missing. What is typed in answer to a question for a secret is not shown, kept in one buffer and wiped.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};

use lacre_crypto::recipient::age::Prompt;
use lacre_crypto::{SecretBytes, SecretText};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::output::{Output, printable};

/// Most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 4096;

const CONTROL_C: u8 = 0x03;
const CONTROL_D: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const CONTROL_U: u8 = 0x15;
const DELETE: u8 = 0x7f;

/// The person at `/dev/tty`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terminal;

impl Prompt for Terminal {
    fn tell(&self, text: &str) {
        match open() {
            Some(terminal) => drop(say(&terminal, &format!("{text}\n"))),
            None => Output::default().note(text),
        }
    }

    fn confirm(&self, text: &str, yes: &str, no: Option<&str>) -> Option<bool> {
        let Some(no) = no else {
            self.line(&format!("{text} [return: {yes}]"))?;
            return Some(true);
        };
        let answer = self.line(&format!("{text} [1: {yes}, 2: {no}]"))?;
        match answer.as_str() {
            "1" => Some(true),
            "2" => Some(false),
            _ => None,
        }
    }

    fn line(&self, text: &str) -> Option<String> {
        let mut terminal = open()?;
        say(&terminal, &format!("{text}: "))?;
        let answer = read_answer(&mut terminal)?;
        Some(answer.expose_secret().trim().to_owned())
    }

    fn passphrase(&self, text: &str) -> Option<SecretText> {
        let mut terminal = open()?;
        // Before the question, for whoever answers fast.
        let hidden = Hidden::new(&terminal)?;
        say(&terminal, &format!("{text}: "))?;
        let answer = read_answer(&mut terminal);
        drop(hidden);
        say(&terminal, "\n")?;
        answer
    }
}

fn open() -> Option<File> {
    File::options().read(true).write(true).open("/dev/tty").ok()
}

fn say(mut terminal: &File, text: &str) -> Option<()> {
    terminal.write_all(printable(text).as_bytes()).ok()
}

/// A terminal that shows nothing, and leaves it to us to act on what would otherwise be a signal: a process that ended
/// here would leave it so.
struct Hidden {
    terminal: File,
    before: Termios,
}

impl Hidden {
    fn new(terminal: &File) -> Option<Self> {
        let before = tcgetattr(terminal).ok()?;
        let mut modes = before.clone();
        modes.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        let terminal = terminal.try_clone().ok()?;
        tcsetattr(&terminal, OptionalActions::Now, &modes).ok()?;
        Some(Self { terminal, before })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

/// Reads up to the end of a line, with the few keys that people correct themselves with. Nothing for Control-C, for an
/// end without a line, and for more than [`ANSWER_BYTES_MAX`].
fn read_answer(terminal: &mut impl Read) -> Option<SecretText> {
    // One allocation, so that no copy stays behind; wiped on every way out.
    let mut typed = Typed(Vec::with_capacity(ANSWER_BYTES_MAX));
    loop {
        match read_byte(terminal)? {
            b'\n' | b'\r' => return typed.finish(),
            CONTROL_C | CONTROL_D => return None,
            BACKSPACE | DELETE => typed.erase(),
            CONTROL_U => typed.0.clear(),
            byte if typed.0.len() < ANSWER_BYTES_MAX => typed.0.push(byte),
            _ => return None,
        }
    }
}

fn read_byte(terminal: &mut impl Read) -> Option<u8> {
    let mut byte = [0];
    loop {
        match terminal.read(&mut byte) {
            Ok(1) => return Some(byte[0]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return None,
        }
    }
}

struct Typed(Vec<u8>);

impl Typed {
    /// Takes back the last character, which may have several bytes.
    fn erase(&mut self) {
        let start = self.0.iter().rposition(|&byte| byte & 0xc0 != 0x80);
        self.0.truncate(start.unwrap_or(0));
    }

    fn finish(mut self) -> Option<SecretText> {
        SecretBytes::new(std::mem::take(&mut self.0)).into_text().ok()
    }
}

impl Drop for Typed {
    fn drop(&mut self) {
        drop(SecretBytes::new(std::mem::take(&mut self.0)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(typed: &[u8]) -> Option<String> {
        read_answer(&mut &typed[..]).map(|text| text.expose_secret().to_owned())
    }

    #[test]
    fn a_line_is_read_with_corrections() {
        for (typed, expected) in [
            ("hunter2\nrest", Some("hunter2")),
            ("hunter2\r", Some("hunter2")),
            ("\n", Some("")),
            ("abx\u{7f}c\n", Some("abc")),
            ("aé\u{8}\u{8}\u{8}b\n", Some("b")),
            ("wrong\u{15}right\n", Some("right")),
            ("hunter2\u{3}\n", None),
            ("\u{4}", None),
            ("no end", None),
        ] {
            assert_eq!(answer(typed.as_bytes()).as_deref(), expected, "{typed:?}");
        }
        assert_eq!(answer(b"\xff\n"), None);
    }

    #[test]
    fn an_answer_is_limited_on_both_sides() {
        let line = |length| [vec![b'a'; length], vec![b'\n']].concat();
        assert_eq!(answer(&line(ANSWER_BYTES_MAX)).unwrap().len(), ANSWER_BYTES_MAX);
        assert_eq!(answer(&line(ANSWER_BYTES_MAX + 1)), None);
    }
}

//! What is said while one of many files is worked on, kept until its turn comes.
//!
//! The record belongs to the thread that works on the file, so that no command has to hand a sink around: it prints as
//! it always does.

use std::cell::RefCell;
use std::collections::HashSet;

use super::{to_stderr, write_stdout};
use crate::error::CommandError;

/// Where a piece of text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// Standard output.
    Results,
    /// Standard error.
    Words,
}

type Record = Vec<(Stream, Vec<u8>)>;

thread_local! {
    static RECORD: RefCell<Option<Record>> = const { RefCell::new(None) };
}

/// Everything that was said in one go, not yet shown to anyone.
pub(crate) struct Recorded(Record);

/// Runs `work` on this thread and keeps what it says.
pub(crate) fn recorded<T>(work: impl FnOnce() -> T) -> (T, Recorded) {
    RECORD.with_borrow_mut(|record| *record = Some(Record::new()));
    let result = work();
    let record = RECORD.with_borrow_mut(Option::take);
    (result, Recorded(record.unwrap_or_default()))
}

/// Takes a piece into this thread's record. Says no when there is none.
pub(super) fn keep(stream: Stream, bytes: &[u8]) -> bool {
    RECORD.with_borrow_mut(|record| match record {
        Some(record) => {
            record.push((stream, bytes.to_vec()));
            true
        }
        None => false,
    })
}

/// Prints records, and a warning that several files gave in the very same words only once.
#[derive(Default)]
pub(crate) struct Replay {
    warned: HashSet<Vec<u8>>,
}

impl Replay {
    /// Prints one record.
    pub(crate) fn print(&mut self, recorded: Recorded) -> Result<(), CommandError> {
        for (stream, bytes) in recorded.0 {
            let is_warning = bytes.starts_with(b"warning: ") || bytes.starts_with(b"{\"warning\":");
            match stream {
                Stream::Results => write_stdout(&bytes)?,
                Stream::Words if is_warning && !self.warned.insert(bytes.clone()) => {}
                Stream::Words => to_stderr(&String::from_utf8_lossy(&bytes)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_said_while_recording_is_kept() {
        assert!(!keep(Stream::Words, b"before"));
        let (kept, Recorded(record)) = recorded(|| keep(Stream::Words, b"inside"));
        assert!(kept && !keep(Stream::Words, b"after"));
        assert_eq!(record, [(Stream::Words, b"inside".to_vec())]);
        let elsewhere = recorded(|| std::thread::spawn(|| keep(Stream::Words, b"x")).join().unwrap());
        assert!(!elsewhere.0);
    }
}

//! How a command fails: a kind that picks the exit code, a cause in words, and what to do next.
//!
//! Exit codes are those of sops where it has one, because scripts test them. A message names the situation and
//! never contains a secret; a hint is a sentence or command that gets the reader out of it.

mod crypto;

use std::error::Error;
use std::fmt::Display;

/// Classes of failure. Scripts see the exit code, `--json` readers the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The file is sealed already.
    AlreadySealed,
    /// `--encryption-context` cannot be read.
    BadEncryptionContext,
    /// The value or path of `set` cannot be used.
    BadValue,
    /// The command that we ran ended with this exit code, and has said why.
    Child(u8),
    /// Flags that exclude each other.
    ConflictingFlags,
    /// A value cannot be opened.
    Decrypt,
    /// A person was asked and said no.
    Declined,
    /// The editor could not be run or ended with a failure.
    Editor,
    /// What is in the document cannot be written in the format asked for.
    Emit,
    /// The document cannot be sealed.
    Encrypt,
    /// Anything else: configuration, a recipient, a file that is not sealed.
    General,
    /// Authentication of the whole document failed: its MAC or its seal.
    Integrity,
    /// A signal asked the command to end.
    Interrupted(u8),
    /// A sealed document cannot be parsed.
    Malformed,
    /// The keys of a file that does not exist cannot be changed.
    MissingFile,
    /// The document is empty.
    NoDocument,
    /// No file was named, or it does not exist.
    NoFile,
    /// No identity opens the file.
    NoKey,
    /// The command that we were to run could not be started.
    NotRun(u8),
    /// Nobody is named to seal for.
    NoRecipient,
    /// A kind of keys stands twice in the order of decryption.
    OrderRepeats,
    /// Input cannot be read or parsed.
    Read,
    /// The path does not lead to a value.
    TreePath,
    /// The editor closed without a change.
    Unchanged,
    /// Output cannot be written.
    Write,
}

impl Kind {
    /// The exit code, as sops gives it.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Child(code) | Self::NotRun(code) => code,
            Self::Declined | Self::General | Self::NoRecipient => 1,
            Self::Malformed | Self::Read => 2,
            Self::Write => 3,
            Self::Emit => 4,
            Self::BadEncryptionContext => 6,
            Self::BadValue => 7,
            Self::ConflictingFlags => 8,
            Self::Encrypt => 23,
            Self::Decrypt => 25,
            Self::MissingFile => 49,
            Self::Integrity => 51,
            Self::TreePath => 91,
            Self::NoDocument => 92,
            Self::NoFile => 100,
            Self::OrderRepeats => 112,
            Self::NoKey => 128,
            Self::Interrupted(signal) => 128 + signal,
            Self::Unchanged => 200,
            Self::Editor => 201,
            Self::AlreadySealed => 203,
        }
    }

    /// The kind as one word for `--json`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::AlreadySealed => "already-sealed",
            Self::BadEncryptionContext => "bad-encryption-context",
            Self::BadValue => "bad-value",
            Self::Child(_) => "child",
            Self::ConflictingFlags => "conflicting-flags",
            Self::Declined => "declined",
            Self::Decrypt => "decrypt",
            Self::Editor => "editor",
            Self::Emit => "emit",
            Self::Encrypt => "encrypt",
            Self::General => "general",
            Self::Integrity => "integrity",
            Self::Interrupted(_) => "interrupted",
            Self::Malformed => "malformed",
            Self::MissingFile => "missing-file",
            Self::NoDocument => "no-document",
            Self::NoFile => "no-file",
            Self::NoKey => "no-key",
            Self::NoRecipient => "no-recipient",
            Self::NotRun(_) => "not-run",
            Self::Read => "read",
            Self::OrderRepeats => "order-repeats",
            Self::TreePath => "tree-path",
            Self::Unchanged => "unchanged",
            Self::Write => "write",
        }
    }
}

/// Why a command ended without doing what was asked.
#[derive(Debug)]
pub(crate) struct CommandError {
    /// Picks the exit code.
    pub(crate) kind: Kind,
    /// What happened, in words without secrets.
    pub(crate) cause: Box<dyn Error + Send + Sync>,
    /// What to do next, one sentence each.
    pub(crate) hints: Vec<String>,
}

impl CommandError {
    /// A failure of `kind` that `cause` explains.
    pub(crate) fn new(kind: Kind, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind, cause: cause.into(), hints: Vec::new() }
    }

    /// A failure that only needs words.
    pub(crate) fn general(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(Kind::General, cause)
    }

    /// A failure of `kind` on the file, folder or stream called `name`.
    pub(crate) fn on(kind: Kind, name: impl Display, problem: impl Display) -> Self {
        Self::new(kind, format!("{name}: {problem}"))
    }

    /// The same with one more hint.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// The cause and everything below it, outermost first.
    pub(crate) fn causes(&self) -> impl Iterator<Item = String> + '_ {
        let mut next: Option<&dyn Error> = Some(self.cause.as_ref());
        std::iter::from_fn(move || {
            let error = next?;
            next = error.source();
            Some(error.to_string())
        })
    }
}

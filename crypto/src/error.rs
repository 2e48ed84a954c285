//! What can go wrong, one enum per verb. No message holds a secret or repeats its source.

use std::fmt;

use crate::recipient::{RecipientId, UnwrapFailure};

/// A text is not a document that can be sealed or opened. Lines and columns count from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct ParseError {
    /// Line of the place, counted from 1.
    pub line: usize,
    /// Column of the place in characters, counted from 1.
    pub column: usize,
    /// What is wrong there and, where there is one, the way out.
    pub reason: String,
}

impl ParseError {
    /// An error at byte `offset` of `text`.
    pub fn at(text: &str, offset: usize, reason: impl Into<String>) -> Self {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &text[..offset];
        let line_start = before.rfind('\n').map_or(0, |found| found + 1);
        Self {
            line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            reason: reason.into(),
        }
    }
}

/// A document could not be sealed. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum EncryptError {
    /// It is sealed already, or has a key of the name that the `sops` block needs.
    #[error("the document has a `sops` key at the top: it is sealed already, or that key needs another name")]
    AlreadySealed,
    /// A clear value has the form of a sealed one, so readers would try to open it.
    #[error("line {line}: `{path}` stays in the clear but has the form of a sealed value")]
    ClearSealedForm {
        /// Path of the value.
        path: String,
        /// Its line, counted from 1.
        line: usize,
    },
    /// A recipient could not be used.
    #[error(transparent)]
    Wrap(#[from] crate::recipient::WrapError),
    /// A limit of the format is exceeded.
    #[error("{0}")]
    Limit(String),
    /// There is nobody to seal for.
    #[error("no recipient: the file could never be opened again")]
    NoRecipient,
    /// The selector matches none of the values, so everything would stay readable.
    #[error(
        "the selector ({selector}) matches none of the {leaves} values: all of them would stay in the clear"
    )]
    NothingSelected {
        /// The selector in words.
        selector: String,
        /// Number of values that could have been sealed.
        leaves: usize,
    },
    /// The object lacks what binding it needs, or has what a sealed object must not have.
    #[error("{0}")]
    Object(String),
    /// The text is not acceptable.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The bytes about to be written did not open to what was sealed. Always a bug of ours; nothing was written.
    #[error("the sealed text did not open again to what was sealed ({0}); nothing was written")]
    Unverified(String),
    /// A path that does not lead to a value in this document.
    #[error(transparent)]
    Path(#[from] PathError),
}

/// A sealed document could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum DecryptError {
    /// The seal does not match the document: it was changed by something that did not have the data key.
    #[error("the seal does not match: {0}")]
    BadSeal(String),
    /// The `sops` block is not usable.
    #[error("the sops block: {0}")]
    Metadata(String),
    /// The message authentication code differs from that of the values.
    #[error(
        "MAC mismatch: these are not the values that were sealed; the file was changed outside of its tools"
    )]
    MacMismatch,
    /// There is no message authentication code.
    #[error("the sops block has no MAC")]
    MacMissing,
    /// There is no `sops` block.
    #[error("not sealed: sops metadata not found")]
    NotSealed,
    /// The text is not acceptable.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// There was a seal once and it is gone.
    #[error("the seal was removed: another tool rewrote the sops block, or someone stripped it")]
    SealRemoved,
    /// One value does not open.
    #[error("line {line}: `{path}`: {reason}")]
    Value {
        /// Path of the value.
        path: String,
        /// Its line, counted from 1.
        line: usize,
        /// What is wrong with it, without any of it.
        reason: &'static str,
    },
}

/// A path does not lead where the verb wants to go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PathError(pub String);

/// None of the identities held could unwrap the data key.
#[derive(Clone, Debug)]
pub struct NoKeyError {
    /// Whom the data key is wrapped for.
    pub wanted: Vec<RecipientId>,
    /// Public halves of the identities that were tried.
    pub held: Vec<String>,
    /// What each attempt said that was not merely "not for me".
    pub attempts: Vec<Attempt>,
}

/// One attempt to unwrap a key that was meant for an identity at hand.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The entry tried.
    pub recipient: RecipientId,
    /// The class of failure.
    pub failure: UnwrapFailure,
    /// What the kind said.
    pub reason: String,
}

impl fmt::Display for NoKeyError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted: Vec<String> = self.wanted.iter().map(ToString::to_string).collect();
        let held = if self.held.is_empty() { "none".to_owned() } else { self.held.join(", ") };
        write!(formatter, "cannot unwrap the data key: wanted one of [{}]; held: {held}", wanted.join(", "))?;
        self.attempts
            .iter()
            .try_for_each(|attempt| write!(formatter, "; {}: {}", attempt.recipient, attempt.reason))
    }
}

impl std::error::Error for NoKeyError {}

//! The kinds of findings, and how each is told.

use std::fmt;

use crate::recipient::RecipientId;

/// The kinds of findings.
#[derive(Debug, PartialEq, Eq)]
pub enum Problem {
    /// A word that kubectl reads as something else stands without quotes in a cluster object.
    AmbiguousWord(String),
    /// The MAC or the seal is not in the form of a sealed value.
    BadField {
        /// Its field in the `sops` block.
        field: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A value should be sealed and is not in the exact form of a sealed one.
    BadForm {
        /// Path of the value.
        path: String,
        /// What is wrong with the form.
        reason: &'static str,
    },
    /// A value should be sealed and is in the clear.
    Clear(String),
    /// That many comments could be sealed and are in the clear.
    ClearComments(usize),
    /// A value that stays in the clear has the form of a sealed one: its ciphertext would be taken for the secret.
    ClearSealedForm(String),
    /// Flux would decrypt the object before the cluster sees it.
    FluxWouldDecrypt,
    /// The time of the last change is in the future.
    FutureTime,
    /// The same nonce seals different data: who compares the two learns about both.
    NonceReused {
        /// Path of the value.
        path: String,
        /// The line of the value that has it, too.
        other_line: usize,
    },
    /// An EncryptedSecret is not what one must be.
    Object(String),
    /// An entry for a recipient cannot be used.
    Recipient {
        /// For whom.
        recipient: RecipientId,
        /// Why not.
        reason: String,
    },
    /// A recipient withstands quantum computers, and another one opens the file to them all the same.
    WeakerRecipient,
}

impl Problem {
    /// Whether the file is safe and readable as it is, and only worth a look.
    pub fn is_warning(&self) -> bool {
        match self {
            Self::AmbiguousWord(_)
            | Self::ClearComments(_)
            | Self::FutureTime
            | Self::FluxWouldDecrypt
            | Self::WeakerRecipient => true,
            // Another tool may be able to use what this build cannot.
            Self::Recipient { recipient, .. } => matches!(recipient, RecipientId::Other { .. }),
            Self::BadForm { .. }
            | Self::BadField { .. }
            | Self::Clear(_)
            | Self::ClearSealedForm(_)
            | Self::NonceReused { .. }
            | Self::Object(_) => false,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AmbiguousWord(word) => {
                write!(formatter, "kubectl reads `{word}` as something else than text")
            }
            Self::BadForm { path, reason } => write!(formatter, "`{path}` is not properly sealed: {reason}"),
            Self::BadField { field, reason } => write!(formatter, "the field `{field}`: {reason}"),
            Self::Clear(path) => write!(formatter, "`{path}` should be sealed and is in the clear"),
            Self::ClearComments(1) => {
                formatter.write_str("a comment is in the clear: anyone may have added it")
            }
            Self::ClearComments(count) => {
                write!(formatter, "{count} comments are in the clear: anyone may have added them")
            }
            Self::ClearSealedForm(path) => {
                write!(
                    formatter,
                    "`{path}` is sealed and should not be: the selector or its place was changed"
                )
            }
            Self::FutureTime => formatter.write_str("the time of the last change is in the future"),
            Self::FluxWouldDecrypt => {
                formatter.write_str("Flux would decrypt this object before the cluster sees it")
            }
            Self::NonceReused { path, other_line } => {
                write!(
                    formatter,
                    "`{path}` is sealed with the nonce of line {other_line}, and differs from it"
                )
            }
            Self::Object(reason) => formatter.write_str(reason),
            Self::Recipient { recipient, reason } => write!(formatter, "{recipient}: {reason}"),
            Self::WeakerRecipient => formatter.write_str(
                "a post-quantum recipient protects nothing here, since other recipients are not post-quantum",
            ),
        }
    }
}

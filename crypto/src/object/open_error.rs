//! Why an object is not opened: one variant per cause, each with the condition reason that stands for it.

/// Most bytes of all values of a Secret together.
pub const SECRET_BYTES_MAX: usize = 1024 * 1024;
/// How far ahead of the reader's clock a document's time may be, in minutes.
pub const CLOCK_SKEW_MINUTES: i64 = 5;

/// Why an object is not opened: one variant per cause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Its time lies ahead.
    #[error(
        "it says it was sealed at {0}, more than {CLOCK_SKEW_MINUTES} minutes from now: check the clock of whoever sealed it"
    )]
    FutureLastModified(String),
    /// A value of `data` is not base64.
    #[error("data.{0} does not open to base64 text: use stringData, or encode it before sealing")]
    InvalidBase64(String),
    /// Values that were valid once, or another order of them, stand in place of the sealed ones.
    #[error("the MAC does not match the values: an older or foreign value was put in place of a sealed one")]
    MacMismatch,
    /// No seal was ever there.
    #[error("it has no seal: seal it with `lacre kube seal`")]
    NeverSealed,
    /// A value is in the clear.
    #[error("{0} is not sealed")]
    PlaintextValue(String),
    /// The `sops` block was changed.
    #[error("the sops block was changed after sealing: a recipient, the selector, the MAC or the time")]
    RecipientsMismatch,
    /// It stands where it was not sealed for.
    #[error("it was sealed for {sealed_for}, and this is {found}")]
    ScopeMismatch {
        /// What it was sealed for.
        sealed_for: String,
        /// Where it stands.
        found: String,
    },
    /// The seal does not open.
    #[error("the seal does not open: {0}")]
    SealBroken(String),
    /// The seal is gone.
    #[error(
        "the seal was removed: another tool rewrote the sops block, or someone stripped it; `lacre reseal` after a look at the change"
    )]
    SealRemoved,
    /// A clear part of the content was changed.
    #[error(
        "a clear part of the content was changed after sealing: type, immutable, or the template's labels or annotations"
    )]
    TemplateMismatch,
    /// All values together are too large.
    #[error("the values take {0} bytes, more than the {SECRET_BYTES_MAX} of a Secret")]
    TooLarge(usize),
    /// The block says something that objects cannot have.
    #[error("{0}")]
    UnsupportedMetadata(String),
    /// A value does not open in its place.
    #[error("{0} does not open here: it was moved, exchanged or damaged")]
    ValueMismatch(String),
}

impl OpenError {
    /// The condition reason that stands for the cause.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::FutureLastModified(_) => "FutureLastModified",
            Self::InvalidBase64(_) => "InvalidBase64",
            Self::MacMismatch => "MacMismatch",
            Self::NeverSealed => "NeverSealed",
            Self::PlaintextValue(_) => "PlaintextValue",
            Self::RecipientsMismatch => "RecipientsMismatch",
            Self::ScopeMismatch { .. } => "ScopeMismatch",
            Self::SealBroken(_) => "SealBroken",
            Self::SealRemoved => "SealRemoved",
            Self::TemplateMismatch => "TemplateMismatch",
            Self::TooLarge(_) => "TooLarge",
            Self::UnsupportedMetadata(_) => "UnsupportedMetadata",
            Self::ValueMismatch(_) => "ValueMismatch",
        }
    }
}

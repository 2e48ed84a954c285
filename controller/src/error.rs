//! Why an object is not Ready: one reason per cause, and what the controller does about it.

use std::fmt;

use kube::core::Status;

/// The cause, as the Ready condition, the event and the metric name it. Part of the API: names are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The API server answered nothing, or nothing sensible.
    ApiUnavailable,
    /// The API server refused the controller a verb that it needs.
    ApiForbidden,
    /// The Secret is not as it was sealed, and is only to be watched.
    Drifted,
    /// The object lies in the controller's own namespace.
    ForbiddenNamespace,
    /// The seal reaches further than `--max-scope` allows.
    ForbiddenScope,
    /// The live Secret carries a label of key Secrets.
    ForbiddenTarget,
    /// The template sets a label or annotation that other controllers act upon.
    ForbiddenTemplate,
    /// Secrets of this type are not made from an EncryptedSecret.
    ForbiddenType,
    /// `lastmodified` lies more than five minutes ahead.
    FutureLastModified,
    /// A key of the Secret cannot be changed: its type, or anything in an immutable Secret.
    ImmutableField,
    /// A sealed `data` value is not base64.
    InvalidBase64,
    /// An entry of a key Secret cannot be read.
    InvalidIdentity,
    /// The object holds something that this version cannot read.
    InvalidObject,
    /// A key Secret is absent or not labelled.
    IdentityNotFound,
    /// The key service refused to unwrap.
    KmsDenied,
    /// The key service asked to be called less often.
    KmsThrottled,
    /// The key service did not answer.
    KmsUnreachable,
    /// An older sealed value was put back, or one was left out.
    MacMismatch,
    /// The object carries no seal and never did.
    NeverSealed,
    /// None of the identities held opens the object.
    NoMatchingIdentity,
    /// There is no sealing key to open anything with.
    NoSealingKey,
    /// No sealing key opens an item in this place and scope.
    NotOpened,
    /// A value stands in the object that is not sealed.
    PlaintextValue,
    /// The `sops` block is not the one that was sealed.
    RecipientsMismatch,
    /// The API server refused the Secret as it would be.
    RejectedSecret,
    /// The object was sealed for another place.
    ScopeMismatch,
    /// The seal does not open or is not well-formed.
    SealBroken,
    /// The seal was there and is gone.
    SealRemoved,
    /// A Secret of that name exists and is not this object's.
    TargetConflict,
    /// A template cannot be rendered.
    TemplateFailed,
    /// A clear field of `spec` is not as it was sealed.
    TemplateMismatch,
    /// The Secret would exceed 1 MiB.
    TooLarge,
    /// The object holds more items or templates than are worked through.
    TooMuchWork,
    /// The `sops` block asks for something that objects may not use.
    UnsupportedMetadata,
    /// A sealed value is damaged or stands in another's place.
    ValueMismatch,
    /// A wrapped key is meant for an identity held, and does not open with it.
    WrappedKeyBroken,
    /// The Secret changed while it was written.
    WriteConflict,
}

/// Most characters of a message. A condition takes eight times as many, and is for people.
const MESSAGE_CHARS_MAX: usize = 4096;

/// What happens after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Nothing, until the object, a key or the Secret in question changes.
    Never,
    /// The same, but a person need not touch the object: what is missing is expected to come.
    WhenItComes,
    /// Again, after a delay that grows with each attempt.
    Later,
}

impl Reason {
    /// Every reason, for the documentation's test.
    pub const ALL: [Self; 37] = [
        Self::ApiForbidden,
        Self::ApiUnavailable,
        Self::Drifted,
        Self::ForbiddenNamespace,
        Self::ForbiddenScope,
        Self::ForbiddenTarget,
        Self::ForbiddenTemplate,
        Self::ForbiddenType,
        Self::FutureLastModified,
        Self::IdentityNotFound,
        Self::ImmutableField,
        Self::InvalidBase64,
        Self::InvalidIdentity,
        Self::InvalidObject,
        Self::KmsDenied,
        Self::KmsThrottled,
        Self::KmsUnreachable,
        Self::MacMismatch,
        Self::NeverSealed,
        Self::NoMatchingIdentity,
        Self::NoSealingKey,
        Self::NotOpened,
        Self::PlaintextValue,
        Self::RecipientsMismatch,
        Self::RejectedSecret,
        Self::ScopeMismatch,
        Self::SealBroken,
        Self::SealRemoved,
        Self::TargetConflict,
        Self::TemplateFailed,
        Self::TemplateMismatch,
        Self::TooLarge,
        Self::TooMuchWork,
        Self::UnsupportedMetadata,
        Self::ValueMismatch,
        Self::WrappedKeyBroken,
        Self::WriteConflict,
    ];

    /// Whether the Secret's deletion alone may end it.
    pub fn lies_in_the_live_secret(self) -> bool {
        matches!(self, Self::ForbiddenTarget | Self::ImmutableField | Self::TargetConflict)
    }

    /// What the controller does about it.
    pub fn retry(self) -> Retry {
        match self {
            Self::IdentityNotFound | Self::NoSealingKey => Retry::WhenItComes,
            // Time alone heals a clock that ran ahead; the others are the answers of services.
            Self::ApiForbidden
            | Self::ApiUnavailable
            | Self::FutureLastModified
            | Self::KmsDenied
            | Self::KmsThrottled
            | Self::KmsUnreachable
            | Self::WriteConflict => Retry::Later,
            _ => Retry::Never,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

/// An object that could not be turned into its Secret. The message goes into status, events and logs: it names paths,
/// keys and public halves, and never holds a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {message}")]
pub struct Failure {
    /// The cause.
    pub reason: Reason,
    /// What is wrong, and with what, for people.
    pub message: String,
}

impl Failure {
    /// A failure for `reason` that says `message`: one line of bounded length, because parts of it come from whoever
    /// wrote the object, and a status that is too long is refused.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        let message: String = message.into();
        let is_long = message.chars().nth(MESSAGE_CHARS_MAX).is_some();
        let shown = message.chars().take(MESSAGE_CHARS_MAX);
        let mut message: String = shown.map(|c| if c.is_control() { ' ' } else { c }).collect();
        if is_long {
            message.push('…');
        }
        Self { reason, message }
    }

    /// What the API server's answer to a request means. `what` says what was tried.
    ///
    /// The server's own words are left out: a validation or an admission webhook may repeat the value it refuses.
    /// Only the fields it names are kept.
    pub fn from_api(what: &str, error: &kube::Error) -> Self {
        let status = match error {
            kube::Error::Api(status) => status,
            kube::Error::SerdeError(_) => {
                return Self::new(Reason::ApiUnavailable, format!("{what}: the answer could not be read"));
            }
            _ => {
                let message = format!("{what}: the API server could not be reached");
                return Self::new(Reason::ApiUnavailable, message);
            }
        };
        let reason = match status.code {
            401 | 403 => Reason::ApiForbidden,
            404 | 409 => Reason::WriteConflict,
            400 | 413 | 422 => Reason::RejectedSecret,
            _ => Reason::ApiUnavailable,
        };
        Self::new(reason, format!("{what}: the API server answered {}", answer_without_values(status)))
    }
}

fn answer_without_values(status: &Status) -> String {
    // A webhook may put its own words there, too.
    let is_word = !status.reason.contains(|character: char| !character.is_ascii_alphanumeric());
    let reason = if is_word { &status.reason } else { "" };
    let mut answer = format!("{} {reason}", status.code);
    let causes = status.details.iter().flat_map(|details| &details.causes);
    for cause in causes.filter(|cause| !cause.field.is_empty()) {
        answer.push_str(&format!("; {} {}", cause.field, cause.reason));
    }
    answer
}

#[cfg(test)]
mod tests {
    use kube::core::response::{StatusCause, StatusDetails};

    use super::*;

    #[test]
    fn every_reason_is_listed_once() {
        let listed: std::collections::BTreeSet<_> = Reason::ALL.into_iter().collect();
        assert_eq!(listed.len(), Reason::ALL.len());
    }

    #[test]
    fn a_message_is_one_line_that_a_condition_can_hold() {
        let failure = Failure::new(Reason::InvalidObject, format!("a\nb\u{1b}[31m{}", "ä".repeat(40_000)));
        assert!(failure.message.starts_with("a b [31mä") && failure.message.ends_with("ä…"));
        assert_eq!(failure.message.chars().count(), MESSAGE_CHARS_MAX + 1);
        assert_eq!(Failure::new(Reason::InvalidObject, "short").message, "short");
    }

    #[test]
    fn an_answer_of_the_api_server_is_told_without_the_value_that_it_repeats() {
        let cause = StatusCause {
            reason: "FieldValueInvalid".to_owned(),
            message: "Invalid value: \"CANARY\"".to_owned(),
            field: "data[tls.crt]".to_owned(),
        };
        let details = StatusDetails {
            name: "db".to_owned(),
            group: String::new(),
            kind: "Secret".to_owned(),
            uid: String::new(),
            causes: vec![cause],
            retry_after_seconds: 0,
        };
        let status =
            Status::failure("Secret is invalid: CANARY", "Invalid").with_code(422).with_details(details);
        let failure = Failure::from_api("creating Secret shop/db", &kube::Error::Api(Box::new(status)));
        assert_eq!(failure.reason, Reason::RejectedSecret);
        assert!(failure.message.contains("data[tls.crt] FieldValueInvalid"), "{failure}");
        assert!(!failure.message.contains("CANARY"), "{failure}");
    }
}

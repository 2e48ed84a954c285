//! What a failed call to KMS means for the caller: a refusal, an outage, a request to slow down, a broken blob.

use std::error::Error;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_kms::config::http::HttpResponse;
use aws_sdk_kms::error::{ErrorMetadata, ProvideErrorMetadata, SdkError};

use crate::recipient::remote::{deepest, quote, unreachable};
use crate::recipient::{UnwrapError, UnwrapFailure};

/// Error codes by which AWS services ask for fewer calls.
const THROTTLED: [&str; 8] = [
    "LimitExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "Throttling",
    "ThrottledException",
    "ThrottlingException",
    "TooManyRequestsException",
];

/// Error codes for a blob that no retry and no permission will open. A wrong encryption context is one of them:
/// KMS cannot tell it from damage.
const BROKEN: [&str; 3] = ["IncorrectKeyException", "InvalidCiphertextException", "ValidationException"];

/// Error codes for trouble on the service's side.
const UNREACHABLE: [&str; 6] = [
    "DependencyTimeoutException",
    "InternalFailure",
    "KMSInternalException",
    "KeyUnavailableException",
    "ServiceUnavailable",
    "ServiceUnavailableException",
];

/// Sorts what the SDK reports. Nothing in it is secret: bodies of requests are never part of its errors.
pub(super) fn classify<E>(error: &SdkError<E, HttpResponse>) -> UnwrapError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    match error {
        SdkError::ServiceError(answer) => {
            answered(answer.raw().status().as_u16(), answer.err().code(), answer.err().message())
        }
        SdkError::ResponseError(answer) => answered(answer.raw().status().as_u16(), None, None),
        SdkError::TimeoutError(_) => unreachable("AWS KMS did not answer in time"),
        other => not_sent(other),
    }
}

/// KMS answered well and left out what was asked for.
pub(super) fn empty() -> UnwrapError {
    unreachable("AWS KMS answered without a result")
}

fn answered(status: u16, code: Option<&str>, message: Option<&str>) -> UnwrapError {
    if (300..400).contains(&status) {
        return unreachable("AWS KMS answered with a redirect, which is not followed");
    }
    let code = code.unwrap_or_default();
    let kind = if THROTTLED.contains(&code) || status == 429 {
        UnwrapFailure::Throttled
    } else if BROKEN.contains(&code) {
        UnwrapFailure::Broken
    } else if UNREACHABLE.contains(&code) || status >= 500 || code.is_empty() {
        UnwrapFailure::Unreachable
    } else {
        UnwrapFailure::Denied
    };
    let said = match (code, message) {
        ("", _) => format!("HTTP status {status}"),
        (code, Some(message)) => format!("{code}: {message}"),
        (code, None) => code.to_owned(),
    };
    UnwrapError::new(kind, format!("AWS answered {}", quote(&said)))
}

/// No answer of KMS at all: credentials, role, or the way there.
fn not_sent(error: &(dyn Error + 'static)) -> UnwrapError {
    let causes = || std::iter::successors(Some(error), |error| (*error).source());
    // STS answered: its refusal is ours.
    if let Some(answer) = causes().find_map(|cause| cause.downcast_ref::<ErrorMetadata>()) {
        return answered(0, answer.code(), answer.message());
    }
    let deepest = deepest(error);
    match causes().find_map(|cause| cause.downcast_ref::<CredentialsError>()) {
        Some(CredentialsError::CredentialsNotLoaded(_)) => {
            UnwrapError::new(UnwrapFailure::Denied, "no AWS credentials were found")
        }
        Some(CredentialsError::InvalidConfiguration(_)) => {
            UnwrapError::new(UnwrapFailure::Denied, format!("the AWS configuration is not valid: {deepest}"))
        }
        Some(_) => unreachable(format!("cannot get AWS credentials: {deepest}")),
        None => unreachable(format!("cannot reach AWS KMS: {deepest}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_sorted_by_code_then_by_status() {
        for (status, code, kind) in [
            (400, Some("AccessDeniedException"), UnwrapFailure::Denied),
            (400, Some("NotFoundException"), UnwrapFailure::Denied),
            (400, Some("UnrecognizedClientException"), UnwrapFailure::Denied),
            (400, Some("InvalidCiphertextException"), UnwrapFailure::Broken),
            (400, Some("ThrottlingException"), UnwrapFailure::Throttled),
            (429, None, UnwrapFailure::Throttled),
            (500, Some("KMSInternalException"), UnwrapFailure::Unreachable),
            (503, None, UnwrapFailure::Unreachable),
            (307, Some("AccessDeniedException"), UnwrapFailure::Unreachable),
            (403, None, UnwrapFailure::Unreachable),
        ] {
            assert_eq!(answered(status, code, None).kind, kind, "{status} {code:?}");
        }
    }

    #[test]
    fn the_services_words_are_bounded_and_printable() {
        let message = format!("no\u{1b}[2J{}", "x".repeat(1000));
        let reason = answered(400, Some("AccessDeniedException"), Some(&message)).reason;
        assert!(reason.starts_with("AWS answered AccessDeniedException: no[2J"), "{reason}");
        assert!(reason.len() < 400 && !reason.contains('\u{1b}'), "{reason}");
    }
}

//! What a failed call to Google Cloud KMS means for the caller.

use google_cloud_kms_v1::Error;

use crate::recipient::remote::{by_status, deepest, quote};
use crate::recipient::{UnwrapError, UnwrapFailure};

/// Sorts what the client reports. Nothing in it is secret: requests are never part of its errors.
pub(super) fn classify(error: &Error) -> UnwrapError {
    if let Some(status) = error.status() {
        let code = status.code.name();
        let said = quote(&format!("{code}: {}", status.message));
        return UnwrapError::new(by_code(code), format!("GCP answered {said}"));
    }
    if let Some(status) = error.http_status_code() {
        return UnwrapError::new(by_status(status), format!("GCP answered HTTP status {status}"));
    }
    if error.is_authentication() {
        return UnwrapError::new(UnwrapFailure::Denied, words(error));
    }
    UnwrapError::new(UnwrapFailure::Unreachable, format!("cannot reach GCP KMS: {}", deepest(error)))
}

/// Why there are no credentials to call with.
pub(super) fn words(error: &(dyn std::error::Error + 'static)) -> String {
    format!("cannot get Google credentials: {}", deepest(error))
}

/// By the names of the API's codes. A ciphertext that the key does not open is an invalid argument.
fn by_code(code: &str) -> UnwrapFailure {
    match code {
        "INVALID_ARGUMENT" | "OUT_OF_RANGE" | "DATA_LOSS" => UnwrapFailure::Broken,
        "RESOURCE_EXHAUSTED" => UnwrapFailure::Throttled,
        "FAILED_PRECONDITION" | "NOT_FOUND" | "PERMISSION_DENIED" | "UNAUTHENTICATED" => {
            UnwrapFailure::Denied
        }
        _ => UnwrapFailure::Unreachable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_sorted() {
        for (code, kind) in [
            ("PERMISSION_DENIED", UnwrapFailure::Denied),
            ("NOT_FOUND", UnwrapFailure::Denied),
            ("INVALID_ARGUMENT", UnwrapFailure::Broken),
            ("RESOURCE_EXHAUSTED", UnwrapFailure::Throttled),
            ("UNAVAILABLE", UnwrapFailure::Unreachable),
            ("INTERNAL", UnwrapFailure::Unreachable),
        ] {
            assert_eq!(by_code(code), kind, "{code}");
        }
    }
}

//! What a failed call to a vault, or for a token, means for the caller.

use azure_core::error::{Error, ErrorKind};

use super::{UnwrapError, denied, unreachable};
use crate::recipient::UnwrapFailure;
use crate::recipient::remote::{by_status, deepest, quote};

/// Sorts what the client reports. Nothing in it is secret: requests are never part of its errors.
pub(super) fn classify(error: &Error) -> UnwrapError {
    match error.kind() {
        ErrorKind::HttpResponse { status, error_code, .. } => {
            let code = error_code.as_deref().unwrap_or_default();
            answered(u16::from(*status), &format!("{code}: {error}"))
        }
        ErrorKind::Credential => denied(format!("cannot log in to Azure: {}", first_line(error))),
        ErrorKind::Connection | ErrorKind::Io => {
            unreachable(format!("cannot reach Azure: {}", deepest(error)))
        }
        _ => unreachable(format!("Azure's client failed: {}", quote(&error.to_string()))),
    }
}

/// The vault answered well and left out what was asked for.
pub(super) fn empty() -> UnwrapError {
    unreachable("Azure Key Vault answered without a result")
}

fn answered(status: u16, said: &str) -> UnwrapError {
    if (300..400).contains(&status) {
        return unreachable("Azure answered with a redirect, which is not followed");
    }
    let kind: UnwrapFailure = by_status(status);
    UnwrapError::new(
        kind,
        format!("Azure answered HTTP status {status}: {}", quote(said.trim_start_matches(": "))),
    )
}

/// What follows is a link to a page about the client.
fn first_line(error: &Error) -> String {
    quote(error.to_string().lines().next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_sorted_by_status() {
        for (status, kind) in [
            (400, UnwrapFailure::Broken),
            (401, UnwrapFailure::Denied),
            (403, UnwrapFailure::Denied),
            (404, UnwrapFailure::Denied),
            (429, UnwrapFailure::Throttled),
            (302, UnwrapFailure::Unreachable),
            (503, UnwrapFailure::Unreachable),
        ] {
            assert_eq!(answered(status, "no").kind, kind, "{status}");
        }
        assert_eq!(classify(&Error::with_message(ErrorKind::Credential, "x")).kind, UnwrapFailure::Denied);
    }
}

//! One request after the other, without redirects, and within limits.

use std::future::Future;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Response};

use crate::error::{CommandError, Kind};

/// How long one request may take, answer included.
const DEADLINE: Duration = Duration::from_secs(60);
/// How long a connection may take to come about.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// Most bytes of an answer.
const ANSWER_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Most characters of an answer that are shown.
#[cfg(any(feature = "aws", feature = "gcp"))]
const SHOWN_CHARS_MAX: usize = 200;

/// Does `work`, and waits for it.
pub(super) fn wait<T>(work: impl Future<Output = Result<T, CommandError>>) -> Result<T, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime
        .map_err(|error| CommandError::general(format!("cannot prepare for network requests: {error}")))?
        .block_on(work)
}

/// A client that follows no redirect.
pub(super) fn client() -> ClientBuilder {
    Client::builder()
        .redirect(Policy::none())
        .connect_timeout(CONNECT_DEADLINE)
        .timeout(DEADLINE)
        .user_agent(concat!("lacre/", env!("CARGO_PKG_VERSION")))
}

/// `address` was not reached.
pub(super) fn unreachable(address: &str, error: &reqwest::Error) -> CommandError {
    let what = match error {
        _ if error.is_timeout() => "no answer in time",
        _ if error.is_connect() => "cannot connect",
        _ => "the request failed",
    };
    CommandError::on(Kind::General, address, what)
        .hint("check the address, the network and the proxy, then run the command again")
}

/// An answer's body, up to the limit.
pub(super) async fn body(address: &str, mut answer: Response) -> Result<Vec<u8>, CommandError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| unreachable(address, &error))? {
        if bytes.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(CommandError::on(Kind::General, address, "the answer is larger than 2 MiB"));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Nothing for success, else what the service says.
#[cfg(any(feature = "aws", feature = "gcp"))]
pub(super) async fn success(address: &str, answer: Response) -> Result<(), CommandError> {
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    let body = body(address, answer).await.unwrap_or_default();
    let said: String = String::from_utf8_lossy(&body).chars().take(SHOWN_CHARS_MAX).collect();
    let said = crate::output::printable(said.trim());
    Err(refused(address, status).hint(format!("it said: {said}")))
}

/// The service at `address` answered with `status`.
pub(super) fn refused(address: &str, status: reqwest::StatusCode) -> CommandError {
    let error = CommandError::on(Kind::General, address, format!("the service answered {status}"));
    match status.as_u16() {
        300..=399 => error.hint("redirects are not followed: name the right address and region"),
        401 | 403 => error.hint("log in as someone who may write there"),
        404 => error.hint("check the bucket, or the mount and its version"),
        _ => error,
    }
}

/// `text` as a part of a path, with `/` kept.
#[cfg(any(feature = "aws", feature = "vault"))]
pub(super) fn path_encoded(text: &str) -> String {
    encoded(text, b"-_.~/")
}

/// `text` with all bytes escaped but letters, digits and `kept`.
pub(super) fn encoded(text: &str, kept: &[u8]) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || kept.contains(&byte) {
            true => encoded.push(char::from(byte)),
            false => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_escaped() {
        assert_eq!(encoded("a/b c+d?é~", b"-_.~/"), "a/b%20c%2Bd%3F%C3%A9~");
    }
}

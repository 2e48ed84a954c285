//! How requests to Azure are sent: once, without following redirects, with an answer of bounded size.

use std::sync::Arc;

use azure_core::error::{Error, ErrorKind};
use azure_core::http::{
    AsyncRawResponse, ClientOptions, HttpClient, Request, RetryOptions, Transport, new_http_client,
};
use futures::TryStreamExt;

use crate::recipient::remote::ANSWER_BYTES_MAX;

/// For each client that calls a vault or fetches a token.
pub(super) fn options() -> ClientOptions {
    ClientOptions {
        retry: RetryOptions::none(),
        transport: Some(Transport::new(Arc::new(Bounded(new_http_client(None))))),
        ..ClientOptions::default()
    }
}

/// The client's own transport, which follows no redirect, with a limit on what it reads.
#[derive(Debug)]
struct Bounded(Arc<dyn HttpClient>);

#[async_trait::async_trait]
impl HttpClient for Bounded {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        let (status, headers, mut body) = self.0.execute_request(request).await?.deconstruct();
        let mut read = Vec::new();
        while let Some(chunk) = body.try_next().await? {
            if read.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(Error::with_message(ErrorKind::Io, "the answer is larger than 2 MiB"));
            }
            read.extend_from_slice(&chunk);
        }
        Ok(AsyncRawResponse::from_bytes(status, headers, read))
    }
}

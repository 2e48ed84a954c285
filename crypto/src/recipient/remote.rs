//! Asynchronous clients of key services behind a synchronous door, and what their kinds have in common.
//!
//! The clients are asynchronous; this crate's core is not. Each [`Door`] has a runtime with one thread of its own: work
//! is handed to it and waited for through a channel. That holds in every surrounding, also inside another runtime
//! (whose thread then blocks: use its `spawn_blocking`), and it lets connections, credentials and tokens live on from
//! one call to the next.

use std::future::Future;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

use super::{UnwrapError, UnwrapFailure};

/// How much longer than the deadline the channel is waited for: the runtime tells of the deadline itself, unless
/// its one thread is stuck.
const GRACE: Duration = Duration::from_secs(1);

/// Most characters of a service's own words that a message repeats.
const QUOTE_CHARS_MAX: usize = 300;

/// Most bytes of a service's answer that are read.
#[cfg(any(feature = "azure", feature = "vault"))]
pub(super) const ANSWER_BYTES_MAX: usize = 2 * 1024 * 1024;

/// The way of one caller to one service.
pub(super) struct Door {
    service: String,
    deadline: Duration,
    runtime: Mutex<Option<Runtime>>,
}

impl Door {
    /// A way to the service that messages call `service`; one call takes `deadline` at most.
    pub(super) fn new(service: &str, deadline: Duration) -> Self {
        Self { service: service.to_owned(), deadline, runtime: Mutex::default() }
    }

    /// Does `work` within the deadline.
    pub(super) fn call<T, W>(&self, work: W) -> Result<T, UnwrapError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, UnwrapError>> + Send + 'static,
    {
        let deadline = self.deadline;
        let (sender, receiver) = sync_channel(1);
        self.handle()?.spawn(async move {
            let outcome = tokio::time::timeout(deadline, work).await;
            // Nobody receives when the caller gave up first.
            let _ = sender.send(outcome);
        });
        match receiver.recv_timeout(deadline.saturating_add(GRACE)) {
            Ok(Ok(outcome)) => outcome,
            _ => {
                let limit = deadline.as_secs_f32();
                Err(unreachable(format!("{} did not answer within {limit} s", self.service)))
            }
        }
    }

    /// The runtime, started by the first call.
    fn handle(&self) -> Result<Handle, UnwrapError> {
        let mut runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = &*runtime {
            return Ok(runtime.handle().clone());
        }
        let started =
            Builder::new_multi_thread().worker_threads(1).thread_name("key-service").enable_all().build();
        let started = started.map_err(|error| {
            unreachable(format!("cannot start a thread to call {}: {error}", self.service))
        })?;
        Ok(runtime.insert(started).handle().clone())
    }
}

impl Drop for Door {
    /// Waits for nothing: dropping a runtime the plain way would panic inside another one.
    fn drop(&mut self) {
        let runtime = self.runtime.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        runtime.into_iter().for_each(Runtime::shutdown_background);
    }
}

/// One line of bounded length without control characters: the text comes from outside.
pub(super) fn quote(text: &str) -> String {
    text.chars().filter(|character| !character.is_control()).take(QUOTE_CHARS_MAX).collect()
}

/// What the deepest cause of `error` says; those above it only name layers of a client.
pub(super) fn deepest(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    quote(&causes.last().map(ToString::to_string).unwrap_or_default())
}

pub(super) fn broken(reason: impl Into<String>) -> UnwrapError {
    UnwrapError::new(UnwrapFailure::Broken, reason)
}

#[cfg(any(feature = "azure", feature = "gcp", feature = "vault"))]
pub(super) fn denied(reason: impl Into<String>) -> UnwrapError {
    UnwrapError::new(UnwrapFailure::Denied, reason)
}

pub(super) fn unreachable(reason: impl Into<String>) -> UnwrapError {
    UnwrapError::new(UnwrapFailure::Unreachable, reason)
}

/// What an HTTP status says where the service gives no code of its own.
#[cfg(any(feature = "azure", feature = "gcp", feature = "vault"))]
pub(super) fn by_status(status: u16) -> UnwrapFailure {
    match status {
        400 | 422 => UnwrapFailure::Broken,
        429 => UnwrapFailure::Throttled,
        401..=499 => UnwrapFailure::Denied,
        _ => UnwrapFailure::Unreachable,
    }
}

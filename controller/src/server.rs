//! The HTTP side: the probes and what the command asks for on one address, `/metrics` on another.
//!
//! Any user of a cluster may reach the first through the API server's proxy, so nothing on it tells what objects there
//! are. The second is for Prometheus.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use tokio::net::TcpListener;

use crate::args::go::ListenAddress;
use crate::keyring::Keyring;
use crate::metrics::Metrics;

pub mod connection;
pub mod limit;

use connection::{Client, TimedListener, Timeouts};

/// How old the loop's last sign of life may be before the process counts as stuck.
const HEARTBEAT_AGE_MAX: Duration = Duration::from_secs(60);

/// What must be there before the controller is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The controller's own identities, for EncryptedSecrets.
    Identities,
    /// All EncryptedSecrets have been listed.
    EncryptedSecrets,
    /// At least one sealing key, for SealedSecrets.
    SealingKeys,
    /// All SealedSecrets have been listed.
    SealedSecrets,
}

impl Part {
    const ALL: [Self; 4] = [Self::Identities, Self::EncryptedSecrets, Self::SealingKeys, Self::SealedSecrets];

    fn missing(self) -> &'static str {
        match self {
            Self::Identities => "identities are not loaded\n",
            Self::EncryptedSecrets => "EncryptedSecrets: objects are not listed\n",
            Self::SealingKeys => "there is no sealing key\n",
            Self::SealedSecrets => "SealedSecrets: objects are not listed\n",
        }
    }
}

/// How it stands with a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Not there yet.
    Missing,
    /// There.
    There,
    /// Not needed: its kind is not served, or another process holds the lease. A standby is ready to take over, and must
    /// say so or no rollout would ever end.
    NotNeeded,
}

/// What the probes ask.
pub struct Health {
    started: Instant,
    beat_millis: AtomicU64,
    parts: [AtomicU8; Part::ALL.len()],
}

impl Default for Health {
    fn default() -> Self {
        Self { started: Instant::now(), beat_millis: AtomicU64::new(0), parts: Default::default() }
    }
}

impl Health {
    /// The loop that reconciles is alive.
    pub fn beat(&self) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.beat_millis.store(now, Ordering::Relaxed);
    }

    /// How it stands with `part` now.
    pub fn set(&self, part: Part, presence: Presence) {
        self.parts[part as usize].store(presence as u8, Ordering::Relaxed);
    }

    /// All EncryptedSecrets have been listed.
    pub fn caches_are_listed(&self) {
        self.set(Part::EncryptedSecrets, Presence::There);
    }

    /// All SealedSecrets have been listed.
    pub fn sealed_are_listed(&self) {
        self.set(Part::SealedSecrets, Presence::There);
    }

    /// Whether the controller's own identities are there.
    pub fn identities_are_loaded(&self, loaded: bool) {
        self.set(Part::Identities, if loaded { Presence::There } else { Presence::Missing });
    }

    fn is_alive(&self) -> bool {
        let beat = Duration::from_millis(self.beat_millis.load(Ordering::Relaxed));
        self.started.elapsed().saturating_sub(beat) < HEARTBEAT_AGE_MAX
    }

    fn missing(&self) -> Option<&'static str> {
        let is_missing =
            |part: &Part| self.parts[*part as usize].load(Ordering::Relaxed) == Presence::Missing as u8;
        Part::ALL.into_iter().find(is_missing).map(Part::missing)
    }
}

/// What is served.
#[derive(Clone)]
pub struct Served {
    /// For the probes.
    pub health: Arc<Health>,
    /// For `/metrics`.
    pub metrics: Arc<Metrics>,
    /// For what its cache counted.
    pub keyring: Arc<Keyring>,
}

/// Binds the first address that the machine has.
///
/// # Errors
/// None can be had.
pub async fn listen(address: &ListenAddress) -> anyhow::Result<TcpListener> {
    let mut last = None;
    for candidate in address.candidates() {
        match TcpListener::bind((candidate.0.as_str(), candidate.1)).await {
            Ok(listener) => return Ok(listener),
            Err(error) => last = Some(error),
        }
    }
    let failed = last.unwrap_or_else(|| std::io::ErrorKind::AddrNotAvailable.into());
    Err(failed).with_context(|| format!("cannot listen on {address}"))
}

/// Serves the probes for ever.
///
/// # Errors
/// The listener failed.
pub async fn serve(listener: TcpListener, served: Served, timeouts: Timeouts) -> std::io::Result<()> {
    let router = Router::new()
        .route("/healthz", any(healthz))
        .route("/readyz", any(readyz))
        .with_state(served)
        .into_make_service_with_connect_info::<Client>();
    axum::serve(TimedListener { listener, timeouts }, router).await
}

/// Serves `/metrics` for ever.
///
/// # Errors
/// The listener failed.
pub async fn serve_metrics(listener: TcpListener, served: Served, timeouts: Timeouts) -> std::io::Result<()> {
    let router = Router::new().route("/metrics", get(metrics)).with_state(served);
    axum::serve(TimedListener { listener, timeouts }, router).await
}

async fn metrics(State(served): State<Served>) -> Response {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    match served.metrics.encode(served.keyring.cache()) {
        Ok(text) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn healthz(State(served): State<Served>) -> (StatusCode, &'static str) {
    match served.health.is_alive() {
        true => (StatusCode::OK, "ok\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "the reconcile loop does not run\n"),
    }
}

async fn readyz(State(served): State<Served>) -> (StatusCode, &'static str) {
    match served.health.missing() {
        None => (StatusCode::OK, "ok\n"),
        Some(missing) => (StatusCode::SERVICE_UNAVAILABLE, missing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_means_that_everything_that_is_served_is_there() {
        let health = Health::default();
        assert!(health.missing().is_some_and(|missing| missing.contains("identities")));
        health.identities_are_loaded(true);
        assert!(health.missing().is_some_and(|missing| missing.contains("listed")));
        health.caches_are_listed();
        assert_eq!(health.missing(), Some("there is no sealing key\n"));
        health.set(Part::SealingKeys, Presence::There);
        health.set(Part::SealedSecrets, Presence::NotNeeded);
        assert_eq!(health.missing(), None);
        health.identities_are_loaded(false);
        assert!(health.missing().is_some());
    }

    #[test]
    fn alive_means_that_the_loop_ran_of_late() {
        let mut health = Health::default();
        assert!(health.is_alive());
        let Some(long_ago) = Instant::now().checked_sub(HEARTBEAT_AGE_MAX * 2) else { return };
        health.started = long_ago;
        assert!(!health.is_alive());
        health.beat();
        assert!(health.is_alive());
    }
}

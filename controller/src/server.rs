//! The HTTP side: the probes and what the command asks for on one address, `/metrics` on another.
//!
//! Any user of a cluster may reach the first through the API server's proxy, so nothing on it tells what objects there
//! are. The second is for Prometheus.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use axum::{Router, middleware};
use tokio::net::TcpListener;

use crate::args::go::ListenAddress;
use crate::keyring::Keyring;
use crate::metrics::Metrics;

pub mod connection;
pub mod limit;
pub mod sealing;

use connection::{Client, TimedListener, Timeouts};
use sealing::Sealing;

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
    /// Of each loop, the last sign of life; 0 before the first one.
    beats_millis: [AtomicU64; 2],
    parts: [AtomicU8; Part::ALL.len()],
}

impl Default for Health {
    fn default() -> Self {
        Self { started: Instant::now(), beats_millis: Default::default(), parts: Default::default() }
    }
}

impl Health {
    /// The loop that reconciles EncryptedSecrets is alive.
    pub fn beat(&self) {
        self.beat_of(0);
    }

    /// The loop that reconciles SealedSecrets is alive.
    pub fn sealed_beat(&self) {
        self.beat_of(1);
    }

    fn beat_of(&self, reconciler: usize) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.beats_millis[reconciler].store(now.max(1), Ordering::Relaxed);
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

    /// Whether each loop that began still runs.
    fn is_alive(&self) -> bool {
        let is_fresh = |beat: &AtomicU64| match beat.load(Ordering::Relaxed) {
            0 => true,
            beat => self.started.elapsed().saturating_sub(Duration::from_millis(beat)) < HEARTBEAT_AGE_MAX,
        };
        self.beats_millis.iter().all(is_fresh)
    }

    fn missing(&self) -> Option<&'static str> {
        let is_missing =
            |part: &Part| self.parts[*part as usize].load(Ordering::Relaxed) == Presence::Missing as u8;
        Part::ALL.into_iter().find(is_missing).map(Part::missing)
    }
}

/// What `/metrics` tells.
#[derive(Clone)]
pub struct Counted {
    /// All series.
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

/// Serves the probes, certificates and questions about SealedSecrets until `end`, then finishes what was asked.
///
/// # Errors
/// The listener failed.
pub async fn serve(
    listener: TcpListener,
    health: Arc<Health>,
    sealing: Arc<Sealing>,
    timeouts: Timeouts,
    end: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let questions = Router::new()
        .route(sealing::CERTIFICATE, any(sealing::certificate))
        .route(sealing::VERIFY, any(sealing::verify))
        .route(sealing::ROTATE, any(sealing::rotate))
        .layer(middleware::from_fn_with_state(sealing.clone(), sealing::counted))
        .with_state(sealing);
    let router = Router::new()
        .route("/healthz", any(healthz))
        .route("/readyz", any(readyz))
        .with_state(health)
        .merge(questions)
        .into_make_service_with_connect_info::<Client>();
    axum::serve(TimedListener { listener, timeouts }, router).with_graceful_shutdown(end).await
}

/// Serves `/metrics` for ever.
///
/// # Errors
/// The listener failed.
pub async fn serve_metrics(
    listener: TcpListener,
    counted: Counted,
    timeouts: Timeouts,
) -> std::io::Result<()> {
    let router = Router::new().route("/metrics", get(metrics)).with_state(counted);
    axum::serve(TimedListener { listener, timeouts }, router).await
}

async fn metrics(State(counted): State<Counted>) -> Response {
    const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    match counted.metrics.encode(counted.keyring.cache()) {
        Ok(text) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn healthz(State(health): State<Arc<Health>>) -> (StatusCode, &'static str) {
    match health.is_alive() {
        true => (StatusCode::OK, "ok\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "the reconcile loop does not run\n"),
    }
}

async fn readyz(State(health): State<Arc<Health>>) -> (StatusCode, &'static str) {
    match health.missing() {
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
    fn alive_means_that_each_loop_that_began_ran_of_late() {
        let mut health = Health::default();
        let Some(long_ago) = Instant::now().checked_sub(HEARTBEAT_AGE_MAX * 2) else { return };
        health.beat();
        health.started = long_ago;
        assert!(!health.is_alive());
        health.beat();
        assert!(health.is_alive(), "the other one did not begin");
    }
}

//! `/metrics`, `/healthz` and `/readyz`. Nothing here reads from or writes to the cluster.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use crate::keyring::Keyring;
use crate::metrics::Metrics;

/// How old the loop's last sign of life may be before the process counts as stuck.
const HEARTBEAT_AGE_MAX: Duration = Duration::from_secs(60);

/// What the probes ask.
pub struct Health {
    started: Instant,
    beat_millis: AtomicU64,
    caches_listed: AtomicBool,
    identities_loaded: AtomicBool,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            beat_millis: AtomicU64::new(0),
            caches_listed: AtomicBool::new(false),
            identities_loaded: AtomicBool::new(false),
        }
    }
}

impl Health {
    /// The loop that reconciles is alive.
    pub fn beat(&self) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.beat_millis.store(now, Ordering::Relaxed);
    }

    /// All objects have been listed, or are not to be, because another process holds the lease: a standby is ready to
    /// take over, and must say so or no rollout would ever end.
    pub fn caches_are_listed(&self) {
        self.caches_listed.store(true, Ordering::Relaxed);
    }

    /// Whether the controller's own identities are there.
    pub fn identities_are_loaded(&self, loaded: bool) {
        self.identities_loaded.store(loaded, Ordering::Relaxed);
    }

    fn is_alive(&self) -> bool {
        let beat = Duration::from_millis(self.beat_millis.load(Ordering::Relaxed));
        self.started.elapsed().saturating_sub(beat) < HEARTBEAT_AGE_MAX
    }

    fn missing(&self) -> Option<&'static str> {
        if !self.identities_loaded.load(Ordering::Relaxed) {
            return Some("identities are not loaded\n");
        }
        (!self.caches_listed.load(Ordering::Relaxed)).then_some("objects are not listed\n")
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

/// Serves for ever.
///
/// # Errors
/// The listener failed.
pub async fn serve(listener: TcpListener, served: Served) -> std::io::Result<()> {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(served);
    axum::serve(listener, router).await
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
    fn ready_means_that_identities_are_loaded_and_objects_listed() {
        let health = Health::default();
        assert!(health.missing().is_some_and(|missing| missing.contains("identities")));
        health.identities_are_loaded(true);
        assert!(health.missing().is_some_and(|missing| missing.contains("listed")));
        health.caches_are_listed();
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

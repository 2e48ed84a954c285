//! What the controller counts: under the names that dashboards for other controllers already use, and its own.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::keyring::cache::UnwrapCache;
use crate::memory::Place;
use crate::sealed::keys::SealingKeys;

mod keys;
pub mod sealed;

use keys::KeyCollector;
use sealed::SealedMetrics;

/// Whose reconciles are counted: the label `controller`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ours.
    EncryptedSecret,
    /// Sealed Secrets'.
    SealedSecret,
}

impl Kind {
    fn controller(self) -> ByController {
        ByController { controller: self.name() }
    }

    fn name(self) -> &'static str {
        match self {
            Self::EncryptedSecret => "encryptedsecret",
            Self::SealedSecret => "sealedsecret",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByController {
    controller: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResult {
    controller: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReason {
    result: &'static str,
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByObject {
    namespace: String,
    name: String,
}

impl From<&Place> for ByObject {
    fn from((namespace, name): &Place) -> Self {
        Self { namespace: namespace.clone(), name: name.clone() }
    }
}

type Seconds = Family<ByController, Histogram, fn() -> Histogram>;

/// How a reconcile ended, as `controller_runtime_reconcile_total` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The object needs nothing more until something changes.
    Success,
    /// It failed.
    Error,
}

/// All series.
pub struct Metrics {
    registry: Mutex<Registry>,
    reconciles: Family<ByResult, Counter>,
    errors: Family<ByController, Counter>,
    seconds: Seconds,
    active: Family<ByController, Gauge>,
    outcomes: Family<ByReason, Counter>,
    repairs: Counter,
    document_ready: Family<ByObject, Gauge>,
    document_suspended: Family<ByObject, Gauge>,
    document_reconciles: Family<ByObject, Counter>,
    cache_hits: Counter,
    cache_misses: Counter,
    leader: Gauge<f64, AtomicU64>,
    /// Those about SealedSecrets.
    pub sealed: SealedMetrics,
}

impl Metrics {
    /// Every series, with nothing counted; `keys` are told at each scrape. With `omit_objects`, nothing names a single
    /// SealedSecret.
    pub fn new(keys: Arc<SealingKeys>, omit_objects: bool) -> Self {
        let mut registry = Registry::default();
        let sealed = SealedMetrics::register(&mut registry, omit_objects);
        registry.register_collector(Box::new(KeyCollector { keys, omit_objects }));
        let metrics = Self {
            registry: Mutex::new(registry),
            sealed,
            reconciles: Family::default(),
            errors: Family::default(),
            seconds: Family::new_with_constructor(|| {
                Histogram::new([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0])
            }),
            active: Family::default(),
            outcomes: Family::default(),
            repairs: Counter::default(),
            document_ready: Family::default(),
            document_suspended: Family::default(),
            document_reconciles: Family::default(),
            cache_hits: Counter::default(),
            cache_misses: Counter::default(),
            leader: Gauge::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&self) {
        let mut registry = lock(&self.registry);
        registry.register("controller_runtime_reconcile", "Reconciles by result", self.reconciles.clone());
        registry.register(
            "controller_runtime_reconcile_errors",
            "Reconciles that failed",
            self.errors.clone(),
        );
        let seconds = self.seconds.clone();
        registry.register("controller_runtime_reconcile_time_seconds", "Length of a reconcile", seconds);
        registry.register(
            "controller_runtime_active_workers",
            "Reconciles that are running",
            self.active.clone(),
        );
        registry.register(
            "leader_election_master_status",
            "Whether this process holds the lease",
            self.leader.clone(),
        );
        registry.register("lacre_decrypt", "Objects opened or refused, by reason", self.outcomes.clone());
        registry.register("lacre_drift_repairs", "Secrets put right after a change", self.repairs.clone());
        registry.register("lacre_document_ready", "Whether the object is Ready", self.document_ready.clone());
        let suspended = self.document_suspended.clone();
        registry.register("lacre_document_suspended", "Whether the object is suspended", suspended);
        let reconciles = self.document_reconciles.clone();
        registry.register("lacre_document_reconciles", "Finished reconciles of the object", reconciles);
        registry.register("lacre_datakey_cache_hits", "Unwrapped keys remembered", self.cache_hits.clone());
        registry.register(
            "lacre_datakey_cache_misses",
            "Keys that had to be unwrapped",
            self.cache_misses.clone(),
        );
    }

    /// A reconcile of an EncryptedSecret begins.
    pub fn begin(&self) {
        self.begin_of(Kind::EncryptedSecret);
    }

    /// A reconcile of this kind begins.
    pub fn begin_of(&self, kind: Kind) {
        self.active.get_or_create(&kind.controller()).inc();
    }

    /// A reconcile of an EncryptedSecret ended.
    pub fn end(&self, place: &Place, ended: Ended, took: Duration) {
        self.end_of(Kind::EncryptedSecret, place, ended, took);
    }

    /// A reconcile of this kind ended.
    pub fn end_of(&self, kind: Kind, place: &Place, ended: Ended, took: Duration) {
        let controller = kind.controller();
        self.active.get_or_create(&controller).dec();
        self.seconds.get_or_create(&controller).observe(took.as_secs_f64());
        let result = match ended {
            Ended::Success => "success",
            Ended::Error => "error",
        };
        self.reconciles.get_or_create(&ByResult { controller: kind.name(), result }).inc();
        if ended == Ended::Error {
            self.errors.get_or_create(&controller).inc();
        }
        match kind {
            Kind::EncryptedSecret => drop(self.document_reconciles.get_or_create(&place.into()).inc()),
            Kind::SealedSecret => self.sealed.reconciled(place),
        }
    }

    /// What an object is now: Ready or not, suspended or not, and why.
    pub fn report(&self, place: &Place, ready: bool, suspended: bool, reason: &str) {
        self.document_ready.get_or_create(&place.into()).set(ready.into());
        self.document_suspended.get_or_create(&place.into()).set(suspended.into());
        if !suspended {
            let result = if ready { "success" } else { "error" };
            self.outcomes.get_or_create(&ByReason { result, reason: reason.to_owned() }).inc();
        }
    }

    /// A Secret that had been changed or deleted was put right.
    pub fn repaired(&self) {
        self.repairs.inc();
    }

    /// Whether this process is the one that works.
    pub fn lead(&self, leads: bool) {
        self.leader.set(f64::from(u8::from(leads)));
    }

    /// Drops the series of an object that is gone.
    pub fn forget(&self, place: &Place) {
        self.document_ready.remove(&place.into());
        self.document_suspended.remove(&place.into());
        self.document_reconciles.remove(&place.into());
    }

    /// All series as OpenMetrics text.
    ///
    /// # Errors
    /// Never for a text in memory.
    pub fn encode(&self, cache: &UnwrapCache) -> Result<String, fmt::Error> {
        self.cache_hits.inc_by(cache.hits().saturating_sub(self.cache_hits.get()));
        self.cache_misses.inc_by(cache.misses().saturating_sub(self.cache_misses.get()));
        let mut text = String::new();
        encode(&mut text, &lock(&self.registry))?;
        Ok(text)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new(Arc::default(), false)
    }
}

fn lock(registry: &Mutex<Registry>) -> std::sync::MutexGuard<'_, Registry> {
    registry.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(metrics: &Metrics) -> String {
        metrics.encode(&UnwrapCache::new(1)).unwrap()
    }

    #[test]
    fn reconciles_are_counted_under_the_names_of_controller_runtime() {
        let metrics = Metrics::default();
        let place = ("shop".to_owned(), "db".to_owned());
        metrics.begin();
        metrics.end(&place, Ended::Error, Duration::from_millis(3));
        let text = text(&metrics);
        for line in [
            r#"controller_runtime_reconcile_total{controller="encryptedsecret",result="error"} 1"#,
            r#"controller_runtime_reconcile_errors_total{controller="encryptedsecret"} 1"#,
            r#"controller_runtime_reconcile_time_seconds_count{controller="encryptedsecret"} 1"#,
            r#"controller_runtime_active_workers{controller="encryptedsecret"} 0"#,
            r#"lacre_document_reconciles_total{namespace="shop",name="db"} 1"#,
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn the_series_of_an_object_go_with_it() {
        let metrics = Metrics::default();
        let place = ("shop".to_owned(), "db".to_owned());
        metrics.report(&place, true, false, "Synced");
        assert!(text(&metrics).contains(r#"lacre_document_ready{namespace="shop",name="db"} 1"#));
        metrics.forget(&place);
        assert!(!text(&metrics).contains(r#"namespace="shop""#));
    }
}

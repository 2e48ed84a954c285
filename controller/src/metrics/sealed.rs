//! What is counted about SealedSecrets: the series of Sealed Secrets under their own names, and ours.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::ByObject;
use crate::memory::Place;

/// What all names begin with.
const PREFIX: &str = "sealed_secrets_controller";

/// Upper bounds of request times, as Prometheus' own clients have them.
const SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByRevision {
    revision: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReason {
    reason: &'static str,
    namespace: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCondition {
    namespace: String,
    name: String,
    condition: String,
    ss_app_kubernetes_io_instance: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByRequest {
    path: &'static str,
    method: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByAnswer {
    path: &'static str,
    code: u16,
    method: String,
}

/// The series about SealedSecrets.
pub struct SealedMetrics {
    omit_objects: bool,
    requests: Counter,
    errors: Family<ByReason, Counter>,
    conditions: Family<ByCondition, Gauge>,
    shown: Mutex<HashMap<Place, BTreeSet<(String, String)>>>,
    reconciles: Family<ByObject, Counter>,
    answers: Family<ByAnswer, Counter>,
    answer_seconds: Family<ByRequest, Histogram, fn() -> Histogram>,
}

impl SealedMetrics {
    /// Every series, with nothing counted, in `registry`. With `omit_objects`, nothing that names a single object.
    pub(super) fn register(registry: &mut Registry, omit_objects: bool) -> Self {
        let metrics = Self {
            omit_objects,
            requests: Counter::default(),
            errors: Family::default(),
            conditions: Family::default(),
            shown: Mutex::default(),
            reconciles: Family::default(),
            answers: Family::default(),
            answer_seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
        };
        let build = Family::<ByRevision, Gauge>::default();
        build.get_or_create(&ByRevision { revision: env!("CARGO_PKG_VERSION") }).set(1);
        let own = registry.sub_registry_with_prefix(PREFIX);
        own.register("build_info", "The version that runs", build);
        own.register("unseal_requests", "Looks at SealedSecrets", metrics.requests.clone());
        own.register("unseal_errors", "Looks at SealedSecrets that failed", metrics.errors.clone());
        own.register(
            "condition_info",
            "Condition of a SealedSecret: -1 False, 0 Unknown, 1 True",
            metrics.conditions.clone(),
        );
        own.register("http_requests", "Requests by path and answer", metrics.answers.clone());
        own.register("http_request_duration_seconds", "Length of a request", metrics.answer_seconds.clone());
        registry.register(
            "lacre_sealed_secret_reconciles",
            "Finished reconciles of the SealedSecret",
            metrics.reconciles.clone(),
        );
        metrics
    }

    /// A SealedSecret is looked at.
    pub fn unseal_requested(&self) {
        self.requests.inc();
    }

    /// A look at a SealedSecret of `namespace` failed.
    pub fn unseal_failed(&self, reason: &'static str, namespace: &str) {
        self.errors.get_or_create(&ByReason { reason, namespace: namespace.to_owned() }).inc();
    }

    /// A SealedSecret's condition is `True`, `False` or anything else. `instance` is its label
    /// `app.kubernetes.io/instance`, or empty.
    pub fn condition(&self, place: &Place, condition: &str, status: &str, instance: &str) {
        if self.omit_objects {
            return;
        }
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = shown.entry(place.clone()).or_default();
        // A changed label would leave the old series behind.
        let is_old = |(known, old): &(String, String)| known == condition && old != instance;
        for (condition, old) in shown.extract_if(.., is_old) {
            self.conditions.remove(&by_condition(place, &condition, &old));
        }
        shown.insert((condition.to_owned(), instance.to_owned()));
        let value = match status {
            "True" => 1,
            "False" => -1,
            _ => 0,
        };
        self.conditions.get_or_create(&by_condition(place, condition, instance)).set(value);
    }

    pub(super) fn reconciled(&self, place: &Place) {
        if !self.omit_objects {
            self.reconciles.get_or_create(&place.into()).inc();
        }
    }

    /// Drops the series of an object that is gone.
    pub fn forget(&self, place: &Place) {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner).remove(place);
        for (condition, instance) in shown.into_iter().flatten() {
            self.conditions.remove(&by_condition(place, &condition, &instance));
        }
        self.reconciles.remove(&place.into());
    }

    /// A request was answered.
    pub fn answered(&self, path: &'static str, method: &str, code: u16, took: Duration) {
        // Whoever asks chooses the method, and must not choose how many series there are.
        let method = method.to_ascii_lowercase();
        let known = ["get", "put", "head", "post", "delete", "connect", "options", "trace", "patch"];
        let method = if known.contains(&method.as_str()) { method } else { "unknown".to_owned() };
        let by_request = ByRequest { path, method: method.clone() };
        self.answers.get_or_create(&ByAnswer { path, code, method }).inc();
        self.answer_seconds.get_or_create(&by_request).observe(took.as_secs_f64());
    }
}

fn by_condition((namespace, name): &Place, condition: &str, instance: &str) -> ByCondition {
    ByCondition {
        namespace: namespace.clone(),
        name: name.clone(),
        condition: condition.to_owned(),
        ss_app_kubernetes_io_instance: instance.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    fn text(registry: &Registry) -> String {
        let mut text = String::new();
        encode(&mut text, registry).unwrap();
        text
    }

    fn place() -> Place {
        ("shop".to_owned(), "db".to_owned())
    }

    #[test]
    fn series_have_the_names_and_labels_of_sealed_secrets() {
        let mut registry = Registry::default();
        let metrics = SealedMetrics::register(&mut registry, false);
        metrics.unseal_requested();
        metrics.unseal_failed("unmanaged", "shop");
        metrics.condition(&place(), "Synced", "False", "shop");
        metrics.answered("/v1/verify", "POST", 409, Duration::from_millis(1));
        metrics.answered("/v1/verify", "BREW", 200, Duration::from_millis(1));
        let text = text(&registry);
        for line in [
            r#"sealed_secrets_controller_build_info{revision="0.1.0"} 1"#,
            "sealed_secrets_controller_unseal_requests_total 1",
            r#"sealed_secrets_controller_unseal_errors_total{reason="unmanaged",namespace="shop"} 1"#,
            r#"sealed_secrets_controller_condition_info{namespace="shop",name="db",condition="Synced",ss_app_kubernetes_io_instance="shop"} -1"#,
            r#"sealed_secrets_controller_http_requests_total{path="/v1/verify",code="409",method="post"} 1"#,
            r#"sealed_secrets_controller_http_requests_total{path="/v1/verify",code="200",method="unknown"} 1"#,
            r#"sealed_secrets_controller_http_request_duration_seconds_count{path="/v1/verify",method="post"} 1"#,
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_changed_label_and_a_deleted_object_leave_no_series() {
        let mut registry = Registry::default();
        let metrics = SealedMetrics::register(&mut registry, false);
        metrics.condition(&place(), "Synced", "True", "old");
        metrics.condition(&place(), "Synced", "True", "new");
        metrics.reconciled(&place());
        assert!(!text(&registry).contains("old") && text(&registry).contains("new"));
        metrics.forget(&place());
        assert!(!text(&registry).contains("name=\"db\""));
    }

    #[test]
    fn objects_are_not_named_when_that_is_asked_for() {
        let mut registry = Registry::default();
        let metrics = SealedMetrics::register(&mut registry, true);
        metrics.condition(&place(), "Synced", "True", "shop");
        metrics.reconciled(&place());
        assert!(!text(&registry).contains("name=\"db\""));
    }
}

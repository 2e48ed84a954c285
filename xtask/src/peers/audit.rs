//! What the API server was asked to write, by whom: so that tests count writes instead of guessing.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::kubectl::Kubectl;
use crate::wait;

/// How long the log may lag behind.
const DEADLINE: Duration = Duration::from_secs(10);

/// The audit log of a cluster.
#[derive(Debug)]
pub struct Audit {
    log: PathBuf,
    admin: Kubectl,
}

/// One write; a text is empty where the request had none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// Plural, as in `secrets`.
    pub resource: String,
    /// As in `status`.
    pub subresource: String,
    /// Empty for objects of the cluster.
    pub namespace: String,
    /// The object's name; empty when the server chose it.
    pub name: String,
    /// Who asked, as in `system:serviceaccount:NAMESPACE:NAME`.
    pub user: String,
    /// The status the server answered with.
    pub code: u16,
    /// Path and query of the request.
    pub uri: String,
    /// When the request came, as the server writes it.
    pub time: String,
}

impl Audit {
    pub(super) fn new(log: PathBuf, admin: Kubectl) -> Self {
        Self { log, admin }
    }

    /// All writes of `user` in `namespace` so far, refused ones too, in the order of the log.
    ///
    /// Whatever was answered before the call is in it: a write of our own marks the place up to which the log is
    /// read, and is waited for.
    ///
    /// # Errors
    /// The log cannot be read, or the mark does not appear.
    pub fn writes(&self, namespace: &str, user: &str) -> Result<Vec<AuditEntry>> {
        let of_interest = |entry: &AuditEntry| entry.namespace == namespace && entry.user == user;
        Ok(self.all()?.into_iter().filter(of_interest).collect())
    }

    /// All writes of everybody so far.
    ///
    /// # Errors
    /// As [`writes`](Self::writes).
    pub fn all(&self) -> Result<Vec<AuditEntry>> {
        let mark = self.mark()?;
        wait::until(DEADLINE, "the audit log to catch up", || {
            let entries = self.read()?;
            let place = entries.iter().position(|entry| entry.uri == mark);
            Ok(place.map(|place| entries[..place].to_vec()))
        })
    }

    /// Asks the server who we are: a `create` that stores nothing.
    fn mark(&self) -> Result<String> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let uri = format!(
            "/apis/authentication.k8s.io/v1/selfsubjectreviews?fieldManager=lacre-mark-{process}-{number}"
        );
        let body = r#"{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}"#;
        self.admin.tool().args(["create", "--raw", &uri, "-f", "-"]).stdin(body).run()?.success()?;
        Ok(uri)
    }

    fn read(&self) -> Result<Vec<AuditEntry>> {
        let log =
            fs::read_to_string(&self.log).with_context(|| format!("cannot read {}", self.log.display()))?;
        // The last line may be half written.
        let complete = log.rfind('\n').map_or("", |end| &log[..end]);
        complete.lines().map(|line| Ok(entry(&serde_json::from_str(line)?))).collect()
    }
}

fn entry(event: &Value) -> AuditEntry {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = &event["objectRef"];
    let code = event["responseStatus"]["code"].as_u64();
    AuditEntry {
        verb: text(&event["verb"]),
        group: text(&object["apiGroup"]),
        resource: text(&object["resource"]),
        subresource: text(&object["subresource"]),
        namespace: text(&object["namespace"]),
        name: text(&object["name"]),
        user: text(&event["user"]["username"]),
        code: code.and_then(|code| u16::try_from(code).ok()).unwrap_or_default(),
        uri: text(&event["requestURI"]),
        time: text(&event["requestReceivedTimestamp"]),
    }
}

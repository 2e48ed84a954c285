//! One controller works at a time: whoever holds the Lease.
//!
//! Guarantees: a holder that cannot renew stops before anyone else may start, because it gives up after two thirds of
//! the lease's length, and others wait for the whole of it after the last change they saw, each by its own clock.
//! Assumes that clocks run at about the same speed, not that they agree. A write that was under way when the lease went
//! may still arrive: applies are the same whoever sends them, so that harms nothing.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};

/// Name of the Lease.
pub const LEASE: &str = "lacre-controller";

/// How leases are held.
#[derive(Clone, Debug)]
pub struct LeaseOptions {
    /// How long a lease holds without being renewed.
    pub duration: Duration,
    /// How often it is renewed, and looked at by those who wait.
    pub interval: Duration,
}

/// A candidate, and then the holder.
pub struct Leader {
    leases: Api<Lease>,
    holder: String,
    options: LeaseOptions,
    seen: Option<Seen>,
}

/// The last change of the Lease, and when it was seen.
struct Seen {
    version: Option<String>,
    at: Instant,
}

impl Leader {
    /// A candidate called `holder`, which no other candidate may be called.
    pub fn new(client: Client, namespace: &str, holder: String, options: LeaseOptions) -> Self {
        Self { leases: Api::namespaced(client, namespace), holder, options, seen: None }
    }

    /// Waits until the lease is held.
    pub async fn acquire(&mut self) {
        loop {
            match tokio::time::timeout(self.options.duration, self.attempt()).await {
                Ok(Ok(true)) => return,
                Ok(Ok(false)) => {}
                Ok(Err(error)) => tracing::warn!(error = %describe(&error), "the lease cannot be taken"),
                Err(_) => tracing::warn!("the lease cannot be taken: no answer"),
            }
            tokio::time::sleep(self.options.interval).await;
        }
    }

    /// Renews the lease until it is lost.
    pub async fn keep(&mut self) {
        let mut renewed = Instant::now();
        while renewed.elapsed() < self.options.duration * 2 / 3 {
            tokio::time::sleep(self.options.interval).await;
            let began = Instant::now();
            // An attempt that hangs must not outlive the right to work.
            let left = (self.options.duration * 2 / 3).saturating_sub(renewed.elapsed());
            match tokio::time::timeout(left, self.attempt()).await {
                Ok(Ok(true)) => renewed = began,
                Ok(Ok(false)) => return,
                Ok(Err(error)) => tracing::warn!(error = %describe(&error), "the lease could not be renewed"),
                Err(_) => {}
            }
        }
    }

    /// Gives the lease back, so that the next candidate need not wait for its end. Does not wait long for an answer.
    pub async fn release(&mut self) {
        if tokio::time::timeout(self.options.interval, self.give_back()).await.is_err() {
            tracing::warn!("the lease could not be given back: no answer");
        }
    }

    async fn give_back(&mut self) {
        let Ok(Some(mut lease)) = self.leases.get_opt(LEASE).await else { return };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(&self.holder) {
            return;
        }
        spec.holder_identity = None;
        if let Err(error) = self.leases.replace(LEASE, &PostParams::default(), &lease).await {
            tracing::warn!(error = %describe(&error), "the lease could not be given back");
        }
    }

    /// Takes or renews the lease, if it is free, ours or over. The resource version lets one candidate win.
    async fn attempt(&mut self) -> kube::Result<bool> {
        let Some(mut lease) = self.leases.get_opt(LEASE).await? else {
            let metadata = ObjectMeta { name: Some(LEASE.to_owned()), ..ObjectMeta::default() };
            let spec = Some(self.held_now(None));
            let lease = Lease { metadata, spec };
            return won(self.leases.create(&PostParams::default(), &lease).await);
        };
        if !self.may_take(&lease, Instant::now()) {
            return Ok(false);
        }
        lease.spec = Some(self.held_now(lease.spec.as_ref()));
        won(self.leases.replace(LEASE, &PostParams::default(), &lease).await)
    }

    fn may_take(&mut self, lease: &Lease, now: Instant) -> bool {
        let spec = lease.spec.as_ref();
        let holder = spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
        if holder.is_empty() || holder == self.holder {
            return true;
        }
        let version = &lease.metadata.resource_version;
        let seen = self.seen.get_or_insert_with(|| Seen { version: version.clone(), at: now });
        if seen.version != *version {
            *seen = Seen { version: version.clone(), at: now };
        }
        let length = spec.and_then(|spec| u64::try_from(spec.lease_duration_seconds?).ok());
        now.saturating_duration_since(seen.at) > length.map_or(self.options.duration, Duration::from_secs)
    }

    fn held_now(&self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let now = Some(MicroTime(Timestamp::now()));
        let ours = before.is_some_and(|spec| spec.holder_identity.as_deref() == Some(&self.holder));
        let before = before.cloned().unwrap_or_default();
        LeaseSpec {
            acquire_time: if ours { before.acquire_time } else { now.clone() },
            holder_identity: Some(self.holder.clone()),
            // Rounded up: a length of 0 is refused, and a shorter one would promise less than we keep.
            lease_duration_seconds: i32::try_from(self.options.duration.as_millis().div_ceil(1000)).ok(),
            lease_transitions: Some(before.lease_transitions.unwrap_or_default() + i32::from(!ours)),
            renew_time: now,
            ..LeaseSpec::default()
        }
    }
}

/// Whether a write made us the holder: a conflict means that another candidate was faster.
fn won(answer: kube::Result<Lease>) -> kube::Result<bool> {
    match answer {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

fn describe(error: &kube::Error) -> String {
    crate::error::Failure::from_api("the lease", error).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: &str, version: &str) -> Lease {
        Lease {
            metadata: ObjectMeta { resource_version: Some(version.to_owned()), ..ObjectMeta::default() },
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                lease_duration_seconds: Some(15),
                ..LeaseSpec::default()
            }),
        }
    }

    fn leader() -> Leader {
        let options = LeaseOptions { duration: Duration::from_secs(15), interval: Duration::from_secs(5) };
        let uri = "http://127.0.0.1:1".parse().unwrap();
        let client = Client::try_from(kube::Config::new(uri)).unwrap();
        Leader::new(client, "lacre-system", "me".to_owned(), options)
    }

    #[tokio::test]
    async fn a_free_lease_and_our_own_may_be_taken_at_once() {
        let now = Instant::now();
        assert!(leader().may_take(&lease("", "1"), now));
        assert!(leader().may_take(&lease("me", "1"), now));
    }

    #[tokio::test]
    async fn another_holders_lease_may_be_taken_after_its_length_without_a_change() {
        let (mut leader, now) = (leader(), Instant::now());
        let at = |seconds| now + Duration::from_secs(seconds);
        assert!(!leader.may_take(&lease("other", "1"), now));
        assert!(!leader.may_take(&lease("other", "1"), at(14)));
        assert!(!leader.may_take(&lease("other", "2"), at(16)), "it was renewed");
        assert!(!leader.may_take(&lease("other", "2"), at(30)));
        assert!(leader.may_take(&lease("other", "2"), at(32)));
    }

    #[tokio::test]
    async fn a_takeover_is_counted_and_a_renewal_is_not() {
        let leader = leader();
        let taken = leader.held_now(lease("other", "1").spec.as_ref());
        assert_eq!(taken.lease_transitions, Some(1));
        let renewed = leader.held_now(Some(&taken));
        assert_eq!((renewed.lease_transitions, renewed.acquire_time), (Some(1), taken.acquire_time));
    }
}

//! What the loops reconcile with, made from the flags.

use std::sync::Arc;

use kube::Client;
use kube::runtime::events::{Recorder, Reporter as EventReporter};
use lacre_crypto::object::sealed_secret::MissingKey;
use tokio::sync::Semaphore;

use super::{NAME, Shared, unique_name};
use crate::args::Args;
use crate::args::sealed::TemplateMissingKey;
use crate::keyring::entries::EntryOptions;
use crate::keyring::{KeyOptions, Keyring};
use crate::memory::{Backoff, Memory};
use crate::metrics::Metrics;
use crate::policy::Policy;
use crate::reconcile::Context;
use crate::report::Reporter;
use crate::sealed;

/// For EncryptedSecrets.
pub(super) fn context(args: &Args, client: Client, namespace: String, metrics: Arc<Metrics>) -> Context {
    let keyring = Arc::new(Keyring::new(client.clone(), key_options(args)));
    let reporter = EventReporter { controller: NAME.to_owned(), instance: Some(unique_name()) };
    Context {
        policy: Policy {
            own_namespace: namespace,
            allow_own_namespace: args.allow_own_namespace,
            allowed_types: args.allow_type.clone(),
            allowed_template_keys: args.allow_template_key.clone(),
            max_scope: args.max_scope,
        },
        cluster_name: args.cluster_name.clone(),
        keyring,
        reporter: Reporter {
            client: client.clone(),
            recorder: Recorder::new(client.clone(), reporter),
            metrics: metrics.clone(),
        },
        client,
        metrics,
        memory: Memory::default(),
        backoff: Backoff { delay_min: args.retry_delay, delay_max: args.retry_delay_max },
        resync: args.resync,
    }
}

/// For SealedSecrets.
pub(super) fn sealed_context(shared: &Shared) -> sealed::reconcile::Context {
    let (args, client) = (&shared.args.sealed, shared.context.client.clone());
    let metrics = shared.context.metrics.clone();
    sealed::reconcile::Context {
        keys: shared.keys.clone(),
        rules: sealed::rules::Rules {
            policy: shared.context.policy.clone(),
            restrict: args.restrict_sealed_secrets,
            key_prefix: args.key_prefix.clone(),
        },
        options: sealed::Options {
            accept_deprecated_v1_data: args.accept_deprecated_v1_data,
            old_gc_behavior: args.old_gc_behavior,
            missing_key: match args.template_missing_key {
                TemplateMissingKey::Error => MissingKey::Error,
                TemplateMissingKey::Zero => MissingKey::Zero,
            },
            drift: args.drift,
        },
        reporter: sealed::report::Reporter {
            client: client.clone(),
            events: sealed::events::Events::new(client.clone()),
            metrics: metrics.clone(),
            update_status: args.update_status,
        },
        client,
        metrics,
        memory: Memory::default(),
        backoff: shared.context.backoff,
        resync: shared.args.resync,
        permits: Semaphore::new(shared.args.concurrency.into()),
    }
}

fn key_options(args: &Args) -> KeyOptions {
    KeyOptions {
        entries: EntryOptions {
            enable_pgp: args.enable_pgp,
            aws_kms_endpoint: args.aws_kms_endpoint.clone(),
            key_service_deadline: args.key_service_deadline,
        },
        ambient_namespaces: args.ambient_cloud_namespace.iter().cloned().collect(),
        cache_entries_max: args.key_cache,
    }
}

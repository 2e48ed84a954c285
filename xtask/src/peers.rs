//! The real programs, a file each: found, or started and stopped.
//!
//! Programs that run once are types with a `tool()` ([`process::Tool`](crate::process::Tool)); servers are types that
//! live as long as their value. Servers that are dear to start have `shared()`: one per test binary, or for the
//! cluster one per run of `cargo xtask test`.

use crate::install::Component;

pub mod age;
pub mod argocd_lua;
pub mod audit;
pub mod bao;
pub mod clouds;
pub mod cluster;
pub mod etcd;
pub mod fake_gcs;
pub mod gpg;
pub mod helm;
pub mod kube_apiserver;
pub mod kube_controller_manager;
pub mod kubectl;
pub mod moto;
pub mod pod;
pub mod promtool;
pub mod sealed_secrets;
pub mod sops;
pub mod ssh_keygen;

/// Every component, the cheap ones first.
pub const ALL: [&Component; 20] = [
    &gpg::COMPONENT,
    &age::COMPONENT,
    &ssh_keygen::COMPONENT,
    &promtool::COMPONENT,
    &argocd_lua::COMPONENT,
    &age::V1_3,
    &sops::V3_11,
    &moto::COMPONENT,
    &bao::COMPONENT,
    &etcd::COMPONENT,
    &sops::V3_13,
    &sops::LIBRARY,
    &fake_gcs::COMPONENT,
    &kubectl::COMPONENT,
    &helm::COMPONENT,
    &sealed_secrets::KUBESEAL,
    &sealed_secrets::CONTROLLER,
    &sealed_secrets::SUITE,
    &kube_apiserver::COMPONENT,
    &kube_controller_manager::COMPONENT,
];

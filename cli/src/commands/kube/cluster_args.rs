//! What is typed about the cluster and the controller in it, the same for all commands that ask them.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cluster::controller::{Controller, DEFAULT_NAME, DEFAULT_NAMESPACE};
use crate::cluster::{Cluster, ClusterOptions};
use crate::error::CommandError;

/// Which cluster, and which controller in it.
#[derive(Args, Clone, Debug)]
pub(crate) struct ClusterArgs {
    /// Use this kubeconfig instead of those of `KUBECONFIG` and the home folder.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Use this context of the kubeconfig instead of its current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// Ask as this user.
    #[arg(long = "as", value_name = "USER")]
    impersonate: Option<String>,
    /// Longest time for one request, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    request_timeout: u64,
    /// Name of the controller's Service.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAME)]
    #[arg(env = "SEALED_SECRETS_CONTROLLER_NAME", hide_env_values = true)]
    controller_name: String,
    /// Namespace of the controller and its keys.
    #[arg(long, value_name = "NAME", default_value = DEFAULT_NAMESPACE)]
    #[arg(env = "SEALED_SECRETS_CONTROLLER_NAMESPACE", hide_env_values = true)]
    pub(super) controller_namespace: String,
}

impl ClusterArgs {
    /// What was typed, as the cluster's module takes it.
    pub(super) fn options(&self) -> ClusterOptions {
        ClusterOptions {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            impersonate: self.impersonate.clone(),
            request_timeout: Some(Duration::from_secs(self.request_timeout)),
            ..ClusterOptions::default()
        }
    }

    /// The cluster.
    pub(super) fn reach(&self) -> Result<Cluster, CommandError> {
        Cluster::reach(&self.options())
    }

    /// The controller in it.
    pub(super) fn controller<'c>(&self, cluster: &'c Cluster) -> Result<Controller<'c>, CommandError> {
        Controller::find(cluster, &self.controller_namespace, &self.controller_name)
    }
}

//! helm with a home of its own.

use std::path::Path;

use anyhow::Result;

use crate::install::{Component, Source};
use crate::process::Tool;
use crate::scratch::Scratch;
use crate::versions;

/// Built from `xtask/peers/helm`.
pub const COMPONENT: Component = Component {
    name: "helm",
    version: versions::HELM,
    source: Source::Go { folder: "helm", package: "helm.sh/helm/v3/cmd/helm" },
    program: "helm",
};

/// An installed helm, whose cache and configuration are gone after the drop.
#[derive(Debug)]
pub struct Helm {
    home: Scratch,
}

impl Helm {
    /// Finds it.
    ///
    /// # Errors
    /// It is not installed.
    pub fn new() -> Result<Self> {
        COMPONENT.path()?;
        Ok(Self { home: Scratch::new("lacre-helm-", "true")? })
    }

    /// A run of it without a cluster.
    ///
    /// # Errors
    /// It is not installed.
    pub fn tool(&self) -> Result<Tool> {
        let home = self.home.path();
        let places = ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HOME"];
        Ok(Tool::new(COMPONENT.path()?).envs(places.map(|name| (name, home))))
    }

    /// A run of it on the cluster of a kubeconfig.
    ///
    /// # Errors
    /// It is not installed.
    pub fn on(&self, kubeconfig: &Path) -> Result<Tool> {
        Ok(self.tool()?.env("KUBECONFIG", kubeconfig))
    }
}

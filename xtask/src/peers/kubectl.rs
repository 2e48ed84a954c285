//! kubectl with one kubeconfig.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;

use crate::install::{Component, Source};
use crate::process::{Finished, Tool};
use crate::versions;

/// Built from `xtask/peers/kubernetes`.
pub const COMPONENT: Component = Component {
    name: "kubectl",
    version: versions::KUBERNETES,
    source: Source::Go { folder: "kubernetes", package: "k8s.io/kubernetes/cmd/kubectl" },
    program: "kubectl",
};

/// kubectl as one user of one cluster.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubectl {
    /// kubectl with this kubeconfig.
    ///
    /// # Errors
    /// It is not installed.
    pub fn new(kubeconfig: &Path) -> Result<Self> {
        Ok(Self { program: COMPONENT.path()?, kubeconfig: kubeconfig.to_path_buf() })
    }

    /// The binary.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Runs it; gives standard output.
    ///
    /// # Errors
    /// It fails; with what it wrote.
    pub fn run(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Vec<u8>> {
        self.try_run(arguments)?.success()
    }

    /// Runs it; a failure is part of the answer.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn try_run(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Finished> {
        self.tool().args(arguments).run()
    }

    /// Runs it with `--output=json` and reads what it says.
    ///
    /// # Errors
    /// It fails.
    pub fn get_json(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<Value> {
        Ok(serde_json::from_slice(&self.tool().args(arguments).arg("--output=json").run()?.success()?)?)
    }

    /// Client-side apply of a manifest.
    ///
    /// # Errors
    /// It fails.
    pub fn apply(&self, manifest: &str) -> Result<()> {
        self.tool().args(["apply", "-f", "-"]).stdin(manifest).run()?.success().map(drop)
    }

    /// Server-side apply of a manifest.
    ///
    /// # Errors
    /// It fails.
    pub fn apply_server_side(&self, manifest: &str, field_manager: &str) -> Result<()> {
        let manager = format!("--field-manager={field_manager}");
        self.tool()
            .args(["apply", "--server-side", &manager, "-f", "-"])
            .stdin(manifest)
            .run()?
            .success()
            .map(drop)
    }

    /// Installs what several tests of one cluster install, each in its own version: the last one counts.
    ///
    /// # Errors
    /// It fails.
    pub fn install(&self, manifest: &str) -> Result<()> {
        let arguments = ["apply", "--server-side", "--force-conflicts", "--field-manager=tests", "-f", "-"];
        self.tool().args(arguments).stdin(manifest).run()?.success().map(drop)
    }

    /// A run of it; its discovery cache lies beside the kubeconfig.
    pub fn tool(&self) -> Tool {
        let cache = self.kubeconfig.with_extension("kube-cache");
        Tool::new(&self.program).env("KUBECONFIG", &self.kubeconfig).env("KUBECACHEDIR", cache)
    }
}

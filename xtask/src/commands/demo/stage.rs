//! The cluster that a demo plays on.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::http;
use crate::peers::cluster::Cluster;
use crate::process::{self, Server, start_on_free_port};
use crate::root;

/// What a cluster is given, in this order: files of `controller/deploy`.
const MANIFESTS: [&str; 5] = [
    "crd/encryptedsecrets.yaml",
    "crd/sealedsecrets.yaml",
    "base/controller.yaml",
    "base/rbac.yaml",
    "cluster-wide/rbac.yaml",
];
/// Where those put the controller, and as whom.
const NAMESPACE: &str = "lacre-system";
const ACCOUNT: &str = "lacre-controller";

/// A cluster with our controller at work in it.
#[derive(Debug)]
pub struct ClusterStage {
    // Stopped before the server it talks to.
    _controller: Server,
    cluster: Cluster,
}

impl ClusterStage {
    /// Applies what is shipped and starts the controller as the service account that it is shipped with.
    ///
    /// # Errors
    /// A manifest is refused, or the controller does not become ready.
    pub fn start(cluster: Cluster, controller: &Path) -> Result<Self> {
        for manifest in MANIFESTS {
            let path = root().join("controller/deploy").join(manifest);
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            cluster.admin().apply_server_side(&text, "demo")?;
        }
        for definition in &MANIFESTS[..2] {
            let wait =
                cluster.admin().tool().args(["wait", "--for=condition=Established", "--timeout=30s", "-f"]);
            wait.arg(root().join("controller/deploy").join(definition)).run()?.success()?;
        }
        let account = cluster.sign_in(NAMESPACE, ACCOUNT)?;
        let command = |port: u16| {
            let mut command = process::command(controller, ["--namespace", NAMESPACE, "--kubeconfig"]);
            command.arg(&account.kubeconfig).arg(format!("--listen=127.0.0.1:{port}"));
            command
        };
        let ready = |port: u16| {
            http::request(port, "GET", "/readyz", &[], "").is_ok_and(|answer| answer.status == 200)
        };
        let log = cluster.folder().join("lacre-controller.log");
        let (controller, _) = start_on_free_port("lacre-controller", &log, command, ready)?;
        Ok(Self { _controller: controller, cluster })
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Lets `kubectl` in that shell talk to the cluster.
    pub(super) fn prepare(&self, shell: &mut Command) -> Result<()> {
        let path = shell.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, value)| value);
        let mut folders = vec![folder(self.cluster.admin().program())?];
        folders.extend(path.map(std::env::split_paths).into_iter().flatten());
        shell.env("PATH", std::env::join_paths(folders)?).env("KUBECONFIG", self.cluster.admin_kubeconfig());
        Ok(())
    }
}

/// `PATH` with the folders of these programs before our own.
pub(super) fn path_with(programs: &[&Path]) -> Result<OsString> {
    let mut folders = programs.iter().map(|program| folder(program)).collect::<Result<Vec<_>>>()?;
    folders.extend(std::env::var_os("PATH").iter().flat_map(std::env::split_paths));
    Ok(std::env::join_paths(folders)?)
}

fn folder(program: &Path) -> Result<PathBuf> {
    Ok(program.parent().context("a program without folder")?.to_path_buf())
}

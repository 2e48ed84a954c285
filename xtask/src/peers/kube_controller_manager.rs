//! The real controller manager, for garbage collection and the end of namespaces.

use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::install::{Component, Source};
use crate::process::{self, Server, start_on_free_port};
use crate::versions;

/// Built from `xtask/peers/kubernetes`.
pub const COMPONENT: Component = Component {
    name: "kube-controller-manager",
    version: versions::KUBERNETES,
    source: Source::Go { folder: "kubernetes", package: "k8s.io/kubernetes/cmd/kube-controller-manager" },
    program: "kube-controller-manager",
};

/// What it writes once it watches all kinds of objects.
const COLLECTING: &str = "Proceeding to collect garbage";

/// A running controller manager.
#[derive(Debug)]
pub struct ControllerManager {
    _server: Server,
}

impl ControllerManager {
    /// Starts one as the administrator of `kubeconfig`, with its files in `folder`.
    ///
    /// # Errors
    /// It is not installed, or does not become ready.
    pub fn start(folder: &Path, kubeconfig: &Path) -> Result<Self> {
        let program = COMPONENT.path()?;
        let command = |port: u16| {
            let mut command =
                process::command(&program, ["--bind-address=127.0.0.1", "--leader-elect=false"]);
            command.arg("--controllers=garbage-collector-controller,namespace-controller");
            command.arg(format!("--secure-port={port}"));
            // Without the kubeconfigs for delegated authentication, which would need a certificate authority for clients.
            command.arg(format!("--kubeconfig={}", kubeconfig.display()));
            command.arg(format!("--cert-dir={}", folder.join("controller-manager-certs").display()));
            command
        };
        let log = folder.join("kube-controller-manager.log");
        // Its health says nothing of the garbage collector, which is what it is here for.
        let ready = |_| fs::read_to_string(&log).is_ok_and(|text| text.contains(COLLECTING));
        let (server, _) = start_on_free_port("kube-controller-manager", &log, command, ready)?;
        Ok(Self { _server: server })
    }
}

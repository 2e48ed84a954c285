//! The real Kubernetes API server, with role-based access control and an audit log of writes.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::json;

use super::kubectl::Kubectl;
use crate::install::{Component, Source};
use crate::process::{self, Server, start_on_free_port};
use crate::versions;

/// Built from `xtask/peers/kubernetes`.
pub const COMPONENT: Component = Component {
    name: "kube-apiserver",
    version: versions::KUBERNETES,
    source: Source::Go { folder: "kubernetes", package: "k8s.io/kubernetes/cmd/kube-apiserver" },
    program: "kube-apiserver",
};

/// The administrator's token. The server listens on loopback and holds nothing of worth.
const ADMIN_TOKEN: &str = "lacre-test-admin";
/// Signs the tokens of service accounts.
const SERVICE_ACCOUNT_KEY: &str = include_str!("../../../testdata/keys/service-account.pem");
/// Every write and nothing else, once, when it is answered.
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: Metadata
    verbs: [create, update, patch, delete, deletecollection]
";

/// The files of an API server, all in one folder: enough to use a server that another process started.
#[derive(Debug)]
pub struct Files {
    folder: PathBuf,
}

impl Files {
    /// Those in `folder`.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf() }
    }

    /// The administrator's kubeconfig.
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.folder.join("admin.kubeconfig")
    }

    /// The server's own certificate, which is its own authority.
    pub fn authority(&self) -> PathBuf {
        self.folder.join("certs/apiserver.crt")
    }

    /// The audit log, an event per line.
    pub fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }

    /// The server's log.
    pub fn log(&self) -> PathBuf {
        self.folder.join("kube-apiserver.log")
    }

    /// Writes a kubeconfig for `token` to `name` and gives its path.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn kubeconfig(&self, name: &str, server: &str, token: &str) -> Result<PathBuf> {
        let cluster = json!({"server": server, "certificate-authority": self.authority()});
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "test", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "current-context": "test",
        });
        let path = self.folder.join(name);
        fs::write(&path, format!("{config:#}"))?;
        Ok(path)
    }
}

/// A running API server.
#[derive(Debug)]
pub struct ApiServer {
    _server: Server,
    port: u16,
    address: String,
}

impl ApiServer {
    /// Starts one on `etcd` with its files in `folder`, and waits until its built-in roles are there.
    ///
    /// # Errors
    /// It is not installed, or does not become ready.
    pub fn start(folder: &Path, etcd: &str) -> Result<Self> {
        let files = Files::new(folder);
        fs::write(folder.join("audit-policy.yaml"), AUDIT_POLICY)?;
        fs::write(folder.join("service-account.pem"), SERVICE_ACCOUNT_KEY)?;
        fs::write(folder.join("tokens.csv"), format!("{ADMIN_TOKEN},admin,admin,system:masters\n"))?;
        let program = COMPONENT.path()?;
        let command = |port: u16| process::command(&program, arguments(folder, etcd, port));
        let (server, port) =
            start_on_free_port(COMPONENT.name, &files.log(), command, |port| ready(&files, port))?;
        Ok(Self { _server: server, port, address: address(port) })
    }

    /// Starts one where an earlier one was stopped: on its port and with its files.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_again(folder: &Path, etcd: &str, port: u16) -> Result<Self> {
        let files = Files::new(folder);
        let command = process::command(&COMPONENT.path()?, arguments(folder, etcd, port));
        let server = process::start_again(COMPONENT.name, &files.log(), &command, || ready(&files, port))?;
        Ok(Self { _server: server, port, address: address(port) })
    }

    /// Its port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `https://127.0.0.1:PORT`
    pub fn address(&self) -> &str {
        &self.address
    }
}

fn address(port: u16) -> String {
    format!("https://127.0.0.1:{port}")
}

fn ready(files: &Files, port: u16) -> bool {
    let kubeconfig = files.kubeconfig("admin.kubeconfig", &address(port), ADMIN_TOKEN);
    let admin = kubeconfig.and_then(|path| Kubectl::new(&path));
    admin.and_then(|kubectl| kubectl.run(["get", "--raw", "/readyz"])).is_ok()
}

fn arguments(folder: &Path, etcd: &str, port: u16) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    vec![
        format!("--etcd-servers={etcd}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", file("certs")),
        "--authorization-mode=RBAC".to_owned(),
        format!("--token-auth-file={}", file("tokens.csv")),
        "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
        format!("--service-account-key-file={}", file("service-account.pem")),
        format!("--service-account-signing-key-file={}", file("service-account.pem")),
        "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        // It would wait for a controller to make default service accounts that nothing here uses.
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        format!("--audit-policy-file={}", file("audit-policy.yaml")),
        format!("--audit-log-path={}", file("audit.log")),
        "--audit-log-mode=blocking-strict".to_owned(),
    ]
}

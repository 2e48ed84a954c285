//! A Kubernetes control plane: etcd, API server, controller manager.
//!
//! Starting one costs seconds, so all tests share one: that of `cargo xtask test`, which hands its folder on in
//! [`VARIABLE`], or else one per test binary. Each test works in a [namespace](Cluster::namespace) of its own and,
//! where rights matter, as a [service account](Cluster::service_account).

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, anyhow};

use super::audit::Audit;
use super::etcd::Etcd;
use super::kube_apiserver::{ApiServer, Files};
use super::kube_controller_manager::ControllerManager;
use super::kubectl::Kubectl;
use crate::output;
use crate::scratch::Scratch;

/// The environment variable with the folder of a running cluster.
pub const VARIABLE: &str = "LACRE_TEST_CLUSTER";

/// The file in that folder with the server's address.
const ADDRESS_FILE: &str = "server";

/// A running cluster, or the use of one that another process runs.
#[derive(Debug)]
pub struct Cluster {
    // Dropped from the top: the API server does not always end once etcd is gone.
    running: Option<Running>,
    files: Files,
    folder: PathBuf,
    server: String,
    admin: Kubectl,
}

#[derive(Debug)]
struct Running {
    _controller_manager: ControllerManager,
    // None while it is stopped.
    api_server: Option<ApiServer>,
    etcd: Etcd,
    _folder: Scratch,
}

/// A service account with a token of its own.
#[derive(Clone, Debug)]
pub struct ServiceAccount {
    /// As in the audit log and in role bindings: `system:serviceaccount:NAMESPACE:NAME`.
    pub user: String,
    /// A kubeconfig that holds the token.
    pub kubeconfig: PathBuf,
    /// The token, valid for a day.
    pub token: String,
}

/// The shared cluster, in the hands of one test: shows the API server's log if that test panics.
#[derive(Debug)]
pub struct SharedCluster(&'static Cluster);

const NOT_OURS: &str = "another process runs this cluster: start one to break it";

/// A failed start is kept, too: the next test would only wait for the same.
static SHARED: OnceLock<Result<Cluster, String>> = OnceLock::new();

impl Cluster {
    /// The cluster of this run.
    ///
    /// # Errors
    /// As [`start`](Self::start); or [`VARIABLE`] names a folder without a cluster.
    pub fn shared() -> Result<SharedCluster> {
        let started = SHARED.get_or_init(|| {
            let cluster = match std::env::var_os(VARIABLE) {
                Some(folder) => Self::attach(Path::new(&folder)),
                None => Self::start(),
            };
            cluster.map_err(|error| format!("{error:#}"))
        });
        started.as_ref().map(SharedCluster).map_err(|error| anyhow!("{error}"))
    }

    /// Starts one and waits until it serves.
    ///
    /// # Errors
    /// A component is not installed or does not become ready.
    pub fn start() -> Result<Self> {
        let scratch = Scratch::new("lacre-cluster-", "true")?;
        let folder = scratch.path().to_path_buf();
        let etcd = Etcd::start(&folder)?;
        let api_server = ApiServer::start(&folder, etcd.address())?;
        fs::write(folder.join(ADDRESS_FILE), api_server.address())?;
        let mut cluster = Self::attach(&folder)?;
        let controller_manager = ControllerManager::start(&folder, cluster.admin_kubeconfig().as_path())?;
        cluster.running = Some(Running {
            _controller_manager: controller_manager,
            api_server: Some(api_server),
            etcd,
            _folder: scratch,
        });
        Ok(cluster)
    }

    /// Uses one that another process runs with its files in `folder`.
    ///
    /// # Errors
    /// There is none.
    pub fn attach(folder: &Path) -> Result<Self> {
        let files = Files::new(folder);
        let server = fs::read_to_string(folder.join(ADDRESS_FILE))
            .with_context(|| format!("no cluster in {}", folder.display()))?;
        let admin = Kubectl::new(&files.admin_kubeconfig())?;
        Ok(Self { running: None, files, folder: folder.to_path_buf(), server, admin })
    }

    /// The folder with all its files and logs.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// `https://127.0.0.1:PORT`
    pub fn server(&self) -> &str {
        &self.server
    }

    /// kubectl as an administrator.
    pub fn admin(&self) -> &Kubectl {
        &self.admin
    }

    /// The administrator's kubeconfig.
    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.files.admin_kubeconfig()
    }

    /// The certificate that its clients trust.
    pub fn authority(&self) -> PathBuf {
        self.files.authority()
    }

    /// The store behind it.
    ///
    /// # Errors
    /// Another process runs the cluster.
    pub fn store(&self) -> Result<&Etcd> {
        Ok(&self.running.as_ref().context(NOT_OURS)?.etcd)
    }

    /// Does something while there is no API server, then starts it again under its address.
    ///
    /// # Errors
    /// That of `act`; another process runs the cluster; or the server does not become ready.
    pub fn without_server<T>(&mut self, act: impl FnOnce(&Etcd) -> Result<T>) -> Result<T> {
        let running = self.running.as_mut().context(NOT_OURS)?;
        let port = running.api_server.take().context("the API server did not start again")?.port();
        let result = act(&running.etcd);
        running.api_server = Some(ApiServer::start_again(&self.folder, running.etcd.address(), port)?);
        result
    }

    /// The audit log.
    pub fn audit(&self) -> Audit {
        Audit::new(self.files.audit_log(), self.admin.clone())
    }

    /// Makes a namespace that no other test has; gives its name, which starts with `prefix`.
    ///
    /// # Errors
    /// The server refuses, for instance because `prefix` is not a DNS label.
    pub fn namespace(&self, prefix: &str) -> Result<String> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        // Several test binaries may share the cluster: the process id tells them apart.
        let name = format!("{prefix}-{}-{number}", std::process::id());
        self.admin.run(["create", "namespace", &name])?;
        Ok(name)
    }

    /// Makes a service account, without any rights, and a kubeconfig for it.
    ///
    /// # Errors
    /// The server refuses.
    pub fn service_account(&self, namespace: &str, name: &str) -> Result<ServiceAccount> {
        self.admin.run(["create", "serviceaccount", name, "--namespace", namespace])?;
        self.sign_in(namespace, name)
    }

    /// A token and a kubeconfig for a service account that exists.
    ///
    /// # Errors
    /// The server refuses.
    pub fn sign_in(&self, namespace: &str, name: &str) -> Result<ServiceAccount> {
        let token = self.admin.run(["create", "token", name, "--namespace", namespace, "--duration=24h"])?;
        let token = String::from_utf8(token)?.trim().to_owned();
        let kubeconfig =
            self.files.kubeconfig(&format!("{namespace}.{name}.kubeconfig"), &self.server, &token)?;
        Ok(ServiceAccount { user: format!("system:serviceaccount:{namespace}:{name}"), kubeconfig, token })
    }
}

impl Deref for SharedCluster {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        self.0
    }
}

impl Drop for SharedCluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            output::show_log("kube-apiserver", &self.0.files.log());
        }
    }
}

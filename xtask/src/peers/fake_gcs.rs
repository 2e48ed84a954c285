//! fake-gcs-server: Google Cloud Storage on loopback.

use anyhow::{Result, ensure};
use serde_json::json;

use crate::http;
use crate::install::{Component, Source};
use crate::process::{self, Server, start_on_free_port};
use crate::scratch::Scratch;
use crate::versions;

/// The server.
pub const COMPONENT: Component = Component {
    name: "fake-gcs",
    version: versions::FAKE_GCS,
    source: Source::Go { folder: "fake-gcs", package: "github.com/fsouza/fake-gcs-server" },
    program: "fake-gcs-server",
};

/// A running server that keeps everything in memory.
#[derive(Debug)]
pub struct FakeGcs {
    _server: Server,
    _folder: Scratch,
    port: u16,
}

impl FakeGcs {
    /// Starts one.
    ///
    /// # Errors
    /// It is not installed, or does not become ready.
    pub fn start() -> Result<Self> {
        let program = COMPONENT.path()?;
        let folder = Scratch::new("lacre-fake-gcs-", "true")?;
        let command = |port: u16| {
            let port = port.to_string();
            let public = format!("127.0.0.1:{port}");
            let arguments = ["-scheme", "http", "-host", "127.0.0.1", "-port", &port, "-backend", "memory"];
            let mut command = process::command(&program, arguments);
            command.args(["-public-host", &public]).env("HOME", folder.path());
            command
        };
        let ready = |port: u16| {
            http::request(port, "GET", "/_internal/healthcheck", &[], "").is_ok_and(|a| a.status == 200)
        };
        let (server, port) =
            start_on_free_port("fake-gcs", &folder.path().join("fake-gcs.log"), command, ready)?;
        Ok(Self { _server: server, _folder: folder, port })
    }

    /// For `STORAGE_EMULATOR_HOST`.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Makes a bucket.
    ///
    /// # Errors
    /// The server refuses.
    pub fn create_bucket(&self, name: &str) -> Result<()> {
        let body = json!({ "name": name }).to_string();
        let headers = [("Content-Type", "application/json")];
        let answer = http::request(self.port, "POST", "/storage/v1/b?project=test", &headers, &body)?;
        ensure!(answer.status == 200, "bucket {name}: {} {}", answer.status, answer.body);
        Ok(())
    }

    /// The content of an object, whose `/` must be written as `%2F`.
    ///
    /// # Errors
    /// There is none.
    pub fn object(&self, bucket: &str, name: &str) -> Result<String> {
        let path = format!("/storage/v1/b/{bucket}/o/{name}?alt=media");
        let answer = http::request(self.port, "GET", &path, &[], "")?;
        ensure!(answer.status == 200, "{path}: {} {}", answer.status, answer.body);
        Ok(answer.body)
    }
}

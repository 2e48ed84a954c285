//! The key services of Google and Microsoft, as far as keys of files need them.
//!
//! Neither can be installed. What stands for them is a server that encrypts for real and checks what it is sent, behind
//! a proxy: clients call the services by their real names, over TLS. That it is faithful is shown by stock sops, whose
//! clients are the makers' own: each test lets both tools open what the other sealed.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Result, anyhow};

use super::moto;
use crate::process::{self, Server, start_on_free_port};
use crate::scratch::Scratch;

/// What the server runs, with the packages of moto, which hold a library of ciphers.
const PROGRAM: &str = include_str!("clouds.py");

/// A running server.
#[derive(Debug)]
pub struct Clouds {
    server: Server,
    folder: Scratch,
    port: u16,
}

/// A failed start is kept, too: the next test would only wait for the same.
static SHARED: OnceLock<Result<Clouds, String>> = OnceLock::new();

impl Clouds {
    /// The one of this test binary, started by whoever asks first.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn shared() -> Result<&'static Self> {
        let started = SHARED.get_or_init(|| Self::start().map_err(|error| format!("{error:#}")));
        started.as_ref().map_err(|error| anyhow!("{error}"))
    }

    /// Starts one with keys and certificates of its own.
    ///
    /// # Errors
    /// moto is not installed, or the server does not become ready.
    pub fn start() -> Result<Self> {
        let packages = moto::COMPONENT.path().and_then(|_| moto::COMPONENT.folder())?;
        let folder = Scratch::new("lacre-clouds-", "true")?;
        let authority = folder.path().join("ca.pem");
        let command = |port: u16| -> Command {
            let arguments = ["-c", PROGRAM, &port.to_string(), &folder.path().display().to_string()];
            let mut command = process::command("python3".as_ref(), arguments);
            command
                .env("PYTHONPATH", &packages)
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .env("HOME", folder.path());
            command
        };
        let ready =
            |port: u16| authority.exists() && std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        let (server, port) = start_on_free_port("clouds", &folder.path().join("clouds.log"), command, ready)?;
        Ok(Self { server, folder, port })
    }

    /// A key in GCP KMS, `a` or `b`.
    pub fn gcp_key(&self, name: &str) -> String {
        format!("projects/lacre/locations/global/keyRings/ring/cryptoKeys/{name}")
    }

    /// The key in Azure Key Vault, in its newest version.
    pub fn azure_key(&self) -> &'static str {
        "https://team.vault.azure.net/keys/k"
    }

    /// The versions of the key in Azure, the older one first.
    pub fn azure_versions(&self) -> [&'static str; 2] {
        ["00000000000000000000000000000001", "00000000000000000000000000000002"]
    }

    /// A vault that a stranger runs, who asks for tokens of the real ones.
    pub fn strange_vault(&self) -> &'static str {
        "https://team.vault.example.org"
    }

    /// GCP KMS without TLS, for those who take another address than the public one.
    pub fn gcp_endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What a program needs in its environment to reach these services and no others.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let authority: PathBuf = self.folder.path().join("ca.pem");
        vec![
            ("HTTPS_PROXY", format!("http://127.0.0.1:{}", self.port)),
            ("SSL_CERT_FILE", authority.display().to_string()),
            ("SOPS_GCP_KMS_CLIENT_TYPE", "rest".to_owned()),
            ("GOOGLE_OAUTH_ACCESS_TOKEN", "lacre-test-google-token".to_owned()),
            ("AZURE_TENANT_ID", "11111111-2222-3333-4444-555555555555".to_owned()),
            ("AZURE_CLIENT_ID", "lacre-test-client".to_owned()),
            ("AZURE_CLIENT_SECRET", "lacre-test-secret".to_owned()),
        ]
    }

    /// A person's login to Google as a file holds it.
    pub fn google_login(&self) -> &'static str {
        r#"{"type": "authorized_user", "client_id": "lacre-test-client", "client_secret": "lacre-test-secret",
            "refresh_token": "lacre-test-refresh"}"#
    }

    /// The requests so far, a line each: host, method, path, `token` or `none`, bytes, client, status.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn requests(&self) -> Result<Vec<String>> {
        let log = std::fs::read_to_string(self.server.log())?;
        Ok(log.lines().map(str::to_owned).collect())
    }
}

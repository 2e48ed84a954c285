//! moto: AWS on loopback, KMS above all, and S3.

use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::{Value, json};

use crate::http;
use crate::install::{Component, Source};
use crate::process::{self, Server, start_on_free_port};
use crate::scratch::Scratch;
use crate::versions;

/// The server and its Python packages.
pub const COMPONENT: Component =
    Component { name: "moto", version: versions::MOTO, source: Source::Pypi, program: "moto/server.py" };

/// The region of everything in it.
const REGION: &str = "us-east-1";

/// A running moto. It takes any credentials.
#[derive(Debug)]
pub struct Moto {
    _server: Server,
    _folder: Scratch,
    port: u16,
    endpoint: String,
}

/// A failed start is kept, too: the next test would only wait for the same.
static SHARED: OnceLock<Result<Moto, String>> = OnceLock::new();

impl Moto {
    /// The one of this test binary, started by whoever asks first.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn shared() -> Result<&'static Self> {
        let started = SHARED.get_or_init(|| Self::start().map_err(|error| format!("{error:#}")));
        started.as_ref().map_err(|error| anyhow!("{error}"))
    }

    /// Starts one.
    ///
    /// # Errors
    /// It is not installed, or does not become ready.
    pub fn start() -> Result<Self> {
        let packages = COMPONENT.path().and_then(|_| COMPONENT.folder())?;
        let folder = Scratch::new("lacre-moto-", "true")?;
        let command = |port: u16| -> Command {
            let port = port.to_string();
            let mut command =
                process::command("python3".as_ref(), ["-m", "moto.server", "-H", "127.0.0.1", "-p", &port]);
            command
                .env("PYTHONPATH", &packages)
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .env("HOME", folder.path());
            command
        };
        let ready = |port: u16| {
            http::request(port, "GET", "/moto-api/data.json", &[], "").is_ok_and(|a| a.status == 200)
        };
        let (server, port) = start_on_free_port("moto", &folder.path().join("moto.log"), command, ready)?;
        Ok(Self { _server: server, _folder: folder, port, endpoint: format!("http://127.0.0.1:{port}") })
    }

    /// Its address, for `AWS_ENDPOINT_URL` and the like.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Makes a symmetric KMS key; gives its ARN.
    ///
    /// # Errors
    /// moto refuses.
    pub fn create_key(&self) -> Result<String> {
        let answer = self.kms("CreateKey", &json!({}))?;
        Ok(answer["KeyMetadata"]["Arn"].as_str().context("a key without ARN")?.to_owned())
    }

    /// Calls an operation of KMS.
    ///
    /// # Errors
    /// moto refuses.
    pub fn kms(&self, operation: &str, body: &Value) -> Result<Value> {
        let target = format!("TrentService.{operation}");
        let signature = format!(
            "AWS4-HMAC-SHA256 Credential=test/20200101/{REGION}/kms/aws4_request, SignedHeaders=host, Signature=0"
        );
        let headers = [
            ("X-Amz-Target", target.as_str()),
            ("Content-Type", "application/x-amz-json-1.1"),
            ("Authorization", signature.as_str()),
        ];
        let answer = http::request(self.port, "POST", "/", &headers, &body.to_string())?;
        ensure!(answer.status == 200, "KMS {operation}: {} {}", answer.status, answer.body);
        Ok(serde_json::from_str(&answer.body)?)
    }

    /// Calls S3: the body of its answer to `method` on `/BUCKET` or `/BUCKET/KEY`.
    ///
    /// # Errors
    /// moto refuses.
    pub fn s3(&self, method: &str, path: &str) -> Result<String> {
        let signature = format!(
            "AWS4-HMAC-SHA256 Credential=test/20200101/{REGION}/s3/aws4_request, SignedHeaders=host, Signature=0"
        );
        let answer = http::request(self.port, method, path, &[("Authorization", &signature)], "")?;
        ensure!(answer.status == 200, "S3 {method} {path}: {} {}", answer.status, answer.body);
        Ok(answer.body)
    }

    /// Makes a user who may do everything in S3, and checks signatures from now on; gives the user's access key.
    ///
    /// # Errors
    /// moto refuses.
    pub fn require_signatures(&self) -> Result<(String, String)> {
        let policy =
            r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}]}"#;
        let policy: String = policy.bytes().map(|byte| format!("%{byte:02X}")).collect();
        self.iam("CreateUser", "UserName=ops")?;
        self.iam("PutUserPolicy", &format!("UserName=ops&PolicyName=all&PolicyDocument={policy}"))?;
        let made = self.iam("CreateAccessKey", "UserName=ops")?;
        let field = |name: &str| {
            let (_, rest) = made.split_once(&format!("<{name}>")).context("an access key without field")?;
            rest.split_once('<').map(|(value, _)| value.to_owned()).context("an answer cut short")
        };
        let key = (field("AccessKeyId")?, field("SecretAccessKey")?);
        let answer = http::request(self.port, "POST", "/moto-api/reset-auth", &[], "0")?;
        ensure!(answer.status == 200, "reset-auth: {} {}", answer.status, answer.body);
        Ok(key)
    }

    fn iam(&self, action: &str, parameters: &str) -> Result<String> {
        let signature = format!(
            "AWS4-HMAC-SHA256 Credential=test/20200101/{REGION}/iam/aws4_request, SignedHeaders=host, Signature=0"
        );
        let headers =
            [("Content-Type", "application/x-www-form-urlencoded"), ("Authorization", signature.as_str())];
        let body = format!("Action={action}&Version=2010-05-08&{parameters}");
        let answer = http::request(self.port, "POST", "/", &headers, &body)?;
        ensure!(answer.status == 200, "IAM {action}: {} {}", answer.status, answer.body);
        Ok(answer.body)
    }

    /// What a program needs in its environment to talk to this AWS and to no other.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ACCESS_KEY_ID", "test".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "test".to_owned()),
            ("AWS_REGION", REGION.to_owned()),
            ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
            ("AWS_ENDPOINT_URL", self.endpoint.clone()),
        ]
    }
}

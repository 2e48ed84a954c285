//! The cluster's API server, as kubectl reaches it: the only room of the command that knows one.
//!
//! [`ClusterOptions`] is what was typed; [`kubeconfig`] makes of it and of kubeconfigs where the server is and how one
//! logs in; [`Cluster`] asks it. [`controller`] is the controller of sealed secrets behind the server's proxy. What is
//! asked of a server, and what its answers mean, is the business of those who ask.

pub(crate) mod controller;
mod kubeconfig;

use std::path::PathBuf;
use std::time::Duration;

use kube::client::Body;
use lacre_crypto::SecretText;
use serde_json::Value;

use crate::error::CommandError;

use kubeconfig::Namespace;

/// Most characters of an answer that are shown.
const SHOWN_CHARS_MAX: usize = 1000;

/// What was said about the cluster: by flags of kubectl's names, or by nothing but the environment.
#[derive(Debug, Default)]
pub(crate) struct ClusterOptions {
    /// This kubeconfig alone, instead of those that `KUBECONFIG` names and of the one at home.
    pub(crate) kubeconfig: Option<PathBuf>,
    /// A context of it.
    pub(crate) context: Option<String>,
    /// A cluster of it.
    pub(crate) cluster: Option<String>,
    /// A user of it.
    pub(crate) user: Option<String>,
    /// The namespace of whatever names none.
    pub(crate) namespace: Option<String>,
    /// Where the server is.
    pub(crate) server: Option<String>,
    /// Certificates by which it is recognised.
    pub(crate) certificate_authority: Option<String>,
    /// Whether whoever answers is believed to be it.
    pub(crate) insecure_skip_tls_verify: bool,
    /// The name that its certificate is for.
    pub(crate) tls_server_name: Option<String>,
    /// A proxy on the way to it.
    pub(crate) proxy_url: Option<String>,
    /// Whether its answers come uncompressed.
    pub(crate) disable_compression: bool,
    /// How to log in.
    pub(crate) token: Option<SecretText>,
    /// How to log in, with a password.
    pub(crate) username: Option<String>,
    /// The password of that user.
    pub(crate) password: Option<SecretText>,
    /// How to log in, with a key.
    pub(crate) client_certificate: Option<String>,
    /// The key of that certificate.
    pub(crate) client_key: Option<String>,
    /// For whom requests are made.
    pub(crate) impersonate: Option<String>,
    /// The UID of that user.
    pub(crate) impersonate_uid: Option<String>,
    /// The groups of that user.
    pub(crate) impersonate_groups: Vec<String>,
    /// Longest time for one request.
    pub(crate) request_timeout: Option<Duration>,
}

impl ClusterOptions {
    /// The namespace of whatever names none. Nothing is asked of a cluster for that.
    pub(crate) fn namespace(&self) -> Result<Namespace, CommandError> {
        kubeconfig::namespace(self)
    }
}

/// An API server that requests can be made of.
pub(crate) struct Cluster {
    runtime: tokio::runtime::Runtime,
    client: kube::Client,
    deadline: Option<Duration>,
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The status of HTTP.
    pub(crate) status: u16,
    /// All of the answer.
    pub(crate) body: Vec<u8>,
}

impl Cluster {
    /// The server that `options` and kubeconfigs name. It is not asked anything yet, but a program that logs in may run.
    pub(crate) fn reach(options: &ClusterOptions) -> Result<Self, CommandError> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
                CommandError::general(format!("cannot prepare for requests to a cluster: {error}"))
            })?;
        let client = runtime.block_on(async {
            let config = kubeconfig::config(options).await?;
            kube::Client::try_from(config).map_err(|error| {
                CommandError::general(format!("cannot reach the cluster: {}", all_causes(&error)))
                    .hint("check the kubeconfig, and the program in it that logs in")
            })
        })?;
        Ok(Self { runtime, client, deadline: options.request_timeout.filter(|limit| !limit.is_zero()) })
    }

    /// What the server has at `path`.
    pub(crate) fn get(&self, path: &str) -> Result<Answer, CommandError> {
        self.ask(http::Request::get(path), Vec::new())
    }

    /// What the server answers when `body` is sent to `path`.
    pub(crate) fn post(&self, path: &str, body: Vec<u8>) -> Result<Answer, CommandError> {
        self.ask(http::Request::post(path), body)
    }

    /// What the server answers when the object at `path` is to be merged with `patch`.
    pub(crate) fn patch(&self, path: &str, patch: Vec<u8>) -> Result<Answer, CommandError> {
        self.ask(http::Request::patch(path).header("Content-Type", "application/merge-patch+json"), patch)
    }

    fn ask(&self, request: http::request::Builder, body: Vec<u8>) -> Result<Answer, CommandError> {
        let request = request.body(Body::from(body)).map_err(|error| {
            CommandError::general(format!("the cluster cannot be asked for that: {error}"))
                .hint("check the names that were given")
        })?;
        let asking = async {
            let answer = self.client.send(request).await?;
            let status = answer.status().as_u16();
            let body = answer.into_body().collect_bytes().await?;
            Ok(Answer { status, body: body.to_vec() })
        };
        let unreachable = |what: String| {
            CommandError::general(what).hint(
                "check the address in the kubeconfig, the network and the proxy, then run the command again",
            )
        };
        self.runtime.block_on(async {
            let asked: Result<Answer, kube::Error> = match self.deadline {
                None => asking.await,
                Some(limit) => match tokio::time::timeout(limit, asking).await {
                    Ok(asked) => asked,
                    Err(_) => {
                        return Err(unreachable(format!("the cluster gave no answer within {limit:?}")));
                    }
                },
            };
            asked.map_err(|error| unreachable(format!("the cluster was not reached: {}", all_causes(&error))))
        })
    }
}

impl Answer {
    /// Whether it is what was asked for.
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// It as JSON.
    pub(crate) fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// Why it is not what was asked for, as clients of Kubernetes say it: the server's own words if there are some.
    pub(crate) fn problem(&self, asked: &str) -> String {
        let status = self.json().filter(|object| object["kind"] == "Status");
        if let Some(message) = status.as_ref().and_then(|status| status["message"].as_str()) {
            return message.to_owned();
        }
        let body: String = String::from_utf8_lossy(&self.body).chars().take(SHOWN_CHARS_MAX).collect();
        match self.status {
            401 => "the server has asked for the client to provide credentials".to_owned(),
            404 => format!("the server could not find the requested resource ({asked})"),
            429 => format!(
                "the server has received too many requests and has asked us to try again later ({asked})"
            ),
            500.. => format!(
                "an error on the server ({:?}) has prevented the request from succeeding ({asked})",
                body.trim()
            ),
            other => format!("the server answered {other} ({:?}) to the request ({asked})", body.trim()),
        }
    }
}

/// `name` as one part of a path.
pub(crate) fn path_part(name: &str) -> String {
    let mut part = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b':' => {
                part.push(char::from(byte));
            }
            _ => part.push_str(&format!("%{byte:02X}")),
        }
    }
    part
}

/// An error with everything below it, since the libraries put what matters at the bottom. Not so what concerns logging
/// in: those errors quote the program that was called, its environment and what it printed, and kubeconfigs.
fn all_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = Some(error);
    while let Some(cause) = next {
        if is_about_credentials(cause) {
            return "logging in failed as the kubeconfig says it is done (its program, its token or its certificate)"
                .to_owned();
        }
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

fn is_about_credentials(error: &(dyn std::error::Error + 'static)) -> bool {
    error.is::<kube::client::AuthError>()
        || matches!(error.downcast_ref::<kube::Error>(), Some(kube::Error::Auth(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(status: u16, body: &str) -> String {
        Answer { status, body: body.as_bytes().to_vec() }.problem("get services x")
    }

    #[test]
    fn the_servers_own_words_come_first() {
        let status = r#"{"kind":"Status","message":"services \"x\" not found","code":404}"#;
        assert_eq!(problem(404, status), "services \"x\" not found");
        assert_eq!(problem(404, ""), "the server could not find the requested resource (get services x)");
        assert_eq!(
            problem(500, "no\n"),
            "an error on the server (\"no\") has prevented the request from succeeding (get services x)"
        );
        assert!(problem(302, "").contains("302"));
    }

    #[test]
    fn a_name_is_one_part_of_a_path() {
        assert_eq!(path_part("http:a.b-c:http"), "http:a.b-c:http");
        assert_eq!(path_part("../x?y"), "..%2Fx%3Fy");
    }
}

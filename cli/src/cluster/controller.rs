//! The controller of sealed secrets, behind the API server's proxy: its certificate, its opinion, its newest key.
//!
//! Where it listens is looked up anew in each call: its Service's first port has a name, and that name is part of the
//! proxy's address. Private keys never go this way.

use serde_json::Value;

use super::{Answer, Cluster, path_part};
use crate::error::CommandError;

/// Where the Service is when nobody says anything, in the plain manifests.
pub(crate) const DEFAULT_NAME: &str = "sealed-secrets-controller";
/// The namespace of that Service.
pub(crate) const DEFAULT_NAMESPACE: &str = "kube-system";

/// A controller that can be asked.
pub(crate) struct Controller<'c> {
    cluster: &'c Cluster,
    namespace: String,
    /// Scheme, name and port, as the proxy wants them.
    service: String,
}

impl<'c> Controller<'c> {
    /// Looks the controller's Service up.
    pub(crate) fn find(cluster: &'c Cluster, namespace: &str, name: &str) -> Result<Self, CommandError> {
        let path = format!("/api/v1/namespaces/{}/services/{}", path_part(namespace), path_part(name));
        let answer = cluster.get(&path).map_err(|error| within("cannot get sealed secret service", error))?;
        let service = answer.json().filter(|_| answer.is_success());
        let Some(service) = service else {
            let problem = answer.problem(&format!("get services {name}"));
            let error = CommandError::general(format!("cannot get sealed secret service: {problem}"));
            return Err(match answer.status {
                404 => others(cluster, namespace)
                    .into_iter()
                    .fold(error, CommandError::hint)
                    .hint("name it with `--controller-name` and `--controller-namespace`"),
                _ => error.hint("log in as someone who may read it, or seal with `--cert FILE`"),
            });
        };
        let Some(port) = service.pointer("/spec/ports/0") else {
            return Err(CommandError::general(format!(
                "cannot get sealed secret service: services \"{name}\" has no port"
            ))
            .hint("name the controller's Service with `--controller-name`"));
        };
        let port = port["name"].as_str().unwrap_or_default();
        Ok(Self { cluster, namespace: namespace.to_owned(), service: format!("http:{name}:{port}") })
    }

    /// The certificate to seal for, as it is published.
    pub(crate) fn certificate(&self) -> Result<String, CommandError> {
        let answer = self.cluster.get(&self.path("cert.pem"));
        let answer = answer.map_err(|error| within("cannot fetch certificate", error))?;
        let failed = |problem: String| {
            CommandError::general(format!("cannot fetch certificate: {problem}"))
                .hint("see whether the controller runs, or seal with `--cert FILE`")
        };
        if !answer.is_success() {
            return Err(failed(answer.problem(&format!("get services {}", self.service))));
        }
        String::from_utf8(answer.body).map_err(|_| failed("what the controller sent is not text".to_owned()))
    }

    /// Whether the controller can open the SealedSecret `object`.
    pub(crate) fn verify(&self, object: &Value) -> Result<bool, CommandError> {
        let answer = self.send("verify", object);
        let answer = answer.map_err(|error| within("cannot validate sealed secret", error))?;
        match answer.status {
            409 => Ok(false),
            _ if answer.is_success() => Ok(true),
            _ => Err(self.refused("cannot validate sealed secret", &answer)),
        }
    }

    /// The SealedSecret `object`, sealed for the controller's newest key; nothing if it cannot open it.
    pub(crate) fn rotate(&self, object: &Value) -> Result<Option<Value>, CommandError> {
        let answer = self.send("rotate", object);
        let answer = answer.map_err(|error| within("cannot re-encrypt secret", error))?;
        match answer.status {
            409 => Ok(None),
            _ if answer.is_success() => match answer.json() {
                Some(rotated) => Ok(Some(rotated)),
                None => Err(CommandError::general(
                    "cannot re-encrypt secret: what the controller sent is not JSON",
                )
                .hint("see whether it is the controller that `--controller-name` names")),
            },
            _ => Err(self.refused("cannot re-encrypt secret", &answer)),
        }
    }

    fn send(&self, verb: &str, object: &Value) -> Result<Answer, CommandError> {
        self.cluster.post(&self.path(verb), object.to_string().into_bytes())
    }

    fn refused(&self, what: &str, answer: &Answer) -> CommandError {
        let problem = answer.problem(&format!("post services {}", self.service));
        let error = CommandError::general(format!("{what}: {problem}"));
        match answer.status {
            401 | 403 => error.hint("log in as someone who may use the proxy of the controller's Service"),
            429 => error.hint("the controller answers a few such requests a second: wait, then run it again"),
            _ => {
                error.hint("the controller's log says more; see whether the object is one that it could open")
            }
        }
    }

    fn path(&self, verb: &str) -> String {
        format!(
            "/api/v1/namespaces/{}/services/{}/proxy/v1/{verb}",
            path_part(&self.namespace),
            path_part(&self.service)
        )
    }
}

/// The error with what was being done in front of it.
fn within(what: &str, error: CommandError) -> CommandError {
    let cause = format!("{what}: {}", error.cause);
    CommandError { cause: cause.into(), ..error }
}

/// What else could be meant: the Services that charts make. Whoever may not list them learns nothing.
fn others(cluster: &Cluster, namespace: &str) -> Vec<String> {
    let labels = ["app.kubernetes.io%2Fname%3Dsealed-secrets", "name%3Dsealed-secrets-controller"];
    let mut hints = Vec::new();
    for label in labels {
        let Ok(answer) = cluster.get(&format!("/api/v1/services?labelSelector={label}&limit=10")) else {
            return hints;
        };
        let list = answer.json().filter(|_| answer.is_success()).unwrap_or_default();
        for service in list["items"].as_array().into_iter().flatten() {
            let at = |field: &str| service["metadata"][field].as_str().unwrap_or_default();
            // The chart's second Service is for metrics alone.
            if at("name").ends_with("-metrics") {
                continue;
            }
            let mut hint = format!("there is one: `--controller-name {}`", at("name"));
            if at("namespace") != namespace {
                hint = format!("{hint} `--controller-namespace {}`", at("namespace"));
            }
            hints.push(hint);
        }
    }
    hints
}

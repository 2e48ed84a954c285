//! The token of the controller's service account is replaced, and the old one revoked.
//!
//! Beside the other tests, in a namespace of its own: nothing happens for most of a minute, until the client looks at
//! the file again.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use lacre_controller::api::crd;
use lacre_crypto::sealing_key::Certificate;
use xtask::peers::cluster::Cluster;
use xtask::peers::pod::{Container, Pod};
use xtask::{http, wait};

use crate::site::{DEADLINE, strict};

/// The file is read anew after a minute, the server believes a token for ten seconds after its end.
const RENEWAL: Duration = Duration::from_secs(120);

#[test]
fn the_old_token_is_revoked_and_the_new_one_is_found() -> Result<()> {
    let cluster = Cluster::shared()?;
    let admin = cluster.admin();
    admin.install(&serde_json::to_string(&crd::sealed_secret())?)?;
    admin.run(["wait", "--for=condition=Established", "crd/sealedsecrets.bitnami.com"])?;
    let namespace = cluster.namespace("token")?;
    admin.run(["create", "serviceaccount", "controller", "--namespace", &namespace])?;
    let subject = format!("--serviceaccount={namespace}:controller");
    let binding =
        ["create", "rolebinding", "all", "--clusterrole=cluster-admin", &subject, "--namespace", &namespace];
    admin.run(binding)?;
    let [old, new] = ["old", "new"].map(|name| token(&cluster, &namespace, name));
    let (old, new) = (old?, new?);
    let container = Container {
        name: "lacre-controller",
        program: Path::new(env!("CARGO_BIN_EXE_lacre-controller")),
        arguments: &[
            "--all-namespaces=false",
            "--key-size=2048",
            "--retry-delay=100ms",
            "--retry-delay-max=1s",
        ],
        environment: &[],
    };
    let pod = Pod::start_with_token(&cluster, &namespace, &old, &container)?;
    let certificate = wait::until(DEADLINE, "the certificate", || {
        let answer = http::request(pod.port(), "GET", "/v1/cert.pem", &[], "")?;
        Ok((answer.status == 200).then_some(answer.body))
    })?;
    let certificate = Certificate::from_pem(&certificate)?;
    let make = |name: &str| -> Result<()> {
        let object = strict(&certificate, &namespace, name, &[("k", "v")])?.to_string();
        admin.tool().args(["create", "-f", "-"]).stdin(object).run()?.success().map(drop)
    };
    let is_made = |name: &str| {
        let found = admin.try_run(["get", "secret", name, "--namespace", &namespace])?;
        Ok((found.code == Some(0)).then_some(()))
    };
    make("before")?;
    wait::until(DEADLINE, "the Secret", || is_made("before"))?;

    pod.replace_token(&new)?;
    admin.run(["delete", "secret", "old", "--namespace", &namespace])?;
    let token = format!("--token={old}");
    let ask = ["get", "secrets", "--namespace", &namespace, &token];
    wait::until(DEADLINE, "the end of the old token", || {
        Ok(admin.try_run(ask)?.stderr_text().contains("Unauthorized").then_some(()))
    })?;
    make("after")?;
    wait::until(RENEWAL, "the Secret", || is_made("after"))?;
    let log = pod.log()?;
    ensure!(!log.contains(&old) && !log.contains(&new), "a token is in the log");
    Ok(())
}

/// One that ends with the Secret `name`.
fn token(cluster: &Cluster, namespace: &str, name: &str) -> Result<String> {
    cluster.admin().run(["create", "secret", "generic", name, "--namespace", namespace])?;
    let token = ["create", "token", "controller", "--bound-object-kind=Secret", "--bound-object-name", name];
    let token = cluster.admin().run(token.into_iter().chain(["--namespace", namespace]))?;
    Ok(String::from_utf8(token)?.trim().to_owned())
}

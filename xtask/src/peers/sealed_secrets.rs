//! The real `kubeseal` and the real Sealed Secrets controller.
//!
//! Their controller runs as a [`Pod`](super::pod::Pod); so can ours.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::cluster::Cluster;
use super::helm::Helm;
use super::pod::Container;
use crate::install::{Component, Source};
use crate::process::{Finished, Tool};
use crate::{root, versions};

/// The service that `kubeseal` asks for unless told otherwise.
pub const SERVICE: &str = "sealed-secrets-controller";
/// The kinds of objects that give the controller its rights.
const RIGHTS: [&str; 5] = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount"];

/// The command line.
pub const KUBESEAL: Component = Component {
    name: "kubeseal",
    version: versions::SEALED_SECRETS,
    source: Source::Go {
        folder: "sealed-secrets",
        package: "github.com/bitnami/sealed-secrets/cmd/kubeseal",
    },
    program: "kubeseal",
};

/// The controller.
pub const CONTROLLER: Component = Component {
    name: "sealed-secrets-controller",
    version: versions::SEALED_SECRETS,
    source: Source::Go {
        folder: "sealed-secrets",
        package: "github.com/bitnami/sealed-secrets/cmd/controller",
    },
    program: "controller",
};

/// Their own tests of both programs, against a cluster.
pub const SUITE: Component = Component {
    name: "sealed-secrets-suite",
    version: versions::SEALED_SECRETS,
    source: Source::GoTests {
        folder: "sealed-secrets",
        package: "github.com/bitnami/sealed-secrets/integration",
        tag: "integration",
    },
    program: "suite",
};

/// `kubeseal`.
///
/// # Errors
/// It is not installed.
pub fn kubeseal() -> Result<Tool> {
    Ok(Tool::new(KUBESEAL.path()?))
}

/// The controller with `arguments`, to be started as a Pod.
pub fn controller<'a>(program: &'a Path, arguments: &'a [&'a str]) -> Container<'a> {
    Container { name: "sealed-secrets-controller", program, arguments, environment: &[] }
}

/// The sources of this version, as Go unpacked them: chart, definitions, tests.
///
/// # Errors
/// Go does not find them.
pub fn sources() -> Result<PathBuf> {
    let arguments = ["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", "github.com/bitnami/sealed-secrets"];
    let output = Command::new("go")
        .args(arguments)
        .current_dir(root().join("xtask/peers/sealed-secrets"))
        .env("GOTOOLCHAIN", "local")
        .env("GOWORK", "off")
        .output()
        .context("cannot start go")?;
    ensure!(output.status.success(), "go list: {}", String::from_utf8_lossy(&output.stderr));
    let folder = PathBuf::from(String::from_utf8(output.stdout)?.trim());
    ensure!(folder.is_dir(), "Go has no sources of Sealed Secrets: run `cargo xtask peers kubeseal`");
    Ok(folder)
}

/// The definition of SealedSecret that its chart brings.
///
/// # Errors
/// As [`sources`].
pub fn definition() -> Result<String> {
    let path = sources()?.join("helm/sealed-secrets/crds/bitnami.com_sealedsecrets.yaml");
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// What their chart installs in `namespace` besides the program: definition, service account and its rights.
///
/// The account has the name of the service that `kubeseal` asks for.
///
/// # Errors
/// As [`sources`]; or helm refuses.
pub fn installation(namespace: &str) -> Result<String> {
    let helm = Helm::new()?.tool()?.args(["template", "release", "--namespace", namespace, "--set"]);
    let helm = helm.arg(format!("fullnameOverride={SERVICE}")).arg(sources()?.join("helm/sealed-secrets"));
    let rendered = String::from_utf8(helm.run()?.success()?)?;
    let kept = |document: &&str| RIGHTS.iter().any(|kind| document.contains(&format!("\nkind: {kind}\n")));
    let rights: Vec<&str> = rendered.split("\n---").filter(kept).collect();
    Ok(format!("{}\n---\n{}", definition()?, rights.join("\n---")))
}

/// Runs their own tests of a controller that is at work in `namespace` and of its `kubeseal`.
///
/// `controller` is run for its version alone.
///
/// # Errors
/// They are not installed, or take longer than ten minutes. What failed is in the answer.
pub fn suite(cluster: &Cluster, namespace: &str, kubeseal: &Path, controller: &Path) -> Result<Finished> {
    Tool::new(SUITE.path()?)
        .args(["-ginkgo.no-color", "-namespace", namespace])
        .arg("-kubeconfig")
        .arg(cluster.admin_kubeconfig())
        .arg("-kubeseal-bin")
        .arg(kubeseal)
        .arg("-controller-bin")
        .arg(controller)
        .deadline(Duration::from_secs(600))
        .run()
}

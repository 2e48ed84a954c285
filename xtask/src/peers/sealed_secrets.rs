//! The real `kubeseal` and the real Sealed Secrets controller.
//!
//! Their controller runs as a [`Pod`](super::pod::Pod); so can ours.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::pod::Container;
use crate::install::{Component, Source};
use crate::process::Tool;
use crate::{root, versions};

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

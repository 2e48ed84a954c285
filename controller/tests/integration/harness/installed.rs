//! Definitions and rights as they are shipped, for the controllers of all tests.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, ensure};
use lacre_controller::api::crd;
use serde::Deserialize;
use serde_json::{Value, json};
use xtask::peers::cluster::Cluster;

pub(super) fn install_definition(cluster: &Cluster) -> Result<()> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*installed {
        let roles = rights("lacre-system")?.into_iter().filter(|item| item["kind"] == "ClusterRole");
        let definitions = [crd::encrypted_secret(), crd::sealed_secret()].map(serde_json::to_value);
        let definitions = definitions.into_iter().collect::<Result<Vec<_>, _>>()?;
        cluster.admin().install(&list(roles.chain(definitions)))?;
        for name in ["crd/encryptedsecrets.lacre.dev", "crd/sealedsecrets.bitnami.com"] {
            cluster.admin().run(["wait", "--for=condition=Established", name, "--timeout=30s"])?;
        }
        *installed = true;
    }
    Ok(())
}

/// The rights that `deploy/cluster-wide` gives, for a controller in `home`.
pub(super) fn rights(home: &str) -> Result<Vec<Value>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    let files = ["cluster-wide/rbac.yaml", "base/rbac.yaml"];
    let texts = files.map(|file| std::fs::read_to_string(folder.join(file)));
    let text = texts.into_iter().collect::<Result<Vec<_>, _>>()?.join("---\n").replace("lacre-system", home);
    let mut items = Vec::new();
    for document in yaml_serde::Deserializer::from_str(&text) {
        let mut item = Value::deserialize(document)?;
        if item["kind"] == "ClusterRoleBinding" {
            // One for each test's controller.
            item["metadata"]["name"] = Value::String(format!("lacre-controller-{home}"));
        }
        items.push(item);
    }
    ensure!(items.len() == 8, "the rights are {} documents", items.len());
    Ok(items)
}

pub(super) fn list(items: impl Iterator<Item = Value>) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": items.collect::<Vec<_>>()}).to_string()
}

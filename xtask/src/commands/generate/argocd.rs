//! What Argo CD is told about our kinds, as the ConfigMap that it reads.
//!
//! The scripts lie in folders as Argo CD's own do, which is where they can be given to it; a ConfigMap is how a cluster
//! gets them today.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::root;

/// Where it lies.
pub const FILE: &str = "controller/deploy/argocd/argocd-cm.yaml";

/// Our kinds: group, kind, and the actions that its `discovery.lua` offers.
pub const KINDS: [(&str, &str, &[&str]); 2] =
    [("bitnami.com", "SealedSecret", &["refresh"]), ("lacre.dev", "EncryptedSecret", &["suspend", "resume"])];

/// The folder of one kind's scripts.
pub fn folder(group: &str, kind: &str) -> std::path::PathBuf {
    root().join("controller/deploy/argocd/resource_customizations").join(group).join(kind)
}

/// The ConfigMap, to be merged into the one of that name.
///
/// # Errors
/// A script is missing.
pub fn config_map() -> Result<String> {
    let mut text = HEAD.to_owned();
    for (group, kind, actions) in KINDS {
        let folder = folder(group, kind);
        write!(
            text,
            "  resource.customizations.health.{group}_{kind}: |\n{}",
            script(&folder, "health.lua", 4)?
        )?;
        write!(text, "  resource.customizations.actions.{group}_{kind}: |\n    discovery.lua: |\n")?;
        write!(text, "{}    definitions:\n", script(&folder, "actions/discovery.lua", 6)?)?;
        for action in actions {
            let file = format!("actions/{action}/action.lua");
            write!(text, "      - name: {action}\n        action.lua: |\n{}", script(&folder, &file, 10)?)?;
        }
    }
    Ok(text)
}

const HEAD: &str = "\
# Made by `cargo xtask gen` from the scripts in resource_customizations. To be merged into the ConfigMap of Argo CD:
# kubectl patch configmap argocd-cm -n argocd --patch-file argocd-cm.yaml
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-cm
data:
";

/// A script, each line so far in.
fn script(folder: &Path, file: &str, spaces: usize) -> Result<String> {
    let path = folder.join(file);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.lines().map(|line| format!("{:spaces$}{line}\n", "")).collect())
}

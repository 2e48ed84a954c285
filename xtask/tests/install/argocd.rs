//! The scripts for Argo CD, run by its own engine.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use xtask::commands::generate::argocd::{self, KINDS, folder};
use xtask::peers::argocd_lua;
use xtask::root;

use crate::support::same;

/// A file of `health/KIND/`: an object, and in the leading comment what Argo CD must make of it.
#[test]
fn health_is_what_the_files_say() -> Result<()> {
    let mut seen = std::collections::BTreeSet::new();
    for (group, kind, _) in KINDS {
        for file in fs::read_dir(root().join("xtask/tests/install/health").join(kind))? {
            let path = file?.path();
            let text = fs::read_to_string(&path)?;
            let expected = text.lines().next().and_then(|line| line.strip_prefix("# ")).context("no head")?;
            let health =
                argocd_lua::run(&folder(group, kind).join("health.lua"), &yaml_serde::from_str(&text)?)?;
            let told = format!("{}: {}", word(&health["status"])?, word(&health["message"])?);
            ensure!(told.trim_end() == expected, "{}: {told}", path.display());
            seen.insert(format!("{kind} {}", word(&health["status"])?));
        }
    }
    let all = ["EncryptedSecret Suspended", "Degraded", "Healthy", "Progressing"];
    ensure!(all.iter().all(|health| seen.iter().any(|seen| seen.ends_with(health))), "{seen:?}");
    ensure!(seen.len() == 7, "{seen:?}");
    Ok(())
}

fn word(value: &Value) -> Result<&str> {
    value.as_str().with_context(|| format!("{value} is no text"))
}

fn object(kind: &str, spec: Value) -> Value {
    json!({"kind": kind, "metadata": {"name": "db", "namespace": "shop", "generation": 1}, "spec": spec})
}

#[test]
fn an_encrypted_secret_is_suspended_and_resumed() -> Result<()> {
    let folder = folder("lacre.dev", "EncryptedSecret").join("actions");
    let mut sealed = object("EncryptedSecret", json!({"stringData": {"a": "ENC[…]"}}));
    let offered =
        |object: &Value| -> Result<Value> { argocd_lua::run(&folder.join("discovery.lua"), object) };
    assert_eq!(offered(&sealed)?, json!({"suspend": {"disabled": false}, "resume": {"disabled": true}}));
    let suspended = argocd_lua::run(&folder.join("suspend/action.lua"), &sealed)?;
    sealed["spec"]["suspend"] = json!(true);
    assert!(same(&suspended, &sealed), "{suspended}");
    assert_eq!(offered(&suspended)?, json!({"suspend": {"disabled": true}, "resume": {"disabled": false}}));
    let resumed = argocd_lua::run(&folder.join("resume/action.lua"), &suspended)?;
    sealed["spec"]["suspend"] = json!(false);
    assert!(same(&resumed, &sealed), "{resumed}");
    Ok(())
}

#[test]
fn a_refresh_changes_one_annotation_and_nothing_else() -> Result<()> {
    let folder = folder("bitnami.com", "SealedSecret").join("actions");
    let plain = object("SealedSecret", json!({"encryptedData": {"a": "AgB"}}));
    assert_eq!(
        argocd_lua::run(&folder.join("discovery.lua"), &plain)?,
        json!({"refresh": {"disabled": false}})
    );
    let mut annotated = plain.clone();
    annotated["metadata"]["annotations"] = json!({"sealedsecrets.bitnami.com/cluster-wide": "true"});
    for before in [plain, annotated] {
        let mut after = argocd_lua::run(&folder.join("refresh/action.lua"), &before)?;
        let annotations = after["metadata"]["annotations"].as_object_mut().context("no annotations")?;
        let time = annotations.remove("lacre.dev/refresh-requested-at").context("no time")?;
        assert!(word(&time)?.ends_with('Z') && word(&time)?.len() == 20, "{time}");
        if annotations.is_empty() {
            after["metadata"].as_object_mut().context("no metadata")?.remove("annotations");
        }
        assert!(same(&after, &before), "{after}");
    }
    Ok(())
}

#[test]
fn the_config_map_holds_the_scripts_as_they_are() -> Result<()> {
    let map: Value = yaml_serde::from_str(&fs::read_to_string(root().join(argocd::FILE))?)?;
    for (group, kind, actions) in KINDS {
        let script = |file: &str| fs::read_to_string(folder(group, kind).join(file));
        let health = &map["data"][format!("resource.customizations.health.{group}_{kind}")];
        assert_eq!(word(health)?, script("health.lua")?);
        let offered = &map["data"][format!("resource.customizations.actions.{group}_{kind}")];
        let offered: Value = yaml_serde::from_str(word(offered)?)?;
        assert_eq!(word(&offered["discovery.lua"])?, script("actions/discovery.lua")?);
        let definitions = offered["definitions"].as_array().context("no definitions")?;
        assert_eq!(definitions.len(), actions.len());
        for (definition, action) in definitions.iter().zip(actions) {
            assert_eq!(definition["name"], *action);
            assert_eq!(word(&definition["action.lua"])?, script(&format!("actions/{action}/action.lua"))?);
        }
    }
    Ok(())
}

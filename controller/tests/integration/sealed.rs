//! A sealed object becomes its Secret, here and nowhere else, and then nothing more is written.

use anyhow::{Context, Result};
use lacre_crypto::Scope;
use serde_json::{Value, json};
use xtask::peers::age::Age;
use xtask::peers::sops::Sops;
use xtask::scratch::Scratch;

use crate::harness::World;
use crate::sealing::{Sealing, age};

#[test]
fn a_label_added_after_sealing_changes_nothing_and_a_second_reconcile_writes_nothing() -> Result<()> {
    let world = World::new()?;
    let person = Age::new()?.keygen()?;
    let mut sealing = Sealing::new(&world)?;
    sealing.recipients.push(age(&person.recipient)?);
    let yaml = sealing.yaml()?;
    let mut object: Value = yaml_serde::from_str(&yaml)?;
    object["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "shop"});
    world.apply(&object.to_string())?;
    world.until_ready("db")?;

    let secret = world.secret("db")?;
    let keys: Vec<_> =
        secret["data"].as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["password", "user"]);
    assert_eq!(
        (world.value("db", "password")?, world.value("db", "user")?),
        ("hunter2-CANARY".into(), "admin-CANARY".into())
    );
    assert_eq!(secret["metadata"]["labels"], json!({"tier": "back"}));
    assert_eq!(secret["metadata"]["annotations"], Value::Null);
    assert_eq!(secret["metadata"]["ownerReferences"][0]["kind"], "EncryptedSecret");
    assert_eq!(secret["type"], "Opaque");

    let writes = world.writes_of_objects()?;
    assert_eq!(writes, ["create secrets db", "patch encryptedsecrets/status db"]);
    assert_eq!(world.until_events("db", 1)?, "Normal Synced Apply: made Secret db");
    world.wake("db", || world.patch("secret", "db", &json!({"metadata": {"labels": {"team": "blue"}}})))?;
    world.wake("db", || world.patch("secret", "db", &json!({"metadata": {"annotations": {"note": "x"}}})))?;
    assert_eq!(world.writes_of_objects()?, writes);
    assert_eq!(world.events("db")?.len(), 1);

    let folder = Scratch::new("lacre-sops-", "true")?;
    std::fs::write(folder.path().join("db.yaml"), &yaml)?;
    std::fs::write(folder.path().join("key"), &person.identity)?;
    for sops in Sops::all()? {
        let tool = sops.tool().env("SOPS_AGE_KEY_FILE", folder.path().join("key")).dir(folder.path());
        let opened: Value = yaml_serde::from_slice(&tool.args(["decrypt", "db.yaml"]).run()?.success()?)?;
        assert_eq!(
            opened["spec"]["stringData"],
            json!({"password": "hunter2-CANARY", "user": "admin-CANARY"})
        );
    }
    Ok(())
}

#[test]
fn an_object_sealed_for_another_namespace_stays_closed_until_it_changes() -> Result<()> {
    // A Ready object that is looked at often is the clock by which the other's retries would show.
    let world = World::with_flags(&["--resync", "100ms"])?;
    let mut elsewhere = Sealing::new(&world)?;
    elsewhere.namespace = "shop-prod".to_owned();
    let mut object = elsewhere.object()?;
    object["metadata"]["namespace"] = world.namespace.as_str().into();
    world.apply(&object.to_string())?;
    let ready = world.until_ready_is("db", "False", "ScopeMismatch")?;
    let message = ready["message"].as_str().context("no message")?;
    assert!(
        message.contains("shop-prod/db") && message.contains(&format!("{}/db", world.namespace)),
        "{message}"
    );
    let stored = world.find("encryptedsecret", "db")?.unwrap_or_default();
    let types: Vec<_> =
        stored["status"]["conditions"].as_array().into_iter().flatten().map(|c| c["type"].clone()).collect();
    assert_eq!(types, ["Ready", "Stalled"]);

    world.apply(&Sealing::new(&world)?.named("clock").yaml()?)?;
    world.until_ready("clock")?;
    world.until("ten looks at the other object", || Ok((world.reconciles("clock")? > 10).then_some(())))?;
    assert_eq!(world.reconciles("db")?, 1);
    assert!(world.find("secret", "db")?.is_none());
    let of_db: Vec<_> =
        world.writes_of_objects()?.into_iter().filter(|write| write.ends_with(" db")).collect();
    assert_eq!(of_db, ["patch encryptedsecrets/status db"]);
    assert_eq!(world.events("db")?.len(), 1);

    world.apply(&Sealing::new(&world)?.yaml()?)?;
    world.until_ready("db")?;
    assert_eq!(world.value("db", "user")?, "admin-CANARY");
    Ok(())
}

#[test]
fn wider_scopes_open_where_they_reach() -> Result<()> {
    let world = World::new()?;
    let mut sealing = Sealing::new(&world)?;
    sealing.scope = Scope::Namespace;
    let mut object = sealing.object()?;
    object["metadata"]["name"] = "renamed".into();
    world.apply(&object.to_string())?;
    world.until_ready("renamed")?;
    sealing.scope = Scope::Cluster;
    sealing.namespace = "anywhere".to_owned();
    let mut object = sealing.object()?;
    object["metadata"]["namespace"] = world.namespace.as_str().into();
    world.apply(&object.to_string())?;
    world.until_ready("db")?;
    let status = |name: &str| -> Result<Value> {
        Ok(world.find("encryptedsecret", name)?.unwrap_or_default()["status"].clone())
    };
    assert_eq!(status("renamed")?["secret"]["scope"], "namespace");
    assert_eq!(status("db")?["secret"]["scope"], "cluster");
    Ok(())
}

#[test]
fn all_namespaces_are_served_unless_one_is_named() -> Result<()> {
    let world = World::of_all_namespaces()?;
    let mut sealing = Sealing::new(&world)?;
    world.apply(&sealing.yaml()?)?;
    world.until_ready("db")?;
    sealing.namespace = world.cluster.namespace("other")?;
    world.apply(&sealing.yaml()?)?;
    world.until("the Secret in the other namespace", || {
        let found = world.admin().try_run(["--namespace", &sealing.namespace, "get", "secret", "db"])?;
        Ok((found.code == Some(0)).then_some(()))
    })
}

#[test]
fn no_value_reaches_status_events_metrics_or_the_log() -> Result<()> {
    let world = World::new()?;
    world.apply(&Sealing::new(&world)?.yaml()?)?;
    world.until_ready("db")?;
    world.patch("secret", "db", &json!({"stringData": {"password": "drifted-CANARY"}}))?;
    world.until("the repair", || Ok((world.value("db", "password")? == "hunter2-CANARY").then_some(())))?;
    world.until_events("db", 2)?;
    let object = world.find("encryptedsecret", "db")?.unwrap_or_default();
    let said =
        format!("{object} {:?} {} {}", world.events("db")?, world.ask("/metrics")?.body, world.log(0)?);
    assert!(!said.contains("CANARY") && !said.contains("aHVudGVyMi1DQU5BUlk"), "{said}");
    Ok(())
}

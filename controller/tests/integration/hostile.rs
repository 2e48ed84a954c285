//! What one tenant puts into the API server must not stop the work for the others.

use anyhow::Result;
use lacre_crypto::Timestamp;
use lacre_crypto::recipient::age::AgeIdentity;
use serde_json::{Value, json};

use crate::harness::World;
use crate::sealing::Sealing;

/// More levels than a JSON reader follows before it gives up.
const LEVELS: usize = 200;

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!("x"), |inner, _| json!({ "f:data": inner }))
}

fn others_are_served(world: &World) -> Result<()> {
    world.apply(&Sealing::new(world)?.yaml()?)?;
    world.until_ready("db")?;
    world.patch("secret", "db", &json!({"stringData": {"password": "changed"}}))?;
    world.until("the repair", || Ok((world.value("db", "password")? == "hunter2-CANARY").then_some(())))
}

#[test]
fn a_block_nested_deeper_than_readers_follow_fails_alone() -> Result<()> {
    let mut world = World::new()?;
    let mut object = Sealing::new(&world)?.named("deep").object()?;
    object["sops"]["later"] = nested(LEVELS);
    world.apply(&object.to_string())?;
    others_are_served(&world)?;
    let ready = r#"jsonpath={.status.conditions[?(@.type=="Ready")]}"#;
    let ready = world.until("a verdict on it", || {
        let ready = world.kubectl(["get", "encryptedsecret", "deep", "-o", ready])?;
        Ok(Some(ready).filter(|ready| !ready.is_empty()))
    })?;
    assert!(ready.contains("InvalidObject") && ready.contains("levels"), "{ready}");
    world.stop();
    world.start(&[])?;
    Ok(())
}

/// What the API server keeps of an object after someone put a time into its record of managers that readers in this
/// language do not take for one.
fn with_an_odd_time(world: &World, kind: &str, name: &str) -> Result<()> {
    let text = world.kubectl(["get", kind, name, "-o", "json", "--show-managed-fields"])?;
    let mut object: Value = serde_json::from_str(&text)?;
    object["metadata"]["managedFields"][0]["time"] = "9999-12-31T23:59:59Z".into();
    object["metadata"]["labels"] = json!({"more": "x"});
    world.admin().tool().args(["replace", "-f", "-"]).stdin(object.to_string()).run()?.success()?;
    let text = world.kubectl(["get", kind, name, "-o", "json", "--show-managed-fields"])?;
    anyhow::ensure!(text.contains("9999-12-31"), "the API server took it out: {text}");
    Ok(())
}

#[test]
fn a_record_of_managers_with_a_time_that_no_reader_knows_stops_nothing() -> Result<()> {
    let mut world = World::new()?;
    world.make_key_secret("odd", "a", "b", false)?;
    with_an_odd_time(&world, "secret", "odd")?;
    world.apply(&Sealing::new(&world)?.named("odd-object").yaml()?)?;
    with_an_odd_time(&world, "encryptedsecret", "odd-object")?;
    others_are_served(&world)?;
    world.stop();
    world.start(&[])?;
    world.until("a look at the object", || Ok((world.reconciles("db")? > 0).then_some(())))?;
    world.patch("secret", "db", &json!({"stringData": {"password": "changed"}}))?;
    world.until("the repair", || Ok((world.value("db", "password")? == "hunter2-CANARY").then_some(())))
}

#[test]
fn a_key_secret_full_of_entries_that_nobody_can_read_is_told_in_a_message_that_fits() -> Result<()> {
    let world = World::new()?;
    let entries: serde_json::Map<_, _> =
        (0..2000).map(|number| (format!("{number}.agekey"), json!("CANARY"))).collect();
    let metadata =
        json!({"name": "team-keys", "namespace": world.namespace, "labels": {"lacre.dev/keys": "true"}});
    world.apply(
        &json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": entries})
            .to_string(),
    )?;
    world.apply(&Sealing::new(&world)?.with_keys_from("team-keys").yaml()?)?;
    let ready = world.until_ready_is("db", "False", "InvalidIdentity")?;
    assert!(!ready.to_string().contains("CANARY"), "{ready}");
    Ok(())
}

#[test]
fn more_identities_than_anyone_has_are_refused_and_copies_of_one_are_not() -> Result<()> {
    let world = World::new()?;
    let age = xtask::peers::age::Age::new()?;
    let key = age.keygen()?;
    world.make_key_secret("team-keys", "a.agekey", &vec![key.identity.as_str(); 2000].join("\n"), true)?;
    let sealing = Sealing::new(&world)?.only_for(crate::sealing::age(&key.recipient)?);
    world.apply(&sealing.with_keys_from("team-keys").yaml()?)?;
    world.until_ready("db")?;
    let many =
        (0..300).map(|_| AgeIdentity::generate().to_file_text(Timestamp::now()).expose_secret().to_owned());
    world.make_key_secret("team-keys", "b.agekey", &many.collect::<String>(), true)?;
    world.until_ready_is("db", "False", "InvalidIdentity")?;
    Ok(())
}

#[test]
fn a_status_that_someone_else_wrote_is_no_obstacle() -> Result<()> {
    let mut world = World::new()?;
    world.apply(&Sealing::new(&world)?.named("odd").yaml()?)?;
    world.until_ready("odd")?;
    let time = "2026-01-01T00:00:00x5Z";
    let condition =
        json!({"type": "X", "status": "True", "reason": "x", "message": "", "lastTransitionTime": time});
    let status = json!({"status": {"conditions": [condition]}}).to_string();
    world.kubectl([
        "patch",
        "encryptedsecret",
        "odd",
        "--subresource=status",
        "--type=merge",
        "--patch",
        &status,
    ])?;
    others_are_served(&world)?;
    world.stop();
    world.start(&[])?;
    Ok(())
}

#[test]
fn a_secret_that_cannot_be_read_is_told_and_never_logged() -> Result<()> {
    let world = World::new()?;
    world.apply(&Sealing::new(&world)?.yaml()?)?;
    world.until_ready("db")?;
    with_an_odd_time(&world, "secret", "db")?;
    let ready = world.until_ready_is("db", "False", "ApiUnavailable")?;
    assert!(
        ready["message"].as_str().is_some_and(|message| message.contains("could not be read")),
        "{ready}"
    );
    let log = world.log(0)?;
    assert!(!log.contains("aHVudGVyMi1DQU5BUlk") && !log.contains("CANARY"), "{log}");
    // It is made again when it was deleted.
    world.kubectl(["delete", "secret", "db"])?;
    world.until_ready("db")?;
    Ok(())
}

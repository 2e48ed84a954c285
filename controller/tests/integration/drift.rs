//! A Secret is put right when someone changes or deletes it, and left alone when asked to.

use anyhow::Result;
use serde_json::{Value, json};

use crate::harness::World;
use crate::sealing::Sealing;

fn ready_world() -> Result<World> {
    let world = World::new()?;
    world.apply(&Sealing::new(&world)?.yaml()?)?;
    world.until_ready("db")?;
    Ok(world)
}

#[test]
fn a_changed_value_is_repaired_and_foreign_labels_and_keys_survive() -> Result<()> {
    let world = ready_world()?;
    let before = world.writes_of_objects()?.len();
    let patch = json!({
        "metadata": {"labels": {"team": "blue"}},
        "stringData": {"password": "changed", "extra": "foreign"},
    });
    world.patch("secret", "db", &patch)?;
    world.until("the repair", || Ok((world.value("db", "password")? == "hunter2-CANARY").then_some(())))?;
    assert_eq!(world.value("db", "extra")?, "foreign");
    assert_eq!(world.secret("db")?["metadata"]["labels"], json!({"team": "blue", "tier": "back"}));
    assert_eq!(world.until_events("db", 2)?, "Normal Synced Repair: set password in Secret db");
    // The record of our POST becomes one of our applies, then the apply; the status does not change.
    assert_eq!(world.writes_of_objects()?[before..], ["patch secrets db", "patch secrets db"]);
    assert_eq!(world.metric("lacre_drift_repairs_total")?, Some(1.0));
    let before = world.writes_of_objects()?.len();
    world.patch("secret", "db", &json!({"stringData": {"password": "changed again"}}))?;
    world.until("the repair", || Ok((world.value("db", "password")? == "hunter2-CANARY").then_some(())))?;
    world.until("its event", || {
        Ok((world.events("db")?.len() == 2 && world.metric("lacre_drift_repairs_total")? == Some(2.0))
            .then_some(()))
    })?;
    assert_eq!(world.writes_of_objects()?[before..], ["patch secrets db"]);
    Ok(())
}

#[test]
fn a_removed_key_and_a_changed_label_come_back() -> Result<()> {
    let world = ready_world()?;
    world.patch(
        "secret",
        "db",
        &json!({"data": {"user": null}, "metadata": {"labels": {"tier": "front"}}}),
    )?;
    world.until("the repair", || {
        let secret = world.secret("db")?;
        Ok((secret["data"]["user"].is_string() && secret["metadata"]["labels"]["tier"] == "back")
            .then_some(()))
    })
}

#[test]
fn a_deleted_secret_is_made_again() -> Result<()> {
    let world = ready_world()?;
    let before = world.secret("db")?["metadata"]["uid"].clone();
    world.kubectl(["delete", "secret", "db"])?;
    world.until("the Secret", || {
        Ok(world.find("secret", "db")?.filter(|secret| secret["metadata"]["uid"] != before))
    })?;
    assert_eq!(world.value("db", "password")?, "hunter2-CANARY");
    world.until("its event", || {
        Ok(world.events("db")?.contains(&"Normal Synced Repair: made Secret db".to_owned()).then_some(()))
    })
}

#[test]
fn keys_and_labels_that_left_the_object_leave_the_secret() -> Result<()> {
    let world = ready_world()?;
    let sealing = Sealing::new(&world)?.with("/stringData", json!({"user": "other"}));
    world.apply(&sealing.with("/metadata/labels", json!({"kept": "x"})).yaml()?)?;
    world.until_ready("db")?;
    let secret = world.secret("db")?;
    assert_eq!(
        secret["data"].as_object().map(|data| data.keys().cloned().collect::<Vec<_>>()),
        Some(vec!["user".into()])
    );
    assert_eq!(secret["metadata"]["labels"], json!({"kept": "x"}));
    assert_eq!(world.value("db", "user")?, "other");
    Ok(())
}

#[test]
fn a_suspended_object_is_left_alone_until_it_is_resumed() -> Result<()> {
    let world = ready_world()?;
    world.patch("encryptedsecret", "db", &json!({"spec": {"suspend": true}}))?;
    world.until_ready_is("db", "Unknown", "Suspended")?;
    let before = world.writes_of_objects()?;
    world.wake("db", || world.patch("secret", "db", &json!({"stringData": {"password": "by hand"}})))?;
    assert_eq!(
        (world.value("db", "password")?, world.writes_of_objects()?),
        ("by hand".to_owned(), before.clone())
    );
    world.wake("db", || world.kubectl(["delete", "secret", "db"]).map(drop))?;
    assert_eq!((world.find("secret", "db")?, world.writes_of_objects()?), (None, before));
    world.patch("encryptedsecret", "db", &json!({"spec": {"suspend": false}}))?;
    world.until_ready("db")?;
    assert_eq!(world.value("db", "password")?, "hunter2-CANARY");
    Ok(())
}

#[test]
fn suspension_needs_no_object_that_can_be_opened() -> Result<()> {
    let world = ready_world()?;
    let sealed: Value = Sealing::new(&world)?.object()?;
    let mut broken = sealed.clone();
    broken["sops"]["lacre"] = "broken".into();
    broken["spec"]["suspend"] = true.into();
    world.apply(&broken.to_string())?;
    world.until_ready_is("db", "Unknown", "Suspended")?;
    Ok(())
}

#[test]
fn the_secret_goes_with_its_object_and_is_not_made_again_meanwhile() -> Result<()> {
    let world = ready_world()?;
    world.kubectl(["delete", "encryptedsecret", "db", "--cascade=foreground", "--wait=false"])?;
    world.until("both to go", || {
        let gone = world.find("encryptedsecret", "db")?.is_none() && world.find("secret", "db")?.is_none();
        Ok(gone.then_some(()))
    })?;
    let created = world.writes_of_objects()?.iter().filter(|write| *write == "create secrets db").count();
    assert_eq!(created, 1);
    Ok(())
}

#[test]
fn an_object_made_anew_waits_for_the_old_secret_to_go_and_then_makes_its_own() -> Result<()> {
    let world = ready_world()?;
    world.kubectl(["delete", "encryptedsecret", "db"])?;
    world.apply(&Sealing::new(&world)?.with("/stringData/user", json!("second")).yaml()?)?;
    world.until_ready("db")?;
    world.until("the new Secret", || Ok((world.value("db", "user")? == "second").then_some(())))
}

#[test]
fn what_changed_while_the_controller_was_away_is_repaired_when_it_returns() -> Result<()> {
    let mut world = ready_world()?;
    world.stop();
    world.patch("secret", "db", &json!({"stringData": {"password": "changed"}}))?;
    world.start(&[])?;
    world.until("the repair", || Ok((world.value("db", "password")? == "hunter2-CANARY").then_some(())))?;
    world.stop();
    let before = world.writes()?;
    world.start(&[])?;
    world.until("a look at the object", || Ok((world.reconciles("db")? > 0).then_some(())))?;
    assert_eq!(world.writes()?, before, "a restart alone writes nothing");
    Ok(())
}

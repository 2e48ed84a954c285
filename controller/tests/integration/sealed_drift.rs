//! A Secret is put right when someone changes it, or only told, and nothing is written for nothing.

use anyhow::Result;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use crate::harness::World;
use crate::sealed_object::{SealedObject, condition, data, pairs};

fn apply(world: &World, name: &str) -> Result<()> {
    let object = SealedObject::new(world, name)?.item("k", "right")?.item("other", "too")?;
    object.with("/spec/template", json!({"metadata": {"labels": {"tier": "back"}}})).apply()?;
    world.until_unsealed(name)?;
    Ok(())
}

fn is_right(secret: &Value) -> Result<bool> {
    Ok(data(secret)? == pairs(&[("k", "right"), ("other", "too")])
        && secret["metadata"]["labels"] == json!({"tier": "back"})
        && secret["type"] == "Opaque")
}

fn until_right(world: &World, name: &str) -> Result<()> {
    world.until("the repair", || {
        let secret = world.find("secret", name)?.unwrap_or_default();
        Ok(is_right(&secret)?.then_some(()))
    })
}

#[test]
fn what_is_changed_comes_back() -> Result<()> {
    let world = World::new()?;
    apply(&world, "db")?;
    let changes = [
        json!({"stringData": {"k": "changed"}}),
        json!({"data": {"other": null}}),
        json!({"stringData": {"more": "x"}}),
        json!({"metadata": {"labels": {"tier": "front", "team": "blue"}}}),
    ];
    for change in &changes {
        world.patch("secret", "db", change)?;
        until_right(&world, "db")?;
    }
    assert_eq!(world.metric("lacre_drift_repairs_total")?, Some(4.0));
    let events = world.until_sealed_events("db", 5)?;
    let put_right =
        "Normal Unsealed: SealedSecret unsealed successfully; the Secret was changed and is put right: ";
    assert_eq!(events[1], format!("{put_right}k (sealed-secrets)"));
    assert!(events[4].contains("label team"), "{events:?}");
    assert!(!events.join(" ").contains("changed-"), "{events:?}");
    world.kubectl(["delete", "secret", "db"])?;
    until_right(&world, "db")?;
    let expected = "create secrets db|update sealedsecrets/status db|".to_owned()
        + &"update secrets db|".repeat(4)
        + "create secrets db";
    assert_eq!(world.writes_of_objects()?.join("|"), expected);
    Ok(())
}

#[test]
fn a_secret_of_another_type_in_its_place_is_exchanged() -> Result<()> {
    let world = World::new()?;
    apply(&world, "db")?;
    let found = world.secret("db")?;
    let other: Secret = serde_json::from_value(json!({
        "metadata": {
            "name": "db",
            "namespace": world.namespace,
            "ownerReferences": found["metadata"]["ownerReferences"],
        },
        "type": "example.com/other",
        "data": found["data"],
    }))?;
    // Whoever comes first: if the controller does, it is tried again.
    world.until("a Secret of another type", || {
        Ok(world.as_controller(async |secrets| {
            secrets.delete("db", &DeleteParams::default()).await.ok()?;
            secrets.create(&PostParams::default(), &other).await.map(drop).ok()
        }))
    })?;
    until_right(&world, "db")?;
    world.until_unsealed("db")?;
    Ok(())
}

#[test]
fn drift_is_only_told_where_the_administrator_says_so() -> Result<()> {
    let world = World::with_flags(&["--drift", "report"])?;
    apply(&world, "db")?;
    world.patch("secret", "db", &json!({"stringData": {"k": "changed-CANARY"}}))?;
    let object = world.until_sealed_is("db", "False", "Drifted")?;
    let message = condition(&object, "Synced")["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("changed: k;") && !message.contains("CANARY"), "{message}");
    assert!(world.until_sealed_events("db", 2)?[1].starts_with("Warning Drifted: "));
    world.nudge("db", "1")?;
    assert_eq!(world.value("db", "k")?, "changed-CANARY");
    // A new version of the object is no drift.
    SealedObject::new(&world, "db")?.item("k", "newer")?.apply()?;
    world.until_value("db", "k", "newer")?;
    world.until_unsealed("db")?;
    world.kubectl(["delete", "secret", "db"])?;
    let gone = world.until_sealed_is("db", "False", "Drifted")?;
    assert!(condition(&gone, "Ready")["message"].as_str().is_some_and(|text| text.contains("gone")));
    assert!(world.find("secret", "db")?.is_none());
    Ok(())
}

#[test]
fn who_insists_on_a_change_is_answered_ever_more_rarely() -> Result<()> {
    let world = World::with_flags(&["--retry-delay", "1h", "--retry-delay-max", "1h"])?;
    apply(&world, "db")?;
    for round in 0..6 {
        world.patch("secret", "db", &json!({"stringData": {"k": format!("changed {round}")}}))?;
        until_right(&world, "db")?;
    }
    world.wake_sealed("db", || world.patch("secret", "db", &json!({"stringData": {"k": "again"}})))?;
    world.nudge("db", "1")?;
    assert_eq!(world.value("db", "k")?, "again");
    // What the object's own author wants does not wait.
    SealedObject::new(&world, "db")?.item("k", "newer")?.apply()?;
    world.until_value("db", "k", "newer")
}

#[test]
fn a_restart_writes_nothing_when_nothing_changed_and_repairs_what_did() -> Result<()> {
    let mut world = World::new()?;
    for name in ["a", "b", "c"] {
        apply(&world, name)?;
    }
    SealedObject::new(&world, "bad")?.item_for("k", "v", "elsewhere")?.apply()?;
    world.until_sealed_is("bad", "False", "NotOpened")?;
    world.until_sealed_events("bad", 1)?;
    let writes = world.writes()?;
    let looked = |world: &World| {
        world.until("a look at each", || {
            let looks = ["a", "b", "c", "bad"].map(|name| world.sealed_looks(name));
            Ok(looks.into_iter().all(|looks| looks.is_ok_and(|looks| looks > 0)).then_some(()))
        })
    };
    world.stop();
    world.start(&[])?;
    looked(&world)?;
    assert_eq!(world.writes()?, writes);
    world.stop();
    world.patch("secret", "a", &json!({"stringData": {"k": "changed"}}))?;
    world.kubectl(["delete", "secret", "b"])?;
    world.start(&[])?;
    until_right(&world, "a")?;
    until_right(&world, "b")?;
    looked(&world)?;
    assert_eq!(
        world.writes_of_objects()?.len(),
        writes.iter().filter(|write| !write.contains(" events")).count() + 2
    );
    Ok(())
}

#[test]
fn without_a_watch_on_secrets_a_foreign_one_that_goes_is_still_noticed() -> Result<()> {
    let world = World::with_flags(&["--skip-recreate"])?;
    world.kubectl(["create", "secret", "generic", "db", "--from-literal=k=theirs"])?;
    SealedObject::new(&world, "db")?.item("k", "right")?.apply()?;
    world.until_sealed_is("db", "False", "TargetConflict")?;
    world.kubectl(["delete", "secret", "db"])?;
    world.until_value("db", "k", "right")
}

//! The status is true, whoever else writes it, and only written when it says something new.

use anyhow::Result;
use serde_json::json;

use crate::harness::World;
use crate::sealed_object::{SealedObject, condition};

#[test]
fn a_status_that_others_write_at_the_same_time_is_written_again() -> Result<()> {
    let world = World::new()?;
    SealedObject::new(&world, "db")?.item("k", "0")?.apply()?;
    world.until_unsealed("db")?;
    for round in 1..=10 {
        SealedObject::new(&world, "db")?.item("k", &round.to_string())?.apply()?;
        // Neither wakes the controller, so the version that it holds is an old one.
        for number in 0..3 {
            let mark =
                json!({"metadata": {"annotations": {"example.com/mark": format!("{round}-{number}")}}});
            world.patch("sealedsecret", "db", &mark)?;
        }
        let object = world.until_unsealed("db")?;
        assert_eq!(object["status"]["observedGeneration"], round + 1);
        world.until_value("db", "k", &round.to_string())?;
    }
    Ok(())
}

#[test]
fn conditions_of_others_and_times_of_transition_stay() -> Result<()> {
    let world = World::new()?;
    SealedObject::new(&world, "db")?.item("k", "v")?.apply()?;
    let first = world.until_unsealed("db")?;
    let synced = condition(&first, "Synced");
    assert_eq!(synced["lastTransitionTime"], synced["lastUpdateTime"]);
    let mut conditions = first["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.insert(0, json!({"type": "Audited", "status": "True"}));
    let status = json!({"status": {"conditions": conditions}}).to_string();
    world.kubectl(["patch", "sealedsecret", "db", "--subresource=status", "--type=merge", "-p", &status])?;
    SealedObject::new(&world, "db")?.item("k", "w")?.apply()?;
    let second = world.until_unsealed("db")?;
    let types: Vec<_> =
        second["status"]["conditions"].as_array().into_iter().flatten().map(|c| c["type"].clone()).collect();
    assert_eq!(types, ["Synced", "Ready", "Audited"]);
    assert_eq!(condition(&second, "Synced")["lastTransitionTime"], synced["lastTransitionTime"]);
    Ok(())
}

#[test]
fn a_status_is_not_written_where_it_is_not_wanted_and_events_still_come_once() -> Result<()> {
    let world = World::with_flags(&["--update-status=false"])?;
    SealedObject::new(&world, "db")?.item("k", "v")?.apply()?;
    SealedObject::new(&world, "bad")?.item_for("k", "v", "elsewhere")?.apply()?;
    world.until_value("db", "k", "v")?;
    world.until_sealed_events("db", 1)?;
    world.until_sealed_events("bad", 1)?;
    world.wake_sealed("db", || {
        world.patch("secret", "db", &json!({"metadata": {"annotations": {"x": "y"}}}))
    })?;
    world
        .until("the repair", || Ok(world.secret("db")?["metadata"]["annotations"].is_null().then_some(())))?;
    assert!(
        world.writes_of_objects()?.iter().all(|write| !write.contains("status")),
        "{:?}",
        world.writes_of_objects()?
    );
    assert!(world.sealed_secret("bad")?["status"].is_null());
    Ok(())
}

#[test]
fn the_conditions_are_complete_for_whoever_waits_for_them() -> Result<()> {
    let world = World::new()?;
    SealedObject::new(&world, "good")?.item("k", "v")?.apply()?;
    SealedObject::new(&world, "bad")?.item_for("k", "v", "elsewhere")?.apply()?;
    world.kubectl(["wait", "--for=condition=Ready", "sealedsecret/good", "--timeout=30s"])?;
    world.kubectl(["wait", "--for=condition=Synced", "sealedsecret/good", "--timeout=30s"])?;
    world.kubectl(["wait", "--for=condition=Stalled", "sealedsecret/bad", "--timeout=30s"])?;
    let good = world.sealed_secret("good")?;
    assert!(condition(&good, "Stalled").is_null() && condition(&good, "Reconciling").is_null());
    SealedObject::new(&world, "bad")?.item("k", "v")?.apply()?;
    let mended = world.until_unsealed("bad")?;
    assert!(condition(&mended, "Stalled").is_null());
    Ok(())
}

#[test]
fn only_selected_objects_are_served() -> Result<()> {
    let world = World::with_flags(&["--label-selector", "team=blue"])?;
    SealedObject::new(&world, "other")?.item("k", "v")?.apply()?;
    let mine = SealedObject::new(&world, "mine")?.item("k", "v")?;
    mine.with("/metadata/labels", json!({"team": "blue"})).apply()?;
    world.until_unsealed("mine")?;
    // Its Secret carries no such label and is watched all the same.
    world.kubectl(["delete", "secret", "mine"])?;
    world.until_value("mine", "k", "v")?;
    assert!(world.find("secret", "other")?.is_none());
    assert!(world.sealed_secret("other")?["status"].is_null());
    world.patch("sealedsecret", "other", &json!({"metadata": {"labels": {"team": "blue"}}}))?;
    world.until_unsealed("other")?;
    Ok(())
}

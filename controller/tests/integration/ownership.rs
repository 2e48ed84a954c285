//! Only a Secret that is the object's own is written.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use lacre_controller::api::EncryptedSecret;
use lacre_controller::apply;
use lacre_controller::error::Reason;
use lacre_controller::policy::Scope;
use lacre_controller::unseal::Unsealed;
use lacre_crypto::secret::SecretBytes;
use serde_json::json;

use crate::harness::World;
use crate::sealing::Sealing;

#[test]
fn a_foreign_secret_is_never_touched_and_its_end_wakes_the_object() -> Result<()> {
    let world = World::new()?;
    world.kubectl(["create", "secret", "generic", "db", "--from-literal=password=theirs"])?;
    let before = world.secret("db")?;
    world.apply(&Sealing::new(&world)?.yaml()?)?;
    let ready = world.until_ready_is("db", "False", "TargetConflict")?;
    let message = ready["message"].as_str().context("no message")?;
    assert!(message.contains("no owner") && message.contains("kubectl-create"), "{message}");
    assert_eq!(world.secret("db")?, before);
    assert_eq!(world.writes_of_objects()?, ["patch encryptedsecrets/status db"]);
    world.kubectl(["delete", "secret", "db"])?;
    world.until_ready("db")?;
    assert_eq!(world.value("db", "password")?, "hunter2-CANARY");
    Ok(())
}

#[test]
fn a_secret_in_the_way_is_looked_for_again_since_its_end_may_have_gone_unseen() -> Result<()> {
    let world = World::with_flags(&["--resync", "100ms"])?;
    world.kubectl(["create", "secret", "generic", "db", "--from-literal=password=theirs"])?;
    world.apply(&Sealing::new(&world)?.yaml()?)?;
    world.until_ready_is("db", "False", "TargetConflict")?;
    world.until("more looks", || Ok((world.reconciles("db")? > 3).then_some(())))?;
    assert_eq!(world.writes_of_objects()?, ["patch encryptedsecrets/status db"]);
    Ok(())
}

#[test]
fn a_secret_of_another_controller_is_named_by_its_owner() -> Result<()> {
    let world = World::new()?;
    world.apply(
        &json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "db", "namespace": world.namespace, "ownerReferences": [{
                "apiVersion": "v1",
                "kind": "Namespace",
                "name": "someone",
                "uid": "11111111-2222-3333-4444-555555555555",
                "controller": true,
            }]},
            "data": {},
        })
        .to_string(),
    )?;
    world.apply(&Sealing::new(&world)?.yaml()?)?;
    // The garbage collector may take the Secret of an owner that never was; the refusal comes first or the Secret goes.
    let seen = world.until("a verdict", || {
        let object = world.find("encryptedsecret", "db")?.unwrap_or_default();
        Ok(Some(crate::harness::ready(&object)).filter(|ready| !ready.is_null()))
    })?;
    if seen["reason"] == "TargetConflict" {
        assert!(
            seen["message"].as_str().is_some_and(|message| message.contains("Namespace someone")),
            "{seen}"
        );
    }
    world.until_ready("db")?;
    Ok(())
}

#[test]
fn a_secret_whose_owner_reference_was_taken_away_is_foreign() -> Result<()> {
    let world = World::new()?;
    world.apply(&Sealing::new(&world)?.yaml()?)?;
    world.until_ready("db")?;
    world.patch(
        "secret",
        "db",
        &json!({"metadata": {"ownerReferences": null}, "stringData": {"password": "by hand"}}),
    )?;
    world.until_ready_is("db", "False", "TargetConflict")?;
    assert_eq!(world.value("db", "password")?, "by hand");
    Ok(())
}

#[test]
fn a_secret_that_changes_hands_while_its_object_is_opened_is_not_written() -> Result<()> {
    let mut world = World::new()?;
    world.apply(&Sealing::new(&world)?.yaml()?)?;
    world.until_ready("db")?;
    world.patch("secret", "db", &json!({"stringData": {"password": "changed"}}))?;
    world.until("the repair", || Ok((world.value("db", "password")? == "hunter2-CANARY").then_some(())))?;
    world.stop();
    let object: EncryptedSecret =
        serde_json::from_value(world.find("encryptedsecret", "db")?.context("no object")?)?;
    let unsealed = Unsealed {
        type_: "Opaque".to_owned(),
        immutable: false,
        labels: BTreeMap::new(),
        annotations: BTreeMap::new(),
        data: BTreeMap::from([("password".to_owned(), SecretBytes::new(b"late".to_vec()))]),
        last_modified: String::new(),
        scope: Scope::Strict,
        fingerprints: BTreeMap::new(),
    };
    let live = world.as_controller(async |secrets| apply::look(&secrets, &object).await)?;
    let taken = json!({"metadata": {"ownerReferences": null}, "stringData": {"password": "theirs"}});
    world.patch("secret", "db", &taken)?;
    let before = world.secret("db")?;
    let late = world.as_controller(async |secrets| apply::apply(&secrets, &object, &unsealed, live).await);
    assert_eq!(late.err().map(|failure| failure.reason), Some(Reason::WriteConflict));
    assert_eq!(world.secret("db")?, before);
    Ok(())
}

#[test]
fn a_secret_that_is_labelled_as_holding_keys_is_not_written() -> Result<()> {
    let world = World::new()?;
    world.apply(&Sealing::new(&world)?.yaml()?)?;
    world.until_ready("db")?;
    world.patch(
        "secret",
        "db",
        &json!({"metadata": {"labels": {"lacre.dev/keys": "true"}}, "stringData": {"user": "x"}}),
    )?;
    world.until_ready_is("db", "False", "ForbiddenTarget")?;
    assert_eq!(world.value("db", "user")?, "x");
    Ok(())
}

#[test]
fn what_the_api_server_never_changes_is_told_and_the_secret_stays() -> Result<()> {
    let world = World::new()?;
    world.apply(&Sealing::new(&world)?.with("/immutable", json!(true)).yaml()?)?;
    world.until_ready("db")?;
    assert_eq!(world.secret("db")?["immutable"], true);
    let before = world.secret("db")?;
    let changed =
        Sealing::new(&world)?.with("/immutable", json!(true)).with("/stringData/user", json!("other"));
    world.apply(&changed.yaml()?)?;
    let ready = world.until_ready_is("db", "False", "ImmutableField")?;
    assert!(
        ready["message"]
            .as_str()
            .is_some_and(|message| message.contains("user") && message.contains("delete it"))
    );
    let typed = Sealing::new(&world)?.with("/type", json!("kubernetes.io/basic-auth"));
    world.apply(&typed.with("/stringData", json!({"username": "a", "password": "b"})).yaml()?)?;
    world.until_ready_is("db", "False", "ImmutableField")?;
    assert_eq!(world.secret("db")?, before);
    // A person deletes it, and it is made again in its new form.
    world.kubectl(["delete", "secret", "db"])?;
    world.until_ready("db")?;
    assert_eq!(world.secret("db")?["type"], "kubernetes.io/basic-auth");
    Ok(())
}

#[test]
fn a_secret_that_the_api_server_refuses_is_told_without_its_values() -> Result<()> {
    let world = World::new()?;
    let sealing = Sealing::new(&world)?.with("/type", json!("kubernetes.io/dockerconfigjson"));
    world.apply(&sealing.with("/stringData", json!({".dockerconfigjson": "not json CANARY"})).yaml()?)?;
    let ready = world.until_ready_is("db", "False", "RejectedSecret")?;
    let message = ready["message"].as_str().context("no message")?;
    assert!(message.contains("dockerconfigjson") && !message.contains("CANARY"), "{message}");
    Ok(())
}

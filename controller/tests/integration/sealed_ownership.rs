//! Whose a Secret is: the rules of Sealed Secrets, and those where it gives up.

use anyhow::Result;
use serde_json::{Value, json};

use crate::harness::World;
use crate::sealed_object::{PREFIX, SealedObject, condition, data, pairs};

/// A Secret that somebody else made.
fn foreign(world: &World, name: &str, annotations: &Value) -> Result<Value> {
    world.apply(
        &json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": world.namespace, "labels": {"keep": "1"}, "annotations": annotations},
            "stringData": {"k": "old", "extra": "e"},
        })
        .to_string(),
    )?;
    world.secret(name)
}

fn sealed<'a>(world: &'a World, name: &str, value: &str) -> Result<SealedObject<'a>> {
    let object = SealedObject::new(world, name)?.item("k", value)?;
    Ok(object.with("/spec/template", json!({"metadata": {"labels": {"new": "1"}}})))
}

fn mark(name: &str) -> String {
    format!("{PREFIX}/{name}")
}

#[test]
fn a_foreign_secret_is_not_touched_until_it_goes_or_is_given() -> Result<()> {
    let world = World::new()?;
    for name in ["gone", "given"] {
        let before = foreign(&world, name, &Value::Null)?;
        sealed(&world, name, "alpha")?.apply()?;
        let object = world.until_sealed_is(name, "False", "TargetConflict")?;
        let known = format!("Resource {name:?} already exists and is not managed by SealedSecret");
        assert_eq!(condition(&object, "Synced")["message"], format!("failed update: {known}"));
        let ready = condition(&object, "Ready")["message"].clone();
        assert!(ready.as_str().is_some_and(|text| text.contains("written by tester")), "{ready}");
        let event = format!("Warning ErrUpdateFailed: {known} (sealed-secrets)");
        assert_eq!(world.until_sealed_events(name, 1)?, [event]);
        world.until("more looks", || Ok((world.sealed_looks(name)? > 3).then_some(())))?;
        assert_eq!(world.secret(name)?, before);
        assert_eq!(world.sealed_events(name)?.len(), 1);
    }
    let writes = world.writes_of_objects()?;
    assert_eq!(writes, ["update sealedsecrets/status gone", "update sealedsecrets/status given"]);

    world.kubectl(["delete", "secret", "gone"])?;
    world.until_unsealed("gone")?;
    assert_eq!(data(&world.secret("gone")?)?, pairs(&[("k", "alpha")]));
    world.patch("secret", "given", &json!({"metadata": {"annotations": {mark("managed"): "true"}}}))?;
    world.until_unsealed("given")?;
    let secret = world.secret("given")?;
    assert_eq!(data(&secret)?, pairs(&[("k", "alpha")]));
    assert_eq!(secret["metadata"]["labels"], json!({"new": "1"}));
    assert_eq!(secret["metadata"]["annotations"], Value::Null);
    assert_eq!(secret["metadata"]["ownerReferences"][0]["kind"], "SealedSecret");
    Ok(())
}

/// Makes the object for a Secret with these annotations; gives the Secret as it is then.
fn row(world: &World, name: &str, annotations: &[&str]) -> Result<Value> {
    let annotations: serde_json::Map<_, _> =
        annotations.iter().map(|annotation| (mark(annotation), json!("true"))).collect();
    foreign(world, name, &annotations.into())?;
    sealed(world, name, "new")?.apply()?;
    world.until_unsealed(name)?;
    world.secret(name)
}

#[test]
fn a_managed_secret_is_replaced_and_goes_with_its_object() -> Result<()> {
    let world = World::new()?;
    let secret = row(&world, "m", &["managed"])?;
    assert_eq!(data(&secret)?, pairs(&[("k", "new")]));
    assert_eq!(secret["metadata"]["labels"], json!({"new": "1"}));
    assert_eq!(secret["metadata"]["annotations"], Value::Null);
    assert_eq!(secret["metadata"]["ownerReferences"][0]["name"], "m");
    world.kubectl(["delete", "sealedsecret", "m"])?;
    world.until_gone("secret", "m")
}

#[test]
fn a_patched_secret_is_added_to_and_outlives_its_object() -> Result<()> {
    let world = World::new()?;
    let secret = row(&world, "m", &["patch"])?;
    assert_eq!(data(&secret)?, pairs(&[("extra", "e"), ("k", "new")]));
    assert_eq!(secret["metadata"]["labels"], json!({"keep": "1", "new": "1"}));
    assert_eq!(secret["metadata"]["annotations"], json!({mark("patch"): "true"}));
    assert_eq!(secret["metadata"]["ownerReferences"], Value::Null);
    // What its owner takes back is not ours because we once wrote it.
    world.patch("secret", "m", &json!({"metadata": {"annotations": null}, "stringData": {"k": "theirs"}}))?;
    world.until_sealed_is("m", "False", "TargetConflict")?;
    assert_eq!(world.value("m", "k")?, "theirs");
    world.kubectl(["delete", "sealedsecret", "m"])?;
    SealedObject::new(&world, "clock")?.item("k", "v")?.apply()?;
    world.until_unsealed("clock")?;
    assert_eq!(world.value("m", "k")?, "theirs");
    Ok(())
}

#[test]
fn a_managed_and_patched_secret_is_added_to_and_goes_with_its_object() -> Result<()> {
    let world = World::new()?;
    let secret = row(&world, "m", &["managed", "patch"])?;
    assert_eq!(data(&secret)?, pairs(&[("extra", "e"), ("k", "new")]));
    assert_eq!(secret["metadata"]["labels"], json!({"keep": "1", "new": "1"}));
    assert_eq!(secret["metadata"]["annotations"], json!({mark("managed"): "true", mark("patch"): "true"}));
    assert_eq!(secret["metadata"]["ownerReferences"][0]["name"], "m");
    world.kubectl(["delete", "sealedsecret", "m"])?;
    world.until_gone("secret", "m")
}

fn free<'a>(world: &'a World, value: &str) -> Result<SealedObject<'a>> {
    let object = SealedObject::new(world, "free")?.item("k", value)?;
    Ok(object.with("/spec/template/metadata/annotations", json!({mark("skip-set-owner-references"): "true"})))
}

#[test]
fn a_secret_without_owner_is_made_changed_kept_and_made_again() -> Result<()> {
    let world = World::new()?;
    free(&world, "alpha")?.apply()?;
    world.until_unsealed("free")?;
    assert_eq!(world.secret("free")?["metadata"]["ownerReferences"], Value::Null);
    assert!(world.until_sealed_events("free", 1)?[0].starts_with("Normal Unsealed"));
    free(&world, "beta")?.apply()?;
    world.until_value("free", "k", "beta")?;
    world.kubectl(["delete", "secret", "free"])?;
    world.until_value("free", "k", "beta")?;
    world.until_unsealed("free")?;
    world.kubectl(["delete", "sealedsecret", "free"])?;
    SealedObject::new(&world, "clock")?.item("k", "v")?.apply()?;
    world.until_unsealed("clock")?;
    assert_eq!(world.value("free", "k")?, "beta");
    // The next object of the name finds it by who wrote it.
    free(&world, "gamma")?.apply()?;
    world.until_value("free", "k", "gamma")?;
    // With an owner from now on.
    let annotations = json!({mark("skip-set-owner-references"): null});
    world.patch(
        "sealedsecret",
        "free",
        &json!({"spec": {"template": {"metadata": {"annotations": annotations}}}}),
    )?;
    world.until("an owner", || {
        Ok(world.secret("free")?["metadata"]["ownerReferences"][0]["name"].is_string().then_some(()))
    })
}

#[test]
fn an_equal_secret_is_fine_whoever_wrote_it_and_stays_foreign_when_it_differs() -> Result<()> {
    let world = World::new()?;
    let theirs = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "free",
            "namespace": world.namespace,
            "annotations": {mark("skip-set-owner-references"): "true"},
        },
        "stringData": {"k": "alpha"},
    });
    world.apply(&theirs.to_string())?;
    let before = world.secret("free")?;
    free(&world, "alpha")?.apply()?;
    world.until_unsealed("free")?;
    free(&world, "beta")?.apply()?;
    world.until_sealed_is("free", "False", "TargetConflict")?;
    assert_eq!(world.secret("free")?, before);
    Ok(())
}

#[test]
fn a_secret_whose_owner_reference_was_taken_away_is_foreign() -> Result<()> {
    let world = World::new()?;
    sealed(&world, "db", "alpha")?.apply()?;
    world.until_unsealed("db")?;
    world.patch(
        "secret",
        "db",
        &json!({"metadata": {"ownerReferences": null}, "stringData": {"k": "by hand"}}),
    )?;
    world.until_sealed_is("db", "False", "TargetConflict")?;
    assert_eq!(world.value("db", "k")?, "by hand");
    Ok(())
}

#[test]
fn an_object_that_is_deleted_and_made_anew_takes_its_secret_over() -> Result<()> {
    let mut world = World::new()?;
    sealed(&world, "db", "alpha")?.apply()?;
    let old = world.until_unsealed("db")?["metadata"]["uid"].clone();
    let again = sealed(&world, "db", "beta")?;
    let manifest = again.manifest();
    // Without waiting for the garbage collector, and once while nobody reconciles.
    world.kubectl(["delete", "sealedsecret", "db"])?;
    world.apply(&manifest)?;
    world.until_value("db", "k", "beta")?;
    let owner = world.secret("db")?["metadata"]["ownerReferences"][0]["uid"].clone();
    assert_ne!(owner, old);
    world.until_unsealed("db")?;
    world.stop();
    world.kubectl(["delete", "sealedsecret", "db", "--cascade=background"])?;
    world.apply(&manifest)?;
    world.start(&[])?;
    world.until("the Secret of the new object", || {
        let uid = world.sealed_secret("db")?["metadata"]["uid"].clone();
        let secret = world.find("secret", "db")?.unwrap_or_default();
        Ok((secret["metadata"]["ownerReferences"][0]["uid"] == uid).then_some(()))
    })?;
    world.until_unsealed("db")?;
    Ok(())
}

#[test]
fn a_secret_that_holds_keys_is_not_written_although_it_is_marked() -> Result<()> {
    let world = World::new()?;
    foreign(&world, "keys", &json!({mark("managed"): "true"}))?;
    world.patch(
        "secret",
        "keys",
        &json!({"metadata": {"labels": {mark("sealed-secrets-key"): "active"}}}),
    )?;
    let before = world.secret("keys")?;
    sealed(&world, "keys", "new")?.apply()?;
    world.until_sealed_is("keys", "False", "ForbiddenTarget")?;
    assert_eq!(world.secret("keys")?, before);
    Ok(())
}

#[test]
fn what_the_api_server_never_changes_is_told_and_the_secret_stays() -> Result<()> {
    let world = World::new()?;
    let object = |value: &str, template: Value| -> Result<()> {
        SealedObject::new(&world, "db")?.item("k", value)?.with("/spec/template", template).apply()
    };
    object("old", json!({"immutable": true}))?;
    world.until_unsealed("db")?;
    let before = world.secret("db")?;
    assert_eq!(before["immutable"], true);
    object("new", json!({"immutable": true}))?;
    let failed = world.until_sealed_is("db", "False", "ImmutableField")?;
    let message = condition(&failed, "Synced")["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("the target Secret is immutable") && message.contains("delete it"), "{message}");
    let events = world.until_sealed_events("db", 2)?;
    assert!(
        events[1].starts_with("Warning ErrUpdateFailed: ")
            && events[1].contains("the target Secret is immutable")
    );
    object("old", json!({"type": "example.com/other"}))?;
    world.until("the type in the message", || {
        let message = condition(&world.sealed_secret("db")?, "Ready")["message"].clone();
        Ok(message.as_str().is_some_and(|text| text.contains("example.com/other")).then_some(()))
    })?;
    assert_eq!(world.secret("db")?, before);
    world.kubectl(["delete", "secret", "db"])?;
    world.until_unsealed("db")?;
    assert_eq!(world.secret("db")?["type"], "example.com/other");
    Ok(())
}

#[test]
fn a_secret_is_deleted_with_its_object_only_where_it_was_its_own() -> Result<()> {
    let world = World::with_flags(&["--old-gc-behavior"])?;
    let own = ["a", "b", "c", "d", "e"];
    for name in own {
        sealed(&world, name, "v")?.apply()?;
        world.until_unsealed(name)?;
    }
    foreign(&world, "theirs", &Value::Null)?;
    sealed(&world, "theirs", "v")?.apply()?;
    world.until_sealed_is("theirs", "False", "TargetConflict")?;
    world.kubectl(["delete", "sealedsecret", "theirs"].into_iter().chain(own))?;
    for name in own {
        world.until_gone("secret", name)?;
    }
    // The garbage collector may be the first for some of them.
    world.until("a deletion of ours", || {
        Ok(world.writes()?.iter().any(|write| write.starts_with("delete secrets ")).then_some(()))
    })?;
    assert!(world.find("secret", "theirs")?.is_some());
    Ok(())
}

#[test]
fn an_object_that_loses_the_label_by_which_it_is_selected_keeps_its_secret() -> Result<()> {
    let world = World::with_flags(&["--old-gc-behavior", "--label-selector", "team=blue"])?;
    for name in ["db", "clock"] {
        let object = SealedObject::new(&world, name)?.item("k", "v")?;
        object.with("/metadata/labels", json!({"team": "blue"})).apply()?;
        world.until_unsealed(name)?;
    }
    world.patch("sealedsecret", "db", &json!({"metadata": {"labels": {"team": "red"}}}))?;
    // That the controller saw it leave shows in its series, which go with what is not served.
    world.until("its series to go", || Ok((world.sealed_looks("db")? == 0).then_some(())))?;
    world.nudge("clock", "1")?;
    assert!(!world.writes()?.iter().any(|write| write.starts_with("delete ")));
    assert_eq!(world.value("db", "k")?, "v");
    Ok(())
}

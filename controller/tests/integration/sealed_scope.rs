//! A SealedSecret opens where its items were sealed for, and one that does not harms no other.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::harness::World;
use crate::sealed_object::{PREFIX, SealedObject, condition, data, pairs};

#[test]
fn an_object_becomes_its_secret_and_a_second_look_writes_nothing() -> Result<()> {
    let world = World::new()?;
    let object = SealedObject::new(&world, "db")?.item("password", "hunter2-CANARY")?.item("empty", "")?;
    let template =
        json!({"metadata": {"labels": {"tier": "back"}, "annotations": {"note": "x"}, "name": "other"}});
    object.with("/spec/template", template).apply()?;
    let sealed = world.until_unsealed("db")?;
    let secret = world.secret("db")?;
    assert_eq!(data(&secret)?, pairs(&[("empty", ""), ("password", "hunter2-CANARY")]));
    assert_eq!(
        (&secret["type"], &secret["metadata"]["labels"]),
        (&json!("Opaque"), &json!({"tier": "back"}))
    );
    let owner = json!([{
        "apiVersion": "bitnami.com/v1alpha1",
        "kind": "SealedSecret",
        "name": "db",
        "uid": sealed["metadata"]["uid"],
        "controller": true,
    }]);
    assert_eq!(secret["metadata"]["ownerReferences"], owner);
    assert_eq!(condition(&sealed, "Synced")["message"].as_str().unwrap_or_default(), "");

    let writes = world.writes_of_objects()?;
    assert_eq!(writes, ["create secrets db", "update sealedsecrets/status db"]);
    let told = "Normal Unsealed: SealedSecret unsealed successfully (sealed-secrets)";
    assert_eq!(world.until_sealed_events("db", 1)?, [told]);
    world.nudge("db", "1")?;
    world.nudge("db", "2")?;
    assert_eq!(world.writes_of_objects()?, writes);
    assert_eq!(world.sealed_events("db")?.len(), 1);
    let said =
        format!("{} {} {}", world.sealed_secret("db")?["status"], world.ask("/metrics")?.body, world.log(0)?);
    assert!(!said.contains("CANARY"), "{said}");
    Ok(())
}

#[test]
fn a_scope_annotation_alone_opens_what_was_sealed_for_it() -> Result<()> {
    let world = World::new()?;
    let namespace = world.namespace.clone();
    SealedObject::new(&world, "renamed")?.item_for("k", "alpha", &namespace)?.apply()?;
    let failed = world.until_sealed_is("renamed", "False", "ScopeMismatch")?;
    assert!(world.find("secret", "renamed")?.is_none());
    assert_eq!(failed["status"]["observedGeneration"], 1);
    let message = condition(&failed, "Synced")["message"].clone();
    assert_eq!(message, "no key could decrypt secret (k)");
    let ready = condition(&failed, "Ready")["message"].clone();
    let told = format!("sealed for any name in namespace {namespace}");
    assert!(ready.as_str().is_some_and(|text| text.contains(&told)), "{ready}");
    let event = world.until_sealed_events("renamed", 1)?;
    let told = "Warning ErrUnsealFailed: Failed to unseal: no key could decrypt secret (k) (sealed-secrets)";
    assert_eq!(event, [told]);

    let annotation = |name: &str| json!({"metadata": {"annotations": {format!("{PREFIX}/{name}"): "true"}}});
    world.patch("sealedsecret", "renamed", &annotation("namespace-wide"))?;
    let opened = world.until_unsealed("renamed")?;
    assert_eq!(opened["metadata"]["generation"], 1, "the annotation alone was changed");
    assert_eq!(data(&world.secret("renamed")?)?, pairs(&[("k", "alpha")]));

    SealedObject::new(&world, "wide")?.item_for("k", "beta", "")?.apply()?;
    world.until_sealed_is("wide", "False", "ScopeMismatch")?;
    world.patch("sealedsecret", "wide", &annotation("cluster-wide"))?;
    world.until_unsealed("wide")?;
    Ok(())
}

#[test]
fn an_item_of_another_name_opens_in_no_scope_and_is_not_tried_all_the_time() -> Result<()> {
    let world = World::with_flags(&["--retry-delay", "10ms", "--retry-delay-max", "20ms"])?;
    let label = format!("{}/other", world.namespace);
    SealedObject::new(&world, "db")?.item_for("k", "alpha", &label)?.apply()?;
    world.until_sealed_is("db", "False", "NotOpened")?;
    for scope in ["namespace-wide", "cluster-wide"] {
        let annotation = json!({"metadata": {"annotations": {format!("{PREFIX}/{scope}"): "true"}}});
        world.wake_sealed("db", || world.patch("sealedsecret", "db", &annotation))?;
    }
    world.until_sealed_is("db", "False", "NotOpened")?;
    SealedObject::new(&world, "clock")?.item("k", "v")?.apply()?;
    world.until_unsealed("clock")?;
    for number in 0..5 {
        world.nudge("clock", &number.to_string())?;
    }
    assert_eq!(world.sealed_looks("db")?, 3);
    assert!(world.find("secret", "db")?.is_none());
    Ok(())
}

#[test]
fn bad_objects_fail_alone_with_all_their_items_named() -> Result<()> {
    let world = World::new()?;
    let base64 = SealedObject::new(&world, "base64")?.item("good", "v")?;
    base64
        .with("/spec/encryptedData/bad", json!("AgB!x"))
        .with("/spec/encryptedData/cut", json!("AgA="))
        .apply()?;
    let template = SealedObject::new(&world, "labels")?.item("k", "v")?;
    let deep = (0..80).fold(json!(1), |inner, _| json!({"a": inner}));
    template.with("/spec/template", json!({"metadata": {"custom": deep}})).apply()?;
    SealedObject::new(&world, "good")?.item("k", "v")?.apply()?;
    world.until_unsealed("good")?;
    let failed = world.until_sealed_is("base64", "False", "InvalidBase64")?;
    let message = condition(&failed, "Synced")["message"].clone();
    assert_eq!(message, "illegal base64 data at input byte 3 (bad); no key could decrypt secret (cut)");
    world.until_sealed_is("labels", "False", "InvalidObject")?;
    assert!(world.find("secret", "base64")?.is_none() && world.find("secret", "labels")?.is_none());
    Ok(())
}

#[test]
fn a_failure_keeps_the_live_secret_and_a_message_that_changes_is_told() -> Result<()> {
    let world = World::new()?;
    SealedObject::new(&world, "db")?.item("a", "1")?.apply()?;
    world.until_unsealed("db")?;
    let before = world.secret("db")?;
    SealedObject::new(&world, "db")?.item_for("a", "2", "elsewhere")?.apply()?;
    world.until_sealed_is("db", "False", "NotOpened")?;
    SealedObject::new(&world, "db")?.item_for("b", "2", "elsewhere")?.apply()?;
    world.until("the new message", || {
        let object = world.sealed_secret("db")?;
        Ok((condition(&object, "Synced")["message"] == "no key could decrypt secret (b)").then_some(()))
    })?;
    let metric = format!(
        r#"sealed_secrets_controller_condition_info{{namespace="{}",name="db",condition="Synced",ss_app_kubernetes_io_instance=""}}"#,
        world.namespace
    );
    assert_eq!(world.metric(&metric)?, Some(-1.0));
    assert_eq!(world.secret("db")?, before);
    // An object with no item at all is one: it means an empty Secret.
    world.patch("sealedsecret", "db", &json!({"spec": {"encryptedData": {"b": null}}}))?;
    world.until_unsealed("db")?;
    assert_eq!(data(&world.secret("db")?)?, pairs(&[]));
    Ok(())
}

#[test]
fn no_object_makes_a_key() -> Result<()> {
    let world = World::new()?;
    for (name, label) in
        [("rsa", format!("{PREFIX}/sealed-secrets-key")), ("age", "lacre.dev/keys".to_owned())]
    {
        let object = SealedObject::new(&world, name)?.item("tls.key", "v")?;
        object.with("/spec/template", json!({"metadata": {"labels": {label: "active"}}})).apply()?;
        world.until_sealed_is(name, "False", "ForbiddenTemplate")?;
        assert!(world.find("secret", name)?.is_none());
    }
    let token = SealedObject::new(&world, "token")?.item("k", "v")?;
    token.with("/spec/template", json!({"type": "kubernetes.io/service-account-token"})).apply()?;
    world.until_sealed_is("token", "False", "ForbiddenType")?;
    assert!(world.find("secret", "token")?.is_none());
    Ok(())
}

#[test]
fn a_key_that_arrives_opens_what_waited_for_it() -> Result<()> {
    let mut world = World::without_controller()?;
    world.start(&["--key-renew-period", "0"])?;
    SealedObject::new(&world, "db")?.item("k", "v")?.apply()?;
    world.until_unsealed("db")?;
    let keys = world.admin().get_json([
        "-n",
        &world.home,
        "get",
        "secret",
        "-l",
        &format!("{PREFIX}/sealed-secrets-key"),
    ])?;
    let mut key: Value = keys["items"][0].clone();
    let name = key["metadata"]["name"].as_str().context("no key")?.to_owned();
    let home = world.home.clone();
    let hide = format!("{PREFIX}/sealed-secrets-key=compromised");
    world.admin().run(["-n", &home, "label", "--overwrite", "secret", &name, &hide])?;
    world.until_sealed_is("db", "False", "NoSealingKey")?;
    assert_eq!(world.value("db", "k")?, "v", "a failure blanks nothing");
    key["metadata"] = json!({"name": "brought", "namespace": home, "labels": key["metadata"]["labels"]});
    world.apply(&key.to_string())?;
    world.until_unsealed("db")?;
    Ok(())
}

//! The controller's own identities: made once, published, kept.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::harness::World;
use crate::sealing::{Sealing, age};

fn own_secrets(world: &World) -> Result<Vec<Value>> {
    let list = world.admin().get_json([
        "--namespace",
        &world.home,
        "get",
        "secrets",
        "--selector=lacre.dev/keys=true",
    ])?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}

fn published(world: &World) -> Result<String> {
    let map =
        world.admin().get_json(["--namespace", &world.home, "get", "configmap", "lacre-public-keys"])?;
    Ok(map["data"]["age-recipients"].as_str().context("nothing is published")?.to_owned())
}

#[test]
fn the_first_start_makes_one_identity_and_a_restart_makes_no_other() -> Result<()> {
    let mut world = World::new()?;
    let first = world.recipient()?;
    assert!(first.starts_with("age1"), "{first}");
    let secrets = own_secrets(&world)?;
    assert_eq!(secrets.len(), 1);
    assert_eq!(secrets[0]["type"], "lacre.dev/identity");
    assert_eq!(secrets[0]["metadata"]["annotations"]["lacre.dev/fingerprint"], first.as_str());
    world.stop();
    world.start(&[])?;
    assert_eq!((own_secrets(&world)?, published(&world)?), (secrets, format!("{first}\n")));
    Ok(())
}

#[test]
fn any_authenticated_user_may_read_the_published_keys_and_nothing_beside_them() -> Result<()> {
    let world = World::new()?;
    let stranger = world.cluster.service_account(&world.namespace, "stranger")?;
    let kubectl = xtask::peers::kubectl::Kubectl::new(&stranger.kubeconfig)?;
    let map = kubectl.get_json(["--namespace", &world.home, "get", "configmap", "lacre-public-keys"])?;
    assert!(map["data"]["age-recipients"].as_str().is_some_and(|text| text.starts_with("age1")));
    for denied in [["get", "secret", "lacre-identity-1"], ["get", "configmaps", "--all-namespaces=false"]] {
        let denied = ["--namespace", &world.home].into_iter().chain(denied);
        assert!(kubectl.try_run(denied)?.stderr_text().contains("Forbidden"));
    }
    Ok(())
}

#[test]
fn a_planted_identity_is_never_published() -> Result<()> {
    let mut world = World::new()?;
    let before = published(&world)?;
    let planted = xtask::peers::age::Age::new()?.keygen()?;
    world.admin().apply(
        &json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": "lacre.dev/identity",
            "metadata": {
                "name": "lacre-identity-2",
                "namespace": world.home,
                "labels": {"lacre.dev/keys": "true"},
                "annotations": {"lacre.dev/fingerprint": planted.recipient},
            },
            "stringData": {"identity.agekey": planted.identity},
        })
        .to_string(),
    )?;
    world.until("the planted identity to be loaded", || {
        Ok((world.log(0)?.matches("identities loaded").count() > 1).then_some(()))
    })?;
    assert_eq!(published(&world)?, before);
    world.stop();
    world.start(&[])?;
    assert_eq!(published(&world)?, before);
    Ok(())
}

#[test]
fn lost_identities_are_reported_and_not_silently_replaced() -> Result<()> {
    let mut world = World::new()?;
    let before = published(&world)?;
    let backup = own_secrets(&world)?.remove(0);
    world.stop();
    world.admin().run(["--namespace", &world.home, "delete", "secret", "lacre-identity-1"])?;
    let number = world.start_unready(&[])?;
    world.until("the loss to be told", || {
        Ok(world.log(number)?.contains("restore them from the backup").then_some(()))
    })?;
    assert_eq!(world.ask("/readyz")?.status, 503);
    assert_eq!((own_secrets(&world)?.len(), published(&world)?), (0, before));
    let mut restored = backup;
    restored["metadata"] = json!({
        "name": "lacre-identity-1",
        "namespace": world.home,
        "labels": restored["metadata"]["labels"],
        "annotations": restored["metadata"]["annotations"],
    });
    world.admin().apply(&restored.to_string())?;
    world.until("the controller to be ready", || Ok((world.ask("/readyz")?.status == 200).then_some(())))
}

#[test]
fn an_identity_that_is_brought_later_wakes_the_objects_that_need_it() -> Result<()> {
    let world = World::new()?;
    let key = xtask::peers::age::Age::new()?.keygen()?;
    world.apply(&Sealing::new(&world)?.only_for(age(&key.recipient)?).yaml()?)?;
    world.until_ready_is("db", "False", "NoMatchingIdentity")?;
    let metadata = json!({"name": "restored", "namespace": world.home, "labels": {"lacre.dev/keys": "true"}});
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "stringData": {"a.agekey": key.identity},
    });
    world.admin().apply(&secret.to_string())?;
    world.until_ready("db")?;
    assert!(!published(&world)?.contains(&key.recipient));
    Ok(())
}

#[test]
fn a_secret_that_only_has_the_name_of_an_identity_is_told() -> Result<()> {
    let mut world = World::without_controller()?;
    world.admin().run([
        "--namespace",
        &world.home,
        "create",
        "secret",
        "generic",
        "lacre-identity-1",
        "--from-literal=a=b",
    ])?;
    let number = world.start_unready(&[])?;
    world.until("it to be told", || {
        Ok(world.log(number)?.contains("is no identity of this controller").then_some(()))
    })?;
    assert_eq!(world.ask("/readyz")?.status, 503);
    world.admin().run(["--namespace", &world.home, "delete", "secret", "lacre-identity-1"])?;
    world.until("the controller to be ready", || Ok((world.ask("/readyz")?.status == 200).then_some(())))
}

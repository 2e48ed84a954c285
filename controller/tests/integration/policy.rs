//! What objects may not ask for.

use anyhow::Result;
use lacre_crypto::Scope;
use serde_json::json;

use crate::harness::World;
use crate::sealing::Sealing;

fn refused(world: &World, sealing: &Sealing, reason: &str, words: &str) -> Result<()> {
    world.apply(&sealing.yaml()?)?;
    let ready = world.until_ready_is("db", "False", reason)?;
    assert!(ready["message"].as_str().is_some_and(|message| message.contains(words)), "{ready}");
    assert!(world.find("secret", "db")?.is_none());
    Ok(())
}

#[test]
fn types_that_are_credentials_of_the_cluster_need_the_administrators_word() -> Result<()> {
    const TYPE: &str = "kubernetes.io/service-account-token";
    let world = World::new()?;
    refused(&world, &Sealing::new(&world)?.with("/type", json!(TYPE)), "ForbiddenType", TYPE)?;
    let helm = "helm.sh/release.v1";
    refused(&world, &Sealing::new(&world)?.with("/type", json!(helm)), "ForbiddenType", helm)
}

#[test]
fn templates_cannot_forge_keys_or_other_controllers_objects() -> Result<()> {
    let world = World::new()?;
    for key in [
        "lacre.dev/keys",
        "sealedsecrets.bitnami.com/sealed-secrets-key",
        "kubernetes.io/service-account.name",
    ] {
        let sealing = Sealing::new(&world)?;
        refused(&world, &sealing.with("/metadata/labels", json!({key: "true"})), "ForbiddenTemplate", key)?;
        let sealing = Sealing::new(&world)?;
        refused(
            &world,
            &sealing.with("/metadata/annotations", json!({key: "true"})),
            "ForbiddenTemplate",
            key,
        )?;
    }
    Ok(())
}

#[test]
fn a_seal_that_reaches_further_than_allowed_is_refused() -> Result<()> {
    let world = World::with_flags(&["--max-scope", "namespace"])?;
    let mut sealing = Sealing::new(&world)?;
    sealing.scope = Scope::Cluster;
    refused(&world, &sealing, "ForbiddenScope", "cluster")?;
    sealing.scope = Scope::Namespace;
    world.apply(&sealing.yaml()?)?;
    world.until_ready("db")?;
    Ok(())
}

#[test]
fn objects_in_the_controllers_own_namespace_are_refused() -> Result<()> {
    let mut world = World::without_controller()?;
    world.namespace.clone_from(&world.home);
    world.start(&[])?;
    refused(&world, &Sealing::new(&world)?, "ForbiddenNamespace", &world.home)?;
    world.stop();
    world.start(&["--allow-own-namespace"])?;
    world.until_ready("db")?;
    Ok(())
}

//! What the API server refuses by the definition alone, before any controller looks.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::harness::World;

const SEALED: &str = "ENC[AES256_GCM,data:YQ==,iv:YQ==,tag:YQ==,type:str]";
const CANARY: &str = "hunter2-CANARY";

fn object(world: &World, spec: Value) -> Value {
    json!({
        "apiVersion": "lacre.dev/v1alpha1",
        "kind": "EncryptedSecret",
        "metadata": {"name": "db", "namespace": world.namespace},
        "spec": spec,
        "sops": {"mac": "x", "a_field_of_later": {"deeply": ["kept"]}},
    })
}

fn refusal(world: &World, object: &Value) -> Result<String> {
    let apply =
        world.admin().tool().args(["apply", "--server-side", "-f", "-"]).stdin(object.to_string()).run()?;
    ensure!(apply.code != Some(0), "was taken: {object}");
    Ok(apply.stderr_text())
}

#[test]
fn plaintext_is_refused_without_being_printed() -> Result<()> {
    let world = World::without_controller()?;
    for (map, value) in
        [("stringData", CANARY), ("data", CANARY), ("stringData", "ENC[AES256_GCM,data:CANARY")]
    {
        let answer = refusal(&world, &object(&world, json!({map: {"user": SEALED, "password": value}})))?;
        assert!(answer.contains("plaintext refused"), "{answer}");
        assert!(!answer.contains("CANARY"), "{answer}");
    }
    Ok(())
}

#[test]
fn sealed_and_empty_values_and_unknown_sops_fields_are_taken() -> Result<()> {
    let world = World::without_controller()?;
    let spec = json!({"stringData": {"password": SEALED, "empty": ""}, "suspend": true});
    world.apply(&object(&world, spec).to_string())?;
    let stored = world.find("encryptedsecret", "db")?.unwrap_or_default();
    assert_eq!(stored["sops"]["a_field_of_later"], json!({"deeply": ["kept"]}));
    assert_eq!(stored["spec"], json!({"stringData": {"password": SEALED, "empty": ""}, "suspend": true}));
    Ok(())
}

#[test]
fn an_object_that_nobody_looked_at_yet_does_not_pass_for_done() -> Result<()> {
    let world = World::without_controller()?;
    world.apply(&object(&world, json!({"stringData": {"password": SEALED}})).to_string())?;
    let stored = world.find("encryptedsecret", "db")?.unwrap_or_default();
    assert_eq!(stored["status"], json!({"observedGeneration": -1}));
    Ok(())
}

#[test]
fn one_key_in_both_maps_is_refused_without_its_value() -> Result<()> {
    let world = World::without_controller()?;
    let answer =
        refusal(&world, &object(&world, json!({"data": {"a": SEALED}, "stringData": {"a": SEALED}})))?;
    assert!(answer.contains("data and stringData share a key") && !answer.contains("YQ=="), "{answer}");
    Ok(())
}

#[test]
fn an_object_without_sops_is_refused() -> Result<()> {
    let world = World::without_controller()?;
    let mut object = object(&world, json!({"stringData": {}}));
    object.as_object_mut().map(|object| object.remove("sops"));
    assert!(refusal(&world, &object)?.contains("sops"));
    Ok(())
}

#[test]
fn a_map_is_replaced_as_a_whole_so_that_no_second_manager_leaves_stale_keys() -> Result<()> {
    let world = World::without_controller()?;
    let first = object(&world, json!({"stringData": {"a": SEALED, "b": SEALED}}));
    world.admin().apply_server_side(&first.to_string(), "one")?;
    let second = object(&world, json!({"stringData": {"a": SEALED}}));
    let force = ["apply", "--server-side", "--force-conflicts", "--field-manager=two", "-f", "-"];
    world.admin().tool().args(force).stdin(second.to_string()).run()?.success()?;
    let stored = world.find("encryptedsecret", "db")?.unwrap_or_default();
    assert_eq!(stored["spec"]["stringData"], json!({"a": SEALED}));
    Ok(())
}

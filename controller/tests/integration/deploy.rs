//! What is shipped beside the binary says what the code says. No cluster is needed here.

use anyhow::{Context, Result, ensure};
use clap::CommandFactory;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use lacre_controller::api::crd;
use lacre_controller::args::Args;
use lacre_controller::error::Reason;
use lacre_controller::{keyring, leader};
use serde::Deserialize;
use serde_json::{Value, json};

/// A file, and what it is made from.
type Definition = (&'static str, fn() -> CustomResourceDefinition);

const DEFINITIONS: [Definition; 2] = [
    (include_str!("../../deploy/crd/encryptedsecrets.yaml"), crd::encrypted_secret),
    (include_str!("../../deploy/crd/sealedsecrets.yaml"), crd::sealed_secret),
];
const RIGHTS: [&str; 3] = [
    include_str!("../../deploy/base/rbac.yaml"),
    include_str!("../../deploy/cluster-wide/rbac.yaml"),
    include_str!("../../deploy/per-namespace/role/rbac.yaml"),
];
const PAGE: &str = include_str!("../../../docs/controller.md");

#[test]
fn the_definitions_are_those_made_from_the_types() -> Result<()> {
    for (shipped, made) in DEFINITIONS {
        assert_eq!(yaml_serde::to_string(&made())?, shipped, "run: cargo xtask gen");
    }
    Ok(())
}

#[test]
fn sealed_secrets_are_kept_as_their_own_definition_keeps_them() -> Result<()> {
    let theirs: Value = yaml_serde::from_str(&xtask::peers::sealed_secrets::definition()?)?;
    let mut ours = serde_json::to_value(crd::sealed_secret())?;
    // The one field that is more: theirs lets the API server drop it.
    let condition =
        "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties/conditions/items/properties";
    let condition = ours.pointer_mut(condition).and_then(Value::as_object_mut).context("no conditions")?;
    condition.remove("observedGeneration").context("no observedGeneration")?;
    let [ours, theirs] = [ours, theirs].map(|mut definition| {
        definition["spec"]["versions"][0]["additionalPrinterColumns"] = Value::Null;
        drop_descriptions(&mut definition);
        definition
    });
    assert_eq!(ours["spec"], theirs["spec"]);
    assert_eq!(ours["metadata"]["name"], theirs["metadata"]["name"]);
    Ok(())
}

/// Those of schemas; a property of that name would be an object.
fn drop_descriptions(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, member| name != "description" || !member.is_string());
            members.values_mut().for_each(drop_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_descriptions),
        _ => {}
    }
}

#[test]
fn the_rights_name_what_the_code_names() -> Result<()> {
    for name in [keyring::own::PUBLIC_CONFIG_MAP, leader::LEASE] {
        assert!(RIGHTS[0].contains(&format!("resourceNames: [{name}]")), "{name}");
    }
    for rule in RIGHTS.map(rules).into_iter().collect::<Result<Vec<_>>>()?.iter().flatten() {
        let verbs = rule["verbs"].to_string();
        assert!(!verbs.contains('*') && !verbs.contains("impersonate"), "{rule}");
        assert!(!verbs.contains("delete") || rule["resources"] == json!(["secrets"]), "{rule}");
    }
    Ok(())
}

/// Those of all roles in a file.
fn rules(text: &str) -> Result<Vec<Value>> {
    let mut rules = Vec::new();
    for document in yaml_serde::Deserializer::from_str(text) {
        rules.extend(Value::deserialize(document)?["rules"].as_array().cloned().unwrap_or_default());
    }
    ensure!(!rules.is_empty(), "no role");
    Ok(rules)
}

#[test]
fn a_namespace_gives_the_rights_that_the_cluster_would() -> Result<()> {
    assert_eq!(rules(RIGHTS[1])?, rules(RIGHTS[2])?);
    Ok(())
}

#[test]
fn the_page_explains_every_reason_and_no_other() {
    let explained: Vec<_> =
        PAGE.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    for reason in Reason::ALL {
        assert!(explained.contains(&reason.to_string().as_str()), "{reason} is not explained");
    }
    let known: Vec<_> = Reason::ALL.iter().map(ToString::to_string).collect();
    let reasons = explained.iter().filter(|word| word.starts_with(|first: char| first.is_ascii_uppercase()));
    for word in reasons.filter(|word| !["Synced", "Suspended"].contains(word)) {
        assert!(known.contains(&(*word).to_owned()), "{word} is no reason");
    }
}

#[test]
fn the_page_names_every_flag() {
    for flag in Args::command().get_arguments().filter_map(|argument| argument.get_long()) {
        assert!(PAGE.contains(&format!("`--{flag}`")), "--{flag}");
    }
}

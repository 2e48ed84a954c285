//! Key services: credentials of a tenant, answers of the service, and what is not asked twice.

use std::time::Duration;

use anyhow::{Context, Result};
use lacre_crypto::recipient::aws_kms::{AwsContext, AwsCredentials, AwsKmsRecipient};
use lacre_crypto::recipient::{AwsKmsKey, Recipient};
use serde_json::json;
use xtask::peers::moto::Moto;

use crate::harness::World;
use crate::sealing::Sealing;

const CREDENTIALS: &str = "aws_access_key_id: testing\naws_secret_access_key: testing\n";

fn recipient(moto: &Moto) -> Result<Box<dyn Recipient>> {
    let context = AwsContext {
        endpoint: Some(moto.endpoint().to_owned()),
        credentials: AwsCredentials::Static {
            access_key_id: "testing".to_owned(),
            secret_access_key: "testing".into(),
            session_token: None,
        },
        deadline: Duration::from_secs(30),
        allow_role_and_profile: false,
    };
    let key = AwsKmsKey::parse(&moto.create_key()?, "", "")?;
    Ok(Box::new(AwsKmsRecipient::new(key, context)?))
}

#[test]
fn a_tenants_credentials_open_and_the_service_is_asked_once() -> Result<()> {
    let moto = Moto::shared()?;
    let world = World::with_flags(&["--aws-kms-endpoint", moto.endpoint()])?;
    world.make_key_secret("team-keys", "sops.aws-kms", CREDENTIALS, true)?;
    world.apply(&Sealing::new(&world)?.only_for(recipient(moto)?).with_keys_from("team-keys").yaml()?)?;
    world.until_ready("db")?;
    world.wake("db", || world.patch("secret", "db", &json!({"metadata": {"labels": {"team": "blue"}}})))?;
    let count = |what: &str| world.metric(&format!("lacre_datakey_cache_{what}_total"));
    world.until("the key to be remembered", || Ok((count("hits")? >= Some(1.0)).then_some(())))?;
    assert_eq!(count("misses")?, Some(1.0));
    // Another version of the key Secret is another scope: what it may open has to be asked anew.
    world.kubectl(["annotate", "secret", "team-keys", "note=x"])?;
    world.until("the service to be asked again", || Ok((count("misses")? == Some(2.0)).then_some(())))?;
    Ok(())
}

#[test]
fn without_a_tenants_credentials_the_environments_are_not_used() -> Result<()> {
    let moto = Moto::shared()?;
    let world = World::with_flags(&["--aws-kms-endpoint", moto.endpoint()])?;
    world.apply(&Sealing::new(&world)?.only_for(recipient(moto)?).yaml()?)?;
    let ready = world.until_ready_is("db", "False", "NoMatchingIdentity")?;
    let message = ready["message"].as_str().context("no message")?;
    assert!(message.contains("arn:aws:kms:") && message.contains(&world.recipient()?), "{message}");
    Ok(())
}

#[test]
fn an_unreachable_service_is_asked_again_and_the_live_secret_stays() -> Result<()> {
    let moto = Moto::start()?;
    let mut world = World::with_flags(&["--aws-kms-endpoint", moto.endpoint()])?;
    world.make_key_secret("team-keys", "sops.aws-kms", CREDENTIALS, true)?;
    let sealing = Sealing::new(&world)?.only_for(recipient(&moto)?).with_keys_from("team-keys");
    world.apply(&sealing.yaml()?)?;
    world.until_ready("db")?;
    let before = world.secret("db")?;
    drop(moto);
    // A new process remembers nothing.
    world.stop();
    world.start(&["--aws-kms-endpoint", "http://127.0.0.1:1", "--key-service-deadline", "1s"])?;
    world.until_ready_is("db", "False", "KmsUnreachable")?;
    let conditions = world.find("encryptedsecret", "db")?.unwrap_or_default()["status"]["conditions"].clone();
    assert_eq!(conditions[1]["type"], "Reconciling");
    world.until("three more attempts", || Ok((world.reconciles("db")? > 3).then_some(())))?;
    assert_eq!(world.secret("db")?, before);
    let told = world.events("db")?.into_iter().filter(|event| event.contains("KmsUnreachable")).count();
    assert_eq!(told, 1, "told once, not at each attempt");
    Ok(())
}

#[test]
fn the_environments_credentials_open_only_for_namespaces_on_the_list() -> Result<()> {
    let moto = Moto::shared()?;
    let mut world = World::without_controller()?;
    world.environment =
        moto.environment().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    world.start(&["--aws-kms-endpoint", moto.endpoint(), "--ambient-cloud-namespace", "another"])?;
    world.apply(&Sealing::new(&world)?.only_for(recipient(moto)?).yaml()?)?;
    world.until_ready_is("db", "False", "NoMatchingIdentity")?;
    world.stop();
    let listed = world.namespace.clone();
    world.start(&["--aws-kms-endpoint", moto.endpoint(), "--ambient-cloud-namespace", &listed])?;
    world.until_ready("db")?;
    Ok(())
}

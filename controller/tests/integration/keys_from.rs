//! Tenants' own identities, in Secrets that `keysFrom` names.

use anyhow::{Context, Result};
use serde_json::json;
use xtask::peers::age::{Age, AgeKey};
use xtask::peers::gpg::{Algorithm, Gpg};

use crate::harness::World;
use crate::sealing::{Sealing, age};

fn sealed_for(world: &World, key: &AgeKey) -> Result<Sealing> {
    Ok(Sealing::new(world)?.only_for(age(&key.recipient)?).with_keys_from("team-keys"))
}

#[test]
fn an_absent_key_secret_is_waited_for_and_wakes_the_object() -> Result<()> {
    let world = World::new()?;
    let key = Age::new()?.keygen()?;
    world.apply(&sealed_for(&world, &key)?.yaml()?)?;
    let ready = world.until_ready_is("db", "False", "IdentityNotFound")?;
    assert!(ready["message"].as_str().is_some_and(|message| message.contains("team-keys")), "{ready}");
    let conditions = world.find("encryptedsecret", "db")?.unwrap_or_default()["status"]["conditions"].clone();
    assert_eq!(conditions[1]["type"], "Reconciling", "it is expected to come");

    world.make_key_secret("team-keys", "identity.agekey", &key.identity, false)?;
    world.kubectl(["annotate", "encryptedsecret", "db", "note=x"])?;
    world.until_ready_is("db", "False", "IdentityNotFound")?;
    world.kubectl(["label", "secret", "team-keys", "lacre.dev/keys=true"])?;
    world.until_ready("db")?;
    assert_eq!(world.value("db", "password")?, "hunter2-CANARY");
    Ok(())
}

#[test]
fn an_unlabelled_key_secret_is_not_used() -> Result<()> {
    let world = World::new()?;
    let key = Age::new()?.keygen()?;
    world.make_key_secret("team-keys", "identity.agekey", &key.identity, false)?;
    world.apply(&sealed_for(&world, &key)?.yaml()?)?;
    let ready = world.until_ready_is("db", "False", "IdentityNotFound")?;
    assert!(
        ready["message"].as_str().is_some_and(|message| message.contains("not labelled lacre.dev/keys=true"))
    );
    Ok(())
}

#[test]
fn a_wrong_identity_is_told_by_the_wanted_and_the_held_public_half() -> Result<()> {
    let world = World::new()?;
    let (wanted, wrong) = (Age::new()?.keygen()?, Age::new()?.keygen()?);
    world.make_key_secret("team-keys", "identity.agekey", &wrong.identity, true)?;
    world.apply(&sealed_for(&world, &wanted)?.yaml()?)?;
    let ready = world.until_ready_is("db", "False", "NoMatchingIdentity")?;
    let message = ready["message"].as_str().context("no message")?;
    assert!(message.contains(&wanted.recipient) && message.contains(&wrong.recipient), "{message}");
    assert!(!message.contains("AGE-SECRET-KEY"), "{message}");

    world.make_key_secret("team-keys", "second.agekey", &wanted.identity, true)?;
    world.until_ready("db")?;
    Ok(())
}

#[test]
fn with_keys_from_the_controllers_own_identities_do_not_open() -> Result<()> {
    let world = World::new()?;
    let key = Age::new()?.keygen()?;
    world.make_key_secret("team-keys", "identity.agekey", &key.identity, true)?;
    world.apply(&Sealing::new(&world)?.with_keys_from("team-keys").yaml()?)?;
    let ready = world.until_ready_is("db", "False", "NoMatchingIdentity")?;
    assert!(ready["message"].as_str().is_some_and(|message| message.contains(&key.recipient)));
    Ok(())
}

#[test]
fn without_keys_from_a_tenants_key_does_not_open() -> Result<()> {
    let world = World::new()?;
    let key = Age::new()?.keygen()?;
    world.make_key_secret("team-keys", "identity.agekey", &key.identity, true)?;
    world.apply(&Sealing::new(&world)?.only_for(age(&key.recipient)?).yaml()?)?;
    world.until_ready_is("db", "False", "NoMatchingIdentity")?;
    Ok(())
}

#[test]
fn a_key_secret_that_is_withdrawn_leaves_the_live_secret() -> Result<()> {
    let world = World::new()?;
    let key = Age::new()?.keygen()?;
    world.make_key_secret("team-keys", "identity.agekey", &key.identity, true)?;
    world.apply(&sealed_for(&world, &key)?.yaml()?)?;
    world.until_ready("db")?;
    let before = world.secret("db")?;
    world.kubectl(["delete", "secret", "team-keys"])?;
    world.until_ready_is("db", "False", "IdentityNotFound")?;
    assert_eq!(world.secret("db")?, before);
    Ok(())
}

#[test]
fn one_unreadable_entry_does_not_keep_the_others_from_opening() -> Result<()> {
    let world = World::new()?;
    let key = Age::new()?.keygen()?;
    world.make_key_secret("team-keys", "broken.agekey", "AGE-SECRET-KEY-1CANARY", true)?;
    world.apply(&sealed_for(&world, &key)?.yaml()?)?;
    let ready = world.until_ready_is("db", "False", "InvalidIdentity")?;
    let message = ready["message"].as_str().context("no message")?;
    assert!(message.contains("broken.agekey") && !message.contains("CANARY"), "{message}");
    world.patch("secret", "team-keys", &json!({"stringData": {"good.agekey": key.identity}}))?;
    world.until_ready("db")?;
    Ok(())
}

#[test]
fn an_openpgp_key_opens_only_when_the_administrator_enabled_it() -> Result<()> {
    let gpg = Gpg::new()?;
    let fingerprint = gpg.generate("Team <team@example.org>", Algorithm::Curve25519)?;
    let (certificate, secret) = (gpg.export_certificate(&fingerprint)?, gpg.export_secret_key(&fingerprint)?);
    for (flags, status, reason) in
        [(&[][..], "False", "InvalidIdentity"), (&["--enable-pgp"], "True", "Synced")]
    {
        let world = World::with_flags(flags)?;
        world.make_key_secret("team-keys", "team.asc", &String::from_utf8(secret.clone())?, true)?;
        let recipient = lacre_crypto::recipient::pgp::PgpRecipient::find(&fingerprint, &certificate)?;
        world.apply(
            &Sealing::new(&world)?.only_for(Box::new(recipient)).with_keys_from("team-keys").yaml()?,
        )?;
        world.until_ready_is("db", status, reason)?;
    }
    Ok(())
}

#[test]
fn a_key_secret_whose_label_goes_and_an_object_that_names_another_are_looked_at_at_once() -> Result<()> {
    let world = World::new()?;
    let key = Age::new()?.keygen()?;
    world.make_key_secret("team-keys", "identity.agekey", &key.identity, true)?;
    world.make_key_secret("other-keys", "identity.agekey", &key.identity, true)?;
    world.apply(&sealed_for(&world, &key)?.yaml()?)?;
    world.until_ready("db")?;
    world.kubectl(["label", "secret", "team-keys", "lacre.dev/keys-"])?;
    world.until_ready_is("db", "False", "IdentityNotFound")?;
    let other = json!({"spec": {"keysFrom": [{"secretRef": {"name": "other-keys"}}]}});
    world.patch("encryptedsecret", "db", &other)?;
    world.until_ready("db")?;
    world.kubectl(["label", "secret", "other-keys", "lacre.dev/keys=no", "--overwrite"])?;
    world.until_ready_is("db", "False", "IdentityNotFound")?;
    Ok(())
}

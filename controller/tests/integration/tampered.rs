//! Whatever is changed in a sealed object is found, each change under its own reason, and the live Secret stays.

use anyhow::{Context, Result};
use jiff::ToSpan;
use lacre_crypto::seal::ObjectBind;
use lacre_crypto::{
    Bind, EncryptOptions, Format, Groups, Scope, SecretText, Selector, SelectorKind, Timestamp, WriteOptions,
    encrypt,
};
use serde_json::{Value, json};
use xtask::peers::age::Age;
use xtask::peers::sops::Sops;
use xtask::scratch::Scratch;

use crate::harness::World;
use crate::sealing::{Sealing, age};

/// Applies the object, changes it, and expects `reason` while the live Secret stays as it was.
fn check(reason: &str, words: &str, change: impl FnOnce(&World, &mut Value) -> Result<()>) -> Result<()> {
    let world = World::new()?;
    let mut object = Sealing::new(&world)?.object()?;
    check_in(&world, &mut object, reason, words, change)
}

fn check_in(
    world: &World,
    object: &mut Value,
    reason: &str,
    words: &str,
    change: impl FnOnce(&World, &mut Value) -> Result<()>,
) -> Result<()> {
    world.apply(&object.to_string())?;
    world.until_ready("db")?;
    let before = world.secret("db")?;
    let sealed = object.clone();
    change(world, object)?;
    world.apply(&object.to_string())?;
    let ready = world.until_ready_is("db", "False", reason)?;
    let message = ready["message"].as_str().context("no message")?;
    assert!(message.contains(words) && !message.contains("CANARY"), "{message}");
    assert_eq!(world.secret("db")?, before, "the live Secret stays");
    world.wake("db", || world.patch("secret", "db", &json!({"metadata": {"labels": {"team": "blue"}}})))?;
    let touched: Vec<_> = world.writes()?.into_iter().filter(|write| write.contains(" secrets")).collect();
    assert_eq!(touched, ["create secrets db"], "nothing but the first version was ever written");
    world.apply(&sealed.to_string())?;
    world.until_ready("db")?;
    Ok(())
}

#[test]
fn two_values_swapped() -> Result<()> {
    check("ValueMismatch", "stringData.password", |_, object| {
        let values = &mut object["spec"]["stringData"];
        let (password, user) = (values["password"].take(), values["user"].take());
        *values = json!({"password": user, "user": password});
        Ok(())
    })
}

#[test]
fn an_older_value_pasted_back() -> Result<()> {
    let world = World::new()?;
    let person = Age::new()?.keygen()?;
    let mut sealing = Sealing::new(&world)?;
    sealing.recipients.push(age(&person.recipient)?);
    let yaml = sealing.yaml()?;
    // What stock sops writes under the same data key is as good as an older version from the history.
    let folder = Scratch::new("lacre-sops-", "true")?;
    std::fs::write(folder.path().join("db.yaml"), &yaml)?;
    std::fs::write(folder.path().join("key"), &person.identity)?;
    let tool = Sops::v3_13()?.tool().env("SOPS_AGE_KEY_FILE", folder.path().join("key")).dir(folder.path());
    tool.args(["set", "db.yaml", r#"["spec"]["stringData"]["password"]"#, r#""older""#]).run()?.success()?;
    let older: Value = yaml_serde::from_slice(&std::fs::read(folder.path().join("db.yaml"))?)?;
    let mut object = yaml_serde::from_str(&yaml)?;
    check_in(&world, &mut object, "MacMismatch", "MAC", |_, object| {
        object["spec"]["stringData"]["password"] = older["spec"]["stringData"]["password"].clone();
        Ok(())
    })
}

#[test]
fn a_value_left_out() -> Result<()> {
    check("MacMismatch", "MAC", |_, object| {
        object["spec"]["stringData"].as_object_mut().map(|values| values.remove("user"));
        Ok(())
    })
}

#[test]
fn a_value_emptied() -> Result<()> {
    check("MacMismatch", "MAC", |_, object| {
        object["spec"]["stringData"]["user"] = "".into();
        Ok(())
    })
}

#[test]
fn a_value_renamed() -> Result<()> {
    check("ValueMismatch", "stringData.login", |_, object| {
        let values = object["spec"]["stringData"].as_object_mut().context("no values")?;
        let user = values.remove("user").context("no user")?;
        values.insert("login".to_owned(), user);
        Ok(())
    })
}

#[test]
fn a_value_damaged_so_that_the_api_server_takes_it() -> Result<()> {
    check("ValueMismatch", "stringData.user", |_, object| {
        object["spec"]["stringData"]["user"] = "ENC[AES256_GCM,data:CANARY,type:str]".into();
        Ok(())
    })
}

#[test]
fn a_recipient_added() -> Result<()> {
    check("RecipientsMismatch", "sops block", |_, object| {
        let added = json!({"recipient": Age::new()?.keygen()?.recipient, "enc": "garbage"});
        object["sops"]["age"].as_array_mut().context("no recipients")?.push(added);
        Ok(())
    })
}

#[test]
fn the_time_changed() -> Result<()> {
    check("RecipientsMismatch", "sops block", |_, object| {
        object["sops"]["lastmodified"] = "2020-01-01T00:00:00Z".into();
        Ok(())
    })
}

#[test]
fn the_seal_removed() -> Result<()> {
    check("SealRemoved", "seal was removed", |_, object| {
        object["sops"].as_object_mut().map(|block| block.remove("lacre"));
        Ok(())
    })
}

#[test]
fn the_seal_of_another_object() -> Result<()> {
    check("SealBroken", "seal does not open", |world, object| {
        let other = Sealing::new(world)?.object()?;
        object["sops"]["lacre"] = other["sops"]["lacre"].clone();
        Ok(())
    })
}

#[test]
fn a_template_label_changed() -> Result<()> {
    check("TemplateMismatch", "template", |_, object| {
        object["spec"]["template"]["metadata"]["labels"]["tier"] = "front".into();
        Ok(())
    })
}

#[test]
fn the_type_changed() -> Result<()> {
    check("TemplateMismatch", "type", |_, object| {
        object["spec"]["type"] = "kubernetes.io/basic-auth".into();
        Ok(())
    })
}

#[test]
fn the_selector_changed() -> Result<()> {
    check("UnsupportedMetadata", "encrypted_regex", |_, object| {
        object["sops"]["encrypted_regex"] = "^stringData$".into();
        Ok(())
    })
}

#[test]
fn a_file_that_stock_sops_sealed_has_no_seal() -> Result<()> {
    let world = World::new()?;
    let folder = Scratch::new("lacre-sops-", "true")?;
    let mut plain = Sealing::new(&world)?.object()?;
    plain.as_object_mut().map(|object| object.remove("sops"));
    plain["spec"]["stringData"] = json!({"password": "x", "user": "y"});
    std::fs::write(folder.path().join("db.json"), plain.to_string())?;
    let rules = json!({"creation_rules": [{
        "age": world.recipient()?,
        "encrypted_regex": "^(data|stringData)$",
        "mac_only_encrypted": true,
    }]});
    std::fs::write(folder.path().join(".sops.yaml"), rules.to_string())?;
    let sealed = Sops::v3_13()?.tool().dir(folder.path()).args(["encrypt", "db.json"]).run()?.success()?;
    world.apply(&String::from_utf8(sealed)?)?;
    world.until_ready_is("db", "False", "NeverSealed")?;
    assert!(world.find("secret", "db")?.is_none());
    Ok(())
}

#[test]
fn a_wrapped_key_that_is_broken() -> Result<()> {
    check("WrappedKeyBroken", "age", |_, object| {
        object["sops"]["age"][0]["enc"] = "garbage".into();
        Ok(())
    })
}

#[test]
fn a_seal_from_the_future_is_taken_when_its_time_has_come_near() -> Result<()> {
    let world = World::new()?;
    let mut sealing = Sealing::new(&world)?;
    sealing.now = Timestamp::now() + 5.minutes() + 6.seconds();
    world.apply(&sealing.yaml()?)?;
    world.until_ready_is("db", "False", "FutureLastModified")?;
    assert!(world.find("secret", "db")?.is_none());
    // Nobody touches the object: time alone makes it good.
    world.until_ready("db")?;
    Ok(())
}

#[test]
fn values_that_exceed_a_secret_together() -> Result<()> {
    let world = World::new()?;
    let values = json!({"a": "x".repeat(600_000), "b": "x".repeat(449_000)});
    world.apply(&Sealing::new(&world)?.with("/stringData", values).yaml()?)?;
    world.until_ready_is("db", "False", "TooLarge")?;
    assert!(world.find("secret", "db")?.is_none());
    Ok(())
}

#[test]
fn a_value_of_data_that_is_not_base64() -> Result<()> {
    let world = World::new()?;
    let mut plain = Sealing::new(&world)?.object()?;
    plain.as_object_mut().map(|object| object.remove("sops"));
    plain["spec"]["data"] = json!({"binary": "not base64 CANARY"});
    plain["spec"]["stringData"] = json!({});
    let recipient = age(&world.recipient()?)?;
    let bind = ObjectBind {
        group: "lacre.dev".to_owned(),
        kind: "EncryptedSecret".to_owned(),
        scope: Scope::Strict,
        namespace: world.namespace.clone(),
        name: "db".to_owned(),
        clusters: None,
    };
    let options = EncryptOptions {
        groups: Groups { groups: vec![vec![recipient.as_ref()]], threshold: None },
        selector: Selector::new(SelectorKind::EncryptedRegex, "^(data|stringData)$")?,
        mac_only_encrypted: true,
        bind: Some(Bind::Object(bind)),
        write: WriteOptions { now: Timestamp::now(), seal: true, allow_plaintext: false },
    };
    world.apply(&encrypt(&SecretText::new(plain.to_string()), Format::Json, &options)?)?;
    let ready = world.until_ready_is("db", "False", "InvalidBase64")?;
    let message = ready["message"].as_str().context("no message")?;
    assert!(message.contains("data.binary") && !message.contains("CANARY"), "{message}");
    assert!(world.find("secret", "db")?.is_none());
    Ok(())
}

//! The life of sealing keys: made, brought, relabelled, removed, broken, renewed.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use lacre_crypto::sealing_key::{Certificate, SealingKey};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::World;

const LABEL: &str = "sealedsecrets.bitnami.com/sealed-secrets-key";

/// A key pair as somebody brings it.
struct Pair {
    private: String,
    certificate: String,
}

/// A pair whose certificate begins to be valid `days` from now.
fn pair(days: i64) -> Result<Pair> {
    let key = SealingKey::generate(2048)?;
    let begin = Timestamp::now() + SignedDuration::from_hours(24 * days);
    let certificate = Certificate::self_signed(&key, "", begin, Duration::from_secs(86_400 * 365))?;
    let private = key.to_pem().expose_secret().to_owned();
    Ok(Pair { private, certificate: certificate.pem().to_owned() })
}

fn bring(world: &World, name: &str, private: &str, certificate: &str, label: Option<&str>) -> Result<()> {
    let labels = label.map_or_else(|| json!({}), |value| json!({ LABEL: value }));
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": world.home, "labels": labels},
        "type": "Opaque",
        "data": {"tls.key": STANDARD.encode(private), "tls.crt": STANDARD.encode(certificate)},
    });
    world.admin().apply_server_side(&secret.to_string(), "ops")
}

/// The Secrets that are labelled as active keys.
fn keys(world: &World) -> Result<Vec<Value>> {
    let selector = format!("{LABEL}=active");
    let list = world.admin().get_json(["-n", &world.home, "get", "secret", "-l", &selector])?;
    Ok(list["items"].as_array().context("no list")?.clone())
}

fn certificate_of(secret: &Value) -> Result<String> {
    let text = secret["data"]["tls.crt"].as_str().context("no certificate")?;
    Ok(String::from_utf8(STANDARD.decode(text)?)?)
}

/// What the controller says to seal for.
fn served(world: &World) -> Result<String> {
    let answer = world.ask("/v1/cert.pem")?;
    ensure!(answer.status == 200, "{answer:?}");
    Ok(answer.body)
}

fn until_served(world: &World, certificate: &str) -> Result<()> {
    world.until("the certificate", || {
        Ok(world.ask("/v1/cert.pem").is_ok_and(|answer| answer.body == certificate).then_some(()))
    })
}

fn until_opening(world: &World, count: f64) -> Result<()> {
    world.until("the number of keys", || {
        Ok((world.metric("lacre_sealing_keys")? == Some(count)).then_some(()))
    })
}

/// kubectl in the controller's namespace.
fn at_home(world: &World, arguments: &[&str]) -> Result<Vec<u8>> {
    world.admin().run(["-n", world.home.as_str()].iter().chain(arguments))
}

#[test]
fn the_first_key_is_as_sealed_secrets_makes_it_and_a_restart_makes_no_other() -> Result<()> {
    let flags = ["--my-cn=ops", "--privatekey-labels=team=ops", "--privatekey-annotations=note=made here"];
    let mut world = World::with_flags(&flags)?;
    let made = keys(&world)?;
    let [key] = made.as_slice() else { anyhow::bail!("{} keys", made.len()) };
    let name = key["metadata"]["name"].as_str().context("no name")?;
    assert!(name.strip_prefix("sealed-secrets-key").is_some_and(|end| end.len() == 5), "{name}");
    assert_eq!(key["type"], "kubernetes.io/tls");
    assert_eq!(key["metadata"]["labels"], json!({LABEL: "active", "team": "ops"}));
    assert_eq!(key["metadata"]["annotations"], json!({"note": "made here"}));
    assert_eq!(key["data"].as_object().context("no data")?.len(), 2);
    let private = STANDARD.decode(key["data"]["tls.key"].as_str().context("no key")?)?;
    assert!(private.starts_with(b"-----BEGIN RSA PRIVATE KEY-----\n"));
    assert_eq!(served(&world)?, certificate_of(key)?);
    // Twice: whatever the first start left undone, the second one would do.
    for _ in 0..2 {
        world.stop();
        world.start(&flags)?;
        assert_eq!(keys(&world)?.len(), 1);
        assert_eq!(served(&world)?, certificate_of(key)?);
    }
    Ok(())
}

#[test]
fn a_key_counts_from_when_it_comes_until_it_goes() -> Result<()> {
    let world = World::new()?;
    let first = served(&world)?;
    let newer = pair(1)?;
    bring(&world, "brought", &newer.private, &newer.certificate, Some("active"))?;
    until_served(&world, &newer.certificate)?;
    until_opening(&world, 2.0)?;
    bring(&world, "brought", &newer.private, &newer.certificate, Some("compromised"))?;
    until_served(&world, &first)?;
    until_opening(&world, 1.0)?;
    bring(&world, "brought", &newer.private, &newer.certificate, Some("active"))?;
    until_served(&world, &newer.certificate)?;
    let other = pair(2)?;
    bring(&world, "brought", &other.private, &other.certificate, Some("active"))?;
    until_served(&world, &other.certificate)?;
    until_opening(&world, 2.0)?;
    at_home(&world, &["delete", "secret", "brought"])?;
    until_served(&world, &first)?;
    until_opening(&world, 1.0)?;
    assert_eq!(keys(&world)?.len(), 1, "nobody made another one");
    Ok(())
}

#[test]
fn a_key_of_the_time_before_labels_is_found_by_its_name() -> Result<()> {
    let mut world = World::without_controller()?;
    let legacy = pair(-1)?;
    bring(&world, "sealed-secrets-key", &legacy.private, &legacy.certificate, None)?;
    world.start(&[])?;
    assert_eq!(served(&world)?, legacy.certificate);
    assert!(keys(&world)?.is_empty(), "no key was due");
    at_home(&world, &["delete", "secret", "sealed-secrets-key"])?;
    world.until("a first key", || Ok((keys(&world)?.len() == 1).then_some(())))?;
    Ok(())
}

#[test]
fn the_order_of_keys_can_be_that_of_their_secrets() -> Result<()> {
    let mut world = World::without_controller()?;
    let (future, past) = (pair(10)?, pair(-10)?);
    bring(&world, "one", &future.private, &future.certificate, Some("active"))?;
    // Times of Secrets are whole seconds.
    std::thread::sleep(Duration::from_millis(1100));
    bring(&world, "two", &past.private, &past.certificate, Some("active"))?;
    world.start(&["--key-renew-period=0", "--key-order-priority=SecretCreationTimestamp"])?;
    assert_eq!(served(&world)?, past.certificate);
    world.stop();
    world.start(&["--key-renew-period=0"])?;
    assert_eq!(served(&world)?, future.certificate);
    Ok(())
}

#[test]
fn a_broken_key_is_told_and_the_others_go_on() -> Result<()> {
    let world = World::new()?;
    let first = served(&world)?;
    let (mine, other) = (pair(3)?, pair(4)?);
    bring(&world, "broken", "-----BEGIN RSA PRIVATE KEY-----\nCANARY\n", "CANARY", Some("active"))?;
    bring(&world, "mismatch", &mine.private, &other.certificate, Some("active"))?;
    for name in ["broken", "mismatch"] {
        let series = format!("lacre_sealing_key_invalid{{key=\"{name}\"}}");
        world.until("the metric", || Ok((world.metric(&series)? == Some(1.0)).then_some(())))?;
        world.until("the event", || {
            let about = format!("involvedObject.name={name},reason=InvalidSealingKey");
            let events =
                world.admin().get_json(["-n", &world.home, "get", "events", "--field-selector", &about])?;
            Ok((events["items"].as_array().map(Vec::len) == Some(1)).then_some(()))
        })?;
    }
    assert_eq!(served(&world)?, first);
    // The private key of a pair that does not match opens what was sealed for it.
    until_opening(&world, 2.0)?;
    bring(&world, "mismatch", &mine.private, &mine.certificate, Some("active"))?;
    until_served(&world, &mine.certificate)?;
    assert!(!world.log(0)?.contains("CANARY"));
    Ok(())
}

#[test]
fn a_controller_that_finds_only_a_broken_key_makes_a_good_one() -> Result<()> {
    let mut world = World::without_controller()?;
    bring(&world, "broken", "", "", Some("active"))?;
    world.start(&[])?;
    assert_eq!(keys(&world)?.len(), 2);
    served(&world).map(drop)
}

#[test]
fn a_key_is_renewed_when_it_is_old_and_every_key_still_opens() -> Result<()> {
    let world = World::with_flags(&["--key-renew-period=2s"])?;
    let first = served(&world)?;
    world.until("three keys", || Ok((keys(&world)?.len() >= 3).then_some(())))?;
    world.until("another certificate", || Ok((served(&world)? != first).then_some(())))?;
    let all: BTreeSet<_> = keys(&world)?.iter().map(certificate_of).collect::<Result<_>>()?;
    assert!(all.contains(&first) && all.contains(&served(&world)?));
    Ok(())
}

#[test]
fn an_old_key_from_a_backup_is_used_and_not_followed_at_once() -> Result<()> {
    let mut world = World::without_controller()?;
    let old = pair(-300)?;
    bring(&world, "restored", &old.private, &old.certificate, Some("active"))?;
    world.start(&[])?;
    assert_eq!(served(&world)?, old.certificate);
    assert_eq!(keys(&world)?.len(), 1);
    // Unless that is asked for.
    world.stop();
    world.start(&["--key-cutoff-time", "Mon, 02 Jan 2040 15:04:05 +0000"])?;
    world.until("the new key", || {
        Ok((keys(&world)?.len() == 2 && served(&world)? != old.certificate).then_some(()))
    })
}

#[test]
fn a_signal_asks_for_a_new_key() -> Result<()> {
    let world = World::with_flags(&["--key-renew-period=0"])?;
    let first = served(&world)?;
    world.signal(Signal::USR1)?;
    world.until("another certificate", || Ok((served(&world)? != first).then_some(())))?;
    assert_eq!(keys(&world)?.len(), 2);
    Ok(())
}

#[test]
fn who_brings_keys_gets_none_made() -> Result<()> {
    let mut world = World::without_controller()?;
    world.start_unready_with(&["--bring-your-own-keys"])?;
    world.until("readiness to be refused", || {
        Ok(world.ask("/readyz")?.body.contains("no sealing key").then_some(()))
    })?;
    assert_eq!(world.ask("/v1/cert.pem")?.status, 500);
    let mine = pair(-400)?;
    bring(&world, "mine", &mine.private, &mine.certificate, Some("active"))?;
    until_served(&world, &mine.certificate)?;
    assert_eq!(keys(&world)?.len(), 1);
    Ok(())
}

#[test]
fn two_controllers_at_once_make_one_key() -> Result<()> {
    let mut world = World::new()?;
    world.start(&[])?;
    for _ in 0..3 {
        let before = served(&world)?;
        at_home(&world, &["delete", "secret", "-l", LABEL])?;
        world.until("both to seal for the same new key", || {
            let answers = [world.ask_number(0, "/v1/cert.pem")?, world.ask_number(1, "/v1/cert.pem")?];
            let [one, two] = answers.map(|answer| answer.body);
            Ok((one == two && one != before && one.contains("BEGIN")).then_some(()))
        })?;
        assert_eq!(keys(&world)?.len(), 1);
    }
    Ok(())
}

#[test]
fn certificates_are_published_for_whoever_is_authenticated() -> Result<()> {
    let world = World::new()?;
    let (first, newer) = (served(&world)?, pair(1)?);
    bring(&world, "brought", &newer.private, &newer.certificate, Some("active"))?;
    let anybody =
        ["get", "configmap", "lacre-public-keys", "--as=ci", "--as-group=system:authenticated", "-o", "json"];
    world.until("both certificates, the newest first", || {
        let map: Value = serde_json::from_slice(&at_home(&world, &anybody)?)?;
        let text = map["data"]["sealing-certificates.pem"].as_str().unwrap_or_default();
        ensure!(!text.contains("PRIVATE"), "a private key was published");
        Ok((text == format!("{}{first}", newer.certificate)).then_some(()))
    })?;
    let map: Value = serde_json::from_slice(&at_home(&world, &anybody)?)?;
    assert!(map["data"]["age-recipients"].as_str().is_some_and(|text| text.starts_with("age1")));
    Ok(())
}

#[test]
fn without_the_right_to_publish_the_keys_work_and_it_is_named_once() -> Result<()> {
    let mut world = World::without_controller()?;
    at_home(&world, &["delete", "rolebinding", "lacre-controller"])?;
    world.start_unready()?;
    world.until("a certificate", || Ok((world.ask("/v1/cert.pem")?.status == 200).then_some(())))?;
    let newer = pair(1)?;
    bring(&world, "brought", &newer.private, &newer.certificate, Some("active"))?;
    until_served(&world, &newer.certificate)?;
    world.until("it to be named", || {
        Ok(world.log(0)?.contains("certificates are not published").then_some(()))
    })?;
    assert_eq!(world.log(0)?.matches("certificates are not published").count(), 1);
    Ok(())
}

#[test]
fn a_key_that_is_not_backed_up_is_told() -> Result<()> {
    let world = World::new()?;
    let name = keys(&world)?[0]["metadata"]["name"].as_str().context("no name")?.to_owned();
    let series = format!("lacre_sealing_key_backed_up{{key=\"{name}\"}}");
    assert_eq!(world.metric(&series)?, Some(0.0));
    assert!(world.log(0)?.contains("not known to be backed up"));
    at_home(&world, &["annotate", "secret", &name, "lacre.dev/backed-up-at=2026-05-01T10:00:00Z"])?;
    world.until("the metric", || Ok((world.metric(&series)? == Some(1.0)).then_some(())))?;
    assert!(world.metric(&format!("lacre_sealing_key_age_seconds{{key=\"{name}\"}}"))?.is_some());
    assert_eq!(world.metric(&format!("lacre_sealing_key_newest{{key=\"{name}\"}}"))?, Some(1.0));
    Ok(())
}

#[test]
fn a_standby_seals_and_opens_for_others_and_makes_no_key() -> Result<()> {
    let flags =
        ["--leader-elect", "--lease-duration", "3s", "--lease-interval", "200ms", "--key-renew-period=0"];
    let mut world = World::with_flags(&flags)?;
    let first = served(&world)?;
    world.start(&flags)?;
    until_served(&world, &first)?;
    world.signal(Signal::USR1)?;
    world.until("the wish to be heard", || {
        Ok(world.log(1)?.contains("asked for a new sealing key").then_some(()))
    })?;
    let newer = pair(1)?;
    bring(&world, "brought", &newer.private, &newer.certificate, Some("active"))?;
    until_served(&world, &newer.certificate)?;
    assert_eq!(keys(&world)?.len(), 2, "the standby made a key");
    at_home(&world, &["delete", "secret", "-l", LABEL])?;
    world.until("the leader's new key", || {
        let answers = [world.ask_number(0, "/v1/cert.pem")?, world.ask_number(1, "/v1/cert.pem")?];
        let [one, two] = answers.map(|answer| answer.body);
        Ok((one == two && one.contains("BEGIN") && one != newer.certificate && one != first).then_some(()))
    })?;
    assert_eq!(keys(&world)?.len(), 1);
    Ok(())
}

//! With the rights that the chart of Sealed Secrets gives, all that it did works; what else we do is off.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use lacre_crypto::sealing_key::Certificate;
use serde_json::{Value, json};

use crate::site::{HOME, Site, Turn, Whose, is_synced, strict};

#[test]
fn the_rights_of_their_chart_are_enough() -> Result<()> {
    let site = Turn::take()?;
    let space = site.space("least")?;
    let pod = site.start(Whose::Ours, &[])?;
    let certificate = Certificate::from_pem(&site.certificate(&pod)?)?;
    let object = strict(&certificate, &space.name, "db", &[("k", "v")])?;
    site.create("SealedSecret", vec![object])?;
    let made = until_made(&site, &space.name, "")?;
    site.until("the status", || {
        let object = site.find("SealedSecret", &space.name, "db")?.unwrap_or_default();
        Ok((is_synced(&object) && object["status"]["conditions"][0]["type"] == "Synced").then_some(()))
    })?;
    site.until("the event", || {
        let events = site.list("Event", &space.name)?;
        let ours = events
            .iter()
            .find(|event| event["reason"] == "Unsealed" && event["involvedObject"]["name"] == "db");
        Ok(ours.map(drop))
    })?;
    // Repaired after a change, and after it is gone.
    let mut changed = site.find("Secret", &space.name, "db")?.context("it is gone")?;
    changed["data"] = json!({"k": "eA==", "more": "eA=="});
    site.replace("Secret", changed)?;
    site.until("the repair", || {
        let secret = site.find("Secret", &space.name, "db")?.unwrap_or_default();
        Ok((secret["data"] == json!({"k": "dg=="})).then_some(()))
    })?;
    site.cluster.admin().run(["delete", "secret", "db", "--namespace", &space.name])?;
    until_made(&site, &space.name, &made)?;
    // It goes with its owner.
    site.cluster.admin().run(["delete", "sealedsecret", "db", "--namespace", &space.name])?;
    site.until("the end of the Secret", || {
        Ok(site.find("Secret", &space.name, "db")?.is_none().then_some(()))
    })?;
    nothing_is_told_twice(&pod.log()?)
}

#[test]
fn keys_are_found_that_their_role_lets_be_listed_only() -> Result<()> {
    let site = Turn::take()?;
    let before = keys(&site)?;
    let pod = site.start(Whose::Ours, &[])?;
    let certificate = site.certificate(&pod)?;
    drop(pod);
    let pod = site.start(Whose::Theirs, &[])?;
    assert_eq!(site.certificate(&pod)?, certificate, "the two disagree on the newest key");
    ensure!(keys(&site)?.len() == before.len().max(1), "a key was made although there was one");
    Ok(())
}

fn keys(site: &Site) -> Result<Vec<Value>> {
    let mut keys = site.list("Secret", HOME)?;
    keys.retain(|one| one["metadata"]["labels"]["sealedsecrets.bitnami.com/sealed-secrets-key"] == "active");
    Ok(keys)
}

/// Waits for the Secret and gives its UID, which is another one than `before`.
fn until_made(site: &Site, namespace: &str, before: &str) -> Result<String> {
    site.until("the Secret", || {
        let secret = site.find("Secret", namespace, "db")?.unwrap_or_default();
        let uid = secret["metadata"]["uid"].as_str().filter(|uid| *uid != before).map(str::to_owned);
        Ok(uid.filter(|_| secret["data"] == json!({"k": "dg=="})))
    })
}

/// Of what the log says about rights.
fn nothing_is_told_twice(log: &str) -> Result<()> {
    let mut told: BTreeMap<&str, usize> = BTreeMap::new();
    let about_rights = |line: &&str| {
        line.contains(" WARN ") && ["forbidden", "may not", "right"].iter().any(|word| line.contains(word))
    };
    for line in log.lines().filter(about_rights) {
        // Each begins with its time.
        *told.entry(line.split_once(' ').map_or(line, |(_, rest)| rest)).or_default() += 1;
    }
    ensure!(!told.is_empty(), "nothing is told to be off:\n{log}");
    let often: Vec<_> = told.iter().filter(|(_, count)| **count > 1).collect();
    ensure!(often.is_empty(), "{often:#?}");
    Ok(())
}

//! A cluster with five hundred SealedSecrets moves from their controller to ours and back, and no Secret is written.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use lacre_crypto::sealing_key::Certificate;
use serde_json::{Value, json};
use xtask::peers::pod::Pod;

use crate::site::{Site, Turn, Whose, is_synced, item};

/// How many SealedSecrets there are.
const COUNT: usize = 500;
/// As many namespaces share them.
const SPACES: usize = 5;
/// Counts each time a SealedSecret was looked at.
const LOOKS: &str = "sealed_secrets_controller_unseal_requests_total";
const PREFIX: &str = "sealedsecrets.bitnami.com";

/// Name and version of each Secret.
type Versions = BTreeMap<String, String>;

#[test]
fn five_hundred_move_to_ours_and_back_and_no_secret_changes() -> Result<()> {
    let site = Turn::take()?;
    let spaces = (0..SPACES).map(|_| site.space("move")).collect::<Result<Vec<_>>>()?;
    let names: Vec<&str> = spaces.iter().map(|space| space.name.as_str()).collect();
    let theirs = site.start(Whose::Theirs, &[])?;
    let certificate = Certificate::from_pem(&site.certificate(&theirs)?)?;
    for (number, namespace) in (0..COUNT).zip(names.iter().cycle()) {
        site.create("Secret", before(namespace, number))?;
    }
    let objects = (0..COUNT).zip(names.iter().cycle());
    let objects = objects.map(|(number, namespace)| sealed(&certificate, namespace, number));
    site.create("SealedSecret", objects.collect::<Result<_>>()?)?;
    site.until("their controller to open all", || {
        let mut all = Vec::new();
        for namespace in &names {
            all.extend(site.list("SealedSecret", namespace)?);
        }
        Ok(all.iter().all(is_synced).then_some(()))
    })?;
    let before = versions(&site, &names)?;
    assert_eq!(before.len(), COUNT);
    drop(theirs);

    let ours = site.start(Whose::Ours, &[])?;
    until_all_were_looked_at(&site, &ours)?;
    assert_eq!(versions(&site, &names)?, before, "ours wrote Secrets");
    let changed = take_an_item_away(&site, names[0])?;
    let after = versions(&site, &names)?;
    let differ: Vec<_> = after.iter().filter(|(name, version)| before.get(*name) != Some(version)).collect();
    assert_eq!(differ.len(), 1, "{differ:?}");
    assert_eq!(differ[0].0, &changed);
    drop(ours);

    let theirs = site.start(Whose::Theirs, &[])?;
    until_all_were_looked_at(&site, &theirs)?;
    assert_eq!(versions(&site, &names)?, after, "theirs wrote Secrets after ours");
    Ok(())
}

fn until_all_were_looked_at(site: &Site, pod: &Pod) -> Result<()> {
    let looked = || Ok((site.count(pod, LOOKS)? >= COUNT as f64).then_some(()));
    let result = site.until("all to be looked at", looked);
    result.with_context(|| format!("{} were", site.count(pod, LOOKS).unwrap_or_default()))
}

/// Of the first object, which has no template that needs both.
fn take_an_item_away(site: &Site, namespace: &str) -> Result<String> {
    let name = name(0);
    let mut object = site.find("SealedSecret", namespace, &name)?.context("it is gone")?;
    let items = object["spec"]["encryptedData"].as_object_mut().context("no items")?;
    ensure!(items.remove("second").is_some(), "no such item");
    site.replace("SealedSecret", object)?;
    site.until("the key to leave the Secret", || {
        let secret = site.find("Secret", namespace, &name)?.context("the Secret is gone")?;
        let keys: Vec<_> = secret["data"].as_object().into_iter().flatten().map(|(key, _)| key).collect();
        Ok((keys == ["first"]).then_some(()))
    })?;
    Ok(format!("{namespace}/{name}"))
}

fn versions(site: &Site, namespaces: &[&str]) -> Result<Versions> {
    let mut all = Versions::new();
    for namespace in namespaces {
        for secret in site.list("Secret", namespace)? {
            let text = |field: &str| secret["metadata"][field].as_str().unwrap_or_default().to_owned();
            all.insert(format!("{namespace}/{}", text("name")), text("resourceVersion"));
        }
    }
    Ok(all)
}

fn name(number: usize) -> String {
    format!("s{number:03}")
}

/// What of a cluster that lived for a while makes a difference; ten kinds in turn.
fn sealed(certificate: &Certificate, namespace: &str, number: usize) -> Result<Value> {
    let name = name(number);
    let (label, scope) = match kind(number) {
        1 => (namespace.to_owned(), Some("namespace-wide")),
        2 => (String::new(), Some("cluster-wide")),
        _ => (format!("{namespace}/{name}"), None),
    };
    let mut annotations = json!({"note": "as it was"});
    if let Some(scope) = scope {
        annotations[format!("{PREFIX}/{scope}")] = "true".into();
    }
    let template = match kind(number) {
        3 => json!({"data": {"url": "https://{{ .first }}:{{ .second | b64enc }}@db/{{ upper \"x\" }}"}}),
        4 => json!({"type": "kubernetes.io/basic-auth", "metadata": {"labels": {"tier": "back"}}}),
        8 => json!({"immutable": true, "metadata": {"annotations": {"a": "b"}}}),
        9 => json!({"metadata": {"annotations": {
            format!("{PREFIX}/managed"): "true", format!("{PREFIX}/skip-set-owner-references"): "true"}}}),
        _ => {
            json!({"metadata": {"labels": {"number": number.to_string()}, "namespace": namespace, "name": name}})
        }
    };
    let items = match kind(number) {
        4 => [("username", "ops"), ("password", "hunter2")],
        _ => [("first", "alpha"), ("second", "beta\n")],
    };
    let mut sealed = json!({});
    for (key, value) in items {
        sealed[key] = item(certificate, &label, value)?.into();
    }
    Ok(json!({
        "apiVersion": "bitnami.com/v1alpha1",
        "kind": "SealedSecret",
        "metadata": {"namespace": namespace, "name": name, "annotations": annotations},
        "spec": {"encryptedData": sealed, "template": template},
    }))
}

/// The Secret that is there before the SealedSecret, for the kinds about that.
fn before(namespace: &str, number: usize) -> Vec<Value> {
    let marks: &[&str] = match kind(number) {
        5 => &["managed"],
        6 => &["patch"],
        7 => &["managed", "patch"],
        _ => return Vec::new(),
    };
    let annotations: Value = marks.iter().map(|mark| (format!("{PREFIX}/{mark}"), "true")).collect();
    let metadata = json!({"namespace": namespace, "name": name(number), "annotations": annotations,
        "labels": {"keep": "1"}});
    vec![json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"extra": "e"}})]
}

/// Not bound to the namespace, of which there are half as many.
fn kind(number: usize) -> usize {
    number / SPACES % 10
}

//! What the cases in `testdata/templates` expect is what the real controller of Sealed Secrets makes.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lacre_crypto::SecretBytes;
use lacre_crypto::sealed_item;
use lacre_crypto::sealing_key::Certificate;
use serde_json::{Value, json};
use xtask::template_case::{self, TemplateCase};

use crate::site::{Turn, Whose};

/// The label of items that open anywhere.
const ANYWHERE: &[u8] = b"";

#[test]
fn their_controller_makes_what_the_cases_expect() -> Result<()> {
    let cases = template_case::all()?;
    let site = Turn::take()?;
    let space = site.space("templates")?;
    let pod = site.start(Whose::Theirs, &[])?;
    let certificate = Certificate::from_pem(&site.certificate(&pod)?)?;
    let objects = cases.iter().map(|case| object(case, &space.name, &certificate));
    site.create("SealedSecret", objects.collect::<Result<_>>()?)?;
    let judged = site.until("all to be judged", || {
        let objects = site.list("SealedSecret", &space.name)?;
        let is_judged = |object: &Value| object["status"]["conditions"][0]["status"].is_string();
        Ok(objects.iter().all(is_judged).then_some(objects))
    })?;
    ensure!(judged.len() == cases.len(), "{} of {} objects", judged.len(), cases.len());
    let made: BTreeMap<String, Vec<u8>> = site
        .list("Secret", &space.name)?
        .iter()
        .filter_map(|secret| {
            let name = secret["metadata"]["name"].as_str()?.to_owned();
            Some((name, STANDARD.decode(secret["data"]["out"].as_str()?).ok()?))
        })
        .collect();
    let wrong: Vec<_> = cases.iter().filter(|case| made.get(&case.name) != case.expected.as_ref()).collect();
    let names: Vec<_> = wrong.iter().map(|case| case.name.as_str()).collect();
    ensure!(names.is_empty(), "{} of {} cases expect something else: {names:?}", names.len(), cases.len());
    Ok(())
}

fn object(case: &TemplateCase, namespace: &str, certificate: &Certificate) -> Result<Value> {
    let mut items = BTreeMap::new();
    for (key, value) in &case.values {
        let value = SecretBytes::new(value.clone());
        items.insert(key, sealed_item::seal(certificate.public(), ANYWHERE, &value)?);
    }
    Ok(json!({
        "apiVersion": "bitnami.com/v1alpha1",
        "kind": "SealedSecret",
        "metadata": {
            "name": case.name,
            "namespace": namespace,
            "annotations": {"sealedsecrets.bitnami.com/cluster-wide": "true"},
        },
        "spec": {"encryptedData": items, "template": {"data": {"out": case.source}}},
    }))
}

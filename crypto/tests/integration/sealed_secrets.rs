//! SealedSecrets with the real `kubeseal`: it opens what is sealed here, what it seals opens here, and it says the same.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lacre_crypto::object::sealed_secret::{
    Cause, Extent, ItemPlace, ItemScope, MissingKey, PlainSecret, SealSecretOptions, SealedManifest,
    SealedSecret, TEMPLATES_MAX, UnsealError, UnsealOptions, seal_secret,
};
use lacre_crypto::sealed_item;
use lacre_crypto::sealing_key::{Certificate, SealingKey};
use lacre_crypto::{Format, SecretBytes, Timestamp};
use serde_json::{Value, json};
use tempfile::TempDir;
use xtask::peers::sealed_secrets::kubeseal;
use xtask::process::{Finished, Tool};

use crate::sealed_items::key;

const OPTIONS: UnsealOptions =
    UnsealOptions { accept_v1: true, missing_key: MissingKey::Error, render: true, deadline: None };

/// A key, its certificate, and a folder in which `kubeseal` finds both.
struct Peer {
    key: SealingKey,
    folder: TempDir,
}

impl Peer {
    fn new(name: &str) -> Self {
        let (key, folder) = (key(name), tempfile::tempdir().unwrap());
        let day = std::time::Duration::from_secs(86_400);
        let certificate = Certificate::self_signed(&key, "", Timestamp::now(), day).unwrap();
        fs::write(folder.path().join("tls.crt"), certificate.pem()).unwrap();
        fs::write(folder.path().join("tls.key"), key.to_pem().expose_secret()).unwrap();
        // Without one it would ask a cluster for its namespace.
        fs::write(folder.path().join("config"), "apiVersion: v1\nkind: Config\n").unwrap();
        Self { key, folder }
    }

    fn tool(&self) -> Tool {
        kubeseal().unwrap().env("KUBECONFIG", self.folder.path().join("config")).dir(self.folder.path())
    }

    fn seal(&self, secret: &Value, scope: &str, format: &str) -> Finished {
        let arguments = ["--cert", "tls.crt", "--scope", scope, "--format", format];
        self.tool().args(arguments).stdin(secret.to_string()).run().unwrap()
    }

    fn unseal(&self, sealed: &str) -> Finished {
        let arguments = ["--recovery-unseal", "--recovery-private-key", "tls.key"];
        self.tool().args(arguments).stdin(sealed).run().unwrap()
    }
}

fn secret(values: &BTreeMap<&str, Vec<u8>>) -> Value {
    let data: BTreeMap<_, _> = values.iter().map(|(name, bytes)| (*name, STANDARD.encode(bytes))).collect();
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "shop"}, "data": data})
}

/// Values of every sort; together they are as large as a Secret may be.
fn values() -> BTreeMap<&'static str, Vec<u8>> {
    let large = (0..1024 * 1024).map(|number: u32| (number % 251) as u8).collect();
    BTreeMap::from([
        ("binary", (0..=255).collect()),
        ("crlf", b"a\r\nb\r\n".to_vec()),
        ("empty", Vec::new()),
        ("large", large),
        ("one", b"1".to_vec()),
        ("utf8", "schlüssel ✓ 鍵".as_bytes().to_vec()),
    ])
}

fn format(word: &str) -> Format {
    Format::from_word(word).unwrap()
}

fn read(text: &str, word: &str) -> SealedSecret {
    let manifest = SealedManifest::read(text, format(word)).unwrap();
    assert_eq!(manifest.objects().len(), 1);
    manifest.objects()[0].secret.clone()
}

fn assert_values(plain: &PlainSecret, expected: &BTreeMap<&str, Vec<u8>>) {
    assert!(plain.data.keys().eq(expected.keys()));
    for (name, bytes) in expected {
        assert!(plain.data[*name].expose_secret() == bytes, "{name}");
    }
}

/// A value as YAML: mappings as blocks, scalars in JSON's spelling.
fn yaml(value: &Value, indent: usize) -> String {
    let entry = |(key, value): (&String, &Value)| {
        let below = matches!(value, Value::Object(entries) if !entries.is_empty());
        let rest = if below { format!("\n{}", yaml(value, indent + 2)) } else { format!(" {value}\n") };
        format!("{}{}:{rest}", " ".repeat(indent), json!(key))
    };
    value.as_object().unwrap().iter().map(entry).collect()
}

#[test]
fn what_kubeseal_seals_opens_here() {
    let peer = Peer::new("rsa-2048");
    let (values, other) = (values(), key("rsa-3072"));
    for scope in ItemScope::ALL {
        for word in ["json", "yaml"] {
            let sealed = peer.seal(&secret(&values), &scope.to_string(), word);
            assert_eq!(sealed.code, Some(0), "{}", sealed.stderr_text());
            let object = read(&sealed.stdout_text(), word);
            assert_eq!(object.scope, scope);
            let plain = object.open(&[&other, &peer.key], &OPTIONS).unwrap();
            assert_values(&plain, &values);
            assert_eq!(plain.opened_by, [1]);
            assert!(object.verify(&[&other], true).is_err());
        }
    }
}

#[test]
fn kubeseal_opens_what_is_sealed_here() {
    let peer = Peer::new("rsa-3072");
    let values = values();
    for scope in ItemScope::ALL {
        let options = SealSecretOptions { scope: Some(scope), ..Default::default() };
        let sealed = seal_secret(&secret(&values), peer.key.public(), &options).unwrap();
        for text in [sealed.to_string(), yaml(&sealed, 0)] {
            let opened = peer.unseal(&text);
            assert_eq!(opened.code, Some(0), "{}", opened.stderr_text());
            let opened: Value = serde_json::from_slice(&opened.stdout).unwrap();
            for (name, bytes) in &values {
                let found = STANDARD.decode(opened["data"][name].as_str().unwrap_or_default()).unwrap();
                assert!(found == *bytes, "{scope} {name}");
            }
        }
    }
}

/// What differs from run to run, blanked out.
fn without_ciphertext(mut object: Value) -> Value {
    for item in object["spec"]["encryptedData"].as_object_mut().unwrap().values_mut() {
        *item = json!(item.as_str().unwrap()[..2]);
    }
    object
}

#[test]
fn the_object_is_that_of_kubeseal_in_every_field_and_their_order() {
    let peer = Peer::new("rsa-2048");
    let mut secrets = vec![
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shop-db", "namespace": "shop",
            "uid": "1b7c", "labels": {"tier": "back", "app": "db"}, "annotations": {"note": "hello",
            "kubectl.kubernetes.io/last-applied-configuration": "{}"}}, "type": "Opaque",
            "data": {"b": "b25l", "a": "b25l"}, "stringData": {"b": "two", "n": "10"}}),
        json!({"apiVersion": "v1", "kind": "Secret", "immutable": true, "type": "kubernetes.io/tls",
            "metadata": {"resourceVersion": "5", "generation": 3, "selfLink": "/x", "name": "x",
            "namespace": "n", "finalizers": ["b/c", "a/b"], "generateName": "g-",
            "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "deletionGracePeriodSeconds": 5, "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p",
            "uid": "u"}], "unknown": "field"}, "data": {"k": null}}),
        json!({"apiVersion": "v1", "kind": "Secret", "immutable": false, "stringData": {"k": ""},
            "metadata": {"name": "x", "namespace": "n", "labels": {}, "annotations": {}}}),
    ];
    for annotation in ["cluster-wide", "namespace-wide"] {
        let name = format!("sealedsecrets.bitnami.com/{annotation}");
        for value in ["true", "True"] {
            secrets.push(json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"k": "v"},
                "metadata": {"name": "x", "namespace": "n", "annotations": {name.clone(): value}}}));
        }
    }
    for secret in &secrets {
        for scope in ItemScope::ALL {
            let theirs = peer.seal(secret, &scope.to_string(), "json");
            assert_eq!(theirs.code, Some(0), "{}", theirs.stderr_text());
            let theirs = without_ciphertext(serde_json::from_slice(&theirs.stdout).unwrap());
            let options = SealSecretOptions { scope: Some(scope), ..Default::default() };
            let ours = without_ciphertext(seal_secret(secret, peer.key.public(), &options).unwrap());
            assert_eq!(ours.to_string(), theirs.to_string(), "{secret}");
        }
    }
}

#[test]
fn what_kubeseal_refuses_is_refused_in_its_words() {
    let peer = Peer::new("rsa-2048");
    for secret in [
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "namespace": "n"}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "namespace": "n"}, "data": {}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "n"}, "data": {"k": "YQ=="}}),
    ] {
        let theirs = peer.seal(&secret, "strict", "json");
        let ours = seal_secret(&secret, peer.key.public(), &SealSecretOptions::default()).unwrap_err();
        assert_eq!(theirs.code, Some(1));
        assert_eq!(theirs.stderr_text().trim_end(), format!("error: {ours}"));
    }
}

#[test]
fn items_that_do_not_open_are_told_in_the_same_words() {
    let peer = Peer::new("rsa-2048");
    let good = sealed_item::seal(peer.key.public(), b"shop/db", &SecretBytes::from("x")).unwrap();
    let text = |range: std::ops::Range<usize>| good[range].to_owned();
    let odd = [
        format!("{} {}", text(0..40), text(40..good.len())),
        text(0..41),
        text(0..42),
        text(0..43),
        format!("{}=", text(0..42)),
        format!("{}\n=", text(0..42)),
        format!("{}=\n=", text(0..42)),
        format!("{}==A", text(0..42)),
        format!("{}=\nA", text(0..42)),
        format!("{}=A", text(0..42)),
        format!("{}=A", text(0..43)),
        format!("{}===", text(0..41)),
        format!("AQAB\r\nA_{good}"),
        "AQ\r\nAB\n==".to_owned(),
        "AQAB\nAQ\n".to_owned(),
        format!("é{good}"),
        "-".to_owned(),
        "=".to_owned(),
        "\n".to_owned(),
        String::new(),
        text(0..4),
        text(0..300),
        sealed_item::seal(peer.key.public(), b"shop", &SecretBytes::from("x")).unwrap(),
        format!("{}AAAA", text(0..good.len() - 4)),
    ];
    for item in &odd {
        let object = json!({"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret",
            "metadata": {"name": "db", "namespace": "shop"}, "spec": {"encryptedData": {"good": good, "odd": item}}});
        let ours = SealedSecret::from_json(&object).unwrap().verify(&[&peer.key], false).unwrap_err();
        let theirs = peer.unseal(&object.to_string());
        assert_eq!(theirs.code, Some(1), "{item:?}");
        assert_eq!(theirs.stderr_text().trim_end(), format!("error: {ours}"), "{item:?}");
    }
}

#[test]
fn odd_spellings_of_base64_open_in_both() {
    let peer = Peer::new("rsa-2048");
    let good = sealed_item::seal(peer.key.public(), b"shop/db", &SecretBytes::from("secret")).unwrap();
    let lines: Vec<_> = good.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
    for item in [lines.join("\n"), lines.join("\r\n"), format!("\n\n{good}\r\n")] {
        let object = json!({"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret",
            "metadata": {"name": "db", "namespace": "shop"}, "spec": {"encryptedData": {"k": item}}});
        let ours = SealedSecret::from_json(&object).unwrap().open(&[&peer.key], &OPTIONS).unwrap();
        assert_eq!(ours.data["k"].expose_secret(), b"secret");
        assert_eq!(peer.unseal(&object.to_string()).code, Some(0), "{item:?}");
    }
}

/// An object with the items `a` and `b`, whose template is `template`.
fn templated(peer: &Peer, template: Value) -> Value {
    let item =
        |text: &str| sealed_item::seal(peer.key.public(), b"shop/db", &SecretBytes::from(text)).unwrap();
    json!({"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret", "metadata": {"name": "db",
        "namespace": "shop", "uid": "u"}, "spec": {"encryptedData": {"a": item("alpha"), "b": item("beta")},
        "template": template}})
}

#[test]
fn the_secret_is_that_of_kubeseal_with_templates_and_metadata() {
    let peer = Peer::new("rsa-2048");
    let options = UnsealOptions { missing_key: MissingKey::Zero, ..OPTIONS };
    for template in [
        json!(null),
        json!({"type": "kubernetes.io/tls", "immutable": true}),
        json!({"metadata": {"name": "other", "namespace": "other", "labels": {"l": "1"}, "annotations": {"n": "2",
            "sealedsecrets.bitnami.com/cluster-wide": "true"}}}),
        json!({"data": {"a": "{{ .b }}", "c": "{{ .a }}/{{ .plain }}", "plain": "p {{ .a }}", "b": null}}),
        json!({"data": {"a": null, "b": null}}),
        json!({"data": {"conf": "{{ .nope }} {{ index . \"nope\" }} {{ .a | upper }}\n", "empty": ""}}),
    ] {
        let object = templated(&peer, template);
        let theirs = peer.unseal(&object.to_string());
        assert_eq!(theirs.code, Some(0), "{}", theirs.stderr_text());
        let mut theirs: Value = serde_json::from_slice(&theirs.stdout).unwrap();
        let plain = SealedSecret::from_json(&object).unwrap().open(&[&peer.key], &options).unwrap();
        // Who owns the Secret is the controller's to say.
        theirs["metadata"].as_object_mut().unwrap().remove("ownerReferences");
        assert_eq!(Value::Object(plain.metadata), theirs["metadata"]);
        assert_eq!(plain.type_, theirs["type"].as_str().unwrap_or_default());
        assert_eq!(plain.immutable, theirs["immutable"].as_bool());
        let ours: BTreeMap<_, _> =
            plain.data.iter().map(|(name, bytes)| (name, STANDARD.encode(bytes.expose_secret()))).collect();
        // An empty value that a template made is null there, which an API server takes for an empty one.
        let theirs: BTreeMap<_, _> = theirs["data"].as_object().into_iter().flatten().collect();
        let theirs = theirs.into_iter().map(|(name, value)| (name, value.as_str().unwrap_or_default()));
        assert!(theirs.eq(ours.iter().map(|(name, text)| (*name, text.as_str()))), "{object}");
    }
}

#[test]
fn no_item_is_opened_after_the_deadline_and_no_object_has_templates_without_end() {
    let peer = Peer::new("rsa-2048");
    let open = |templates: usize, options| {
        let data: serde_json::Map<_, _> =
            (0..templates).map(|number| (format!("t{number}"), "{{ .a }}".into())).collect();
        let object = SealedSecret::from_json(&templated(&peer, json!({"data": data}))).unwrap();
        object.open(&[&peer.key], &options).map(|plain| plain.data.len())
    };
    let now = Instant::now();
    let until = |deadline| UnsealOptions { deadline: Some(deadline), ..OPTIONS };
    assert_eq!(open(3, until(now)), Err(UnsealError::TooMuchWork));
    assert_eq!(open(3, until(now + Duration::from_secs(3600))), Ok(5));
    assert_eq!(open(TEMPLATES_MAX, OPTIONS), Ok(TEMPLATES_MAX + 2));
    assert_eq!(open(TEMPLATES_MAX + 1, OPTIONS), Err(UnsealError::TooManyTemplates));
    let unrendered = UnsealOptions { render: false, ..OPTIONS };
    assert_eq!(open(TEMPLATES_MAX + 1, unrendered), Ok(2));
}

#[test]
fn templates_are_rendered_only_on_request_and_fail_with_their_key() {
    let peer = Peer::new("rsa-2048");
    let object = templated(&peer, json!({"data": {"x": "{{ .nope }}", "y": "{{", "z": "{{ .a }}"}}));
    let object = SealedSecret::from_json(&object).unwrap();
    let error = object.open(&[&peer.key], &OPTIONS).err().unwrap();
    let UnsealError::Templates(failures) = &error else { panic!("{error}") };
    assert!(failures.iter().map(|failure| failure.key.as_str()).eq(["x", "y"]), "{error}");
    assert!(!error.to_string().contains("alpha"), "{error}");
    assert_eq!(object.verify(&[&peer.key], false), Ok(()));
    let plain = object.open(&[&peer.key], &UnsealOptions { render: false, ..OPTIONS }).unwrap();
    assert!(plain.data.keys().eq(["a", "b"]));
    // Items that do not open are what is told: a template over them says nothing more.
    let error = object.open(&[], &OPTIONS).err().unwrap();
    assert_eq!(error.to_string(), "no key could decrypt secret (a, b)");
}

fn object(scope: ItemScope, items: &BTreeMap<String, String>) -> SealedSecret {
    let mut object =
        json!({"metadata": {"name": "db", "namespace": "shop"}, "spec": {"encryptedData": items}});
    if let Some(annotation) = scope.annotation() {
        object["metadata"]["annotations"] = json!({annotation: "true"});
    }
    SealedSecret::from_json(&object).unwrap()
}

fn one(key: &SealingKey, label: &[u8]) -> BTreeMap<String, String> {
    BTreeMap::from([(
        "k".to_owned(),
        sealed_item::seal(key.public(), label, &SecretBytes::from("v")).unwrap(),
    )])
}

#[test]
fn what_can_be_known_of_an_item_that_does_not_open_is_said() {
    let (here, gone, larger) = (key("rsa-2048"), key("rsa-2048-b"), key("rsa-3072"));
    let suspects = [ItemPlace { namespace: "shop".to_owned(), name: "old-db".to_owned() }];
    for (stands, label, part) in [
        (
            ItemScope::Strict,
            &b"shop"[..],
            "sealed for any name in namespace shop, and this is shop/db with scope strict: annotate the object with sealedsecrets.bitnami.com/namespace-wide: \"true\"",
        ),
        (ItemScope::Strict, b"", "sealed for the whole cluster"),
        (
            ItemScope::NamespaceWide,
            b"shop/db",
            "sealed for shop/db, and this is shop/db with scope namespace-wide: take the scope annotation off",
        ),
        (
            ItemScope::ClusterWide,
            b"shop",
            "annotate the object with sealedsecrets.bitnami.com/namespace-wide",
        ),
        (
            ItemScope::Strict,
            b"shop/old-db",
            "sealed for shop/old-db, and this is shop/db with scope strict: seal it again for this place",
        ),
        (ItemScope::Strict, b"default/db", "sealed for default/db"),
        (ItemScope::Strict, b"default", "any name in namespace default"),
        (ItemScope::Strict, b"else/where", "none of 1 keys opens it, under this or any of"),
    ] {
        let object = object(stands, &one(&here, label));
        let keys = [&larger, &here];
        let error = object.verify(&keys, false).unwrap_err();
        assert_eq!(error.to_string(), "no key could decrypt secret (k)");
        let found = object.diagnose(&error, &keys, &suspects);
        assert_eq!(found.len(), 1);
        assert!(found[0].to_string().contains(part), "{}", found[0]);
    }
    let sealed = one(&here, b"shop/db");
    let changed = |text: &str| BTreeMap::from([("k".to_owned(), text.to_owned())]);
    let damaged = format!("{}AAAA", &sealed["k"][..sealed["k"].len() - 4]);
    for (items, keys, part) in [
        (one(&gone, b"shop/db"), vec![&here], "sealed for another cluster or for a key that is gone"),
        (one(&larger, b"shop/db"), vec![&here, &gone], "a key of 3072 bits, and there is none of that size"),
        (changed(&damaged), vec![&gone, &here], "it was damaged after it was sealed"),
        (changed("AQA"), vec![&here], "the character at byte 0 does not belong there"),
        (changed(&sealed["k"][..200]), vec![&here], "it is cut off"),
        (sealed, vec![], "there is none of that size"),
    ] {
        let object = object(ItemScope::Strict, &items);
        let error = object.verify(&keys, false).unwrap_err();
        let found = object.diagnose(&error, &keys, &[]);
        assert!(found[0].to_string().contains(part), "{}", found[0]);
    }
}

#[test]
fn a_diagnosis_ends_however_many_keys_and_places_there_are() {
    let (here, gone) = (key("rsa-2048"), key("rsa-2048-b"));
    let suspect = |number| ItemPlace { namespace: format!("n{number}"), name: "x".to_owned() };
    let suspects: Vec<_> = (0..1000).map(suspect).collect();
    let object = object(ItemScope::Strict, &one(&gone, b"n999/x"));
    let keys = vec![&here; 100];
    let error = object.verify(&keys, false).unwrap_err();
    let found = object.diagnose(&error, &keys, &suspects);
    assert!(matches!(found[0].cause, Cause::Unknown { keys: 100, .. }), "{}", found[0]);
}

#[test]
fn only_what_is_under_another_key_is_sealed_again() {
    let (old, new) = (key("rsa-2048"), key("rsa-3072"));
    let mut items = one(&old, b"shop/db");
    items.insert("fresh".to_owned(), one(&new, b"shop/db")["k"].clone());
    let mut object = object(ItemScope::Strict, &items);
    let resealed = object.reseal(&[&old, &new], new.public(), Extent::Outdated).unwrap();
    assert!(resealed.items.keys().eq(["k"]) && resealed.kept == 1);
    let all = object.reseal(&[&old, &new], new.public(), Extent::All).unwrap();
    assert!(all.items.len() == 2 && all.kept == 0 && all.items["fresh"] != items["fresh"]);
    object.items.extend(resealed.items);
    assert_eq!(object.open(&[&new], &OPTIONS).unwrap().data["k"].expose_secret(), b"v");
    object.items.insert("bad".to_owned(), "AAAA".to_owned());
    let error = object.reseal(&[&old, &new], new.public(), Extent::All).unwrap_err();
    assert_eq!(error.to_string(), "no key could decrypt secret (bad)");
}

fn legacy(key: &SealingKey, content: &str) -> Value {
    let blob = sealed_item::seal(key.public(), b"shop/db", &SecretBytes::from(content)).unwrap();
    json!({"metadata": {"name": "db", "namespace": "shop"}, "spec": {"data": blob, "encryptedData": {}}})
}

#[test]
fn objects_of_the_first_version_open_where_they_are_accepted() {
    let key = key("rsa-2048");
    let content = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "other", "labels": {"a": "b"}},
        "type": "Opaque", "data": {"a": "b25l", "n": null}, "stringData": {"s": "two"}});
    let mut value = legacy(&key, &content.to_string());
    let object = SealedSecret::from_json(&value).unwrap();
    let plain = object.open(&[&key], &OPTIONS).unwrap();
    assert_eq!(plain.data["a"].expose_secret(), b"one");
    assert_eq!(plain.data["s"].expose_secret(), b"two");
    assert_eq!(
        Value::Object(plain.metadata),
        json!({"name": "db", "labels": {"a": "b"}, "namespace": "shop"})
    );
    assert_eq!(object.verify(&[&key], false), Err(UnsealError::LegacyRefused));
    let resealed = object.reseal(&[&key], key.public(), Extent::All).unwrap();
    assert!(resealed.legacy_data.is_some_and(|blob| Some(&blob) != object.legacy_data.as_ref()));
    value["spec"]["encryptedData"] = json!({"k": "x"});
    let both = SealedSecret::from_json(&value).unwrap();
    assert_eq!(both.verify(&[&key], true), Err(UnsealError::LegacyBesideItems));
    for content in ["", "hunter2", "[]", "{\"data\": {\"k\": \"hunter2!\"}}", "{\"data\": {\"k\": 5}}"] {
        let object = SealedSecret::from_json(&legacy(&key, content)).unwrap();
        let error = object.open(&[&key], &OPTIONS).err().unwrap();
        assert_eq!(error, UnsealError::LegacyContent);
        assert!(!error.to_string().contains("hunter2"));
    }
}

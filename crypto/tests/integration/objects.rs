//! From a Secret's manifest to an EncryptedSecret and back, with everything that may and may not happen on the way.

use lacre_crypto::document::Document;
use lacre_crypto::object::{
    EncryptedSecret, ManifestOptions, ObjectContext, OpenError, OpenSecret, seal_manifest,
};
use lacre_crypto::recipient::age::AgeIdentity;
use lacre_crypto::{Format, Groups, OpenOptions, Scope, SecretText, TreePath, reseal, set};
use serde_json::{Value as Plain, json};
use xtask::peers::sops::Sops;

use crate::support::{Bench, now, open, open_with, write_options};

const MANIFEST: &str = "\
apiVersion: v1
kind: Secret
metadata:
  name: db
  namespace: shop
  labels: {tier: back}
type: Opaque
stringData:
  user: app
  password: hunter2
  config: |
    a: b
    c: d
data:
  raw: AAECAw==
";

fn options(groups: Groups<'_>) -> ManifestOptions<'_> {
    ManifestOptions {
        namespace: None,
        scope: Scope::Strict,
        clusters: Vec::new(),
        groups,
        keys_from: Vec::new(),
        write: write_options(),
    }
}

fn sealed(identity: &AgeIdentity) -> String {
    let recipient = identity.recipient();
    seal_manifest(&SecretText::from(MANIFEST), Format::Yaml, options(Groups::one(vec![&recipient]))).unwrap()
}

/// The object as an API server would hold it: JSON with keys in bytewise order.
fn in_cluster(text: &str) -> Plain {
    let document = Document::read(text, Format::Yaml).unwrap();
    let root = document.tree.documents[0].root.unwrap();
    let mut object = document.tree.plain(root, true);
    object.sort_all_objects();
    object
}

fn open_object(object: &Plain, identity: &AgeIdentity) -> Result<OpenSecret, OpenError> {
    let object = EncryptedSecret::from_json(object).unwrap();
    let key = object.unwrap_key(&[identity]).unwrap();
    object.open(key, &ObjectContext { cluster_name: None, now: now() })
}

#[test]
fn a_manifest_becomes_an_object_that_opens_to_its_values() {
    let identity = AgeIdentity::generate();
    let text = sealed(&identity);
    let secret = open_object(&in_cluster(&text), &identity).unwrap();
    let values: Vec<(&str, &[u8])> =
        secret.data.iter().map(|(key, value)| (key.as_str(), value.expose_secret())).collect();
    let expected: [(&str, &[u8]); 4] =
        [("config", b"a: b\nc: d\n"), ("password", b"hunter2"), ("raw", &[0, 1, 2, 3]), ("user", b"app")];
    assert_eq!(values, expected);
    assert!(text.contains("kustomize.toolkit.fluxcd.io/decrypt: disabled"));
    assert!(text.contains("tier: back"));
    assert!(!text.contains("hunter2"));
}

#[test]
fn stock_sops_opens_an_object_of_ours() {
    let bench = Bench::new();
    let text = sealed(&bench.identity);
    for sops in Sops::all().unwrap() {
        let opened = bench.sops(&sops, &["decrypt", "FILE"], "object.yaml", &text).unwrap();
        assert!(opened.stdout.contains("password: hunter2"), "{}", opened.stdout);
        assert_eq!(opened.remarks.trim(), "");
    }
}

#[test]
fn what_clusters_do_to_an_object_changes_nothing() {
    let identity = AgeIdentity::generate();
    let mut object = in_cluster(&sealed(&identity));
    object["metadata"]["labels"] = json!({"app.kubernetes.io/instance": "shop"});
    object["metadata"]["uid"] = json!("1");
    object["status"] = json!({"conditions": []});
    object["spec"]["suspend"] = json!(true);
    object["spec"]["keysFrom"] = json!([{"secretRef": {"name": "team"}}]);
    object["spec"]["immutable"] = Plain::Null;
    object["sops"]["kms"] = Plain::Null;
    assert!(open_object(&object, &identity).is_ok());
}

#[test]
fn each_change_has_its_own_reason() {
    let identity = AgeIdentity::generate();
    let text = sealed(&identity);
    let opened = open(&text, Format::Yaml, &identity).unwrap();
    let path = TreePath::parse("[\"spec\"][\"stringData\"][\"password\"]").unwrap();
    let newer = set(&opened, &path, &"\"changed\"".into(), &write_options()).unwrap().unwrap();
    let (object, newer) = (in_cluster(&text), in_cluster(&newer));
    let with = |pointer: &str, value: Plain| {
        let mut object = object.clone();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[name] = value;
        object
    };
    let old_password = object["spec"]["stringData"]["password"].clone();
    let mut pasted = newer.clone();
    pasted["spec"]["stringData"]["password"] = old_password.clone();
    let mut recipients = object["sops"]["age"].as_array().unwrap().clone();
    recipients.push(json!({"recipient": "age1stranger", "enc": "x"}));
    let mut stripped = object.clone();
    stripped["sops"].as_object_mut().unwrap().remove("lacre");
    let mut missing = object.clone();
    missing["spec"]["stringData"].as_object_mut().unwrap().remove("user");
    let cases = [
        ("moved to another namespace", with("/metadata/namespace", json!("dev")), "ScopeMismatch"),
        ("renamed", with("/metadata/name", json!("other")), "ScopeMismatch"),
        ("a value of another key", with("/spec/stringData/user", old_password), "ValueMismatch"),
        ("an older value pasted back", pasted, "MacMismatch"),
        ("a value removed", missing, "MacMismatch"),
        ("a clear value", with("/spec/stringData/user", json!("app")), "PlaintextValue"),
        ("a recipient added", with("/sops/age", recipients.into()), "RecipientsMismatch"),
        ("the seal removed", stripped, "SealRemoved"),
        ("the seal damaged", with("/sops/lacre", newer["sops"]["lacre"].clone()), "RecipientsMismatch"),
        ("a label changed", with("/spec/template/metadata/labels/tier", json!("front")), "TemplateMismatch"),
        ("the type changed", with("/spec/type", json!("kubernetes.io/tls")), "TemplateMismatch"),
        ("made immutable", with("/spec/immutable", json!(true)), "TemplateMismatch"),
        ("a time ahead", with("/sops/lastmodified", json!("2026-01-02T03:10:00Z")), "FutureLastModified"),
        ("another selector", with("/sops/encrypted_regex", json!("^data$")), "UnsupportedMetadata"),
    ];
    for (change, object, reason) in cases {
        let error = open_object(&object, &identity).expect_err(change);
        assert_eq!(error.reason(), reason, "{change}: {error}");
    }
}

#[test]
fn a_field_that_no_seal_covers_is_refused() {
    let identity = AgeIdentity::generate();
    let object = in_cluster(&sealed(&identity));
    for (pointer, value) in [
        ("/spec/policy", json!("x")),
        ("/spec/template/type", json!("x")),
        ("/spec/template/metadata/finalizers", json!(["x"])),
        ("/spec/stringData/raw", json!("")),
        ("/spec/stringData/user", json!(5)),
        ("/kind", json!("Secret")),
    ] {
        let mut object = object.clone();
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[name] = value;
        assert!(EncryptedSecret::from_json(&object).is_err(), "{pointer}");
    }
    let mut bare = object.clone();
    bare.as_object_mut().unwrap().remove("sops");
    assert!(EncryptedSecret::from_json(&bare).is_err());
}

#[test]
fn scopes_and_clusters_limit_where_an_object_opens() {
    let identity = AgeIdentity::generate();
    let recipient = identity.recipient();
    let at = |scope, clusters: &[&str], namespace: &str, name: &str, cluster: Option<&str>| {
        let clusters = clusters.iter().map(|cluster| (*cluster).to_owned()).collect();
        let options = ManifestOptions { scope, clusters, ..options(Groups::one(vec![&recipient])) };
        let mut object =
            in_cluster(&seal_manifest(&SecretText::from(MANIFEST), Format::Yaml, options).unwrap());
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["name"] = json!(name);
        let object = EncryptedSecret::from_json(&object).unwrap();
        let key = object.unwrap_key(&[&identity]).unwrap();
        object.open(key, &ObjectContext { cluster_name: cluster, now: now() }).is_ok()
    };
    assert!(at(Scope::Strict, &[], "shop", "db", None));
    assert!(!at(Scope::Strict, &[], "shop", "other", None));
    assert!(at(Scope::Namespace, &[], "shop", "other", None));
    assert!(!at(Scope::Namespace, &[], "dev", "db", None));
    assert!(at(Scope::Cluster, &[], "dev", "other", None));
    assert!(at(Scope::Cluster, &["prod"], "dev", "other", Some("prod")));
    assert!(!at(Scope::Cluster, &["prod"], "dev", "other", Some("staging")));
    assert!(!at(Scope::Cluster, &["prod"], "dev", "other", None));
}

#[test]
fn manifests_that_a_cluster_reads_otherwise_are_refused() {
    let identity = AgeIdentity::generate();
    let recipient = identity.recipient();
    let refused = |manifest: &str| {
        let options = options(Groups::one(vec![&recipient]));
        seal_manifest(&SecretText::from(manifest), Format::Yaml, options).expect_err(manifest).to_string()
    };
    let cases = [
        (MANIFEST.replace("  user:", "  on:"), "write \"on\""),
        (MANIFEST.replace("user: app", "user: 5"), "put it in quotes"),
        (MANIFEST.replace("user: app", "user: true"), "put it in quotes"),
        (MANIFEST.replace("AAECAw==", "not base64"), "is not base64"),
        (MANIFEST.replace("  raw:", "  user:"), "stands in data and in stringData"),
        (MANIFEST.replace("kind: Secret", "kind: ConfigMap"), "not the manifest of a Secret"),
        (MANIFEST.replace("  namespace: shop\n", ""), "names no namespace"),
        (MANIFEST.replace("  name: db\n", ""), "no metadata.name"),
        (format!("{MANIFEST}extra: x\n"), "does not have"),
        (format!("{MANIFEST}---\na: b\n"), "more than one document"),
    ];
    for (manifest, reason) in cases {
        let error = refused(&manifest);
        assert!(error.contains(reason), "{error}");
    }
}

/// Someone edits an object with stock sops: the seal is gone, and one command brings it back.
#[test]
fn an_object_that_stock_sops_wrote_is_sealed_again() {
    let bench = Bench::new();
    let text = sealed(&bench.identity);
    for sops in Sops::all().unwrap() {
        let arguments = ["set", "FILE", "[\"spec\"][\"stringData\"][\"password\"]", "\"changed\""];
        let written = bench.sops(&sops, &arguments, "object.yaml", &text).unwrap().file;
        let error = open(&written, Format::Yaml, &bench.identity).unwrap_err();
        assert!(error.contains("an object must have one"), "{error}");
        let accept = OpenOptions { accept_removed_seal: true, ..OpenOptions::default() };
        let opened = open_with(&written, Format::Yaml, &bench.identity, accept).unwrap();
        let resealed = reseal(&opened, &write_options()).unwrap().unwrap();
        let secret = open_object(&in_cluster(&resealed), &bench.identity).unwrap();
        assert_eq!(secret.data["password"].expose_secret(), b"changed");
        assert_eq!((secret.scope(), secret.bind.namespace.as_str()), (Scope::Strict, "shop"));
    }
    let stripped: String =
        text.lines().filter(|line| !line.starts_with("    lacre:")).map(|line| format!("{line}\n")).collect();
    assert!(open(&stripped, Format::Yaml, &bench.identity).unwrap_err().contains("seal was removed"));
    let accept = OpenOptions { accept_removed_seal: true, ..OpenOptions::default() };
    let opened = open_with(&stripped, Format::Yaml, &bench.identity, accept).unwrap();
    let resealed = reseal(&opened, &write_options()).unwrap().unwrap();
    assert!(open_object(&in_cluster(&resealed), &bench.identity).is_ok());
}

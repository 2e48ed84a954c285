//! `lacre kube` against a real API server and the real controller of Sealed Secrets 0.40 behind its proxy.

use std::process::Output;
use std::time::Duration;

use serde_json::Value;
use xtask::peers::cluster::{Cluster, SharedCluster};
use xtask::peers::pod::Pod;
use xtask::peers::sealed_secrets;
use xtask::wait;

use crate::sandbox::{self, Sandbox};

const DEADLINE: Duration = Duration::from_secs(60);

/// A controller with one key, and a folder in which the command is called.
struct World {
    cluster: SharedCluster,
    namespace: String,
    sandbox: Sandbox,
    _pod: Pod,
}

impl World {
    fn new() -> Self {
        let cluster = Cluster::shared().unwrap();
        cluster.admin().install(&sealed_secrets::definition().unwrap()).unwrap();
        let namespace = cluster.namespace("kube").unwrap();
        cluster.service_account(&namespace, "controller").unwrap();
        let subject = format!("--serviceaccount={namespace}:controller");
        let binding =
            ["create", "rolebinding", "all", "--clusterrole=cluster-admin", &subject, "-n", &namespace];
        cluster.admin().run(binding).unwrap();
        let program = sealed_secrets::CONTROLLER.path().unwrap();
        let arguments =
            ["--all-namespaces=false", "--key-size=2048", "--rate-limit=100", "--rate-limit-burst=100"];
        let container = sealed_secrets::controller(&program, &arguments);
        let pod = Pod::start(&cluster, &namespace, "controller", &container).unwrap();
        pod.publish(&cluster, "sealed-secrets-controller").unwrap();
        let world = Self { cluster, namespace, sandbox: Sandbox::new(), _pod: pod };
        wait::until(DEADLINE, "the first certificate", || {
            Ok(world.kube(&["cert", "-o", "cert.pem"]).status.success().then_some(()))
        })
        .unwrap();
        world
    }

    fn kube(&self, words: &[&str]) -> Output {
        let mut command = self.sandbox.command(sandbox::lacre());
        command.env("KUBECONFIG", self.cluster.admin_kubeconfig());
        command.env("SEALED_SECRETS_CONTROLLER_NAMESPACE", &self.namespace);
        command.arg("kube").args(words).output().unwrap()
    }

    fn kube_ok(&self, words: &[&str]) -> String {
        let output = self.kube(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{words:?}: {said}");
        String::from_utf8(output.stdout).unwrap() + &said
    }

    fn kube_fails(&self, words: &[&str]) -> String {
        let output = self.kube(words);
        assert!(!output.status.success(), "{words:?} did not fail");
        String::from_utf8(output.stderr).unwrap()
    }

    fn status(&self) -> Value {
        let output = self.kube(&["keys", "status", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The manifest of a Secret, sealed for the cluster, with a comment that must outlive everything.
    fn sealed(&self) -> String {
        let secret = "{apiVersion: v1, kind: Secret, metadata: {name: db, namespace: NAMESPACE}, stringData: {password: hunter2, user: app}}";
        self.sandbox.write("secret.yaml", &secret.replace("NAMESPACE", &self.namespace));
        let sealed = self.kube_ok(&["seal", "--sealed-secret", "secret.yaml"]);
        let sealed = sealed.replace("  encryptedData:", "  encryptedData:  # who: ops");
        self.sandbox.write("apps/db.yaml", &sealed);
        sealed
    }
}

/// Everything of a text but the ends of long lines.
fn skeleton(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split(": A").next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn items_are_sealed_validated_and_sealed_again_through_the_cluster() {
    let world = World::new();
    let before = world.sealed();
    assert!(world.kube_ok(&["validate", "apps"]).contains("opens, strict"));
    world.kube_ok(&["reseal", "apps"]);
    let after = world.sandbox.read("apps/db.yaml");
    assert_ne!(before, after);
    assert_eq!(skeleton(&before), skeleton(&after));
    assert!(after.contains("  encryptedData:  # who: ops\n"));
    world.kube_ok(&["validate", "apps"]);

    world.sandbox.write("apps/db.yaml", &after.replace("name: db", "name: other"));
    let said = world.kube_fails(&["validate", "apps"]);
    assert!(said.contains("the controller cannot open it"), "{said}");
    let moved = world.sandbox.read("apps/db.yaml");
    world.kube_fails(&["reseal", "apps"]);
    assert_eq!(world.sandbox.read("apps/db.yaml"), moved, "a file that failed was touched");
}

#[test]
fn keys_go_into_a_sealed_backup_and_come_back() {
    let world = World::new();
    world.sealed();
    assert_eq!(world.status()["keys"][0]["backedUpAt"], Value::Null);
    assert!(world.kube_ok(&["keys", "status"]).contains("are in no backup"));

    let ops = sandbox::recipient("ops");
    world.kube_ok(&["keys", "backup", "--age", &ops, "-o", "keys.yaml"]);
    let backup = world.sandbox.read("keys.yaml");
    assert!(backup.contains("tls.key: ENC[AES256_GCM,") && !backup.contains("PRIVATE"), "{backup}");
    let status = world.status();
    let name = status["keys"][0]["name"].as_str().unwrap().to_owned();
    assert!(status["keys"][0]["backedUpAt"].is_string(), "{status}");
    assert!(world.kube_ok(&["keys", "restore", "keys.yaml"]).contains("already there"));

    let admin = world.cluster.admin();
    admin.run(["delete", "secret", &name, "-n", &world.namespace]).unwrap();
    assert!(world.kube_ok(&["keys", "restore", "keys.yaml"]).contains("restored"));
    let restored = admin.get_json(["get", "secret", &name, "-n", &world.namespace]).unwrap();
    assert_eq!(restored["type"], "kubernetes.io/tls");
    assert_eq!(restored["metadata"]["labels"]["sealedsecrets.bitnami.com/sealed-secrets-key"], "active");

    // The sealed backup opens what was sealed for the cluster, without the cluster.
    let opened = world.kube_ok(&["unseal", "--key", "keys.yaml", "apps/db.yaml"]);
    assert!(opened.contains("password: aHVudGVyMg=="), "{opened}");

    let stranger = sandbox::recipient("stranger");
    world.kube_ok(&["keys", "backup", "--age", &stranger, "-o", "theirs.yaml"]);
    let theirs = world.sandbox.read("theirs.yaml").replace(&format!("name: {name}"), "name: gone");
    world.sandbox.write("gone.yaml", &theirs);
    let said = world.kube_fails(&["keys", "backup", "--age", &ops, "-o", "gone.yaml"]);
    assert!(said.contains("holds gone, which this cluster does not have"), "{said}");
    assert_eq!(world.sandbox.read("gone.yaml"), theirs);
    world.kube_ok(&["keys", "backup", "--replace", "--age", &ops, "-o", "gone.yaml"]);
    assert!(world.kube_fails(&["keys", "restore", "theirs.yaml"]).contains("hint:"));
}

#[test]
fn another_key_of_the_same_name_is_never_overwritten() {
    let world = World::new();
    let ops = sandbox::recipient("ops");
    world.kube_ok(&["keys", "backup", "--no-mark", "--age", &ops, "-o", "keys.yaml"]);
    let name = world.status()["keys"][0]["name"].as_str().unwrap().to_owned();
    let admin = world.cluster.admin();
    admin
        .run(["patch", "secret", &name, "-n", &world.namespace, "-p", r#"{"data":{"tls.key":"QQ=="}}"#])
        .unwrap();
    let said = world.kube_fails(&["keys", "restore", "keys.yaml"]);
    assert!(said.contains("another Secret of its name is there"), "{said}");
    let there = admin.get_json(["get", "secret", &name, "-n", &world.namespace]).unwrap();
    assert_eq!(there["data"]["tls.key"], "QQ==");
}

#[test]
fn a_pinned_certificate_of_another_cluster_is_not_replaced_without_a_word() {
    let world = World::new();
    assert!(world.kube_ok(&["cert", "-o", "cert.pem"]).contains("unchanged"));
    let other = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/keys/sealing.crt");
    let other = std::fs::read_to_string(other).unwrap();
    world.sandbox.write("cert.pem", &other);
    let said = world.kube_fails(&["cert", "-o", "cert.pem"]);
    assert!(said.contains("does not publish any more") && said.contains("--accept-new"), "{said}");
    assert_eq!(world.sandbox.read("cert.pem"), other);
    world.kube_ok(&["cert", "-o", "cert.pem", "--accept-new"]);
    assert_ne!(world.sandbox.read("cert.pem"), other);
}

//! `--fetch-cert`, `--validate` and `--re-encrypt` against a real API server, with the real controller behind its
//! proxy: as the real kubeseal does it, and reached in every way that flags and kubeconfigs know.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use xtask::peers::cluster::{Cluster, SharedCluster};
use xtask::peers::pod::Pod;
use xtask::peers::sealed_secrets;
use xtask::process::{Finished, Tool};
use xtask::wait;

use super::both;
use crate::sandbox::Sandbox;

const DEADLINE: Duration = Duration::from_secs(60);

struct World {
    cluster: SharedCluster,
    namespace: String,
    sandbox: Sandbox,
    pod: Pod,
}

impl World {
    fn new() -> Self {
        let cluster = Cluster::shared().unwrap();
        cluster.admin().install(&sealed_secrets::definition().unwrap()).unwrap();
        let namespace = cluster.namespace("kubeseal").unwrap();
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
        let world = Self { cluster, namespace, sandbox: Sandbox::new(), pod };
        wait::until(DEADLINE, "the first certificate", || {
            Ok((world.run(1, &["--fetch-cert"], "").code == Some(0)).then_some(()))
        })
        .unwrap();
        world
    }

    /// Their kubeseal for 0, ours for 1, without a word about where the cluster is.
    fn tool(&self, side: usize) -> Tool {
        let path = &both(&self.sandbox)[side];
        Tool::new(path).dir(self.sandbox.work()).env("SEALED_SECRETS_CONTROLLER_NAMESPACE", &self.namespace)
    }

    fn run(&self, side: usize, words: &[&str], stdin: &str) -> Finished {
        let tool = self.tool(side).env("KUBECONFIG", self.cluster.admin_kubeconfig());
        tool.args(words).stdin(stdin).run().unwrap()
    }

    fn ok(&self, side: usize, words: &[&str], stdin: &str) -> String {
        String::from_utf8(self.run(side, words, stdin).success().unwrap()).unwrap()
    }

    fn secret(&self) -> String {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\n  namespace: {}\n  labels: {{tier: back}}\nstringData: {{password: hunter2, user: app}}\n",
            self.namespace
        )
    }
}

#[test]
fn the_cluster_is_asked_as_kubeseal_asks_it() {
    let world = World::new();
    assert_eq!(world.ok(0, &["--fetch-cert"], ""), world.ok(1, &["--fetch-cert"], ""));
    for (sealing, asking) in [(0, 1), (1, 0)] {
        let sealed = world.ok(sealing, &["-o", "yaml"], &world.secret());
        assert_eq!(world.ok(asking, &["--validate"], &sealed), "");
        let moved = sealed.replace("name: db", "name: other");
        for side in [0, 1] {
            let done = world.run(side, &["--validate"], &moved);
            assert_eq!((done.code, done.stdout_text().as_str()), (Some(1), ""));
            let said = done.stderr_text();
            assert!(said.starts_with("error: unable to decrypt sealed secret: other\n"), "{said}");
        }
        let rotated = world.ok(asking, &["--re-encrypt"], &sealed);
        assert!(rotated.starts_with("{\n  \"kind\": \"SealedSecret\","), "{rotated}");
        assert_eq!(world.ok(sealing, &["--validate"], &rotated), "");
    }
    for side in [0, 1] {
        let done = world.run(side, &["--fetch-cert", "--controller-name", "nobody"], "");
        let said = done.stderr_text();
        assert!(
            said.starts_with("error: cannot get sealed secret service: services \"nobody\" not found"),
            "{said}"
        );
    }
    // Without the API server, by an address of the certificate alone.
    let address = format!("http://127.0.0.1:{}/v1/cert.pem", world.pod.port());
    assert_eq!(world.ok(1, &["--fetch-cert", "--cert", &address], ""), world.ok(0, &["--fetch-cert"], ""));
    let nowhere = address.replace("cert.pem", "nothing");
    for side in [0, 1] {
        let done = world.run(side, &["--fetch-cert", "--cert", &nowhere], "");
        let said = done.stderr_text();
        assert!(said.starts_with(&format!("error: cannot fetch \"{nowhere}\": 404 Not Found")), "{said}");
    }
    // Nothing to validate is nothing validated: theirs is content with it.
    assert_eq!(world.run(0, &["--validate"], "").code, Some(0));
    assert_eq!(world.run(1, &["--validate"], "").code, Some(1));
}

#[test]
fn sealing_again_changes_items_and_nothing_else() {
    let world = World::new();
    let sealed = world.ok(0, &["-o", "yaml"], &world.secret());
    let manifest = sealed
        .replace("  template:", "  template: # who: ops\n    data: {url: 'db://{{ .user }}'}")
        .replace("metadata:\n  name", "metadata:\n  annotations: {wave: \"5\"}\n  name");
    world.sandbox.write("db.yaml", &manifest);
    world.ok(1, &["--re-encrypt", "-f", "db.yaml"], "");
    let after = world.sandbox.read("db.yaml");
    let skeleton = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split(": A").next().unwrap().to_owned()).collect()
    };
    assert_ne!(manifest, after);
    assert_eq!(skeleton(&manifest), skeleton(&after));
    assert_eq!(world.ok(1, &["--validate", "-f", "db.yaml", "-w", "db.yaml"], ""), "");
    assert_eq!(world.sandbox.read("db.yaml"), after, "--validate wrote to the file");
    // Printed, it has everything too.
    let printed = world.ok(1, &["--re-encrypt", "-o", "yaml"], &after);
    for kept in ["url: db://{{ .user }}", "wave: \"5\"", "tier: back"] {
        assert!(printed.contains(kept), "{kept} is gone:\n{printed}");
    }
    // What the controller cannot open is left as it is.
    let moved = after.replace("  name: db", "  name: other");
    world.sandbox.write("db.yaml", &moved);
    assert_eq!(world.run(1, &["--re-encrypt", "-f", "db.yaml"], "").code, Some(1));
    assert_eq!(world.sandbox.read("db.yaml"), moved);
}

#[test]
fn the_cluster_is_reached_by_flags_alone() {
    let world = World::new();
    world.cluster.service_account(&world.namespace, "person").unwrap();
    let subject = format!("--serviceaccount={}:person", world.namespace);
    let binding = ["create", "rolebinding", "person", "--clusterrole=cluster-admin", &subject];
    world.cluster.admin().run(binding.iter().chain(&["-n", &world.namespace])).unwrap();
    let token = world.cluster.sign_in(&world.namespace, "person").unwrap().token;
    let authority = world.cluster.authority().display().to_string();
    let server = world.cluster.server();
    let way = |words: &[&str]| {
        let tool = world.tool(1).args(["--fetch-cert", "--server", server]).args(words);
        tool.run().unwrap()
    };
    let expected = world.ok(0, &["--fetch-cert"], "");
    let ca = ["--certificate-authority", &authority];
    let done = way(&[&ca[..], &["--token", &token]].concat());
    assert_eq!((done.code, done.stdout_text()), (Some(0), expected.clone()), "{}", done.stderr_text());
    let done = way(&["--insecure-skip-tls-verify", "--token", &token, "--request-timeout", "30s"]);
    assert_eq!((done.code, done.stdout_text()), (Some(0), expected.clone()), "{}", done.stderr_text());
    for (words, says) in [
        (vec!["--token", &token], "certificate"),
        ([&ca[..], &["--token", "CANARY"]].concat(), "Unauthorized"),
        ([&ca[..], &["--token", &token, "--tls-server-name", "other.example.org"]].concat(), "certificate"),
        ([&ca[..], &["--token", &token, "--proxy-url", "http://127.0.0.1:1"]].concat(), "not reached"),
    ] {
        let done = way(&words);
        let said = done.stderr_text();
        assert_eq!(done.code, Some(1), "{words:?}");
        assert!(
            said.contains(says) && said.contains("hint: ") && !said.contains("CANARY"),
            "{words:?}: {said}"
        );
    }
    let done = world.run(1, &["--fetch-cert", "--as", "nobody"], "");
    assert!(done.stderr_text().contains("User \"nobody\" cannot get resource"), "{}", done.stderr_text());
}

/// A kubeconfig whose user is whoever a program says.
#[test]
fn a_program_logs_in() {
    let world = World::new();
    world.cluster.service_account(&world.namespace, "person").unwrap();
    let subject = format!("--serviceaccount={}:person", world.namespace);
    let binding = ["create", "rolebinding", "person", "--clusterrole=cluster-admin", &subject];
    world.cluster.admin().run(binding.iter().chain(&["-n", &world.namespace])).unwrap();
    let token = world.cluster.sign_in(&world.namespace, "person").unwrap().token;
    let credential = format!(
        r#"{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{"token":"{token}"}}}}"#
    );
    world.sandbox.write("login", &format!("#!/bin/sh\ncat <<'END'\n{credential}\nEND\n"));
    let login = world.sandbox.work().join("login");
    fs::set_permissions(&login, fs::Permissions::from_mode(0o755)).unwrap();
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
         contexts:\n- {{name: a, context: {{cluster: c, user: u, namespace: {}}}}}\n\
         clusters:\n- {{name: c, cluster: {{server: '{}', certificate-authority: {}}}}}\n\
         users:\n- name: u\n  user:\n    exec: {{apiVersion: client.authentication.k8s.io/v1, command: ./login, interactiveMode: Never}}\n",
        world.namespace,
        world.cluster.server(),
        world.cluster.authority().display(),
    );
    world.sandbox.write("kubeconfig", &kubeconfig);
    let expected = world.ok(0, &["--fetch-cert"], "");
    let done = world.tool(1).args(["--fetch-cert", "--kubeconfig", "kubeconfig"]).run().unwrap();
    assert_eq!((done.code, done.stdout_text()), (Some(0), expected), "{}", done.stderr_text());
    // Its namespace is that of whatever names none.
    let bare = "{kind: Secret, metadata: {name: db}, stringData: {a: b}}\n";
    let tool = world.tool(1).args(["-o", "yaml"]).env("KUBECONFIG", world.sandbox.work().join("kubeconfig"));
    let sealed = tool.stdin(bare).run().unwrap().success().unwrap();
    let sealed = String::from_utf8(sealed).unwrap();
    assert!(sealed.contains(&format!("\n  namespace: {}\n", world.namespace)), "{sealed}");
}

/// Their tests ask for a controller of all namespaces in `kube-system`: in a cluster of their own.
#[test]
fn their_own_tests_pass_with_our_kubeseal() {
    let (cluster, sandbox) = (Cluster::start().unwrap(), Sandbox::new());
    cluster.admin().install(&sealed_secrets::definition().unwrap()).unwrap();
    cluster.service_account("kube-system", "controller").unwrap();
    let binding = ["create", "clusterrolebinding", "all", "--clusterrole=cluster-admin"];
    cluster.admin().run(binding.iter().chain(&["--serviceaccount=kube-system:controller"])).unwrap();
    let program = sealed_secrets::CONTROLLER.path().unwrap();
    let container = sealed_secrets::controller(&program, &["--key-size=2048"]);
    let pod = Pod::start(&cluster, "kube-system", "controller", &container).unwrap();
    pod.publish(&cluster, "sealed-secrets-controller").unwrap();
    let passed = sealed_secrets::suite(&cluster, "kube-system", &both(&sandbox)[1], &program).unwrap();
    passed.success().unwrap();
}

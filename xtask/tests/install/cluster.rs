//! The chart and the kustomizations on a real API server. Each test has a cluster of its own: definitions are the
//! cluster's, and those of the shared one are in use.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use xtask::peers::cluster::Cluster;
use xtask::peers::helm::Helm;
use xtask::peers::kubectl::Kubectl;
use xtask::peers::sealed_secrets;
use xtask::process::{Finished, Tool};
use xtask::{root, wait};

use crate::support::{chart, documents, find};

/// Whoever owns a definition, as Helm sees it.
const RELEASE: &str = "meta.helm.sh/release-name";
const SEALED_SECRETS: &str = "sealedsecrets.bitnami.com";
const ENCRYPTED_SECRETS: &str = "encryptedsecrets.lacre.dev";

/// A control plane keeps two processors busy: one at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A cluster, and helm on it.
struct Stage {
    // Stopped before the next one starts.
    cluster: Cluster,
    helm: Helm,
    _turn: MutexGuard<'static, ()>,
}

impl Stage {
    fn new() -> Result<Self> {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Self { cluster: Cluster::start()?, helm: Helm::new()?, _turn: turn })
    }

    fn kubectl(&self) -> &Kubectl {
        self.cluster.admin()
    }

    /// A namespace that takes restricted pods only.
    fn restricted(&self) -> Result<String> {
        let namespace = self.cluster.namespace("wax")?;
        let label = "pod-security.kubernetes.io/enforce=restricted";
        self.kubectl().run(["label", "namespace", &namespace, label])?;
        Ok(namespace)
    }

    fn helm(&self, arguments: &[&str], namespace: &str) -> Result<Tool> {
        let tool = self.helm.on(&self.cluster.admin_kubeconfig())?;
        Ok(tool.args(arguments).args(["--namespace", namespace]))
    }

    /// `helm install` or `upgrade` of our chart; gives what it says.
    fn ours(&self, verb: &str, namespace: &str, more: &[&str]) -> Result<String> {
        let finished = self.helm(&[verb, "wax"], namespace)?.arg(chart()).args(more).run()?;
        Ok(String::from_utf8(finished.success()?)?)
    }

    fn definition(&self, name: &str) -> Result<Value> {
        self.kubectl().get_json(["get", "customresourcedefinition", name])
    }

    /// The pod of a Deployment, made as one, since nothing here runs Deployments.
    fn make_pod(&self, deployment: &Value, change: impl FnOnce(&mut Value)) -> Result<Finished> {
        let mut pod = deployment["spec"]["template"].clone();
        pod["apiVersion"] = json!("v1");
        pod["kind"] = json!("Pod");
        pod["metadata"]["name"] = json!("try");
        pod["metadata"]["namespace"] = deployment["metadata"]["namespace"].clone();
        change(&mut pod);
        self.kubectl().tool().args(["create", "-f", "-"]).stdin(pod.to_string()).run()
    }

    /// Its pod is one that restricted namespaces take, and they would not take any.
    fn pod_is_restricted(&self, deployment: &Value) -> Result<()> {
        let loosened = self.make_pod(deployment, |pod| {
            pod["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = json!(true);
        })?;
        let told = String::from_utf8(loosened.stderr)?;
        ensure!(told.contains("violates PodSecurity \"restricted"), "{told}");
        self.make_pod(deployment, |_| ())?.success().map(drop)
    }
}

#[test]
fn the_chart_is_installed_where_pods_are_restricted_and_leaves_its_definitions() -> Result<()> {
    let stage = Stage::new()?;
    let namespace = stage.restricted()?;
    let more = [
        "--set",
        "networkPolicy.enabled=true,networkPolicy.egress.enabled=true,pdb.create=true,ingress.enabled=true,requireToken=true",
    ];
    let told = stage.ours("install", &namespace, &more)?;
    ensure!(told.contains("sealed-secrets-controller") && !told.contains("Left as they are"), "{told}");
    let get = |kind: &str| {
        stage.kubectl().get_json(["get", kind, "sealed-secrets-controller", "--namespace", &namespace])
    };
    stage.pod_is_restricted(&get("deployment")?)?;
    // Where the cluster is asked, the policy names where its API server is.
    let slice = stage.kubectl().get_json(["get", "endpointslice", "kubernetes", "--namespace", "default"])?;
    let address = slice["endpoints"][0]["addresses"][0].as_str().context("no address")?;
    let policy = get("networkpolicy")?;
    assert_eq!(policy["spec"]["egress"][1]["to"], json!([{"ipBlock": {"cidr": format!("{address}/32")}}]));
    let ports = policy["spec"]["egress"][1]["ports"].to_string();
    ensure!(ports.contains(&format!(r#""port":{}"#, slice["ports"][0]["port"])), "{ports}");

    // Nothing changes without a change, and the definitions stay the release's.
    stage.ours("upgrade", &namespace, &more)?;
    assert_eq!(stage.definition(SEALED_SECRETS)?["metadata"]["annotations"][RELEASE], "wax");
    stage.helm(&["uninstall", "wax"], &namespace)?.run()?.success()?;
    ensure!(get("deployment").is_err());
    stage.definition(SEALED_SECRETS)?;
    stage.definition(ENCRYPTED_SECRETS)?;
    // And a later release of the same name has them again.
    stage.ours("install", &namespace, &[])?;
    Ok(())
}

#[test]
fn secrets_outlive_sealed_objects_that_are_deleted_as_the_guide_says() -> Result<()> {
    let stage = Stage::new()?;
    let namespace = stage.cluster.namespace("shop")?;
    stage.kubectl().apply(&sealed_secrets::definition()?)?;
    stage.kubectl().run([
        "wait",
        "--for=condition=Established",
        &format!("crd/{SEALED_SECRETS}"),
        "--timeout=30s",
    ])?;
    let sealed = |name: &str| {
        json!({
            "apiVersion": "bitnami.com/v1alpha1",
            "kind": "SealedSecret",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"encryptedData": {}},
        })
    };
    for name in ["kept", "lost"] {
        stage.kubectl().apply(&sealed(name).to_string())?;
        let object = stage.kubectl().get_json(["get", SEALED_SECRETS, name, "--namespace", &namespace])?;
        let owner = json!({
            "apiVersion": "bitnami.com/v1alpha1",
            "kind": "SealedSecret",
            "name": name,
            "uid": object["metadata"]["uid"],
            "controller": true,
        });
        let metadata = json!({"name": name, "namespace": namespace, "ownerReferences": [owner]});
        stage
            .kubectl()
            .apply(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}).to_string())?;
    }
    let get = |name: &str| stage.kubectl().get_json(["get", "secret", name, "--namespace", &namespace]);
    stage.kubectl().run(["delete", SEALED_SECRETS, "kept", "--namespace", &namespace, "--cascade=orphan"])?;
    // Without it, the garbage collector that runs here takes the Secret.
    stage.kubectl().run(["delete", SEALED_SECRETS, "lost", "--namespace", &namespace])?;
    wait::until(Duration::from_secs(60), "the end of the other Secret", || {
        Ok(get("lost").is_err().then_some(()))
    })?;
    stage.kubectl().run(["delete", "customresourcedefinition", SEALED_SECRETS])?;
    assert_eq!(get("kept")?["metadata"]["ownerReferences"], Value::Null);
    Ok(())
}

#[test]
fn definitions_of_nobody_are_left_until_they_are_taken_over() -> Result<()> {
    let stage = Stage::new()?;
    let namespace = stage.cluster.namespace("wax")?;
    stage.kubectl().apply(&sealed_secrets::definition()?)?;
    let before = stage.definition(SEALED_SECRETS)?;

    let told = stage.ours("install", &namespace, &[])?;
    ensure!(
        told.contains("Left as they are, since they are not this release's: sealedsecrets.bitnami.com."),
        "{told}"
    );
    assert_eq!(
        stage.definition(SEALED_SECRETS)?["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );
    assert_eq!(stage.definition(ENCRYPTED_SECRETS)?["metadata"]["annotations"][RELEASE], "wax");

    let told = stage.ours("upgrade", &namespace, &["--set", "crds.adopt=true", "--take-ownership"])?;
    ensure!(!told.contains("Left as they are"), "{told}");
    let adopted = stage.definition(SEALED_SECRETS)?;
    assert_eq!(adopted["metadata"]["annotations"][RELEASE], "wax");
    assert_eq!(adopted["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
    assert_eq!(adopted["metadata"]["uid"], before["metadata"]["uid"]);
    let column = &adopted["spec"]["versions"][0]["additionalPrinterColumns"][0]["jsonPath"];
    ensure!(column.to_string().contains("Synced"), "{column}");

    // Once it is the release's, no flag is needed, and another release leaves it alone.
    stage.ours("upgrade", &namespace, &[])?;
    let other = stage.cluster.namespace("other")?;
    let told = stage.ours("install", &other, &["--set", "rbac.create=false"])?;
    ensure!(told.contains("sealedsecrets.bitnami.com, encryptedsecrets.lacre.dev"), "{told}");
    Ok(())
}

#[test]
fn a_release_of_the_other_chart_is_upgraded_in_place() -> Result<()> {
    let stage = Stage::new()?;
    let namespace = stage.restricted()?;
    let theirs = their_chart()?;
    let values = "fullnameOverride=sealed-secrets-controller,keyrenewperiod=240h,kubeVersion=v1.37.2";
    let install = stage.helm(&["install", "wax"], &namespace)?.arg(theirs.path()).args(["--set", values]);
    install.run()?.success()?;
    let get = |kind: &str| {
        stage.kubectl().get_json(["get", kind, "sealed-secrets-controller", "--namespace", &namespace])
    };
    let (deployment, service) = (get("deployment")?, get("service")?);

    stage.ours("upgrade", &namespace, &["--reset-then-reuse-values"])?;
    let upgraded = get("deployment")?;
    assert_eq!(upgraded["metadata"]["uid"], deployment["metadata"]["uid"]);
    assert_eq!(upgraded["spec"]["selector"], deployment["spec"]["selector"]);
    assert_eq!(get("service")?["spec"], service["spec"]);
    let arguments = upgraded["spec"]["template"]["spec"]["containers"][0]["args"].to_string();
    ensure!(
        arguments.contains("--key-renew-period=240h") && arguments.contains("--leader-elect"),
        "{arguments}"
    );
    stage.pod_is_restricted(&upgraded)
}

/// The chart of Sealed Secrets, for a cluster that does not know its own version, as one built from source.
fn their_chart() -> Result<TempDir> {
    let (folder, from) = (tempfile::tempdir()?, sealed_secrets::sources()?.join("helm/sealed-secrets"));
    Tool::new("cp")
        .args(["--recursive", "--no-preserve=mode"])
        .arg(from.join("."))
        .arg(folder.path())
        .run()?
        .success()?;
    let about = folder.path().join("Chart.yaml");
    let text = fs::read_to_string(&about)?;
    let text: Vec<_> = text.lines().filter(|line| !line.starts_with("kubeVersion:")).collect();
    fs::write(about, text.join("\n"))?;
    Ok(folder)
}

#[test]
fn kustomizations_are_taken_where_pods_are_restricted() -> Result<()> {
    let stage = Stage::new()?;
    stage.kubectl().run(["create", "namespace", "shop"])?;
    for (folder, name, namespace) in [
        // First, before there is anything that gives more.
        ("per-namespace", "lacre-controller", "lacre-system"),
        ("cluster-wide", "lacre-controller", "lacre-system"),
        ("in-place-of-sealed-secrets", "sealed-secrets-controller", "kube-system"),
    ] {
        let text = kustomize(stage.kubectl(), &root().join("controller/deploy").join(folder))?;
        let objects = documents(&text)?;
        stage.kubectl().apply_server_side(&text, "tester").context(folder)?;
        let label = "pod-security.kubernetes.io/enforce=restricted";
        stage.kubectl().run(["label", "--overwrite", "namespace", namespace, label])?;
        let deployment = find(&objects, "Deployment", name)?;
        assert_eq!(deployment["metadata"]["namespace"], namespace);
        stage.pod_is_restricted(deployment)?;
        stage.kubectl().run(["delete", "pod", "try", "--namespace", namespace, "--now"])?;
        may_what_it_needs(&stage, deployment, folder != "per-namespace")?;
    }
    Ok(())
}

fn kustomize(kubectl: &Kubectl, folder: &Path) -> Result<String> {
    let tool = kubectl.tool().arg("kustomize").arg(folder);
    Ok(String::from_utf8(tool.run()?.success()?)?)
}

/// The Deployment's service account may work in its namespaces and in no other.
fn may_what_it_needs(stage: &Stage, deployment: &Value, everywhere: bool) -> Result<()> {
    let namespace = deployment["metadata"]["namespace"].as_str().context("no namespace")?;
    let account =
        deployment["spec"]["template"]["spec"]["serviceAccountName"].as_str().context("no account")?;
    let user = format!("--as=system:serviceaccount:{namespace}:{account}");
    let may = |verb: &str, resource: &str, namespace: &str| -> Result<bool> {
        let (resource, part) =
            resource.split_once(" of ").map_or((resource, ""), |(part, whole)| (whole, part));
        let part = format!("--subresource={part}");
        let arguments = ["auth", "can-i", verb, resource, "--namespace", namespace, &user, &part];
        Ok(stage.kubectl().try_run(arguments)?.code == Some(0))
    };
    for (verb, resource) in [
        ("watch", "sealedsecrets.bitnami.com"),
        ("update", "status of sealedsecrets.bitnami.com"),
        ("watch", "encryptedsecrets.lacre.dev"),
        ("patch", "status of encryptedsecrets.lacre.dev"),
        ("update", "secrets"),
        ("create", "events"),
    ] {
        ensure!(may(verb, resource, "shop")? && may(verb, resource, namespace)?, "{verb} {resource}");
        if !everywhere {
            ensure!(!may(verb, resource, "default")?, "{verb} {resource} in default");
        }
    }
    ensure!(may("update", "leases/lacre-controller", namespace)?);
    for (verb, resource) in [
        ("delete", "sealedsecrets.bitnami.com"),
        ("update", "configmaps/other"),
        ("create", "pods"),
        ("create", "tokenreviews.authentication.k8s.io"),
        ("impersonate", "serviceaccounts"),
        ("update", "leases/other"),
    ] {
        ensure!(!may(verb, resource, namespace)?, "{verb} {resource}");
    }
    Ok(())
}

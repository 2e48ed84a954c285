//! The chart as helm renders it, without a cluster.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use xtask::commands::build::{self, Profile};
use xtask::commands::generate::chart::entries;
use xtask::peers::sealed_secrets;
use xtask::root;

use crate::support::{arguments, chart, documents, find, render, same, template};

/// A file of `values/`: what helm must say to it, line by line in its leading comment.
#[test]
fn values_render_to_what_their_files_say() -> Result<()> {
    let folder = root().join("xtask/tests/install/values");
    let mut count = 0;
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        let text = fs::read_to_string(&path)?;
        judge(&text).with_context(|| path.display().to_string())?;
        count += 1;
    }
    ensure!(count >= 30, "only {count} files of values");
    Ok(())
}

fn judge(values: &str) -> Result<()> {
    let finished = template(values)?;
    let told = String::from_utf8(finished.stderr.clone())?;
    let expected = |word: &str| -> Vec<&str> {
        values
            .lines()
            .filter_map(|line| line.strip_prefix("# ")?.strip_prefix(word)?.strip_prefix(": "))
            .collect()
    };
    let fails = expected("fails");
    for problem in &fails {
        ensure!(finished.code == Some(1) && told.contains(problem), "{:?}: {told}", finished.code);
    }
    if !fails.is_empty() {
        return Ok(());
    }
    let text = String::from_utf8(finished.success()?)?;
    let objects = documents(&text)?;
    let names: BTreeSet<_> = objects
        .iter()
        .map(|object| {
            format!("{} {} {}", object["kind"], object["metadata"]["namespace"], object["metadata"]["name"])
        })
        .collect();
    ensure!(names.len() == objects.len(), "an object is there twice: {names:?}");
    let lines: BTreeSet<_> = text.lines().map(|line| line.trim().trim_start_matches("- ")).collect();
    let (holds, lacks) = (expected("holds"), expected("lacks"));
    ensure!(!holds.is_empty() || !lacks.is_empty(), "the file says nothing about what comes out");
    for line in holds {
        ensure!(lines.contains(line), "no line `{line}` in\n{text}");
    }
    for line in lacks {
        ensure!(!text.contains(line), "`{line}` is in\n{text}");
    }
    Ok(())
}

#[test]
fn defaults_make_these_objects_and_no_others() -> Result<()> {
    let objects = render("")?;
    let mut made: Vec<_> = objects
        .iter()
        .map(|object| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
        })
        .collect();
    made.sort();
    assert_eq!(
        made,
        [
            "ClusterRole secrets-unsealer",
            "ClusterRoleBinding sealed-secrets-controller",
            "CustomResourceDefinition encryptedsecrets.lacre.dev",
            "CustomResourceDefinition sealedsecrets.bitnami.com",
            "Deployment sealed-secrets-controller",
            "Role sealed-secrets-controller-key-admin",
            "Role sealed-secrets-controller-public-keys",
            "Role sealed-secrets-controller-service-proxier",
            "RoleBinding sealed-secrets-controller-key-admin",
            "RoleBinding sealed-secrets-controller-public-keys",
            "RoleBinding sealed-secrets-controller-service-proxier",
            "Service sealed-secrets-controller",
            "Service sealed-secrets-controller-metrics",
            "ServiceAccount sealed-secrets-controller",
        ]
    );
    for object in &objects {
        assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/managed-by"], "Helm", "{object}");
    }
    Ok(())
}

#[test]
fn the_definitions_of_the_chart_are_those_of_kustomize() -> Result<()> {
    let objects = render("")?;
    for (file, name) in
        [("sealedsecrets", "sealedsecrets.bitnami.com"), ("encryptedsecrets", "encryptedsecrets.lacre.dev")]
    {
        let definition = find(&objects, "CustomResourceDefinition", name)?;
        let path = root().join(format!("controller/deploy/crd/{file}.yaml"));
        let [shipped] = <[Value; 1]>::try_from(documents(&fs::read_to_string(path)?)?).unwrap();
        ensure!(same(&definition["spec"], &shipped["spec"]), "{name}");
        assert_eq!(definition["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
    }
    Ok(())
}

#[test]
fn the_rights_of_the_chart_are_those_of_kustomize() -> Result<()> {
    let read = |file: &str| documents(&fs::read_to_string(root().join("controller/deploy").join(file))?);
    let (cluster, own) = (read("cluster-wide/rbac.yaml")?, read("base/rbac.yaml")?);
    let objects = render("")?;
    let rules = |objects: &[Value], kind: &str, name: &str| {
        Ok::<_, anyhow::Error>(find(objects, kind, name)?["rules"].clone())
    };
    let wide = rules(&cluster, "ClusterRole", "lacre-controller")?;
    assert_eq!(rules(&objects, "ClusterRole", "secrets-unsealer")?, wide);
    for (theirs, ours) in [
        ("lacre-controller", "sealed-secrets-controller-key-admin"),
        ("lacre-public-keys", "sealed-secrets-controller-public-keys"),
        ("sealed-secrets-controller-service-proxier", "sealed-secrets-controller-service-proxier"),
    ] {
        assert_eq!(rules(&objects, "Role", ours)?, rules(&own, "Role", theirs)?, "{ours}");
    }
    let namespaced = render("{rbac: {namespacedRoles: true}, additionalNamespaces: [shop]}")?;
    let roles: Vec<_> = namespaced
        .iter()
        .filter(|object| object["kind"] == "Role" && object["metadata"]["name"] == "secrets-unsealer")
        .collect();
    let namespaces: Vec<_> = roles.iter().map(|role| &role["metadata"]["namespace"]).collect();
    assert_eq!(namespaces, ["kube-system", "shop"]);
    assert!(roles.iter().all(|role| role["rules"] == wide));
    assert!(namespaced.iter().all(|object| !object["kind"].to_string().contains("ClusterRole")));
    Ok(())
}

#[test]
fn every_value_of_the_other_chart_is_a_value_here() -> Result<()> {
    let list = fs::read_to_string(root().join("testdata/charts/sealed-secrets-values.txt"))?;
    let listed: BTreeSet<_> = list.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
    let theirs = fs::read_to_string(sealed_secrets::sources()?.join("helm/sealed-secrets/values.yaml"))?;
    let mut names = BTreeSet::new();
    leaves(&yaml_serde::from_str(&theirs)?, "", &mut names);
    assert_eq!(listed, names);

    let values = entries(&fs::read_to_string(chart().join("values.yaml"))?)?;
    let known: BTreeSet<_> =
        values.iter().filter(|entry| entry.kind.is_some()).map(|entry| entry.path.join(".")).collect();
    for name in listed {
        let inside = |value: &String| name.starts_with(&format!("{value}."));
        assert!(known.contains(&name) || known.iter().any(inside), "{name}");
    }
    // Its own defaults are legal here, too.
    assert_eq!(arguments(&render(&theirs)?)?.first().map(String::as_str), Some("--leader-elect"));
    Ok(())
}

fn leaves(value: &Value, path: &str, names: &mut BTreeSet<String>) {
    match value.as_object().filter(|members| !members.is_empty()) {
        None => drop(names.insert(path.to_owned())),
        Some(members) => {
            for (name, member) in members {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                leaves(member, &path, names);
            }
        }
    }
}

/// Values that make the chart pass every flag it knows.
const EVERYTHING: &str = r#"
keyrenewperiod: "0"
keyttl: 8760h
keycutofftime: "Mon, 14 Oct 2024 21:45:30 +0200"
keySize: 2048
keyOrderPriority: SecretCreationTimestamp
myCN: sealing
bringYourOwnKeys: true
rateLimit: 5
rateLimitBurst: "5"
additionalNamespaces: [shop, billing]
privateKeyAnnotations: {note: any text}
privateKeyLabels: {team: ops}
logLevel: DEBUG
logFormat: json
maxRetries: 7
kubeClientQPS: -1.5
kubeClientBurst: 20
labelSelector: team=ops
requireToken: true
restrictSealedSecrets: true
proxyAddresses: [10.0.0.1]
clusterName: east
maxScope: namespace
allowOwnNamespace: true
allowTypes: [kubernetes.io/service-account-token]
allowTemplateKeys: [example.com/owner]
enablePgp: true
ambientCloudNamespaces: [shop]
awsKmsEndpoint: https://kms.example.com
concurrency: 16
resync: 30m
retryDelay: 1s
retryDelayMax: 1m
"#;

#[test]
fn the_controller_knows_every_flag_that_the_chart_passes() -> Result<()> {
    let mut passed: BTreeSet<String> = BTreeSet::new();
    for values in ["", EVERYTHING, "{rbac: {namespacedRoles: true}}"] {
        let arguments = arguments(&render(values)?)?;
        passed.extend(
            arguments.iter().map(|argument| argument.split('=').next().unwrap_or_default().to_owned()),
        );
    }
    assert!(passed.len() >= 40, "{passed:?}");
    let programs = build::programs(Profile::Debug)?;
    let controller = build::find(&programs, "lacre-controller")?;
    let help = String::from_utf8(Command::new(controller).arg("--help").output()?.stdout)?;
    let known: BTreeSet<_> = help.split_whitespace().filter(|word| word.starts_with("--")).collect();
    for flag in &passed {
        assert!(known.contains(flag.as_str()), "{flag} is not in --help");
    }
    // And takes them all at once, with these values.
    for values in ["", EVERYTHING] {
        let arguments = arguments(&render(values)?)?;
        let finished = Command::new(controller).args(arguments).arg("--version").output()?;
        assert!(finished.status.success(), "{}", String::from_utf8_lossy(&finished.stderr));
    }
    Ok(())
}

#[test]
fn a_network_policy_lets_through_what_the_container_needs() -> Result<()> {
    let values = |egress: &str| {
        format!(
            "{{containerPorts: {{http: 9090, metrics: 9091}}, service: {{port: 80}}, \
             networkPolicy: {{enabled: true, egress: {{enabled: true{egress}}}}}}}"
        )
    };
    let policy = |egress: &str| -> Result<Value> {
        Ok(find(&render(&values(egress))?, "NetworkPolicy", "sealed-secrets-controller")?["spec"].clone())
    };
    let open = policy("")?;
    let tcp = |port: u16| json!({"protocol": "TCP", "port": port});
    assert_eq!(open["ingress"], json!([{"ports": [tcp(9090), tcp(9091)]}]));
    assert_eq!(open["policyTypes"], json!(["Ingress", "Egress"]));
    let names = json!({"ports": [{"protocol": "UDP", "port": 53}, tcp(53)]});
    assert_eq!(open["egress"], json!([names, {"ports": [tcp(443), tcp(6443)]}]));
    let narrow = policy(", kubeapiCidr: 10.1.0.1/32, kubeapiPort: 7443")?;
    let server = json!({"ports": [tcp(7443)], "to": [{"ipBlock": {"cidr": "10.1.0.1/32"}}]});
    assert_eq!(narrow["egress"], json!([names, server]));
    let objects = render("")?;
    let deployment = find(&objects, "Deployment", "sealed-secrets-controller")?;
    assert_eq!(open["podSelector"], deployment["spec"]["selector"]);
    Ok(())
}

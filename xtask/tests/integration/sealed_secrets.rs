//! Sealed Secrets as it is: its controller as a Pod, and its `kubeseal` that reaches it through the API server.

use std::time::Duration;

use anyhow::Result;
use xtask::peers::cluster::Cluster;
use xtask::peers::pod::Pod;
use xtask::peers::sealed_secrets;
use xtask::wait;

const SECRET: &str = "{apiVersion: v1, kind: Secret, metadata: {name: db, namespace: NAMESPACE}, stringData: {password: hunter2}}";

#[test]
fn kubeseal_seals_for_the_controller_that_opens() -> Result<()> {
    let cluster = Cluster::shared()?;
    cluster.admin().install(&sealed_secrets::definition()?)?;
    let namespace = cluster.namespace("peer")?;
    cluster.service_account(&namespace, "controller")?;
    let subject = format!("--serviceaccount={namespace}:controller");
    let binding = ["create", "rolebinding", "all", "--clusterrole=cluster-admin", &subject, "-n", &namespace];
    cluster.admin().run(binding)?;
    let program = sealed_secrets::CONTROLLER.path()?;
    let arguments = ["--all-namespaces=false", "--key-size=2048"];
    let container = sealed_secrets::controller(&program, &arguments);
    let pod = Pod::start(&cluster, &namespace, "controller", &container)?;
    pod.publish(&cluster, "sealed-secrets-controller")?;

    let kubeconfig = cluster.admin_kubeconfig();
    let kubeseal = || -> Result<_> {
        let tool = sealed_secrets::kubeseal()?.env("KUBECONFIG", &kubeconfig);
        Ok(tool.args(["--controller-namespace", &namespace]))
    };
    wait::until(Duration::from_secs(30), "the first certificate", || {
        Ok(kubeseal()?.arg("--fetch-cert").run()?.success().ok())
    })?;
    let sealed = kubeseal()?.stdin(SECRET.replace("NAMESPACE", &namespace)).run()?.success()?;
    kubeseal()?.arg("--validate").stdin(sealed.clone()).run()?.success()?;
    cluster.admin().apply(&String::from_utf8(sealed)?)?;
    let password = wait::until(Duration::from_secs(30), "the Secret", || {
        Ok(cluster.admin().get_json(["get", "secret", "db", "-n", &namespace]).ok())
    })?;
    assert_eq!(password["data"]["password"], "aHVudGVyMg==");
    Ok(())
}

/// Its tests ask for a controller of all namespaces and write in `kube-system`: in a cluster of their own.
#[test]
#[ignore = "half a minute, and only a control: the same tests run against our programs in those of the controller"]
fn its_own_tests_pass_here() -> Result<()> {
    let cluster = Cluster::start()?;
    cluster.admin().install(&sealed_secrets::definition()?)?;
    cluster.service_account("kube-system", "controller")?;
    let binding = ["create", "clusterrolebinding", "all", "--clusterrole=cluster-admin"];
    cluster.admin().run(binding.iter().chain(&["--serviceaccount=kube-system:controller"]))?;
    let program = sealed_secrets::CONTROLLER.path()?;
    let container = sealed_secrets::controller(&program, &["--key-size=2048"]);
    let pod = Pod::start(&cluster, "kube-system", "controller", &container)?;
    pod.publish(&cluster, "sealed-secrets-controller")?;
    let passed = sealed_secrets::suite(&cluster, "kube-system", &sealed_secrets::KUBESEAL.path()?, &program)?;
    passed.success().map(drop)
}

//! The Kubernetes control plane.

use std::time::Duration;

use anyhow::Result;
use xtask::peers::cluster::Cluster;
use xtask::peers::kubectl::Kubectl;
use xtask::wait;

#[test]
fn writes_are_counted_by_user_and_namespace() -> Result<()> {
    let cluster = Cluster::shared()?;
    let (here, there) = (cluster.namespace("audit")?, cluster.namespace("audit")?);
    for namespace in [&here, &there] {
        cluster.admin().run(["create", "configmap", "a", "-n", namespace])?;
    }
    cluster.admin().run(["get", "configmap", "a", "-n", &here])?;
    cluster.admin().run(["label", "configmap", "a", "x=y", "-n", &here])?;
    cluster.admin().run(["delete", "configmap", "a", "-n", &here])?;
    let writes = cluster.audit().writes(&here, "admin")?;
    let seen: Vec<_> =
        writes.iter().map(|w| (w.verb.as_str(), w.resource.as_str(), w.name.as_str(), w.code)).collect();
    let expected = [
        ("create", "configmaps", "a", 201),
        ("patch", "configmaps", "a", 200),
        ("delete", "configmaps", "a", 200),
    ];
    // The namespace itself is written by the same administrator, and counted for itself.
    let seen: Vec<_> = seen.into_iter().filter(|write| write.1 == "configmaps").collect();
    assert_eq!(seen, expected);
    assert_eq!(cluster.audit().writes(&there, "system:serviceaccount:x:y")?, []);
    Ok(())
}

#[test]
fn a_service_account_has_the_rights_it_was_given_and_no_more() -> Result<()> {
    let cluster = Cluster::shared()?;
    let namespace = cluster.namespace("rights")?;
    let account = cluster.service_account(&namespace, "reader")?;
    let kubectl = Kubectl::new(&account.kubeconfig)?;
    assert_ne!(kubectl.try_run(["get", "secrets", "-n", &namespace])?.code, Some(0));
    let role = ["create", "role", "reader", "--verb=get,list", "--resource=secrets", "-n", &namespace];
    cluster.admin().run(role)?;
    let subject = format!("--serviceaccount={namespace}:reader");
    cluster.admin().run(["create", "rolebinding", "reader", "--role=reader", &subject, "-n", &namespace])?;
    kubectl.run(["get", "secrets", "-n", &namespace])?;
    let refused = kubectl.try_run(["create", "secret", "generic", "s", "-n", &namespace])?;
    assert!(refused.stderr_text().contains("forbidden"), "{}", refused.stderr_text());
    let writes = cluster.audit().writes(&namespace, &account.user)?;
    let seen: Vec<_> = writes.iter().map(|write| (write.verb.as_str(), write.code)).collect();
    assert_eq!(seen, [("create", 403)]);
    Ok(())
}

#[test]
fn what_an_object_owned_is_collected() -> Result<()> {
    let cluster = Cluster::shared()?;
    let namespace = cluster.namespace("garbage")?;
    let admin = cluster.admin();
    admin.run(["create", "configmap", "owner", "-n", &namespace])?;
    let uid = admin.get_json(["get", "configmap", "owner", "-n", &namespace])?["metadata"]["uid"].to_string();
    admin.apply(&format!(
        "{{apiVersion: v1, kind: Secret, metadata: {{name: owned, namespace: {namespace}, ownerReferences: \
         [{{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}}}]}}}}"
    ))?;
    admin.run(["delete", "configmap", "owner", "-n", &namespace])?;
    wait::until(Duration::from_secs(30), "the owned Secret to be collected", || {
        let found = admin.try_run(["get", "secret", "owned", "-n", &namespace])?;
        Ok((found.code != Some(0)).then_some(()))
    })
}

#[test]
fn a_cluster_is_used_by_those_who_know_its_folder() -> Result<()> {
    let cluster = Cluster::shared()?;
    let other = Cluster::attach(cluster.folder())?;
    let namespace = other.namespace("attached")?;
    cluster.admin().run(["get", "namespace", &namespace])?;
    assert_eq!(other.server(), cluster.server());
    Ok(())
}

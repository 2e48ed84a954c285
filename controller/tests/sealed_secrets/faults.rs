//! Faults of the cluster and of the controllers: after each nothing is lost, and everything converges.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use k8s_openapi::ByteString;
use lacre_crypto::sealing_key::Certificate;
use serde_json::{Value, json};
use xtask::peers::pod::Pod;
use xtask::process::Signal;

use crate::site::{HOME, Site, Space, Turn, Whose, is_synced, strict};

/// What each Secret must hold under its one key.
type Expected = BTreeMap<String, String>;

const ELECTED: [&str; 3] = ["--leader-elect", "--lease-duration=6s", "--lease-interval=1s"];

/// SealedSecrets of one namespace, and what must come of them.
struct Scene {
    space: Space,
    certificate: Certificate,
    expected: Expected,
}

impl Scene {
    fn new(site: &Site, pod: &Pod) -> Result<Self> {
        let certificate = Certificate::from_pem(&site.certificate(pod)?)?;
        Ok(Self { space: site.space("fault")?, certificate, expected: Expected::new() })
    }

    fn add(&mut self, site: &Site, names: impl IntoIterator<Item = String>) -> Result<()> {
        let mut objects = Vec::new();
        for name in names {
            objects.push(self.sealed(&name, "first")?);
            self.expected.insert(name, "first".to_owned());
        }
        site.create("SealedSecret", objects)
    }

    /// Seals another value in an object that is there.
    fn change(&mut self, site: &Site, name: &str, value: &str) -> Result<()> {
        let new = self.sealed(name, value)?;
        let mut object = site.find("SealedSecret", &self.space.name, name)?.context("it is gone")?;
        object["spec"] = new["spec"].clone();
        site.replace("SealedSecret", object)?;
        self.expected.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    fn sealed(&self, name: &str, value: &str) -> Result<Value> {
        strict(&self.certificate, &self.space.name, name, &[("k", value)])
    }

    fn delete_secret(&self, site: &Site, name: &str) -> Result<()> {
        site.cluster.admin().run(["delete", "secret", name, "--namespace", &self.space.name]).map(drop)
    }

    /// Waits until every Secret is as it must be and every SealedSecret says so.
    fn until_converged(&self, site: &Site) -> Result<()> {
        let mut last = String::new();
        let result = site.until("everything to converge", || {
            last = self.differences(site)?.join(", ");
            Ok(last.is_empty().then_some(()))
        });
        result.with_context(|| format!("at last: {last}"))
    }

    fn differences(&self, site: &Site) -> Result<Vec<String>> {
        let secrets = site.list("Secret", &self.space.name)?;
        let held: BTreeMap<&str, &Value> =
            secrets.iter().map(|one| (one["metadata"]["name"].as_str().unwrap_or_default(), one)).collect();
        let mut all = Vec::new();
        for (name, value) in &self.expected {
            let data = json!({"k": ByteString(value.clone().into_bytes())});
            if held.get(name.as_str()).is_none_or(|secret| secret["data"] != data) {
                all.push(format!("Secret {name}"));
            }
        }
        for object in site.list("SealedSecret", &self.space.name)? {
            if !is_synced(&object) {
                all.push(format!("status {}: {}", object["metadata"]["name"], object["status"]));
            }
        }
        Ok(all)
    }
}

fn names(prefix: &str, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |number| format!("{prefix}{number:02}"))
}

#[test]
fn the_api_server_is_stopped_and_started_again() -> Result<()> {
    let mut site = Turn::take()?;
    let pod = site.start(Whose::Ours, &[])?;
    let mut scene = Scene::new(&site, &pod)?;
    scene.add(&site, names("a", 20))?;
    // In the middle of its work, or before.
    let quiet = pod.log()?.len();
    site.cluster.without_server(|_| {
        xtask::wait::until(Duration::from_secs(60), "the controller to notice", || {
            Ok((pod.log()?.len() > quiet).then_some(()))
        })
    })?;
    scene.delete_secret_if_there(&site, "a00")?;
    scene.change(&site, "a01", "second")?;
    scene.add(&site, names("b", 3))?;
    scene.until_converged(&site)
}

#[test]
fn the_store_stands_still_for_five_seconds() -> Result<()> {
    let site = Turn::take()?;
    let pod = site.start(Whose::Ours, &[])?;
    let mut scene = Scene::new(&site, &pod)?;
    scene.add(&site, names("a", 5))?;
    scene.until_converged(&site)?;
    scene.change(&site, "a01", "second")?;
    let paused = site.cluster.store()?.pause()?;
    // The fault itself lasts that long.
    std::thread::sleep(Duration::from_secs(5));
    drop(paused);
    scene.delete_secret(&site, "a00")?;
    scene.add(&site, names("b", 3))?;
    scene.until_converged(&site)
}

#[test]
fn what_happened_meanwhile_can_no_longer_be_watched() -> Result<()> {
    let mut site = Turn::take()?;
    let pod = site.start(Whose::Ours, &[])?;
    let mut scene = Scene::new(&site, &pod)?;
    scene.add(&site, names("a", 5))?;
    scene.until_converged(&site)?;
    pod.server().signal(Signal::STOP)?;
    scene.change(&site, "a01", "second")?;
    scene.delete_secret(&site, "a02")?;
    scene.add(&site, names("b", 3))?;
    // A server that starts now knows of no earlier state either.
    site.cluster.without_server(|store| store.compact())?;
    pod.server().signal(Signal::CONT)?;
    scene.until_converged(&site)?;
    scene.delete_secret(&site, "a03")?;
    scene.until_converged(&site)
}

#[test]
fn the_store_forgets_while_no_controller_runs() -> Result<()> {
    let site = Turn::take()?;
    let pod = site.start(Whose::Ours, &[])?;
    let mut scene = Scene::new(&site, &pod)?;
    scene.add(&site, names("a", 5))?;
    scene.until_converged(&site)?;
    drop(pod);
    scene.change(&site, "a01", "second")?;
    scene.delete_secret(&site, "a02")?;
    site.cluster.store()?.compact()?;
    let _pod = site.start(Whose::Ours, &[])?;
    scene.until_converged(&site)
}

#[test]
fn the_leader_is_killed_while_it_writes() -> Result<()> {
    let site = Turn::take()?;
    allow_leases(&site)?;
    let leader = site.start(Whose::Ours, &ELECTED)?;
    let mut scene = Scene::new(&site, &leader)?;
    scene.add(&site, names("a", 1))?;
    scene.until_converged(&site)?;
    let _standby = site.start(Whose::Ours, &ELECTED)?;
    scene.add(&site, names("b", 60))?;
    site.until("the first of many Secrets", || site.find("Secret", &scene.space.name, "b00"))?;
    leader.server().signal(Signal::KILL)?;
    scene.change(&site, "b30", "second")?;
    scene.until_converged(&site)
}

#[test]
fn two_lead_for_a_moment() -> Result<()> {
    let site = Turn::take()?;
    allow_leases(&site)?;
    let first = site.start(Whose::Ours, &ELECTED)?;
    let mut scene = Scene::new(&site, &first)?;
    scene.add(&site, names("a", 10))?;
    scene.until_converged(&site)?;
    let _second = site.start(Whose::Ours, &ELECTED)?;
    first.server().signal(Signal::STOP)?;
    scene.change(&site, "a00", "second")?;
    // The other leads now.
    scene.until_converged(&site)?;
    first.server().signal(Signal::CONT)?;
    // The first still believes that it leads, until it looks at the lease.
    for name in names("a", 10) {
        scene.change(&site, &name, "third")?;
    }
    scene.until_converged(&site)?;
    let before = creations(&site, &scene)?;
    scene.delete_secret(&site, "a05")?;
    scene.until_converged(&site)?;
    ensure!(creations(&site, &scene)? == before + 1, "two controllers made the Secret");
    Ok(())
}

#[test]
fn a_malformed_key_stops_neither_the_others_nor_the_controller() -> Result<()> {
    let site = Turn::take()?;
    let pod = site.start(Whose::Ours, &[])?;
    let mut scene = Scene::new(&site, &pod)?;
    scene.add(&site, names("a", 2))?;
    scene.until_converged(&site)?;
    let keys = BadKeys::create(&site)?;
    scene.add(&site, names("b", 2))?;
    scene.until_converged(&site)?;
    assert_eq!(site.certificate(&pod)?, scene.certificate.pem());
    drop(pod);
    let pod = site.start(Whose::Ours, &[])?;
    assert_eq!(site.certificate(&pod)?, scene.certificate.pem());
    scene.delete_secret(&site, "a00")?;
    scene.until_converged(&site)?;
    drop(keys);
    Ok(())
}

#[test]
fn others_write_the_status_and_the_object_at_the_same_time() -> Result<()> {
    let site = Turn::take()?;
    let pod = site.start(Whose::Ours, &[])?;
    let mut scene = Scene::new(&site, &pod)?;
    scene.add(&site, names("a", 1))?;
    scene.until_converged(&site)?;
    let until = Instant::now() + Duration::from_secs(3);
    let lie = json!({"status": {"observedGeneration": 1, "conditions": [
        {"type": "Synced", "status": "False", "message": "a lie", "lastUpdateTime": "2026-01-01T00:00:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let mut number = 0;
    while Instant::now() < until {
        number += 1;
        // Either may lose against the controller, as the controller may against them.
        let _ = scene.change(&site, "a00", &format!("value {number}"));
        let patch = format!("--patch={lie}");
        let arguments = ["patch", "sealedsecret", "a00", "--namespace", &scene.space.name, "--type=merge"];
        site.cluster.admin().run(arguments.into_iter().chain(["--subresource=status", &patch]))?;
    }
    scene.until_changed(&site, "a00", "last")?;
    scene.until_converged(&site)
}

/// Key Secrets that nobody can use, until they are dropped.
struct BadKeys<'a>(&'a Site);

impl<'a> BadKeys<'a> {
    fn create(site: &'a Site) -> Result<Self> {
        let label = json!({"sealedsecrets.bitnami.com/sealed-secrets-key": "active"});
        let one = |name: &str, data: Value| {
            json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "stringData": data,
                "metadata": {"namespace": HOME, "name": name, "labels": label}})
        };
        let garbage = "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n";
        let objects = vec![
            one("bad-empty", json!({})),
            one("bad-garbage", json!({"tls.key": garbage, "tls.crt": "no certificate"})),
            one("bad-half", json!({"tls.key": garbage})),
        ];
        site.create("Secret", objects)?;
        Ok(Self(site))
    }
}

impl Drop for BadKeys<'_> {
    fn drop(&mut self) {
        let names = ["bad-empty", "bad-garbage", "bad-half"];
        let arguments = ["delete", "secret", "--namespace", HOME];
        let _ = self.0.cluster.admin().run(arguments.into_iter().chain(names));
    }
}

impl Scene {
    fn delete_secret_if_there(&self, site: &Site, name: &str) -> Result<()> {
        let arguments = ["delete", "secret", name, "--ignore-not-found", "--namespace", &self.space.name];
        site.cluster.admin().run(arguments).map(drop)
    }

    /// Changes an object whose newest version somebody else may write at the same time.
    fn until_changed(&mut self, site: &Site, name: &str, value: &str) -> Result<()> {
        site.until("a change without conflict", || Ok(self.change(site, name, value).ok()))
    }
}

/// What its own chart does not allow, since their controller knows no leaders.
fn allow_leases(site: &Site) -> Result<()> {
    let subject = format!("system:serviceaccount:{HOME}:{}", xtask::peers::sealed_secrets::SERVICE);
    let rule = json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
        "verbs": ["get", "create", "update", "patch"]});
    let metadata = json!({"name": "leases", "namespace": HOME});
    let group = "rbac.authorization.k8s.io";
    for object in [
        json!({"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": metadata, "rules": [rule]}),
        json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "leases"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": subject}]}),
    ] {
        site.cluster.admin().apply(&object.to_string())?;
    }
    Ok(())
}

/// How often a Secret of the scene was made, successfully or not.
fn creations(site: &Site, scene: &Scene) -> Result<usize> {
    let user = format!("system:serviceaccount:{HOME}:{}", xtask::peers::sealed_secrets::SERVICE);
    let writes = site.cluster.audit().writes(&scene.space.name, &user)?;
    Ok(writes
        .iter()
        .filter(|write| write.verb == "create" && write.resource == "secrets" && write.code == 201)
        .count())
}

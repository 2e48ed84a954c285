//! Probes, metrics, lease, shutdown.

use anyhow::Result;
use serde_json::json;

use crate::harness::World;

const SEALED: &str = "ENC[AES256_GCM,data:YQ==,iv:YQ==,tag:YQ==,type:str]";

fn suspended(world: &World, name: &str) -> String {
    json!({
        "apiVersion": "lacre.dev/v1alpha1",
        "kind": "EncryptedSecret",
        "metadata": {"name": name, "namespace": world.namespace},
        "spec": {"stringData": {"a": SEALED}, "suspend": true},
        "sops": {"mac": "x"},
    })
    .to_string()
}

#[test]
fn probes_answer_and_metrics_carry_the_names_that_dashboards_know() -> Result<()> {
    let world = World::new()?;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(world.ask(path)?.status, 200, "{path}");
    }
    world.apply(&suspended(&world, "db"))?;
    world.until_ready_is("db", "Unknown", "Suspended")?;
    // The status is written before the reconcile ends.
    world.until("the end of the reconcile", || Ok((world.reconciles("db")? > 0).then_some(())))?;
    let text = world.ask("/metrics")?.body;
    for series in [
        r#"controller_runtime_reconcile_total{controller="encryptedsecret",result="success"}"#,
        r#"controller_runtime_reconcile_time_seconds_count{controller="encryptedsecret"}"#,
        &format!(r#"lacre_document_ready{{namespace="{}",name="db"}} 0"#, world.namespace),
        &format!(r#"lacre_document_suspended{{namespace="{}",name="db"}} 1"#, world.namespace),
    ] {
        assert!(text.contains(series), "{series}\n{text}");
    }
    Ok(())
}

#[test]
fn the_series_of_an_object_go_when_it_goes() -> Result<()> {
    let world = World::new()?;
    world.apply(&suspended(&world, "db"))?;
    world.until_ready_is("db", "Unknown", "Suspended")?;
    world.kubectl(["delete", "encryptedsecret", "db"])?;
    world.until("its series to go", || {
        Ok((!world.ask("/metrics")?.body.contains("name=\"db\"")).then_some(()))
    })
}

#[test]
fn one_controller_works_and_the_next_takes_over_when_it_ends() -> Result<()> {
    let lease = ["--leader-elect", "--lease-duration", "3s", "--lease-interval", "200ms"];
    let mut world = World::with_flags(&lease)?;
    world.until("the first to hold the lease", || {
        Ok(world.log(0)?.contains("holds the lease").then_some(()))
    })?;
    // A standby is ready, or no rollout would ever end.
    world.start(&lease)?;
    world.apply(&suspended(&world, "db"))?;
    world.until_ready_is("db", "Unknown", "Suspended")?;
    assert_eq!(world.ask_number(0, "/metrics")?.body.matches("leader_election_master_status 1").count(), 1);
    assert!(!world.log(1)?.contains("holds the lease"));
    assert!(!world.ask_number(1, "/metrics")?.body.contains("name=\"db\""), "the standby worked");
    world.stop_first();
    assert!(world.log(0)?.contains("asked to end"));
    world.until("the second to hold the lease", || {
        Ok(world.log(1)?.contains("holds the lease").then_some(()))
    })?;
    world.apply(&suspended(&world, "next"))?;
    world.until_ready_is("next", "Unknown", "Suspended")?;
    Ok(())
}

#[test]
fn a_standby_takes_over_from_one_that_died_without_a_word() -> Result<()> {
    let mut world = World::without_controller()?;
    world.admin().apply(
        &json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "lacre-controller", "namespace": world.home},
            "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 1, "leaseTransitions": 4},
        })
        .to_string(),
    )?;
    world.start(&["--leader-elect", "--lease-duration", "3s", "--lease-interval", "200ms"])?;
    world.until("the lease to be taken", || Ok(world.log(0)?.contains("holds the lease").then_some(())))?;
    let lease = world.admin().get_json(["--namespace", &world.home, "get", "lease", "lacre-controller"])?;
    assert_eq!(lease["spec"]["leaseTransitions"], 5);
    Ok(())
}

#[test]
fn a_controller_whose_lease_was_taken_ends() -> Result<()> {
    let world =
        World::with_flags(&["--leader-elect", "--lease-duration", "3s", "--lease-interval", "200ms"])?;
    world.until("the lease to be held", || Ok(world.log(0)?.contains("holds the lease").then_some(())))?;
    let thief = json!({"spec": {"holderIdentity": "thief"}}).to_string();
    let patch =
        ["--namespace", &world.home, "patch", "lease", "lacre-controller", "--type=merge", "--patch", &thief];
    world.admin().run(patch)?;
    world.until("the end", || Ok(world.log(0)?.contains("the lease was lost").then_some(())))?;
    world.until("the process to serve no longer", || Ok(world.ask("/healthz").is_err().then_some(())))
}

#[test]
fn logs_are_json_when_asked_for() -> Result<()> {
    let world = World::with_flags(&["--log-format", "json"])?;
    world.apply(&suspended(&world, "db"))?;
    world.until_ready_is("db", "Unknown", "Suspended")?;
    for line in world.log(0)?.lines() {
        assert!(serde_json::from_str::<serde_json::Value>(line)?["level"].is_string(), "{line}");
    }
    Ok(())
}

#[test]
fn several_namespaces_are_served_by_one_controller_and_no_others() -> Result<()> {
    let mut world = World::without_controller()?;
    let other = world.cluster.namespace("other")?;
    world.start_as(&["--additional-namespaces", &format!("{},{other}", world.namespace)])?;
    let db = suspended(&world, "db");
    world.apply(&db)?;
    world.apply(&db.replace(&world.namespace, &other))?;
    world.until_ready_is("db", "Unknown", "Suspended")?;
    for namespace in [&world.namespace, &other] {
        let series = format!(r#"lacre_document_suspended{{namespace="{namespace}",name="db"}}"#);
        world.until("both to be looked at", || Ok((world.metric(&series)? == Some(1.0)).then_some(())))?;
    }
    // The one that is gone is forgotten, the other is not.
    world.kubectl(["delete", "encryptedsecret", "db"])?;
    let gone = format!(r#"namespace="{}",name="db""#, world.namespace);
    world.until("its series to go", || Ok((!world.ask("/metrics")?.body.contains(&gone)).then_some(())))?;
    let kept = format!(r#"lacre_document_suspended{{namespace="{other}",name="db"}}"#);
    assert_eq!(world.metric(&kept)?, Some(1.0));
    Ok(())
}

//! Alert rules and dashboard.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use xtask::peers::promtool;
use xtask::root;

use crate::support::{chart, find, render};

#[test]
fn promtool_takes_the_rules_as_they_are_rendered() -> Result<()> {
    let objects = render("metrics: {prometheusRule: {enabled: true}}")?;
    let rules = &find(&objects, "PrometheusRule", "sealed-secrets-controller")?["spec"];
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("rules.yaml");
    fs::write(&file, rules.to_string())?;
    let told = promtool::tool()?.args(["check", "rules", "--lint-fatal"]).arg(&file).run()?.success()?;
    ensure!(String::from_utf8(told)?.contains("SUCCESS: 10 rules found"));
    let shipped: Value = yaml_serde::from_str(&fs::read_to_string(chart().join("files/rules.yaml"))?)?;
    assert_eq!(*rules, shipped);
    Ok(())
}

#[test]
fn each_alert_comes_when_it_must_and_not_before() -> Result<()> {
    let file = root().join("xtask/tests/install/alerts.yaml");
    promtool::tool()?.args(["test", "rules"]).arg(&file).run()?.success()?;
    // An alert that no case expects is tested by nobody.
    let tested = fs::read_to_string(&file)?;
    let rules: Value = yaml_serde::from_str(&fs::read_to_string(chart().join("files/rules.yaml"))?)?;
    for rule in
        rules["groups"].as_array().into_iter().flatten().flat_map(|group| group["rules"].as_array()).flatten()
    {
        let name = rule["alert"].as_str().context("no alert")?;
        let cases: Vec<_> = tested.split("alertname: ").filter(|case| case.starts_with(name)).collect();
        ensure!(cases.iter().any(|case| case.contains("exp_labels")), "{name} never comes");
        ensure!(cases.iter().any(|case| case.contains("exp_alerts: []")), "{name} is always there");
    }
    Ok(())
}

#[test]
fn rules_and_dashboard_ask_for_series_that_exist() -> Result<()> {
    let sources = ["metrics.rs", "metrics/keys.rs", "metrics/sealed.rs"];
    let sources = sources.map(|file| fs::read_to_string(root().join("controller/src").join(file)));
    let known = sources.into_iter().collect::<Result<Vec<_>, _>>()?.join("\n");
    let mut asked = BTreeSet::new();
    for file in ["rules.yaml", "dashboard.json"] {
        let text = fs::read_to_string(chart().join("files").join(file))?;
        let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
        let prefixes = ["lacre_", "sealed_secrets_controller_", "controller_runtime_", "leader_election_"];
        asked.extend(
            words.filter(|word| prefixes.iter().any(|prefix| word.starts_with(prefix))).map(str::to_owned),
        );
    }
    ensure!(asked.len() >= 15, "{asked:?}");
    for series in asked {
        let name = series.trim_end_matches("_total").trim_end_matches("_bucket");
        let name = name.strip_prefix("sealed_secrets_controller_").unwrap_or(name);
        ensure!(known.contains(&format!("\"{name}\"")), "{series} is no series of the controller");
    }
    Ok(())
}

#[test]
fn the_dashboard_is_one_that_grafana_reads() -> Result<()> {
    let objects = render("metrics: {dashboards: {create: true}}")?;
    let map = find(&objects, "ConfigMap", "sealed-secrets-controller-dashboard")?;
    let text = map["data"]["lacre-controller.json"].as_str().context("no dashboard")?;
    let dashboard: Value = serde_json::from_str(text)?;
    let panels = dashboard["panels"].as_array().context("no panels")?;
    let ids: BTreeSet<_> = panels.iter().filter_map(|panel| panel["id"].as_u64()).collect();
    ensure!(ids.len() == panels.len() && dashboard["schemaVersion"].is_u64());
    for panel in panels {
        let targets = panel["targets"].as_array().context("no targets")?;
        ensure!(targets.iter().all(|target| target["expr"].is_string()), "{panel}");
    }
    Ok(())
}

//! Rendering the chart, and finding one's way in what comes out.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use xtask::peers::helm::Helm;
use xtask::process::Finished;
use xtask::root;

/// The chart.
pub(crate) fn chart() -> PathBuf {
    root().join("controller/deploy/helm/lacre")
}

/// `helm template` in the namespace `kube-system`, as the release `wax`.
pub(crate) fn template(values: &str) -> Result<Finished> {
    let tool = Helm::new()?.tool()?.args(["template", "wax", "--namespace", "kube-system", "--values", "-"]);
    tool.arg(chart()).stdin(values).run()
}

/// The objects that it renders.
pub(crate) fn render(values: &str) -> Result<Vec<Value>> {
    documents(&String::from_utf8(template(values)?.success()?)?)
}

/// The objects in a text.
pub(crate) fn documents(text: &str) -> Result<Vec<Value>> {
    use serde::Deserialize as _;
    let read = yaml_serde::Deserializer::from_str(text).map(Value::deserialize);
    let objects: Vec<Value> = read.collect::<Result<_, _>>()?;
    let objects: Vec<_> = objects.into_iter().filter(|object| !object.is_null()).collect();
    for object in &objects {
        let named = object["kind"].is_string() && object["metadata"]["name"].is_string();
        ensure!(named && !object.to_string().contains("error converting YAML"), "{object}");
    }
    Ok(objects)
}

/// The one object of this kind and name.
pub(crate) fn find<'a>(objects: &'a [Value], kind: &str, name: &str) -> Result<&'a Value> {
    let mut found =
        objects.iter().filter(|object| object["kind"] == kind && object["metadata"]["name"] == name);
    let object = found.next().with_context(|| format!("no {kind} {name}"))?;
    ensure!(found.next().is_none(), "{kind} {name} is there twice");
    Ok(object)
}

/// The container's arguments.
pub(crate) fn arguments(objects: &[Value]) -> Result<Vec<String>> {
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").context("no Deployment")?;
    let arguments = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    Ok(serde_json::from_value(arguments.clone())?)
}

/// Whether they are equal, where 0 is 0.0: Lua knows one kind of number, and helm writes whole ones without a point.
pub(crate) fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (one, other) => one == other,
    }
}

//! SealedSecrets for tests, and what tests ask about them.

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lacre_crypto::SecretBytes;
use lacre_crypto::sealed_item;
use lacre_crypto::sealing_key::Certificate;
use serde_json::{Map, Value, json};

use crate::harness::World;

/// What all annotations of the kind begin with.
pub(crate) const PREFIX: &str = "sealedsecrets.bitnami.com";

/// What an object is made from.
pub(crate) struct SealedObject<'a> {
    world: &'a World,
    certificate: Certificate,
    name: String,
    object: Value,
}

impl<'a> SealedObject<'a> {
    /// One without items, sealed for the newest key of `world`.
    pub(crate) fn new(world: &'a World, name: &str) -> Result<Self> {
        let certificate = Certificate::from_pem(&world.ask("/v1/cert.pem")?.body)?;
        let object = json!({
            "apiVersion": "bitnami.com/v1alpha1",
            "kind": "SealedSecret",
            "metadata": {"name": name, "namespace": world.namespace},
            "spec": {"encryptedData": {}},
        });
        Ok(Self { world, certificate, name: name.to_owned(), object })
    }

    /// With an item sealed for the object's own place.
    pub(crate) fn item(self, key: &str, value: &str) -> Result<Self> {
        let label = format!("{}/{}", self.world.namespace, self.name);
        self.item_for(key, value, &label)
    }

    /// With an item sealed under `label`.
    pub(crate) fn item_for(mut self, key: &str, value: &str, label: &str) -> Result<Self> {
        let value = SecretBytes::from(value);
        let text = sealed_item::seal(self.certificate.public(), label.as_bytes(), &value)?;
        self.object["spec"]["encryptedData"][key] = text.into();
        Ok(self)
    }

    /// With what `pointer` names set to `value`. Tests name members that are there, or new ones of objects that are.
    pub(crate) fn with(mut self, pointer: &str, value: Value) -> Self {
        let mut place = &mut self.object;
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/");
            if place.is_null() {
                *place = Value::Object(Map::new());
            }
            place = &mut place[step.as_str()];
        }
        *place = value;
        self
    }

    /// It as it is applied.
    pub(crate) fn manifest(&self) -> String {
        self.object.to_string()
    }

    /// Applies it as a person would.
    pub(crate) fn apply(&self) -> Result<()> {
        self.world.apply(&self.object.to_string())
    }
}

/// The condition of a type of a SealedSecret; null when it is not there.
pub(crate) fn condition(object: &Value, type_: &str) -> Value {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == type_).unwrap_or_default()
}

impl World {
    pub(crate) fn sealed_secret(&self, name: &str) -> Result<Value> {
        self.find("sealedsecret", name)?.with_context(|| format!("SealedSecret {name} is not there"))
    }

    /// Waits until the newest generation was judged; gives the object.
    pub(crate) fn until_sealed_is(&self, name: &str, status: &str, reason: &str) -> Result<Value> {
        let mut last = Value::Null;
        let found = self.until(&format!("{name} to be {status}/{reason}"), || {
            let object = self.find("sealedsecret", name)?.unwrap_or_default();
            last = object["status"].clone();
            let ready = condition(&object, "Ready");
            let is_current = last["observedGeneration"] == object["metadata"]["generation"];
            let is_first =
                last["conditions"][0]["type"] == "Synced" && last["conditions"][0]["status"] == status;
            Ok((is_current && is_first && ready["status"] == status && ready["reason"] == reason)
                .then_some(object))
        });
        found.with_context(|| format!("last seen: {last}"))
    }

    pub(crate) fn until_unsealed(&self, name: &str) -> Result<Value> {
        self.until_sealed_is(name, "True", "Unsealed")
    }

    pub(crate) fn until_value(&self, secret: &str, key: &str, value: &str) -> Result<()> {
        self.until(&format!("{key} in Secret {secret}"), || {
            Ok((self.value(secret, key)? == value).then_some(()))
        })
    }

    pub(crate) fn until_gone(&self, kind: &str, name: &str) -> Result<()> {
        self.until(&format!("the end of {kind} {name}"), || {
            Ok(self.find(kind, name)?.is_none().then_some(()))
        })
    }

    /// How often the SealedSecret was looked at.
    pub(crate) fn sealed_looks(&self, name: &str) -> Result<u64> {
        let series = format!(
            r#"lacre_sealed_secret_reconciles_total{{namespace="{}",name="{name}"}}"#,
            self.namespace
        );
        Ok(self.metric(&series)?.unwrap_or_default() as u64)
    }

    /// Does `act`, and waits until the object was looked at once more.
    pub(crate) fn wake_sealed(&self, name: &str, act: impl FnOnce() -> Result<()>) -> Result<()> {
        let before = self.sealed_looks(name)?;
        act()?;
        self.until("another look", || Ok((self.sealed_looks(name)? > before).then_some(())))
    }

    /// Wakes the object by an annotation that means nothing.
    pub(crate) fn nudge(&self, name: &str, mark: &str) -> Result<()> {
        let annotation = json!({"metadata": {"annotations": {"example.com/nudge": mark}}});
        self.wake_sealed(name, || self.patch("sealedsecret", name, &annotation))
    }

    /// The events about a SealedSecret as `type reason: message (component)`, oldest first.
    pub(crate) fn sealed_events(&self, name: &str) -> Result<Vec<String>> {
        let selector = format!("involvedObject.name={name},involvedObject.kind=SealedSecret");
        let list = self.kubectl(["get", "events", "--field-selector", &selector, "-o", "json"])?;
        let list: Value = serde_json::from_str(&list)?;
        let mut events = list["items"].as_array().cloned().unwrap_or_default();
        // Names end with the time in nanoseconds; those of the API hold seconds.
        events.sort_by_key(|event| event["metadata"]["name"].as_str().unwrap_or_default().to_owned());
        let text = |event: &Value, pointer: &str| {
            event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let line = |event: &Value| {
            let [type_, reason, message, component] =
                ["/type", "/reason", "/message", "/source/component"].map(|pointer| text(event, pointer));
            format!("{type_} {reason}: {message} ({component})")
        };
        Ok(events.iter().map(line).collect())
    }

    /// Waits for the number of events that is expected; gives them.
    pub(crate) fn until_sealed_events(&self, name: &str, count: usize) -> Result<Vec<String>> {
        self.until(
            "the events",
            || Ok(Some(self.sealed_events(name)?).filter(|events| events.len() >= count)),
        )
    }
}

/// The data of a Secret, decoded.
pub(crate) fn data(secret: &Value) -> Result<Vec<(String, String)>> {
    let data = secret["data"].as_object().cloned().unwrap_or_default();
    let decoded = data.into_iter().map(|(key, value)| {
        let bytes = STANDARD.decode(value.as_str().context("no text")?)?;
        Ok((key, String::from_utf8(bytes)?))
    });
    decoded.collect()
}

/// `data` as tests write it.
pub(crate) fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

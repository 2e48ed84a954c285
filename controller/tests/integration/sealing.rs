//! Objects for the tests: sealed as `lacre kube seal` does it, then changed as an attacker or a tool would.

use anyhow::Result;
use lacre_crypto::encrypt::WriteOptions;
use lacre_crypto::object::{ManifestOptions, seal_manifest};
use lacre_crypto::recipient::Recipient;
use lacre_crypto::recipient::age::AgeRecipient;
use lacre_crypto::{Format, Groups, Scope, SecretText, Timestamp};
use serde_json::{Value, json};

use crate::harness::World;

/// What is sealed, for whom, and for where.
pub(crate) struct Sealing {
    pub(crate) namespace: String,
    pub(crate) recipients: Vec<Box<dyn Recipient>>,
    pub(crate) scope: Scope,
    pub(crate) keys_from: Vec<String>,
    pub(crate) now: Timestamp,
    /// The Secret that is sealed.
    pub(crate) secret: Value,
}

impl Sealing {
    /// A Secret called `db` with the keys `password` and `user` and the label `tier`, for the world's namespace and its
    /// controller.
    pub(crate) fn new(world: &World) -> Result<Self> {
        let secret = json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "db", "labels": {"tier": "back"}},
            "type": "Opaque",
            "stringData": {"password": "hunter2-CANARY", "user": "admin-CANARY"},
        });
        Ok(Self {
            namespace: world.namespace.clone(),
            recipients: vec![age(&world.recipient()?)?],
            scope: Scope::Strict,
            keys_from: Vec::new(),
            now: Timestamp::now(),
            secret,
        })
    }

    /// The same Secret under another name.
    pub(crate) fn named(mut self, name: &str) -> Self {
        self.secret["metadata"]["name"] = name.into();
        self
    }

    /// The same Secret with `value` at `pointer`.
    pub(crate) fn with(mut self, pointer: &str, value: Value) -> Self {
        let (parent, key) = pointer.rsplit_once('/').unwrap_or_default();
        if let Some(Value::Object(parent)) = self.secret.pointer_mut(parent) {
            parent.insert(key.to_owned(), value);
        }
        self
    }

    /// For this recipient and no other.
    pub(crate) fn only_for(mut self, recipient: Box<dyn Recipient>) -> Self {
        self.recipients = vec![recipient];
        self
    }

    /// To be opened with the identities in these Secrets.
    pub(crate) fn with_keys_from(mut self, name: &str) -> Self {
        self.keys_from.push(name.to_owned());
        self
    }

    /// The YAML of the object.
    pub(crate) fn yaml(&self) -> Result<String> {
        let options = ManifestOptions {
            namespace: Some(&self.namespace),
            scope: self.scope,
            clusters: Vec::new(),
            groups: Groups {
                groups: vec![self.recipients.iter().map(AsRef::as_ref).collect()],
                threshold: None,
            },
            keys_from: self.keys_from.clone(),
            write: WriteOptions { now: self.now, seal: true, allow_plaintext: false },
        };
        Ok(seal_manifest(&SecretText::new(self.secret.to_string()), Format::Json, options)?)
    }

    /// The object.
    pub(crate) fn object(&self) -> Result<Value> {
        Ok(yaml_serde::from_str(&self.yaml()?)?)
    }
}

pub(crate) fn age(recipient: &str) -> Result<Box<dyn Recipient>> {
    Ok(Box::new(AgeRecipient::parse(recipient)?))
}

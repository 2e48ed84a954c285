//! A Secret in the clear, for as long as one reconcile needs it.

use std::fmt;
use std::ops::Deref;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use zeroize::Zeroize;

/// A Secret whose values are wiped when it is dropped and never formatted.
///
/// The Kubernetes client reads and writes plain byte vectors: this is where they live, and nowhere else. What its own
/// buffers held on the way is out of reach, and is why the process is not dumpable.
pub struct PlainSecret(Secret);

impl PlainSecret {
    /// Takes over a Secret that the API server gave.
    pub fn new(secret: Secret) -> Self {
        Self(secret)
    }

    /// A Secret with these parts.
    pub fn build<'a>(
        metadata: ObjectMeta,
        type_: String,
        immutable: Option<bool>,
        values: impl Iterator<Item = (String, &'a [u8])>,
    ) -> Self {
        let data = values.map(|(key, value)| (key, ByteString(value.to_vec()))).collect();
        Self(Secret { metadata, type_: Some(type_), immutable, data: Some(data), string_data: None })
    }

    /// The Secret, to be sent to the API server and nothing else.
    pub fn as_secret(&self) -> &Secret {
        &self.0
    }

    /// Its metadata, to be changed before it is sent.
    pub fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.0.metadata
    }

    /// The value of `key`.
    pub fn value(&self, key: &str) -> Option<&[u8]> {
        self.0.data.as_ref()?.get(key).map(|value| value.0.as_slice())
    }
}

impl Deref for PlainSecret {
    type Target = Secret;

    fn deref(&self) -> &Secret {
        &self.0
    }
}

impl Drop for PlainSecret {
    fn drop(&mut self) {
        self.0.data.iter_mut().flatten().for_each(|(_, value)| value.0.zeroize());
        self.0.string_data.iter_mut().flatten().for_each(|(_, value)| value.zeroize());
    }
}

impl fmt::Debug for PlainSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.metadata.name.as_deref().unwrap_or_default();
        write!(formatter, "PlainSecret({name}, [{} values redacted])", self.0.data.iter().flatten().count())
    }
}

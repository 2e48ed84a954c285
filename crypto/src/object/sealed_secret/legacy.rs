//! What an object of the first version holds: a whole Secret in one blob.
//!
//! Nobody writes it any more. Its values go from the parser straight into secret types.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use serde_json::{Map, Value};

use crate::secret::SecretBytes;

/// The Secret of a blob.
#[derive(Deserialize)]
pub(super) struct LegacySecret {
    #[serde(default)]
    pub(super) metadata: Option<Map<String, Value>>,
    #[serde(default, rename = "type")]
    pub(super) type_: Option<String>,
    #[serde(default)]
    pub(super) immutable: Option<bool>,
    #[serde(default)]
    data: Option<BTreeMap<String, Decoded>>,
    #[serde(default, rename = "stringData")]
    string_data: Option<BTreeMap<String, Plain>>,
}

impl LegacySecret {
    /// The Secret that `blob` holds as JSON, or nothing. The parser's words would repeat its content.
    pub(super) fn read(blob: &SecretBytes) -> Option<Self> {
        // A list would count as the fields in their order.
        let is_object = blob.expose_secret().trim_ascii_start().starts_with(b"{");
        is_object.then(|| serde_json::from_slice(blob.expose_secret()).ok()).flatten()
    }

    /// Its values. Clear ones win, as in a cluster.
    pub(super) fn values(&mut self) -> BTreeMap<String, SecretBytes> {
        let decoded = self.data.take().unwrap_or_default().into_iter().map(|(key, value)| (key, value.0));
        let plain =
            self.string_data.take().unwrap_or_default().into_iter().map(|(key, value)| (key, value.0));
        decoded.chain(plain).collect()
    }
}

struct Decoded(SecretBytes);

impl<'de> Deserialize<'de> for Decoded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Decoded;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("base64 text")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Decoded, E> {
                STANDARD.decode(text).map(|bytes| Decoded(SecretBytes::new(bytes))).map_err(E::custom)
            }
            fn visit_unit<E: Error>(self) -> Result<Decoded, E> {
                Ok(Decoded(SecretBytes::default()))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

struct Plain(SecretBytes);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Plain;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("text")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Plain, E> {
                Ok(Plain(SecretBytes::from(text)))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

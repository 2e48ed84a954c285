//! Reading objects so that no single one can stop the watch of all.
//!
//! The API server takes more than typed readers do: `sops` may be nested as deeply as its author likes, and whoever may
//! write a status or a record of managers may put times into it that only the server understands. An object that cannot be decoded would make
//! every list and watch fail that it is part of. So what is too deep reads as null, which is refused when its object is
//! opened, what is not readable in a status reads as if it were not there, and of the metadata only what is used is
//! read: all of it is the server's own.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::ObjectMeta;
use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::EncryptedSecretStatus;

/// Most levels of mappings and lists in a field. Real ones have five; JSON readers give up at 128.
pub const LEVELS_MAX: usize = 64;

/// Any value; null for one of more than [`LEVELS_MAX`] levels.
pub(crate) fn value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    let mut too_deep = false;
    let value = Levels { left: LEVELS_MAX, too_deep: &mut too_deep }.deserialize(deserializer)?;
    Ok(if too_deep { Value::Null } else { value })
}

/// What is readable of a status.
pub(super) fn status<'de, D>(deserializer: D) -> Result<Option<EncryptedSecretStatus>, D::Error>
where
    D: Deserializer<'de>,
{
    Ok(serde_json::from_value(value(deserializer)?).ok())
}

/// The metadata that is used, and nothing else.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    deletion_timestamp: Option<IgnoredAny>,
    generation: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    name: Option<String>,
    namespace: Option<String>,
    resource_version: Option<String>,
    uid: Option<String>,
}

/// Metadata with names, versions and labels, and whether there is a time of deletion: never which.
pub(super) fn metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    Ok(Metadata::deserialize(deserializer)?.into())
}

impl From<Metadata> for ObjectMeta {
    fn from(read: Metadata) -> Self {
        Self {
            deletion_timestamp: read.deletion_timestamp.map(|_| Time(Timestamp::UNIX_EPOCH)),
            generation: read.generation,
            labels: read.labels,
            name: read.name,
            namespace: read.namespace,
            resource_version: read.resource_version,
            uid: read.uid,
            ..Self::default()
        }
    }
}

/// Where kubectl keeps a copy of the whole object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The same with annotations, except for [`LAST_APPLIED`]: it would take as much memory as the object again.
pub(crate) fn annotated_metadata<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Annotated {
        annotations: Option<BTreeMap<String, String>>,
        #[serde(flatten)]
        rest: Metadata,
    }

    let Annotated { mut annotations, rest } = Annotated::deserialize(deserializer)?;
    annotations.iter_mut().for_each(|annotations| drop(annotations.remove(LAST_APPLIED)));
    Ok(ObjectMeta { annotations, ..rest.into() })
}

/// The conditions that are readable.
pub(super) fn conditions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Condition>, D::Error> {
    let found = Vec::<Value>::deserialize(deserializer)?;
    Ok(found.into_iter().filter_map(|condition| serde_json::from_value(condition).ok()).collect())
}

struct Levels<'a> {
    left: usize,
    too_deep: &'a mut bool,
}

impl Levels<'_> {
    fn below(&mut self) -> Option<Levels<'_>> {
        let left = self.left.checked_sub(1);
        *self.too_deep |= left.is_none();
        left.map(|left| Levels { left, too_deep: self.too_deep })
    }
}

impl<'de> DeserializeSeed<'de> for Levels<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Levels<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let item = match self.below() {
                Some(below) => items.next_element_seed(below)?,
                // JSON skips without going down into what it skips.
                None => items.next_element::<IgnoredAny>()?.map(|_| Value::Null),
            };
            match item {
                Some(item) => list.push(item),
                None => return Ok(list.into()),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = match self.below() {
                Some(below) => entries.next_value_seed(below)?,
                None => entries.next_value::<IgnoredAny>().map(|_| Value::Null)?,
            };
            map.insert(key, value);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::api::EncryptedSecret;

    fn object(sops: &str, status: &str) -> EncryptedSecret {
        serde_json::from_str(&format!(r#"{{"metadata":{{}},"spec":{{}},"sops":{sops},"status":{status}}}"#))
            .unwrap()
    }

    fn nested(levels: usize) -> String {
        (0..levels).fold("1".to_owned(), |inner, level| {
            if level % 2 == 0 { format!("[{inner}]") } else { format!(r#"{{"a":{inner}}}"#) }
        })
    }

    #[test]
    fn a_field_is_read_up_to_its_depth_and_not_at_all_beyond() {
        assert_eq!(object(&nested(super::LEVELS_MAX), "null").sops.to_string(), nested(super::LEVELS_MAX));
        assert!(object(&nested(super::LEVELS_MAX + 1), "null").sops.is_null());
        assert!(object(&format!("[{},2]", nested(100_000)), "null").sops.is_null());
    }

    #[test]
    fn every_kind_of_value_is_kept() {
        let text = r#"{"a":[true,null,-1,18446744073709551615,1.5,"x",{}]}"#;
        assert_eq!(object(text, "null").sops.to_string(), text);
        assert_eq!(object("{}", "null").status, None);
    }

    #[test]
    fn of_the_metadata_only_what_is_used_is_read() {
        let odd = r#"[{"time":"9999-12-31T23:59:59Z"}]"#;
        let text =
            format!(r#"{{"metadata":{{"name":"a","deletionTimestamp":"odd","managedFields":{odd}}}}}"#);
        let metadata = serde_json::from_str::<EncryptedSecret>(&text).unwrap().metadata;
        assert_eq!((metadata.name.as_deref(), metadata.managed_fields), (Some("a"), None));
        assert!(metadata.deletion_timestamp.is_some());
    }

    #[test]
    fn what_is_not_readable_in_a_status_is_not_there() {
        let condition = |type_: &str, time: &str| json!({"type": type_, "status": "True", "reason": "x", "message": "", "lastTransitionTime": time});
        let conditions =
            [condition("odd", "2026-01-01T00:00:00x5Z"), condition("Ready", "2026-01-01T00:00:00Z")];
        let status = json!({"observedGeneration": 3, "conditions": conditions});
        let status = object("{}", &status.to_string()).status.unwrap();
        assert_eq!((status.observed_generation, status.conditions.len()), (Some(3), 1));
        assert_eq!(object("{}", r#"{"observedGeneration":1e30}"#).status, None);
    }
}

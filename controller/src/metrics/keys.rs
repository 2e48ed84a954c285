//! What `/metrics` says about sealing keys, read from the keys at each scrape.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::sealed::keys::{HeldKey, SealingKeys};

/// Reads the keys when asked.
pub(super) struct KeyCollector {
    pub(super) keys: Arc<SealingKeys>,
    pub(super) omit_objects: bool,
}

impl fmt::Debug for KeyCollector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeyCollector")
    }
}

type Labels = Vec<(&'static str, String)>;
type Rows = Vec<(Labels, f64)>;

impl Collector for KeyCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let (set, needed) = (self.keys.snapshot(), self.keys.needed());
        let newest = set.newest().map(|key| key.fingerprint.clone());
        let each = |value: &dyn Fn(&HeldKey) -> f64| -> Rows {
            set.keys.iter().map(|key| (vec![("key", key.name.clone())], value(key))).collect()
        };
        let items = |key: &HeldKey| -> Vec<usize> {
            needed.values().filter_map(|used| used.get(&key.fingerprint).copied()).collect()
        };
        let now = Timestamp::now();
        let mut show = |name: &str, help: &str, rows: Rows| family(&mut encoder, name, help, rows);
        show("lacre_sealing_keys", "Sealing keys that open", vec![(vec![], count(set.keys.len()))])?;
        show(
            "lacre_sealing_key_age_seconds",
            "Age of the key, by the time that orders keys",
            each(&|key| now.duration_since(key.ordered_by).as_secs_f64()),
        )?;
        show(
            "lacre_sealing_key_newest",
            "Whether the key is the one that is sealed for",
            each(&|key| f64::from(u8::from(newest.as_ref() == Some(&key.fingerprint)))),
        )?;
        show(
            "lacre_sealing_key_backed_up",
            "Whether the key is known to be backed up",
            each(&|key| f64::from(u8::from(key.backed_up))),
        )?;
        let expiry = set.keys.iter().filter_map(|key| {
            let until = key.certificate.as_ref()?.not_after().as_second();
            Some((vec![("key", key.name.clone())], until as f64))
        });
        show(
            "lacre_sealing_key_expiry_timestamp_seconds",
            "Until when clients seal for the key",
            expiry.collect(),
        )?;
        show(
            "lacre_sealing_key_items",
            "Items that only open with the key",
            each(&|key| count(items(key).iter().sum())),
        )?;
        show(
            "lacre_sealing_key_objects",
            "SealedSecrets with such items",
            each(&|key| count(items(key).len())),
        )?;
        let mut invalid = BTreeMap::new();
        for problem in &set.problems {
            invalid.insert(problem.secret.clone(), 1.0);
        }
        let invalid = invalid.into_iter().map(|(secret, value)| (vec![("key", secret)], value));
        show("lacre_sealing_key_invalid", "Key Secrets that something is wrong with", invalid.collect())?;
        if self.omit_objects {
            return Ok(());
        }
        let names: BTreeMap<_, _> = set.keys.iter().map(|key| (&key.fingerprint, &key.name)).collect();
        let mut rows = Rows::new();
        for ((namespace, name), used) in &needed {
            for (fingerprint, items) in used {
                let key = names.get(fingerprint).map_or_else(String::new, ToString::to_string);
                let labels = vec![("namespace", namespace.clone()), ("name", name.clone()), ("key", key)];
                rows.push((labels, count(*items)));
            }
        }
        show("lacre_sealed_secret_key_items", "Items of the SealedSecret that need the key", rows)
    }
}

fn family(encoder: &mut DescriptorEncoder<'_>, name: &str, help: &str, rows: Rows) -> Result<(), fmt::Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in rows {
        match labels.is_empty() {
            true => ConstGauge::new(value).encode(metric.encode_family(&NONE)?)?,
            false => ConstGauge::new(value).encode(metric.encode_family(&labels)?)?,
        }
    }
    Ok(())
}

/// The labels of a series without labels.
const NONE: [(&str, &str); 0] = [];

fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::INFINITY, f64::from)
}

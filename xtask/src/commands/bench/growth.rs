//! How lacre's time and memory grow with the number of values.
//!
//! What is linear costs the same per value at every size.

use std::fs::File;
use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::measure::{Sample, least};
use super::{Contestant, Verb, input};

/// Values per file. The last is the most that a document may have.
const SIZES: [usize; 3] = [20_000, 100_000, 500_000];
/// Runs of each, of which the least is taken: all that others do to it makes it more.
const RUNS: usize = 3;

/// What one size took.
pub(super) struct Growth {
    verb: Verb,
    values: usize,
    least: Sample,
}

/// Measures each verb at each size.
pub(super) fn measure(folder: &Path, lacre: &Contestant) -> Result<Vec<Growth>> {
    let mut grown = Vec::new();
    for values in SIZES {
        let plain = folder.join(format!("growing-{values}.yaml"));
        let sealed = folder.join(format!("grown-{values}.yaml"));
        input::write(&plain, values)?;
        lacre.run(Verb::Encrypt, &plain, File::create(&sealed)?)?;
        for (verb, file) in [(Verb::Decrypt, &sealed), (Verb::Encrypt, &plain)] {
            let runs = (0..RUNS).map(|_| lacre.run(verb, file, File::create("/dev/null")?));
            let runs = runs.collect::<Result<Vec<_>>>()?;
            ensure!(!runs.is_empty(), "no run at all");
            grown.push(Growth { verb, values, least: least(&runs) });
        }
    }
    Ok(grown)
}

impl Growth {
    pub(super) fn to_line(&self) -> String {
        let [wall, cpu, peak] = self.per_value();
        let work = format!("{} of {} values", self.verb.name(), self.values);
        format!("{work:<31}{wall:8.2} µs wall {cpu:8.2} µs CPU {peak:8.2} KiB per value")
    }

    pub(super) fn to_json(&self) -> Value {
        let [wall, cpu, peak] = self.per_value();
        let work = format!("{} of {} values", self.verb.name(), self.values);
        json!({"work": work, "wall_us_per_value": wall, "cpu_us_per_value": cpu, "peak_kib_per_value": peak})
    }

    /// Microseconds, microseconds, kibibytes.
    fn per_value(&self) -> [f64; 3] {
        let [wall_ms, cpu_ms, peak_mib] = self.least.figures();
        [wall_ms * 1000.0, cpu_ms * 1000.0, peak_mib * 1024.0].map(|figure| figure / self.values as f64)
    }
}

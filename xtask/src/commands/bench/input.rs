//! The files that are sealed and opened.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Result;

/// Values per group.
const GROUP: usize = 100;

/// Writes a YAML file of so many values, in groups, indented as sops prints it so that its output can be compared.
///
/// Written as it is made: what this process once held in memory would show as peak of the processes it starts.
pub(super) fn write(path: &Path, values: usize) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    for number in 0..values {
        if number % GROUP == 0 {
            writeln!(file, "group_{}:", number / GROUP)?;
        }
        // A multiplier without meaning, for values that neither repeat nor compress.
        let noise = (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        writeln!(file, "    key_{number}: value-{noise:016x}")?;
    }
    Ok(file.flush()?)
}

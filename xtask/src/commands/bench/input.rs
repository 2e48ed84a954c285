//! The files that are sealed and opened.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Result;

/// Values per group.
const GROUP: usize = 100;

/// Writes a file of so many values in the format of its name's ending, YAML or JSON, in groups, laid out as sops prints
/// it so that its output can be compared.
///
/// Written as it is made: what this process once held in memory would show as peak of the processes it starts.
pub(super) fn write(path: &Path, values: usize) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    match path.extension().is_some_and(|ending| ending == "json") {
        true => json(&mut file, values)?,
        false => yaml(&mut file, values)?,
    }
    Ok(file.flush()?)
}

fn yaml(file: &mut impl Write, values: usize) -> Result<()> {
    for number in 0..values {
        if number % GROUP == 0 {
            writeln!(file, "group_{}:", number / GROUP)?;
        }
        writeln!(file, "    key_{number}: {}", value(number))?;
    }
    Ok(())
}

fn json(file: &mut impl Write, values: usize) -> Result<()> {
    write!(file, "{{")?;
    for number in 0..values {
        match (number, number % GROUP) {
            (0, _) => write!(file, "\n\t\"group_0\": {{")?,
            (_, 0) => write!(file, "\n\t}},\n\t\"group_{}\": {{", number / GROUP)?,
            _ => write!(file, ",")?,
        }
        write!(file, "\n\t\t\"key_{number}\": \"{}\"", value(number))?;
    }
    writeln!(file, "\n\t}}\n}}")?;
    Ok(())
}

/// A multiple without meaning, for values that neither repeat nor compress.
fn value(number: usize) -> String {
    format!("value-{:016x}", (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

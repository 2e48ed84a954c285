//! One process, measured: wall clock, processor time, peak memory.
//!
//! The kernel's own account of the child (`wait4`), since `time` rounds to 10 ms, which is longer than what is measured.
//! The kernel counts the memory of whoever starts a process as part of its peak, so nothing below our own is seen.

use std::fs;
use std::io::Read;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::Pid;
use serde_json::{Value, json};
use wait4::Wait4;

/// Width of the column that says what was done.
pub(super) const WORK_CHARS: usize = 38;

/// In which the kernel tells the times of processes, whatever its own clock does.
const TICKS_PER_SECOND: u64 = 100;

/// What one process took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    wall: Duration,
    cpu: Duration,
    peak_bytes: u64,
}

/// Medians of both programs for one kind of work.
#[derive(Debug)]
pub(super) struct Comparison {
    names: [&'static str; 2],
    work: String,
    /// Milliseconds, milliseconds, mebibytes; of the first program, then the second.
    medians: [[f64; 2]; 3],
}

/// Runs `command` to its end.
pub(super) fn sample(mut command: Command) -> Result<Sample> {
    let start = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let mut errors = String::new();
    if let Some(mut pipe) = child.stderr.take() {
        pipe.read_to_string(&mut errors)?;
    }
    let end = child.wait4()?;
    let wall = start.elapsed();
    ensure!(end.status.success(), "{command:?} ended with {}:\n{errors}", end.status);
    Ok(Sample { wall, cpu: end.rusage.utime + end.rusage.stime, peak_bytes: end.rusage.maxrss })
}

/// What a process that still runs took since `start`, so far.
///
/// By the kernel's ticks of 10 ms, which is little beside what such a process takes.
pub(super) fn running(start: Instant, pid: Pid) -> Result<Sample> {
    let wall = start.elapsed();
    let folder = format!("/proc/{}", pid.as_raw_nonzero());
    let stat = fs::read_to_string(format!("{folder}/stat"))?;
    // After the name, which may have spaces: state is the third field, the two times are the 14th and the 15th.
    let (_, fields) = stat.rsplit_once(')').context("no name in the account of a process")?;
    let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
    let ticks = ticks.sum::<Result<u64, _>>()?;
    let cpu = Duration::from_millis(1000 * ticks / TICKS_PER_SECOND);
    Ok(Sample { wall, cpu, peak_bytes: peak_kib(&format!("{folder}/status"))? * 1024 })
}

/// The least of each figure.
pub(super) fn least(samples: &[Sample]) -> Sample {
    let wall = samples.iter().map(|sample| sample.wall).min().unwrap_or_default();
    let cpu = samples.iter().map(|sample| sample.cpu).min().unwrap_or_default();
    let peak_bytes = samples.iter().map(|sample| sample.peak_bytes).min().unwrap_or_default();
    Sample { wall, cpu, peak_bytes }
}

/// The peak of this process: no smaller one can be told from it.
pub(super) fn floor_mib() -> Result<f64> {
    Ok(peak_kib("/proc/self/status")? as f64 / 1024.0)
}

fn peak_kib(status: &str) -> Result<u64> {
    let status = fs::read_to_string(status)?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

impl Sample {
    /// Milliseconds of wall clock, milliseconds of processor time, mebibytes.
    pub(super) fn figures(&self) -> [f64; 3] {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        [ms(self.wall), ms(self.cpu), self.peak_bytes as f64 / 1_048_576.0]
    }
}

impl Comparison {
    /// Of the two programs of these names.
    pub(super) fn of(names: [&'static str; 2], work: String, samples: [Vec<Sample>; 2]) -> Self {
        let of = |figure: usize| {
            samples.each_ref().map(|taken| median(taken.iter().map(|sample| sample.figures()[figure])))
        };
        Self { names, work, medians: [of(0), of(1), of(2)] }
    }

    pub(super) fn to_line(&self) -> String {
        let columns =
            self.medians.iter().map(|[ours, theirs]| format!("{ours:8.1}{theirs:8.1}{:8.1}", theirs / ours));
        format!("{:<WORK_CHARS$}{}", self.work, columns.collect::<String>())
    }

    pub(super) fn to_json(&self) -> Value {
        let [us, them] = self.names;
        let medians = |[ours, theirs]: [f64; 2]| json!({us: ours, them: theirs, "ratio": theirs / ours});
        let [wall, cpu, peak] = self.medians;
        json!({
            "work": self.work,
            "wall_ms": medians(wall),
            "cpu_ms": medians(cpu),
            "peak_mib": medians(peak),
        })
    }
}

/// The middle, or between the two middles.
pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        even if even % 2 == 0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::{median, sample};
    use std::process::Command;

    #[test]
    fn the_median_is_the_middle_or_between_the_two_middles() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
    }

    #[test]
    fn a_process_is_measured() {
        let taken = sample(Command::new("true")).unwrap();
        assert!(taken.wall > taken.cpu / 2 && taken.peak_bytes > 0, "{taken:?}");
    }

    #[test]
    fn a_failing_process_is_no_sample() {
        assert!(sample(Command::new("false")).is_err());
    }
}

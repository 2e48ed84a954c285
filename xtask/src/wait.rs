//! Waiting for a state, with a deadline: no test sleeps and hopes.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Looks until `probe` has an answer.
///
/// `what` completes the sentence "waited … for". An error of the probe ends the wait at once; `Ok(None)` means
/// "not yet".
///
/// # Errors
/// That of the probe, or that the deadline passed.
pub fn until<T>(deadline: Duration, what: &str, mut probe: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(found) = probe()? {
            return Ok(found);
        }
        if start.elapsed() >= deadline {
            bail!("waited {} s in vain for {what}", deadline.as_secs());
        }
        std::thread::sleep(PAUSE);
    }
}

//! How often one client may ask: the generic cell rate algorithm, with the same figures in the same headers as Sealed
//! Secrets gives.
//!
//! A client has a *theoretical arrival time*: when its requests so far would have arrived had they come at the steady
//! rate. A request may come before that by what the burst allows, and moves it on by one interval.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most clients that are remembered. Beyond it, those that have not asked for the longest are forgotten, so that nobody
/// can fill the memory with invented names.
const CLIENTS_MAX: usize = 65_536;

/// Bounds requests by client.
pub struct RateLimit {
    interval: Duration,
    burst: u32,
    arrivals: Mutex<HashMap<String, Instant>>,
}

/// What became of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Requests that may come at once after a pause.
    pub limit: u32,
    /// Requests that may still come at once.
    pub remaining: u32,
    /// Seconds until all may come at once again.
    pub reset_seconds: u64,
    /// Seconds after which a refused client may ask again; nothing for a request that is taken.
    pub retry_after_seconds: Option<u64>,
}

impl RateLimit {
    /// Takes `rate` requests per second from each client in the long run, at least one, and `burst` more at once.
    pub fn new(rate: u32, burst: u32) -> Self {
        Self { interval: Duration::from_secs(1) / rate.max(1), burst, arrivals: Mutex::default() }
    }

    /// Judges a request that `client` makes `now`.
    pub fn judge(&self, client: &str, now: Instant) -> Verdict {
        let tolerance = self.interval * (self.burst + 1);
        let mut arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        if arrivals.len() >= CLIENTS_MAX && !arrivals.contains_key(client) {
            make_room(&mut arrivals, now);
        }
        let arrival = arrivals.get(client).copied().filter(|arrival| *arrival > now).unwrap_or(now);
        let next = arrival + self.interval;
        let ahead = next - now;
        if ahead > tolerance {
            return self.verdict(arrival - now, Some(ahead - tolerance), tolerance);
        }
        arrivals.insert(client.to_owned(), next);
        self.verdict(ahead, None, tolerance)
    }

    fn verdict(&self, ahead: Duration, retry: Option<Duration>, tolerance: Duration) -> Verdict {
        let left = tolerance.saturating_sub(ahead).as_nanos() / self.interval.as_nanos().max(1);
        Verdict {
            limit: self.burst + 1,
            remaining: u32::try_from(left).unwrap_or(u32::MAX),
            reset_seconds: seconds_up(ahead),
            retry_after_seconds: retry.map(seconds_up),
        }
    }
}

/// Forgets clients whose time is over, and if that is too little, half of all, those first that asked longest ago.
fn make_room(arrivals: &mut HashMap<String, Instant>, now: Instant) {
    arrivals.retain(|_, arrival| *arrival > now);
    if arrivals.len() >= CLIENTS_MAX {
        let mut times: Vec<_> = arrivals.values().copied().collect();
        let (_, median, _) = times.select_nth_unstable(CLIENTS_MAX / 2);
        let median = *median;
        arrivals.retain(|_, arrival| *arrival > median);
    }
}

fn seconds_up(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_taken_and_then_the_steady_rate() {
        let (limit, start) = (RateLimit::new(2, 2), Instant::now());
        let at = |millis| limit.judge("a", start + Duration::from_millis(millis));
        let taken = |remaining, reset_seconds| Verdict {
            limit: 3,
            remaining,
            reset_seconds,
            retry_after_seconds: None,
        };
        assert_eq!([at(0), at(0), at(0)], [taken(2, 1), taken(1, 1), taken(0, 2)]);
        let refused = Verdict { retry_after_seconds: Some(1), ..taken(0, 2) };
        assert_eq!([at(0), at(400)], [refused, Verdict { reset_seconds: 2, ..refused }]);
        assert_eq!(at(500), taken(0, 2));
        assert_eq!(at(10_000), taken(2, 1));
    }

    #[test]
    fn clients_do_not_take_from_each_other() {
        let (limit, now) = (RateLimit::new(1, 0), Instant::now());
        assert_eq!(limit.judge("a", now).retry_after_seconds, None);
        assert_eq!(limit.judge("a", now).retry_after_seconds, Some(1));
        assert_eq!(limit.judge("b", now).retry_after_seconds, None);
    }

    #[test]
    fn invented_clients_do_not_fill_the_memory() {
        let (limit, now) = (RateLimit::new(1, 10), Instant::now());
        for number in 0..CLIENTS_MAX + 10 {
            limit.judge(&number.to_string(), now);
        }
        assert!(limit.arrivals.lock().unwrap().len() <= CLIENTS_MAX);
    }
}

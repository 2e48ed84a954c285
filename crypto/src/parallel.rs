//! Work over the leaves of large documents, divided among the processors.
//!
//! Each part is a range of indices, and the results come in the order of the parts: what the caller puts together is what
//! one thread would have made. Threads end before the call does. What they hold of secrets is in the types of
//! [`crate::secret`], as everywhere.

use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

/// Fewest items that are worth a thread: below, starting it takes longer than what it saves.
const PART_MIN: usize = 2_000;
/// Most threads. Beyond, the steps that are not divided are all that counts.
const PARTS_MAX: usize = 8;

/// What `work` gives for each part of `0..count`.
pub(crate) fn by_parts<T: Send>(count: usize, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    divided(count, count / PART_MIN, work)
}

/// As [`by_parts`] for items each of which is worth a thread: an RSA operation takes as long as starting a hundred.
#[cfg(feature = "sealed-secrets")]
pub(crate) fn by_processors<T: Send>(count: usize, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    divided(count, count, work)
}

fn divided<T: Send>(count: usize, parts: usize, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let parts = parts.clamp(1, processors.min(PARTS_MAX));
    let part = |number: usize| count * number / parts..count * (number + 1) / parts;
    let work = &work;
    thread::scope(|scope| {
        let others: Vec<_> = (1..parts).map(|number| scope.spawn(move || work(part(number)))).collect();
        let first = work(part(0));
        let others =
            others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        std::iter::once(first).chain(others).collect()
    })
}

/// What both give, at the same time when `count`, a measure of the work, is worth it.
pub(crate) fn both<A, B: Send>(
    count: usize,
    here: impl FnOnce() -> A,
    beside: impl FnOnce() -> B + Send,
) -> (A, B) {
    if count < PART_MIN {
        return (here(), beside());
    }
    thread::scope(|scope| {
        let other = scope.spawn(beside);
        let first = here();
        (first, other.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_everything_once_and_in_order() {
        for count in [0, 1, PART_MIN - 1, PART_MIN, 2 * PART_MIN + 1, 100 * PART_MIN + 7] {
            let parts = by_parts(count, Vec::from_iter);
            assert!(parts.len() <= PARTS_MAX);
            assert!(parts.concat().into_iter().eq(0..count), "{count}");
        }
    }

    #[test]
    fn both_give_their_results_whatever_the_size() {
        for count in [0, PART_MIN] {
            assert_eq!(both(count, || 1, || "b"), (1, "b"));
        }
    }
}

//! The fuzz targets for a moment, on changed copies of the documents. The long run is `cargo xtask fuzz`.

use std::fs;

use crate::documents::documents;

#[path = "../../fuzz/src/targets.rs"]
mod targets;

/// Inputs for each target.
const INPUTS: usize = 300;

/// Documents above this length take the time of a hundred others.
const SEED_BYTES_MAX: usize = 2048;

/// What the formats give a meaning to.
const SIGNS: &[u8] = b" \t\n\r:#-[]{}&*!|>'\"%@`,?=\\\0";

/// A fixed sequence (xorshift), so that a failure comes back.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (end as u64)).unwrap()
    }

    /// `seed` with a few bytes replaced, taken out, doubled, or taken from `other`.
    fn changed(&mut self, seed: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len() + 1);
            let end = (at + self.below(12)).min(bytes.len());
            match self.below(5) {
                0 => drop(bytes.drain(at..end)),
                1 => {
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
                2 => bytes.insert(at, SIGNS[self.below(SIGNS.len())]),
                3 if !other.is_empty() => {
                    let from = self.below(other.len());
                    let to = (from + self.below(40)).min(other.len());
                    bytes.splice(at..end, other[from..to].iter().copied());
                }
                _ if at < bytes.len() => bytes[at] = u8::try_from(self.below(256)).unwrap(),
                _ => {}
            }
        }
        bytes
    }
}

#[test]
fn no_input_breaks_a_target() {
    let seeds: Vec<(String, Vec<u8>)> = documents()
        .iter()
        .map(|path| (path.extension().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap()))
        .filter(|(_, bytes)| bytes.len() <= SEED_BYTES_MAX)
        .collect();
    std::thread::scope(|scope| {
        for (name, target) in targets::ALL {
            let ending = match *name {
                "dotenv" => "env",
                other => other.rsplit('-').next().unwrap(),
            };
            let fitting: Vec<&[u8]> =
                seeds.iter().filter(|(of, _)| of == ending).map(|(_, bytes)| bytes.as_slice()).collect();
            let all: Vec<&[u8]> = seeds.iter().map(|(_, bytes)| bytes.as_slice()).collect();
            let seeds = if fitting.is_empty() { all } else { fitting };
            scope.spawn(move || {
                let mut sequence = Sequence(0x9e37_79b9_7f4a_7c15);
                for _ in 0..INPUTS {
                    let (seed, other) =
                        (seeds[sequence.below(seeds.len())], seeds[sequence.below(seeds.len())]);
                    target(&sequence.changed(seed, other));
                }
            });
        }
    });
}

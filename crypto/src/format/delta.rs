//! The difference between the default spelling of a value and the one that the author chose.
//!
//! A delta is a list of edits to the default spelling, each an offset in bytes, a number of bytes to drop there and
//! the text to put in their place. Folded scalars need an edit per line break and nothing per word.

use serde::{Deserialize, Serialize};

/// One edit: offset into the default spelling in bytes, bytes to drop, text to insert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Edit(pub(crate) usize, pub(crate) usize, pub(crate) String);

/// Edits in order of their offsets, which do not overlap.
pub(crate) type Delta = Vec<Edit>;

/// How far ahead, in characters, the two spellings are searched for the same run.
const LOOKAHEAD: usize = 24;
/// How many characters must agree for a run to count.
const RUN: usize = 6;

/// The edits that turn `default` into `author`; linear in their length.
pub(crate) fn delta(default: &str, author: &str) -> Delta {
    let (from, to): (Vec<char>, Vec<char>) = (default.chars().collect(), author.chars().collect());
    let mut edits = Delta::new();
    let (mut i, mut j, mut offset) = (0, 0, 0);
    while i < from.len() || j < to.len() {
        if i < from.len() && j < to.len() && from[i] == to[j] {
            offset += from[i].len_utf8();
            (i, j) = (i + 1, j + 1);
            continue;
        }
        let (dropped, added) = next_run(&from[i..], &to[j..]);
        let length = from[i..i + dropped].iter().map(|character| character.len_utf8()).sum();
        edits.push(Edit(offset, length, to[j..j + added].iter().collect()));
        offset += length;
        (i, j) = (i + dropped, j + added);
    }
    edits
}

/// The least number of characters to drop and to add until both sides agree again; all of them when they never do.
fn next_run(from: &[char], to: &[char]) -> (usize, usize) {
    for distance in 1..=LOOKAHEAD * 2 {
        for dropped in distance.saturating_sub(LOOKAHEAD)..=distance.min(LOOKAHEAD) {
            let added = distance - dropped;
            let (Some(rest), Some(other)) = (from.get(dropped..), to.get(added..)) else { continue };
            let run = RUN.min(rest.len().max(other.len()));
            if run > 0 && rest.len() >= run && other.len() >= run && rest[..run] == other[..run] {
                return (dropped, added);
            }
            if rest.is_empty() && other.is_empty() {
                return (dropped, added);
            }
        }
    }
    (from.len(), to.len())
}

/// `default` with the edits made; nothing when they do not fit it.
pub(crate) fn apply(default: &str, delta: &Delta) -> Option<String> {
    let mut text = String::with_capacity(default.len());
    let mut copied = 0;
    for Edit(offset, dropped, added) in delta {
        text.push_str(default.get(copied..*offset)?);
        text.push_str(added);
        copied = offset.checked_add(*dropped)?;
    }
    text.push_str(default.get(copied..)?);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deltas_bring_back_the_author_s_spelling() {
        let cases = [
            ("31", "0x1F"),
            ("1.1", "1.10"),
            ("\"é\"", "\"\\u00e9\""),
            (">\n  some words and more words\n", ">\n  some words\n  and more\n  words\n"),
            ("", "x"),
            ("x", ""),
            ("2024-01-02T00:00:00Z", "2024-01-02"),
            ("same", "same"),
        ];
        for (default, author) in cases {
            let edits = delta(default, author);
            assert_eq!(apply(default, &edits).as_deref(), Some(author), "{edits:?}");
        }
    }

    #[test]
    fn a_folded_text_costs_its_breaks_only() {
        let words: Vec<String> = (0..2000).map(|number| format!("word{number}")).collect();
        let edits = delta(
            &words.join(" "),
            &words.chunks(8).map(|line| line.join(" ")).collect::<Vec<_>>().join("\n  "),
        );
        let added: usize = edits.iter().map(|Edit(_, _, text)| text.len()).sum();
        assert_eq!((edits.len(), added), (249, 249 * 2));
    }

    #[test]
    fn edits_that_do_not_fit_are_refused() {
        assert_eq!(apply("ab", &vec![Edit(3, 0, String::new())]), None);
        assert_eq!(apply("ab", &vec![Edit(1, usize::MAX, String::new())]), None);
        assert_eq!(apply("ab", &vec![Edit(1, 0, "x".into()), Edit(0, 1, "y".into())]), None);
        assert_eq!(apply("é", &vec![Edit(1, 0, String::new())]), None);
    }

    proptest::proptest! {
        #[test]
        fn every_pair_round_trips(default in ".{0,60}", author in ".{0,60}") {
            let edits = delta(&default, &author);
            proptest::prop_assert_eq!(apply(&default, &edits), Some(author));
        }
    }
}

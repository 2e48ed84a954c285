//! Writing into a text without printing it anew: places of it are replaced.

use std::ops::Range;

/// `text` with each place replaced. Places must not overlap; they are put into text order here.
pub fn splice<T: AsRef<str>>(text: &str, mut replacements: Vec<(Range<usize>, T)>) -> String {
    in_order(&mut replacements, |place| (place.start, place.end));
    // Exactly as much as is needed: all of it is wiped in the end.
    let added: usize = replacements.iter().map(|(_, new)| new.as_ref().len()).sum();
    let removed: usize = replacements.iter().map(|(place, _)| place.len()).sum();
    let mut spliced = String::with_capacity((text.len() + added).saturating_sub(removed));
    let mut copied = 0;
    for (place, new) in replacements {
        debug_assert!(copied <= place.start, "places overlap at byte {}", place.start);
        spliced.push_str(&text[copied..place.start]);
        spliced.push_str(new.as_ref());
        copied = place.end;
    }
    spliced.push_str(&text[copied..]);
    spliced
}

/// Sorts by `key` what is in order most often: sorting takes room for half of it even then.
pub(crate) fn in_order<T, K: Ord>(replacements: &mut [(Range<usize>, T)], key: impl Fn(&Range<usize>) -> K) {
    if !replacements.is_sorted_by_key(|(place, _)| key(place)) {
        replacements.sort_by_key(|(place, _)| key(place));
    }
}

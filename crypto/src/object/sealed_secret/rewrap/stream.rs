//! The values of a text: one for YAML, whose reader knows streams itself; each of those that follow each other in JSON.

use std::ops::Range;

use serde::de::IgnoredAny;

use crate::format::Format;

/// The parts of `text` that hold a value each. What cannot be cut is one part, and its reader says what is wrong.
pub(super) fn parts(text: &str, format: Format) -> Vec<Range<usize>> {
    let whole = || std::iter::once(0..text.len()).collect();
    if format != Format::Json {
        return whole();
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let mut parts = Vec::new();
    let mut start = 0;
    while let Some(value) = values.next() {
        if value.is_err() {
            // From here to the end: the reader names the place.
            parts.push(start..text.len());
            return parts;
        }
        let end = values.byte_offset();
        parts.push(start..end);
        start = end;
    }
    match parts.is_empty() {
        true => whole(),
        false => parts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_follow_each_other_are_cut_between_them() {
        let cut = |text: &str| {
            let parts = parts(text, Format::Json).into_iter();
            parts.map(|part| text[part].trim().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(cut("{\"a\": 1}\n{\"b\": 2}\n"), ["{\"a\": 1}", "{\"b\": 2}"]);
        assert_eq!(cut("{}{}"), ["{}", "{}"]);
        assert_eq!(cut("{\"a\": 1} x {}"), ["{\"a\": 1}", "x {}"]);
        assert_eq!(cut(""), [""]);
    }
}

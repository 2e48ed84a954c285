//! A `path_regex`: searched in a file's path, as Go's regexp package would.
//!
//! Compiling it as a selector refuses what Go refuses. What is left compiles in the `regex` crate with the same
//! meaning for the syntax that paths need; the few forms in which both differ (`\Q…\E`, octal escapes, set operations
//! in classes) are refused here or name characters that do not occur in paths.

use lacre_crypto::{Selector, SelectorKind};
use regex::Regex;

/// A pattern for paths that compiled.
#[derive(Debug)]
pub(crate) struct PathPattern(Regex);

impl PathPattern {
    /// Compiles `pattern`, or says what is wrong with it.
    pub(crate) fn new(pattern: &str) -> Result<Self, String> {
        let plain = |error: regex::Error| error.to_string().lines().last().unwrap_or_default().to_owned();
        let regex = Regex::new(pattern).map_err(plain)?;
        Selector::new(SelectorKind::EncryptedRegex, pattern)
            .map_err(|_| "Go does not accept it".to_owned())?;
        Ok(Self(regex))
    }

    /// Whether it is found anywhere in `path`.
    pub(crate) fn is_match(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_search_and_broken_ones_are_refused() {
        let found = |pattern: &str, path: &str| PathPattern::new(pattern).unwrap().is_match(path);
        assert!(found("prod/", "a/prod/b.yaml") && !found("^prod/", "a/prod/b.yaml"));
        for pattern in ["(", "a(?!b)", "a**", "[", "(?x) a"] {
            assert!(PathPattern::new(pattern).is_err(), "{pattern}");
        }
    }
}

//! Which leaves are sealed: one of six rules, as stock tools evaluate them.
//!
//! Suffixes and patterns look at each single key of a value's address, and a hit on any of them decides for all that
//! is below. Comment rules look at the comments seen since the last value, at every level around it.

use regex::Regex;

use crate::document::{Document, Event};

pub(crate) mod go_regex;

/// The six rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelectorKind {
    /// Sealed is what a matching comment stands before.
    EncryptedCommentRegex,
    /// Sealed is what a matching key is at or above.
    EncryptedRegex,
    /// Sealed is what a key with that ending is at or above.
    EncryptedSuffix,
    /// Clear is what a matching comment stands before.
    UnencryptedCommentRegex,
    /// Clear is what a matching key is at or above.
    UnencryptedRegex,
    /// Clear is what a key with that ending is at or above.
    UnencryptedSuffix,
}

impl SelectorKind {
    /// All of them, in alphabetical order of their fields.
    pub const ALL: [Self; 6] = [
        Self::EncryptedCommentRegex,
        Self::EncryptedRegex,
        Self::EncryptedSuffix,
        Self::UnencryptedCommentRegex,
        Self::UnencryptedRegex,
        Self::UnencryptedSuffix,
    ];

    /// Name of the field that holds it, in the `sops` block and in configuration.
    pub fn field(self) -> &'static str {
        match self {
            Self::EncryptedCommentRegex => "encrypted_comment_regex",
            Self::EncryptedRegex => "encrypted_regex",
            Self::EncryptedSuffix => "encrypted_suffix",
            Self::UnencryptedCommentRegex => "unencrypted_comment_regex",
            Self::UnencryptedRegex => "unencrypted_regex",
            Self::UnencryptedSuffix => "unencrypted_suffix",
        }
    }

    fn is_pattern(self) -> bool {
        !matches!(self, Self::EncryptedSuffix | Self::UnencryptedSuffix)
    }

    fn is_about_comments(self) -> bool {
        matches!(self, Self::EncryptedCommentRegex | Self::UnencryptedCommentRegex)
    }

    /// Whether a hit means sealed.
    fn seals(self) -> bool {
        matches!(self, Self::EncryptedCommentRegex | Self::EncryptedRegex | Self::EncryptedSuffix)
    }
}

/// A pattern in Go's RE2 syntax, for whatever else of stock tools' configuration is one.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles `text`.
    ///
    /// # Errors
    /// [`SelectorError`] for a pattern that Go would refuse, naming `field`, the place it comes from.
    pub fn new(field: &'static str, text: &str) -> Result<Self, SelectorError> {
        let failed = |reason| SelectorError { field, pattern: text.to_owned(), reason };
        go_regex::compile(text).map(Self).map_err(failed)
    }

    /// Whether it is found anywhere in `text`.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// A pattern that does not mean anything. Other tools would silently match nothing.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{field}: `{pattern}` is not a pattern: {reason}")]
pub struct SelectorError {
    field: &'static str,
    pattern: String,
    reason: String,
}

/// One rule with its suffix or pattern.
#[derive(Clone, Debug)]
pub struct Selector {
    kind: SelectorKind,
    text: String,
    pattern: Option<Pattern>,
}

impl Default for Selector {
    /// The rule of a file that names none: everything but keys that end in `_unencrypted`.
    fn default() -> Self {
        Self { kind: SelectorKind::UnencryptedSuffix, text: "_unencrypted".to_owned(), pattern: None }
    }
}

impl std::fmt::Display for Selector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}: {}", self.kind.field(), self.text)
    }
}

impl Selector {
    /// A rule. Patterns are in Go's RE2 syntax and search, they need not match the whole key.
    ///
    /// # Errors
    /// [`SelectorError`] for a pattern that does not compile.
    pub fn new(kind: SelectorKind, text: &str) -> Result<Self, SelectorError> {
        let pattern = kind.is_pattern().then(|| Pattern::new(kind.field(), text)).transpose()?;
        Ok(Self { kind, text: text.to_owned(), pattern })
    }

    /// Which rule.
    pub fn kind(&self) -> SelectorKind {
        self.kind
    }

    /// Its suffix or pattern.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it looks at comments and not at keys.
    pub fn is_about_comments(&self) -> bool {
        self.kind.is_about_comments()
    }

    /// For each leaf whether it is to be sealed. `comments` has the clear text of each leaf that is a comment, since
    /// in a sealed document it does not stand there.
    pub(crate) fn select(
        &self,
        document: &Document,
        comments: &dyn Fn(usize) -> Option<String>,
    ) -> Vec<bool> {
        if self.is_about_comments() { self.by_comments(document, comments) } else { self.by_keys(document) }
    }

    fn hits(&self, text: &str) -> bool {
        match &self.pattern {
            Some(pattern) => pattern.is_match(text),
            None => text.ends_with(&self.text),
        }
    }

    fn by_keys(&self, document: &Document) -> Vec<bool> {
        let mut hit = vec![false; document.paths.ids().count()];
        for path in document.paths.ids() {
            if let Some((parent, key)) = document.paths.split(path) {
                hit[path.index()] = hit[parent.index()] || self.hits(key);
            }
        }
        document.leaves.iter().map(|leaf| hit[leaf.path.index()] == self.kind.seals()).collect()
    }

    fn by_comments(&self, document: &Document, comments: &dyn Fn(usize) -> Option<String>) -> Vec<bool> {
        let mut selected = vec![!self.kind.seals(); document.leaves.len()];
        // Whether a matching comment was seen at each level since its last value.
        let mut levels = vec![false];
        for event in &document.events {
            match event {
                Event::Document => levels = vec![false],
                Event::Map(_) | Event::List(_) => levels.push(false),
                Event::End => {
                    levels.pop();
                    levels.last_mut().into_iter().for_each(|level| *level = false);
                }
                Event::Key(_) => {}
                Event::Leaf(index) => {
                    let text = comments(*index);
                    let before = levels.contains(&true);
                    match text {
                        Some(text) => {
                            let matches = self.hits(&text);
                            selected[*index] = self.comment(before, matches);
                            levels.last_mut().into_iter().for_each(|level| *level |= matches);
                        }
                        None => {
                            selected[*index] = before == self.kind.seals();
                            levels.last_mut().into_iter().for_each(|level| *level = false);
                        }
                    }
                }
            }
        }
        selected
    }

    /// A comment that matches stays clear under either rule; others go with what they stand before.
    fn comment(&self, before: bool, matches: bool) -> bool {
        match self.kind.seals() {
            true => before,
            false => !(before || matches),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;

    fn sealed_lines(kind: SelectorKind, text: &str, pattern: &str) -> Vec<String> {
        let document = Document::read(text, Format::Yaml).unwrap();
        let comments = |index: usize| {
            let leaf = &document.leaves[index];
            leaf.is_comment().then(|| leaf.value.as_text().unwrap().to_owned())
        };
        let selected = Selector::new(kind, pattern).unwrap().select(&document, &comments);
        let sealed = document.leaves.iter().zip(selected).filter(|(_, sealed)| *sealed);
        sealed.map(|(leaf, _)| leaf.value.as_text().unwrap().trim().to_owned()).collect()
    }

    #[test]
    fn a_hit_on_any_key_decides_for_all_below() {
        let text =
            "# top\nmetadata: {name: n, data: inner}\ndata:\n  # why\n  p: s\n  q: {name: deep}\nmydata: t\n";
        let sealed = sealed_lines(SelectorKind::EncryptedRegex, text, "^(data|stringData)$");
        assert_eq!(sealed, ["inner", "why", "s", "deep"]);
        let sealed = sealed_lines(SelectorKind::UnencryptedSuffix, "a_x: {b: 1}\nc: 2\n", "_x");
        assert_eq!(sealed, ["2"]);
    }

    #[test]
    fn comments_decide_for_the_value_that_follows() {
        let text = "# seal\n# more\na: 1\nb: 2\n# seal\nc: {d: 3, e: 4}\nf: 5\n";
        assert_eq!(sealed_lines(SelectorKind::EncryptedCommentRegex, text, "seal"), ["more", "1", "3", "4"]);
        assert_eq!(sealed_lines(SelectorKind::UnencryptedCommentRegex, text, "seal"), ["2", "5"]);
    }
}

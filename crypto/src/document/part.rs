//! A part of a text without a copy of it: a key's name as it stands in a document, one of many sealed texts.

use std::fmt;
use std::ops::Deref;

use crate::secret::SecretText;

/// A part of a larger text, or a text of its own.
#[derive(Clone)]
pub struct TextPart {
    whole: SecretText,
    start: u32,
    end: u32,
}

impl TextPart {
    /// `part`, without a copy when it is a part of `text`.
    pub(crate) fn of(text: &SecretText, part: &str) -> Self {
        match text.place_of(part) {
            Some((start, end)) => Self { whole: text.clone(), start, end },
            None => Self::from(part),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.whole.expose_secret()[self.start as usize..self.end as usize]
    }
}

impl From<&str> for TextPart {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<String> for TextPart {
    fn from(text: String) -> Self {
        let end =
            u32::try_from(text.len()).expect("it is made of a part of a document, and these are limited");
        Self { whole: SecretText::new(text), start: 0, end }
    }
}

impl Deref for TextPart {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for TextPart {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for TextPart {}

impl PartialEq<str> for TextPart {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for TextPart {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Debug for TextPart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(formatter)
    }
}

impl fmt::Display for TextPart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

//! The path syntax of stock tools: keys and positions in brackets.

use crate::document::BLOCK_KEY;
use crate::error::PathError;

/// A way from the root to a value: keys and positions, as in `["a"][0]['b']`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreePath(pub(super) Vec<Step>);

/// One key or position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Index(usize),
    Key(String),
}

impl TreePath {
    /// Reads the path syntax of stock tools, with `\` before a quote or a backslash inside a key.
    ///
    /// # Errors
    /// [`PathError`] saying what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let mut steps = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let inner = rest
                .strip_prefix('[')
                .ok_or_else(|| PathError("each key or position stands in brackets".into()))?;
            let (step, after) = match inner.chars().next() {
                Some(quote @ ('"' | '\'')) => quoted_key(&inner[1..], quote)?,
                _ => index(inner)?,
            };
            steps.push(step);
            let after =
                after.strip_prefix(']').ok_or_else(|| PathError("a `[` of the path is not closed".into()))?;
            rest = after;
        }
        match steps.first() {
            None => Err(PathError("the path is empty".into())),
            Some(Step::Key(key)) if key == BLOCK_KEY => {
                Err(PathError("the path leads into the sops block".into()))
            }
            Some(_) => Ok(Self(steps)),
        }
    }

    /// The document that it starts in, and the steps from that one's root. Every root is a mapping, so that a position
    /// in front of other steps can only be a document's.
    pub(crate) fn start(&self) -> (usize, &[Step]) {
        match self.0.split_first() {
            Some((Step::Index(document), steps)) if !steps.is_empty() => (*document, steps),
            _ => (0, &self.0),
        }
    }
}

fn quoted_key(text: &str, quote: char) -> Result<(Step, &str), PathError> {
    let mut key = String::new();
    let mut characters = text.char_indices();
    while let Some((offset, next)) = characters.next() {
        match next {
            '\\' => match characters.next() {
                Some((_, escaped @ ('"' | '\'' | '\\'))) => key.push(escaped),
                Some((_, other)) => key.extend(['\\', other]),
                None => break,
            },
            _ if next == quote => return Ok((Step::Key(key), &text[offset + 1..])),
            _ => key.push(next),
        }
    }
    Err(PathError("a key of the path is not closed".into()))
}

fn index(text: &str) -> Result<(Step, &str), PathError> {
    let digits = text.find(|next: char| !next.is_ascii_digit()).unwrap_or(text.len());
    let number = text[..digits]
        .parse()
        .map_err(|_| PathError("between brackets stand a quoted key or a number".into()))?;
    Ok((Step::Index(number), &text[digits..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_as_stock_tools_write_them() {
        let key = |key: &str| Step::Key(key.to_owned());
        let cases = [
            (r#"["a"]"#, vec![key("a")]),
            (r#"["a"][0]['b c']"#, vec![key("a"), Step::Index(0), key("b c")]),
            (r#"["a[0]"]["q\"uote"]"#, vec![key("a[0]"), key("q\"uote")]),
        ];
        for (text, steps) in cases {
            assert_eq!(TreePath::parse(text).unwrap().0, steps, "{text}");
        }
    }

    #[test]
    fn other_paths_are_refused() {
        for text in
            ["", "a", "[a]", "[\"a\"", "[\"a]", "[\"sops\"]", "[\"a\"]b", "[-1]", "[99999999999999999999]"]
        {
            assert!(TreePath::parse(text).is_err(), "{text}");
        }
    }
}

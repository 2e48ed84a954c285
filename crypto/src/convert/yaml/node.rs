//! A tree with its comments where the printer takes them up: before a node, beside it, below it.

use crate::convert::tree::{Data, Piece};
use crate::convert::yaml::scalar::Scalar;

/// A value or key.
pub(super) struct Node<'a> {
    /// Comments before it.
    pub(super) head: Vec<&'a str>,
    /// Comments on its line.
    pub(super) line: Vec<&'a str>,
    /// Comments below it.
    pub(super) foot: Vec<&'a str>,
    /// What it is.
    pub(super) content: Content<'a>,
}

/// The kinds of nodes.
pub(super) enum Content<'a> {
    /// A list.
    List(Vec<Node<'a>>),
    /// A mapping.
    Map(Vec<(Node<'a>, Node<'a>)>),
    /// A single value.
    Scalar(Scalar<'a>),
}

impl<'a> Node<'a> {
    /// The node for `data`.
    pub(super) fn of(data: &Data<'a>) -> Self {
        match data {
            Data::Scalar(value) => Self::bare(Content::Scalar(Scalar::of(value))),
            Data::List(pieces) => {
                let mut comments = Comments::default();
                let mut items: Vec<Self> = Vec::new();
                for piece in pieces {
                    let Some((_, data)) = comments.or_part(piece, items.is_empty()) else { continue };
                    let mut item = Self::of(data);
                    item.head.splice(0..0, std::mem::take(&mut comments.above));
                    item.line.append(&mut comments.beside);
                    items.push(item);
                }
                let (first, rest) = comments.finish(items.is_empty());
                if let Some(last) = items.last_mut() {
                    last.foot.extend(rest);
                }
                Self { head: first, ..Self::bare(Content::List(items)) }
            }
            Data::Map(pieces) => {
                let mut comments = Comments::default();
                let mut entries: Vec<(Self, Self)> = Vec::new();
                for piece in pieces {
                    let Some((key, data)) = comments.or_part(piece, entries.is_empty()) else { continue };
                    let mut key = Self::bare(Content::Scalar(Scalar::text(key.unwrap_or_default())));
                    key.head = std::mem::take(&mut comments.above);
                    let mut value = Self::of(data);
                    value.line.append(&mut comments.beside);
                    entries.push((key, value));
                }
                let (first, rest) = comments.finish(entries.is_empty());
                if let Some((last, _)) = entries.last_mut() {
                    last.foot.extend(rest);
                }
                Self { head: first, ..Self::bare(Content::Map(entries)) }
            }
        }
    }

    fn bare(content: Content<'a>) -> Self {
        Self { head: Vec::new(), line: Vec::new(), foot: Vec::new(), content }
    }
}

/// The comments since the last part of a collection.
#[derive(Default)]
struct Comments<'a> {
    /// Those before the first part, which belong to the collection itself.
    first: Vec<&'a str>,
    above: Vec<&'a str>,
    beside: Vec<&'a str>,
}

impl<'a> Comments<'a> {
    /// Takes a comment, or gives the part that it is not.
    fn or_part<'b>(
        &mut self,
        piece: &'b Piece<'a>,
        is_first: bool,
    ) -> Option<(Option<&'a str>, &'b Data<'a>)> {
        match piece {
            Piece::Comment { text, inline } => {
                // Stock tools drop an empty comment line only where they read it.
                if *inline {
                    self.beside.push(text)
                } else {
                    self.above.push(text)
                }
                None
            }
            Piece::Part { key, data, .. } => {
                if is_first {
                    self.first = std::mem::take(&mut self.above);
                }
                Some((*key, data))
            }
        }
    }

    /// What is the collection's, and what comes after its last part.
    fn finish(mut self, is_empty: bool) -> (Vec<&'a str>, Vec<&'a str>) {
        self.above.append(&mut self.beside);
        match is_empty {
            true => (self.above, Vec::new()),
            false => (self.first, self.above),
        }
    }
}

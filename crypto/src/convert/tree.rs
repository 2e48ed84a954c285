//! What a printer walks over: the leaves of a document as mappings and lists, in the order in which stock tools hold
//! them, with comments as entries of their own.

use crate::document::path::{PathId, ROOT};
use crate::document::tree::Style;
use crate::document::{Document, Event, Leaf};
use crate::format::Format;
use crate::value::{Value, ValueType};

/// The section of INI for keys that stand in none.
pub(super) const DEFAULT_SECTION: &str = "DEFAULT";

/// A value with all that is below it.
#[derive(Debug)]
pub(super) enum Data<'a> {
    /// A list.
    List(Vec<Piece<'a>>),
    /// A mapping.
    Map(Vec<Piece<'a>>),
    /// A single value.
    Scalar(&'a Value),
}

/// One entry of a mapping or list.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    /// A comment before the entry that follows.
    Comment {
        /// The text after its sign.
        text: &'a str,
        /// Whether it stands on the line of the value that follows.
        inline: bool,
    },
    /// A value.
    Part {
        /// Its address; an item of a list has the list's.
        path: PathId,
        /// Its key; nothing for an item of a list.
        key: Option<&'a str>,
        /// The value.
        data: Data<'a>,
    },
}

/// The root mappings of `document` with `values` for those of its leaves, one per document of the stream.
pub(super) fn roots<'a>(document: &'a Document, values: &'a [Value]) -> Vec<Data<'a>> {
    let mut walk = Walk { document, values, next: 0 };
    let mut roots = Vec::new();
    while let Some(Event::Document) = document.events.get(walk.next) {
        walk.next += 1;
        // An empty document may have comments, and no mapping around them.
        if let Some(Event::Map(_)) = document.events.get(walk.next) {
            walk.next += 1;
        }
        let mut pieces = walk.pieces(ROOT);
        if document.format == Format::Ini {
            as_in_ini(&mut pieces);
        }
        roots.push(Data::Map(pieces));
    }
    roots
}

/// Stock tools always find a section for keys without one, and lose the comments behind the last key.
fn as_in_ini(pieces: &mut Vec<Piece<'_>>) {
    pieces.retain(|piece| matches!(piece, Piece::Part { .. }));
    let has_default = matches!(pieces.first(), Some(Piece::Part { key: Some(DEFAULT_SECTION), .. }));
    if !has_default {
        let data = Data::Map(Vec::new());
        pieces.insert(0, Piece::Part { path: ROOT, key: Some(DEFAULT_SECTION), data });
    }
}

struct Walk<'a> {
    document: &'a Document,
    values: &'a [Value],
    next: usize,
}

impl<'a> Walk<'a> {
    /// The entries up to the end of their collection.
    fn pieces(&mut self, mut path: PathId) -> Vec<Piece<'a>> {
        let document = self.document;
        let mut pieces = Vec::new();
        let mut key = None;
        let mut first_comment = 0;
        while let Some(event) = document.events.get(self.next) {
            let data = match event {
                Event::Document => break,
                Event::End => {
                    self.next += 1;
                    break;
                }
                Event::Key(at) => {
                    self.next += 1;
                    path = *at;
                    key = document.paths.split(*at).map(|(_, key)| key);
                    continue;
                }
                Event::Leaf(index) => {
                    self.next += 1;
                    match self.comment(*index) {
                        Some(text) => {
                            pieces.push(Piece::Comment { text, inline: false });
                            continue;
                        }
                        None => {
                            self.mark_inline(*index, &mut pieces[first_comment..]);
                            Data::Scalar(&self.values[*index])
                        }
                    }
                }
                Event::List(_) => {
                    self.next += 1;
                    Data::List(self.pieces(path))
                }
                Event::Map(_) => {
                    self.next += 1;
                    Data::Map(self.pieces(path))
                }
            };
            pieces.push(Piece::Part { path, key, data });
            first_comment = pieces.len();
        }
        pieces
    }

    /// The text of a leaf that is a comment, in its own form or as stock tools seal one in a list.
    fn comment(&self, index: usize) -> Option<&'a str> {
        let value = &self.values[index];
        let is_comment = self.document.leaves[index].is_comment() || value.kind() == Some(ValueType::Comment);
        is_comment.then(|| value.as_text().unwrap_or_default())
    }

    /// Comments on the line of the scalar `index` stay there, unless they were sealed: stock tools forget where an
    /// opened comment stood.
    fn mark_inline(&self, index: usize, comments: &mut [Piece<'a>]) {
        let document = self.document;
        let count = comments.len();
        let leaves = &document.leaves[index - count..index];
        for (number, (leaf, comment)) in leaves.iter().zip(comments).enumerate() {
            if let Piece::Comment { inline, .. } = comment {
                let was_sealed = self.values[index - count + number] != leaf.value;
                *inline = !was_sealed && stands_beside(document, leaf, &document.leaves[index]);
            }
        }
    }
}

/// Whether a comment begins behind the beginning of the scalar that it comes before.
fn stands_beside(document: &Document, comment: &Leaf, scalar: &Leaf) -> bool {
    match (document.site(comment), document.site(scalar)) {
        (Some(comment), Some(scalar)) => {
            comment.style == Style::Comment && comment.inner.start >= scalar.inner.start
        }
        _ => false,
    }
}

//! INI text to a [`Tree`]: a mapping of sections, which may repeat, each a mapping of keys.

use std::collections::HashSet;
use std::ops::Range;

use crate::document::BLOCK_KEY;
use crate::document::tree::{Comment, Entry, Node, NodeId, NodeKind, Part, Style, Tree};
use crate::error::ParseError;
use crate::format::flat::{self, Unflattened};
use crate::format::ini::DEFAULT_SECTION;
use crate::format::ini::value::{self, line_end};
use crate::secret::SecretText;
use crate::value::Value;

/// Takes `text` apart.
pub(super) fn tree(text: &str) -> Result<Tree, ParseError> {
    let mut reader =
        Reader { text, tree: Tree::default(), root: Vec::new(), section: None, above: None, block: None };
    if text.ends_with('\r') {
        return reader.refuse(text.len() - 1, "the text ends in a carriage return: end it with a line break");
    }
    let mut offset = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    while offset < text.len() {
        offset = reader.line(offset)?;
    }
    reader.finish()
}

struct Reader<'a> {
    text: &'a str,
    tree: Tree,
    /// The sections that are complete, without the block.
    root: Vec<Entry>,
    section: Option<Section>,
    /// The comment lines since the last key or section.
    above: Option<Range<usize>>,
    block: Option<Entry>,
}

/// The section that is being read.
struct Section {
    name: String,
    /// Its name's place; empty where no line names it.
    place: Range<usize>,
    node: NodeId,
    known: HashSet<String>,
    entries: Vec<Entry>,
    /// Where its first line starts.
    start: usize,
    /// After its last line with a key.
    end: usize,
    /// The lines of the `sops` block, when it is that.
    block: Option<Unflattened>,
}

impl Reader<'_> {
    /// Reads what starts on the line at `start`, and says where the next line starts.
    fn line(&mut self, start: usize) -> Result<usize, ParseError> {
        let end = line_end(self.text, start);
        let line = self.text[start..end].trim();
        let first = end - self.text[start..end].trim_start().len();
        match line.chars().next() {
            None => {}
            Some('#' | ';') => {
                let from = self.above.take().map_or(first, |above| above.start);
                self.above = Some(from..first + line.len());
            }
            Some('[') => self.header(start, first, line)?,
            Some(_) => return self.key(start, first),
        }
        Ok(end)
    }

    fn header(&mut self, start: usize, first: usize, line: &str) -> Result<(), ParseError> {
        let Some(close) = line.find(']') else {
            return self.refuse(first, "the section's name is not closed");
        };
        let (name, rest) = (&line[1..close], line[close + 1..].trim());
        if name.is_empty() {
            return self.refuse(first, "a section needs a name");
        }
        // A comment there holds a bracket once it is sealed, and then it is part of the name.
        if !rest.is_empty() {
            let reason = "other readers end a section's name at the last bracket of its line: put a comment in the line above";
            return self.refuse(first + close + 1, reason);
        }
        let begin = self.above.as_ref().map_or(start, |above| above.start);
        self.end_section(begin)?;
        let is_block = name == BLOCK_KEY;
        if is_block && self.block.is_some() {
            return self.refuse(first, "the section `sops` stands twice: remove one");
        }
        if is_block {
            self.comment_at_root();
        }
        self.begin_section(name, first + 1..first + close, start, line_end(self.text, first));
        if is_block { Ok(()) } else { self.attach(None, 0) }
    }

    fn key(&mut self, start: usize, first: usize) -> Result<usize, ParseError> {
        let end = line_end(self.text, first);
        let (name, place, after) = self.name(first, end)?;
        let found = value::find(self.text, after).or_else(|(offset, reason)| self.refuse(offset, reason))?;
        if self.section.is_none() {
            self.begin_section(DEFAULT_SECTION, first..first, start, start);
        }
        let refuse = |reason| ParseError::at(self.text, first, reason);
        let Some(section) = &mut self.section else { return Err(refuse("a key stands in no section")) };
        if !section.known.insert(name.clone()) {
            return Err(refuse(
                "the key stands twice in its section, and other readers drop the first: remove one",
            ));
        }
        section.end = found.end;
        if let Some(block) = &mut section.block {
            self.above = None;
            return block.add(&name, flat::unescaped(&found.value)).map(|()| found.end).map_err(refuse);
        }
        let kind = NodeKind::Scalar { value: Value::text(&found.value), style: Style::Plain { flow: false } };
        let value = push(&mut self.tree, kind, found.place);
        section.entries.push(Entry { name: name.into(), place, value });
        let slot = section.entries.len();
        self.attach(found.comment, slot)?;
        Ok(found.end)
    }

    /// The key's name, its place, and where its value may start.
    fn name(&self, first: usize, end: usize) -> Result<(String, Range<usize>, usize), ParseError> {
        let line = &self.text[first..end];
        let quote = match line.as_bytes()[0] {
            b'"' if line.len() > 6 && line.starts_with("\"\"\"") => "\"\"\"",
            b'"' => "\"",
            b'`' => "`",
            _ => "",
        };
        let inside = &line[quote.len()..];
        let delimiter = |text: &str| text.find(['=', ':']);
        let (name, delimiter) = match quote {
            "" => match delimiter(line) {
                None => {
                    return self
                        .refuse(first, "a line is a comment, a section, or a key with `=` and a value");
                }
                Some(delimiter) => (&line[..delimiter], delimiter),
            },
            _ => {
                let Some(close) = inside.find(quote) else {
                    return self.refuse(first, "the key's quotes are not closed");
                };
                let after = close + 2 * quote.len();
                match delimiter(&line[after..]) {
                    Some(found) if line[after..after + found].trim().is_empty() => {
                        (&inside[..close], after + found)
                    }
                    _ => return self.refuse(first, "after a quoted key stands `=`"),
                }
            }
        };
        let name = name.trim();
        let is_printable = !name.contains('`') || !name.contains(['"', '=', ':']);
        if name.is_empty()
            || name == "-"
            || !quote.is_empty() && name.starts_with(['#', ';', '['])
            || !is_printable
        {
            return self.refuse(
                first,
                "other readers give this key another name, or print another: choose a plain one",
            );
        }
        Ok((name.to_owned(), first..first + delimiter, first + delimiter + 1))
    }

    fn begin_section(&mut self, name: &str, place: Range<usize>, start: usize, end: usize) {
        let node = push(&mut self.tree, NodeKind::Map { entries: Vec::new(), flow: false }, start..end);
        let block = (name == BLOCK_KEY && !place.is_empty()).then(Unflattened::default);
        self.section = Some(Section {
            name: name.to_owned(),
            place,
            node,
            known: HashSet::new(),
            entries: Vec::new(),
            start,
            end,
            block,
        });
    }

    /// Puts the section that was read in its place. What follows starts at `next`.
    fn end_section(&mut self, next: usize) -> Result<(), ParseError> {
        let Some(section) = self.section.take() else { return Ok(()) };
        let Section { name, place, node, entries, start, end, block, .. } = section;
        match block {
            None => {
                let whole = start..end;
                self.tree.nodes[node] = new_node(NodeKind::Map { entries, flow: false }, whole);
                self.root.push(Entry { name: name.into(), place, value: node });
            }
            Some(block) => {
                let whole = start..next;
                let block = block.finish().or_else(|reason| self.refuse(start, reason))?;
                let value = flat::graft(&mut self.tree, &block, &whole);
                self.block = Some(Entry { name: name.into(), place, value });
            }
        }
        Ok(())
    }

    /// The comment above or behind what was just read, which is the key before `slot`, or the section's name.
    fn attach(&mut self, behind: Option<Range<usize>>, slot: usize) -> Result<(), ParseError> {
        let place = match (self.above.take(), behind) {
            (None, None) => return Ok(()),
            (Some(place), None) | (None, Some(place)) => place,
            (Some(_), Some(behind)) => {
                let reason = "other readers make one comment of this and the lines above: put it in a line of its own there";
                return self.refuse(behind.start, reason);
            }
        };
        let container = self.section.as_ref().map(|section| section.node);
        let text = comment_text(&self.text[place.clone()]);
        if text.expose_secret().starts_with('\n') {
            let reason =
                "stock tools crash on a block of comments whose first line is empty: remove that line";
            return self.refuse(place.start, reason);
        }
        self.tree.comments.push(Comment { place, text, container, slot });
        Ok(())
    }

    /// Comments with nothing below are seen by us alone: they belong to the root, whose number is put in at the end.
    fn comment_at_root(&mut self) {
        if let Some(place) = self.above.take() {
            let text = comment_text(&self.text[place.clone()]);
            self.tree.comments.push(Comment { place, text, container: None, slot: self.root.len() });
        }
    }

    fn finish(mut self) -> Result<Tree, ParseError> {
        if self.section.as_ref().is_some_and(|section| section.block.is_some()) {
            self.above = None;
        }
        self.end_section(self.text.len())?;
        self.comment_at_root();
        if self.root.is_empty() && self.block.is_none() {
            return self
                .refuse(0, "there is no section and no key in it, and other readers drop all comments then");
        }
        let entries = std::mem::take(&mut self.root).into_iter().chain(self.block.take()).collect();
        let root = push(&mut self.tree, NodeKind::Map { entries, flow: false }, 0..self.text.len());
        for comment in &mut self.tree.comments {
            comment.container = comment.container.or(Some(root));
        }
        self.tree.documents.push(Part { root: Some(root), end: self.text.len() });
        Ok(self.tree)
    }

    fn refuse<T>(&self, offset: usize, reason: &str) -> Result<T, ParseError> {
        Err(ParseError::at(self.text, offset, reason))
    }
}

fn push(tree: &mut Tree, kind: NodeKind, place: Range<usize>) -> NodeId {
    tree.nodes.push(new_node(kind, place));
    tree.nodes.len() - 1
}

fn new_node(kind: NodeKind, place: Range<usize>) -> Node {
    Node { kind, tag: None, outer: place.clone(), inner: place, core_tag: None }
}

/// A block of comment lines as stock readers have it: without its first sign and the blanks before each line, but with
/// the signs of all other lines.
fn comment_text(block: &str) -> SecretText {
    let lines: String = block.split_inclusive('\n').map(str::trim_start).collect();
    let lines = SecretText::new(lines);
    let text = lines.expose_secret().trim();
    let sign = if text.starts_with(';') { ';' } else { '#' };
    SecretText::from(text.trim_start_matches([sign, ' ']))
}

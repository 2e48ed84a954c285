//! YAML text to a [`Tree`]: the only file that knows the parser crate.
//!
//! The parser gives events with byte ranges. Added here are the properties that stand before a node, and the
//! refusal of all that stock tools refuse or would silently lose.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Span, StructureStyle, Tag, options};

use crate::document::tree::{Block, Entry, Node, NodeId, NodeKind, Part, Style, Tree};
use crate::error::ParseError;
use crate::format::yaml::{block, comments, lines, scalar};
use crate::secret::SecretText;
use crate::value::{Value, ValueType};

const CORE: &str = "tag:yaml.org,2002:";

/// Reads a whole stream.
pub(super) fn read(text: &SecretText) -> Result<Tree, ParseError> {
    lines::read(text).map_or_else(|| parse(text.expose_secret()), Ok)
}

/// As [`read`], always with the parser.
pub(super) fn parse(text: &str) -> Result<Tree, ParseError> {
    let mut builder = Builder {
        text,
        tree: Tree::default(),
        open: Vec::new(),
        anchors: HashMap::new(),
        latest: 0,
        blocks: Vec::new(),
        comments: Vec::new(),
        ended: true,
    };
    for next in parser(text) {
        let (event, span) = next.map_err(|error| ParseError {
            line: error.marker().line(),
            column: error.marker().col() + 1,
            reason: error.info(),
        })?;
        builder.event(event, &span)?;
    }
    builder.finish()
}

/// What a lone scalar, spelled as `spelling`, reads as; nothing when it is no lone scalar.
pub(super) fn lone_scalar(spelling: &str) -> Option<String> {
    let mut scalars = parser(spelling).filter_map(Result::ok).filter_map(|(event, _)| match event {
        Event::Scalar(text, ..) => Some(text.into_owned()),
        _ => None,
    });
    scalars.next().filter(|_| scalars.next().is_none())
}

fn parser(text: &str) -> Parser<'_, granit_parser::StrInput<'_>> {
    Parser::new_from_str_with_options(
        text,
        options! {
            emit_anchor_events: true,
            max_buffered_comment_events: usize::MAX,
            block_scalar_eof_without_line_feed: true,
            bom_inside_document_as_content: true,
        },
    )
}

/// A collection whose end has not come yet.
struct Open {
    node: NodeId,
    kind: NodeKind,
    /// The key that waits for its value.
    key: Option<(String, Range<usize>)>,
}

struct Builder<'a> {
    text: &'a str,
    tree: Tree,
    open: Vec<Open>,
    anchors: HashMap<usize, NodeId>,
    /// The node that a following anchor event belongs to.
    latest: NodeId,
    /// Block scalars, each with the column of its collection.
    blocks: Vec<(NodeId, usize)>,
    comments: Vec<Range<usize>>,
    /// Whether the end of the latest document is known.
    ended: bool,
}

impl Builder<'_> {
    fn event(&mut self, event: Event<'_>, span: &Span) -> Result<(), ParseError> {
        let place = span.byte_range().unwrap_or_default();
        match event {
            Event::DocumentStart(_, version) => {
                if version.is_some_and(|version| (version.major, version.minor) != (1, 1)) {
                    return self.refuse(
                        place.start,
                        "other tools refuse a %YAML directive other than 1.1: remove it",
                    );
                }
                self.end_document(place.start);
                self.ended = false;
                self.tree.documents.push(Part { root: None, end: self.text.len() });
            }
            Event::DocumentEnd if !place.is_empty() => self.end_document(place.start),
            Event::Comment(..) => self.comments.push(place),
            Event::Alias(anchor) => {
                let target = self.anchors.get(&anchor).copied();
                let Some(target) = target.filter(|target| self.open.iter().all(|open| open.node != *target))
                else {
                    return self.refuse(place.start, "the alias leads back into itself");
                };
                self.node(NodeKind::Alias { target }, 0, None, span)?;
            }
            Event::Anchor(..) => {
                // One that nothing follows is told of before the empty value that it belongs to.
                if let Some(node) = self.tree.nodes.get_mut(self.latest) {
                    node.outer.start = node.outer.start.min(place.start);
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, anchor, tag.as_deref(), span)?
            }
            Event::SequenceStart(style, anchor, tag) => {
                let kind = NodeKind::List { items: Vec::new(), flow: style == StructureStyle::Flow };
                self.collection(kind, anchor, tag.as_deref(), span)?;
            }
            Event::MappingStart(style, anchor, tag) => {
                let kind = NodeKind::Map { entries: Vec::new(), flow: style == StructureStyle::Flow };
                self.collection(kind, anchor, tag.as_deref(), span)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(&place)?,
            _ => {}
        }
        Ok(())
    }

    fn end_document(&mut self, end: usize) {
        if let (false, Some(part)) = (self.ended, self.tree.documents.last_mut()) {
            part.end = end;
        }
        self.ended = true;
    }

    fn collection(
        &mut self,
        kind: NodeKind,
        anchor: usize,
        tag: Option<&Tag>,
        span: &Span,
    ) -> Result<(), ParseError> {
        let start = span.byte_range().unwrap_or_default().start;
        if self.expects_key() {
            return self.refuse(start, "a key must be text: other tools refuse lists and mappings as keys");
        }
        if matches!(kind, NodeKind::List { .. }) && self.open.is_empty() {
            return self.refuse(start, "the document's root must be a mapping, not a list");
        }
        let placeholder = NodeKind::List { items: Vec::new(), flow: false };
        let is_value = self.open.last().is_some_and(|open| matches!(open.kind, NodeKind::Map { .. }));
        let node = self.node(placeholder, anchor, tag, span)?;
        let before = self.text[..start].trim_end_matches([' ', '\t']);
        if is_value
            && matches!(kind, NodeKind::List { flow: false, .. })
            && (before.ends_with('-') || !self.text[start..].starts_with('-'))
        {
            // The parser names a list in its key's column by what stands behind the first dash.
            let node = &mut self.tree.nodes[node];
            node.inner.start = comments::dash_before(self.text, start);
            node.outer.start = node.outer.start.min(node.inner.start);
        }
        self.open.push(Open { node, kind, key: None });
        Ok(())
    }

    fn close(&mut self, place: &Range<usize>) -> Result<(), ParseError> {
        let Some(Open { node, kind, .. }) = self.open.pop() else { return Ok(()) };
        if let NodeKind::Map { entries, .. } = &kind {
            let mut known = HashSet::with_capacity(entries.len());
            if let Some(twice) = entries.iter().find(|entry| !known.insert(entry.name.as_str())) {
                return self
                    .refuse(twice.place.start, "the key stands twice in the same mapping: remove one");
            }
        }
        let last = match &kind {
            NodeKind::List { items, flow: false } => items.last().copied(),
            NodeKind::Map { entries, flow: false } => entries.last().map(|entry| entry.value),
            _ => None,
        };
        let end = last.map_or(place.end, |last| self.tree.nodes[last].outer.end);
        let node = &mut self.tree.nodes[node];
        node.kind = kind;
        node.inner.end = end.max(node.inner.start);
        node.outer.end = node.inner.end;
        Ok(())
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        span: &Span,
    ) -> Result<(), ParseError> {
        let place = span.byte_range().unwrap_or_default();
        let absent = place.is_empty() && style == ScalarStyle::Plain;
        let text = if absent { "" } else { text };
        let plain = style == ScalarStyle::Plain && tag.is_none_or(is_core);
        let core = tag.filter(|tag| is_core(tag)).map(Tag::suffix);
        let resolved = scalar::resolve(text, core, plain);
        let value = resolved.map_err(|reason| ParseError::at(self.text, place.start, reason))?;
        if self.expects_key() {
            return self.key(text, &value, &place, anchor, span);
        }
        if self.open.is_empty() {
            return match absent && tag.is_none() {
                true => Ok(()),
                false => {
                    self.refuse(place.start, "the document's root must be a mapping, not a single value")
                }
            };
        }
        let flow = self.in_flow();
        let style = match style {
            ScalarStyle::DoubleQuoted => Style::Double { flow },
            ScalarStyle::Folded => Style::Folded(Block { header: 0..0, indent: span.indent.unwrap_or(0) }),
            ScalarStyle::Literal => Style::Literal(Block { header: 0..0, indent: span.indent.unwrap_or(0) }),
            ScalarStyle::Plain => Style::Plain { flow },
            ScalarStyle::SingleQuoted => Style::Single { flow },
        };
        let is_block = matches!(style, Style::Folded(_) | Style::Literal(_));
        let node = self.node(NodeKind::Scalar { value, style }, anchor, tag, span)?;
        let blanks = self.text[place.end..].bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let colon = place.end + blanks;
        if absent && self.text[colon..].starts_with(':') {
            // The parser names an absent value by the place before the colon.
            let node = &mut self.tree.nodes[node];
            (node.inner, node.outer) = (colon + 1..colon + 1, colon + 1..colon + 1);
        }
        if is_block {
            self.blocks.push((node, self.column()));
        }
        Ok(())
    }

    /// The column of the innermost collection, in which its keys or dashes stand.
    fn column(&self) -> usize {
        let start = self.open.last().map_or(0, |open| self.tree.nodes[open.node].inner.start);
        let line_start = self.text[..start].rfind(['\n', '\r']).map_or(0, |found| found + 1);
        self.text[line_start..start].trim_start_matches('\u{feff}').len()
    }

    fn key(
        &mut self,
        text: &str,
        value: &Value,
        place: &Range<usize>,
        anchor: usize,
        span: &Span,
    ) -> Result<(), ParseError> {
        if value.kind() != Some(ValueType::Str) {
            let hint =
                "a key must be text, and other readers take this one for something else: put it in quotes";
            return self.refuse(place.start, hint);
        }
        if anchor != 0 {
            let style = Style::Plain { flow: false };
            self.unattached(NodeKind::Scalar { value: value.clone(), style }, anchor, None, span);
        }
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        open.key = Some((text.to_owned(), place.clone()));
        Ok(())
    }

    fn expects_key(&self) -> bool {
        self.open.last().is_some_and(|open| matches!(open.kind, NodeKind::Map { .. }) && open.key.is_none())
    }

    fn in_flow(&self) -> bool {
        let flow = self.open.last().map(|open| &open.kind);
        matches!(flow, Some(NodeKind::List { flow: true, .. } | NodeKind::Map { flow: true, .. }))
    }

    fn unattached(&mut self, kind: NodeKind, anchor: usize, tag: Option<&Tag>, span: &Span) -> NodeId {
        let inner = span.byte_range().unwrap_or_default();
        let tag_place = span.tag_span().and_then(|span| span.byte_range());
        let core = tag.is_some_and(is_core);
        let kept = tag.is_some_and(|tag| core && tag.suffix() == "str");
        let id = self.tree.nodes.len();
        self.tree.nodes.push(Node {
            kind,
            tag: tag.filter(|_| !core).map(|tag| format!("{}{}", tag.handle(), tag.suffix())),
            outer: tag_place.as_ref().map_or(inner.start, |tag| tag.start.min(inner.start))..inner.end,
            inner,
            core_tag: tag_place.filter(|_| core && !kept),
        });
        if anchor != 0 {
            self.anchors.insert(anchor, id);
        }
        self.latest = id;
        id
    }

    fn node(
        &mut self,
        kind: NodeKind,
        anchor: usize,
        tag: Option<&Tag>,
        span: &Span,
    ) -> Result<NodeId, ParseError> {
        let id = self.unattached(kind, anchor, tag, span);
        match self.open.last_mut() {
            None => {
                if let Some(part) = self.tree.documents.last_mut() {
                    part.root = Some(id);
                }
            }
            Some(Open { kind: NodeKind::Map { entries, .. }, key, .. }) => {
                let Some((name, place)) = key.take() else {
                    let start = self.tree.nodes[id].outer.start;
                    return self.refuse(start, "a key must be text, not an alias");
                };
                entries.push(Entry { name: name.into(), place, value: id });
            }
            Some(Open { kind: NodeKind::List { items, .. }, .. }) => items.push(id),
            Some(_) => {}
        }
        Ok(id)
    }

    fn finish(mut self) -> Result<Tree, ParseError> {
        self.comments.sort_by_key(|place| place.start);
        for (id, column) in std::mem::take(&mut self.blocks) {
            let node = &mut self.tree.nodes[id];
            if let NodeKind::Scalar { value, style: Style::Folded(found) | Style::Literal(found) } =
                &mut node.kind
            {
                let text = value.as_text().unwrap_or_default();
                let Some(header) = block::header(self.text, &node.inner, text, &self.comments) else {
                    return self.refuse(0, "a block scalar whose header cannot be found");
                };
                if found.indent == 0 {
                    found.indent = column + block::digit(&self.text[header.clone()]).unwrap_or(2);
                }
                node.inner =
                    header.start..block::content_end(self.text, &header, node.inner.end, found.indent);
                node.outer.start = node.outer.start.min(header.start);
                node.outer.end = node.inner.end;
                found.header = header;
            }
        }
        if self.tree.documents.iter().all(|part| part.root.is_none()) {
            return self.refuse(0, "there is nothing but empty documents in this text");
        }
        comments::attach(self.text, &mut self.tree, &self.comments, &HashSet::new());
        Ok(self.tree)
    }

    fn refuse<T>(&self, offset: usize, reason: &str) -> Result<T, ParseError> {
        Err(ParseError::at(self.text, offset, reason))
    }
}

fn is_core(tag: &Tag) -> bool {
    tag.handle() == CORE
}

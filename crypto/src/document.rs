//! A document is text plus leaves.
//!
//! A format's reader turns the text into a [`tree::Tree`]; this module flattens it into leaves and events in the
//! order in which stock tools visit them. Sealing, opening, the MAC and the selectors see nothing else. Writing
//! means replacing places in the original text ([`splice`]): every other byte stays as it was.

use std::collections::HashMap;
use std::ops::Range;

use crate::document::path::{PathId, Paths, ROOT};
use crate::document::tree::{Comment, Node, NodeId, NodeKind, Style, Tree};
use crate::error::ParseError;
use crate::format::Format;
use crate::secret::SecretText;
use crate::value::Value;

mod beside;
pub mod part;
pub mod path;
mod splice;
pub mod tree;

pub(crate) use splice::in_order;
pub use splice::splice;

/// Most bytes of a document, sealed or not.
pub const DOCUMENT_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Most leaves of a document, copies by alias included.
pub const LEAVES_MAX: usize = 500_000;
/// Most leaves that aliases may add to a document.
pub const ALIAS_LEAVES_MAX: usize = 100_000;
/// Most mappings and lists inside each other.
pub const DEPTH_MAX: usize = 128;
/// Name of the key that holds the `sops` block.
pub const BLOCK_KEY: &str = "sops";

/// A text and all that is known of it without any key.
#[derive(Debug)]
pub struct Document {
    /// The format it was read as.
    pub format: Format,
    /// The nodes and their places.
    pub tree: Tree,
    /// All addresses.
    pub paths: Paths,
    /// All values and comments outside the `sops` block, in the order of the events.
    pub leaves: Vec<Leaf>,
    /// The structure, in text order with aliases expanded.
    pub events: Vec<Event>,
    /// Every use of an alias, outermost only, in text order.
    pub aliases: Vec<AliasUse>,
}

/// One value or comment.
#[derive(Debug)]
pub struct Leaf {
    /// Number of its document in the stream.
    pub document: usize,
    /// Its address; a comment has its container's.
    pub path: PathId,
    /// Its typed value as it stands in this text.
    pub value: Value,
    /// What of the tree it is.
    pub origin: Origin,
}

/// What a leaf is in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The comment at this position in [`Tree::comments`].
    Comment(usize),
    /// This node once more, reached through an alias: it stands nowhere.
    Copy(NodeId),
    /// This node.
    Node(NodeId),
}

/// Where and how a leaf is written.
#[derive(Clone, Debug)]
pub struct Site {
    /// With its properties.
    pub outer: Range<usize>,
    /// The scalar or comment alone.
    pub inner: Range<usize>,
    /// Place of a core tag inside `outer`.
    pub core_tag: Option<Range<usize>>,
    /// How it is written.
    pub style: Style,
}

/// One step through the structure.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// A document begins.
    Document,
    /// A mapping or list ends.
    End,
    /// The key of the value that follows, as the last one of that address.
    Key(PathId),
    /// A leaf, by its index in [`Document::leaves`].
    Leaf(usize),
    /// A list begins.
    List(NodeId),
    /// A mapping begins.
    Map(NodeId),
}

/// One place where a node's content is used again.
#[derive(Debug)]
pub struct AliasUse {
    /// The aliasing node.
    pub node: NodeId,
    /// Index of the event with which its content begins.
    pub event: usize,
    /// The leaves that it adds.
    pub leaves: Range<usize>,
}

impl Leaf {
    /// Whether this is a comment.
    pub fn is_comment(&self) -> bool {
        matches!(self.origin, Origin::Comment(_))
    }

    /// Its node; nothing for a comment.
    pub fn node(&self) -> Option<NodeId> {
        match self.origin {
            Origin::Comment(_) => None,
            Origin::Copy(node) | Origin::Node(node) => Some(node),
        }
    }
}

impl Document {
    /// Reads `text` as `format`.
    ///
    /// # Errors
    /// [`ParseError`] with the place, when the text is not acceptable or exceeds a limit.
    pub fn read(text: &str, format: Format) -> Result<Self, ParseError> {
        Self::read_whole(&SecretText::from(text), format)
    }

    /// As [`Document::read`], with values and names that are parts of `text`.
    ///
    /// # Errors
    /// As [`Document::read`].
    pub(crate) fn read_whole(text: &SecretText, format: Format) -> Result<Self, ParseError> {
        let tree = read_tree(text, format)?;
        Self::of_tree(text.expose_secret(), format, tree)
    }

    fn of_tree(text: &str, format: Format, tree: Tree) -> Result<Self, ParseError> {
        let mut walk = Walk {
            text,
            tree: &tree,
            comments: by_container(&tree),
            paths: Paths::with_room(tree.nodes.len()),
            leaves: Vec::with_capacity(tree.nodes.len().min(LEAVES_MAX)),
            events: Vec::with_capacity(2 * tree.nodes.len()),
            aliases: Vec::new(),
            document: 0,
            copies: 0,
            copying: false,
            beside: None,
        };
        for (document, part) in tree.documents.iter().enumerate() {
            walk.document = document;
            walk.events.push(Event::Document);
            match part.root {
                Some(root) => walk.node(root, ROOT, 0, true)?,
                None => walk.comments_before(None, document, ROOT)?,
            }
        }
        let Walk { paths, leaves, events, aliases, .. } = walk;
        Ok(Self { format, tree, paths, leaves, events, aliases })
    }

    /// The values of its leaves alone.
    pub(crate) fn into_values(self) -> Vec<Value> {
        self.leaves.into_iter().map(|leaf| leaf.value).collect()
    }

    /// Where a leaf stands; nothing when it is reached through an alias.
    pub fn site(&self, leaf: &Leaf) -> Option<Site> {
        match leaf.origin {
            Origin::Copy(_) => None,
            Origin::Comment(index) => {
                let place = &self.tree.comments[index].place;
                let (outer, inner) = (place.clone(), place.clone());
                Some(Site { outer, inner, core_tag: None, style: Style::Comment })
            }
            Origin::Node(node) => {
                let Node { kind, outer, inner, core_tag, .. } = &self.tree.nodes[node];
                let NodeKind::Scalar { style, .. } = kind else { return None };
                let (outer, inner) = (outer.clone(), inner.clone());
                Some(Site { outer, inner, core_tag: core_tag.clone(), style: style.clone() })
            }
        }
    }

    /// The leaf's value as text without the line breaks that a block scalar adds to a sealed value.
    pub fn sealed_text<'a>(&self, leaf: &'a Leaf) -> Option<&'a str> {
        let text = leaf.value.as_text()?;
        let Origin::Node(node) = leaf.origin else { return Some(text) };
        match &self.tree.nodes[node].kind {
            NodeKind::Scalar { style: Style::Literal(_) | Style::Folded(_), .. } => {
                Some(text.trim_end_matches('\n'))
            }
            _ => Some(text),
        }
    }

    /// Line of a leaf, counted from 1.
    pub fn line(&self, text: &str, leaf: &Leaf) -> usize {
        let offset = self.site(leaf).map_or(0, |site| site.inner.start);
        text[..offset.min(text.len())].bytes().filter(|byte| *byte == b'\n').count() + 1
    }

    /// The text of the value at `keys` in the first document, when it is text.
    pub fn text_at(&self, keys: &[&str]) -> Option<&str> {
        self.leaves
            .iter()
            .find(|leaf| leaf.document == 0 && self.paths.is(leaf.path, keys) && !leaf.is_comment())
            .and_then(|leaf| leaf.value.as_text())
    }
}

fn read_tree(text: &SecretText, format: Format) -> Result<Tree, ParseError> {
    if text.len() > DOCUMENT_BYTES_MAX {
        return Err(ParseError::at(text.expose_secret(), 0, "the document is larger than 256 MiB"));
    }
    format.syntax().read(text)
}

/// What `look` makes of the values of the document's leaves, for a caller who needs to know nothing else of it. Comments
/// may be left out.
///
/// # Errors
/// As [`Document::read`].
pub(crate) fn with_values<T>(
    text: &SecretText,
    format: Format,
    look: impl FnOnce(&[&Value]) -> T,
) -> Result<T, ParseError> {
    let tree = read_tree(text, format)?;
    let mut values = Vec::with_capacity(tree.nodes.len());
    let mut roots = tree.documents.iter().filter_map(|part| part.root);
    if roots.all(|root| tree.values(root, 0, &mut values)) && values.len() <= LEAVES_MAX {
        return Ok(look(&values));
    }
    drop(values);
    let document = Document::of_tree(text.expose_secret(), format, tree)?;
    Ok(look(&document.leaves.iter().map(|leaf| &leaf.value).collect::<Vec<_>>()))
}

/// A comment's neighbours: the container, and the entry of it that it comes before.
type CommentsBySlot = HashMap<(Option<NodeId>, usize), Vec<usize>>;

fn by_container(tree: &Tree) -> CommentsBySlot {
    let mut comments = CommentsBySlot::new();
    for (index, comment) in tree.comments.iter().enumerate() {
        comments.entry((comment.container, comment.slot)).or_default().push(index);
    }
    comments
}

struct Walk<'a> {
    text: &'a str,
    tree: &'a Tree,
    comments: CommentsBySlot,
    paths: Paths,
    leaves: Vec<Leaf>,
    events: Vec<Event>,
    aliases: Vec<AliasUse>,
    document: usize,
    copies: usize,
    copying: bool,
    /// The alias whose own comments come next.
    beside: Option<NodeId>,
}

impl Walk<'_> {
    fn node(&mut self, id: NodeId, path: PathId, depth: usize, is_root: bool) -> Result<(), ParseError> {
        let node = &self.tree.nodes[id];
        if depth > DEPTH_MAX {
            return Err(self.refuse(node.outer.start, format!("nested deeper than {DEPTH_MAX} levels")));
        }
        self.copies += usize::from(self.copying);
        if self.copies > ALIAS_LEAVES_MAX {
            return Err(
                self.refuse(node.outer.start, format!("aliases add more than {ALIAS_LEAVES_MAX} values"))
            );
        }
        match &node.kind {
            NodeKind::Alias { target } => self.alias(id, *target, path, depth),
            NodeKind::List { items, .. } => {
                self.events.push(Event::List(id));
                self.comments_beside(path)?;
                for (slot, item) in items.iter().enumerate() {
                    self.comments_before(Some(id), slot, path)?;
                    self.node(*item, path, depth + 1, false)?;
                }
                self.comments_before(Some(id), items.len(), path)?;
                self.events.push(Event::End);
                Ok(())
            }
            NodeKind::Map { entries, .. } => {
                // A document with nothing in it gets a root when the block is added: neither is an event.
                let is_hollow = is_root && entries.iter().all(|entry| entry.name == BLOCK_KEY);
                if !is_hollow {
                    self.events.push(Event::Map(id));
                }
                self.comments_beside(path)?;
                for (slot, entry) in entries.iter().enumerate() {
                    self.comments_before(Some(id), slot, path)?;
                    if is_root && entry.name == BLOCK_KEY {
                        continue;
                    }
                    let path = self.paths.child(path, &entry.name);
                    self.events.push(Event::Key(path));
                    self.node(entry.value, path, depth + 1, false)?;
                }
                self.comments_before(Some(id), entries.len(), path)?;
                if !is_hollow {
                    self.events.push(Event::End);
                }
                Ok(())
            }
            NodeKind::Scalar { value, .. } => {
                let origin = if self.copying { Origin::Copy(id) } else { Origin::Node(id) };
                self.leaf(path, value.clone(), origin, node.inner.start)
            }
        }
    }

    fn alias(&mut self, id: NodeId, target: NodeId, path: PathId, depth: usize) -> Result<(), ParseError> {
        let (event, first) = (self.events.len(), self.leaves.len());
        let outermost = !std::mem::replace(&mut self.copying, true);
        if outermost {
            self.beside = Some(id);
        }
        self.node(target, path, depth + 1, false)?;
        if outermost {
            (self.copying, self.beside) = (false, None);
            self.aliases.push(AliasUse { node: id, event, leaves: first..self.leaves.len() });
        }
        Ok(())
    }

    fn comments_beside(&mut self, path: PathId) -> Result<(), ParseError> {
        let Some(alias) = self.beside.take() else { return Ok(()) };
        self.copying = false;
        self.comments_before(Some(alias), 0, path)?;
        self.copying = true;
        Ok(())
    }

    fn comments_before(
        &mut self,
        container: Option<NodeId>,
        slot: usize,
        path: PathId,
    ) -> Result<(), ParseError> {
        if self.copying || self.comments.is_empty() {
            return Ok(());
        }
        for index in self.comments.remove(&(container, slot)).unwrap_or_default() {
            let Comment { text, place, .. } = &self.tree.comments[index];
            let value = Value::comment(text.expose_secret());
            self.leaf(path, value, Origin::Comment(index), place.start)?;
        }
        Ok(())
    }

    fn leaf(&mut self, path: PathId, value: Value, origin: Origin, offset: usize) -> Result<(), ParseError> {
        if self.leaves.len() == LEAVES_MAX {
            return Err(self.refuse(offset, format!("more than {LEAVES_MAX} values")));
        }
        self.events.push(Event::Leaf(self.leaves.len()));
        self.leaves.push(Leaf { document: self.document, path, value, origin });
        Ok(())
    }

    fn refuse(&self, offset: usize, reason: String) -> ParseError {
        ParseError::at(self.text, offset, reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(text: &str, format: Format) -> Option<String> {
        Document::read(text, format).err().map(|error| error.reason)
    }

    #[test]
    fn depth_is_limited() {
        let nested = |levels: usize| format!("a: {}x{}\n", "[".repeat(levels), "]".repeat(levels));
        // The root mapping is a level of its own, and the value in the innermost list stands one below it.
        assert_eq!(reason(&nested(DEPTH_MAX - 1), Format::Yaml), None);
        assert!(reason(&nested(DEPTH_MAX), Format::Yaml).is_some_and(|reason| reason.contains("128 levels")));
        let json = |levels: usize| format!("{{\"a\":{}1{}}}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(reason(&json(DEPTH_MAX - 1), Format::Json), None);
        assert!(reason(&json(DEPTH_MAX), Format::Json).is_some_and(|reason| reason.contains("128 levels")));
        assert!(reason(&json(100_000), Format::Json).is_some());
        assert!(reason(&nested(100_000), Format::Yaml).is_some());
    }

    #[test]
    fn the_number_of_values_is_limited() {
        let values = |count: usize| format!("{{\"a\":[{}1]}}", "1,".repeat(count - 1));
        assert_eq!(reason(&values(LEAVES_MAX), Format::Json), None);
        assert!(
            reason(&values(LEAVES_MAX + 1), Format::Json).is_some_and(|reason| reason.contains("500000"))
        );
    }

    #[test]
    fn what_aliases_add_is_limited() {
        let used = |times: usize| format!("a: &a [{}]\nb: [{}]\n", "1,".repeat(999), "*a,".repeat(times));
        // A use adds the list and its values.
        assert_eq!(reason(&used(ALIAS_LEAVES_MAX / 1000), Format::Yaml), None);
        assert!(
            reason(&used(ALIAS_LEAVES_MAX / 1000 + 1), Format::Yaml)
                .is_some_and(|reason| reason.contains("100000"))
        );
        let bomb: String =
            (1..30).map(|level| format!("l{level}: &l{level} [*l{0}, *l{0}]\n", level - 1)).collect();
        assert!(reason(&format!("l0: &l0 []\n{bomb}"), Format::Yaml).is_some());
    }

    #[test]
    fn the_size_of_a_document_is_limited() {
        let padded = |size: usize| format!("a: x\n{}", "\n".repeat(size - 5));
        assert!(
            reason(&padded(DOCUMENT_BYTES_MAX + 1), Format::Yaml)
                .is_some_and(|reason| reason.contains("256 MiB"))
        );
    }
}

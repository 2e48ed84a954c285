//! The plain subset of block YAML, read line by line.
//!
//! Most files are nothing else, and the parser takes ten times as long. Taken are mappings and lists by indentation,
//! one-line scalars, literal blocks, comments, and empty brackets, in one document without a marker. Whatever else
//! stands anywhere in a text, or looks wrong, sends the *whole* text to the parser in [`super::read`], which alone
//! decides what is YAML. What is taken here gives the very tree that is given there: the tests hold each text against
//! the other reader.

use std::borrow::Cow;
use std::collections::HashSet;
use std::ops::Range;

use crate::document::LEAVES_MAX;
use crate::document::part::TextPart;
use crate::document::tree::{Block, Entry, Node, NodeId, NodeKind, Part, Style, Tree};
use crate::format::has_duplicates;
use crate::format::yaml::{comments, scalar};
use crate::parallel;
use crate::secret::{SecretBytes, SecretText};
use crate::value::{Value, ValueType};

mod shape;

/// Most collections inside each other that are read here: far below where any other limit begins.
const DEPTH_MAX: usize = 64;
/// Bytes of about one line: a thread is worth so many of them as of values.
const STEP_BYTES: usize = 40;

/// Reads a text of the subset; nothing for any other text.
pub(super) fn read(whole: &SecretText) -> Option<Tree> {
    let text = whole.expose_secret();
    if !shape::is_plain(text) {
        return None;
    }
    let steps = text.len() / STEP_BYTES + 1;
    let cut = |step: usize| match step {
        0 => 0,
        _ if step == steps => text.len(),
        _ => shape::next_entry(text, step * STEP_BYTES),
    };
    joined(whole, parallel::by_parts(steps, |part| Section::read(whole, cut(part.start)..cut(part.end))))
}

/// The tree of all sections of a text; nothing when one of them is not of the subset.
fn joined(whole: &SecretText, sections: Vec<Option<Section>>) -> Option<Tree> {
    let mut sections = sections.into_iter();
    let mut all = sections.next()??;
    for section in sections {
        all.append(section?)?;
    }
    let root = (!all.nodes.is_empty()).then_some(0)?;
    let (text, documents) = (whole.expose_secret(), vec![Part { root: Some(root), end: whole.len() }]);
    let mut tree = Tree { nodes: all.nodes, documents, comments: Vec::new() };
    comments::attach(text, &mut tree, &all.comments, &HashSet::new());
    Some(tree)
}

/// Some entries of the root with all that is below them, or none. Between two of them nothing is open but the root, so a
/// text can be cut there and its sections read at the same time.
struct Section {
    /// The root is the first.
    nodes: Vec<Node>,
    comments: Vec<Range<usize>>,
}

impl Section {
    fn read(whole: &SecretText, place: Range<usize>) -> Option<Self> {
        let text = whole.expose_secret();
        // Growing step by step would leave copies of all sizes behind. A line has a node, and more when it begins a
        // collection. The others are added to the first.
        let lines = &text.as_bytes()[place.start..if place.start == 0 { text.len() } else { place.end }];
        let nodes = lines.iter().filter(|byte| **byte == b'\n').count().min(LEAVES_MAX) + 1;
        let tree = Tree { nodes: Vec::with_capacity(nodes), ..Tree::default() };
        let mut reader =
            Reader { whole, text, tree, open: Vec::new(), comments: Vec::new(), blocks: Vec::new() };
        let mut at = place.start;
        while at < place.end {
            at = reader.line(at, shape::line_end(text, at))?;
        }
        while !reader.open.is_empty() {
            reader.close()?;
        }
        for (block, end) in reader.blocks {
            let node = &mut reader.tree.nodes[block];
            (node.inner.end, node.outer.end) = (end, end);
        }
        Some(Self { nodes: reader.tree.nodes, comments: reader.comments })
    }

    /// Adds the section that follows; nothing when a key stands in both.
    fn append(&mut self, next: Self) -> Option<()> {
        self.comments.extend(next.comments);
        let mut added = next.nodes.into_iter();
        let Some(first) = self.nodes.len().checked_sub(1) else {
            self.nodes = added.collect();
            return Some(());
        };
        let Some(mut next_root) = added.next() else { return Some(()) };
        move_children(&mut next_root, first);
        let root = &mut self.nodes[0];
        if let (NodeKind::Map { entries, .. }, NodeKind::Map { entries: more, .. }) =
            (&mut root.kind, next_root.kind)
        {
            entries.extend(more);
            (!has_duplicates(entries)).then_some(())?;
        }
        (root.inner.end, root.outer.end) = (next_root.inner.end, next_root.outer.end);
        self.nodes.extend(added.map(|mut node| {
            move_children(&mut node, first);
            node
        }));
        Some(())
    }
}

/// Points a node to its children in a longer list, where they stand so much further back.
fn move_children(node: &mut Node, by: usize) {
    match &mut node.kind {
        NodeKind::List { items, .. } => items.iter_mut().for_each(|item| *item += by),
        NodeKind::Map { entries, .. } => entries.iter_mut().for_each(|entry| entry.value += by),
        NodeKind::Alias { .. } | NodeKind::Scalar { .. } => {}
    }
}

/// A collection that may go on.
struct Open {
    node: NodeId,
    /// Where its keys or dashes stand.
    column: usize,
    content: Content,
}

enum Content {
    List(Vec<NodeId>),
    /// Its entries, and the key that waits for its value.
    Map(Vec<Entry>, Option<Key>),
}

struct Key {
    name: TextPart,
    place: Range<usize>,
}

struct Reader<'a> {
    whole: &'a SecretText,
    text: &'a str,
    tree: Tree,
    open: Vec<Open>,
    comments: Vec<Range<usize>>,
    /// Literal blocks, each with the end of its content.
    blocks: Vec<(NodeId, usize)>,
}

impl Reader<'_> {
    /// Reads the line from `start` to `end`, with the block that it begins, and says where the next one starts.
    fn line(&mut self, start: usize, end: usize) -> Option<usize> {
        let at = shape::skip_spaces(self.text, start, end);
        let column = at - start;
        let rest = &self.text[at..end];
        if rest.is_empty() {
            return Some(end + 1);
        }
        if rest.starts_with('#') {
            self.comments.push(at..end);
            return Some(end + 1);
        }
        if column == 0 && (rest.starts_with("---") || rest.starts_with("...")) {
            return None;
        }
        let is_item = shape::is_item(rest);
        self.arrive(at, column, is_item)?;
        if is_item { self.item(at, end, column) } else { self.entry(at, end, column) }
    }

    /// Closes and opens collections until what stands at `column` is the next part of the innermost one.
    fn arrive(&mut self, at: usize, column: usize, is_item: bool) -> Option<()> {
        loop {
            let Some(top) = self.open.last() else {
                // Only the first line finds nothing open: what is further out than it never gets here.
                let is_first = column == 0 && !is_item && self.tree.nodes.is_empty();
                return is_first.then(|| self.start(at, column, is_item)).flatten();
            };
            let waits = matches!(top.content, Content::Map(_, Some(_)));
            let is_map = matches!(top.content, Content::Map(..));
            match column.cmp(&top.column) {
                std::cmp::Ordering::Greater => {
                    return waits.then(|| self.start(at, column, is_item)).flatten();
                }
                std::cmp::Ordering::Equal => match (is_map, is_item) {
                    (true, true) => return waits.then(|| self.start(at, column, true)).flatten(),
                    (true, false) => return self.absent(),
                    (false, true) => return Some(()),
                    (false, false) => self.close()?,
                },
                std::cmp::Ordering::Less => self.close()?,
            }
        }
    }

    fn start(&mut self, at: usize, column: usize, is_list: bool) -> Option<()> {
        if self.open.len() >= DEPTH_MAX {
            return None;
        }
        let placeholder = NodeKind::List { items: Vec::new(), flow: false };
        let node = self.node(placeholder, at..at)?;
        let content = match is_list {
            true => Content::List(Vec::new()),
            false => Content::Map(Vec::new(), None),
        };
        self.open.push(Open { node, column, content });
        Some(())
    }

    fn close(&mut self) -> Option<()> {
        self.absent()?;
        let Open { node, content, .. } = self.open.pop()?;
        let (kind, last) = match content {
            Content::List(items) => {
                let last = *items.last()?;
                (NodeKind::List { items, flow: false }, last)
            }
            Content::Map(entries, _) => {
                let last = entries.last()?.value;
                if has_duplicates(&entries) {
                    return None;
                }
                (NodeKind::Map { entries, flow: false }, last)
            }
        };
        let end = self.tree.nodes[last].outer.end;
        let node = &mut self.tree.nodes[node];
        node.kind = kind;
        node.inner.end = end;
        node.outer.end = end;
        Some(())
    }

    /// Gives the key that waits, if one does, the value that is not there.
    fn absent(&mut self) -> Option<()> {
        if let Some(Open { content: Content::Map(_, Some(key)), .. }) = self.open.last() {
            let after_colon = key.place.end + 1;
            let kind = NodeKind::Scalar { value: Value::Null, style: Style::Plain { flow: false } };
            self.node(kind, after_colon..after_colon)?;
        }
        Some(())
    }

    /// Adds a node to the innermost collection.
    fn node(&mut self, kind: NodeKind, place: Range<usize>) -> Option<NodeId> {
        let id = self.tree.nodes.len();
        match self.open.last_mut().map(|open| &mut open.content) {
            None => {}
            Some(Content::List(items)) => items.push(id),
            Some(Content::Map(entries, key)) => {
                let Key { name, place } = key.take()?;
                entries.push(Entry { name, place, value: id });
            }
        }
        self.tree.nodes.push(Node { kind, tag: None, outer: place.clone(), inner: place, core_tag: None });
        Some(id)
    }

    /// An item from its dash on.
    fn item(&mut self, dash: usize, end: usize, column: usize) -> Option<usize> {
        let at = shape::skip_spaces(self.text, dash + 1, end);
        let inner = column + (at - dash);
        let rest = &self.text[at..end];
        if shape::is_item(rest) {
            self.start(at, inner, true)?;
            return self.item(at, end, inner);
        }
        if shape::key(rest).is_some() {
            self.start(at, inner, false)?;
            return self.entry(at, end, inner);
        }
        self.value(at, end, column)
    }

    /// A key, and its value when it stands on the same line.
    fn entry(&mut self, at: usize, end: usize, column: usize) -> Option<usize> {
        let (name, length) = shape::key(&self.text[at..end])?;
        let place = at..at + length;
        let value = shape::skip_spaces(self.text, place.end + 1, end);
        let Some(Open { content: Content::Map(_, waiting), .. }) = self.open.last_mut() else { return None };
        let name = match name {
            Cow::Borrowed(name) => TextPart::of(self.whole, name),
            Cow::Owned(name) => TextPart::from(name),
        };
        *waiting = Some(Key { name, place });
        match self.text.as_bytes()[value..end].first() {
            None => Some(end + 1),
            Some(b'#') => {
                self.comments.push(value..end);
                Some(end + 1)
            }
            Some(_) => self.value(value, end, column),
        }
    }

    /// A value that begins at `at`, in a collection at `column`.
    fn value(&mut self, at: usize, end: usize, column: usize) -> Option<usize> {
        let rest = &self.text[at..end];
        let (kind, length) = match rest.as_bytes().first()? {
            b'|' => return self.literal(at, end, column),
            b'[' if rest.starts_with("[]") => (NodeKind::List { items: Vec::new(), flow: true }, 2),
            b'{' if rest.starts_with("{}") => (NodeKind::Map { entries: Vec::new(), flow: true }, 2),
            quote @ (b'"' | b'\'') => {
                let (text, length) = shape::quoted(rest)?;
                let style = match quote {
                    b'"' => Style::Double { flow: false },
                    _ => Style::Single { flow: false },
                };
                (NodeKind::Scalar { value: self.text_of(text), style }, length)
            }
            _ => {
                let text = shape::plain(rest)?;
                let value = scalar::other_than_text(text).ok()?.unwrap_or_else(|| self.text_of(text.into()));
                (NodeKind::Scalar { value, style: Style::Plain { flow: false } }, text.len())
            }
        };
        self.node(kind, at..at + length)?;
        self.behind(at + length, end)
    }

    /// What may stand behind a value on its line: blanks, and after them a comment.
    fn behind(&mut self, at: usize, end: usize) -> Option<usize> {
        let next = shape::skip_spaces(self.text, at, end);
        match self.text.as_bytes()[next..end].first() {
            None => Some(end + 1),
            Some(b'#') if next > at => {
                self.comments.push(next..end);
                Some(end + 1)
            }
            Some(_) => None,
        }
    }

    /// A literal block in a collection at `column`, from its header on.
    fn literal(&mut self, at: usize, end: usize, column: usize) -> Option<usize> {
        let keeps_break = match &self.text[at..end] {
            "|" => true,
            "|-" => false,
            _ => return None,
        };
        let header = at..end + 1;
        let lines = shape::block(self.text, header.end, column)?;
        let mut text = lines.text;
        if keeps_break {
            text.push('\n');
        }
        let style = Style::Literal(Block { header, indent: lines.indent });
        let kind = NodeKind::Scalar { value: self.text_of(text.into()), style };
        // Until all is read the block reaches, as for the parser, into the indentation of what follows: so far do the
        // collections that end with it.
        let reach = shape::skip_spaces(self.text, lines.next, shape::line_end(self.text, lines.next));
        let node = self.node(kind, at..reach)?;
        self.blocks.push((node, lines.end));
        Some(lines.next)
    }

    /// A text value; what stands in the text, and what had to be put together, is not copied.
    fn text_of(&self, text: Cow<'_, str>) -> Value {
        let bytes = match text {
            Cow::Borrowed(text) => self.whole.share(text),
            Cow::Owned(text) => SecretBytes::new(text.into_bytes()),
        };
        Value::Typed(ValueType::Str, bytes)
    }
}

/// The safety argument of this module: what it takes, the parser reads as the very same tree. Refusing is always right.
#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;

    use crate::format::yaml::read;

    /// Whether `text` is taken; fails when the parser gives anything else for it.
    fn is_taken(text: &str) -> bool {
        let Some(tree) = super::read(&text.into()) else { return false };
        is_the_same_in_sections(&text.into(), &tree);
        match read::parse(text) {
            Ok(parsed) => assert_eq!(tree, parsed, "{text:?}"),
            Err(error) => panic!("{text:?} is taken, and the parser says {error}"),
        }
        true
    }

    /// Whatever takes part in the work: cut before each entry of the root, in two and in as many as there are.
    fn is_the_same_in_sections(whole: &SecretText, tree: &Tree) {
        let text = whole.expose_secret();
        let next = |at: &usize| Some(shape::next_entry(text, *at)).filter(|next| *next < text.len());
        let cuts: Vec<usize> = std::iter::successors(next(&0), next).collect();
        let check = |cuts: &[usize]| {
            let ends = cuts.iter().copied().chain([text.len()]);
            let places = [0].into_iter().chain(cuts.iter().copied()).zip(ends);
            let sections = places.map(|(start, end)| Section::read(whole, start..end)).collect();
            assert_eq!(joined(whole, sections).as_ref(), Some(tree), "{text:?} cut at {cuts:?}");
        };
        check(&cuts);
        check(cuts.get(cuts.len() / 2..).and_then(|rest| rest.get(..1)).unwrap_or_default());
    }

    #[test]
    fn large_texts_are_read_in_sections() {
        let entry = |number: usize| {
            format!(
                "# {number}\n\nkey_{number}:\n  a: value {number} # beside\n  b: |\n    x\n\n  # in\n  c:\n  - d\n"
            )
        };
        let text: String = (0..2_500).map(entry).collect();
        assert!(is_taken(&text));
        assert!(!is_taken(&format!("{text}key_0: twice\n")) && !is_taken(&format!("{text}d: [1]\n")));
    }

    #[test]
    fn the_common_forms_are_taken() {
        let texts = [
            "a: 1\n",
            "a: 1",
            "# c\n\na: x # y\nb:\n  c: -5\n  d: ~\n\n  # e\ne: 'it''s' \nf: \"a\\n\\\"b\"\n",
            "a:\n- b\n- c: 1\n  d: 2\n-   e:\n    - f\n    - - g\n      - h\ni: j\n",
            "a:\n  - b\n\n  - c # d\n# e\nf:\n",
            "a: |\n  b\n\n   c\n\n\nd: |-\n    e\n  # no comment, and not taken\n",
            "a: ENC[AES256_GCM,data:YQ==,iv:AA==,tag:AA==,type:str]\n'b c': [] # d\n\"e\": {}\n",
            "größe: süß\n鍵: 値 # 値\nsmile: \u{1f600}\n",
            "a b: c d\nx:y: z:z\nurl: https://example.org/#a\n",
            "a:\n  b: |\n    c\n\n  d: |-\n    e\n\n",
            "a:\n  b:\n  c: null\nd: 2001-01-01\n<<: x\n",
        ];
        let refused = texts.iter().filter(|text| !is_taken(text)).collect::<Vec<_>>();
        assert_eq!(refused, [&texts[5]]);
    }

    #[test]
    fn what_needs_a_parser_is_left_to_it() {
        let texts = [
            "",
            "\n",
            "# a\n",
            "a\n",
            "- a\n",
            " a: b\n",
            "---\na: b\n",
            "a: b\n...\n",
            "a: b\n---\nc: d\n",
            "a:\tb\n",
            "a: b\r\n",
            "\u{feff}a: b\n",
            "a: \u{2028}\n",
            "a: b\u{a0}c\n",
            "a: [1]\n",
            "a: {b: c}\n",
            "a: &b c\n",
            "a: *b\n",
            "a: !b c\n",
            "? a\n: b\n",
            "a: >\n  b\n",
            "a: |2\n  b\n",
            "a: |+\n  b\n",
            "a: | # b\n  c\n",
            "a: |\n\n  b\n",
            "a: |\n  b",
            "a: b\n  c\n",
            "a: \"b\n  c\"\n",
            "a: \"\\x41\"\n",
            "a: \"b\" c\n",
            "a: b: c\n",
            "a: b\na: c\n",
            "1: a\n",
            "true: a\n",
            "a:\n  b: c\n d: e\n",
            "a:\n-\n- b\n",
            "a: @b\n",
            "a: `b\n",
            "a: %b\n",
            "%a: b\n",
            "a: - b\n",
            "a:\n- b\n c\n",
            "a: 9223372036854775808\n",
            "[a]: b\n",
            "a : b\n",
            "a: b\n\x01",
            "a: b\x7f\n",
            "a: 'b'#c\n",
            "a: []#c\n",
            "a: [][]\n",
        ];
        let taken = texts.iter().filter(|text| is_taken(text)).collect::<Vec<_>>();
        assert!(taken.is_empty(), "{taken:?}");
    }

    /// All documents at hand, whole and cut off behind each of their characters.
    #[test]
    fn documents_and_their_beginnings_agree() {
        let mut folders: Vec<PathBuf> = vec![xtask::root().join("testdata")];
        let (mut files, mut taken) = (0, 0);
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
                if ending != "yaml" && ending != "yml" {
                    continue;
                }
                // Some of what is refused is no text.
                let Ok(text) = std::fs::read_to_string(path) else { continue };
                files += 1;
                taken += usize::from(is_taken(&text));
                text.char_indices().take(3000).for_each(|(end, _)| {
                    is_taken(&text[..end]);
                });
            }
        }
        assert!(files >= 60 && taken >= 5, "{taken} of {files}");
    }

    const PIECES: [&str; 44] = [
        "a:",
        "b: c",
        "- d",
        "- e: f",
        "-",
        "- - g",
        "  h: i",
        "  - j",
        "    k: l",
        "  m:",
        "",
        "  ",
        "# n",
        "  # o",
        "p: # q",
        "r: s # t",
        "u: |",
        "v: |-",
        "  w",
        "    x",
        " y",
        "'z': 1",
        "\"aa\": \"b\\\"b\"",
        "cc: ''",
        "dd: []",
        "- {}",
        "ee: 'f",
        "---",
        "...",
        "gg: \"h",
        "- |",
        "    # ii",
        "a: b: c",
        "  jj",
        "kk: - l",
        "mm: #n",
        "b:  o ",
        "  h: p",
        "- 'q': r",
        "-  s:",
        "   t: u",
        "- v: |",
        "-   w # x",
        "  - - y: z",
    ];

    /// Every text of three such lines, with and without its last line feed.
    #[test]
    fn all_short_texts_agree() {
        let mut taken = 0;
        for first in PIECES {
            for second in PIECES {
                for third in PIECES {
                    let text = format!("{first}\n{second}\n{third}\n");
                    taken += usize::from(is_taken(&text)) + usize::from(is_taken(&text[..text.len() - 1]));
                }
            }
        }
        assert!(taken > 2000, "{taken}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn texts_of_such_lines_agree(lines in prop::collection::vec(prop::sample::select(&PIECES[..]), 1..14)) {
            is_taken(&lines.join("\n"));
            is_taken(&(lines.join("\n") + "\n"));
        }

        #[test]
        fn texts_of_such_characters_agree(text in "a: [a#'\":|\\-\\[\\] {}?!&*>%@,.~01\n\\\\é=<]{0,24}\n?") {
            is_taken(&text);
        }

        /// Mostly well-formed: lines that stand where the ones before allow.
        #[test]
        fn generated_documents_agree(
            lines in prop::collection::vec((0..7usize, "[a-c]{1,2}", "|[ -~é😀]{0,9}", 0..6usize), 1..12)
        ) {
            let mut text = String::new();
            for (number, (indent, key, value, kind)) in lines.into_iter().enumerate() {
                let indent = " ".repeat(if number == 0 { 0 } else { indent / 2 * 2 });
                text.push_str(&match kind {
                    0 => format!("{indent}{key}{number}:\n"),
                    1 => format!("{indent}- {value}\n"),
                    2 => format!("{indent}- {key}: {value}\n"),
                    3 => format!("{indent}# {value}\n\n"),
                    4 => format!("{indent}{key}{number}: |\n{indent}  {value}\n{indent}   {value}\n"),
                    _ => format!("{indent}{key}{number}: {value}\n"),
                });
            }
            is_taken(&text);
        }
    }
}

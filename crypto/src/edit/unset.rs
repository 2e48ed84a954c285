//! Taking one value out of an opened file.

use std::collections::HashSet;
use std::ops::Range;

use crate::decrypt::OpenFile;
use crate::document::tree::{Node, NodeId, NodeKind, Tree};
use crate::document::{Document, splice};
use crate::edit::path::Step;
use crate::edit::{TreePath, reencrypt};
use crate::encrypt::WriteOptions;
use crate::error::{EncryptError, ParseError, PathError};
use crate::format::Format;
use crate::secret::SecretText;
use crate::value::Value;

/// Removes the value at `path`, in the first document or the one whose position stands in front, with its key and its own comments. All other lines stay as they
/// are, and a collection that had nothing else becomes an empty one.
///
/// # Errors
/// [`EncryptError`], with [`EncryptError::Path`] for a path through something that is no collection, and for a value
/// that an alias elsewhere repeats. `None` when there is nothing at that path.
pub fn unset(
    open: &OpenFile,
    path: &TreePath,
    options: &WriteOptions,
) -> Result<Option<String>, EncryptError> {
    let text = open.document_text()?;
    let Some(edited) = edited(text.expose_secret(), open.format(), path)? else { return Ok(None) };
    // The last sealed value may go: that its selector matches something was seen when it was sealed.
    let options = WriteOptions { allow_plaintext: true, ..*options };
    reencrypt(open, &edited, &options)
}

/// The text without what `path` leads to.
fn edited(text: &str, format: Format, path: &TreePath) -> Result<Option<SecretText>, EncryptError> {
    let document = Document::read(text, format)?;
    let Some((collection, index)) = find(&document, path)? else { return Ok(None) };
    refuse_repeated(text, &document.tree, &whole(&document.tree, collection, index))?;
    let removal = format.syntax().removal(text, &document.tree, collection, index)?;
    let removal = removal.into_iter().map(|part| (part.place, part.text)).collect();
    let edited = SecretText::new(splice(text, removal));
    check(&document, collection, index, &edited)?;
    Ok(Some(edited))
}

/// The collection that holds what `path` leads to, and the position in it.
fn find(document: &Document, path: &TreePath) -> Result<Option<(NodeId, usize)>, PathError> {
    let (number, steps) = path.start();
    let root = document.tree.documents.get(number).and_then(|part| part.root);
    let (Some(mut node), Some((last, way))) = (root, steps.split_last()) else { return Ok(None) };
    for step in way {
        let Some(index) = position(document, node, step)? else { return Ok(None) };
        node = child(&document.tree, node, index);
    }
    Ok(position(document, node, last)?.map(|index| (node, index)))
}

fn position(document: &Document, node: NodeId, step: &Step) -> Result<Option<usize>, PathError> {
    match (&document.tree.nodes[node].kind, step) {
        (NodeKind::Map { entries, .. }, Step::Key(key)) => {
            Ok(entries.iter().position(|entry| entry.name == **key))
        }
        (NodeKind::List { items, .. }, Step::Index(index)) => Ok(Some(*index).filter(|at| *at < items.len())),
        _ => super::child(document, node, step).map(|_| None),
    }
}

fn child(tree: &Tree, collection: NodeId, index: usize) -> NodeId {
    match &tree.nodes[collection].kind {
        NodeKind::Map { entries, .. } => entries[index].value,
        NodeKind::List { items, .. } => items[index],
        _ => collection,
    }
}

/// From the key or item to the end of its value.
fn whole(tree: &Tree, collection: NodeId, index: usize) -> Range<usize> {
    let value = &tree.nodes[child(tree, collection, index)].outer;
    match &tree.nodes[collection].kind {
        NodeKind::Map { entries, .. } => entries[index].place.start..value.end,
        _ => value.clone(),
    }
}

/// Refuses to lose what stands in `place` while an alias outside of it repeats it.
pub(super) fn refuse_repeated(text: &str, tree: &Tree, place: &Range<usize>) -> Result<(), PathError> {
    let is_inside = |id: NodeId| {
        let node = &tree.nodes[id];
        place.contains(&node.outer.start) || place.contains(&node.inner.start)
    };
    let repeats = |node: &&Node| match node.kind {
        NodeKind::Alias { target } => is_inside(target) && !place.contains(&node.outer.start),
        _ => false,
    };
    let Some(alias) = tree.nodes.iter().find(repeats) else { return Ok(()) };
    let line = ParseError::at(text, alias.outer.start, "").line;
    let name = &text[alias.outer.clone()];
    Err(PathError(format!(
        "line {line} repeats it as `{name}`: write the value out there first, or change both with `lacre edit`"
    )))
}

/// Refuses an edit that would change any other value: a text that ends in blank lines would take more of them, say.
fn check(
    document: &Document,
    collection: NodeId,
    index: usize,
    edited: &SecretText,
) -> Result<(), EncryptError> {
    let changes = || PathError("it cannot be cut out of this text alone: remove it with `lacre edit`".into());
    let left = Document::read(edited.expose_secret(), document.format).map_err(|_| changes())?;
    let removed = leaves_below(document, child(&document.tree, collection, index));
    match values(document, &removed) == values(&left, &HashSet::new()) {
        true => Ok(()),
        false => Err(changes().into()),
    }
}

/// The leaves of `node`, which no alias outside of it repeats.
fn leaves_below(document: &Document, node: NodeId) -> HashSet<usize> {
    let mut inside = HashSet::new();
    let mut waiting = vec![node];
    while let Some(id) = waiting.pop() {
        inside.insert(id);
        match &document.tree.nodes[id].kind {
            NodeKind::Alias { .. } | NodeKind::Scalar { .. } => {}
            NodeKind::List { items, .. } => waiting.extend(items),
            NodeKind::Map { entries, .. } => waiting.extend(entries.iter().map(|entry| entry.value)),
        }
    }
    let uses = document.aliases.iter().filter(|alias| inside.contains(&alias.node));
    let copies = uses.flat_map(|alias| alias.leaves.clone());
    let leaves = document.leaves.iter().enumerate();
    let own = leaves.filter(|(_, leaf)| leaf.node().is_some_and(|node| inside.contains(&node)));
    own.map(|(index, _)| index).chain(copies).collect()
}

/// All values but comments and those at `without`, each with its address.
fn values<'a>(document: &'a Document, without: &HashSet<usize>) -> Vec<(Vec<&'a str>, &'a Value)> {
    let leaves = document.leaves.iter().enumerate();
    let values = leaves.filter(|(index, leaf)| !leaf.is_comment() && !without.contains(index));
    values.map(|(_, leaf)| (document.paths.components(leaf.path), &leaf.value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(text: &str, path: &str, format: Format) -> Result<Option<String>, String> {
        let path = TreePath::parse(path).unwrap();
        let edited = edited(text, format, &path).map_err(|error| error.to_string())?;
        Ok(edited.map(|text| text.expose_secret().to_owned()))
    }

    #[track_caller]
    fn check_all(format: Format, cases: &[(&str, &str, &str)]) {
        for (text, path, expected) in cases {
            let found = without(text, path, format);
            assert_eq!(found, Ok(Some((*expected).to_owned())), "{path} of {text:?}");
        }
    }

    #[test]
    fn a_block_loses_the_entrys_lines() {
        check_all(
            Format::Yaml,
            &[
                ("a: 1\nb: 2\nc: 3\n", "['b']", "a: 1\nc: 3\n"),
                ("a: 1\nb: 2\n", "['a']", "b: 2\n"),
                ("a: 1\nb: 2", "['b']", "a: 1\n"),
                ("---\na: 1\nb: 2\n...\n", "['b']", "---\na: 1\n...\n"),
                ("a: 1\r\nb: 2\r\nc: 3\r\n", "['b']", "a: 1\r\nc: 3\r\n"),
                ("\u{feff}a: 1\nb: 2\n", "['a']", "\u{feff}b: 2\n"),
                ("a:\n  b: 1\n  c: |\n    x\n\n    y\n\nd: 2\n", "['a']['c']", "a:\n  b: 1\n\nd: 2\n"),
                ("a: 1\n\nb: 2\n\nc: 3\n", "['b']", "a: 1\n\n\nc: 3\n"),
                ("a: x\n  y\n  z\nb: 2\n", "['a']", "b: 2\n"),
                ("a: \"x\n  y\"\nb: 2\n", "['a']", "b: 2\n"),
                ("a:\nb:\n  c:\n  d: 1\n", "['b']['c']", "a:\nb:\n  d: 1\n"),
                ("a:\nb: 1\n", "['a']", "b: 1\n"),
                ("a: !!str\nb: 1\n", "['a']", "b: 1\n"),
                ("a: |+\n  x\n\nb: 1\n", "['b']", "a: |+\n  x\n\n"),
                ("a: 1\nb: {c: 1,\n  d: 2}\ne: 3\n", "['b']", "a: 1\ne: 3\n"),
                ("\"a b\": 1\n? c\n: 2\nd: 3\n", "['c']", "\"a b\": 1\nd: 3\n"),
                ("a: 1\n---\na: 2\n", "['a']", "{}\n---\na: 2\n"),
                ("a: 1\nb: 3\n---\na: 2\n", "['a']", "b: 3\n---\na: 2\n"),
                ("a: 1\n---\na: 2\nb: 3\n", "[1]['a']", "a: 1\n---\nb: 3\n"),
            ],
        );
    }

    #[test]
    fn lists_lose_an_item() {
        check_all(
            Format::Yaml,
            &[
                ("l:\n  - a\n  - b\n  - c\n", "['l'][1]", "l:\n  - a\n  - c\n"),
                ("l:\n- a\n- b\nm: 1\n", "['l'][1]", "l:\n- a\nm: 1\n"),
                ("l:\n- a: 1\n  b: 2\n- c: 3\n", "['l'][0]", "l:\n- c: 3\n"),
                ("l:\n- a: 1\n  b: 2\n- c: 3\n", "['l'][0]['a']", "l:\n- b: 2\n- c: 3\n"),
                ("l:\n- a: 1\n  b: 2\n- c: 3\n", "['l'][0]['b']", "l:\n- a: 1\n- c: 3\n"),
                ("l:\n- a: 1\n  # b\n  b: 2\n- c: 3\n", "['l'][0]['a']", "l:\n-\n  # b\n  b: 2\n- c: 3\n"),
                ("l:\n- a: 1\n- c: 3\n", "['l'][0]['a']", "l:\n- {}\n- c: 3\n"),
                ("l:\n- - a\n  - b\n- c\n", "['l'][0][0]", "l:\n- - b\n- c\n"),
                ("l:\n-\n- b\n", "['l'][0]", "l:\n- b\n"),
                ("l:\n- a # x - y\n- b\n", "['l'][0]", "l:\n- b\n"),
            ],
        );
    }

    #[test]
    fn what_had_nothing_else_stays_a_collection() {
        check_all(
            Format::Yaml,
            &[
                ("a:\n  b: 1\nc: 2\n", "['a']['b']", "a: {}\nc: 2\n"),
                ("a:\n- b\nc: 2\n", "['a'][0]", "a: []\nc: 2\n"),
                ("a: # why\n  b: 1\nc: 2\n", "['a']['b']", "a: # why\n   {}\nc: 2\n"),
                ("a: !x\n- b\nc: 2\n", "['a'][0]", "a: !x\n []\nc: 2\n"),
                ("a: 1\n", "['a']", "{}\n"),
                ("# head\n\na: 1\r\n", "['a']", "# head\n\n{}\r\n"),
                ("a: {b: 1}\n", "['a']['b']", "a: {}\n"),
                ("a: [ b ]\n", "['a'][0]", "a: [  ]\n"),
                ("a: [b: 1, c]\n", "['a'][0]['b']", "a: [{}, c]\n"),
                ("a:\n  b: |\n    x\n", "['a']['b']", "a: {}\n"),
            ],
        );
    }

    #[test]
    fn brackets_lose_an_entry() {
        check_all(
            Format::Yaml,
            &[
                ("{a: 1, b: 2, c: 3}\n", "['a']", "{b: 2, c: 3}\n"),
                ("{a: 1, b: 2, c: 3}\n", "['b']", "{a: 1, c: 3}\n"),
                ("{a: 1, b: 2, c: 3}\n", "['c']", "{a: 1, b: 2}\n"),
                ("l: [a, b,]\n", "['l'][1]", "l: [a, ]\n"),
                ("m: {a, b: , c}\n", "['m']['b']", "m: {a, c}\n"),
                ("m: {a, b: , c}\n", "['m']['a']", "m: {b: , c}\n"),
                ("m: {\n  a: 1,\n  b: 2,\n}\n", "['m']['b']", "m: {\n  a: 1,\n}\n"),
                ("m: {\n  a: 1, # x\n  # b\n  b: 2 # y\n}\n", "['m']['b']", "m: {\n  a: 1, # x\n}\n"),
                ("m: {\n  a: 1, # x\n  # b\n  b: 2\n}\n", "['m']['a']", "m: {\n  # b\n  b: 2\n}\n"),
                ("m: { a: 1\n   , b: 2\n   }\n", "['m']['a']", "m: { b: 2\n   }\n"),
                ("m: {&k a: 1, b: 2}\n", "['m']['a']", "m: {b: 2}\n"),
                ("m: {a: [x, {y: z}], b: 2}\n", "['m']['a'][1]", "m: {a: [x], b: 2}\n"),
            ],
        );
    }

    #[test]
    fn own_comments_go_and_others_stay() {
        check_all(
            Format::Yaml,
            &[
                ("a: 1 # x\n# b\n# more\nb: 2 # y\n# c\nc: 3\n", "['b']", "a: 1 # x\n# c\nc: 3\n"),
                ("# head\n\n# a\na: 1\nb: 2\n", "['a']", "# head\n\nb: 2\n"),
                ("a:\n  b: 1\n\n  # last in a\n\n# c\nc: 3\n", "['a']", "\n# c\nc: 3\n"),
                ("a:\n  x: 1\n  # in a\nb: 2\n", "['b']", "a:\n  x: 1\n  # in a\n"),
                ("a: |\n  # no comment\nb: 2\n", "['b']", "a: |\n  # no comment\n"),
                ("l:\n  # one\n  - a\n  # two\n  - b\n", "['l'][1]", "l:\n  # one\n  - a\n"),
                ("l:\n  # one\n  - a\n  # two\n  - b\n", "['l'][0]", "l:\n  # two\n  - b\n"),
            ],
        );
    }

    #[test]
    fn other_formats_lose_an_entry() {
        check_all(
            Format::Json,
            &[
                ("{\"a\": 1, \"b\": [1, 2]}", "['a']", "{\"b\": [1, 2]}"),
                ("{\"a\": 1, \"b\": [1, 2]}", "['b']", "{\"a\": 1}"),
                ("{\"a\": 1, \"b\": [1, 2]}", "['b'][0]", "{\"a\": 1, \"b\": [2]}"),
                ("{\n  \"a\": 1,\n  \"b\": 2\n}\n", "['a']", "{\n  \"b\": 2\n}\n"),
                ("{\n  \"a\": 1,\n  \"b\": 2\n}\n", "['b']", "{\n  \"a\": 1\n}\n"),
                ("{\n  \"a\": {\n    \"b\": 2\n  }\n}\n", "['a']['b']", "{\n  \"a\": {}\n}\n"),
                ("{\"a\":1}", "['a']", "{}"),
            ],
        );
        check_all(
            Format::Dotenv,
            &[
                ("A=1\n# b\nB=2\n\nC=3", "['B']", "A=1\n\nC=3"),
                ("A=1\nB=2", "['B']", "A=1\n"),
                ("# head\n\nA=1\nB=2\n", "['A']", "# head\n\nB=2\n"),
            ],
        );
        check_all(
            Format::Ini,
            &[
                ("[s]\na = 1\n; b\nb = 2\n\nc = 3\n", "['s']['b']", "[s]\na = 1\n\nc = 3\n"),
                ("[s]\na = 1\n", "['s']['a']", "[s]\n"),
                ("x = 1\n[s]\na = 1\n; t\n[t]\nb = 2\n", "['t']", "x = 1\n[s]\na = 1\n"),
                ("x = 1\n[s]\na = 1\n; t\n[t]\nb = 2\n", "['DEFAULT']", "[s]\na = 1\n; t\n[t]\nb = 2\n"),
                ("[s]\na = \"\"\"x\n# y\"\"\"\nb = 2\n", "['s']['b']", "[s]\na = \"\"\"x\n# y\"\"\"\n"),
            ],
        );
    }

    /// Paths of all values and collections in the first document.
    fn paths(document: &Document) -> Vec<TreePath> {
        let mut paths = Vec::new();
        let root = document.tree.documents.first().and_then(|part| part.root);
        let mut waiting: Vec<(NodeId, Vec<Step>)> = root.map(|root| (root, Vec::new())).into_iter().collect();
        while let Some((node, way)) = waiting.pop() {
            let steps: Vec<(Step, NodeId)> = match &document.tree.nodes[node].kind {
                NodeKind::Map { entries, .. } => {
                    entries.iter().map(|entry| (Step::Key(entry.name.to_string()), entry.value)).collect()
                }
                NodeKind::List { items, .. } => {
                    items.iter().enumerate().map(|(index, item)| (Step::Index(index), *item)).collect()
                }
                _ => Vec::new(),
            };
            for (step, value) in steps {
                let way: Vec<Step> = way.iter().cloned().chain([step]).collect();
                paths.push(TreePath(way.clone()));
                waiting.push((value, way));
            }
        }
        paths
    }

    #[test]
    fn every_value_of_every_document_can_go() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/documents");
        let (mut removed, mut refused) = (0, 0);
        for entry in std::fs::read_dir(folder).unwrap() {
            let file = entry.unwrap().path();
            let name = file.file_name().unwrap().to_str().unwrap().to_owned();
            let format = Format::of_file(&name);
            let Some(text) = std::fs::read_to_string(&file).ok().filter(|_| format != Format::Binary) else {
                continue;
            };
            let Ok(document) = Document::read(&text, format) else { continue };
            for path in paths(&document) {
                match edited(&text, format, &path).map_err(|error| error.to_string()) {
                    Ok(Some(edited)) => {
                        removed += 1;
                        let lines: HashSet<&str> = text.lines().collect();
                        let new = edited.expose_secret().lines().filter(|line| !lines.contains(line)).count();
                        assert!(new <= 1, "{name} {path:?}: {new} other lines");
                    }
                    // Sections may repeat, and a path leads to the first.
                    Ok(None) => assert_eq!(format, Format::Ini, "{name}: {path:?} is not found"),
                    Err(error) => {
                        let known = [" repeats it as ", "it is the last ", "lacre edit"];
                        assert!(known.iter().any(|known| error.contains(known)), "{name} {path:?}: {error}");
                        refused += 1;
                    }
                }
            }
        }
        assert!(removed > 800 && refused * 20 < removed, "{removed} went, {refused} did not");
    }

    #[test]
    fn what_is_not_there_is_told_from_what_cannot_be() {
        let text = "a: 1\nl: [x]\nm: {k: v}\nb: *z\n".replace("*z", "&z {y: 1}") + "c: *z\n";
        for path in ["['x']", "[1]['a']", "['m']['x']", "['l'][1]", "['l'][7]", "['x']['y'][0]"] {
            assert_eq!(without(&text, path, Format::Yaml), Ok(None), "{path}");
        }
        for path in ["['a']['b']", "['l']['k']", "['m'][0]", "[0]", "['c']['y']"] {
            assert!(without(&text, path, Format::Yaml).is_err(), "{path}");
        }
        assert_eq!(without(&text, "['c']", Format::Yaml).unwrap().unwrap().lines().count(), 4);
    }

    #[test]
    fn what_an_alias_repeats_stays() {
        for (text, path) in [
            ("a: &x 1\nb: *x\n", "['a']"),
            ("a:\n  b: &x {c: 1}\nd:\n  <<: *x\n", "['a']"),
            ("a: [&x 1]\nb: *x\n", "['a'][0]"),
            ("&x a: 1\nb: *x\n", "['a']"),
            ("a: &x 1\nb: &x 2\nc: *x\n", "['b']"),
        ] {
            let error = without(text, path, Format::Yaml).unwrap_err();
            assert!(error.contains(" repeats it as `*x`"), "{error}");
        }
        check_all(
            Format::Yaml,
            &[
                ("a: &x 1\nb: &x 2\nc: *x\n", "['a']", "b: &x 2\nc: *x\n"),
                ("a: {b: &x 1, c: *x}\nd: 2\n", "['a']", "d: 2\n"),
            ],
        );
    }

    #[test]
    fn a_text_that_would_take_the_blank_lines_below_is_left_alone() {
        let error = without("a: |+\n  x\nb: 1\n\nc: 2\n", "['b']", Format::Yaml).unwrap_err();
        assert!(error.contains("lacre edit"), "{error}");
        assert!(without("A=1\n", "['A']", Format::Dotenv).is_err());
        assert!(without("[s]\na = 1\n", "['s']", Format::Ini).is_err());
    }
}

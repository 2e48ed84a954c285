//! YAML as stock tools print a tree.
//!
//! Stock tools hand nodes with comments to a printer that was written for streams of events, so where a comment comes
//! out depends on what was printed before it. That state is kept here in the same terms: comments wait until the
//! printer comes by a place for them. What it would print wrong is printed right: the digit after `|` counts from
//! where the block really stands, and a comment that another would push away waits beside it.

mod node;
mod scalar;

use zeroize::Zeroizing;

use crate::convert::Conversion;
use crate::convert::tree::Data;
use crate::convert::yaml::node::{Content, Node};
use crate::convert::yaml::scalar::{Scalar, Style};

/// Most spaces that a level can have; other numbers mean the fewest.
const INDENT_MAX: usize = 9;
const INDENT_MIN: usize = 2;
/// Bytes of the longest key that stands on one line with its value.
const SIMPLE_KEY_MAX: usize = 128;

/// A stream of documents, one for each of `roots`. It ends early where it is too large.
pub(super) fn print(roots: &[Data<'_>], indent: usize, conversion: &Conversion<'_>) -> Zeroizing<String> {
    let step = if (INDENT_MIN..=INDENT_MAX).contains(&indent) { indent } else { INDENT_MIN };
    let nodes: Vec<Node<'_>> = roots.iter().map(Node::of).collect();
    let mut printer = Printer {
        text: conversion.buffer(),
        bytes_max: conversion.bytes_max,
        step,
        whitespace: true,
        indention: true,
        ..Printer::default()
    };
    for (number, root) in nodes.iter().enumerate() {
        printer.document(root, number == 0);
    }
    printer.text
}

/// What a node stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    List,
    Map,
    Root,
}

/// Comments that wait for their place.
#[derive(Default)]
struct Waiting<'a> {
    head: Vec<&'a str>,
    line: Vec<&'a str>,
    foot: Vec<&'a str>,
    tail: Vec<&'a str>,
}

#[derive(Default)]
struct Printer<'a> {
    text: Zeroizing<String>,
    bytes_max: usize,
    step: usize,
    column: usize,
    /// The column of the block that is being printed.
    indent: Option<usize>,
    /// The column of the last foot: what follows there comes after a blank line.
    foot_indent: Option<usize>,
    /// Whether the last character was white space or counts as such.
    whitespace: bool,
    /// Whether there is nothing but indention on the line.
    indention: bool,
    waiting: Waiting<'a>,
}

impl<'a> Printer<'a> {
    fn document(&mut self, root: &Node<'a>, is_first: bool) {
        if !is_first {
            self.new_line();
            self.indicator("---", true, false);
            self.new_line();
        }
        self.begin(root);
        self.head_comments();
        self.node(root, Place::Root);
        self.line_comments();
        self.foot_comments();
        self.foot_indent = Some(0);
        self.foot_comments();
        self.foot_indent = None;
        self.new_line();
    }

    /// Takes up the comments that come with the beginning of a node.
    fn begin(&mut self, node: &Node<'a>) {
        self.waiting.head.extend(&node.head);
        if let Content::Scalar(_) = node.content {
            self.end(node);
        }
    }

    /// Takes up the comments that come with the end of a node.
    fn end(&mut self, node: &Node<'a>) {
        replace(&mut self.waiting.line, &node.line);
        replace(&mut self.waiting.foot, &node.foot);
    }

    fn node(&mut self, node: &Node<'a>, place: Place) {
        if self.text.len() > self.bytes_max {
            return;
        }
        let outer = self.indent;
        match &node.content {
            Content::List(items) if items.is_empty() => self.empty_list(node),
            Content::Map(entries) if entries.is_empty() => self.empty_map(node, place),
            Content::List(items) => {
                self.indent = Some(self.deeper(place, 0));
                items.iter().for_each(|item| self.item(item));
                self.end(node);
            }
            Content::Map(entries) => {
                self.indent = Some(self.deeper(place, 0));
                let mut foot: &[&str] = &[];
                for (key, value) in entries {
                    replace(&mut self.waiting.tail, foot);
                    self.entry(key, value);
                    foot = &key.foot;
                }
                replace(&mut self.waiting.tail, foot);
                self.end(node);
                self.head_comments();
            }
            Content::Scalar(scalar) => {
                self.indent = Some(self.deeper(place, self.step));
                self.scalar(scalar, outer.unwrap_or_default());
            }
        }
        self.indent = outer;
    }

    /// The column of what is inside the block that is being printed.
    fn deeper(&self, place: Place, at_root: usize) -> usize {
        match (self.indent, place) {
            (None, _) => at_root,
            (Some(indent), Place::List) => indent + 2,
            (Some(indent), _) => self.step * ((indent + self.step) / self.step),
        }
    }

    fn item(&mut self, item: &Node<'a>) {
        self.begin(item);
        self.head_comments();
        self.new_line();
        self.indicator("-", true, true);
        self.node(item, Place::List);
        self.line_comments();
        self.foot_comments();
    }

    fn entry(&mut self, key: &Node<'a>, value: &Node<'a>) {
        self.waiting.head.extend(&key.head);
        self.head_comments();
        self.new_line();
        let is_simple = match &key.content {
            Content::Scalar(scalar) => !scalar.is_multiline() && scalar.text.len() <= SIMPLE_KEY_MAX,
            Content::List(_) | Content::Map(_) => false,
        };
        if !is_simple {
            self.indicator("?", true, true);
        }
        self.node(key, Place::Map);
        self.begin(value);
        if is_simple {
            self.indicator(":", false, false);
        } else {
            self.new_line();
            self.indicator(":", true, true);
        }
        self.node(value, Place::Map);
        self.line_comments();
        self.foot_comments();
    }

    fn empty_list(&mut self, node: &Node<'a>) {
        self.indicator("[", true, false);
        self.end(node);
        self.indicator("]", false, false);
        self.line_comments();
        self.foot_comments();
    }

    fn empty_map(&mut self, node: &Node<'a>, place: Place) {
        self.indicator("{", true, false);
        self.whitespace = true;
        self.end(node);
        let outer = self.indent.replace(self.deeper(place, self.step));
        self.head_comments();
        self.indent = outer;
        self.indicator("}", false, false);
        self.line_comments();
        self.foot_comments();
    }

    /// A scalar in the block whose column is `outer`.
    fn scalar(&mut self, scalar: &Scalar<'a>, outer: usize) {
        if let Some(tag) = scalar.tag {
            self.indicator(tag, true, false);
        }
        match scalar.style {
            Style::Double => self.indicator(&scalar::double_quoted(&scalar.text), true, false),
            Style::Literal => self.literal(&scalar.text, outer),
            Style::Plain => self.indicator(&scalar.text, true, false),
            Style::Single => self.indicator(&scalar::single_quoted(&scalar.text), true, false),
        }
    }

    fn literal(&mut self, text: &str, outer: usize) {
        let body = text.trim_end_matches('\n');
        let digit = match text.starts_with([' ', '\n']) {
            true if body.is_empty() => self.step.to_string(),
            true => (self.indent.unwrap_or_default() - outer).to_string(),
            false => String::new(),
        };
        let chomping = match text.len() - body.len() {
            0 => "-",
            1 if !body.is_empty() => "",
            _ => "+",
        };
        self.indicator(&format!("|{digit}{chomping}"), true, false);
        match self.waiting.line.is_empty() {
            true => self.line_break(),
            false => self.line_comments(),
        }
        self.whitespace = true;
        for line in text.split_inclusive('\n') {
            let content = line.strip_suffix('\n').unwrap_or(line);
            if !content.is_empty() {
                self.new_line();
                self.push(content);
                self.indention = false;
            }
            if line.ends_with('\n') {
                self.line_break();
            }
        }
    }

    fn head_comments(&mut self) {
        let tail = std::mem::take(&mut self.waiting.tail);
        if !tail.is_empty() {
            self.new_line();
            self.comments(&tail);
            self.foot_indent = Some(self.indent.unwrap_or_default());
        }
        let head = std::mem::take(&mut self.waiting.head);
        if !head.is_empty() {
            self.new_line();
            self.comments(&head);
        }
    }

    fn line_comments(&mut self) {
        let line = std::mem::take(&mut self.waiting.line);
        if !line.is_empty() {
            if !self.whitespace {
                self.push(" ");
            }
            self.comments(&line);
        }
    }

    fn foot_comments(&mut self) {
        let foot = std::mem::take(&mut self.waiting.foot);
        if !foot.is_empty() {
            self.new_line();
            self.comments(&foot);
            self.foot_indent = Some(self.indent.unwrap_or_default());
        }
    }

    /// Comments one below the other, from where the printer stands.
    fn comments(&mut self, texts: &[&str]) {
        for (number, text) in texts.iter().enumerate() {
            for (row, line) in text.split('\n').enumerate() {
                if (number, row) != (0, 0) {
                    self.new_line();
                }
                match row {
                    0 => self.push("#"),
                    _ if line.starts_with('#') => {}
                    _ => self.push("# "),
                }
                self.push(line);
                self.indention = false;
                self.line_break();
            }
        }
        self.whitespace = true;
    }

    /// Goes to the block's column, on a line of its own.
    fn new_line(&mut self) {
        let indent = self.indent.unwrap_or_default();
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.line_break();
        }
        if self.foot_indent == Some(indent) {
            self.line_break();
        }
        if self.column < indent {
            self.push(&" ".repeat(indent - self.column));
        }
        self.whitespace = true;
        self.foot_indent = None;
    }

    fn line_break(&mut self) {
        self.text.push('\n');
        self.column = 0;
        self.indention = true;
    }

    /// Prints something that is no white space; `is_indention` when what follows on the line counts as its first.
    fn indicator(&mut self, text: &str, needs_space: bool, is_indention: bool) {
        if needs_space && !self.whitespace {
            self.push(" ");
        }
        self.push(text);
        self.whitespace = false;
        self.indention &= is_indention;
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.column += text.chars().count();
    }
}

/// Comments that come push those away that still wait.
fn replace<'a>(waiting: &mut Vec<&'a str>, new: &[&'a str]) {
    if !new.is_empty() {
        *waiting = new.to_vec();
    }
}

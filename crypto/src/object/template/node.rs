//! What a parsed template consists of, and how its parts are shown in messages.

use std::collections::BTreeMap;
use std::fmt;

use super::functions::Function;

/// All templates of one source by their name; the first is the source itself.
pub(super) type Templates = BTreeMap<Vec<u8>, Vec<Node>>;

/// One step of a template.
pub(super) enum Node {
    Action(Pipe),
    Break,
    Continue,
    If(Branch),
    Range(Branch),
    Template { at: usize, name: Vec<u8>, pipe: Option<Pipe> },
    Text(String),
    With(Branch),
}

/// A condition or a loop.
pub(super) struct Branch {
    pub(super) at: usize,
    pub(super) pipe: Pipe,
    pub(super) body: Vec<Node>,
    pub(super) otherwise: Option<Vec<Node>>,
}

/// Commands, each of which hands its value to the next, and the variables that take the last one.
pub(super) struct Pipe {
    pub(super) at: usize,
    pub(super) assigns: bool,
    pub(super) variables: Vec<String>,
    pub(super) commands: Vec<Command>,
}

/// A term and the arguments that it is given.
pub(super) struct Command {
    pub(super) terms: Vec<Term>,
}

pub(super) struct Term {
    pub(super) at: usize,
    pub(super) kind: TermKind,
}

pub(super) enum TermKind {
    Bool(bool),
    Chain(Box<Term>, Vec<String>),
    Dot,
    Field(Vec<String>),
    Function(&'static Function),
    Nil,
    Number(Number),
    Pipe(Pipe),
    Text {
        source: String,
        bytes: Vec<u8>,
    },
    /// A variable with its `$`, and the fields behind it.
    Variable(String, Vec<String>),
}

/// A number as it is written: which kinds it can be depends on where it stands.
#[derive(Clone, Debug)]
pub(super) struct Number {
    pub(super) source: String,
    pub(super) int: Option<i64>,
    pub(super) float: Option<f64>,
    /// Whether it is a float where nothing else is asked of it.
    pub(super) is_float: bool,
}

impl fmt::Display for Term {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = |formatter: &mut fmt::Formatter<'_>, fields: &[String]| {
            fields.iter().try_for_each(|field| write!(formatter, ".{field}"))
        };
        match &self.kind {
            TermKind::Bool(value) => write!(formatter, "{value}"),
            TermKind::Chain(term, names) => {
                match &term.kind {
                    TermKind::Pipe(_) => write!(formatter, "({term})")?,
                    _ => write!(formatter, "{term}")?,
                }
                fields(formatter, names)
            }
            TermKind::Dot => formatter.write_str("."),
            TermKind::Field(names) => fields(formatter, names),
            TermKind::Function(function) => formatter.write_str(function.name),
            TermKind::Nil => formatter.write_str("nil"),
            TermKind::Number(number) => formatter.write_str(&number.source),
            TermKind::Pipe(pipe) => write!(formatter, "{pipe}"),
            TermKind::Text { source, .. } => formatter.write_str(source),
            TermKind::Variable(name, names) => {
                formatter.write_str(name)?;
                fields(formatter, names)
            }
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, term) in self.terms.iter().enumerate() {
            if index > 0 {
                formatter.write_str(" ")?;
            }
            match &term.kind {
                TermKind::Pipe(_) => write!(formatter, "({term})")?,
                _ => write!(formatter, "{term}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Pipe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.variables.is_empty() {
            let sign = if self.assigns { "=" } else { ":=" };
            write!(formatter, "{} {sign} ", self.variables.join(", "))?;
        }
        for (index, command) in self.commands.iter().enumerate() {
            if index > 0 {
                formatter.write_str(" | ")?;
            }
            write!(formatter, "{command}")?;
        }
        Ok(())
    }
}

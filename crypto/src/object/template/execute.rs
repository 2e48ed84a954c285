//! Walks a parsed template and writes its result.
//!
//! Blocks, variables, loops and templates in templates are here; what a command evaluates to is in `call`.

use super::context::{Context, Fault};
use super::node::{Branch, Node, Pipe, Templates, Term};
use super::value::{List, Value};
use super::{OUTPUT_BYTES_MAX, TEMPLATE_DEPTH_MAX};
use crate::object::sealed_secret::MissingKey;
use crate::secret::SecretBytes;

/// What failed, and where.
pub(super) struct ExecuteFault {
    pub(super) at: usize,
    pub(super) template: String,
    pub(super) shown: String,
    pub(super) reason: Fault,
}

/// Why the walk does not go on to the next node.
pub(super) enum Flow {
    Break,
    Continue,
    Fault(Box<ExecuteFault>),
}

/// The part of the template that is at work, for messages.
#[derive(Clone, Copy)]
pub(super) enum Place<'t> {
    Node(usize, &'static str),
    Pipe(&'t Pipe),
    Term(&'t Term),
}

/// One rendering.
pub(super) struct Executor<'t> {
    pub(super) templates: &'t Templates,
    pub(super) context: Context,
    pub(super) missing: MissingKey,
    pub(super) place: Place<'t>,
    variables: Vec<(&'t str, Value)>,
    template: Vec<u8>,
    depth: usize,
    output: Vec<SecretBytes>,
    output_bytes: usize,
}

/// What a piece of output takes beside its bytes.
const PIECE_BYTES: usize = 32;

impl<'t> Executor<'t> {
    pub(super) fn new(templates: &'t Templates, context: Context, missing: MissingKey) -> Self {
        Self {
            templates,
            context,
            missing,
            place: Place::Node(0, ""),
            variables: Vec::new(),
            template: Vec::new(),
            depth: 0,
            output: Vec::new(),
            output_bytes: 0,
        }
    }

    /// Runs the template `name` with `data` as its dot.
    pub(super) fn run(&mut self, name: &str, data: Value) -> Result<SecretBytes, ExecuteFault> {
        self.template = name.as_bytes().to_vec();
        let nodes = self.templates.get(&self.template).map(Vec::as_slice).unwrap_or_default();
        self.variables.push(("$", data.clone()));
        match self.walk(&data, nodes) {
            // The parser lets no break or continue stand outside a loop.
            Ok(()) | Err(Flow::Break | Flow::Continue) => {}
            Err(Flow::Fault(fault)) => return Err(*fault),
        }
        let mut result = Vec::with_capacity(self.output_bytes);
        for piece in &self.output {
            result.extend_from_slice(piece.expose_secret());
        }
        Ok(SecretBytes::new(result))
    }

    /// A failure of what is at work.
    pub(super) fn fault(&self, reason: impl Into<String>) -> Flow {
        let (at, shown) = match self.place {
            Place::Node(at, word) => (at, word.to_owned()),
            Place::Pipe(pipe) => (pipe.at, pipe.to_string()),
            Place::Term(term) => (term.at, term.to_string()),
        };
        let template = String::from_utf8_lossy(&self.template).into_owned();
        Flow::Fault(Box::new(ExecuteFault { at, template, shown, reason: reason.into() }))
    }

    /// Pays for one step.
    pub(super) fn step(&mut self) -> Result<(), Flow> {
        self.context.step(1).map_err(|reason| self.fault(reason))
    }

    fn write(&mut self, bytes: SecretBytes) -> Result<(), Flow> {
        self.output_bytes += bytes.len();
        if self.output_bytes > OUTPUT_BYTES_MAX {
            return Err(self.fault(format!("the result has more than {OUTPUT_BYTES_MAX} bytes")));
        }
        self.context.reserve(bytes.len() + PIECE_BYTES).map_err(|reason| self.fault(reason))?;
        self.output.push(bytes);
        Ok(())
    }

    fn walk(&mut self, dot: &Value, nodes: &'t [Node]) -> Result<(), Flow> {
        for node in nodes {
            self.step()?;
            match node {
                Node::Action(pipe) => {
                    let value = self.pipeline(dot, pipe)?;
                    if pipe.variables.is_empty() {
                        self.place = Place::Pipe(pipe);
                        let shown = super::print::shown(&mut self.context, &value);
                        let shown = shown.map_err(|reason| self.fault(reason))?;
                        self.write(shown)?;
                    }
                }
                Node::Break => return Err(Flow::Break),
                Node::Continue => return Err(Flow::Continue),
                Node::If(branch) => self.condition(dot, branch, false)?,
                Node::Range(branch) => self.range(dot, branch)?,
                Node::Template { at, name, pipe } => self.call_template(dot, *at, name, pipe.as_ref())?,
                Node::Text(text) => self.write(SecretBytes::from(text.as_str()))?,
                Node::With(branch) => self.condition(dot, branch, true)?,
            }
        }
        Ok(())
    }

    fn condition(&mut self, dot: &Value, branch: &'t Branch, is_with: bool) -> Result<(), Flow> {
        let known = self.variables.len();
        let value = self.pipeline(dot, &branch.pipe)?;
        let result = match (&branch.otherwise, value.truth()) {
            (_, true) => self.walk(if is_with { &value } else { dot }, &branch.body),
            (Some(nodes), false) => self.walk(dot, nodes),
            (None, false) => Ok(()),
        };
        self.variables.truncate(known);
        result
    }

    fn range(&mut self, dot: &Value, branch: &'t Branch) -> Result<(), Flow> {
        let known = self.variables.len();
        let value = self.pipeline(dot, &branch.pipe)?;
        self.place = Place::Node(branch.at, "range");
        let ran = match &value {
            Value::Byte(end) => {
                self.count(branch, u64::from(*end), |at| Value::Byte(u8::try_from(at).unwrap_or(u8::MAX)))
            }
            Value::Int(end) => {
                self.count(branch, u64::try_from(*end).unwrap_or(0), |at| Value::Int(at.cast_signed()))
            }
            Value::Int64(end) => {
                self.count(branch, u64::try_from(*end).unwrap_or(0), |at| Value::Int64(at.cast_signed()))
            }
            Value::Uint64(end) => self.count(branch, *end, Value::Uint64),
            Value::List(list) => self.range_list(branch, list),
            Value::Map(map) => self.range_entries(branch, &map.copied()),
            Value::Missing | Value::Nil => Ok(false),
            other => {
                Err(self.fault(format!("range can't iterate over a value of type {}", other.type_name())))
            }
        };
        let result = match (ran, &branch.otherwise) {
            (Ok(true), _) | (Err(Flow::Break), _) | (Ok(false), None) => Ok(()),
            (Ok(false), Some(nodes)) => self.walk(dot, nodes),
            (Err(flow), _) => Err(flow),
        };
        self.variables.truncate(known);
        result
    }

    fn count(&mut self, branch: &'t Branch, end: u64, value: impl Fn(u64) -> Value) -> Result<bool, Flow> {
        if branch.pipe.variables.len() > 1 {
            return Err(self.fault("can't use a number to iterate over more than one variable"));
        }
        for at in 0..end {
            self.iteration(branch, Value::Missing, value(at))?;
        }
        Ok(end > 0)
    }

    fn range_list(&mut self, branch: &'t Branch, list: &List) -> Result<bool, Flow> {
        for (index, item) in (0..).zip(list.items.iter()) {
            self.iteration(branch, Value::Int(index), item.clone())?;
        }
        Ok(!list.items.is_empty())
    }

    fn range_entries(
        &mut self,
        branch: &'t Branch,
        entries: &[(super::value::Key, Value)],
    ) -> Result<bool, Flow> {
        for (key, value) in entries {
            let key = self.context.text(key.bytes()).map_err(|reason| self.fault(reason))?;
            self.iteration(branch, key, value.clone())?;
        }
        Ok(!entries.is_empty())
    }

    fn iteration(&mut self, branch: &'t Branch, index: Value, item: Value) -> Result<(), Flow> {
        self.step()?;
        let known = self.variables.len();
        let pipe = &branch.pipe;
        match (pipe.variables.as_slice(), pipe.assigns) {
            ([], _) => {}
            ([only], true) => self.assign(only, &item)?,
            ([first, second, ..], true) => {
                self.assign(first, &index)?;
                self.assign(second, &item)?;
            }
            ([_], false) => self.set_last(1, item.clone()),
            ([_, _, ..], false) => {
                self.set_last(1, item.clone());
                self.set_last(2, index);
            }
        }
        let result = self.walk(&item, &branch.body);
        self.variables.truncate(known);
        match result {
            Err(Flow::Continue) => Ok(()),
            other => other,
        }
    }

    fn set_last(&mut self, from_end: usize, value: Value) {
        let at = self.variables.len().checked_sub(from_end);
        if let Some(variable) = at.and_then(|at| self.variables.get_mut(at)) {
            variable.1 = value;
        }
    }

    pub(super) fn assign(&mut self, name: &str, value: &Value) -> Result<(), Flow> {
        match self.variables.iter_mut().rev().find(|(known, _)| *known == name) {
            Some(variable) => {
                variable.1 = value.clone();
                Ok(())
            }
            None => Err(self.fault(format!("undefined variable: {name}"))),
        }
    }

    pub(super) fn declare(&mut self, name: &'t str, value: Value) {
        self.variables.push((name, value));
    }

    pub(super) fn variable(&self, name: &str) -> Result<Value, Flow> {
        let found = self.variables.iter().rev().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.clone()).ok_or_else(|| self.fault(format!("undefined variable: {name}")))
    }

    fn call_template(
        &mut self,
        dot: &Value,
        at: usize,
        name: &'t [u8],
        pipe: Option<&'t Pipe>,
    ) -> Result<(), Flow> {
        self.place = Place::Node(at, "template");
        let Some(nodes) = self.templates.get(name) else {
            return Err(self.fault(format!("template {:?} not defined", String::from_utf8_lossy(name))));
        };
        if self.depth == TEMPLATE_DEPTH_MAX {
            return Err(self.fault(format!("exceeded maximum template depth ({TEMPLATE_DEPTH_MAX})")));
        }
        let data = match pipe {
            Some(pipe) => self.pipeline(dot, pipe)?,
            None => Value::Missing,
        };
        let variables = std::mem::replace(&mut self.variables, vec![("$", data.clone())]);
        let template = std::mem::replace(&mut self.template, name.to_vec());
        self.depth += 1;
        let result = self.walk(&data, nodes);
        if !matches!(result, Err(Flow::Fault(_))) {
            self.template = template;
        }
        self.depth -= 1;
        self.variables = variables;
        result
    }
}

//! What pipelines, commands and arguments evaluate to.

use super::execute::{Executor, Flow, Place};
use super::functions::{Function, Param, semver};
use super::node::{Command, Number, Pipe, Term, TermKind};
use super::value::Value;
use crate::object::sealed_secret::MissingKey;

impl<'t> Executor<'t> {
    pub(super) fn pipeline(&mut self, dot: &Value, pipe: &'t Pipe) -> Result<Value, Flow> {
        self.place = Place::Pipe(pipe);
        let mut value = None;
        for command in &pipe.commands {
            let result = self.command(dot, command, value)?;
            value = Some(if result.is_nothing() { Value::Missing } else { result });
        }
        let value = value.unwrap_or(Value::Missing);
        for variable in &pipe.variables {
            match pipe.assigns {
                true => self.assign(variable, &value)?,
                false => self.declare(variable, value.clone()),
            }
        }
        Ok(value)
    }

    /// `last` is what the command before hands over.
    fn command(&mut self, dot: &Value, command: &'t Command, last: Option<Value>) -> Result<Value, Flow> {
        self.step()?;
        let Some((first, arguments)) = command.terms.split_first() else { return Ok(Value::Missing) };
        self.place = Place::Term(first);
        let has_arguments = !arguments.is_empty() || last.is_some();
        match &first.kind {
            TermKind::Field(names) => self.fields(dot, dot.clone(), names, arguments, last),
            TermKind::Chain(term, names) => {
                let receiver = self.chained(dot, term)?;
                self.fields(dot, receiver, names, arguments, last)
            }
            TermKind::Variable(name, names) if !names.is_empty() => {
                let receiver = self.variable(name)?;
                self.fields(dot, receiver, names, arguments, last)
            }
            TermKind::Function(function) => self.function(dot, first, function, arguments, last),
            _ if has_arguments => Err(self.fault(format!("can't give argument to non-function {first}"))),
            TermKind::Nil => Err(self.fault("nil is not a command")),
            _ => self.plain(dot, first),
        }
    }

    fn chained(&mut self, dot: &Value, term: &'t Term) -> Result<Value, Flow> {
        if matches!(term.kind, TermKind::Nil) {
            return Err(self.fault("indirection through explicit nil"));
        }
        self.plain(dot, term)
    }

    /// A term with no arguments, as it is where any type fits.
    fn plain(&mut self, dot: &Value, term: &'t Term) -> Result<Value, Flow> {
        self.place = Place::Term(term);
        match &term.kind {
            TermKind::Bool(value) => Ok(Value::Bool(*value)),
            TermKind::Chain(inner, names) => {
                let receiver = self.chained(dot, inner)?;
                self.fields(dot, receiver, names, &[], None)
            }
            TermKind::Dot => Ok(dot.clone()),
            TermKind::Field(names) => self.fields(dot, dot.clone(), names, &[], None),
            TermKind::Function(function) => self.function(dot, term, function, &[], None),
            TermKind::Nil => Ok(Value::Nil),
            TermKind::Number(number) => Ok(constant(number)),
            TermKind::Pipe(pipe) => self.pipeline(dot, pipe),
            TermKind::Text { bytes, .. } => {
                self.context.text(bytes.as_slice()).map_err(|reason| self.fault(reason))
            }
            TermKind::Variable(name, names) => {
                let receiver = self.variable(name)?;
                match names.as_slice() {
                    [] => Ok(receiver),
                    names => self.fields(dot, receiver, names, &[], None),
                }
            }
        }
    }

    /// The fields `names` of `receiver`, one in the other. The last may be a method that takes arguments.
    fn fields(
        &mut self,
        dot: &Value,
        mut receiver: Value,
        names: &'t [String],
        arguments: &'t [Term],
        last: Option<Value>,
    ) -> Result<Value, Flow> {
        let Some((end, before)) = names.split_last() else { return Ok(receiver) };
        let place = self.place;
        for name in before {
            receiver = self.field(receiver, name, None)?;
        }
        let mut given = Vec::new();
        for argument in arguments {
            given.push(self.plain(dot, argument)?);
        }
        self.place = place;
        given.extend(last);
        self.field(receiver, end, (!given.is_empty()).then_some(given))
    }

    fn field(&mut self, receiver: Value, name: &str, arguments: Option<Vec<Value>>) -> Result<Value, Flow> {
        match receiver {
            Value::Missing => match self.missing {
                MissingKey::Error => Err(self.fault(format!("nil data; no entry for key {name:?}"))),
                MissingKey::Zero => Ok(Value::Missing),
            },
            Value::Nil => Err(self.fault(format!("nil pointer evaluating interface {{}}.{name}"))),
            Value::Map(_) if arguments.is_some() => {
                Err(self.fault(format!("{name} is not a method but has arguments")))
            }
            Value::Map(map) => match (map.value(name.as_bytes()), self.missing) {
                (Some(value), _) => Ok(value),
                (None, MissingKey::Zero) => Ok(Value::Missing),
                (None, MissingKey::Error) => Err(self.fault(format!("map has no entry for key {name:?}"))),
            },
            Value::Version(version) => {
                semver::method(&mut self.context, &version, name, &arguments.unwrap_or_default())
                    .map_err(|reason| self.fault(reason))
            }
            other => Err(self.fault(format!("can't evaluate field {name} in type {}", other.type_name()))),
        }
    }

    fn function(
        &mut self,
        dot: &Value,
        term: &'t Term,
        function: &'static Function,
        arguments: &'t [Term],
        last: Option<Value>,
    ) -> Result<Value, Flow> {
        self.step()?;
        let count = arguments.len() + usize::from(last.is_some());
        let (name, least) = (function.name, function.params.len());
        if function.rest.is_some() && count < least {
            let given = arguments.len();
            return Err(
                self.fault(format!("wrong number of args for {name}: want at least {least} got {given}"))
            );
        }
        if function.rest.is_none() && count != least {
            return Err(self.fault(format!("wrong number of args for {name}: want {least} got {count}")));
        }
        if matches!(name, "and" | "or") {
            return self.short_circuit(dot, name == "or", arguments, last);
        }
        let mut values = Vec::with_capacity(count);
        for (index, argument) in arguments.iter().enumerate() {
            values.push(self.argument(dot, argument, function.param(index))?);
        }
        if let Some(last) = last {
            values.push(self.validated(last, function.param(arguments.len()))?);
        }
        self.place = Place::Term(term);
        let result = match (name, arguments) {
            // A message that the source spells out is no secret; one made of values may be.
            ("fail", [Term { kind: TermKind::Text { bytes, .. }, .. }]) => {
                Err(String::from_utf8_lossy(bytes).into_owned())
            }
            _ => (function.run)(&mut self.context, &values),
        };
        result.map_err(|reason| self.fault(format!("error calling {name}: {reason}")))
    }

    /// `and` and `or` evaluate no argument behind the one that decides.
    fn short_circuit(
        &mut self,
        dot: &Value,
        decides: bool,
        arguments: &'t [Term],
        last: Option<Value>,
    ) -> Result<Value, Flow> {
        let mut value = Value::Missing;
        for argument in arguments {
            value = self.plain(dot, argument)?;
            if value.truth() == decides {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }

    fn argument(&mut self, dot: &Value, term: &'t Term, param: Param) -> Result<Value, Flow> {
        self.place = Place::Term(term);
        let wrong = |what: &str| format!("expected {what}; found {term}");
        let literal = match (&term.kind, param) {
            (TermKind::Nil, Param::Any | Param::Dict | Param::Value) => return Ok(Value::Nil),
            (TermKind::Nil, _) => Err(format!("cannot assign nil to {}", param.type_name())),
            (TermKind::Bool(value), Param::Bool) => Ok(Value::Bool(*value)),
            (TermKind::Number(number), Param::Int) => {
                number.int.map(Value::Int).ok_or_else(|| wrong("integer"))
            }
            (TermKind::Number(number), Param::Float) => {
                number.float.map(Value::Float).ok_or_else(|| wrong("float"))
            }
            (TermKind::Text { bytes, .. }, Param::Text) => self.context.text(bytes.as_slice()),
            (TermKind::Bool(_) | TermKind::Number(_) | TermKind::Text { .. }, param) => match param {
                Param::Any | Param::Value => return self.plain(dot, term),
                Param::Bool => Err(wrong("bool")),
                Param::Dict => Err(format!("can't handle {term} for arg of type {}", param.type_name())),
                Param::Float => Err(wrong("float")),
                Param::Int => Err(wrong("integer")),
                Param::Text => Err(wrong("string")),
            },
            _ => {
                let value = self.plain(dot, term)?;
                self.place = Place::Term(term);
                return self.validated(value, param);
            }
        };
        literal.map_err(|reason| self.fault(reason))
    }

    /// The value, if it is of the type that the function takes.
    fn validated(&self, value: Value, param: Param) -> Result<Value, Flow> {
        let fits = match (param, &value) {
            (Param::Value, _)
            | (Param::Bool, Value::Bool(_))
            | (Param::Float, Value::Float(_))
            | (Param::Int, Value::Int(_))
            | (Param::Text, Value::Text(_)) => true,
            (Param::Any | Param::Dict, Value::Missing) => return Ok(Value::Nil),
            (Param::Any, _) => true,
            (Param::Dict, Value::Map(map)) => !map.of_text,
            (_, Value::Missing) => {
                return Err(self.fault(format!("invalid value; expected {}", param.type_name())));
            }
            _ => false,
        };
        if fits {
            return Ok(value);
        }
        let got = if matches!(value, Value::Nil) { "interface {}" } else { value.type_name() };
        Err(self.fault(format!("wrong type for value; expected {}; got {got}", param.type_name())))
    }
}

/// A number where any type fits.
fn constant(number: &Number) -> Value {
    match (number.int, number.float) {
        (_, Some(float)) if number.is_float => Value::Float(float),
        (Some(int), _) => Value::Int(int),
        _ => Value::Missing,
    }
}

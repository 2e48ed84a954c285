//! `lacre doctor`: the whole situation of a file, or of this machine.

mod environment;
mod file;

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value};

use super::Context;
use crate::args::{FormatArgs, JsonArgs};
use crate::error::CommandError;
use crate::output::printable;

/// Explain a file: which rule it falls under, for whom it is sealed, which of them can be opened here, what its seal
/// says, what is plain and why. Without a file, explain this machine.
///
/// Identities that are found are tried, so that a key service may be called and a passphrase asked for. Nothing is
/// changed, and no value is shown. Exit code: 0 when all is well, 1 when something should be seen to.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  lacre doctor secrets.yaml\n  lacre doctor")]
pub(crate) struct DoctorArgs {
    /// The file to explain.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) script: JsonArgs,
    #[command(flatten, next_help_heading = "Format")]
    format: FormatArgs,
}

pub(crate) fn run(args: &DoctorArgs, context: &Context) -> Result<(), CommandError> {
    let mut report = Report::default();
    match &args.file {
        Some(path) => file::explain(path, &args.format, context, &mut report)?,
        None => environment::explain(context, &mut report)?,
    }
    context.output.answer(printable(&report.text()).trim_end(), &Value::Object(report.values))?;
    match report.troubles {
        0 => Ok(()),
        1 => Err(CommandError::general("1 thing should be seen to").hint("it is marked with `!` above")),
        count => Err(CommandError::general(format!("{count} things should be seen to"))
            .hint("they are marked with `!` above")),
    }
}

/// What is told: sections to a person, values to a script.
#[derive(Default)]
struct Report {
    sections: Vec<(String, Vec<String>)>,
    values: Map<String, Value>,
    troubles: usize,
}

impl Report {
    /// Begins a section.
    fn section(&mut self, title: impl Into<String>) {
        self.sections.push((title.into(), Vec::new()));
    }

    /// Adds a line to the section.
    fn line(&mut self, line: impl Into<String>) {
        if let Some((_, lines)) = self.sections.last_mut() {
            lines.push(format!("  {}", line.into().replace('\n', "\n    ")));
        }
    }

    /// Adds a line that asks for something to be done.
    fn trouble(&mut self, line: impl Into<String>) {
        self.troubles += 1;
        if let Some((_, lines)) = self.sections.last_mut() {
            lines.push(format!("! {}", line.into().replace('\n', "\n    ")));
        }
    }

    /// Tells a script.
    fn value(&mut self, name: &str, value: impl Into<Value>) {
        self.values.insert(name.to_owned(), value.into());
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (title, lines) in &self.sections {
            text += &format!("{title}\n");
            lines.iter().for_each(|line| text += &format!("{line}\n"));
        }
        text
    }
}

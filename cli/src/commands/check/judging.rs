//! What is wrong with one file, as far as it can be told without a key, and what to do about it.

use std::path::Path;

use lacre_crypto::error::DecryptError;
use lacre_crypto::inspect::{Inspection, Problem, plain_objects};
use lacre_crypto::{Format, SealedFile, Timestamp};
use serde_json::{Value, json};

use super::super::updatekeys::Plan;
use crate::commands::Context;
use crate::config::{self, Keys, Rule};
use crate::error::CommandError;
use crate::files;
use crate::opening;
use crate::targets::{self, State};

/// What a file turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Status {
    /// Plain, and nobody asks for it to be sealed.
    Free,
    /// Plain, and it should not be.
    Plain,
    /// Sealed, well or badly.
    Sealed,
    /// It cannot be read.
    Unreadable,
}

/// One thing that is wrong, where, and the way out.
#[derive(Debug)]
pub(in crate::commands) struct Finding {
    pub(in crate::commands) line: usize,
    pub(in crate::commands) is_warning: bool,
    pub(in crate::commands) what: String,
    pub(in crate::commands) next: String,
}

/// What is to be said of one file.
#[derive(Debug)]
pub(in crate::commands) struct Judgment {
    pub(in crate::commands) status: Status,
    pub(in crate::commands) format: Format,
    pub(in crate::commands) inspection: Option<Inspection>,
    pub(in crate::commands) findings: Vec<Finding>,
}

/// How the file came to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Origin {
    /// In a folder, or among what is staged: a rule must name it by a pattern to ask anything of it.
    Found,
    /// By its name: a rule for all files is for it, too.
    Named,
}

/// Judges `content`, which is or will be in the file at `path`.
pub(in crate::commands) fn judge(
    path: &Path,
    content: &[u8],
    format: Format,
    origin: Origin,
    context: &Context,
) -> Judgment {
    if files::is_left_behind(path) {
        return Judgment::left_behind(format);
    }
    let text = std::str::from_utf8(content).ok();
    let state = targets::state(content, format);
    let mut judgment = Judgment { status: Status::Sealed, format, inspection: None, findings: Vec::new() };
    match (state, text) {
        (State::Plain, _) => judgment.plain(path, content, origin, context),
        (_, Some(text)) => match SealedFile::read(text, format) {
            Ok(file) => judgment.sealed(path, &file, context),
            Err(error) => judgment.unreadable(&error),
        },
        (_, None) => judgment.plain(path, content, origin, context),
    }
    judgment
}

impl Judgment {
    /// A file that could not be read at all.
    pub(in crate::commands) fn lost(error: &CommandError) -> Self {
        let next = error.hints.first().cloned().unwrap_or_else(|| "make it readable".to_owned());
        let finding = Finding { line: 1, is_warning: false, what: error.cause.to_string(), next };
        Self { status: Status::Unreadable, format: Format::Binary, inspection: None, findings: vec![finding] }
    }

    /// A file that should have taken another's name.
    fn left_behind(format: Format) -> Self {
        let mut judgment = Self { status: Status::Plain, format, inspection: None, findings: Vec::new() };
        judgment.add(
            1,
            "left behind by a command that was killed while it wrote, perhaps with plaintext",
            "remove it: the file that it was for is whole, and the command can be run again",
        );
        judgment
    }

    /// How many findings are more than warnings.
    pub(in crate::commands) fn faults(&self) -> usize {
        self.findings.iter().filter(|finding| !finding.is_warning).count()
    }

    /// All of it for a script.
    pub(in crate::commands) fn as_json(&self, name: &str) -> Value {
        let status = match self.status {
            Status::Free | Status::Plain => "plain",
            Status::Sealed => "sealed",
            Status::Unreadable => "unreadable",
        };
        let finding = |finding: &Finding| {
            json!({
                "line": finding.line, "severity": if finding.is_warning { "warning" } else { "error" },
                "what": finding.what, "next": finding.next,
            })
        };
        let mut value = json!({
            "file": name, "status": status, "format": self.format.word(),
            "findings": self.findings.iter().map(finding).collect::<Vec<_>>(),
        });
        if let Some(found) = &self.inspection {
            value["seal"] = if found.has_seal { "present" } else { "absent" }.into();
            value["sealed"] = found.sealed.into();
            value["clear"] = found.clear.into();
            value["empty"] = found.empty.into();
        }
        value
    }

    fn add(&mut self, line: usize, what: impl Into<String>, next: impl Into<String>) {
        self.findings.push(Finding { line, is_warning: false, what: what.into(), next: next.into() });
    }

    fn plain(&mut self, path: &Path, content: &[u8], origin: Origin, context: &Context) {
        self.status = Status::Free;
        let text = std::str::from_utf8(content).unwrap_or_default();
        for line in plain_objects(text, self.format) {
            self.add(line, "an EncryptedSecret that is not sealed", "seal a Secret with `lacre kube seal`");
        }
        let rule = match config::rule_or_none(path, Keys::Replaced, context) {
            Ok(rule) => rule,
            Err(error) => return self.failed(1, &error),
        };
        let asks = |rule: &Rule| !targets::configures(path) && (rule.has_pattern || origin == Origin::Named);
        let is_empty = content.iter().all(u8::is_ascii_whitespace);
        if let Some(rule) = rule.filter(asks).filter(|_| !is_empty) {
            self.add(
                1,
                format!("should be sealed by {}, and is not", rule.name()),
                format!("seal it with `lacre encrypt --in-place {}`", path.display()),
            );
        }
        if !self.findings.is_empty() {
            self.status = Status::Plain;
        }
    }

    fn unreadable(&mut self, error: &DecryptError) {
        let (line, next) = match error {
            DecryptError::Parse(error) => {
                (error.line, "correct that place, or take the file from an older version")
            }
            _ => (1, "take the `sops` block from an older version"),
        };
        if matches!(error, DecryptError::Parse(_)) {
            self.status = Status::Unreadable;
        }
        self.add(line, error.to_string(), next);
    }

    fn sealed(&mut self, path: &Path, file: &SealedFile, context: &Context) {
        let inspection = file.inspect(Timestamp::now());
        for found in &inspection.findings {
            self.findings.push(Finding {
                line: found.line,
                is_warning: found.problem.is_warning(),
                what: found.problem.to_string(),
                next: next_step(&found.problem, path),
            });
        }
        let line = inspection.block_line;
        match config::rule_or_none(path, Keys::Wanted, context) {
            Ok(Some(rule)) => self.compare(path, file, &inspection, &rule),
            Ok(None) => {}
            Err(error) => self.failed(line, &error),
        }
        self.inspection = Some(inspection);
    }

    fn failed(&mut self, line: usize, error: &CommandError) {
        let next = error.hints.first().cloned().unwrap_or_else(|| "correct the configuration".to_owned());
        self.add(line, error.cause.to_string(), next);
    }

    /// What differs between the file and the rule that it falls under.
    fn compare(&mut self, path: &Path, file: &SealedFile, inspection: &Inspection, rule: &Rule) {
        let (line, shown, metadata) = (inspection.block_line, path.display(), file.metadata());
        let update = format!("make the recipients those of the rule with `lacre updatekeys {shown}`");
        if !rule.groups.is_empty() {
            let held = opening::ids(&metadata.groups);
            let plan = Plan::new(&held, metadata.shamir_threshold, rule);
            for id in &plan.removed {
                self.add(line, format!("is sealed for {id}, which {} does not name", rule.name()), &update);
            }
            for id in &plan.added {
                self.add(line, format!("is not sealed for {id}, which {} names", rule.name()), &update);
            }
            if plan.regrouped {
                self.add(
                    line,
                    format!("its groups or their threshold are not those of {}", rule.name()),
                    &update,
                );
            }
        }
        let again = format!(
            "seal it anew: `lacre decrypt --in-place {shown}`, then `lacre encrypt --in-place {shown}`"
        );
        let wanted = rule.selector.clone().unwrap_or_default();
        let has = &metadata.selector;
        let differs = (wanted.kind(), wanted.text()) != (has.kind(), has.text());
        if self.format.has_selection() && !inspection.is_object && differs {
            self.add(line, format!("is sealed by `{has}`, and {} says `{wanted}`", rule.name()), &again);
        }
        if rule.mac_only_encrypted != metadata.mac_only_encrypted && !inspection.is_object {
            self.add(line, format!("its mac_only_encrypted is not that of {}", rule.name()), &again);
        }
        if rule.require_seal && !inspection.has_seal {
            self.add(
                line,
                format!("has no seal, and {} requires one", rule.name()),
                format!("look at what changed, then take it over with `lacre reseal {shown}`"),
            );
        }
    }
}

fn next_step(problem: &Problem, path: &Path) -> String {
    let path = path.display();
    match problem {
        Problem::AmbiguousWord(word) => format!("write it in quotes: \"{word}\""),
        Problem::BadForm { .. } => "take that value from an older version".to_owned(),
        Problem::BadField { .. } => "take the `sops` block from an older version".to_owned(),
        Problem::Clear(_) => format!(
            "take it out and put it back with `lacre set {path}`; if anyone saw it, change the secret itself"
        ),
        Problem::ClearComments(_) => {
            format!("remove it, or seal it by writing the file again: `lacre rotate --in-place {path}`")
        }
        Problem::ClearSealedForm(_) => {
            "put the selector and the value back as an older version has them".to_owned()
        }
        Problem::FutureTime => format!("set the clock right, then `lacre rotate --in-place {path}`"),
        Problem::FluxWouldDecrypt => {
            "add the annotation `kustomize.toolkit.fluxcd.io/decrypt: disabled`".to_owned()
        }
        Problem::NonceReused { .. } => {
            format!("draw a new key and new nonces: `lacre rotate --in-place {path}`")
        }
        Problem::Object(_) => "make it anew from the Secret with `lacre kube seal`".to_owned(),
        Problem::Recipient { .. } => {
            format!("make the recipients those of the rule with `lacre updatekeys {path}`")
        }
        Problem::WeakerRecipient => {
            "remove the recipients that are not post-quantum, or live with it".to_owned()
        }
    }
}

//! The situation of one file.

use std::path::Path;

use lacre_crypto::inspect::Inspection;
use lacre_crypto::recipient::{RecipientId, WrappedKey};
use lacre_crypto::{SealedFile, Verdict};
use serde_json::{Value, json};

use super::Report;
use crate::args::FormatArgs;
use crate::commands::Context;
use crate::commands::check::{Judgment, Origin, Status, judge};
use crate::config::{self, Keys, Rule, Survey};
use crate::error::CommandError;
use crate::files::{self, Input};
use crate::opening::{Leniency, Opener};
use crate::targets::Target;

/// Values in the clear that are named one by one.
const CLEAR_VALUES_SHOWN: usize = 20;

/// Explains the file at `path`.
pub(super) fn explain(
    path: &Path,
    typed: &FormatArgs,
    context: &Context,
    report: &mut Report,
) -> Result<(), CommandError> {
    let input = files::read_any(Some(path), typed.filename_override.as_deref())?;
    let target = Target { folder: Some(".".into()), ..Target::named(path) };
    let format = target.format(typed)?;
    let judgment = judge(&input.name, input.content.expose_secret(), format, Origin::Named, context);
    let what = match judgment.status {
        Status::Free | Status::Plain => "plain",
        Status::Sealed => "sealed",
        Status::Unreadable => "unreadable",
    };
    report.section(format!("{}: {}, {what}", input.name.display(), format.word()));
    report.value("file", input.name.display().to_string());
    report.value("format", format.word());
    report.value("status", what);
    let rule = configuration(&input.name, context, report);
    if let Some(text) = input.content.as_text()
        && let Ok(sealed) = SealedFile::read(text, format)
    {
        let opener = Opener::new(context);
        recipients(&sealed, rule.as_ref(), &opener, report);
        let input = Input { name: input.name.clone(), path: None, content: text.into() };
        seal(&input, &sealed, &opener, report);
        if let Some(inspection) = &judgment.inspection {
            values(&sealed, inspection, report);
        }
    }
    findings(&judgment, report);
    Ok(())
}

/// Which rules there are, and which one counts.
fn configuration(name: &Path, context: &Context, report: &mut Report) -> Option<Rule> {
    report.section("configuration");
    match config::survey(name, context) {
        Ok(None) => {
            report.line("none: there is no .sops.yaml in the file's folder, this one, or above");
            report.value("configuration", Value::Null);
        }
        Ok(Some(survey)) => rules(&survey, report),
        Err(error) => report.trouble(error.cause.to_string()),
    }
    config::rule_or_none(name, Keys::Wanted, context).ok().flatten()
}

fn rules(survey: &Survey, report: &mut Report) {
    report.line(format!("{}, in which the file is called `{}`", survey.config.display(), survey.path));
    let first = survey.rules.iter().position(|rule| rule.matches);
    let mut told = Vec::new();
    for (index, rule) in survey.rules.iter().enumerate() {
        let number = index + 1;
        let scope = rule.pattern.as_ref().map_or("for all files".to_owned(), |text| format!("for `{text}`"));
        let verdict = match (rule.matches, first == Some(index)) {
            (_, true) => "counts",
            (true, false) => "matches, too, but an earlier one counts",
            (false, false) => "does not match",
        };
        report.line(format!("creation rule {number}, {scope}: {verdict}"));
        if !rule.unknown.is_empty() {
            report.trouble(format!("creation rule {number}: nobody reads `{}`", rule.unknown.join("`, `")));
        }
        told.push(json!({
            "number": number, "path_regex": rule.pattern, "matches": rule.matches,
            "counts": first == Some(index), "unknown_fields": rule.unknown,
        }));
    }
    if survey.rules.is_empty() {
        report.line("it has no creation rules");
    }
    report.value("configuration", json!({ "file": survey.config, "path": survey.path, "rules": told }));
}

/// For whom the file is sealed and should be, and who of them is here.
fn recipients(sealed: &SealedFile, rule: Option<&Rule>, opener: &Opener<'_>, report: &mut Report) {
    let groups = &sealed.metadata().groups;
    let entries: Vec<WrappedKey> = groups.iter().flatten().cloned().collect();
    let trials = opener.try_each(&entries);
    let wanted: Option<Vec<&RecipientId>> =
        rule.filter(|rule| !rule.groups.is_empty()).map(|rule| rule.groups.iter().flatten().collect());
    match (groups.len(), sealed.metadata().shamir_threshold) {
        (1, _) => report.section("recipients, each of whom opens it"),
        (count, threshold) => {
            let needed = threshold.unwrap_or(count);
            report.section(format!("recipients, of whose {count} groups {needed} open it together"));
        }
    }
    let numbers = groups.iter().enumerate().flat_map(|(index, group)| group.iter().map(move |_| index + 1));
    let mut told = Vec::new();
    for ((group, key), trial) in numbers.zip(&entries).zip(&trials.entries) {
        let mut line = match groups.len() {
            1 => key.recipient.to_string(),
            _ => format!("group {group}: {}", key.recipient),
        };
        line += match &trial.opened_by {
            Some(_) => ": opens here",
            None if trial.said.is_empty() => ": nobody here",
            None => ": does not open here",
        };
        let in_rule = wanted.as_ref().map(|wanted| wanted.contains(&&key.recipient));
        line += if in_rule == Some(false) { "; the rule does not name it" } else { "" };
        trial.said.iter().for_each(|said| line += &format!("\n{said}"));
        report.line(line);
        told.push(json!({
            "group": group, "recipient": key.recipient.to_string(), "opens": trial.opened_by.is_some(),
            "by": trial.opened_by, "said": trial.said, "in_rule": in_rule,
        }));
    }
    for id in wanted.iter().flatten().filter(|id| !entries.iter().any(|key| key.recipient == ***id)) {
        report.line(format!("{id}: named by the rule, and not in the file"));
    }
    report.value("recipients", told);
    report.section("identities were looked for in");
    for (name, outcome) in &trials.places {
        report.line(format!("{name}: {outcome}"));
    }
    let places = trials.places.iter().map(|(name, outcome)| json!({ "place": name, "outcome": outcome }));
    report.value("identities", places.collect::<Vec<_>>());
}

/// What the seal says, if there is a key.
fn seal(input: &Input, sealed: &SealedFile, opener: &Opener<'_>, report: &mut Report) {
    report.section("seal");
    let has_seal = sealed.metadata().seal.is_some();
    let leniency = Leniency { accept_missing_seal: true, ..Leniency::default() };
    let present = if has_seal { "present" } else { "absent" };
    match opener.open(input, sealed.format(), leniency) {
        Ok(open) => {
            let (word, line) = match open.verdict() {
                Verdict::Valid => ("valid", "valid: nothing was changed since it was sealed"),
                Verdict::NeverSealed => (
                    "never-sealed",
                    "there never was one: the sops MAC speaks for the values, nobody for keys, comments and recipients",
                ),
                Verdict::Removed => ("removed", "removed"),
            };
            report.line(line);
            report.value("opens", true);
            report.value("seal", word);
        }
        Err(error) => {
            report.trouble(format!("{present}; the file does not open here: {}", error.cause));
            error.hints.iter().for_each(|hint| report.line(format!("next: {hint}")));
            report.value("opens", false);
            report.value("seal", present);
            report.value("failure", error.kind.word());
        }
    }
}

/// How many values are sealed, and which are not and why.
fn values(sealed: &SealedFile, inspection: &Inspection, report: &mut Report) {
    let selector = sealed.metadata().selector.to_string();
    report.section("values");
    report.line(format!(
        "{} sealed, {} in the clear by `{selector}`, {} null or empty, which are never sealed",
        inspection.sealed, inspection.clear, inspection.empty
    ));
    for (line, path) in inspection.clear_values.iter().take(CLEAR_VALUES_SHOWN) {
        report.line(format!("in the clear: line {line}: {path}"));
    }
    let more = inspection.clear.saturating_sub(CLEAR_VALUES_SHOWN);
    if more > 0 {
        report.line(format!("and {more} more"));
    }
    let clear = inspection.clear_values.iter().map(|(line, path)| json!({ "line": line, "path": path }));
    report.value("selector", selector);
    report.value("sealed", inspection.sealed);
    report.value("clear", inspection.clear);
    report.value("empty", inspection.empty);
    report.value("clear_values", clear.collect::<Vec<_>>());
}

/// What `check` says of it.
fn findings(judgment: &Judgment, report: &mut Report) {
    if !judgment.findings.is_empty() {
        report.section("findings");
    }
    for finding in &judgment.findings {
        let line = format!("line {}: {}\nnext: {}", finding.line, finding.what, finding.next);
        if finding.is_warning { report.line(line) } else { report.trouble(line) }
    }
    let all = judgment.as_json("");
    report.value("findings", all["findings"].clone());
}

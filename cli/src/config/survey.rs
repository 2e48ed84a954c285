//! Which rules a configuration has and which of them are for a file, for whoever asks why.

use std::path::{Path, PathBuf};

use super::{CONFIG_NAME, file, lookup};
use crate::commands::Context;
use crate::compat;
use crate::error::CommandError;
use crate::output::{Output, recorded};

/// The configuration for a file, rule by rule.
pub(crate) struct Survey {
    /// Where it stands.
    pub(crate) config: PathBuf,
    /// What the file is called for its rules.
    pub(crate) path: String,
    /// The rules in their order; the first that matches counts.
    pub(crate) rules: Vec<SurveyedRule>,
}

/// One rule.
pub(crate) struct SurveyedRule {
    /// Its pattern; nothing for a rule for all files.
    pub(crate) pattern: Option<String>,
    /// Whether it is for the file.
    pub(crate) matches: bool,
    /// Fields that nobody reads.
    pub(crate) unknown: Vec<String>,
}

/// The configuration for `file`; nothing when there is none.
pub(crate) fn survey(file: &Path, context: &Context) -> Result<Option<Survey>, CommandError> {
    let named = context.global.config.as_deref().map(Path::new);
    let Some(config) = lookup::find(file, named, compat::spoken(), context.output)? else { return Ok(None) };
    let content = file::read(&config)?;
    let path = lookup::path_below(&config, file)?;
    let mut rules = Vec::new();
    for (index, raw) in content.creation_rules.iter().enumerate() {
        let place = format!("{}: creation rule {}", config.display(), index + 1);
        rules.push(SurveyedRule {
            pattern: raw.path_regex.clone(),
            matches: raw.matches(&path, &place)?,
            unknown: raw.unknown.keys().cloned().collect(),
        });
    }
    Ok(Some(Survey { config, path, rules }))
}

/// What to do when there is no rule at all: make a configuration, or correct the one that is there.
pub(super) fn way_to_rules(file: &Path, context: &Context) -> String {
    let named = context.global.config.as_deref().map(Path::new);
    // What is to be warned about has been said by whoever looked for the rule.
    let quiet = Output::default();
    let found = recorded(|| lookup::find(file, named, compat::spoken(), quiet)).0.ok().flatten();
    let Some(config) = found else {
        return format!("make a {CONFIG_NAME} with `lacre init`, or name one with `--config FILE`");
    };
    let unknown = file::read(&config).map(|content| content.unknown).unwrap_or_default();
    let shown = config.display();
    match unknown.keys().next() {
        Some(name) => {
            format!("{shown} has a section `{name}`, which nobody reads: should it be `creation_rules`?")
        }
        None => format!("add `creation_rules:` to {shown}, as `lacre init` writes them in an empty folder"),
    }
}

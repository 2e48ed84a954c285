//! Finds `.sops.yaml` and says which of its creation rules a file falls under.
//!
//! The nearest `.sops.yaml` from the file's own folder upward decides, so that the answer does not depend on where
//! the command was started. Stock sops looks from the working directory instead: when that finds another file, a
//! warning says so. The first rule whose `path_regex` matches the path below the configuration's folder wins.

mod file;
mod lookup;
mod pattern;

use std::path::{Path, PathBuf};

use lacre_crypto::Selector;
use lacre_crypto::recipient::RecipientId;

use crate::commands::Context;
use crate::error::CommandError;

pub(crate) use pattern::PathPattern;

/// Name of the file with the rules.
pub(crate) const CONFIG_NAME: &str = ".sops.yaml";

/// A creation rule that a file falls under, understood as far as its keys and selectors go.
#[derive(Debug)]
pub(crate) struct Rule {
    /// The file it stands in.
    pub(crate) config: PathBuf,
    /// Its place among the rules, from 1.
    pub(crate) number: usize,
    /// Who may open the file: one group, or several for Shamir.
    pub(crate) groups: Vec<Vec<RecipientId>>,
    /// How many groups are needed, if the rule says so.
    pub(crate) shamir_threshold: Option<usize>,
    /// Which values are sealed; nothing means the default.
    pub(crate) selector: Option<Selector>,
    /// Whether the sops MAC covers sealed values alone.
    pub(crate) mac_only_encrypted: bool,
    /// Whether the whole document is sealed beyond the sops MAC; mixed teams may turn it off.
    pub(crate) seal: bool,
}

impl Rule {
    /// The rule as messages name it.
    pub(crate) fn name(&self) -> String {
        format!("creation rule {} of {}", self.number, self.config.display())
    }
}

/// The rule for `file`, which a command cannot do without.
///
/// # Errors
/// The configuration is absent, cannot be read or understood, or none of its rules matches.
pub(crate) fn rule_required(file: &Path, context: &Context) -> Result<Rule, CommandError> {
    match find_rule(file, context)? {
        Found::Rule(rule) => Ok(*rule),
        Found::NoConfig => {
            Err(CommandError::general(format!("{}: no creation rules found for it", file.display()))
                .hint(format!("make a {CONFIG_NAME} with `lacre init`, or name one with `--config FILE`")))
        }
        Found::NoMatch { config, path } => {
            Err(CommandError::general(format!("{}: no creation rule matches `{path}`", config.display())).hint(
                "add a rule with a `path_regex` that matches, or one without it at the end, which matches all files",
            ))
        }
    }
}

/// The rule for `file`, or nothing; a configuration of which no rule matches counts as none.
pub(crate) fn rule_or_none(file: &Path, context: &Context) -> Result<Option<Rule>, CommandError> {
    match find_rule(file, context)? {
        Found::Rule(rule) => Ok(Some(*rule)),
        Found::NoConfig | Found::NoMatch { .. } => Ok(None),
    }
}

enum Found {
    NoConfig,
    NoMatch { config: PathBuf, path: String },
    Rule(Box<Rule>),
}

fn find_rule(file: &Path, context: &Context) -> Result<Found, CommandError> {
    let output = context.output;
    let Some(config) = lookup::find(file, context.global.config.as_deref(), output)? else {
        return Ok(Found::NoConfig);
    };
    let content = file::read(&config)?;
    if content.creation_rules.is_empty() {
        return Ok(Found::NoConfig);
    }
    let path = lookup::path_below(&config, file)?;
    for (index, raw) in content.creation_rules.iter().enumerate() {
        let place = format!("{}: creation rule {}", config.display(), index + 1);
        if raw.matches(&path, &place)? {
            raw.unknown.keys().for_each(|key| output.warn(&format!("{place}: unknown field `{key}`")));
            return Ok(Found::Rule(Box::new(raw.understood(&config, index + 1, &place)?)));
        }
    }
    Ok(Found::NoMatch { config, path })
}

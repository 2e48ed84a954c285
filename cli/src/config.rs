//! Finds `.sops.yaml` and says which of its creation rules a file falls under.
//!
//! The nearest `.sops.yaml` from the file's own folder upward decides, so that the answer does not depend on where
//! the command was started. Stock sops looks from the working directory instead, and so do we in its place; when
//! the two find different files, a warning says so. The first rule whose `path_regex` matches the path below the
//! configuration's folder wins.

mod destination;
mod file;
mod lookup;
mod stores;
mod survey;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use lacre_crypto::Selector;
use lacre_crypto::recipient::RecipientId;

use crate::args::GlobalArgs;
use crate::commands::Context;
use crate::compat;
use crate::environment;
use crate::error::CommandError;

pub(crate) use destination::{Publication, destination};
pub(crate) use lookup::absolute;
pub(crate) use stores::layout;
pub(crate) use survey::{Survey, survey};

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
    /// Whether a file without a seal is refused on read.
    pub(crate) require_seal: bool,
    /// Whether the rule names the files it is for, and so asks for them to be sealed; one without a pattern says how
    /// files are sealed, not which.
    pub(crate) has_pattern: bool,
}

impl Rule {
    /// The rule as messages name it.
    pub(crate) fn name(&self) -> String {
        format!("creation rule {} of {}", self.number, self.config.display())
    }
}

/// What becomes of a rule's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keys {
    /// Others take their place, so kinds that this build cannot use do not matter.
    Replaced,
    /// They are needed.
    Wanted,
}

/// The rule for `file`, which a command cannot do without.
///
/// # Errors
/// The configuration is absent, cannot be read or understood, or none of its rules matches.
pub(crate) fn rule_required(file: &Path, context: &Context) -> Result<Rule, CommandError> {
    match find_rule(file, Keys::Wanted, context)? {
        Found::Rule(rule) => Ok(*rule),
        Found::NoConfig => Err(CommandError::general(format!(
            "{}: config file not found, or has no creation rules",
            file.display()
        ))
        .hint(survey::way_to_rules(file, context))),
        Found::NoMatch { config, path } => Err(no_match(&config, &path)),
    }
}

/// The rule for `file`, or nothing; a configuration of which no rule matches counts as none, but not in the place of
/// sops.
pub(crate) fn rule_or_none(file: &Path, keys: Keys, context: &Context) -> Result<Option<Rule>, CommandError> {
    match find_rule(file, keys, context)? {
        Found::Rule(rule) => Ok(Some(*rule)),
        Found::NoMatch { config, path } if compat::as_sops() => Err(no_match(&config, &path)),
        Found::NoConfig | Found::NoMatch { .. } => Ok(None),
    }
}

/// Refuses a configuration that was `named` and cannot be used, as sops does whatever the verb. One that is merely
/// found and broken keeps nobody from opening a file.
pub(crate) fn demand_named(named: Option<&OsStr>) -> Result<(), CommandError> {
    match named.map(OsStr::to_owned).or_else(|| environment::words("SOPS_CONFIG")) {
        Some(named) => file::read(Path::new(&named)).map(drop),
        None => Ok(()),
    }
}

fn no_match(config: &Path, path: &str) -> CommandError {
    CommandError::general(format!("{}: no matching creation rules found for `{path}`", config.display())).hint(
        "add a rule with a `path_regex` that matches, or one without it at the end, which matches all files",
    )
}

/// Refuses as sops does for some verbs that have no use for a rule: where the configuration, `named` or found, has
/// creation rules and none of them is for `file`.
pub(crate) fn demand_match(file: &Path, named: Option<&OsStr>) -> Result<(), CommandError> {
    let config = named.map(OsStr::to_owned).or_else(|| environment::words("SOPS_CONFIG"));
    let global = GlobalArgs { config, ..GlobalArgs::default() };
    match find_raw(file, &Context { global, ..Context::default() })? {
        Found::NoMatch { config, path } => Err(no_match(&config, &path)),
        Found::NoConfig | Found::Rule(_) => Ok(()),
    }
}

/// Whether a file that is sealed already gets a seal when it is written again: yes, unless its rule says otherwise.
/// Nothing else of the rule is needed then, so a configuration that cannot be used is only warned about.
pub(crate) fn wants_seal(file: &Path, context: &Context) -> bool {
    match find_raw(file, context) {
        Ok(Found::Rule(found)) => found.raw.seal.unwrap_or(true),
        Ok(Found::NoConfig | Found::NoMatch { .. }) => true,
        Err(error) => {
            context.output.warn(&error.cause.to_string());
            true
        }
    }
}

/// Whether the rule of `file` refuses it without a seal. A configuration that cannot be used requires nothing: whoever
/// can break it could take the requirement out.
pub(crate) fn requires_seal(file: &Path, context: &Context) -> bool {
    matches!(find_raw(file, context), Ok(Found::Rule(found)) if found.raw.require_seal)
}

enum Found<T> {
    NoConfig,
    NoMatch { config: PathBuf, path: String },
    Rule(Box<T>),
}

/// A rule as written, and where it stands.
struct RawFound {
    raw: file::RawRule,
    config: PathBuf,
    number: usize,
    place: String,
}

fn find_rule(file: &Path, keys: Keys, context: &Context) -> Result<Found<Rule>, CommandError> {
    match find_raw(file, context)? {
        Found::NoConfig => Ok(Found::NoConfig),
        Found::NoMatch { config, path } => Ok(Found::NoMatch { config, path }),
        Found::Rule(found) => {
            for key in found.raw.unknown.keys() {
                context.output.warn(&format!("{}: unknown field `{key}`", found.place));
            }
            let groups = match keys {
                Keys::Wanted => found.raw.groups(&found.place)?,
                Keys::Replaced => Vec::new(),
            };
            let rule = found.raw.understood(groups, &found.config, found.number, &found.place)?;
            Ok(Found::Rule(Box::new(rule)))
        }
    }
}

fn find_raw(file: &Path, context: &Context) -> Result<Found<RawFound>, CommandError> {
    let Some(config) = lookup::find(
        file,
        context.global.config.as_deref().map(Path::new),
        compat::spoken(),
        context.output,
    )?
    else {
        return Ok(Found::NoConfig);
    };
    let content = file::read(&config)?;
    if content.creation_rules.is_empty() {
        return Ok(Found::NoConfig);
    }
    let path = lookup::path_below(&config, file)?;
    for (index, raw) in content.creation_rules.into_iter().enumerate() {
        let number = index + 1;
        let place = format!("{}: creation rule {number}", config.display());
        if raw.matches(&path, &place)? {
            return Ok(Found::Rule(Box::new(RawFound { raw, config, number, place })));
        }
    }
    Ok(Found::NoMatch { config, path })
}

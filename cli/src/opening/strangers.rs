//! Recipients of a file without a seal: anyone may have added them, so those that its creation rule does not name are
//! not taken over by the way.
//!
//! An entry that an attacker adds need not open anything: the next new data key would be wrapped for its recipient.

use std::path::Path;

use lacre_crypto::recipient::RecipientId;
use lacre_crypto::{OpenFile, Verdict};

use crate::commands::Context;
use crate::error::CommandError;
use crate::{compat, config};

/// Refuses strangers among the recipients, unless the user `accepts` them. As `sops` it warns, as sops takes everyone.
pub(crate) fn refuse(
    name: &Path,
    open: &OpenFile,
    accepts: bool,
    context: &Context,
) -> Result<(), CommandError> {
    if compat::as_sops() {
        // sops has no use for a rule here, so the lack of one stops nothing.
        found(name, open, context).ok().flatten().iter().for_each(|problem| context.output.warn(problem));
        return Ok(());
    }
    match found(name, open, context)? {
        Some(problem) if !accepts => Err(CommandError::general(problem)
            .hint("make the file's recipients those of the rule with `lacre updatekeys`")
            .hint("or take these over with `--accept-recipients`")),
        _ => Ok(()),
    }
}

/// Warns of strangers: for a command that keeps the data key, and so gives nothing to them yet.
pub(crate) fn warn(name: &Path, open: &OpenFile, context: &Context) {
    // A configuration that cannot be read is told where it is needed.
    if let Ok(Some(problem)) = found(name, open, context) {
        context.output.warn(&format!("{problem}; a later `rotate` would seal for them"));
    }
}

fn found(name: &Path, open: &OpenFile, context: &Context) -> Result<Option<String>, CommandError> {
    if open.verdict() == Verdict::Valid {
        return Ok(None);
    }
    let Some(rule) = config::rule_or_none(name, config::Keys::Wanted, context)? else {
        return Ok(None);
    };
    let known: Vec<&RecipientId> = rule.groups.iter().flatten().collect();
    let groups = super::groups(open);
    let strangers: Vec<String> = groups
        .iter()
        .flatten()
        .filter(|id| !known.iter().any(|known| known.means(id)))
        .map(ToString::to_string)
        .collect();
    Ok((!strangers.is_empty()).then(|| {
        format!(
            "{}: nothing proves its recipients, and {} does not name {}",
            name.display(),
            rule.name(),
            strangers.join(", "),
        )
    }))
}

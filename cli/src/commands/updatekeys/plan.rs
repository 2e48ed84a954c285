//! The difference between whom a file is sealed for and whom its creation rule names.

use lacre_crypto::recipient::RecipientId;
use serde_json::{Value, json};

use crate::config::Rule;

/// What is to happen to one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::commands) struct Plan {
    pub(in crate::commands) added: Vec<RecipientId>,
    pub(in crate::commands) removed: Vec<RecipientId>,
    pub(in crate::commands) kept: Vec<RecipientId>,
    /// Recipients move between groups, or the threshold changes.
    pub(in crate::commands) regrouped: bool,
}

impl Plan {
    /// What makes `held` and `threshold` those of `rule`.
    pub(in crate::commands) fn new(held: &[Vec<RecipientId>], threshold: Option<usize>, rule: &Rule) -> Self {
        let wanted = || rule.groups.iter().flatten();
        let holds = |id: &RecipientId| held.iter().flatten().any(|other| other == id);
        let (kept, added): (Vec<_>, Vec<_>) = wanted().cloned().partition(holds);
        let removed =
            held.iter().flatten().filter(|id| !wanted().any(|other| other == *id)).cloned().collect();
        let sorted = |groups: &[Vec<RecipientId>]| {
            groups
                .iter()
                .map(|group| group.iter().cloned().collect())
                .collect::<Vec<std::collections::BTreeSet<_>>>()
        };
        let several = rule.groups.len() > 1 || held.len() > 1;
        let wanted_threshold = rule.shamir_threshold.unwrap_or(rule.groups.len());
        let other_threshold = threshold.unwrap_or(held.len()) != wanted_threshold;
        let regrouped = several && (sorted(held) != sorted(&rule.groups) || other_threshold);
        Self { added, removed, kept, regrouped }
    }

    /// Whether the file is sealed for whom its rule says.
    pub(in crate::commands) fn changes_nothing(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && !self.regrouped
    }

    /// The plan as a person reads it.
    pub(in crate::commands) fn as_text(&self, name: &str, rule: &Rule, rotates: bool) -> String {
        let mut lines = vec![format!("{name}: by {}", rule.name())];
        lines.extend(self.removed.iter().map(|id| format!("  - {id}")));
        lines.extend(self.added.iter().map(|id| format!("  + {id}")));
        lines.extend(self.kept.iter().map(|id| format!("    {id}")));
        if self.regrouped {
            let threshold = rule.shamir_threshold.map_or("all".to_owned(), |count| count.to_string());
            lines.push(format!("  {} groups, of which {threshold} are needed", rule.groups.len()));
        }
        if rotates {
            lines.push("  a new data key, since a recipient is removed".to_owned());
        } else if !self.removed.is_empty() {
            lines.push("  the same data key, which the removed recipient knows".to_owned());
        }
        lines.join("\n")
    }

    /// The plan as a script reads it.
    pub(in crate::commands) fn as_json(&self, name: &str, changed: bool, rotated: bool) -> Value {
        let names = |ids: &[RecipientId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>();
        json!({
            "file": name, "changed": changed, "rotated": rotated, "regrouped": self.regrouped,
            "added": names(&self.added), "removed": names(&self.removed), "kept": names(&self.kept),
        })
    }
}

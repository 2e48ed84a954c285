//! How a new file is to be sealed: what was typed, completed by the rule the file falls under.
//!
//! Keys that are typed replace the rule's keys; a selector that is typed replaces the rule's selector. (Stock sops
//! merges selectors field by field, so that a typed suffix and a rule's pattern collide; in its place they do here.)

use std::path::Path;

use lacre_crypto::recipient::RecipientId;
use lacre_crypto::{EncryptOptions, Format, Selector, SelectorKind, Timestamp, WriteOptions};

use crate::args::{FormatArgs, RecipientArgs, SelectorArgs};
use crate::commands::Context;
use crate::compat;
use crate::config::{self, Keys, Rule};
use crate::error::{CommandError, Kind};
use crate::recipients::{self, ReadyGroups};

/// Everything that sealing a new file needs, public parts only.
pub(crate) struct Plan {
    pub(crate) groups: Vec<Vec<RecipientId>>,
    pub(crate) shamir_threshold: Option<usize>,
    pub(crate) selector: Selector,
    pub(crate) mac_only_encrypted: bool,
    pub(crate) seal: bool,
    pub(crate) allow_plaintext: bool,
}

impl Plan {
    /// The plan for the file called `name`.
    pub(crate) fn new(
        name: &Path,
        recipients: &RecipientArgs,
        selectors: &SelectorArgs,
        context: &Context,
    ) -> Result<Self, CommandError> {
        let typed = recipients::typed(&recipients.keys)?;
        let typed_selector = typed_selector(selectors)?;
        let rule = rule(name, typed.is_empty(), context)?;
        let (groups, shamir_threshold, selector, mac_only_encrypted, seal) = match rule {
            Some(rule) => {
                let (groups, threshold) = match typed.is_empty() {
                    true => (rule.groups, rule.shamir_threshold),
                    false => (vec![typed], None),
                };
                (groups, threshold, rule.selector, rule.mac_only_encrypted, rule.seal)
            }
            None => (vec![typed], None, None, false, true),
        };
        if compat::as_sops() {
            refuse_two_kinds(typed_selector.as_ref(), selector.as_ref())?;
        }
        let shamir_threshold = recipients.shamir_threshold.or(shamir_threshold).filter(|_| groups.len() > 1);
        check_threshold(shamir_threshold, groups.len())?;
        Ok(Self {
            groups,
            shamir_threshold,
            selector: typed_selector.or(selector).unwrap_or_default(),
            mac_only_encrypted: mac_only_encrypted || selectors.mac_only_encrypted,
            seal,
            allow_plaintext: selectors.allow_plaintext,
        })
    }

    /// The plan of a rule alone, with its selector, whichever of the six it is.
    pub(crate) fn of_rule(rule: &Rule) -> Self {
        Self {
            groups: rule.groups.clone(),
            shamir_threshold: rule.shamir_threshold,
            selector: rule.selector.clone().unwrap_or_default(),
            mac_only_encrypted: rule.mac_only_encrypted,
            seal: rule.seal,
            allow_plaintext: false,
        }
    }

    /// The recipients, ready to wrap.
    pub(crate) fn ready(&self, context: &Context) -> Result<ReadyGroups, CommandError> {
        ReadyGroups::new(&self.groups, self.shamir_threshold, context)
    }

    /// The plan as the crypto crate takes it, with what [`Plan::ready`] made.
    pub(crate) fn options<'a>(&self, ready: &'a ReadyGroups) -> EncryptOptions<'a> {
        EncryptOptions {
            groups: ready.as_groups(),
            selector: self.selector.clone(),
            mac_only_encrypted: self.mac_only_encrypted,
            bind: None,
            write: WriteOptions {
                now: Timestamp::now(),
                seal: self.seal,
                allow_plaintext: self.allow_plaintext,
            },
        }
    }
}

/// How the sealed file called `name` is written again: with a seal, unless its rule says otherwise.
pub(crate) fn write_options(name: &Path, context: &Context) -> WriteOptions {
    WriteOptions { now: Timestamp::now(), seal: config::wants_seal(name, context), allow_plaintext: true }
}

/// The rule for `name`. Typed keys can do without one.
fn rule(name: &Path, needed: bool, context: &Context) -> Result<Option<Rule>, CommandError> {
    if !needed {
        return config::rule_or_none(name, Keys::Replaced, context);
    }
    let rule = config::rule_required(name, context)?;
    if rule.groups.is_empty() {
        return Err(CommandError::new(Kind::NoRecipient, format!("{}: names no key", rule.name()))
            .hint("add `age: age1…` to the rule, or give keys with `--age`, `--pgp` or `--kms`"));
    }
    Ok(Some(rule))
}

/// The selector that was typed, if any.
fn typed_selector(typed: &SelectorArgs) -> Result<Option<Selector>, CommandError> {
    one_selector(&[
        (SelectorKind::UnencryptedSuffix, &typed.unencrypted_suffix),
        (SelectorKind::EncryptedSuffix, &typed.encrypted_suffix),
        (SelectorKind::UnencryptedRegex, &typed.unencrypted_regex),
        (SelectorKind::EncryptedRegex, &typed.encrypted_regex),
        (SelectorKind::UnencryptedCommentRegex, &typed.unencrypted_comment_regex),
        (SelectorKind::EncryptedCommentRegex, &typed.encrypted_comment_regex),
    ])
}

/// The one selector among `given`, of which sops allows a single one. Empty ones count as absent, as there.
pub(crate) fn one_selector(
    given: &[(SelectorKind, &Option<String>)],
) -> Result<Option<Selector>, CommandError> {
    let mut present = given
        .iter()
        .filter_map(|(kind, text)| text.as_deref().filter(|text| !text.is_empty()).map(|text| (*kind, text)));
    let Some((kind, text)) = present.next() else {
        return Ok(None);
    };
    if present.next().is_some() {
        return Err(more_than_one_selector());
    }
    Selector::new(kind, text).map(Some).map_err(|error| {
        CommandError::general(format!("the selector cannot be used: {error}"))
            .hint("patterns are those of Go's regexp package, without look-around")
    })
}

/// Shamir's sharing is for two and more, and no more than there are.
pub(crate) fn check_threshold(threshold: Option<usize>, groups: usize) -> Result<(), CommandError> {
    match threshold {
        Some(threshold) if !(2..=groups).contains(&threshold) => Err(CommandError::general(format!(
            "a threshold of {threshold} cannot be had with {groups} key groups"
        ))
        .hint(format!(
            "give one from 2 to {groups}; where any one key is to be enough, put them all in one group"
        ))),
        _ => Ok(()),
    }
}

/// A selector of the rule stays beside a typed one of another kind, and two are too many.
fn refuse_two_kinds(typed: Option<&Selector>, rule: Option<&Selector>) -> Result<(), CommandError> {
    match typed.zip(rule).is_some_and(|(typed, rule)| typed.kind() != rule.kind()) {
        true => Err(more_than_one_selector()),
        false => Ok(()),
    }
}

fn more_than_one_selector() -> CommandError {
    CommandError::new(Kind::ConflictingFlags, "more than one selector is given")
        .hint("keep one of the suffix, regex and comment-regex selectors")
}

/// The format of the file called `name`, unless a flag says it, for a command that writes in no other.
pub(crate) fn format(name: &Path, typed: &FormatArgs) -> Result<Format, CommandError> {
    let input = word(typed.input_type.as_deref(), "--input-type")?;
    let named = || Format::from_file_name(&name.to_string_lossy());
    let format = input.or_else(named).ok_or_else(|| {
        CommandError::on(Kind::Read, name.display(), "its name does not tell its format")
            .hint("say it with `--input-type`: `yaml`, `json`, `dotenv` or `ini`, or `binary` to seal all of it as one value")
    })?;
    if output_format(format, typed)? != format {
        return Err(CommandError::new(
            Kind::ConflictingFlags,
            "this command writes a document in the format it is read in",
        )
        .hint("leave `--output-type` out; `lacre decrypt` and `lacre encrypt` can convert"));
    }
    Ok(format)
}

/// The format in which a document of format `input` is written.
pub(crate) fn output_format(input: Format, typed: &FormatArgs) -> Result<Format, CommandError> {
    word(typed.output_type.as_deref(), "--output-type").map(|output| output.unwrap_or(input))
}

fn word(word: Option<&str>, flag: &str) -> Result<Option<Format>, CommandError> {
    let Some(word) = word else { return Ok(None) };
    Format::from_word(word).map(Some).ok_or_else(|| {
        CommandError::new(Kind::Read, format!("{flag} {word}: no format that this build knows"))
            .hint("formats are `yaml`, `json`, `dotenv`, `ini` and `binary`")
    })
}

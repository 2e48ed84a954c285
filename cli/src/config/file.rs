//! The text of `.sops.yaml`: what each field may hold, and what a rule means for keys and selectors.
//!
//! Kinds of keys that this build cannot seal for are refused, never skipped: a file must not end up with fewer
//! recipients than its rule asks for.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use lacre_crypto::recipient::{AwsKmsKey, RecipientId};
use lacre_crypto::{Pattern, Selector, SelectorKind};
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use yaml_serde::Value;

use super::Rule;
use super::destination::RawDestination;
use super::stores::Stores;
use crate::error::{CommandError, Kind};
use crate::files;
use crate::recipients;

/// Most bytes of a configuration file.
const CONFIG_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// How deep groups may be merged into groups.
const MERGE_DEPTH_MAX: usize = 16;

/// The whole file; sections that only stock sops uses are left unread.
#[derive(Debug, Default, Deserialize)]
pub(super) struct ConfigFile {
    #[serde(default)]
    pub(super) creation_rules: Vec<RawRule>,
    #[serde(default)]
    pub(super) destination_rules: Vec<RawDestination>,
    #[serde(default)]
    pub(super) stores: Stores,
    /// Sections that nobody reads, here or in sops; kept so that a misspelt one can be named.
    #[serde(flatten)]
    pub(super) unknown: BTreeMap<String, Value>,
}

/// A creation rule as written.
#[derive(Debug, Default, Deserialize)]
pub(super) struct RawRule {
    pub(super) path_regex: Option<String>,
    #[serde(default)]
    age: Words,
    #[serde(default)]
    pgp: Words,
    #[serde(default)]
    kms: Words,
    aws_profile: Option<String>,
    #[serde(default)]
    key_groups: Vec<RawGroup>,
    shamir_threshold: Option<usize>,
    unencrypted_suffix: Option<String>,
    encrypted_suffix: Option<String>,
    unencrypted_regex: Option<String>,
    encrypted_regex: Option<String>,
    unencrypted_comment_regex: Option<String>,
    encrypted_comment_regex: Option<String>,
    #[serde(default)]
    mac_only_encrypted: bool,
    pub(super) seal: Option<bool>,
    #[serde(default)]
    pub(super) require_seal: bool,
    #[serde(default)]
    gcp_kms: Words,
    #[serde(default)]
    azure_keyvault: Words,
    #[serde(default)]
    hc_vault_transit_uri: Words,
    #[serde(default)]
    hckms: Words,
    /// Read by nobody, here or in sops; kept so that a misspelt field can be named.
    #[serde(flatten)]
    pub(super) unknown: BTreeMap<String, Value>,
}

/// A key group as written.
#[derive(Debug, Default, Deserialize)]
struct RawGroup {
    #[serde(default)]
    age: Words,
    #[serde(default)]
    pgp: Words,
    #[serde(default)]
    kms: Vec<RawKmsKey>,
    #[serde(default)]
    merge: Vec<RawGroup>,
    #[serde(default)]
    gcp_kms: Vec<RawGcpKey>,
    #[serde(default)]
    azure_keyvault: Vec<RawAzureKey>,
    #[serde(default)]
    hc_vault: Words,
    #[serde(default)]
    hckms: Vec<RawHckmsKey>,
}

#[derive(Debug, Deserialize)]
struct RawKmsKey {
    arn: String,
    role: Option<String>,
    #[serde(default)]
    context: BTreeMap<String, String>,
    #[serde(default)]
    aws_profile: String,
}

#[derive(Debug, Deserialize)]
struct RawGcpKey {
    resource_id: String,
}

#[derive(Debug, Deserialize)]
struct RawAzureKey {
    #[serde(rename = "vaultUrl")]
    vault_url: String,
    key: String,
    #[serde(default)]
    version: String,
}

#[derive(Debug, Deserialize)]
struct RawHckmsKey {
    key_id: String,
}

/// A list of words, written as a YAML list or as one text with commas.
#[derive(Debug, Default)]
struct Words(Vec<String>);

/// Reads and parses the configuration; an error names file, line and column.
pub(super) fn read(path: &Path) -> Result<ConfigFile, CommandError> {
    let bytes = std::fs::File::open(path)
        .and_then(|file| files::read_bounded(file, CONFIG_BYTES_MAX))
        .map_err(|error| {
            CommandError::on(Kind::General, path.display(), files::plain_words(&error))
                .hint("make it readable, or use another file with `--config FILE`")
        })?;
    if bytes.expose_secret().iter().all(u8::is_ascii_whitespace) {
        return Ok(ConfigFile::default());
    }
    yaml_serde::from_slice::<Option<ConfigFile>>(bytes.expose_secret())
        .map(Option::unwrap_or_default)
        .map_err(|error| {
            let place = match error.location() {
                Some(at) => format!("{}:{}:{}", path.display(), at.line(), at.column()),
                None => path.display().to_string(),
            };
            CommandError::general(format!("{place}: {error}"))
                .hint("correct that line, or use another file with `--config FILE`")
        })
}

/// Whether a rule with this pattern is for `path`; one without a pattern is for every path.
pub(super) fn pattern_matches(pattern: Option<&str>, path: &str, place: &str) -> Result<bool, CommandError> {
    let Some(pattern) = pattern else { return Ok(true) };
    let pattern = Pattern::new("path_regex", pattern).map_err(|error| {
        CommandError::general(format!("{place}: {error}"))
            .hint("patterns are those of Go's regexp package, without look-around")
    })?;
    Ok(pattern.is_match(path))
}

impl RawRule {
    /// Whether the rule is for `path`; one without a pattern is for every path.
    pub(super) fn matches(&self, path: &str, place: &str) -> Result<bool, CommandError> {
        pattern_matches(self.path_regex.as_deref(), path, place)
    }

    /// What the rule means for `groups`. `place` names it in errors.
    pub(super) fn understood(
        &self,
        groups: Vec<Vec<RecipientId>>,
        config: &Path,
        number: usize,
        place: &str,
    ) -> Result<Rule, CommandError> {
        Ok(Rule {
            config: config.to_owned(),
            number,
            groups,
            shamir_threshold: self.shamir_threshold.filter(|threshold| *threshold != 0),
            selector: self.selector(place)?,
            mac_only_encrypted: self.mac_only_encrypted,
            seal: self.seal.unwrap_or(true),
            require_seal: self.require_seal,
            has_pattern: self.path_regex.is_some(),
        })
    }

    /// Key groups if there are any, else the flat fields as one group, as in sops.
    pub(super) fn groups(&self, place: &str) -> Result<Vec<Vec<RecipientId>>, CommandError> {
        if !self.key_groups.is_empty() {
            return self.key_groups.iter().map(|group| group.recipients(place, 0)).collect();
        }
        refuse_hckms(place, self.hckms.0.first())?;
        let mut group = text_recipients(&self.age, &self.pgp, place)?;
        let profile = self.aws_profile.as_deref().unwrap_or_default();
        for arn in &self.kms.0 {
            group.push(recipients::parse_kms(arn, None, profile).map_err(|error| in_place(place, &error))?);
        }
        let (gcp, azure, vault) = (&self.gcp_kms.0, &self.azure_keyvault.0, &self.hc_vault_transit_uri.0);
        let others = recipients::service_recipients(gcp, azure, vault);
        group.extend(others.map_err(|error| in_place(place, &error))?);
        Ok(if group.is_empty() { Vec::new() } else { vec![recipients::without_duplicates(group)] })
    }

    fn selector(&self, place: &str) -> Result<Option<Selector>, CommandError> {
        let given = [
            (SelectorKind::UnencryptedSuffix, &self.unencrypted_suffix),
            (SelectorKind::EncryptedSuffix, &self.encrypted_suffix),
            (SelectorKind::UnencryptedRegex, &self.unencrypted_regex),
            (SelectorKind::EncryptedRegex, &self.encrypted_regex),
            (SelectorKind::UnencryptedCommentRegex, &self.unencrypted_comment_regex),
            (SelectorKind::EncryptedCommentRegex, &self.encrypted_comment_regex),
        ];
        crate::sealing::one_selector(&given).map_err(|error| in_place(place, &error))
    }
}

impl RawGroup {
    fn recipients(&self, place: &str, depth: usize) -> Result<Vec<RecipientId>, CommandError> {
        if depth > MERGE_DEPTH_MAX {
            return Err(CommandError::general(format!(
                "{place}: groups merged deeper than {MERGE_DEPTH_MAX}"
            ))
            .hint("name the keys in the group itself"));
        }
        refuse_hckms(place, self.hckms.first().map(|key| &key.key_id))?;
        let mut group = Vec::new();
        for merged in &self.merge {
            group.extend(merged.recipients(place, depth + 1)?);
        }
        group.extend(text_recipients(&self.age, &self.pgp, place)?);
        group.extend(self.kms.iter().map(RawKmsKey::recipient));
        let gcp: Vec<String> = self.gcp_kms.iter().map(|key| key.resource_id.clone()).collect();
        let azure: Vec<String> = self.azure_keyvault.iter().map(RawAzureKey::url).collect();
        let others = recipients::service_recipients(&gcp, &azure, &self.hc_vault.0);
        group.extend(others.map_err(|error| in_place(place, &error))?);
        Ok(recipients::without_duplicates(group))
    }
}

impl RawKmsKey {
    fn recipient(&self) -> RecipientId {
        RecipientId::AwsKms(AwsKmsKey {
            arn: self.arn.clone(),
            role: self.role.clone().filter(|role| !role.is_empty()),
            context: self.context.clone(),
            profile: self.aws_profile.clone(),
        })
    }
}

impl RawAzureKey {
    /// The key as one word, as people write it elsewhere.
    fn url(&self) -> String {
        format!("{}/keys/{}/{}", self.vault_url.trim_end_matches('/'), self.key, self.version)
    }
}

/// age and PGP keys, which a word each describes, in the order in which sops writes them.
fn text_recipients(age: &Words, pgp: &Words, place: &str) -> Result<Vec<RecipientId>, CommandError> {
    let age = age.0.iter().map(|word| recipients::parse_age(word));
    let pgp = pgp.0.iter().map(|word| recipients::parse_pgp(word));
    age.chain(pgp).collect::<Result<_, _>>().map_err(|error| in_place(place, &error))
}

fn refuse_hckms(place: &str, word: Option<&String>) -> Result<(), CommandError> {
    word.map_or(Ok(()), |word| Err(in_place(place, &recipients::refused_hckms(word))))
}

fn in_place(place: &str, error: &CommandError) -> CommandError {
    let mut placed = CommandError::new(error.kind, format!("{place}: {}", error.cause));
    placed.hints.clone_from(&error.hints);
    placed
}

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordsVisitor).map(Self)
    }
}

struct WordsVisitor;

impl<'de> Visitor<'de> for WordsVisitor {
    type Value = Vec<String>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of texts, or one text with commas")
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(recipients::words(text).map(str::to_owned).collect())
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(text) = list.next_element::<String>()? {
            found.extend(recipients::words(&text).map(str::to_owned));
        }
        Ok(found)
    }
}

//! The `destination_rules` of `.sops.yaml`: where a sealed file is published, and for whom it is sealed there.

use std::path::Path;

use serde::Deserialize;

use super::file::{self, RawRule};
use super::{Rule, lookup};
use crate::commands::Context;
use crate::compat;
use crate::error::{CommandError, Kind};
use crate::publish::{Destination, VaultKv};

/// A destination rule as written.
#[derive(Debug, Default, Deserialize)]
pub(super) struct RawDestination {
    path_regex: Option<String>,
    #[serde(default)]
    s3_bucket: String,
    #[serde(default)]
    s3_prefix: String,
    #[serde(default)]
    gcs_bucket: String,
    #[serde(default)]
    gcs_prefix: String,
    #[serde(default)]
    vault_path: String,
    #[serde(default)]
    vault_address: String,
    #[serde(default)]
    vault_kv_mount_name: String,
    #[serde(default)]
    vault_kv_version: u64,
    recreation_rule: Option<RawRule>,
    #[serde(default)]
    omit_extensions: bool,
}

/// What a destination rule says about a file.
#[derive(Debug)]
pub(crate) struct Publication {
    /// Where it goes.
    pub(crate) destination: Destination,
    /// For whom it is sealed anew; nothing when it stays as it is.
    pub(crate) recreation: Option<Rule>,
    /// Whether it goes by its name without ending.
    pub(crate) omit_extensions: bool,
}

/// The destination of `file`: that of the first rule whose pattern matches the path as it was typed.
///
/// # Errors
/// There is no configuration, no rule matches, or the one that does cannot be understood.
pub(crate) fn destination(file: &Path, context: &Context) -> Result<Publication, CommandError> {
    let given = context.global.config.as_deref().map(Path::new);
    let absent = |what: String| {
        CommandError::new(Kind::General, what)
            .hint("add a rule to `destination_rules`, with `s3_bucket`, `gcs_bucket` or `vault_path`")
    };
    let Some(config) = lookup::find(file, given, compat::spoken(), context.output)? else {
        return Err(absent(format!("{}: config file not found", file.display())));
    };
    let content = file::read(&config)?;
    for (index, raw) in content.destination_rules.into_iter().enumerate() {
        let place = format!("{}: destination rule {}", config.display(), index + 1);
        if file::pattern_matches(raw.path_regex.as_deref(), &file.to_string_lossy(), &place)? {
            return raw.understood(&config, index + 1, &place);
        }
    }
    Err(absent(format!("{}: no matching destination rule found for `{}`", config.display(), file.display())))
}

impl RawDestination {
    fn understood(self, config: &Path, number: usize, place: &str) -> Result<Publication, CommandError> {
        let destination = self.destination(place)?;
        let recreation = match &self.recreation_rule {
            Some(rule) => {
                let groups = rule.groups(place)?;
                let rule = rule.understood(groups, config, number, place)?;
                Some(rule).filter(|rule| !rule.groups.is_empty())
            }
            None => None,
        };
        Ok(Publication { destination, recreation, omit_extensions: self.omit_extensions })
    }

    fn destination(&self, place: &str) -> Result<Destination, CommandError> {
        let refuse = |what: &str| {
            let error = CommandError::general(format!("{place}: {what}"));
            Err(error.hint("correct that rule of `destination_rules`"))
        };
        match (self.s3_bucket.as_str(), self.gcs_bucket.as_str(), self.vault_path.as_str()) {
            ("", "", "") => refuse("names no destination: `s3_bucket`, `gcs_bucket` or `vault_path`"),
            (bucket, "", "") => {
                Ok(Destination::S3 { bucket: bucket.to_owned(), prefix: self.s3_prefix.clone() })
            }
            ("", bucket, "") => {
                Ok(Destination::Gcs { bucket: bucket.to_owned(), prefix: self.gcs_prefix.clone() })
            }
            ("", "", path) => {
                let version = match self.vault_kv_version {
                    0 | 2 => 2,
                    1 => 1,
                    _ => return refuse("`vault_kv_version` is 1 or 2"),
                };
                let mount = match self.vault_kv_mount_name.as_str() {
                    "" => "secret",
                    mount => mount,
                };
                Ok(Destination::Vault(VaultKv {
                    address: Some(self.vault_address.clone()).filter(|address| !address.is_empty()),
                    mount: in_a_folder(mount),
                    path: in_a_folder(path),
                    version,
                }))
            }
            _ => refuse("more than one destination is given, and a rule has one"),
        }
    }
}

fn in_a_folder(path: &str) -> String {
    format!("{}/", path.strip_suffix('/').unwrap_or(path))
}

//! The entries of a `sops` block: wrapped keys by kind, in one group or several.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Plain};

use crate::metadata::GROUPS_MAX;
use crate::metadata::fields::text;
use crate::recipient::{
    AwsKmsKey, AzureKeyVaultKey, GcpKmsKey, RecipientId, VaultKey, WRAPPED_KEY_BYTES_MAX, WrappedKey,
};

/// The lists of entries, in the order in which they are written.
pub(super) const KINDS: [&str; 7] = ["age", "azure_kv", "gcp_kms", "hc_vault", "hckms", "kms", "pgp"];

pub(super) fn read_groups(block: &Map<String, Plain>) -> Result<Vec<Vec<WrappedKey>>, String> {
    let lists = read_group(block)?;
    let groups = match block.get("key_groups") {
        None | Some(Plain::Null) => Vec::new(),
        Some(Plain::Array(groups)) => groups
            .iter()
            .map(|group| read_group(group.as_object().ok_or("a key group is not a mapping")?))
            .collect::<Result<_, String>>()?,
        Some(_) => return Err("key_groups is not a list".to_owned()),
    };
    match (lists.is_empty(), groups.is_empty()) {
        (true, true) => Err("it names no recipient".to_owned()),
        (false, false) => {
            Err("it has lists of keys beside key_groups, of which other tools ignore one".to_owned())
        }
        (false, true) => Ok(vec![lists]),
        (true, false) if groups.len() > GROUPS_MAX => {
            Err(format!("it has more than {GROUPS_MAX} key groups"))
        }
        (true, false) => Ok(groups),
    }
}

fn read_group(group: &Map<String, Plain>) -> Result<Vec<WrappedKey>, String> {
    let mut keys = Vec::new();
    for kind in KINDS {
        match group.get(kind) {
            None | Some(Plain::Null) => {}
            Some(Plain::Array(entries)) => {
                for entry in entries {
                    keys.push(read_entry(kind, entry)?);
                }
            }
            Some(_) => return Err(format!("`{kind}` is not a list")),
        }
    }
    Ok(keys)
}

pub(super) fn read_entry(kind: &str, entry: &Plain) -> Result<WrappedKey, String> {
    let Plain::Object(entry) = entry else { return Err(format!("an entry of `{kind}` is not a mapping")) };
    let field = |name| text(entry, name).map(Option::unwrap_or_default);
    let recipient = match kind {
        "age" => RecipientId::Age(field("recipient")?),
        "pgp" => RecipientId::Pgp(field("fp")?.replace(' ', "").to_uppercase()),
        "kms" => RecipientId::AwsKms(AwsKmsKey {
            arn: field("arn")?,
            role: text(entry, "role")?.filter(|role| !role.is_empty()),
            context: read_context(entry.get("context"))?,
            profile: field("aws_profile")?,
        }),
        "azure_kv" => RecipientId::AzureKeyVault(AzureKeyVaultKey {
            vault_url: field("vault_url")?,
            name: field("name")?,
            version: field("version")?,
        }),
        "gcp_kms" => RecipientId::GcpKms(GcpKmsKey { resource_id: field("resource_id")? }),
        "hc_vault" => RecipientId::Vault(VaultKey {
            address: field("vault_address")?,
            engine_path: field("engine_path")?,
            name: field("key_name")?,
        }),
        _ => {
            let name = text(entry, "key_id").ok().flatten();
            RecipientId::Other { kind: kind.to_owned(), name: name.unwrap_or_default() }
        }
    };
    let enc = field("enc")?;
    if enc.len() > WRAPPED_KEY_BYTES_MAX {
        return Err(format!("the wrapped key for {recipient} is larger than 64 KiB"));
    }
    Ok(WrappedKey { recipient, enc, created_at: text(entry, "created_at")? })
}

fn read_context(context: Option<&Plain>) -> Result<BTreeMap<String, String>, String> {
    let entries = match context {
        None | Some(Plain::Null) => return Ok(Default::default()),
        Some(Plain::Object(entries)) => entries,
        Some(_) => return Err("an encryption context is not a mapping".to_owned()),
    };
    let pair = |(name, value): (&String, &Plain)| {
        let value = value.as_str().ok_or("an encryption context holds something else than text")?;
        Ok((name.clone(), value.to_owned()))
    };
    entries.iter().map(pair).collect()
}

pub(super) fn write_entry(wrapped: &WrappedKey) -> Plain {
    let mut entry = Map::new();
    let mut field = |name: &str, value: Plain| {
        entry.insert(name.to_owned(), value);
    };
    field("enc", wrapped.enc.clone().into());
    if let Some(created_at) = &wrapped.created_at {
        field("created_at", created_at.clone().into());
    }
    match &wrapped.recipient {
        RecipientId::Age(recipient) => field("recipient", recipient.clone().into()),
        RecipientId::AwsKms(key) => {
            field("arn", key.arn.clone().into());
            field("aws_profile", key.profile.clone().into());
            if let Some(role) = &key.role {
                field("role", role.clone().into());
            }
            if !key.context.is_empty() {
                let context = key.context.iter().map(|(name, value)| (name.clone(), value.clone().into()));
                field("context", Plain::Object(context.collect()));
            }
        }
        RecipientId::AzureKeyVault(key) => {
            field("name", key.name.clone().into());
            field("vault_url", key.vault_url.clone().into());
            field("version", key.version.clone().into());
        }
        RecipientId::GcpKms(key) => field("resource_id", key.resource_id.clone().into()),
        RecipientId::Other { .. } => {}
        RecipientId::Pgp(fingerprint) => field("fp", fingerprint.clone().into()),
        RecipientId::Vault(key) => {
            field("engine_path", key.engine_path.clone().into());
            field("key_name", key.name.clone().into());
            field("vault_address", key.address.clone().into());
        }
    }
    entry.sort_keys();
    Plain::Object(entry)
}

/// The name of the list that holds entries for this recipient.
pub(crate) fn kind_of(recipient: &RecipientId) -> &str {
    match recipient {
        RecipientId::Age(_) => "age",
        RecipientId::AwsKms(_) => "kms",
        RecipientId::AzureKeyVault(_) => "azure_kv",
        RecipientId::GcpKms(_) => "gcp_kms",
        RecipientId::Other { kind, .. } => kind,
        RecipientId::Pgp(_) => "pgp",
        RecipientId::Vault(_) => "hc_vault",
    }
}

//! The `sops` block: read in every form that stock tools wrote, written in one, kept where nothing changes.
//!
//! The block is held as it was found. Fields that this version does not know, and entries of kinds it cannot use,
//! stay where and what they were.

use serde_json::{Map, Value as Plain};

use crate::format::canonical_time;
use crate::metadata::entries::{KINDS, read_entry, read_groups, write_entry};
use crate::metadata::fields::{boolean, number, text};
use crate::recipient::{RecipientId, WrappedKey};
use crate::selector::{Selector, SelectorKind};

mod entries;
mod fields;

pub(crate) use entries::kind_of;

/// Most recipients of one file.
pub const RECIPIENTS_MAX: usize = 1000;
/// Most key groups of one file.
pub const GROUPS_MAX: usize = 255;
/// Most bytes of the block without its seal.
pub const BLOCK_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The release of stock sops whose format is written.
pub const VERSION: &str = "3.13.3";
/// Name of the field that holds the seal.
pub const SEAL_FIELD: &str = "lacre";

/// The block of one file.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// Wrapped keys by group; one group means that each entry holds the whole data key.
    pub groups: Vec<Vec<WrappedKey>>,
    /// How many groups are needed, when there are several.
    pub shamir_threshold: Option<usize>,
    /// Which leaves are sealed.
    pub selector: Selector,
    /// Whether the MAC is over sealed values alone.
    pub mac_only_encrypted: bool,
    /// The sealed MAC.
    pub mac: Option<String>,
    /// When values were last sealed, RFC 3339, in the form that the MAC is bound to.
    pub last_modified: String,
    /// The version of the tool that wrote the file.
    pub version: String,
    /// The seal's text.
    pub seal: Option<String>,
    block: Map<String, Plain>,
}

/// What a new block says.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) groups: Vec<Vec<WrappedKey>>,
    pub(crate) shamir_threshold: Option<usize>,
    pub(crate) selector: Selector,
    pub(crate) mac_only_encrypted: bool,
}

impl Metadata {
    /// Reads a block.
    ///
    /// # Errors
    /// What is wrong with it, naming fields and never their secrets (it has none).
    pub fn read(block: &Plain) -> Result<Self, String> {
        let Plain::Object(block) = block else { return Err("it is not a mapping".to_owned()) };
        check_names(block)?;
        let size = |(name, value): (&String, &Plain)| match name.as_str() {
            SEAL_FIELD => 0,
            _ => name.len() + value.to_string().len(),
        };
        if block.iter().map(size).sum::<usize>() > BLOCK_BYTES_MAX {
            return Err("it is larger than 8 MiB".to_owned());
        }
        let groups = read_groups(block)?;
        if groups.iter().map(Vec::len).sum::<usize>() > RECIPIENTS_MAX {
            return Err(format!("it has more than {RECIPIENTS_MAX} recipients"));
        }
        let last_modified = text(block, "lastmodified")?.ok_or("it has no lastmodified")?;
        Ok(Self {
            groups,
            shamir_threshold: number(block, "shamir_threshold")?.filter(|threshold| *threshold > 0),
            selector: read_selector(block)?,
            mac_only_encrypted: boolean(block, "mac_only_encrypted")?,
            mac: text(block, "mac")?.filter(|mac| !mac.is_empty()),
            last_modified: canonical_time(&last_modified).ok_or("its lastmodified is not RFC 3339")?,
            version: text(block, "version")?.ok_or("it has no version")?,
            seal: text(block, SEAL_FIELD)?,
            block: block.clone(),
        })
    }

    /// The block of a new file, without MAC and seal.
    pub(crate) fn new(draft: &Draft, last_modified: &str) -> Self {
        let mut block = Map::new();
        block.insert("lastmodified".to_owned(), last_modified.into());
        if draft.mac_only_encrypted {
            block.insert("mac_only_encrypted".to_owned(), true.into());
        }
        block.insert(draft.selector.kind().field().to_owned(), draft.selector.text().into());
        block.insert("version".to_owned(), VERSION.into());
        block.sort_keys();
        Self {
            groups: Vec::new(),
            shamir_threshold: None,
            selector: draft.selector.clone(),
            mac_only_encrypted: draft.mac_only_encrypted,
            mac: None,
            last_modified: last_modified.to_owned(),
            version: VERSION.to_owned(),
            seal: None,
            block,
        }
        .with_groups(&draft.groups, draft.shamir_threshold)
    }

    /// The same block for other recipients; entries that stay keep their text.
    pub(crate) fn with_groups(mut self, groups: &[Vec<WrappedKey>], shamir_threshold: Option<usize>) -> Self {
        let lists = |group: &[WrappedKey]| {
            let mut lists = Map::new();
            for kind in KINDS {
                let entries = group.iter().filter(|wrapped| kind_of(&wrapped.recipient) == kind);
                let entries: Vec<Plain> = entries.map(|wrapped| self.entry(wrapped)).collect();
                if !entries.is_empty() {
                    lists.insert(kind.to_owned(), entries.into());
                }
            }
            lists
        };
        let written = match groups {
            [group] => lists(group),
            _ => {
                let groups: Vec<Plain> = groups.iter().map(|group| lists(group).into()).collect();
                Map::from_iter([("key_groups".to_owned(), groups.into())])
            }
        };
        for name in KINDS.into_iter().chain(["key_groups", "shamir_threshold"]) {
            if !written.contains_key(name) {
                self.block.shift_remove(name);
            }
        }
        for (name, list) in written {
            put(&mut self.block, &name, list);
        }
        if let Some(threshold) = shamir_threshold.filter(|_| groups.len() > 1) {
            put(&mut self.block, "shamir_threshold", threshold.into());
        }
        self.groups = groups.to_vec();
        self.shamir_threshold = shamir_threshold.filter(|_| groups.len() > 1);
        self
    }

    /// The same block with another MAC and the time it is bound to.
    pub(crate) fn with_mac(mut self, mac: String, last_modified: &str) -> Self {
        put(&mut self.block, "mac", mac.clone().into());
        put(&mut self.block, "lastmodified", last_modified.into());
        self.mac = Some(mac);
        self.last_modified = last_modified.to_owned();
        self
    }

    /// The same block with another seal, or without one. It stands directly before `lastmodified`, so that all that
    /// changes with each write is one hunk.
    pub(crate) fn with_seal(mut self, seal: Option<String>) -> Self {
        match &seal {
            None => {
                self.block.shift_remove(SEAL_FIELD);
            }
            Some(text) if self.block.contains_key(SEAL_FIELD) => {
                self.block.insert(SEAL_FIELD.to_owned(), text.clone().into());
            }
            Some(text) => {
                let position = self.block.keys().position(|name| name == "lastmodified").unwrap_or_default();
                self.block.shift_insert(position, SEAL_FIELD.to_owned(), text.clone().into());
            }
        }
        self.seal = seal;
        self
    }

    /// Whom the data key is wrapped for, group after group.
    pub fn recipients(&self) -> Vec<RecipientId> {
        self.groups.iter().flatten().map(|wrapped| wrapped.recipient.clone()).collect()
    }

    /// The block as it stands in the file.
    pub(crate) fn block(&self) -> &Map<String, Plain> {
        &self.block
    }

    /// The block as stock tools would have written it: without fields of ours.
    pub(crate) fn stock_block(&self) -> Map<String, Plain> {
        let is_ours = |name: &str| name.starts_with(SEAL_FIELD);
        self.block
            .iter()
            .filter(|(name, _)| !is_ours(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }

    /// The entry as found, when the block has this very one, else as it is written anew.
    fn entry(&self, wrapped: &WrappedKey) -> Plain {
        let kind = kind_of(&wrapped.recipient);
        let groups = self.block.get("key_groups").and_then(Plain::as_array).into_iter().flatten();
        let groups = groups.filter_map(Plain::as_object).chain([&self.block]);
        let entries = groups.filter_map(|group| group.get(kind)).filter_map(Plain::as_array).flatten();
        let mut found = entries.filter(|entry| read_entry(kind, entry).as_ref() == Ok(wrapped));
        found.next().cloned().unwrap_or_else(|| write_entry(wrapped))
    }
}

/// Replaces a field where it stands, or adds it where the alphabet wants it.
fn put(block: &mut Map<String, Plain>, name: &str, value: Plain) {
    if let Some(found) = block.get_mut(name) {
        *found = value;
        return;
    }
    let position = block.keys().position(|other| other.as_str() > name).unwrap_or(block.len());
    block.shift_insert(position, name.to_owned(), value);
}

/// Refuses a known field in other letters: stock tools read it, and which of two wins is chance.
fn check_names(block: &Map<String, Plain>) -> Result<(), String> {
    let fields = [
        "lastmodified",
        "mac",
        "version",
        "key_groups",
        "shamir_threshold",
        "mac_only_encrypted",
        SEAL_FIELD,
    ];
    let selectors = SelectorKind::ALL.map(SelectorKind::field);
    for name in block.keys() {
        let known =
            fields.iter().chain(&selectors).chain(&KINDS).find(|known| known.eq_ignore_ascii_case(name));
        if known.is_some_and(|known| *known != name) {
            return Err(format!("the field `{name}` must be written in small letters"));
        }
    }
    Ok(())
}

fn read_selector(block: &Map<String, Plain>) -> Result<Selector, String> {
    let mut found = Vec::new();
    for kind in SelectorKind::ALL {
        if let Some(pattern) = text(block, kind.field())?.filter(|pattern| !pattern.is_empty()) {
            found.push((kind, pattern));
        }
    }
    match found.as_slice() {
        [] => Ok(Selector::default()),
        [(kind, pattern)] => Selector::new(*kind, pattern).map_err(|error| error.to_string()),
        _ => Err("it has more than one selector".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipient::WRAPPED_KEY_BYTES_MAX;

    fn block() -> Plain {
        serde_json::json!({
            "age": [{"recipient": "age1x", "enc": "armor", "note": "kept"}],
            "hckms": [{"key_id": "region:1", "enc": "x", "created_at": "2026-01-01T00:00:00Z"}],
            "kms": null,
            "lastmodified": "2026-01-01T00:00:00Z",
            "mac": "ENC[]",
            "attention": "kept too",
            "version": "3.9.0"
        })
    }

    #[test]
    fn unknown_fields_and_kinds_stay() {
        let metadata = Metadata::read(&block()).unwrap();
        let groups = metadata.groups.clone();
        let written = metadata.with_groups(&groups, None).with_mac("ENC[2]".into(), "2026-01-02T00:00:00Z");
        let names: Vec<&String> = written.block().keys().collect();
        assert_eq!(names, ["age", "hckms", "lastmodified", "mac", "attention", "version"]);
        assert_eq!(written.block()["age"], block()["age"]);
        assert_eq!(written.block()["hckms"], block()["hckms"]);
    }

    #[test]
    fn entries_of_services_are_read_and_written_as_stock_tools_spell_them() {
        let entries = [
            (
                "azure_kv",
                r#"{"created_at":"2026-01-01T00:00:00Z","enc":"x","name":"k","vault_url":"https://t.vault.azure.net","version":"v1"}"#,
                "azure_kv https://t.vault.azure.net/keys/k/v1",
            ),
            (
                "gcp_kms",
                r#"{"created_at":"2026-01-01T00:00:00Z","enc":"x","resource_id":"projects/p/locations/l/keyRings/r/cryptoKeys/k"}"#,
                "gcp_kms projects/p/locations/l/keyRings/r/cryptoKeys/k",
            ),
            (
                "hc_vault",
                r#"{"created_at":"2026-01-01T00:00:00Z","enc":"x","engine_path":"a/b","key_name":"k","vault_address":"https://v"}"#,
                "hc_vault https://v/v1/a/b/keys/k",
            ),
        ];
        for (kind, text, shown) in entries {
            let wrapped = read_entry(kind, &serde_json::from_str(text).unwrap()).unwrap();
            assert_eq!(wrapped.recipient.to_string(), shown);
            assert_eq!(write_entry(&wrapped).to_string(), text);
            assert_eq!(kind_of(&wrapped.recipient), kind);
        }
        let lax = serde_json::json!({"enc": "x", "name": "k", "vault_url": "https://t"});
        assert_eq!(read_entry("azure_kv", &lax).unwrap().recipient.to_string(), "azure_kv https://t/keys/k");
    }

    #[test]
    fn the_seal_stands_before_lastmodified() {
        let sealed = Metadata::read(&block()).unwrap().with_seal(Some("ENC[s]".into()));
        let names: Vec<&String> = sealed.block().keys().collect();
        assert_eq!(names, ["age", "hckms", "kms", "lacre", "lastmodified", "mac", "attention", "version"]);
    }

    #[test]
    fn blocks_that_readers_disagree_on_are_refused() {
        let with = |name: &str, value: Plain| {
            let mut block = block();
            block[name] = value;
            Metadata::read(&block).unwrap_err()
        };
        assert!(with("MAC", "x".into()).contains("small letters"));
        assert!(
            with("key_groups", serde_json::json!([{"age": [{"recipient": "a", "enc": "b"}]}]))
                .contains("beside")
        );
        assert!(with("lastmodified", "yesterday".into()).contains("RFC 3339"));
        assert!(with("lastmodified", Plain::Null).contains("no lastmodified"));
        assert!(with("version", Plain::Null).contains("no version"));
        assert!(with("encrypted_regex", "(".into()).contains("pattern"));
        assert!(with("shamir_threshold", 256.into()).contains("255"));
        assert!(with("age", "x".into()).contains("not a list"));
        let entry = serde_json::json!([{"recipient": "a", "enc": "x".repeat(WRAPPED_KEY_BYTES_MAX + 1)}]);
        assert!(with("age", entry).contains("64 KiB"));
        let many: Vec<Plain> =
            (0..RECIPIENTS_MAX).map(|_| serde_json::json!({"recipient": "a", "enc": "x"})).collect();
        assert!(with("age", many.into()).contains("1000"));
        let mut two = block();
        two["encrypted_regex"] = "a".into();
        two["unencrypted_suffix"] = "b".into();
        assert!(Metadata::read(&two).unwrap_err().contains("more than one selector"));
    }
}

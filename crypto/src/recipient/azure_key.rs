//! A key in Azure Key Vault as people and the `sops` block name it. Read in every build.

use std::fmt;

use super::KeyError;

/// Most characters of a vault's address, of a key's name, and of its version.
const PART_CHARS_MAX: usize = 1024;

/// A key in Azure Key Vault as the `sops` block describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AzureKeyVaultKey {
    /// Where the vault is, such as `https://team.vault.azure.net`.
    pub vault_url: String,
    /// The key's name in the vault.
    pub name: String,
    /// The key's version; empty for the newest one at the time of wrapping, whose version is then written.
    pub version: String,
}

impl AzureKeyVaultKey {
    /// Reads a key as people write it: `https://VAULT.vault.azure.net/keys/NAME`, with or without `/VERSION`.
    ///
    /// # Errors
    /// [`KeyError`] when it has another form.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let fields: Vec<&str> = text.trim().splitn(4, '/').collect();
        let ["https:", "", host, path] = fields[..] else { return Err(not_a_key()) };
        let fields: Vec<&str> = path.split('/').collect();
        let (name, version) = match fields[..] {
            ["keys", name] => (name, ""),
            ["keys", name, version] => (name, version),
            _ => return Err(not_a_key()),
        };
        let key =
            Self { vault_url: format!("https://{host}"), name: name.to_owned(), version: version.to_owned() };
        key.check()?;
        Ok(key)
    }

    /// Whether the parts, which a document may have chosen, name a host, a key and a version and nothing else.
    ///
    /// # Errors
    /// [`KeyError`] when one of them has another form.
    pub fn check(&self) -> Result<(), KeyError> {
        let host = self.vault_url.strip_prefix("https://").map(|host| host.strip_suffix('/').unwrap_or(host));
        let is_host = host.is_some_and(|host| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
            !host.is_empty() && host.bytes().all(plain)
        });
        let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let is_named = !self.name.is_empty() && is_word(&self.name) && is_word(&self.version);
        let is_short =
            [&self.vault_url, &self.name, &self.version].into_iter().all(|part| part.len() <= PART_CHARS_MAX);
        if is_host && is_named && is_short { Ok(()) } else { Err(not_a_key()) }
    }

    /// Whether a key wrapped for `held` is one for this: the same version, or any where this leaves it open.
    pub(super) fn means(&self, held: &Self) -> bool {
        let address = |key: &Self| key.vault_url.trim_end_matches('/').to_ascii_lowercase();
        let is_version = self.version.is_empty() || self.version == held.version;
        is_version && self.name == held.name && address(self) == address(held)
    }
}

impl fmt::Display for AzureKeyVaultKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/keys/{}", self.vault_url.trim_end_matches('/'), self.name)?;
        if self.version.is_empty() { Ok(()) } else { write!(formatter, "/{}", self.version) }
    }
}

fn not_a_key() -> KeyError {
    KeyError::new(
        "not a key of Azure Key Vault: one looks like https://team.vault.azure.net/keys/NAME, or …/NAME/VERSION",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_with_and_without_a_version() {
        let key = AzureKeyVaultKey::parse(" https://t.vault.azure.net/keys/k-1/0a1b ").unwrap();
        assert_eq!(
            (key.vault_url.as_str(), key.name.as_str(), key.version.as_str()),
            ("https://t.vault.azure.net", "k-1", "0a1b")
        );
        for text in ["https://t.vault.azure.net/keys/k-1", "https://t.vault.azure.net/keys/k-1/"] {
            let open = AzureKeyVaultKey::parse(text).unwrap();
            assert_eq!(open.to_string(), "https://t.vault.azure.net/keys/k-1");
            assert!(open.means(&key) && !key.means(&open) && key.means(&key));
        }
        let slash = AzureKeyVaultKey { vault_url: "https://T.vault.azure.net/".to_owned(), ..key.clone() };
        assert!(key.means(&slash) && slash.check().is_ok());
        assert_eq!(slash.to_string(), "https://T.vault.azure.net/keys/k-1/0a1b");
    }

    #[test]
    fn what_would_lead_elsewhere_is_no_key() {
        for text in [
            "",
            "http://t.vault.azure.net/keys/k",
            "https:///keys/k",
            "https://t.vault.azure.net/secrets/k",
            "https://t.vault.azure.net/keys/",
            "https://t.vault.azure.net/keys/k/v/x",
            "https://t.vault.azure.net/keys/../x",
            "https://me@evil.example/keys/k",
            "https://t.vault.azure.net?/keys/k",
            "https://t.vault.azure.net/keys/k?x",
            "https://t.vault.azure.net/keys/k/v#x",
        ] {
            assert!(AzureKeyVaultKey::parse(text).is_err(), "{text}");
        }
        for (length, fits) in [(PART_CHARS_MAX, true), (PART_CHARS_MAX + 1, false)] {
            let text = format!("https://t.vault.azure.net/keys/{}", "k".repeat(length));
            assert_eq!(AzureKeyVaultKey::parse(&text).is_ok(), fits, "{length}");
        }
    }
}

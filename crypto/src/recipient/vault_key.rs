//! A key in the transit engine of Vault or OpenBao as people and the `sops` block name it. Read in every build.

use std::fmt;

use super::KeyError;

/// Most characters of an address, of an engine's path, and of a key's name.
const PART_CHARS_MAX: usize = 2048;

/// A key in a transit engine as the `sops` block describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VaultKey {
    /// Where the server is: scheme, host and port.
    pub address: String,
    /// Where the transit engine is mounted, without `v1`; may hold slashes.
    pub engine_path: String,
    /// The key's name in the engine.
    pub name: String,
}

impl VaultKey {
    /// Reads a key as people write it: `https://vault.example.org:8200/v1/ENGINE/keys/NAME`, where the engine's path
    /// may have slashes.
    ///
    /// # Errors
    /// [`KeyError`] when it has another form. Servers behind a path of a proxy cannot be named so, as in stock tools.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        let authority_at = text.find("://").ok_or_else(not_a_key)? + 3;
        let path_at = text[authority_at..].find('/').ok_or_else(not_a_key)? + authority_at;
        let (address, path) = text.split_at(path_at);
        let mut segments = path.trim_matches('/').split('/');
        let version = segments.next().and_then(|version| version.strip_prefix('v')).unwrap_or_default();
        let mut segments: Vec<&str> = segments.collect();
        let (name, list) = (segments.pop(), segments.pop());
        // The word before the name is `keys` wherever one copies from; stock tools take any.
        let (Some(name), Some(_), false) = (name, list, segments.is_empty()) else { return Err(not_a_key()) };
        let is_version = !version.is_empty() && version.bytes().all(|digit| digit.is_ascii_digit());
        let key =
            Self { address: address.to_owned(), engine_path: segments.join("/"), name: name.to_owned() };
        if !is_version {
            return Err(not_a_key());
        }
        key.check()?;
        Ok(key)
    }

    /// Whether the parts, which a document may have chosen, name a place below an address and nothing else.
    ///
    /// # Errors
    /// [`KeyError`] when an address has another form than scheme, host and path, or a path leads elsewhere.
    pub fn check(&self) -> Result<(), KeyError> {
        let host = self.address.strip_prefix("https://").or_else(|| self.address.strip_prefix("http://"));
        let is_host = host.is_some_and(|host| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:[]/".contains(&byte);
            !host.is_empty() && !host.starts_with('/') && host.bytes().all(plain) && !host.contains("..")
        });
        let is_short = [&self.address, &self.engine_path, &self.name]
            .into_iter()
            .all(|part| part.chars().count() <= PART_CHARS_MAX);
        let is_path = self.engine_path.trim_matches('/').split('/').all(is_segment);
        let is_name = is_segment(&self.name) && !self.name.contains('/');
        if is_host && is_short && is_path && is_name { Ok(()) } else { Err(not_a_key()) }
    }
}

impl fmt::Display for VaultKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/v1/{}/keys/{}", self.address, self.engine_path, self.name)
    }
}

/// A part of a path that stays where it is put.
fn is_segment(text: &str) -> bool {
    let harmless = |character: char| !character.is_control() && !"?#\\%".contains(character);
    !matches!(text, "" | "." | "..") && text.chars().all(harmless)
}

fn not_a_key() -> KeyError {
    KeyError::new("not a transit key: one looks like https://vault.example.org:8200/v1/transit/keys/NAME")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_engines_and_names_are_told_apart() {
        for (text, address, engine_path, name) in [
            ("https://v.example:8200/v1/transit/keys/dev", "https://v.example:8200", "transit", "dev"),
            ("http://127.0.0.1:8200/v1/a/b/c/keys/k.1-x/", "http://127.0.0.1:8200", "a/b/c", "k.1-x"),
            (" https://[::1]:8200/v1/transit/keys/dev ", "https://[::1]:8200", "transit", "dev"),
        ] {
            let key = VaultKey::parse(text).unwrap();
            assert_eq!((key.address.as_str(), key.engine_path.as_str()), (address, engine_path), "{text}");
            assert_eq!(key.name, name);
            assert_eq!(VaultKey::parse(&key.to_string()).unwrap(), key);
        }
    }

    #[test]
    fn what_would_lead_elsewhere_is_no_key() {
        for text in [
            "",
            "transit/keys/dev",
            "v.example/v1/transit/keys/dev",
            "ftp://v.example/v1/transit/keys/dev",
            "https:///v1/transit/keys/dev",
            "https://v.example",
            "https://v.example/v1/keys/dev",
            "https://v.example/transit/keys/dev",
            "https://v.example/vault/v1/transit/keys/dev",
            "https://user@v.example/v1/transit/keys/dev",
            "https://v.example/v1/transit/keys/dev?x=y",
            "https://v.example/v1/transit/keys/dev#x",
            "https://v.example/v1/transit/../keys/dev",
            "https://v.example/v1/a//b/keys/dev",
            "https://v.example/v1/transit/keys/..",
            "https://v.example/v1/tr%2fansit/keys/dev",
            "https://v.example/v1/transit\\x/keys/dev",
        ] {
            assert!(VaultKey::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn parts_are_limited_on_both_sides() {
        for (length, fits) in [(PART_CHARS_MAX, true), (PART_CHARS_MAX + 1, false)] {
            let text = format!("https://v.example/v1/transit/keys/{}", "k".repeat(length));
            assert_eq!(VaultKey::parse(&text).is_ok(), fits, "{length}");
        }
    }
}

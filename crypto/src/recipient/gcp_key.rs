//! A key in Google Cloud KMS as people and the `sops` block name it. Read in every build.

use std::fmt;

use super::KeyError;

/// Most characters of a resource name.
const RESOURCE_CHARS_MAX: usize = 1024;

/// A key in Google Cloud KMS as the `sops` block describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GcpKmsKey {
    /// `projects/P/locations/L/keyRings/R/cryptoKeys/K`.
    pub resource_id: String,
}

impl GcpKmsKey {
    /// Reads a key as people write it: its resource name. White space inside does not count.
    ///
    /// # Errors
    /// [`KeyError`] when it has another form.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let resource_id = text.chars().filter(|character| !character.is_whitespace()).collect();
        let key = Self { resource_id };
        key.check()?;
        Ok(key)
    }

    /// Whether the name, which a document may have chosen, is that of a key and of nothing else.
    ///
    /// # Errors
    /// [`KeyError`] when it has another form.
    pub fn check(&self) -> Result<(), KeyError> {
        let fields: Vec<&str> = self.resource_id.split('/').collect();
        let is_key = match fields[..] {
            ["projects", project, "locations", location, "keyRings", ring, "cryptoKeys", key] => {
                [project, location, ring, key].into_iter().all(is_word)
            }
            _ => false,
        };
        if is_key && self.resource_id.len() <= RESOURCE_CHARS_MAX {
            return Ok(());
        }
        Err(KeyError::new(
            "not a key of GCP KMS: one looks like projects/P/locations/L/keyRings/R/cryptoKeys/K",
        ))
    }
}

impl fmt::Display for GcpKmsKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.resource_id)
    }
}

/// Safe inside a path; projects of a domain have a colon and dots.
fn is_word(text: &str) -> bool {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    !matches!(text, "" | "." | "..") && text.bytes().all(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_names_are_read() {
        for text in [
            "projects/p-1/locations/global/keyRings/ring_1/cryptoKeys/key",
            " projects/example.com:p/locations/europe-west1/keyRings/r/cryptoKeys/k ",
        ] {
            assert_eq!(GcpKmsKey::parse(text).unwrap().to_string(), text.trim());
        }
    }

    #[test]
    fn what_would_lead_elsewhere_is_no_key() {
        for text in [
            "",
            "projects/p/locations/l/keyRings/r",
            "projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1",
            "projects/p/locations/l/keyRings/../cryptoKeys/k",
            "projects/p/locations//keyRings/r/cryptoKeys/k",
            "projects/p/locations/l/keyRings/r/cryptoKeys/k:decrypt?x",
            "/projects/p/locations/l/keyRings/r/cryptoKeys/k",
        ] {
            assert!(GcpKmsKey::parse(text).is_err(), "{text}");
        }
        let stem = "projects/p/locations/l/keyRings/r/cryptoKeys/";
        for (length, fits) in [(RESOURCE_CHARS_MAX, true), (RESOURCE_CHARS_MAX + 1, false)] {
            let text = format!("{stem}{}", "k".repeat(length - stem.len()));
            assert_eq!(GcpKmsKey::parse(&text).is_ok(), fits, "{length}");
        }
    }
}

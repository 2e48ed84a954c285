//! Which Vault servers get the token.

use reqwest::Url;

use crate::recipient::KeyError;

/// Which Vault servers get the token: a document names a server, and must not thereby get it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum VaultTrust {
    /// Every server that a document names. Whoever can write a document can have the token then.
    Any,
    /// These servers alone; an address with a path stands for all below it.
    Listed(Vec<Url>),
    /// None.
    #[default]
    Nobody,
}

impl VaultTrust {
    /// The servers at `addresses`.
    ///
    /// # Errors
    /// [`KeyError`] when one of them is no address of a server.
    pub fn listed<'a>(addresses: impl IntoIterator<Item = &'a str>) -> Result<Self, KeyError> {
        let parse = |text: &str| {
            server(text).ok_or_else(|| KeyError::new(format!("`{text}` is no address of a server")))
        };
        let servers: Vec<Url> = addresses.into_iter().map(parse).collect::<Result<_, _>>()?;
        Ok(if servers.is_empty() { Self::Nobody } else { Self::Listed(servers) })
    }

    /// Whether the server at `address` gets the token.
    pub(super) fn check(&self, address: &str) -> Result<(), KeyError> {
        let asked =
            server(address).ok_or_else(|| KeyError::new("the Vault address is no address of a server"))?;
        let is_trusted = match self {
            Self::Any => true,
            Self::Listed(servers) => servers.iter().any(|trusted| is_below(&asked, trusted)),
            Self::Nobody => false,
        };
        if is_trusted {
            return Ok(());
        }
        let server = asked.as_str().trim_end_matches('/');
        Err(KeyError::new(format!(
            "the file names {server}, to which no token is given unless VAULT_ADDR or SOPS_HC_VAULT_ALLOWLIST does so too"
        )))
    }
}

/// An address of a server: without name, password, query and fragment, which no server's has.
fn server(text: &str) -> Option<Url> {
    let url = Url::parse(text.trim()).ok()?;
    let is_http = matches!(url.scheme(), "http" | "https") && url.host_str().is_some();
    let is_bare = url.username().is_empty() && url.password().is_none();
    (is_http && is_bare && url.query().is_none() && url.fragment().is_none()).then_some(url)
}

fn is_below(asked: &Url, trusted: &Url) -> bool {
    let folder = |url: &Url| format!("{}/", url.path().trim_end_matches('/'));
    asked.origin() == trusted.origin() && folder(asked).starts_with(&folder(trusted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_server_is_trusted() {
        let trust =
            VaultTrust::listed(["https://Vault.example.org:8200/", "http://127.0.0.1:8200/team"]).unwrap();
        for address in [
            "https://vault.example.org:8200",
            "https://vault.example.org:8200/x",
            "http://127.0.0.1:8200/team",
        ] {
            assert!(trust.check(address).is_ok(), "{address}");
        }
        for address in [
            "http://vault.example.org:8200",
            "https://vault.example.org",
            "https://vault.example.org:8201",
            "https://vault.example.org:82000",
            "https://vault.example.org.evil.example:8200",
            "https://vault.example.org:8200@evil.example",
            "https://evil.example/https://vault.example.org:8200",
            "http://127.0.0.1:8200",
            "http://127.0.0.1:8200/teams",
            "http://127.0.0.1:8200/team/..",
            "vault.example.org:8200",
        ] {
            assert!(trust.check(address).is_err(), "{address}");
        }
    }

    #[test]
    fn all_and_nobody_are_what_they_say() {
        assert!(VaultTrust::Any.check("https://evil.example").is_ok());
        assert!(VaultTrust::default().check("https://vault.example.org").is_err());
        assert_eq!(VaultTrust::listed([]).unwrap(), VaultTrust::Nobody);
        assert!(VaultTrust::listed(["vault.example.org"]).is_err());
    }
}

//! One secret into a key-value store of Vault or OpenBao.
//!
//! The address may come from a configuration that lies in a repository, the token never does. So the token goes to the
//! server that `VAULT_ADDR` names, or to one on the user's own list.

use crate::compat;
use crate::environment;
use crate::error::CommandError;
use crate::output::Output;

/// The user's list of servers: `all`, `none`, or beginnings of addresses with commas between them.
const ALLOWLIST: &str = "SOPS_HC_VAULT_ALLOWLIST";
/// Where Vault's own clients look without being told.
const DEFAULT_ADDRESS: &str = "https://127.0.0.1:8200";

/// A folder of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VaultKv {
    /// The server, if the rule names one.
    pub(crate) address: Option<String>,
    /// Where the store is mounted, with `/` at the end.
    pub(crate) mount: String,
    /// The folder in it, with `/` at the end.
    pub(crate) path: String,
    /// 1, or 2 for a store that keeps versions.
    pub(crate) version: u8,
}

impl VaultKv {
    /// The address of the secret `name`.
    pub(super) fn url(&self, name: &str) -> String {
        let Self { mount, path, .. } = self;
        let data = if self.version == 1 { "" } else { "data/" };
        format!("{}/v1/{mount}{data}{path}{name}", self.server().trim_end_matches('/'))
    }

    fn server(&self) -> String {
        let own = || environment::text("VAULT_ADDR");
        self.address.clone().or_else(own).unwrap_or_else(|| DEFAULT_ADDRESS.to_owned())
    }

    /// Whether the token may go to the server.
    pub(super) fn check(&self, output: Output) -> Result<(), CommandError> {
        let server = self.server();
        let own = environment::text("VAULT_ADDR").unwrap_or_else(|| DEFAULT_ADDRESS.to_owned());
        if in_full(&server) == in_full(&own) {
            return Ok(());
        }
        let refuse = |why: &str| {
            let hint = format!("set VAULT_ADDR to it, or add it to {ALLOWLIST}, if it is yours");
            Err(CommandError::general(format!("{server}: {why}")).hint(hint))
        };
        match environment::text(ALLOWLIST).as_deref() {
            Some("all") => Ok(()),
            Some(list) if allows(list, &server) => Ok(()),
            Some(_) => refuse(&format!("{ALLOWLIST} does not name this server of the configuration")),
            None if compat::as_sops() => {
                output.warn(&format!(
                    "the Vault token goes to {server}, which only the configuration names; \
                    {ALLOWLIST} can say which servers may get it"
                ));
                Ok(())
            }
            None => refuse("the Vault token would go to a server that only the configuration names"),
        }
    }
}

fn in_full(address: &str) -> String {
    format!("{}/", address.trim().trim_end_matches('/'))
}

fn allows(list: &str, server: &str) -> bool {
    list != "none"
        && list
            .split(',')
            .map(str::trim)
            .any(|allowed| !allowed.is_empty() && in_full(server).starts_with(&in_full(allowed)))
}

#[cfg(feature = "vault")]
mod client {
    use lacre_crypto::secret::{SecretBytes, SecretText};
    use reqwest::{Certificate, Client, Method, RequestBuilder, StatusCode};
    use serde_json::Value;

    use super::VaultKv;
    use crate::environment;
    use crate::error::{CommandError, Kind};
    use crate::identities;
    use crate::output::Output;
    use crate::publish::http;

    impl VaultKv {
        /// Writes the JSON `object` as the secret `name`, unless that is what is there.
        pub(in crate::publish) fn upload(
            &self,
            name: &str,
            object: &SecretBytes,
            output: Output,
        ) -> Result<bool, CommandError> {
            let escaped = Self {
                mount: http::path_encoded(&self.mount),
                path: http::path_encoded(&self.path),
                ..self.clone()
            };
            let url = escaped.url(&http::path_encoded(name));
            let session = Session { client: client(&url)?, token: token(&url)?, url };
            http::wait(async {
                if session.holds(object, self.version, output).await {
                    return Ok(false);
                }
                session.write(object, self.version).await.map(|()| true)
            })
        }
    }

    struct Session {
        client: Client,
        token: SecretText,
        url: String,
    }

    impl Session {
        fn request(&self, method: Method) -> RequestBuilder {
            let request = self.client.request(method, &self.url);
            let request = request.header("x-vault-token", self.token.expose_secret());
            let request = request.header("x-vault-request", "true");
            match environment::text("VAULT_NAMESPACE") {
                Some(namespace) => request.header("x-vault-namespace", namespace),
                None => request,
            }
        }

        /// Whether the secret is `object` already. Who may write but not read gets a warning, and a new version.
        async fn holds(&self, object: &SecretBytes, version: u8, output: Output) -> bool {
            match self.read(version).await {
                Ok(Some(found)) => {
                    serde_json::from_slice::<Value>(object.expose_secret()).is_ok_and(|new| new == found)
                }
                Ok(None) => false,
                Err(()) => {
                    output.warn(&format!(
                        "{}: whether it is there already cannot be told; it is written again",
                        self.url
                    ));
                    false
                }
            }
        }

        async fn read(&self, version: u8) -> Result<Option<Value>, ()> {
            let answer = self.request(Method::GET).send().await.map_err(|_| ())?;
            match answer.status() {
                StatusCode::NOT_FOUND => return Ok(None),
                status if !status.is_success() => return Err(()),
                _ => {}
            }
            let body = SecretBytes::new(http::body(&self.url, answer).await.map_err(|_| ())?);
            let mut found: Value = serde_json::from_slice(body.expose_secret()).map_err(|_| ())?;
            let data = found["data"].take();
            Ok(Some(if version == 1 { data } else { data["data"].clone() }))
        }

        async fn write(&self, object: &SecretBytes, version: u8) -> Result<(), CommandError> {
            let (before, after): (&[u8], &[u8]) =
                if version == 1 { (b"", b"") } else { (b"{\"data\":", b"}") };
            let body = [before, object.expose_secret(), after].concat();
            let request = self.request(Method::PUT).header("content-type", "application/json").body(body);
            let answer = request.send().await.map_err(|error| http::unreachable(&self.url, &error))?;
            // What a server says about plaintext may repeat it.
            match answer.status() {
                status if status.is_success() => Ok(()),
                status => Err(http::refused(&self.url, status)),
            }
        }
    }

    fn client(url: &str) -> Result<Client, CommandError> {
        let mut builder = http::client();
        if let Some(pem) = identities::vault_authorities()? {
            let certificates = Certificate::from_pem_bundle(&pem).map_err(|_| {
                CommandError::on(Kind::Read, "VAULT_CACERT", "holds no certificates that can be read")
                    .hint("set VAULT_CACERT to a PEM file")
            })?;
            builder = builder.tls_certs_merge(certificates);
        }
        builder.build().map_err(|error| http::unreachable(url, &error))
    }

    fn token(url: &str) -> Result<SecretText, CommandError> {
        identities::vault_token().ok_or_else(|| {
            CommandError::on(Kind::General, url, "no Vault token was found")
                .hint("log in with `vault login` or `bao login`, or set VAULT_TOKEN")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_servers_by_their_beginnings_up_to_a_slash() {
        let cases = [
            ("https://a", "https://a", true),
            ("https://a/", "https://a", true),
            ("https://b, https://a", "https://a/x", true),
            ("https://a", "https://a.evil", false),
            ("https://a", "https://a:1", false),
            ("none", "https://a", false),
            (",", "https://a", false),
        ];
        for (list, server, expected) in cases {
            assert_eq!(allows(list, server), expected, "{list} {server}");
        }
    }

    #[test]
    fn secrets_are_addressed_by_version() {
        let mut store = VaultKv {
            address: Some("http://127.0.0.1:8200/".to_owned()),
            mount: "kv/".to_owned(),
            path: "shop/".to_owned(),
            version: 2,
        };
        assert_eq!(store.url("a.yaml"), "http://127.0.0.1:8200/v1/kv/data/shop/a.yaml");
        store.version = 1;
        assert_eq!(store.url("a.yaml"), "http://127.0.0.1:8200/v1/kv/shop/a.yaml");
    }
}

//! Azure Key Vault: the private key never leaves the vault, which wraps and unwraps on request.
//!
//! Standard: the operations `encrypt` and `decrypt` of the Key Vault API with RSA-OAEP-256, by Microsoft's own client.
//! `enc` is base64url without padding of what RSA gives, as stock sops writes it. The vault draws OAEP's seed, so there
//! is nothing to repeat on our side.
//!
//! The vault's address stands in the document. The client asks it without any credential first, and fetches a token
//! only for an audience that the address lies below, so that a vault of somebody else cannot ask for one that opens
//! ours; it follows no redirect, and key and version are checked for being plain words.
//!
//! Limit: the client copies a key into request and response bodies that are not wiped.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use azure_core::credentials::TokenCredential;
use azure_security_keyvault_keys::models::{
    EncryptionAlgorithm, KeyClientEncryptOptions, KeyOperationParameters,
};
use azure_security_keyvault_keys::{KeyClient, KeyClientOptions};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use self::failure::classify;
use super::remote::{Door, broken, denied, unreachable};
use super::{
    AzureKeyVaultKey, Effort, Identity, KeyError, Recipient, RecipientId, UnwrapError, WRAPPED_KEY_BYTES_MAX,
    WrapError, WrappedKey, check_to_wrap, unwrapped,
};
use crate::secret::{SecretBytes, SecretText};

mod credentials;
mod failure;
mod transport;

/// Most vaults whose clients are kept. Documents choose them, so their number is not ours; at the limit all are dropped
/// and made anew as needed.
const CLIENTS_MAX: usize = 64;

/// Most bytes of what RSA gives: that of a key of 16,384 bits.
pub const CIPHERTEXT_BYTES_MAX: usize = 2048;

/// As whom vaults are called. All that this kind takes from its surroundings.
#[derive(Clone, Debug)]
pub struct AzureContext {
    /// Where credentials come from.
    pub credentials: AzureCredentials,
    /// How long one call may take with all that belongs to it.
    pub deadline: Duration,
}

/// Where Azure credentials come from.
#[derive(Clone, Debug)]
pub enum AzureCredentials {
    /// An application and its secret, and nothing else.
    ClientSecret {
        /// The directory that knows the application.
        tenant_id: String,
        /// Public name of the application.
        client_id: String,
        /// Its secret.
        secret: SecretText,
    },
    /// The client's own places: a pod's identity, the machine's, the login of `az` or `azd`.
    Environment {
        /// Which of the machine's identities is meant, by its client id; its own if none.
        client_id: Option<String>,
    },
}

/// One caller's way to vaults. Connections and tokens are kept for as long as it or one of its recipients and identities
/// lives.
#[derive(Clone)]
pub struct AzureKeyVault(Arc<Service>);

struct Service {
    context: AzureContext,
    credential: OnceLock<Arc<dyn TokenCredential>>,
    clients: Mutex<BTreeMap<String, Arc<KeyClient>>>,
    door: Door,
}

impl AzureKeyVault {
    /// A way to vaults that is first used by the first call.
    pub fn new(context: AzureContext) -> Self {
        let door = Door::new("Azure Key Vault", context.deadline);
        Self(Arc::new(Service { context, credential: OnceLock::new(), clients: Mutex::default(), door }))
    }

    /// A recipient that calls the key's vault when it wraps, and not before.
    ///
    /// # Errors
    /// [`KeyError`] when the key's parts are none.
    pub fn recipient(&self, key: AzureKeyVaultKey) -> Result<AzureKeyVaultRecipient, KeyError> {
        key.check()?;
        Ok(AzureKeyVaultRecipient { key, used: OnceLock::new(), service: Arc::clone(&self.0) })
    }

    /// An identity that calls a key's vault when it unwraps, and not before.
    pub fn identity(&self) -> AzureKeyVaultIdentity {
        AzureKeyVaultIdentity { service: Arc::clone(&self.0) }
    }
}

impl Service {
    /// The client for the vault of `key`.
    fn client(&self, key: &AzureKeyVaultKey) -> Result<Arc<KeyClient>, UnwrapError> {
        let vault = key.vault_url.trim_end_matches('/').to_ascii_lowercase();
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&vault) {
            return Ok(Arc::clone(client));
        }
        let options =
            KeyClientOptions { client_options: transport::options(), ..KeyClientOptions::default() };
        let client = KeyClient::new(&vault, self.credential()?, Some(options));
        let client = Arc::new(client.map_err(|error| classify(&error))?);
        if clients.len() >= CLIENTS_MAX {
            clients.clear();
        }
        clients.insert(vault, Arc::clone(&client));
        Ok(client)
    }

    fn credential(&self) -> Result<Arc<dyn TokenCredential>, UnwrapError> {
        if let Some(credential) = self.credential.get() {
            return Ok(Arc::clone(credential));
        }
        let credential =
            credentials::credential(&self.context.credentials).map_err(|error| classify(&error))?;
        Ok(Arc::clone(self.credential.get_or_init(|| credential)))
    }
}

/// A key in a vault to wrap with.
pub struct AzureKeyVaultRecipient {
    key: AzureKeyVaultKey,
    /// The version that wrapped, where it was left open.
    used: OnceLock<String>,
    service: Arc<Service>,
}

impl AzureKeyVaultRecipient {
    /// What the vault made of `key`, and the name of the key that did it.
    fn seal(&self, key: &SecretBytes) -> Result<(Vec<u8>, String), UnwrapError> {
        // The first version that was used stays the one, or entries of one file would be for different keys.
        let version = self.used.get().unwrap_or(&self.key.version).clone();
        let (client, name) = (self.service.client(&self.key)?, self.key.name.clone());
        let body = parameters(key.expose_secret().to_vec());
        self.service.door.call(async move {
            let version = (!version.is_empty()).then_some(version);
            let options = KeyClientEncryptOptions { key_version: version, ..Default::default() };
            let body = body.try_into().map_err(|error| classify(&error))?;
            let answer = client.encrypt(&name, body, Some(options)).await;
            let answer = answer.and_then(|answer| answer.into_model()).map_err(|error| classify(&error))?;
            answer.result.zip(answer.kid).ok_or_else(failure::empty)
        })
    }
}

impl fmt::Debug for AzureKeyVaultRecipient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AzureKeyVaultRecipient").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Recipient for AzureKeyVaultRecipient {
    /// With the version that wrapped; as it was named before the first call.
    fn id(&self) -> RecipientId {
        let version = self.used.get().unwrap_or(&self.key.version).clone();
        RecipientId::AzureKeyVault(AzureKeyVaultKey { version, ..self.key.clone() })
    }

    fn wrap(&self, key: &SecretBytes) -> Result<String, WrapError> {
        let error = |reason: String| WrapError { recipient: self.id(), reason };
        check_to_wrap(key).map_err(error)?;
        let (sealed, used) = self.seal(key).map_err(|failure| error(failure.reason))?;
        let used = AzureKeyVaultKey::parse(&used).ok().filter(|used| !used.version.is_empty());
        let used = used.ok_or_else(|| error("the vault does not say which version it used".to_owned()))?;
        if self.key.version.is_empty() {
            let _ = self.used.set(used.version.clone());
        }
        let RecipientId::AzureKeyVault(named) = self.id() else { return Err(error(String::new())) };
        if (&named.name, &named.version) != (&used.name, &used.version) {
            return Err(error("the vault used another key or version".to_owned()));
        }
        Ok(URL_SAFE_NO_PAD.encode(sealed))
    }
}

/// Credentials for Azure: opens whatever key they may use.
pub struct AzureKeyVaultIdentity {
    service: Arc<Service>,
}

impl AzureKeyVaultIdentity {
    fn open(&self, key: &AzureKeyVaultKey, enc: &str) -> Result<SecretBytes, UnwrapError> {
        key.check().map_err(|error| broken(error.reason))?;
        if key.version.is_empty() {
            return Err(broken("the file does not say which version of the key it needs"));
        }
        let body = parameters(decode(enc)?);
        let (name, version) = (key.name.clone(), key.version.clone());
        let client = self.service.client(key)?;
        let opened = self.service.door.call(async move {
            let body = body.try_into().map_err(|error| classify(&error))?;
            let answer = client.decrypt(&name, &version, body, None).await;
            let answer = answer.and_then(|answer| answer.into_model()).map_err(|error| classify(&error))?;
            answer.result.map(SecretBytes::new).ok_or_else(failure::empty)
        })?;
        unwrapped(opened)
    }
}

impl fmt::Debug for AzureKeyVaultIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AzureKeyVaultIdentity({})", self.public())
    }
}

impl Identity for AzureKeyVaultIdentity {
    fn public(&self) -> String {
        match &self.service.context.credentials {
            AzureCredentials::ClientSecret { client_id, .. } => {
                format!("azure_kv as Azure application {client_id}")
            }
            AzureCredentials::Environment { .. } => {
                "azure_kv with the Azure credentials of the environment".to_owned()
            }
        }
    }

    fn effort(&self) -> Effort {
        Effort::Remote
    }

    fn unwrap(&self, wrapped: &WrappedKey) -> Option<Result<SecretBytes, UnwrapError>> {
        let RecipientId::AzureKeyVault(key) = &wrapped.recipient else { return None };
        Some(self.open(key, &wrapped.enc))
    }
}

/// The one algorithm: RSA-OAEP with SHA-256, which stock tools use.
fn parameters(value: Vec<u8>) -> KeyOperationParameters {
    KeyOperationParameters {
        algorithm: Some(EncryptionAlgorithm::RsaOaep256),
        value: Some(value),
        ..KeyOperationParameters::default()
    }
}

/// What stands in the base64url, which may be folded over lines; padding does not matter.
fn decode(enc: &str) -> Result<Vec<u8>, UnwrapError> {
    if enc.len() > WRAPPED_KEY_BYTES_MAX {
        return Err(broken(format!("larger than {WRAPPED_KEY_BYTES_MAX} bytes")));
    }
    let compact: String = enc.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    let sealed = URL_SAFE_NO_PAD.decode(compact.trim_end_matches('='));
    let sealed = sealed.map_err(|_| broken("the wrapped key is not base64url"))?;
    if sealed.is_empty() || sealed.len() > CIPHERTEXT_BYTES_MAX {
        return Err(broken(format!("the wrapped key has {} bytes", sealed.len())));
    }
    Ok(sealed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipient::UnwrapFailure;

    fn service() -> AzureKeyVault {
        AzureKeyVault::new(AzureContext {
            credentials: AzureCredentials::ClientSecret {
                tenant_id: "tenant".to_owned(),
                client_id: "application".to_owned(),
                secret: SecretText::from("CANARY"),
            },
            deadline: Duration::from_secs(5),
        })
    }

    fn entry(vault_url: &str, version: &str, enc: &str) -> WrappedKey {
        let key = AzureKeyVaultKey {
            vault_url: vault_url.to_owned(),
            name: "k".to_owned(),
            version: version.to_owned(),
        };
        WrappedKey { recipient: RecipientId::AzureKeyVault(key), enc: enc.to_owned(), created_at: None }
    }

    #[test]
    fn broken_entries_are_told_without_a_call() {
        let identity = service().identity();
        let long = "A".repeat(WRAPPED_KEY_BYTES_MAX + 1);
        let large = URL_SAFE_NO_PAD.encode(vec![0; CIPHERTEXT_BYTES_MAX + 1]);
        let vault = "https://127.0.0.1:1";
        for (vault, version, enc) in [
            (vault, "1", ""),
            (vault, "1", "***"),
            (vault, "1", long.as_str()),
            (vault, "1", large.as_str()),
            (vault, "", "AQID"),
            (vault, "../x", "AQID"),
            ("http://127.0.0.1:1", "1", "AQID"),
            ("https://me@127.0.0.1:1", "1", "AQID"),
        ] {
            let error = identity.unwrap(&entry(vault, version, enc)).unwrap().unwrap_err();
            assert_eq!(error.kind, UnwrapFailure::Broken, "{vault} {version} {}", enc.len());
        }
        let age = WrappedKey { recipient: RecipientId::Age(String::new()), ..entry(vault, "1", "AQID") };
        assert!(identity.unwrap(&age).is_none());
        assert_eq!(decode("AQ\r\nID=\n").unwrap(), [1, 2, 3]);
    }

    #[test]
    fn a_vault_that_is_gone_is_unreachable() {
        let error =
            service().identity().unwrap(&entry("https://127.0.0.1:1", "1", "AQID")).unwrap().unwrap_err();
        assert_eq!(error.kind, UnwrapFailure::Unreachable, "{error}");
    }

    #[test]
    fn formatting_never_shows_credentials() {
        let service = service();
        let key = AzureKeyVaultKey::parse("https://t.vault.azure.net/keys/k").unwrap();
        let recipient = service.recipient(key).unwrap();
        let identity = service.identity();
        let credential = service.0.credential().unwrap();
        let shown = format!("{:?} {recipient:?} {identity:?} {credential:?}", service.0.context);
        assert!(shown.contains("application") && !shown.contains("CANARY"), "{shown}");
    }
}

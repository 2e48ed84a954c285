//! Key services in the cloud, as the environment configures them: addresses, credentials, whom they may go to.
//!
//! Names of variables are those of stock sops and of each service's own tools. Clients are made once per run.

#[cfg(any(feature = "aws", feature = "azure", feature = "gcp", feature = "vault"))]
use std::sync::OnceLock;
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp", feature = "vault"))]
use std::time::Duration;

#[cfg(feature = "aws")]
use lacre_crypto::recipient::aws_kms::{AwsContext, AwsCredentials, AwsKms};
#[cfg(feature = "azure")]
use lacre_crypto::recipient::azure_key_vault::{AzureContext, AzureCredentials, AzureKeyVault};
#[cfg(feature = "gcp")]
use lacre_crypto::recipient::gcp_kms::{GcpContext, GcpCredentials, GcpKms};
#[cfg(feature = "vault")]
use lacre_crypto::recipient::vault::{Vault, VaultContext, VaultTrust};
use lacre_crypto::recipient::{KeyError, Recipient, RecipientId};
#[cfg(any(feature = "azure", feature = "gcp", feature = "vault"))]
use lacre_crypto::secret::SecretText;

use super::Keyring;
#[cfg(feature = "vault")]
use crate::compat;
#[cfg(any(feature = "azure", feature = "gcp", feature = "vault"))]
use crate::environment;
use crate::error::CommandError;
#[cfg(feature = "vault")]
use crate::output::Output;

/// How long a remote key service may take to answer.
#[cfg(any(feature = "aws", feature = "azure", feature = "gcp", feature = "vault"))]
const REMOTE_DEADLINE: Duration = Duration::from_secs(15);

/// Most bytes of a file with credentials or certificates.
#[cfg(any(feature = "gcp", feature = "vault"))]
const CREDENTIALS_BYTES_MAX: u64 = 1024 * 1024;

/// The services that one of `wanted` asks for.
pub(super) fn gather(wanted: &[RecipientId], keyring: &mut Keyring) {
    let has = |kind: fn(&RecipientId) -> bool| wanted.iter().any(kind);
    if has(|id| matches!(id, RecipientId::AwsKms(_))) {
        #[cfg(feature = "aws")]
        keyring.add_service("AWS KMS with the credentials of the environment", Box::new(aws().identity()));
        #[cfg(not(feature = "aws"))]
        keyring.note("kms", "this build has no AWS KMS");
    }
    if has(|id| matches!(id, RecipientId::GcpKms(_))) {
        #[cfg(feature = "gcp")]
        keyring.add_service("GCP KMS", Box::new(gcp().identity()));
        #[cfg(not(feature = "gcp"))]
        keyring.note("gcp_kms", "this build has no GCP KMS");
    }
    if has(|id| matches!(id, RecipientId::AzureKeyVault(_))) {
        #[cfg(feature = "azure")]
        keyring.add_service("Azure Key Vault", Box::new(azure().identity()));
        #[cfg(not(feature = "azure"))]
        keyring.note("azure_kv", "this build has no Azure Key Vault");
    }
    if has(|id| matches!(id, RecipientId::Vault(_))) {
        #[cfg(feature = "vault")]
        match vault() {
            Ok(vault) => keyring.add_service("Vault", Box::new(vault.identity())),
            Err(error) => keyring.note("Vault", error.cause.to_string()),
        }
        #[cfg(not(feature = "vault"))]
        keyring.note("hc_vault", "this build has no Vault");
    }
}

/// What wraps for `id`, a key in one of these services.
pub(crate) fn recipient(id: &RecipientId) -> Result<Box<dyn Recipient>, CommandError> {
    let made = match id {
        #[cfg(feature = "aws")]
        RecipientId::AwsKms(key) => boxed(aws().recipient(key.clone())),
        #[cfg(feature = "azure")]
        RecipientId::AzureKeyVault(key) => boxed(azure().recipient(key.clone())),
        #[cfg(feature = "gcp")]
        RecipientId::GcpKms(key) => boxed(gcp().recipient(key.clone())),
        #[cfg(feature = "vault")]
        RecipientId::Vault(key) => {
            return boxed(vault()?.recipient(key.clone())).map_err(|error| {
                let hint =
                    format!("if you trust that server with your token, set VAULT_ADDR={}", key.address);
                CommandError::general(format!("{id}: {error}")).hint(hint)
            });
        }
        _ => Err(KeyError::new("this build cannot seal for that kind of key")),
    };
    made.map_err(|error| CommandError::general(format!("{id}: {error}")))
}

#[cfg(any(feature = "aws", feature = "azure", feature = "gcp", feature = "vault"))]
fn boxed<R: Recipient + 'static>(made: Result<R, KeyError>) -> Result<Box<dyn Recipient>, KeyError> {
    made.map(|recipient| Box::new(recipient) as Box<dyn Recipient>)
}

/// AWS as the environment configures it, `AWS_ENDPOINT_URL` included. A person runs this, so roles and profiles
/// that a file names are followed.
#[cfg(feature = "aws")]
fn aws() -> &'static AwsKms {
    static SHARED: OnceLock<AwsKms> = OnceLock::new();
    SHARED.get_or_init(|| {
        AwsKms::new(AwsContext {
            endpoint: None,
            credentials: AwsCredentials::Environment,
            deadline: REMOTE_DEADLINE,
            allow_role_and_profile: true,
        })
    })
}

/// Azure as the environment configures it: an application with its secret if all three variables name one, else what
/// the client finds.
#[cfg(feature = "azure")]
fn azure() -> &'static AzureKeyVault {
    static SHARED: OnceLock<AzureKeyVault> = OnceLock::new();
    SHARED.get_or_init(|| {
        let application =
            ["AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET"].map(environment::text);
        let credentials = match application {
            [Some(tenant_id), Some(client_id), Some(secret)] => {
                AzureCredentials::ClientSecret { tenant_id, client_id, secret: SecretText::new(secret) }
            }
            [_, client_id, _] => AzureCredentials::Environment { client_id },
        };
        AzureKeyVault::new(AzureContext { credentials, deadline: REMOTE_DEADLINE })
    })
}

/// GCP as the environment configures it. `SOPS_GCP_KMS_CLIENT_TYPE` chooses between two ways of the same calls in
/// stock sops; here there is one.
#[cfg(feature = "gcp")]
fn gcp() -> &'static GcpKms {
    static SHARED: OnceLock<GcpKms> = OnceLock::new();
    SHARED.get_or_init(|| {
        let endpoint = environment::text("SOPS_GCP_KMS_ENDPOINT");
        let credentials =
            match (environment::text("GOOGLE_CREDENTIALS"), environment::text("GOOGLE_OAUTH_ACCESS_TOKEN")) {
                (Some(given), _) => GcpCredentials::Json(file_or_text(given)),
                (None, Some(token)) => GcpCredentials::Token(SecretText::new(token)),
                (None, None) => GcpCredentials::Environment,
            };
        GcpKms::new(GcpContext {
            // The other way of calling names a host alone.
            endpoint: endpoint.map(|at| if at.contains("://") { at } else { format!("https://{at}") }),
            universe_domain: environment::text("SOPS_GCP_KMS_UNIVERSE_DOMAIN"),
            credentials,
            deadline: REMOTE_DEADLINE,
        })
    })
}

/// The content of the file that is called so, else the text itself.
#[cfg(feature = "gcp")]
fn file_or_text(given: String) -> SecretText {
    let content = read(std::path::Path::new(&given));
    content.unwrap_or_else(|_| SecretText::new(given))
}

/// Vault as the environment configures it. In the place of sops, whose users set no list, any server is trusted that a
/// file names.
///
/// # Errors
/// A list of trusted servers that cannot be understood, or certificates that cannot be read.
#[cfg(feature = "vault")]
fn vault() -> Result<&'static Vault, CommandError> {
    static SHARED: OnceLock<Vault> = OnceLock::new();
    if let Some(vault) = SHARED.get() {
        return Ok(vault);
    }
    let (address, list) = (environment::text("VAULT_ADDR"), environment::text("SOPS_HC_VAULT_ALLOWLIST"));
    let trust = match (compat::as_sops(), list) {
        (true, None) => {
            Output::default().warn(
                "SOPS_HC_VAULT_ALLOWLIST is not set: the Vault token goes to any server that a file names; \
                 list yours there",
            );
            VaultTrust::Any
        }
        (_, list) => trust(address.as_deref(), list.as_deref())?,
    };
    let context = VaultContext {
        token: vault_token(),
        namespace: environment::text("VAULT_NAMESPACE"),
        trust,
        authorities: vault_authorities()?,
        danger_accept_any_certificate: is_set("VAULT_SKIP_VERIFY"),
        deadline: REMOTE_DEADLINE,
    };
    Ok(SHARED.get_or_init(|| Vault::new(context)))
}

/// The servers that get the token: `address`, and those of `list`, which is `all`, `none`, or addresses with commas.
#[cfg(feature = "vault")]
fn trust(address: Option<&str>, list: Option<&str>) -> Result<VaultTrust, CommandError> {
    let listed = match list {
        Some("all") => return Ok(VaultTrust::Any),
        Some("none") => return Ok(VaultTrust::Nobody),
        Some(list) => list,
        None => "",
    };
    VaultTrust::listed(address.into_iter().chain(crate::recipients::words(listed))).map_err(|error| {
        CommandError::general(format!("VAULT_ADDR or SOPS_HC_VAULT_ALLOWLIST: {error}"))
            .hint("an address looks like https://vault.example.org:8200")
    })
}

/// The user's token: that of the environment, or the one that `vault login` leaves in the home folder.
#[cfg(feature = "vault")]
pub(crate) fn vault_token() -> Option<SecretText> {
    if let Some(token) = environment::text("VAULT_TOKEN") {
        return Some(SecretText::new(token));
    }
    let path = std::path::PathBuf::from(std::env::var_os("HOME")?).join(".vault-token");
    let token = read(&path).ok()?.expose_secret().trim().to_owned();
    (!token.is_empty()).then(|| SecretText::new(token))
}

/// Certificates of authorities beside those of the system, as PEM.
#[cfg(feature = "vault")]
pub(crate) fn vault_authorities() -> Result<Option<Vec<u8>>, CommandError> {
    let Some(path) = environment::text("VAULT_CACERT") else {
        return Ok(environment::text("VAULT_CACERT_BYTES").map(String::into_bytes));
    };
    let content = read(std::path::Path::new(&path)).map_err(|error| {
        CommandError::general(format!("VAULT_CACERT: {path}: {}", crate::files::plain_words(&error)))
            .hint("set VAULT_CACERT to a PEM file")
    })?;
    Ok(Some(content.expose_secret().as_bytes().to_vec()))
}

#[cfg(any(feature = "gcp", feature = "vault"))]
fn read(path: &std::path::Path) -> std::io::Result<SecretText> {
    let bytes =
        std::fs::File::open(path).and_then(|file| crate::files::read_bounded(file, CREDENTIALS_BYTES_MAX))?;
    bytes.into_text().map_err(|_| std::io::ErrorKind::InvalidData.into())
}

/// Whether a variable says yes, in the words that Go takes for it.
#[cfg(feature = "vault")]
fn is_set(name: &str) -> bool {
    environment::text(name)
        .is_some_and(|value| matches!(value.as_str(), "1" | "t" | "T" | "true" | "True" | "TRUE"))
}

#[cfg(all(test, feature = "vault"))]
mod tests {
    use super::*;

    #[test]
    fn the_token_goes_to_the_users_own_servers_alone() {
        assert_eq!(trust(None, None).unwrap(), VaultTrust::Nobody);
        assert_eq!(trust(Some("https://a.example"), Some("none")).unwrap(), VaultTrust::Nobody);
        assert_eq!(trust(None, Some("all")).unwrap(), VaultTrust::Any);
        let both = trust(Some("https://a.example"), Some("https://b.example, https://c.example/")).unwrap();
        assert_eq!(
            both,
            VaultTrust::listed(["https://a.example", "https://b.example", "https://c.example/"]).unwrap()
        );
        assert!(trust(None, Some("b.example")).is_err());
    }
}

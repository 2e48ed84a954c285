//! From what a caller gives to a source of tokens, of which there may be several to try.

use std::sync::Arc;
use std::time::Duration;

use azure_core::credentials::{AccessToken, Secret, TokenCredential, TokenRequestOptions};
use azure_core::error::{Error, ErrorKind};
use azure_identity::{
    ClientAssertionCredentialOptions, ClientSecretCredential, ClientSecretCredentialOptions,
    DeveloperToolsCredential, ManagedIdentityCredential, ManagedIdentityCredentialOptions, UserAssignedId,
    WorkloadIdentityCredential, WorkloadIdentityCredentialOptions,
};

use super::{AzureCredentials, transport};

/// How long a source may take before the next one is tried: elsewhere than in Azure, nobody answers for the machine.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) fn credential(given: &AzureCredentials) -> azure_core::Result<Arc<dyn TokenCredential>> {
    match given {
        AzureCredentials::ClientSecret { tenant_id, client_id, secret } => {
            let secret = Secret::new(secret.expose_secret().to_owned());
            let options = ClientSecretCredentialOptions { client_options: transport::options() };
            Ok(ClientSecretCredential::new(tenant_id, client_id.clone(), secret, Some(options))?)
        }
        AzureCredentials::Environment { client_id } => Ok(Arc::new(Chain(sources(client_id.as_deref())))),
    }
}

/// The sources that there may be, in the order of Microsoft's other clients. One that is not set up is left out.
fn sources(client_id: Option<&str>) -> Vec<Arc<dyn TokenCredential>> {
    let mut sources: Vec<Arc<dyn TokenCredential>> = Vec::new();
    let pod = WorkloadIdentityCredentialOptions {
        credential_options: ClientAssertionCredentialOptions { client_options: transport::options() },
        ..Default::default()
    };
    if let Ok(source) = WorkloadIdentityCredential::new(Some(pod)) {
        sources.push(source);
    }
    let machine = ManagedIdentityCredentialOptions {
        user_assigned_id: client_id.map(|id| UserAssignedId::ClientId(id.to_owned())),
        client_options: transport::options(),
    };
    if let Ok(source) = ManagedIdentityCredential::new(Some(machine)) {
        sources.push(source);
    }
    if let Ok(source) = DeveloperToolsCredential::new(None) {
        sources.push(source);
    }
    sources
}

/// The first source that gives a token.
#[derive(Debug)]
struct Chain(Vec<Arc<dyn TokenCredential>>);

#[async_trait::async_trait]
impl TokenCredential for Chain {
    async fn get_token(
        &self,
        scopes: &[&str],
        options: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        let mut last = None;
        for source in &self.0 {
            match tokio::time::timeout(PATIENCE, source.get_token(scopes, options.clone())).await {
                Ok(Ok(token)) => return Ok(token),
                Ok(Err(error)) => last = Some(error),
                Err(_) => {}
            }
        }
        Err(last.unwrap_or_else(|| Error::with_message(ErrorKind::Credential, "no Azure login was found")))
    }
}

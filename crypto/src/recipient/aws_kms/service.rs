//! Clients of KMS, each made once.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use aws_config::sts::AssumeRoleProvider;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_kms::Client;
use aws_smithy_async::time::{SharedTimeSource, SystemTimeSource};

use super::{AwsContext, AwsCredentials};
use crate::recipient::remote::Door;
use crate::recipient::{AwsKmsKey, KeyError, UnwrapError};
use crate::secret::SecretText;

/// Most clients that are kept. Documents choose regions and roles, so their number is not ours; at the limit all
/// are dropped and made anew as needed.
const CLIENTS_MAX: usize = 64;

/// Longest name of an STS session.
const SESSION_NAME_CHARS_MAX: usize = 64;

/// What tells one client from another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Access {
    region: String,
    role: Option<String>,
    profile: String,
}

impl Access {
    /// How `key` is reached when `context` is asked what of it may be followed.
    pub(super) fn to(key: &AwsKmsKey, context: &AwsContext) -> Result<Self, KeyError> {
        let region = key.region()?.to_owned();
        if !context.allow_role_and_profile {
            return Ok(Self { region, role: None, profile: String::new() });
        }
        Ok(Self { region, role: key.role.clone(), profile: key.profile.clone() })
    }
}

/// One caller's way to KMS.
pub(super) struct Service {
    context: Arc<AwsContext>,
    clients: Arc<Mutex<BTreeMap<Access, Client>>>,
    door: Door,
}

impl Service {
    pub(super) fn new(context: AwsContext) -> Self {
        let door = Door::new("AWS KMS", context.deadline);
        Self { context: Arc::new(context), clients: Arc::default(), door }
    }

    pub(super) fn context(&self) -> &AwsContext {
        &self.context
    }

    /// Does `work` with the client for `access`, both within the deadline.
    pub(super) fn call<T, W>(
        &self,
        access: Access,
        work: impl FnOnce(Client) -> W + Send + 'static,
    ) -> Result<T, UnwrapError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, UnwrapError>> + Send + 'static,
    {
        let (context, clients) = (Arc::clone(&self.context), Arc::clone(&self.clients));
        self.door.call(async move { work(client(&context, &clients, access).await).await })
    }
}

async fn client(context: &AwsContext, clients: &Mutex<BTreeMap<Access, Client>>, access: Access) -> Client {
    let kept = clients.lock().unwrap_or_else(PoisonError::into_inner).get(&access).cloned();
    if let Some(client) = kept {
        return client;
    }
    let client = Client::new(&configuration(context, &access).await);
    let mut clients = clients.lock().unwrap_or_else(PoisonError::into_inner);
    if clients.len() >= CLIENTS_MAX {
        clients.clear();
    }
    clients.insert(access, client.clone());
    client
}

async fn configuration(context: &AwsContext, access: &Access) -> SdkConfig {
    let region = Region::new(access.region.clone());
    let base = match &context.credentials {
        AwsCredentials::Environment => of_environment(context, access, region.clone()).await,
        AwsCredentials::Static { access_key_id, secret_access_key, session_token } => {
            let token = session_token.as_ref().map(|token| token.expose_secret().to_owned());
            let secret: &SecretText = secret_access_key;
            let credentials = Credentials::from_keys(access_key_id, secret.expose_secret(), token);
            fixed(context, credentials, region.clone())
        }
    };
    let Some(role) = &access.role else { return base };
    let provider = AssumeRoleProvider::builder(role)
        .session_name(session_name(rustix::system::uname().nodename().to_string_lossy().as_ref()))
        .region(region)
        .configure(&base)
        .build()
        .await;
    base.into_builder().credentials_provider(SharedCredentialsProvider::new(provider)).build()
}

/// What the SDK finds in environment and shared files.
async fn of_environment(context: &AwsContext, access: &Access, region: Region) -> SdkConfig {
    let mut loader = aws_config::defaults(BehaviorVersion::latest()).region(region);
    if !access.profile.is_empty() {
        loader = loader.profile_name(&access.profile);
    }
    if let Some(endpoint) = &context.endpoint {
        loader = loader.endpoint_url(endpoint);
    }
    loader.load().await
}

/// The given credentials, and nothing that the environment says.
fn fixed(context: &AwsContext, credentials: Credentials, region: Region) -> SdkConfig {
    let mut builder = SdkConfig::builder()
        .behavior_version(BehaviorVersion::latest())
        .time_source(SharedTimeSource::new(SystemTimeSource::new()))
        .region(region)
        .credentials_provider(SharedCredentialsProvider::new(credentials));
    builder.set_endpoint_url(context.endpoint.clone());
    builder.build()
}

/// `sops@HOST` without the characters that STS refuses, as stock sops names its sessions: audit logs show it.
fn session_name(host: &str) -> String {
    let allowed = |character: &char| character.is_ascii_alphanumeric() || "=,.@-_".contains(*character);
    format!("sops@{host}").chars().filter(allowed).take(SESSION_NAME_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_session_is_named_after_the_host_as_far_as_sts_allows() {
        assert_eq!(session_name("build-7.example.org"), "sops@build-7.example.org");
        assert_eq!(session_name("Jörg's Mac"), "sops@JrgsMac");
        assert_eq!(session_name(&"h".repeat(100)).len(), SESSION_NAME_CHARS_MAX);
    }

    #[test]
    fn role_and_profile_count_only_when_allowed() {
        let role = "arn:aws:iam::111122223333:role/r";
        let key = AwsKmsKey::parse(&format!("arn:aws:kms:eu-west-1:111122223333:key/k+{role}"), "", "prod")
            .unwrap();
        let mut context = AwsContext {
            endpoint: None,
            credentials: AwsCredentials::Environment,
            deadline: Duration::from_secs(1),
            allow_role_and_profile: false,
        };
        let access = Access::to(&key, &context).unwrap();
        assert_eq!(access, Access { region: "eu-west-1".to_owned(), role: None, profile: String::new() });
        context.allow_role_and_profile = true;
        let access = Access::to(&key, &context).unwrap();
        assert_eq!((access.role.as_deref(), access.profile.as_str()), (Some(role), "prod"));
    }
}

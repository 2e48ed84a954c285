//! Google Cloud KMS: the key never leaves the service, which wraps and unwraps on request.
//!
//! Standard: `Encrypt` and `Decrypt` of the Cloud KMS API over HTTPS, by Google's own client. `enc` is standard base64
//! of the opaque ciphertext, as stock sops writes it. The service picks cipher and nonce, so there is nothing to repeat
//! on our side.
//!
//! What a document may choose is only the resource name, which is checked for being one; address and credentials
//! come from the caller alone ([`GcpContext`]).
//!
//! Limits: the client copies a key into request and response bodies that are not wiped, and follows redirects of the
//! one address that the caller gave it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use google_cloud_kms_v1::client::KeyManagementService;
use tokio::sync::OnceCell;

use self::credentials::credentials;
use self::failure::classify;
use super::remote::{Door, broken, denied, unreachable};
use super::{
    Effort, GcpKmsKey, Identity, KeyError, Recipient, RecipientId, UnwrapError, WRAPPED_KEY_BYTES_MAX,
    WrapError, WrappedKey, check_to_wrap, unwrapped,
};
use crate::secret::{SecretBytes, SecretText};

mod credentials;
mod failure;

/// Where the service is, and as whom we call it. All that this kind takes from its surroundings.
#[derive(Clone, Debug)]
pub struct GcpContext {
    /// Address of the service, or nothing for the public one.
    pub endpoint: Option<String>,
    /// Domain of a cloud that is not Google's own but works like it.
    pub universe_domain: Option<String>,
    /// Where credentials come from.
    pub credentials: GcpCredentials,
    /// How long one call may take with all that belongs to it.
    pub deadline: Duration,
}

/// Where Google credentials come from.
#[derive(Clone, Debug)]
pub enum GcpCredentials {
    /// The client's own chain: `GOOGLE_APPLICATION_CREDENTIALS`, the user's login, the machine's account.
    Environment,
    /// The content of a file of credentials.
    Json(SecretText),
    /// An OAuth token that someone else fetched.
    Token(SecretText),
}

/// One caller's way to the service. Connections and tokens are kept for as long as it or one of its recipients and
/// identities lives.
#[derive(Clone)]
pub struct GcpKms(Arc<Service>);

struct Service {
    context: GcpContext,
    client: Arc<OnceCell<KeyManagementService>>,
    door: Door,
}

impl GcpKms {
    /// A way to the service that is first used by the first call.
    pub fn new(context: GcpContext) -> Self {
        let door = Door::new("GCP KMS", context.deadline);
        Self(Arc::new(Service { context, client: Arc::default(), door }))
    }

    /// A recipient that calls the service when it wraps, and not before.
    ///
    /// # Errors
    /// [`KeyError`] when the resource name is none.
    pub fn recipient(&self, key: GcpKmsKey) -> Result<GcpKmsRecipient, KeyError> {
        key.check()?;
        Ok(GcpKmsRecipient { key, service: Arc::clone(&self.0) })
    }

    /// An identity that calls the service when it unwraps, and not before.
    pub fn identity(&self) -> GcpKmsIdentity {
        GcpKmsIdentity { service: Arc::clone(&self.0) }
    }
}

impl Service {
    /// Does `work` with the client, both within the deadline.
    fn call<T, W>(
        &self,
        work: impl FnOnce(KeyManagementService) -> W + Send + 'static,
    ) -> Result<T, UnwrapError>
    where
        T: Send + 'static,
        W: Future<Output = Result<T, UnwrapError>> + Send + 'static,
    {
        let (context, client) = (self.context.clone(), Arc::clone(&self.client));
        self.door.call(async move {
            let client = client.get_or_try_init(|| connect(context)).await?;
            work(client.clone()).await
        })
    }
}

async fn connect(context: GcpContext) -> Result<KeyManagementService, UnwrapError> {
    let credentials = credentials(&context)?;
    // Where there are none, the client waits for a machine's account that no machine elsewhere has.
    match tokio::time::timeout(context.deadline / 3, credentials.headers(http::Extensions::new())).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return Err(denied(failure::words(&error))),
        Err(_) => return Err(denied("no Google credentials were found")),
    }
    let mut builder = KeyManagementService::builder().with_credentials(credentials);
    if let Some(endpoint) = context.endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    if let Some(domain) = context.universe_domain {
        builder = builder.with_universe_domain(domain);
    }
    builder.build().await.map_err(|error| denied(failure::words(&error)))
}

/// A key in the service to wrap with.
pub struct GcpKmsRecipient {
    key: GcpKmsKey,
    service: Arc<Service>,
}

impl fmt::Debug for GcpKmsRecipient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("GcpKmsRecipient").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Recipient for GcpKmsRecipient {
    fn id(&self) -> RecipientId {
        RecipientId::GcpKms(self.key.clone())
    }

    fn wrap(&self, key: &SecretBytes) -> Result<String, WrapError> {
        let error = |reason: String| WrapError { recipient: self.id(), reason };
        check_to_wrap(key).map_err(error)?;
        let (name, plaintext) = (self.key.resource_id.clone(), key.expose_secret().to_vec());
        let sealed = self.service.call(move |client| async move {
            let call = client.encrypt().set_name(name).set_plaintext(plaintext);
            let answer = call.send().await.map_err(|error| classify(&error))?;
            match answer.ciphertext.is_empty() {
                true => Err(unreachable("GCP KMS answered without a result")),
                false => Ok(answer.ciphertext),
            }
        });
        sealed.map(|sealed| STANDARD.encode(sealed)).map_err(|failure| error(failure.reason))
    }
}

/// Credentials for Google Cloud: opens whatever key they may use.
pub struct GcpKmsIdentity {
    service: Arc<Service>,
}

impl GcpKmsIdentity {
    fn open(&self, key: &GcpKmsKey, enc: &str) -> Result<SecretBytes, UnwrapError> {
        key.check().map_err(|error| broken(error.reason))?;
        let (name, ciphertext) = (key.resource_id.clone(), decode(enc)?);
        let opened = self.service.call(move |client| async move {
            let call = client.decrypt().set_name(name).set_ciphertext(ciphertext);
            let answer = call.send().await.map_err(|error| classify(&error))?;
            Ok(SecretBytes::new(answer.plaintext.to_vec()))
        })?;
        unwrapped(opened)
    }
}

impl fmt::Debug for GcpKmsIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "GcpKmsIdentity({})", self.public())
    }
}

impl Identity for GcpKmsIdentity {
    fn public(&self) -> String {
        match self.service.context.credentials {
            GcpCredentials::Environment => "gcp_kms with the Google credentials of the environment",
            GcpCredentials::Json(_) => "gcp_kms with given Google credentials",
            GcpCredentials::Token(_) => "gcp_kms with a given Google token",
        }
        .to_owned()
    }

    fn effort(&self) -> Effort {
        Effort::Remote
    }

    fn unwrap(&self, wrapped: &WrappedKey) -> Option<Result<SecretBytes, UnwrapError>> {
        let RecipientId::GcpKms(key) = &wrapped.recipient else { return None };
        Some(self.open(key, &wrapped.enc))
    }
}

/// The ciphertext inside the base64, which may be folded over lines.
fn decode(enc: &str) -> Result<Vec<u8>, UnwrapError> {
    if enc.len() > WRAPPED_KEY_BYTES_MAX {
        return Err(broken(format!("larger than {WRAPPED_KEY_BYTES_MAX} bytes")));
    }
    let compact: String = enc.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    let ciphertext = STANDARD.decode(compact).map_err(|_| broken("the wrapped key is not base64"))?;
    if ciphertext.is_empty() { Err(broken("the wrapped key is empty")) } else { Ok(ciphertext) }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::recipient::UnwrapFailure;

    const KEY: &str = "projects/p/locations/global/keyRings/r/cryptoKeys/k";

    fn context(endpoint: String) -> GcpContext {
        GcpContext {
            endpoint: Some(endpoint),
            universe_domain: None,
            credentials: GcpCredentials::Token(SecretText::from("CANARY")),
            deadline: Duration::from_secs(5),
        }
    }

    fn entry(key: &str, enc: &str) -> WrappedKey {
        let key = GcpKmsKey { resource_id: key.to_owned() };
        WrappedKey { recipient: RecipientId::GcpKms(key), enc: enc.to_owned(), created_at: None }
    }

    #[test]
    fn broken_entries_are_told_without_a_call() {
        let identity = GcpKms::new(context("http://127.0.0.1:1".to_owned())).identity();
        let long = "A".repeat(WRAPPED_KEY_BYTES_MAX + 1);
        for (key, enc) in [(KEY, ""), (KEY, "***"), (KEY, long.as_str()), ("projects/p/../../x", "AQID")] {
            let error = identity.unwrap(&entry(key, enc)).unwrap().unwrap_err();
            assert_eq!(error.kind, UnwrapFailure::Broken, "{key} {}", enc.len());
        }
        let age = WrappedKey { recipient: RecipientId::Age(String::new()), ..entry(KEY, "AQID") };
        assert!(identity.unwrap(&age).is_none());
    }

    #[test]
    fn a_service_that_is_silent_or_gone_is_unreachable() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let silent = format!("http://{}", listener.local_addr().unwrap());
        let context = GcpContext { deadline: Duration::from_millis(300), ..context(silent) };
        let error = GcpKms::new(context).identity().unwrap(&entry(KEY, "AQID")).unwrap().unwrap_err();
        assert_eq!(error.kind, UnwrapFailure::Unreachable);
        assert!(error.reason.contains("within 0.3 s"), "{error}");
    }

    #[test]
    fn formatting_never_shows_credentials() {
        let service = GcpKms::new(context("http://127.0.0.1:1".to_owned()));
        let recipient = service.recipient(GcpKmsKey::parse(KEY).unwrap()).unwrap();
        let identity = service.identity();
        let given = credentials(&service.0.context).unwrap();
        let shown = format!("{:?} {recipient:?} {identity:?} {given:?}", service.0.context);
        assert!(shown.contains("cryptoKeys/k") && !shown.contains("CANARY"), "{shown}");
    }
}

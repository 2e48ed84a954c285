//! AWS KMS: the key never leaves the service, which wraps and unwraps on request.
//!
//! Standard: the KMS API's `Encrypt` and `Decrypt`, by `aws-sdk-kms`. `enc` is standard base64 of the opaque
//! ciphertext blob, as stock sops writes it. KMS encrypts with AES-256-GCM under a key derived for each call, with
//! nonces of its own making, so there is nothing to repeat on our side; the encryption context is its additional
//! data, and another context does not open the blob.
//!
//! What a document may choose is only what its ARN says: key and region, from which the SDK makes the host name
//! `kms.REGION.…`. So the region is checked for being a plain word, an endpoint comes from the caller alone
//! ([`AwsContext::endpoint`]), and no redirect is followed. Role and profile count only when the caller says so.
//!
//! Limit: the SDK copies a key into request and response bodies that are not wiped.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_kms::primitives::Blob;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use self::failure::classify;
use self::service::{Access, Service};
use super::remote::broken;
use super::{
    AwsKmsKey, Effort, Identity, KeyError, Recipient, RecipientId, UnwrapError, WRAPPED_KEY_BYTES_MAX,
    WrapError, WrappedKey, check_to_wrap, unwrapped,
};
use crate::secret::{SecretBytes, SecretText};

mod failure;
mod service;

/// Most bytes of a ciphertext blob, as the API documents it.
pub const BLOB_BYTES_MAX: usize = 6144;

/// Where the service is, and as whom we call it. All that this kind takes from its surroundings.
#[derive(Clone, Debug)]
pub struct AwsContext {
    /// Base address for KMS and STS, or nothing for the public ones (and, with credentials of the environment, for
    /// what the environment says).
    pub endpoint: Option<String>,
    /// Where credentials come from.
    pub credentials: AwsCredentials,
    /// How long one call may take with all that belongs to it: credentials, role, retries.
    pub deadline: Duration,
    /// Whether the role and the profile that a document names are followed. Off where documents are not trusted
    /// with the choice: then both are ignored.
    pub allow_role_and_profile: bool,
}

/// Where AWS credentials come from.
#[derive(Clone, Debug)]
pub enum AwsCredentials {
    /// The SDK's own chain: environment variables, shared files, SSO, container and machine roles.
    Environment,
    /// These, and nothing of the environment.
    Static {
        /// Public name of the key.
        access_key_id: String,
        /// The key.
        secret_access_key: SecretText,
        /// Token of a temporary key.
        session_token: Option<SecretText>,
    },
}

/// One caller's way to KMS. Connections, credentials and roles are kept for as long as it or one of its recipients and
/// identities lives.
#[derive(Clone)]
pub struct AwsKms(Arc<Service>);

impl AwsKms {
    /// A way to KMS that is first used by the first call.
    pub fn new(context: AwsContext) -> Self {
        Self(Arc::new(Service::new(context)))
    }

    /// A recipient that calls KMS when it wraps, and not before.
    ///
    /// # Errors
    /// [`KeyError`] when the key's ARN or role is none.
    pub fn recipient(&self, key: AwsKmsKey) -> Result<AwsKmsRecipient, KeyError> {
        let access = Access::to(&key, self.0.context())?;
        Ok(AwsKmsRecipient { key, access, service: Arc::clone(&self.0) })
    }

    /// An identity that calls KMS when it unwraps, and not before.
    pub fn identity(&self) -> AwsKmsIdentity {
        let name = match &self.0.context().credentials {
            AwsCredentials::Environment => "kms with the AWS credentials of the environment".to_owned(),
            AwsCredentials::Static { access_key_id, .. } => {
                format!("kms with AWS access key {access_key_id}")
            }
        };
        AwsKmsIdentity { name, service: Arc::clone(&self.0) }
    }
}

/// A key in KMS to wrap with, and how to reach it.
pub struct AwsKmsRecipient {
    key: AwsKmsKey,
    access: Access,
    service: Arc<Service>,
}

impl AwsKmsRecipient {
    /// A recipient with a way to KMS of its own.
    ///
    /// # Errors
    /// As [`AwsKms::recipient`].
    pub fn new(key: AwsKmsKey, context: AwsContext) -> Result<Self, KeyError> {
        AwsKms::new(context).recipient(key)
    }

    fn seal(&self, key: &SecretBytes) -> Result<Vec<u8>, UnwrapError> {
        let (arn, context) = (self.key.arn.clone(), api_context(&self.key));
        let plaintext = Blob::new(key.expose_secret());
        self.service.call(self.access.clone(), move |client| async move {
            let call = client.encrypt().key_id(arn).plaintext(plaintext).set_encryption_context(context);
            let answer = call.send().await.map_err(|error| classify(&error))?;
            answer.ciphertext_blob.map(Blob::into_inner).ok_or_else(failure::empty)
        })
    }
}

impl fmt::Debug for AwsKmsRecipient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AwsKmsRecipient").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Recipient for AwsKmsRecipient {
    fn id(&self) -> RecipientId {
        RecipientId::AwsKms(self.key.clone())
    }

    fn wrap(&self, key: &SecretBytes) -> Result<String, WrapError> {
        let error = |reason: String| WrapError { recipient: self.id(), reason };
        check_to_wrap(key).map_err(error)?;
        self.seal(key).map(|blob| STANDARD.encode(blob)).map_err(|failure| error(failure.reason))
    }
}

/// Credentials for KMS: opens whatever key they may use.
pub struct AwsKmsIdentity {
    name: String,
    service: Arc<Service>,
}

impl AwsKmsIdentity {
    /// An identity with a way to KMS of its own.
    pub fn new(context: AwsContext) -> Self {
        AwsKms::new(context).identity()
    }

    fn open(&self, key: &AwsKmsKey, enc: &str) -> Result<SecretBytes, UnwrapError> {
        let access = Access::to(key, self.service.context()).map_err(|error| broken(error.reason))?;
        let blob = decode_blob(enc)?;
        let context = api_context(key);
        // Naming the key keeps a blob of another key, which the same credentials could open, from passing for it.
        let arn = key.is_pinned().then(|| key.arn.clone());
        let opened = self.service.call(access, move |client| async move {
            let call = client.decrypt().ciphertext_blob(blob).set_encryption_context(context).set_key_id(arn);
            let answer = call.send().await.map_err(|error| classify(&error))?;
            answer.plaintext.map(|blob| SecretBytes::new(blob.into_inner())).ok_or_else(failure::empty)
        })?;
        unwrapped(opened)
    }
}

impl fmt::Debug for AwsKmsIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "AwsKmsIdentity({})", self.name)
    }
}

impl Identity for AwsKmsIdentity {
    fn public(&self) -> String {
        self.name.clone()
    }

    fn effort(&self) -> Effort {
        Effort::Remote
    }

    fn unwrap(&self, wrapped: &WrappedKey) -> Option<Result<SecretBytes, UnwrapError>> {
        let RecipientId::AwsKms(key) = &wrapped.recipient else { return None };
        Some(self.open(key, &wrapped.enc))
    }
}

/// The blob inside the base64, which may be folded over lines.
fn decode_blob(enc: &str) -> Result<Blob, UnwrapError> {
    if enc.len() > WRAPPED_KEY_BYTES_MAX {
        return Err(broken(format!("larger than {WRAPPED_KEY_BYTES_MAX} bytes")));
    }
    let compact: String = enc.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    let blob = STANDARD.decode(compact).map_err(|_| broken("the wrapped key is not base64"))?;
    if blob.is_empty() || blob.len() > BLOB_BYTES_MAX {
        return Err(broken(format!(
            "the wrapped key has {} bytes; KMS makes 1 to {BLOB_BYTES_MAX}",
            blob.len()
        )));
    }
    Ok(Blob::new(blob))
}

/// The context as the SDK takes it; an empty one is left out, as stock sops does.
fn api_context(key: &AwsKmsKey) -> Option<std::collections::HashMap<String, String>> {
    (!key.context.is_empty()).then(|| key.context.clone().into_iter().collect())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    use super::*;
    use crate::recipient::UnwrapFailure;

    const ARN: &str = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab";

    fn context(endpoint: String, deadline: Duration) -> AwsContext {
        AwsContext {
            endpoint: Some(endpoint),
            credentials: AwsCredentials::Static {
                access_key_id: "AKIDEXAMPLE".to_owned(),
                secret_access_key: SecretText::from("CANARY"),
                session_token: Some(SecretText::from("CANARY")),
            },
            deadline,
            allow_role_and_profile: false,
        }
    }

    fn entry(arn: &str, enc: &str) -> WrappedKey {
        let key = AwsKmsKey { arn: arn.to_owned(), ..AwsKmsKey::default() };
        WrappedKey { recipient: RecipientId::AwsKms(key), enc: enc.to_owned(), created_at: None }
    }

    /// Answers every connection with `answer`, or never when it is empty; counts them.
    fn answering(answer: String) -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let calls = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&calls);
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                counter.fetch_add(1, Ordering::SeqCst);
                if !answer.is_empty() {
                    let _ = stream.read(&mut [0; 8192]);
                    let _ = stream.write_all(answer.as_bytes());
                }
                held.push(stream);
            }
        });
        (endpoint, calls)
    }

    fn answer(status: &str, headers: &str, body: &str) -> String {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}")
    }

    fn failure(endpoint: String, deadline: Duration) -> UnwrapError {
        let identity = AwsKmsIdentity::new(context(endpoint, deadline));
        identity.unwrap(&entry(ARN, "AQID")).unwrap().unwrap_err()
    }

    #[test]
    fn broken_entries_are_told_without_a_call() {
        let (endpoint, calls) = answering(String::new());
        let identity = AwsKmsIdentity::new(context(endpoint, Duration::from_secs(5)));
        let long = STANDARD.encode(vec![0; BLOB_BYTES_MAX + 1]);
        for (arn, enc) in [
            (ARN, ""),
            (ARN, "***"),
            (ARN, long.as_str()),
            (ARN, &"A".repeat(WRAPPED_KEY_BYTES_MAX + 1)),
            ("arn:aws:kms:evil.example/#:1:key/k", "AQID"),
        ] {
            let error = identity.unwrap(&entry(arn, enc)).unwrap().unwrap_err();
            assert_eq!(error.kind, UnwrapFailure::Broken, "{arn} {}", enc.len());
        }
        let age = WrappedKey { recipient: RecipientId::Age(String::new()), ..entry(ARN, "AQID") };
        assert!(identity.unwrap(&age).is_none());
        assert_eq!(calls.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_blob_may_be_folded_and_is_limited_on_both_sides() {
        assert_eq!(decode_blob("AQ\r\nID\n").unwrap().into_inner(), [1, 2, 3]);
        assert!(decode_blob(&STANDARD.encode(vec![0; BLOB_BYTES_MAX])).is_ok());
        assert!(decode_blob(&STANDARD.encode(vec![0; BLOB_BYTES_MAX + 1])).is_err());
    }

    #[test]
    fn a_redirect_is_not_followed() {
        let (elsewhere, calls) = answering(answer("200 OK", "", "{}"));
        for status in ["302 Found", "307 Temporary Redirect"] {
            let (endpoint, _) = answering(answer(status, &format!("location: {elsewhere}/\r\n"), ""));
            let error = failure(endpoint, Duration::from_secs(10));
            assert_eq!(error.kind, UnwrapFailure::Unreachable);
            assert!(error.reason.contains("redirect"), "{}", error.reason);
        }
        assert_eq!(calls.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_service_that_is_silent_or_gone_is_unreachable() {
        let (silent, _) = answering(String::new());
        let started = Instant::now();
        let error = failure(silent, Duration::from_millis(300));
        assert_eq!(error.kind, UnwrapFailure::Unreachable);
        assert!(error.reason.contains("within 0.3 s"), "{}", error.reason);
        assert!(started.elapsed() < Duration::from_secs(5));
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = failure(format!("http://{closed}"), Duration::from_secs(10));
        assert_eq!(error.kind, UnwrapFailure::Unreachable);
        assert!(error.reason.contains("refused"), "{}", error.reason);
    }

    #[test]
    fn refusals_throttling_and_wrong_lengths_are_told_apart() {
        let typed = |code: &str| format!("{{\"__type\":\"{code}\",\"message\":\"no\"}}");
        let short = format!("{{\"Plaintext\":\"{}\"}}", STANDARD.encode([7; 16]));
        for (status, body, kind) in [
            ("400 Bad Request", typed("AccessDeniedException"), UnwrapFailure::Denied),
            ("400 Bad Request", typed("ThrottlingException"), UnwrapFailure::Throttled),
            ("400 Bad Request", typed("InvalidCiphertextException"), UnwrapFailure::Broken),
            ("200 OK", "{}".to_owned(), UnwrapFailure::Unreachable),
            ("200 OK", short, UnwrapFailure::Broken),
        ] {
            let (endpoint, _) = answering(answer(status, "", &body));
            let error = failure(endpoint, Duration::from_secs(30));
            assert_eq!(error.kind, kind, "{body}: {}", error.reason);
        }
    }

    #[test]
    fn what_is_no_key_is_not_sent_for_wrapping() {
        let (endpoint, calls) = answering(String::new());
        let key = AwsKmsKey::parse(ARN, "", "").unwrap();
        let recipient = AwsKmsRecipient::new(key, context(endpoint, Duration::from_secs(5))).unwrap();
        for length in [0, 31, 34] {
            assert!(recipient.wrap(&SecretBytes::new(vec![7; length])).is_err(), "{length}");
        }
        assert_eq!(calls.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn it_works_and_ends_inside_another_runtime() {
        let (endpoint, _) =
            answering(answer("400 Bad Request", "", "{\"__type\":\"AccessDeniedException\"}"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let call = move || failure(endpoint, Duration::from_secs(10)).kind;
        let kinds =
            runtime.block_on(async { [call.clone()(), tokio::task::spawn_blocking(call).await.unwrap()] });
        assert_eq!(kinds, [UnwrapFailure::Denied; 2]);
    }

    #[test]
    fn formatting_never_shows_credentials() {
        let context = context("http://127.0.0.1:1".to_owned(), Duration::from_secs(1));
        let identity = AwsKmsIdentity::new(context.clone());
        let recipient =
            AwsKmsRecipient::new(AwsKmsKey::parse(ARN, "", "").unwrap(), context.clone()).unwrap();
        let shown = format!("{context:?} {identity:?} {recipient:?} {}", identity.public());
        assert!(shown.contains("AKIDEXAMPLE") && !shown.contains("CANARY"), "{shown}");
    }
}

//! The transit engine of Vault and OpenBao: the key never leaves the server, which wraps and unwraps on request.
//!
//! Standard: `POST /v1/ENGINE/encrypt/NAME` and `…/decrypt/NAME` of the transit API. `enc` is the server's own text,
//! `vault:v1:…`, whose number is the key's version; the server picks cipher and nonce (AES-256-GCM unless the key was
//! made otherwise), so there is nothing to repeat on our side.
//!
//! The address stands in the document, and the token must not follow it anywhere: it goes only where
//! [`VaultTrust`] says, and no redirect is followed. Whoever is not trusted is not called at all.
//!
//! Limit: the client copies a key into request and response bodies that are not wiped.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Certificate, Client, Url, redirect};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::remote::{ANSWER_BYTES_MAX, Door, broken, by_status, deepest, denied, quote, unreachable};
use super::{
    Effort, Identity, KeyError, Recipient, RecipientId, UnwrapError, UnwrapFailure, VaultKey,
    WRAPPED_KEY_BYTES_MAX, WrapError, WrappedKey, check_to_wrap, unwrapped,
};
use crate::secret::{SecretBytes, SecretText};

pub use self::trust::VaultTrust;

mod trust;

/// Where credentials come from and where they may go. All that this kind takes from its surroundings.
#[derive(Clone, Debug)]
pub struct VaultContext {
    /// The token that says who we are; without one nothing is called.
    pub token: Option<SecretText>,
    /// Namespace of the engine, for servers that have them.
    pub namespace: Option<String>,
    /// The servers that get the token.
    pub trust: VaultTrust,
    /// Certificates (PEM) of authorities to trust beside those of the system.
    pub authorities: Option<Vec<u8>>,
    /// Whether any certificate will do. Whoever stands between then gets the token and every data key.
    pub danger_accept_any_certificate: bool,
    /// How long one call may take.
    pub deadline: Duration,
}

/// One caller's way to Vault servers. Connections are kept for as long as it or one of its recipients and identities
/// lives.
#[derive(Clone)]
pub struct Vault(Arc<Service>);

struct Service {
    context: VaultContext,
    client: OnceLock<Client>,
    door: Door,
}

impl Vault {
    /// A way to servers that is first used by the first call.
    pub fn new(context: VaultContext) -> Self {
        let door = Door::new("Vault", context.deadline);
        Self(Arc::new(Service { context, client: OnceLock::new(), door }))
    }

    /// A recipient that calls the key's server when it wraps, and not before.
    ///
    /// # Errors
    /// [`KeyError`] when the key's parts are none, or its server is not trusted with the token.
    pub fn recipient(&self, key: VaultKey) -> Result<VaultRecipient, KeyError> {
        key.check()?;
        self.0.context.trust.check(&key.address)?;
        Ok(VaultRecipient { key, service: Arc::clone(&self.0) })
    }

    /// An identity that calls a key's server when it unwraps, and not before.
    pub fn identity(&self) -> VaultIdentity {
        VaultIdentity { service: Arc::clone(&self.0) }
    }
}

impl Service {
    /// Asks the key's server to `verb` what `body` holds; gives the field `wanted` of its answer.
    fn call(
        &self,
        key: &VaultKey,
        verb: &'static str,
        body: &serde_json::Value,
    ) -> Result<Zeroizing<String>, UnwrapError> {
        key.check().map_err(|error| broken(error.reason))?;
        self.context.trust.check(&key.address).map_err(|error| denied(error.reason))?;
        let url = url(key, verb)?;
        let client = self.client()?;
        let request = client.post(url).headers(self.headers()?).json(body);
        self.door.call(async move {
            let response = request.send().await.map_err(|error| not_sent(&error))?;
            answer(response, verb).await
        })
    }

    fn client(&self) -> Result<Client, UnwrapError> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let mut builder = Client::builder()
            .redirect(redirect::Policy::none())
            .tls_danger_accept_invalid_certs(self.context.danger_accept_any_certificate);
        if let Some(pem) = &self.context.authorities {
            let authorities = Certificate::from_pem_bundle(pem)
                .map_err(|_| denied("the certificates given for Vault are not PEM"))?;
            builder = builder.tls_certs_merge(authorities);
        }
        let client = builder.build().map_err(|error| unreachable(deepest(&error)))?;
        Ok(self.client.get_or_init(|| client).clone())
    }

    fn headers(&self) -> Result<HeaderMap, UnwrapError> {
        let token = self.context.token.as_ref().ok_or_else(|| denied("no Vault token was found"))?;
        let mut token = HeaderValue::from_str(token.expose_secret())
            .map_err(|_| denied("the Vault token holds characters that no token has"))?;
        token.set_sensitive(true);
        // The last one tells a proxy that adds tokens that no browser was made to send this.
        let mut headers = HeaderMap::new();
        headers.insert("x-vault-token", token);
        headers.insert("x-vault-request", HeaderValue::from_static("true"));
        if let Some(namespace) = &self.context.namespace {
            let namespace = HeaderValue::from_str(namespace)
                .map_err(|_| denied("the Vault namespace holds characters that no namespace has"))?;
            headers.insert("x-vault-namespace", namespace);
        }
        Ok(headers)
    }
}

/// The address of the key's engine with `verb`. Each part of the path is encoded, so that none leads elsewhere.
fn url(key: &VaultKey, verb: &str) -> Result<Url, UnwrapError> {
    let mut url = Url::parse(&key.address).map_err(|_| broken("the Vault address is not a URL"))?;
    let mut path = url.path_segments_mut().map_err(|()| broken("the Vault address is not a URL"))?;
    path.pop_if_empty().push("v1").extend(key.engine_path.trim_matches('/').split('/'));
    path.push(verb).push(&key.name);
    drop(path);
    Ok(url)
}

/// What the server says; only the one field that was asked for is looked at.
#[derive(Deserialize)]
struct Answer {
    data: Option<Data>,
    #[serde(default)]
    errors: Vec<String>,
}

#[derive(Deserialize)]
struct Data {
    ciphertext: Option<String>,
    plaintext: Option<String>,
}

async fn answer(mut response: reqwest::Response, verb: &str) -> Result<Zeroizing<String>, UnwrapError> {
    let status = response.status().as_u16();
    if (300..400).contains(&status) {
        return Err(unreachable("Vault answered with a redirect, which is not followed"));
    }
    let mut body = Zeroizing::new(Vec::new());
    while let Some(chunk) = response.chunk().await.map_err(|error| not_sent(&error))? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(unreachable("Vault answered with more than 2 MiB"));
        }
        body.extend_from_slice(&chunk);
    }
    let answer: Option<Answer> = serde_json::from_slice(&body).ok();
    if status != 200 {
        let said = answer.map(|answer| answer.errors.join("; ")).unwrap_or_default();
        return Err(refused(status, &said));
    }
    let data = answer.and_then(|answer| answer.data);
    let field = data.and_then(|data| if verb == "encrypt" { data.ciphertext } else { data.plaintext });
    field.map(Zeroizing::new).ok_or_else(|| unreachable("Vault answered without a result"))
}

/// Sorts a refusal. Status 400 stands for a key that is not there as well as for damage.
fn refused(status: u16, said: &str) -> UnwrapError {
    let kind = match status {
        400 if said.contains("not found") => UnwrapFailure::Denied,
        status => by_status(status),
    };
    let said = if said.trim().is_empty() { String::new() } else { format!(": {}", quote(said.trim())) };
    UnwrapError::new(kind, format!("Vault answered HTTP status {status}{said}"))
}

/// No answer at all. The address is the document's and stands beside this message; no header is part of it.
fn not_sent(error: &reqwest::Error) -> UnwrapError {
    unreachable(format!("cannot reach Vault: {}", deepest(error)))
}

/// A transit key to wrap with.
pub struct VaultRecipient {
    key: VaultKey,
    service: Arc<Service>,
}

impl fmt::Debug for VaultRecipient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("VaultRecipient").field("key", &self.key).finish_non_exhaustive()
    }
}

impl Recipient for VaultRecipient {
    fn id(&self) -> RecipientId {
        RecipientId::Vault(self.key.clone())
    }

    fn wrap(&self, key: &SecretBytes) -> Result<String, WrapError> {
        let error = |reason: String| WrapError { recipient: self.id(), reason };
        check_to_wrap(key).map_err(error)?;
        let body = serde_json::json!({ "plaintext": STANDARD.encode(key.expose_secret()) });
        let enc = self.service.call(&self.key, "encrypt", &body).map_err(|failure| error(failure.reason))?;
        match is_enc(&enc) {
            true => Ok(enc.to_string()),
            false => Err(error("Vault answered with something that is no transit ciphertext".to_owned())),
        }
    }
}

/// A token for Vault: opens whatever key it may use.
pub struct VaultIdentity {
    service: Arc<Service>,
}

impl VaultIdentity {
    fn open(&self, key: &VaultKey, enc: &str) -> Result<SecretBytes, UnwrapError> {
        if enc.len() > WRAPPED_KEY_BYTES_MAX {
            return Err(broken(format!("larger than {WRAPPED_KEY_BYTES_MAX} bytes")));
        }
        let enc = enc.trim();
        if !is_enc(enc) {
            return Err(broken("the wrapped key is not a transit ciphertext, `vault:v1:…`"));
        }
        let text = self.service.call(key, "decrypt", &serde_json::json!({ "ciphertext": enc }))?;
        let opened = STANDARD.decode(text.as_bytes()).map(SecretBytes::new);
        let opened = opened.map_err(|_| broken("what was wrapped is not base64"))?;
        unwrapped(opened)
    }
}

impl fmt::Debug for VaultIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "VaultIdentity({})", self.public())
    }
}

impl Identity for VaultIdentity {
    fn public(&self) -> String {
        match self.service.context.token {
            Some(_) => "hc_vault with a Vault token".to_owned(),
            None => "hc_vault without a Vault token".to_owned(),
        }
    }

    fn effort(&self) -> Effort {
        Effort::Remote
    }

    fn unwrap(&self, wrapped: &WrappedKey) -> Option<Result<SecretBytes, UnwrapError>> {
        let RecipientId::Vault(key) = &wrapped.recipient else { return None };
        Some(self.open(key, &wrapped.enc))
    }
}

/// `vault:vN:` and base64; also the prefix of a server that was set to another one.
fn is_enc(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=:_.-".contains(&byte);
    text.contains(":v") && text.len() <= WRAPPED_KEY_BYTES_MAX && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::Mutex;

    use super::*;

    fn context(trust: VaultTrust) -> VaultContext {
        VaultContext {
            token: Some(SecretText::from("CANARY")),
            namespace: None,
            trust,
            authorities: None,
            danger_accept_any_certificate: false,
            deadline: Duration::from_secs(10),
        }
    }

    fn entry(address: &str, enc: &str) -> WrappedKey {
        let key =
            VaultKey { address: address.to_owned(), engine_path: "transit".to_owned(), name: "k".to_owned() };
        WrappedKey { recipient: RecipientId::Vault(key), enc: enc.to_owned(), created_at: None }
    }

    /// Answers every connection with `answer`; keeps what was sent.
    fn answering(answer: String) -> (String, Arc<Mutex<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<String>> = Arc::default();
        let kept = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut buffer = [0; 8192];
                let count = stream.read(&mut buffer).unwrap_or_default();
                kept.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..count]));
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        (address, seen)
    }

    fn answer_text(status: &str, headers: &str, body: &str) -> String {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}")
    }

    fn failure(answer: String) -> UnwrapError {
        let (address, _) = answering(answer);
        let identity = Vault::new(context(VaultTrust::Any)).identity();
        identity.unwrap(&entry(&address, "vault:v1:AAAA")).unwrap().unwrap_err()
    }

    #[test]
    fn an_address_that_is_not_trusted_is_not_called() {
        let (elsewhere, seen) = answering(answer_text("200 OK", "", "{}"));
        let trust = VaultTrust::listed(["https://vault.example.org:8200"]).unwrap();
        let vault = Vault::new(context(trust));
        let error = vault.identity().unwrap(&entry(&elsewhere, "vault:v1:AAAA")).unwrap().unwrap_err();
        assert_eq!(error.kind, UnwrapFailure::Denied);
        assert!(error.reason.contains("VAULT_ADDR"), "{error}");
        let key = VaultKey::parse(&format!("{elsewhere}/v1/transit/keys/k")).unwrap();
        assert!(vault.recipient(key).is_err());
        assert_eq!(*seen.lock().unwrap(), "");
    }

    #[test]
    fn a_redirect_is_not_followed() {
        let (elsewhere, seen) = answering(answer_text("200 OK", "", "{}"));
        for status in ["302 Found", "307 Temporary Redirect"] {
            let error = failure(answer_text(status, &format!("location: {elsewhere}/\r\n"), ""));
            assert_eq!(error.kind, UnwrapFailure::Unreachable);
            assert!(error.reason.contains("redirect"), "{error}");
        }
        assert_eq!(*seen.lock().unwrap(), "");
    }

    #[test]
    fn answers_are_told_apart() {
        let said = |text: &str| format!("{{\"errors\":[\"{text}\"]}}");
        let short = format!("{{\"data\":{{\"plaintext\":\"{}\"}}}}", STANDARD.encode([7; 16]));
        let large = "x".repeat(ANSWER_BYTES_MAX + 1);
        for (status, body, kind) in [
            ("403 Forbidden", said("permission denied"), UnwrapFailure::Denied),
            ("404 Not Found", said("no handler for route"), UnwrapFailure::Denied),
            ("400 Bad Request", said("encryption key not found"), UnwrapFailure::Denied),
            ("400 Bad Request", said("invalid ciphertext"), UnwrapFailure::Broken),
            ("429 Too Many Requests", said("slow down"), UnwrapFailure::Throttled),
            ("503 Service Unavailable", said("Vault is sealed"), UnwrapFailure::Unreachable),
            ("200 OK", "{}".to_owned(), UnwrapFailure::Unreachable),
            ("200 OK", large, UnwrapFailure::Unreachable),
            ("200 OK", short, UnwrapFailure::Broken),
        ] {
            let error = failure(answer_text(status, "", &body));
            assert_eq!(error.kind, kind, "{status}: {error}");
        }
    }

    #[test]
    fn broken_entries_are_told_without_a_call() {
        let (address, seen) = answering(String::new());
        let identity = Vault::new(context(VaultTrust::Any)).identity();
        let long = format!("vault:v1:{}", "A".repeat(WRAPPED_KEY_BYTES_MAX));
        for (address, enc) in [
            (address.as_str(), ""),
            (&address, "AQID"),
            (&address, "vault:v1:A\nB"),
            (&address, &long),
            ("file:///etc", "vault:v1:AAAA"),
            ("http://me@evil.example", "vault:v1:AAAA"),
        ] {
            let error = identity.unwrap(&entry(address, enc)).unwrap().unwrap_err();
            assert_eq!(error.kind, UnwrapFailure::Broken, "{address} {}", enc.len());
        }
        let age = WrappedKey { recipient: RecipientId::Age(String::new()), ..entry(&address, "vault:v1:A") };
        assert!(identity.unwrap(&age).is_none());
        assert_eq!(*seen.lock().unwrap(), "");
    }

    #[test]
    fn formatting_never_shows_the_token() {
        let vault = Vault::new(context(VaultTrust::Any));
        let key = VaultKey::parse("https://v.example/v1/transit/keys/k").unwrap();
        let (recipient, identity) = (vault.recipient(key).unwrap(), vault.identity());
        let shown = format!("{:?} {recipient:?} {identity:?} {}", vault.0.context, identity.public());
        assert!(shown.contains("v.example") && !shown.contains("CANARY"), "{shown}");
    }
}

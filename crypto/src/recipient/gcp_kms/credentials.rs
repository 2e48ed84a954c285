//! From what a caller gives to credentials as Google's client takes them.

use std::fmt;

use google_cloud_auth::credentials::{
    Builder, CacheableResource, Credentials, CredentialsProvider, EntityTag, external_account,
    external_account_authorized_user, impersonated, service_account, user_account,
};
use google_cloud_auth::errors::CredentialsError;
use http::header::AUTHORIZATION;
use http::{Extensions, HeaderMap, HeaderValue};

use super::{GcpContext, GcpCredentials};
use crate::recipient::UnwrapError;
use crate::recipient::remote::denied;
use crate::secret::SecretText;

/// Most bytes of credentials.
const CREDENTIALS_BYTES_MAX: usize = 1024 * 1024;

pub(super) fn credentials(context: &GcpContext) -> Result<Credentials, UnwrapError> {
    match &context.credentials {
        GcpCredentials::Environment => Builder::default().build().map_err(|error| not_valid(&error)),
        GcpCredentials::Json(text) => from_json(text),
        GcpCredentials::Token(token) => {
            Ok(Credentials::from(Token::new(token, context.universe_domain.clone())?))
        }
    }
}

/// The kinds of credentials that a file can hold, told apart by its `type`.
fn from_json(text: &SecretText) -> Result<Credentials, UnwrapError> {
    if text.len() > CREDENTIALS_BYTES_MAX {
        return Err(denied("the Google credentials are larger than 1 MiB"));
    }
    // What the parser says could repeat a part of the key.
    let json: serde_json::Value = serde_json::from_str(text.expose_secret())
        .map_err(|_| denied("the Google credentials are neither a readable file nor JSON"))?;
    let kind = json.get("type").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
    let built = match kind.as_str() {
        "authorized_user" => user_account::Builder::new(json).build(),
        "external_account" => external_account::Builder::new(json).build(),
        "external_account_authorized_user" => external_account_authorized_user::Builder::new(json).build(),
        "impersonated_service_account" => impersonated::Builder::new(json).build(),
        "service_account" => service_account::Builder::new(json).build(),
        _ => return Err(denied("the Google credentials are of no known `type`")),
    };
    built.map_err(|error| not_valid(&error))
}

/// Says that credentials are wrong, and never how: the client's words may quote them.
fn not_valid(_: &google_cloud_auth::build_errors::Error) -> UnwrapError {
    denied("the Google credentials cannot be used: a field is missing or malformed")
}

/// A token that someone else fetched, sent as it is until it expires.
struct Token {
    header: HeaderValue,
    universe_domain: Option<String>,
    tag: EntityTag,
}

impl Token {
    fn new(token: &SecretText, universe_domain: Option<String>) -> Result<Self, UnwrapError> {
        let mut header = HeaderValue::from_str(&format!("Bearer {}", token.expose_secret().trim()))
            .map_err(|_| denied("the Google token holds characters that no token has"))?;
        header.set_sensitive(true);
        Ok(Self { header, universe_domain, tag: EntityTag::new() })
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token")
    }
}

impl CredentialsProvider for Token {
    async fn headers(&self, _: Extensions) -> Result<CacheableResource<HeaderMap>, CredentialsError> {
        let data = HeaderMap::from_iter([(AUTHORIZATION, self.header.clone())]);
        Ok(CacheableResource::New { entity_tag: self.tag.clone(), data })
    }

    async fn universe_domain(&self) -> Option<String> {
        self.universe_domain.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_credential_is_refused_without_repeating_it() {
        for text in [
            "",
            "CANARY",
            "{\"type\":\"CANARY\"}",
            "{\"type\":\"service_account\",\"private_key\":\"CANARY\"}",
        ] {
            let error = from_json(&SecretText::from(text)).map(drop).unwrap_err();
            assert!(!error.reason.contains("CANARY"), "{error}");
        }
        assert!(Token::new(&SecretText::from("a\nb"), None).is_err());
    }
}

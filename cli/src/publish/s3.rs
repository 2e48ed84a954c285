//! One object into S3.
//!
//! The SDK of S3 is as large as this command: a single `PUT` with a signature does not need it. Credentials and region
//! come from where the SDK finds them for KMS.

use std::time::SystemTime;

use aws_config::{BehaviorVersion, SdkConfig};
use aws_credential_types::provider::ProvideCredentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4::SigningParams;

use super::http;
use crate::environment;
use crate::error::{CommandError, Kind};

/// Puts `bytes` into the object `key`.
pub(super) fn upload(bucket: &str, key: &str, bytes: Vec<u8>) -> Result<(), CommandError> {
    http::wait(put(bucket, key, bytes))
}

async fn put(bucket: &str, key: &str, bytes: Vec<u8>) -> Result<(), CommandError> {
    let config = aws_config::load_defaults(BehaviorVersion::latest()).await;
    let region = config.region().map(ToString::to_string).ok_or_else(|| {
        CommandError::general(format!("s3://{bucket}: no AWS region is known")).hint("set AWS_REGION")
    })?;
    let url = url(bucket, key, &region, endpoint(&config).as_deref());
    let headers = signature(&config, &region, &url, &bytes).await?;
    let client = http::client().build().map_err(|error| http::unreachable(&url, &error))?;
    let request = headers.iter().fold(client.put(&url), |request, (name, value)| request.header(name, value));
    let answer = request.body(bytes).send().await.map_err(|error| http::unreachable(&url, &error))?;
    http::success(&url, answer).await
}

/// An address other than Amazon's own: for S3, or for all services.
fn endpoint(config: &SdkConfig) -> Option<String> {
    let of_s3 = environment::text("AWS_ENDPOINT_URL_S3");
    of_s3.or_else(|| config.endpoint_url().map(str::to_owned))
}

/// Buckets are hosts of their own, except with a dot, which no certificate covers, and elsewhere than at Amazon.
fn url(bucket: &str, key: &str, region: &str, endpoint: Option<&str>) -> String {
    let key = http::path_encoded(key);
    let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
    let host = format!("s3.{region}.amazonaws.com{suffix}");
    match endpoint {
        Some(endpoint) => format!("{}/{bucket}/{key}", endpoint.trim_end_matches('/')),
        None if bucket.contains('.') => format!("https://{host}/{bucket}/{key}"),
        None => format!("https://{bucket}.{host}/{key}"),
    }
}

/// The headers that sign a `PUT` of `bytes`.
async fn signature(
    config: &SdkConfig,
    region: &str,
    url: &str,
    bytes: &[u8],
) -> Result<Vec<(String, String)>, CommandError> {
    let absent = || {
        CommandError::new(Kind::General, format!("{url}: no AWS credentials were found"))
            .hint("log in to AWS, or set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
    };
    let provider = config.credentials_provider().ok_or_else(absent)?;
    let identity = provider.provide_credentials().await.map_err(|_| absent())?.into();
    let unsigned = |reason: String| CommandError::general(format!("{url}: cannot be signed: {reason}"));
    let mut settings = SigningSettings::default();
    settings.percent_encoding_mode = PercentEncodingMode::Single;
    settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    let parameters = SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name("s3")
        .time(SystemTime::now())
        .settings(settings)
        .build()
        .map_err(|error| unsigned(error.to_string()))?
        .into();
    let request = SignableRequest::new("PUT", url, std::iter::empty(), SignableBody::Bytes(bytes))
        .map_err(|error| unsigned(error.to_string()))?;
    let signed = sign(request, &parameters).map_err(|error| unsigned(error.to_string()))?;
    let (instructions, _) = signed.into_parts();
    Ok(instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_addressed_as_amazon_wants_them() {
        let cases = [
            ("b", "eu-west-1", None, "https://b.s3.eu-west-1.amazonaws.com/p/a%20b"),
            ("b.c", "eu-west-1", None, "https://s3.eu-west-1.amazonaws.com/b.c/p/a%20b"),
            ("b", "cn-north-1", None, "https://b.s3.cn-north-1.amazonaws.com.cn/p/a%20b"),
            ("b", "eu-west-1", Some("http://127.0.0.1:1/"), "http://127.0.0.1:1/b/p/a%20b"),
        ];
        for (bucket, region, endpoint, expected) in cases {
            assert_eq!(url(bucket, "p/a b", region, endpoint), expected);
        }
    }
}

//! One object into Google Cloud Storage.

use google_cloud_auth::credentials::{Builder, CacheableResource};
use reqwest::header::HeaderMap;

use super::http;
use crate::environment;
use crate::error::CommandError;

/// Google's own address.
const GOOGLE: &str = "https://storage.googleapis.com";
/// The right that is asked for.
const SCOPE: &str = "https://www.googleapis.com/auth/devstorage.read_write";
/// Where another server stands, as Google's own clients look for it. It gets no token.
const OTHER_SERVER: &str = "STORAGE_EMULATOR_HOST";

/// Puts `bytes` into the object `name`.
pub(super) fn upload(bucket: &str, name: &str, bytes: Vec<u8>) -> Result<(), CommandError> {
    http::wait(put(bucket, name, bytes))
}

async fn put(bucket: &str, name: &str, bytes: Vec<u8>) -> Result<(), CommandError> {
    let other = environment::text(OTHER_SERVER);
    let (server, headers) = match other {
        Some(host) if host.contains("://") => (host, HeaderMap::new()),
        Some(host) => (format!("http://{host}"), HeaderMap::new()),
        None => (GOOGLE.to_owned(), authorization(bucket).await?),
    };
    let (bucket, name) = (http::encoded(bucket, b"-_."), http::encoded(name, b"-_.~"));
    let url = format!(
        "{}/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}",
        server.trim_end_matches('/')
    );
    let client = http::client().build().map_err(|error| http::unreachable(&url, &error))?;
    let request = client.post(&url).headers(headers).header("content-type", "application/octet-stream");
    let answer = request.body(bytes).send().await.map_err(|error| http::unreachable(&url, &error))?;
    http::success(&url, answer).await
}

/// The headers that say who is writing.
async fn authorization(bucket: &str) -> Result<HeaderMap, CommandError> {
    let absent = || {
        CommandError::general(format!("gcs://{bucket}: no Google Cloud credentials were found")).hint(
            "log in with `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS",
        )
    };
    let credentials = Builder::default().with_scopes([SCOPE]).build().map_err(|_| absent())?;
    match credentials.headers(Default::default()).await.map_err(|_| absent())? {
        CacheableResource::New { data, .. } => Ok(data),
        CacheableResource::NotModified => Err(absent()),
    }
}

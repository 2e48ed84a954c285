//! The certificate that is sealed for: from a file, from behind a URL, or as a cluster publishes it.

use std::path::Path;
use std::time::Duration;

use lacre_crypto::Timestamp;
use lacre_crypto::sealing_key::{Certificate, SealingKeyError};

use crate::error::{CommandError, Kind};
use crate::files;

/// Most bytes behind a URL.
const ANSWER_BYTES_MAX: usize = 2 * 1024 * 1024;
/// How long all of it may take.
const DEADLINE: Duration = Duration::from_secs(60);

/// The text of the certificate in the file `source`, or behind it when it is a URL.
pub(crate) fn read(source: &str) -> Result<String, CommandError> {
    if let Some(path) = source.strip_prefix("file://") {
        return read_file(Path::new(path.strip_prefix("localhost").unwrap_or(path)));
    }
    match source.starts_with("http://") || source.starts_with("https://") {
        true => fetch(source),
        false => read_file(Path::new(source)),
    }
}

/// The first certificate in `text`, if items may still be sealed for it.
pub(crate) fn for_sealing(text: &str) -> Result<Certificate, CommandError> {
    let certificate = Certificate::from_pem(text).map_err(|error| match &error {
        SealingKeyError::NoCertificate { .. } => {
            CommandError::general("data does not contain any valid RSA or ECDSA certificates")
                .hint(error.to_string())
        }
        SealingKeyError::CertificateNotRsa { found } => {
            CommandError::general(format!("expected RSA public key but found {found}"))
                .hint("items are sealed for RSA keys alone: `kubeseal --fetch-cert` prints the controller's")
        }
        _ => CommandError::general(error)
            .hint("`kubeseal --fetch-cert` prints the certificate of the cluster's controller"),
    })?;
    if Timestamp::now() > certificate.not_after() {
        let date = certificate.not_after().strftime("%B %-d, %Y");
        return Err(CommandError::general(format!(
            "failed to encrypt using an expired certificate on {date}"
        ))
        .hint("fetch the controller's newest with `kubeseal --fetch-cert`"));
    }
    Ok(certificate)
}

fn read_file(path: &Path) -> Result<String, CommandError> {
    let text = std::fs::File::open(path)
        .and_then(|file| files::read_bounded(file, ANSWER_BYTES_MAX as u64))
        .map_err(|error| {
            let problem = files::plain_words(&error);
            // The words of the tool that scripts know.
            let problem = problem[..1].to_lowercase() + &problem[1..];
            CommandError::new(Kind::NoFile, format!("open {}: {problem}", path.display()))
                .hint("name a certificate with `--cert`: a file in PEM, or a URL of one")
        })?;
    match text.into_text() {
        Ok(text) => Ok(text.expose_secret().to_owned()),
        Err(_) => Err(CommandError::on(Kind::Read, path.display(), "is not text")
            .hint("name a certificate in PEM with `--cert`; `openssl x509 -inform der` makes one of DER")),
    }
}

fn fetch(address: &str) -> Result<String, CommandError> {
    let failed = |problem: &dyn std::fmt::Display| {
        CommandError::general(format!("cannot fetch \"{address}\": {problem}"))
            .hint("check the address, the network and the proxy, or name a file with `--cert`")
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed(&error))?;
    runtime.block_on(async {
        let client = reqwest::Client::builder()
            .timeout(DEADLINE)
            .user_agent(concat!("lacre/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| failed(&error))?;
        let mut answer = client.get(address).send().await.map_err(|error| {
            failed(&match error {
                _ if error.is_timeout() => "no answer in time",
                _ if error.is_connect() => "cannot connect",
                _ => "the request failed",
            })
        })?;
        if answer.status().as_u16() != 200 {
            return Err(failed(&answer.status()));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|_| failed(&"the answer broke off"))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > ANSWER_BYTES_MAX {
                return Err(failed(&"the answer is larger than 2 MiB"));
            }
        }
        String::from_utf8(bytes).map_err(|_| failed(&"the answer is not text"))
    })
}

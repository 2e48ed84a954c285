//! Uploads: where a published file goes, and the little HTTP that takes it there.
//!
//! A bucket gets a sealed file, Vault's key-value store the plaintext, and no request is ever redirected. The requests
//! are asynchronous, this crate is not: each is made and waited for on a runtime of its own, which ends with it.

#[cfg(feature = "gcp")]
mod gcs;
#[cfg(any(feature = "aws", feature = "gcp", feature = "vault"))]
mod http;
#[cfg(feature = "aws")]
mod s3;
mod vault_kv;

use lacre_crypto::secret::SecretBytes;

use crate::error::CommandError;
use crate::output::Output;

pub(crate) use vault_kv::VaultKv;

/// Where a file goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// A bucket of Google Cloud Storage.
    Gcs {
        /// Its name.
        bucket: String,
        /// What the names of the objects begin with.
        prefix: String,
    },
    /// A bucket of S3.
    S3 {
        /// Its name.
        bucket: String,
        /// What the names of the objects begin with.
        prefix: String,
    },
    /// A folder of a key-value store of Vault or OpenBao.
    Vault(VaultKv),
}

/// What is uploaded.
#[cfg_attr(
    not(all(feature = "aws", feature = "gcp", feature = "vault")),
    allow(dead_code, reason = "a build that cannot upload something refuses it as it is")
)]
pub(crate) enum Payload {
    /// A JSON object with the plaintext.
    Plain(SecretBytes),
    /// A sealed file.
    Sealed(Vec<u8>),
}

impl Destination {
    /// The address of the file `name` there.
    pub(crate) fn address(&self, name: &str) -> String {
        match self {
            Self::Gcs { bucket, prefix } => format!("gcs://{bucket}/{prefix}{name}"),
            Self::S3 { bucket, prefix } => format!("s3://{bucket}/{prefix}{name}"),
            Self::Vault(store) => store.url(name),
        }
    }

    /// Whether it gets the plaintext.
    pub(crate) fn takes_plaintext(&self) -> bool {
        matches!(self, Self::Vault(_))
    }

    /// Whether files may be sent there at all, which is asked before anything is opened.
    ///
    /// # Errors
    /// A credential of the user's would go where only the configuration of a repository sends it.
    pub(crate) fn check(&self, output: Output) -> Result<(), CommandError> {
        match self {
            Self::Vault(store) => store.check(output),
            Self::Gcs { .. } | Self::S3 { .. } => Ok(()),
        }
    }

    /// Uploads `payload` as the file `name`; whether anything changed there.
    ///
    /// # Errors
    /// The service cannot be reached, or refuses.
    pub(crate) fn upload(&self, name: &str, payload: Payload, output: Output) -> Result<bool, CommandError> {
        match (self, payload) {
            #[cfg(feature = "aws")]
            (Self::S3 { bucket, prefix }, Payload::Sealed(bytes)) => {
                s3::upload(bucket, &format!("{prefix}{name}"), bytes).map(|()| true)
            }
            #[cfg(feature = "gcp")]
            (Self::Gcs { bucket, prefix }, Payload::Sealed(bytes)) => {
                gcs::upload(bucket, &format!("{prefix}{name}"), bytes).map(|()| true)
            }
            #[cfg(feature = "vault")]
            (Self::Vault(store), Payload::Plain(object)) => store.upload(name, &object, output),
            _ => {
                let _ = output;
                let address = self.address(name);
                Err(CommandError::general(format!("{address}: this build cannot upload there")))
            }
        }
    }
}

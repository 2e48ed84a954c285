//! What the errors of the crypto crate mean to someone at a command line: exit code and next step.

use lacre_crypto::ConvertError;
use lacre_crypto::error::{DecryptError, EncryptError};

use super::{CommandError, Kind};

impl CommandError {
    /// The sealed file called `name` did not open.
    pub(crate) fn opening(name: &str, error: DecryptError) -> Self {
        let (kind, hint) = match &error {
            DecryptError::BadSeal(_) => (
                Kind::Integrity,
                "someone without the key changed the file; compare it with an older version: `git log -p --no-textconv`",
            ),
            DecryptError::MacMismatch => (
                Kind::Integrity,
                "compare it with an older version; `--ignore-mac` opens it all the same and proves nothing about it",
            ),
            DecryptError::MacMissing => (Kind::Integrity, "`--ignore-mac` opens it all the same"),
            DecryptError::Metadata(_) => (Kind::General, "take the `sops` block from an older version"),
            DecryptError::NotSealed => (Kind::General, "seal it with `lacre encrypt --in-place`"),
            DecryptError::Parse(_) => {
                (Kind::Malformed, "correct that place, or say the format with `--input-type`")
            }
            DecryptError::SealRemoved => (
                Kind::Integrity,
                "look at what changed, then take the file over as it is with `lacre reseal`",
            ),
            DecryptError::Value { .. } => (Kind::Decrypt, "take that value from an older version"),
        };
        Self::on(kind, name, error).hint(hint)
    }

    /// What is in the document called `name` could not be printed.
    pub(crate) fn converting(name: &str, error: ConvertError) -> Self {
        let (kind, hint) = match &error {
            ConvertError::Document { .. } | ConvertError::Value { .. } => {
                (Kind::Emit, "choose another `--output-type`, or leave it out")
            }
            ConvertError::Parse(_) => {
                (Kind::Read, "correct that place, or say the format with `--input-type`")
            }
            ConvertError::Path(_) => (Kind::TreePath, "a path looks like `[\"key\"][0]`"),
        };
        Self::on(kind, name, error).hint(hint)
    }

    /// The document called `name` could not be sealed or changed.
    pub(crate) fn writing(name: &str, error: EncryptError) -> Self {
        let (kind, hint) = match &error {
            EncryptError::AlreadySealed => {
                (Kind::AlreadySealed, "change it with `lacre edit`, `lacre set` or `lacre rotate`")
            }
            EncryptError::ClearSealedForm { .. } => (Kind::Encrypt, "let the selector seal that value too"),
            EncryptError::Limit(_) => (Kind::Encrypt, "split the document"),
            EncryptError::NoRecipient => {
                (Kind::NoRecipient, "give one with `--age`, `--pgp` or `--kms`, or in .sops.yaml")
            }
            EncryptError::NothingSelected { .. } => {
                (Kind::Encrypt, "correct the selector, or insist with `--allow-plaintext`")
            }
            EncryptError::Object(_) => (Kind::Encrypt, "see `lacre kube seal --help`"),
            EncryptError::Parse(_) => {
                (Kind::Read, "correct that place, or say the format with `--input-type`")
            }
            EncryptError::Path(_) => (Kind::TreePath, "a path looks like `[\"key\"][0]`"),
            EncryptError::Unverified(_) => (Kind::Encrypt, "please report this; nothing was written"),
            EncryptError::Wrap(_) => (Kind::Encrypt, "check the recipient and the access to its key service"),
        };
        Self::on(kind, name, error).hint(hint)
    }
}

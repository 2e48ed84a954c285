//! What several kinds of tests need: sealing a text for one age identity, opening it, and stock sops beside it.

use std::fs;

use lacre_crypto::recipient::age::{AgeIdentity, read_identities};
use lacre_crypto::{
    DataKey, EncryptOptions, Format, Groups, OpenFile, OpenOptions, SealedFile, SecretBytes, SecretText,
    Selector, WriteOptions,
};
use xtask::peers::age::{Age, AgeKey};
use xtask::peers::sops::Sops;

/// The time at which tests seal.
pub(crate) fn now() -> lacre_crypto::Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

pub(crate) fn write_options() -> WriteOptions {
    WriteOptions { now: now(), seal: true, allow_plaintext: false }
}

/// Seals with a selector.
pub(crate) fn seal_with(
    content: impl AsRef<[u8]>,
    format: Format,
    identity: &AgeIdentity,
    selector: Selector,
    write: WriteOptions,
) -> Result<String, String> {
    let recipient = identity.recipient();
    let options = EncryptOptions {
        groups: Groups::one(vec![&recipient]),
        selector,
        mac_only_encrypted: false,
        bind: None,
        write,
    };
    let content = SecretBytes::new(content.as_ref().to_vec());
    lacre_crypto::encrypt(&content, format, &options).map_err(|error| error.to_string())
}

pub(crate) fn seal(
    content: impl AsRef<[u8]>,
    format: Format,
    identity: &AgeIdentity,
) -> Result<String, String> {
    seal_with(content, format, identity, Selector::default(), write_options())
}

pub(crate) fn open(sealed: &str, format: Format, identity: &AgeIdentity) -> Result<OpenFile, String> {
    open_with(sealed, format, identity, OpenOptions::default())
}

pub(crate) fn open_with(
    sealed: &str,
    format: Format,
    identity: &AgeIdentity,
    options: OpenOptions,
) -> Result<OpenFile, String> {
    let file = SealedFile::read(sealed, format).map_err(|error| error.to_string())?;
    let key: DataKey = file.unwrap_key(&[identity]).map_err(|error| error.to_string())?;
    file.open(key, &options).map_err(|error| error.to_string())
}

/// A folder with an age key that stock sops finds, and the same identity for us.
pub(crate) struct Bench {
    pub(crate) key: AgeKey,
    pub(crate) identity: AgeIdentity,
    pub(crate) folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let key = Age::new().unwrap().keygen().unwrap();
        let identity = read_identities(&SecretText::from(key.identity.as_str())).unwrap().remove(0);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("key.txt"), &key.identity).unwrap();
        Self { key, identity, folder }
    }

    /// Runs sops on a file of that name and content: what it printed, what it remarked, and the file afterwards.
    pub(crate) fn sops(
        &self,
        sops: &Sops,
        arguments: &[&str],
        name: &str,
        content: impl AsRef<[u8]>,
    ) -> Result<Ran, String> {
        self.sops_with(sops, arguments, name, content, &[])
    }

    pub(crate) fn sops_with(
        &self,
        sops: &Sops,
        arguments: &[&str],
        name: &str,
        content: impl AsRef<[u8]>,
        environment: &[(&str, String)],
    ) -> Result<Ran, String> {
        let path = self.folder.path().join(name);
        fs::write(&path, content).unwrap();
        let in_place = path.to_str().unwrap();
        let arguments: Vec<&str> =
            arguments.iter().map(|argument| if *argument == "FILE" { in_place } else { argument }).collect();
        let finished = sops
            .tool()
            .env("SOPS_AGE_KEY_FILE", self.folder.path().join("key.txt").to_str().unwrap())
            .envs(environment.iter().map(|(name, value)| (*name, value.as_str())))
            .args(&arguments)
            .run()
            .map_err(|error| error.to_string())?;
        match finished.code {
            Some(0) => Ok(Ran {
                stdout: finished.stdout_text(),
                remarks: finished.stderr_text(),
                bytes: finished.stdout,
                file: String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
            }),
            code => Err(format!("{code:?}: {}", finished.stderr_text())),
        }
    }
}

/// A program that ended well.
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) remarks: String,
    pub(crate) file: String,
}

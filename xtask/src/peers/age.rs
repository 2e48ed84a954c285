//! age's own command.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::install::{Component, Source};
use crate::process::Tool;
use crate::versions;

/// The distribution's package brings `age` and `age-keygen`.
pub const COMPONENT: Component =
    Component { name: "age", version: versions::AGE, source: Source::Debian("age"), program: "age" };

/// The installed age.
#[derive(Debug)]
pub struct Age {
    program: PathBuf,
}

/// An X25519 key pair, for tests only: the identity is held as plain text.
#[derive(Debug)]
pub struct AgeKey {
    /// `AGE-SECRET-KEY-1…`
    pub identity: String,
    /// `age1…`
    pub recipient: String,
}

impl Age {
    /// Finds it.
    ///
    /// # Errors
    /// It is not installed.
    pub fn new() -> Result<Self> {
        Ok(Self { program: COMPONENT.path()? })
    }

    /// Makes a key pair.
    ///
    /// # Errors
    /// `age-keygen` fails.
    pub fn keygen(&self) -> Result<AgeKey> {
        let file = String::from_utf8(Tool::new(self.program.with_file_name("age-keygen")).run()?.success()?)?;
        let find = |prefix: &str| file.lines().find_map(|line| line.strip_prefix(prefix)).map(str::trim);
        let identity =
            file.lines().find(|line| line.starts_with("AGE-SECRET-KEY-")).context("no identity")?;
        let recipient = find("# public key: ").context("no recipient")?;
        Ok(AgeKey { identity: identity.to_owned(), recipient: recipient.to_owned() })
    }

    /// Encrypts `plaintext` to one recipient, armoured.
    ///
    /// # Errors
    /// `age` fails.
    pub fn encrypt(&self, recipient: &str, plaintext: &[u8]) -> Result<Vec<u8>> {
        self.tool().args(["--encrypt", "--armor", "--recipient", recipient]).stdin(plaintext).run()?.success()
    }

    /// Decrypts with one identity.
    ///
    /// # Errors
    /// `age` fails, for instance because the identity is not a recipient.
    pub fn decrypt(&self, identity: &str, ciphertext: &[u8]) -> Result<Vec<u8>> {
        let mut file = tempfile::NamedTempFile::new()?;
        writeln!(file, "{identity}")?;
        self.tool().args(["--decrypt", "--identity"]).arg(file.path()).stdin(ciphertext).run()?.success()
    }

    /// A run of it.
    pub fn tool(&self) -> Tool {
        Tool::new(&self.program)
    }
}

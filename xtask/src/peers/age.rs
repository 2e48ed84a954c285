//! age's own command, as the distribution has it and in the version that knows post-quantum keys.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::install::{Component, Source};
use crate::process::Tool;
use crate::versions;

/// The distribution's package brings `age` and `age-keygen`.
pub const COMPONENT: Component =
    Component { name: "age", version: versions::AGE, source: Source::Debian("age"), program: "age" };

/// The version with `age1pq1…`, and beside it the plugins `age-plugin-batchpass` and `age-plugin-pq`.
pub const V1_3: Component = Component {
    name: "age-1.3",
    version: versions::AGE_1_3,
    source: Source::Go {
        folder: "age-1.3",
        package: "filippo.io/age/cmd/age filippo.io/age/cmd/age-keygen \
                  filippo.io/age/cmd/age-plugin-batchpass filippo.io/age/extra/age-plugin-pq",
    },
    program: "age",
};

/// An installed age.
#[derive(Debug)]
pub struct Age {
    program: PathBuf,
}

/// A key pair, for tests only: the identity is held as plain text.
#[derive(Debug)]
pub struct AgeKey {
    /// `AGE-SECRET-KEY-1…` or `AGE-SECRET-KEY-PQ-1…`
    pub identity: String,
    /// `age1…` or `age1pq1…`
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

    /// Finds age 1.3.
    ///
    /// # Errors
    /// It is not installed.
    pub fn v1_3() -> Result<Self> {
        Ok(Self { program: V1_3.path()? })
    }

    /// The folder of the program, which for age 1.3 has its plugins, too.
    pub fn folder(&self) -> &Path {
        self.program.parent().unwrap_or(Path::new("/"))
    }

    /// Makes an X25519 key pair.
    ///
    /// # Errors
    /// `age-keygen` fails.
    pub fn keygen(&self) -> Result<AgeKey> {
        self.keygen_with(&[])
    }

    /// Makes a post-quantum key pair; only age 1.3 can.
    ///
    /// # Errors
    /// `age-keygen` fails.
    pub fn keygen_pq(&self) -> Result<AgeKey> {
        self.keygen_with(&["-pq"])
    }

    fn keygen_with(&self, arguments: &[&str]) -> Result<AgeKey> {
        let keygen = Tool::new(self.program.with_file_name("age-keygen")).args(arguments);
        let file = String::from_utf8(keygen.run()?.success()?)?;
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

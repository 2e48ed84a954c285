//! OpenSSH's program that makes keys.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;

use crate::install::{Component, Source};
use crate::process::Tool;
use crate::versions;

/// The distribution's package brings `ssh-keygen`.
pub const COMPONENT: Component = Component {
    name: "ssh-keygen",
    version: versions::SSH_KEYGEN,
    source: Source::Debian("openssh-client"),
    program: "ssh-keygen",
};

/// The installed ssh-keygen.
#[derive(Debug)]
pub struct SshKeygen {
    program: PathBuf,
}

/// A key pair, for tests only: the private key is held as plain text.
#[derive(Debug)]
pub struct SshKey {
    /// The private key's file.
    pub identity: String,
    /// The public key's line, with a comment.
    pub recipient: String,
}

impl SshKeygen {
    /// Finds it.
    ///
    /// # Errors
    /// It is not installed.
    pub fn new() -> Result<Self> {
        Ok(Self { program: COMPONENT.path()? })
    }

    /// Makes a key pair under `passphrase`, or none when that is empty. `options` say of which type, size and form.
    ///
    /// # Errors
    /// `ssh-keygen` fails.
    pub fn generate(&self, options: &[&str], passphrase: &str) -> Result<SshKey> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("key");
        let tool = Tool::new(&self.program).args(["-q", "-C", "ops@example.org", "-N", passphrase]);
        tool.args(options).arg("-f").arg(&path).run()?.success()?;
        let recipient = fs::read_to_string(path.with_extension("pub"))?.trim().to_owned();
        Ok(SshKey { identity: fs::read_to_string(path)?, recipient })
    }
}

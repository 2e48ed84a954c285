//! GnuPG with a home of its own.

use std::path::Path;

use anyhow::{Context, Result};

use crate::install::{Component, Source};
use crate::process::Tool;
use crate::scratch::Scratch;
use crate::versions;

/// The distribution's package brings gpg, its agent and `gpgconf`.
pub const COMPONENT: Component =
    Component { name: "gpg", version: versions::GPG, source: Source::Debian("gnupg"), program: "gpg" };

/// A GNUPGHOME, with the agents that serve it; both are gone after the drop.
///
/// Set `GNUPGHOME` to [`home`](Self::home) for the program under test.
#[derive(Debug)]
pub struct Gpg {
    home: Scratch,
}

/// What kind of key [`Gpg::generate`] makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Ed25519 for certification, Curve25519 for encryption.
    Curve25519,
    /// RSA with 3072 bits, twice: slow, see [`FixedKey`].
    Rsa3072,
}

/// RSA keys that were made once, since each costs seconds: `testdata/keys/rsa-*.asc`. They protect nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixedKey {
    /// Alice <alice@example.org>
    RsaAlice,
    /// Bob <bob@example.org>
    RsaBob,
}

impl FixedKey {
    /// The armoured secret key.
    pub fn secret_key(self) -> &'static str {
        match self {
            Self::RsaAlice => include_str!("../../../testdata/keys/rsa-alice.asc"),
            Self::RsaBob => include_str!("../../../testdata/keys/rsa-bob.asc"),
        }
    }
}

impl Gpg {
    /// Makes an empty home.
    ///
    /// # Errors
    /// gpg is not installed, or no folder can be made.
    pub fn new() -> Result<Self> {
        COMPONENT.path()?;
        // An agent that was started by a program we started is not our child: it must be told to go.
        Ok(Self { home: Scratch::new("lg-", "GNUPGHOME=\"$1\" gpgconf --kill all")? })
    }

    /// The folder to set `GNUPGHOME` to.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Makes a key without passphrase that never expires; gives its fingerprint.
    ///
    /// # Errors
    /// gpg fails.
    pub fn generate(&self, user: &str, algorithm: Algorithm) -> Result<String> {
        let (primary, subkey) = match algorithm {
            Algorithm::Curve25519 => ("ed25519", "cv25519"),
            Algorithm::Rsa3072 => ("rsa3072", "rsa3072"),
        };
        let quiet = ["--batch", "--status-fd", "1", "--pinentry-mode", "loopback", "--passphrase", ""];
        let made = self
            .tool()
            .args(quiet)
            .args(["--quick-generate-key", user, primary, "cert", "never"])
            .run()?
            .success()?;
        let fingerprint =
            status(&made, "KEY_CREATED").and_then(|line| line.split(' ').nth(1).map(str::to_owned));
        let fingerprint = fingerprint.context("gpg did not say which key it made")?;
        self.tool()
            .args(quiet)
            .args(["--quick-add-key", &fingerprint, subkey, "encr", "never"])
            .run()?
            .success()?;
        Ok(fingerprint)
    }

    /// Imports a certificate or a secret key; gives its fingerprint.
    ///
    /// # Errors
    /// gpg fails, or finds no key.
    pub fn import(&self, key: &[u8]) -> Result<String> {
        let done =
            self.tool().args(["--batch", "--status-fd", "1", "--import"]).stdin(key).run()?.success()?;
        let fingerprint =
            status(&done, "IMPORT_OK").and_then(|line| line.split(' ').nth(1).map(str::to_owned));
        fingerprint.context("gpg imported nothing")
    }

    /// Imports one of the fixed keys; gives its fingerprint.
    ///
    /// # Errors
    /// As [`import`](Self::import).
    pub fn import_fixed(&self, key: FixedKey) -> Result<String> {
        self.import(key.secret_key().as_bytes())
    }

    /// The armoured certificate of a key.
    ///
    /// # Errors
    /// gpg fails.
    pub fn export_certificate(&self, fingerprint: &str) -> Result<Vec<u8>> {
        self.tool().args(["--batch", "--armor", "--export", fingerprint]).run()?.success()
    }

    /// The armoured secret key, without passphrase.
    ///
    /// # Errors
    /// gpg fails.
    pub fn export_secret_key(&self, fingerprint: &str) -> Result<Vec<u8>> {
        self.tool().args(["--batch", "--armor", "--export-secret-keys", fingerprint]).run()?.success()
    }

    /// A run of gpg in this home; keys are trusted, as nobody signs them here.
    pub fn tool(&self) -> Tool {
        Tool::new(COMPONENT.program).env("GNUPGHOME", self.home()).args([
            "--quiet",
            "--trust-model",
            "always",
        ])
    }
}

impl Drop for Gpg {
    fn drop(&mut self) {
        // Before the folder goes: the agent is addressed by a socket in it. Nothing is lost if it is gone already.
        let _ = Tool::new("gpgconf").env("GNUPGHOME", self.home()).args(["--kill", "all"]).run();
    }
}

/// The rest of the first status line with this keyword: `TYPE VALUE …`.
fn status(output: &[u8], keyword: &str) -> Option<String> {
    let text = String::from_utf8_lossy(output);
    let prefix = format!("[GNUPG:] {keyword} ");
    text.lines().find_map(|line| line.strip_prefix(&prefix)).map(str::to_owned)
}

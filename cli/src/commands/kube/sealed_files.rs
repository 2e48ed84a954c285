//! What the commands over SealedSecrets in files share: which files hold some, and which keys open them here.

use std::path::PathBuf;

use clap::Args;
use lacre_crypto::object::SealedSecret;
use lacre_crypto::object::sealed_secret::{KIND, SealedManifest, SealedObject, UnsealError};
use lacre_crypto::sealing_key::SealingKey;
use lacre_crypto::{Format, SecretText};

use crate::commands::Context;
use crate::error::{CommandError, Kind};
use crate::files::{self, Input};
use crate::opening::{self, Leniency};
use crate::sealed_secrets::keys;
use crate::targets::{self, State, Target};

/// Most items whose failure is explained for one object.
const SHOWN_MAX: usize = 5;

/// Private keys at hand.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct OwnKeyArgs {
    /// Open with the private keys in these files: PEM, Secrets of a controller, or a backup of `lacre kube keys
    /// backup`, sealed or not.
    #[arg(long = "key", value_name = "FILE,…", value_delimiter = ',')]
    #[arg(env = "SEALED_SECRETS_RECOVERY_PRIVATE_KEY", hide_env_values = true)]
    pub(super) private_keys: Vec<PathBuf>,
}

impl OwnKeyArgs {
    /// The keys, each once, in the order of the files.
    pub(super) fn read(&self, context: &Context) -> Result<Vec<SealingKey>, CommandError> {
        let mut found: Vec<SealingKey> = Vec::new();
        for path in &self.private_keys {
            let input = files::read(Some(path), None)?;
            let place = path.display().to_string();
            let is_sealed = matches!(
                targets::state(input.content.expose_secret().as_bytes(), Format::Yaml),
                State::Sealed(_)
            );
            let keys = match is_sealed {
                false => keys::in_text(&place, &input.content, context.output)?,
                true => {
                    let open = opening::open(&input, Format::Yaml, Leniency::default(), context)?;
                    let plain = std::str::from_utf8(open.plaintext().expose_secret()).map(SecretText::from);
                    let plain = plain.map_err(|_| {
                        CommandError::on(Kind::Read, &place, "is not text").hint("name a backup of keys")
                    })?;
                    keys::in_text(&place, &plain, context.output)?
                }
            };
            for key in keys {
                if found.iter().all(|known| known.public() != key.public()) {
                    found.push(key);
                }
            }
        }
        Ok(found)
    }
}

/// The SealedSecrets in the text of `input`. Objects of other kinds are left alone. A file that was named must hold one;
/// one of a folder may only mention them.
pub(super) fn read(input: &Input, target: &Target) -> Result<SealedManifest, CommandError> {
    let name = input.name.display().to_string();
    let format = Format::from_file_name(&name).filter(|format| *format == Format::Json);
    let found = SealedManifest::read(input.content.expose_secret(), format.unwrap_or(Format::Yaml));
    let found = found.map_err(|error| {
        CommandError::on(Kind::Read, &name, error).hint("correct that place; the file is as it was")
    })?;
    match found.objects().is_empty() && target.folder.is_none() {
        true => Err(CommandError::on(Kind::General, name, "holds no SealedSecret")
            .hint("name the file or folder that holds some")),
        false => Ok(found),
    }
}

/// Why an object does not open: what its controller would say, then what can be found out about each item.
pub(super) fn not_opened(
    place: &str,
    secret: &SealedSecret,
    error: &UnsealError,
    keys: &[&SealingKey],
) -> CommandError {
    let told = CommandError::on(Kind::Decrypt, place, error);
    let causes = secret.diagnose(error, keys, &[]);
    match causes.is_empty() {
        true => told.hint("correct the object, or seal the Secret again"),
        false => causes.iter().take(SHOWN_MAX).fold(told, |told, cause| told.hint(cause.to_string())),
    }
}

/// Where an object stands, for messages.
pub(super) fn place(input: &Input, object: &SealedObject) -> String {
    format!("{}: line {}: {}", input.name.display(), object.line, object.secret.name)
}

/// Whether a file of a folder says somewhere that something is of this kind. Only then it is taken apart: a repository
/// holds much that is not YAML, and templates that only look like it.
pub(super) fn mentions(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let quotes = |character: char| matches!(character, ' ' | '"' | '\'');
    text.match_indices(KIND).any(|(at, _)| {
        let line = text[..at].rsplit('\n').next().unwrap_or_default();
        let key = line.trim_end_matches(quotes).strip_suffix(':').map(|key| key.trim_end_matches(quotes));
        key.is_some_and(|key| key.ends_with("kind")) && !line.trim_start().starts_with('#')
    })
}

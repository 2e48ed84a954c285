//! `lacre filestatus`: whether a file is sealed, for scripts.

use std::path::PathBuf;

use clap::Args;
use lacre_crypto::SealedFile;
use lacre_crypto::error::DecryptError;
use serde_json::json;

use super::Context;
use crate::args::FormatArgs;
use crate::error::CommandError;
use crate::{files, sealing};

/// Say whether a document is sealed: `{"encrypted":true}` or `{"encrypted":false}`.
///
/// No key is needed, and nothing is verified: to know that nobody changed the document, decrypt it.
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  lacre filestatus secrets.yaml")]
pub(crate) struct FilestatusArgs {
    /// The document.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Read the document in this format, whatever its name: `yaml`, `json`, `dotenv`, `ini` or `binary`.
    #[arg(long, value_name = "FORMAT")]
    input_type: Option<String>,
}

pub(crate) fn run(args: &FilestatusArgs, context: &Context) -> Result<(), CommandError> {
    let input = files::read(Some(&args.file), None)?;
    let typed = FormatArgs { input_type: args.input_type.clone(), ..FormatArgs::default() };
    let format = sealing::format(&input.name, &typed)?;
    let sealed = match SealedFile::read(input.content.expose_secret(), format) {
        Ok(file) => {
            let metadata = file.metadata();
            !metadata.version.is_empty() && metadata.mac.as_ref().is_some_and(|mac| !mac.is_empty())
        }
        Err(DecryptError::NotSealed) => false,
        Err(DecryptError::Parse(_)) if is_plain(input.content.expose_secret()) => false,
        Err(error) => return Err(CommandError::opening(&input.name.display().to_string(), error)),
    };
    context.output.text(&format!("{}\n", json!({ "encrypted": sealed })))
}

/// Whether a text that cannot be read is certainly not sealed: stock tools read some that we refuse to seal. What was
/// sealed and cut off has sealed values left, if not its block.
fn is_plain(text: &str) -> bool {
    !text.contains("sops") && !text.contains("ENC[AES256_GCM,")
}

//! Where a document goes once it is made: back into its file, to another file, or to standard output.

use lacre_crypto::secret::Plaintext;

use crate::args::TargetArgs;
use crate::error::CommandError;
use crate::files::{self, Input, Privacy};
use crate::output::Output;

/// Delivers sealed text.
pub(crate) fn sealed<Content: Plaintext>(
    text: &str,
    target: &TargetArgs,
    input: &Input<Content>,
    output: Output,
) -> Result<(), CommandError> {
    match &target.output {
        Some(path) => files::write(path, text.as_bytes(), Privacy::Shared),
        None if target.in_place => files::replace(input, text.as_bytes(), Privacy::Shared),
        None => output.text(text),
    }
}

/// Delivers plaintext, which the caller was asked for.
pub(crate) fn plain(
    bytes: &[u8],
    target: &TargetArgs,
    input: &Input,
    output: Output,
) -> Result<(), CommandError> {
    match &target.output {
        Some(path) => files::write(path, bytes, Privacy::OwnerAlone),
        None if target.in_place => files::replace(input, bytes, Privacy::OwnerAlone),
        None => output.secret(bytes),
    }
}

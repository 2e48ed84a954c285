//! `--recovery-unseal`: SealedSecrets opened with private keys from files, when there is no cluster that would.

use lacre_crypto::object::sealed_secret::MissingKey;

use super::Call;
use crate::error::CommandError;
use crate::sealed_secrets::{keys, unsealed};

/// Opens every SealedSecret that came in. Nothing is printed unless all of them open.
pub(super) fn recover(call: &Call) -> Result<(), CommandError> {
    let form = call.form()?;
    let keys = keys::read(call.line.all("recovery-private-key"), call.output)?;
    let input = call.input()?;
    let mut text = String::new();
    for manifest in call.objects(&input.name, &input.content)? {
        // In an emergency a template that names what is not there is no reason to keep all the rest.
        text += &form.print(&unsealed::open(&manifest, &keys, MissingKey::Zero)?);
    }
    call.deliver(&text)
}

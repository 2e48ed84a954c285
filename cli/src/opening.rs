//! From a sealed file's text to an open one: read it, find an identity, open and verify it, pass on its warnings.

use lacre_crypto::recipient::RecipientId;
use lacre_crypto::{Format, OpenFile, OpenOptions, SealedFile, Verdict};

use crate::commands::Context;
use crate::error::CommandError;
use crate::files::Input;
use crate::identities::Keyring;

/// What to do about a document whose authentication is missing or wrong.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leniency {
    /// Skip the comparison of the sops MAC.
    pub(crate) ignore_mac: bool,
    /// Warn about a seal that was removed, where opening would refuse.
    pub(crate) accept_removed_seal: bool,
}

/// Opens the sealed document in `input`.
pub(crate) fn open(
    input: &Input,
    format: Format,
    leniency: Leniency,
    context: &Context,
) -> Result<OpenFile, CommandError> {
    let name = input.name.display().to_string();
    let sealed = SealedFile::read(input.content.expose_secret(), format)
        .map_err(|error| CommandError::opening(&name, error))?;
    let order = context.global.order()?;
    let keyring = Keyring::gather(&recipients(&sealed), &context.global);
    let key = sealed
        .unwrap_key_in_order(&keyring.as_refs(), &order)
        .map_err(|error| keyring.explain(&name, &error))?;
    let options =
        OpenOptions { ignore_mac: leniency.ignore_mac, accept_removed_seal: leniency.accept_removed_seal };
    let open = sealed.open(key, &options).map_err(|error| CommandError::opening(&name, error))?;
    open.warnings().iter().for_each(|warning| context.output.warn(&format!("{name}: {warning}")));
    Ok(open)
}

/// As [`open`], for a command that will seal the document again: what no seal vouched for until now is said.
pub(crate) fn open_to_write(
    input: &Input,
    format: Format,
    leniency: Leniency,
    context: &Context,
) -> Result<OpenFile, CommandError> {
    let open = open(input, format, leniency, context)?;
    if open.verdict() == Verdict::NeverSealed {
        let name = input.name.display();
        context.output.note(&format!(
            "{name}: had no seal; its keys, comments and recipients are taken over unverified"
        ));
    }
    Ok(open)
}

/// Everyone the file is sealed for.
fn recipients(sealed: &SealedFile) -> Vec<RecipientId> {
    sealed.metadata().groups.iter().flatten().map(|wrapped| wrapped.recipient.clone()).collect()
}

/// For whom an open file is sealed, group by group.
pub(crate) fn groups(open: &OpenFile) -> Vec<Vec<RecipientId>> {
    let ids = |group: &Vec<lacre_crypto::recipient::WrappedKey>| {
        group.iter().map(|key| key.recipient.clone()).collect()
    };
    open.metadata().groups.iter().map(ids).collect()
}

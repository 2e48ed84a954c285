//! From a sealed file's text to an open one: read it, find an identity, open and verify it, pass on its warnings.
//!
//! An [`Opener`] serves all files of one call: identities are looked for once, and no key service or person is asked
//! twice for the same key.

mod remembering;
pub(crate) mod strangers;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lacre_crypto::recipient::{Identity, RecipientId, WrappedKey};
use lacre_crypto::{Format, OpenFile, OpenOptions, SealedFile, Verdict};

use crate::args::MacArgs;
use crate::commands::Context;
use crate::error::{CommandError, Kind};
use crate::files::Input;
use crate::identities::Keyring;
use crate::{compat, config};
use remembering::{Memory, Remembering};

/// What to do about a document whose authentication is missing or wrong.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Leniency {
    /// Skip the comparison of the sops MAC.
    pub(crate) ignore_mac: bool,
    /// Warn about a seal that was removed, where opening would refuse.
    pub(crate) accept_removed_seal: bool,
    /// Open a file without a seal although its rule requires one.
    pub(crate) accept_missing_seal: bool,
}

impl From<MacArgs> for Leniency {
    fn from(typed: MacArgs) -> Self {
        Self { ignore_mac: typed.ignore_mac, ..Self::default() }
    }
}

/// Opens the sealed document in `input`.
pub(crate) fn open(
    input: &Input,
    format: Format,
    leniency: Leniency,
    context: &Context,
) -> Result<OpenFile, CommandError> {
    Opener::new(context).open(input, format, leniency)
}

/// As [`open`], for a command that will seal the document again.
pub(crate) fn open_to_write(
    input: &Input,
    format: Format,
    leniency: Leniency,
    context: &Context,
) -> Result<OpenFile, CommandError> {
    Opener::new(context).open_to_write(input, format, leniency)
}

/// Opens files, with what one look for identities found.
pub(crate) struct Opener<'a> {
    context: &'a Context,
    gathered: Mutex<Vec<Arc<Gathered>>>,
}

/// The identities for a set of recipients, and what they said so far.
struct Gathered {
    wanted: HashSet<RecipientId>,
    keyring: Keyring,
    memory: Memory,
}

/// What came of trying each entry of a file by itself.
pub(crate) struct Trials {
    /// In the order of the entries.
    pub(crate) entries: Vec<Trial>,
    /// Places where identities were looked for, and what was found there.
    pub(crate) places: Vec<(String, String)>,
}

/// What the identities here say to one entry.
#[derive(Default)]
pub(crate) struct Trial {
    /// The public half of the one that opens it.
    pub(crate) opened_by: Option<String>,
    /// What those said that it is for and that failed.
    pub(crate) said: Vec<String>,
}

impl<'a> Opener<'a> {
    /// One that has not looked for identities yet.
    pub(crate) fn new(context: &'a Context) -> Self {
        Self { context, gathered: Mutex::default() }
    }

    /// One that has looked, once, for all identities that may open what is sealed for `wanted`. Nobody wanted means that
    /// it is not known yet who is: looking for them twice would ask a person twice.
    pub(crate) fn expecting(context: &'a Context, wanted: &[RecipientId]) -> Self {
        let opener = Self::new(context);
        if !wanted.is_empty() {
            opener.identities(wanted);
        }
        opener
    }

    /// Opens the sealed document in `input`.
    pub(crate) fn open(
        &self,
        input: &Input,
        format: Format,
        leniency: Leniency,
    ) -> Result<OpenFile, CommandError> {
        let name = input.name.display().to_string();
        let sealed = SealedFile::of_text(input.content.clone(), format)
            .map_err(|error| CommandError::opening(&name, error))?;
        let gathered = self.identities(&sealed.metadata().recipients());
        let identities = gathered.memory.around(&gathered.keyring.as_refs());
        let identities: Vec<&dyn Identity> =
            identities.iter().map(|identity: &Remembering<'_>| identity as &dyn Identity).collect();
        let order = self.context.global.order()?;
        let key = sealed
            .unwrap_key_in_order(&identities, &order)
            .map_err(|error| gathered.keyring.explain(&name, &error))?;
        let options = OpenOptions {
            ignore_mac: leniency.ignore_mac,
            accept_removed_seal: leniency.accept_removed_seal || compat::as_sops(),
        };
        let open = sealed.open(key, &options).map_err(|error| CommandError::opening(&name, error))?;
        open.warnings().iter().for_each(|warning| self.context.output.warn(&format!("{name}: {warning}")));
        if open.verdict() != Verdict::Valid
            && !leniency.accept_missing_seal
            && config::requires_seal(&input.name, self.context)
        {
            return Err(CommandError::on(
                Kind::Integrity,
                name,
                "has no seal, and its creation rule requires one",
            )
            .hint("look at what changed, then take the file over as it is with `lacre reseal`"));
        }
        Ok(open)
    }

    /// As [`Opener::open`], for a command that will seal the document again: what no seal vouched for until now is
    /// said.
    pub(crate) fn open_to_write(
        &self,
        input: &Input,
        format: Format,
        leniency: Leniency,
    ) -> Result<OpenFile, CommandError> {
        let open = self.open(input, format, leniency)?;
        if open.verdict() == Verdict::NeverSealed {
            let name = input.name.display();
            self.context.output.note(&format!(
                "{name}: had no seal; its keys, comments and recipients are taken over unverified"
            ));
        }
        Ok(open)
    }

    /// What the identities here say to each of `entries`, and where they were looked for.
    pub(crate) fn try_each(&self, entries: &[WrappedKey]) -> Trials {
        let wanted: Vec<RecipientId> = entries.iter().map(|key| key.recipient.clone()).collect();
        let gathered = self.identities(&wanted);
        let identities = gathered.memory.around(&gathered.keyring.as_refs());
        let answer = |key: &WrappedKey| {
            let mut trial = Trial::default();
            for identity in &identities {
                match identity.unwrap(key) {
                    None => {}
                    Some(Ok(_)) => {
                        trial.opened_by = Some(identity.public());
                        break;
                    }
                    Some(Err(error)) => trial.said.push(format!("{}: {}", identity.public(), error.reason)),
                }
            }
            trial
        };
        let places = gathered.keyring.places();
        Trials {
            entries: entries.iter().map(answer).collect(),
            places: places.map(|(name, outcome)| (name.to_owned(), outcome.to_owned())).collect(),
        }
    }

    /// The identities that may open what is sealed for `wanted`: those that are known, unless somebody is wanted whom
    /// nobody looked for yet.
    fn identities(&self, wanted: &[RecipientId]) -> Arc<Gathered> {
        let mut gathered = lock(&self.gathered);
        let covers = |known: &&Arc<Gathered>| wanted.iter().all(|id| known.wanted.contains(id));
        if let Some(known) = gathered.iter().find(covers) {
            return Arc::clone(known);
        }
        let wanted_once: HashSet<RecipientId> = wanted.iter().cloned().collect();
        let keyring = Keyring::gather(wanted, &self.context.global);
        let new = Arc::new(Gathered { wanted: wanted_once, keyring, memory: Memory::default() });
        gathered.push(Arc::clone(&new));
        new
    }
}

/// For whom an open file is sealed, group by group.
pub(crate) fn groups(open: &OpenFile) -> Vec<Vec<RecipientId>> {
    ids(&open.metadata().groups)
}

/// Whom wrapped keys are for, group by group.
pub(crate) fn ids(groups: &[Vec<WrappedKey>]) -> Vec<Vec<RecipientId>> {
    let ids = |group: &Vec<WrappedKey>| group.iter().map(|key| key.recipient.clone()).collect();
    groups.iter().map(ids).collect()
}

/// A lock whose holder panicked still guards plain data.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

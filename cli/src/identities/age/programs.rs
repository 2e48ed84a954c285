//! Programs that print identities: `SOPS_AGE_SSH_PRIVATE_KEY_CMD` and `SOPS_AGE_KEY_CMD`.
//!
//! A program runs once in a run for each recipient that nothing found before it answers to: it is told in
//! `SOPS_AGE_RECIPIENT` which one is wanted, and may ask a person. The first prints an SSH key, so it is asked for SSH
//! recipients only, and the second for all others.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use lacre_crypto::SecretBytes;
use lacre_crypto::recipient::age::Unlocking;
use lacre_crypto::recipient::{KEY_FILE_BYTES_MAX, RecipientId};

use super::{Found, Place, parse, parse_ssh, text_variable, unlocking};
use crate::files;
use crate::identities::Keyring;

/// Adds what the programs print for those of `wanted` that `keyring` lacks.
pub(super) fn gather(wanted: &[RecipientId], keyring: &mut Keyring) {
    gather_from("SOPS_AGE_SSH_PRIVATE_KEY_CMD", wanted, keyring, |line| line.starts_with("ssh-"), parse_ssh);
    gather_from("SOPS_AGE_KEY_CMD", wanted, keyring, |line| !line.starts_with("ssh-"), parse);
}

fn gather_from(
    variable: &'static str,
    wanted: &[RecipientId],
    keyring: &mut Keyring,
    is_for: fn(&str) -> bool,
    parse: fn(SecretBytes, &str, &Unlocking) -> Found,
) {
    let Some(words) = text_variable(variable) else { return keyring.note(variable, "not set") };
    let Some(words) = shlex::split(&words).filter(|words| !words.is_empty()) else {
        return keyring.note(variable, "has an open quote");
    };
    for id in wanted {
        let RecipientId::Age(recipient) = id else { continue };
        if is_for(recipient) && !answers(keyring, id) {
            let read = |bytes| parse(bytes, &format!("printed by {}", words[0]), &unlocking());
            once(variable, recipient, || run(&words, recipient).and_then(read)).add_to(keyring);
        }
    }
}

/// What `ask` gave when this was first called for `variable` and `recipient`.
fn once(variable: &'static str, recipient: &str, ask: impl FnOnce() -> Found) -> Arc<Place> {
    static ASKED: Mutex<BTreeMap<(&str, String), Arc<Place>>> = Mutex::new(BTreeMap::new());
    // Held while the program runs, so that no second one asks at the same time.
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let place = || Arc::new(Place::new(format!("{variable} for {recipient}"), ask()));
    asked.entry((variable, recipient.to_owned())).or_insert_with(place).clone()
}

/// Whether an identity of `keyring` shows that it is the one for `id`, whose SSH key may have a comment behind it.
fn answers(keyring: &Keyring, id: &RecipientId) -> bool {
    let wanted = id.to_string();
    let is_same = |public: String| {
        wanted.strip_prefix(&public).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    keyring.identities.iter().any(|identity| is_same(identity.public()))
}

fn run(words: &[String], recipient: &str) -> Result<SecretBytes, String> {
    let spawned = Command::new(&words[0])
        .args(&words[1..])
        .env("SOPS_AGE_RECIPIENT", recipient)
        .stdout(Stdio::piped())
        .spawn();
    let mut child = spawned.map_err(|error| format!("{}: {}", words[0], files::plain_words(&error)))?;
    let bytes = child.stdout.take().map(|stdout| files::read_bounded(stdout, KEY_FILE_BYTES_MAX as u64));
    let status = child.wait().map_err(|error| files::plain_words(&error))?;
    if !status.success() {
        return Err(format!("{} ended with {status}", words[0]));
    }
    Ok(bytes.transpose().map_err(|error| files::plain_words(&error))?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_says_so_without_its_output() {
        let failure = run(&["sh".into(), "-c".into(), "echo CANARY; exit 3".into()], "age1x").unwrap_err();
        assert!(failure.contains("exit status: 3") && !failure.contains("CANARY"), "{failure}");
    }

    #[test]
    fn a_program_is_asked_once_for_each_recipient() {
        let mut count = 0;
        for recipient in ["age1a", "age1a", "age1b", "age1a"] {
            let place = once("TEST", recipient, || {
                count += 1;
                Err("no".to_owned())
            });
            assert_eq!(place.name, format!("TEST for {recipient}"));
        }
        assert_eq!(count, 2);
    }
}

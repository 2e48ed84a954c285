//! What identities said, so that one unwrap serves all files that share a wrapped key.
//!
//! An answer is kept under the identity, the recipient with all its parameters (address, role, encryption context) and
//! the wrapped key itself: a file that names another address or context is another question. A service or a person
//! that said no for one recipient, or did not answer, is not asked again for it during this call.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use lacre_crypto::SecretBytes;
use lacre_crypto::recipient::{Effort, Identity, RecipientId, UnwrapError, UnwrapFailure, WrappedKey};

use super::lock;

type Answer = Option<Result<SecretBytes, UnwrapError>>;

/// An identity by its place in the keyring, and what it was asked.
type Question = (usize, RecipientId, String);

/// The answers of one keyring's identities.
#[derive(Default)]
pub(super) struct Memory {
    answers: Mutex<HashMap<Question, Arc<OnceLock<Answer>>>>,
    refusals: Mutex<HashMap<(usize, RecipientId), UnwrapError>>,
    /// Held while a person is asked, so that two questions never stand on one terminal.
    asking: Mutex<()>,
}

/// An identity that is asked each question once.
pub(super) struct Remembering<'a> {
    identity: &'a dyn Identity,
    place: usize,
    memory: &'a Memory,
}

impl Memory {
    /// The identities of the keyring that this memory is for, in its order.
    pub(super) fn around<'a>(&'a self, identities: &[&'a dyn Identity]) -> Vec<Remembering<'a>> {
        let remembering = |(place, identity): (usize, &&'a dyn Identity)| Remembering {
            identity: *identity,
            place,
            memory: self,
        };
        identities.iter().enumerate().map(remembering).collect()
    }
}

impl Remembering<'_> {
    fn ask(&self, wrapped: &WrappedKey) -> Answer {
        let _turn = (self.identity.effort() == Effort::Interactive).then(|| lock(&self.memory.asking));
        let who = (self.place, wrapped.recipient.clone());
        if let Some(refusal) = lock(&self.memory.refusals).get(&who) {
            return Some(Err(refusal.clone()));
        }
        let answer = self.identity.unwrap(wrapped);
        if let Some(Err(error)) = &answer
            && self.identity.effort() != Effort::Silent
            && matches!(error.kind, UnwrapFailure::Denied | UnwrapFailure::Unreachable)
        {
            lock(&self.memory.refusals).insert(who, error.clone());
        }
        answer
    }
}

impl Identity for Remembering<'_> {
    fn public(&self) -> String {
        self.identity.public()
    }

    fn effort(&self) -> Effort {
        self.identity.effort()
    }

    fn unwrap(&self, wrapped: &WrappedKey) -> Answer {
        let question = (self.place, wrapped.recipient.clone(), wrapped.enc.clone());
        let slot = Arc::clone(lock(&self.memory.answers).entry(question).or_default());
        slot.get_or_init(|| self.ask(wrapped)).clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Counting {
        calls: AtomicUsize,
        effort: Effort,
    }

    impl Identity for Counting {
        fn public(&self) -> String {
            "counting".to_owned()
        }

        fn effort(&self) -> Effort {
            self.effort
        }

        fn unwrap(&self, wrapped: &WrappedKey) -> Answer {
            self.calls.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(std::time::Duration::from_millis(5));
            let denied = || UnwrapError::new(UnwrapFailure::Denied, "no");
            Some(if wrapped.enc.starts_with('o') { Ok(SecretBytes::new(vec![7; 32])) } else { Err(denied()) })
        }
    }

    fn wrapped(name: &str, enc: &str) -> WrappedKey {
        WrappedKey { recipient: RecipientId::Age(name.to_owned()), enc: enc.to_owned(), created_at: None }
    }

    fn calls(effort: Effort, questions: &[(&str, &str)]) -> usize {
        let identity = Counting { calls: AtomicUsize::new(0), effort };
        let memory = Memory::default();
        std::thread::scope(|scope| {
            for (name, enc) in questions {
                let (memory, identity) = (&memory, &identity);
                scope.spawn(move || {
                    let answer = memory.around(&[identity])[0].unwrap(&wrapped(name, enc)).unwrap();
                    assert_eq!(answer.is_ok(), enc.starts_with('o'));
                });
            }
        });
        identity.calls.load(Ordering::SeqCst)
    }

    #[test]
    fn one_unwrap_serves_all_who_ask_at_the_same_time() {
        assert_eq!(calls(Effort::Remote, &[("a", "open"); 8]), 1);
        assert_eq!(calls(Effort::Remote, &[("a", "open"), ("b", "open"), ("a", "other")]), 3);
    }

    #[test]
    fn who_refuses_is_not_asked_again_for_the_same_recipient() {
        assert_eq!(calls(Effort::Interactive, &[("a", "1"), ("a", "2"), ("a", "3")]), 1);
        assert_eq!(calls(Effort::Interactive, &[("a", "1"), ("b", "2")]), 2);
        assert_eq!(calls(Effort::Silent, &[("a", "1"), ("a", "2")]), 2);
    }
}

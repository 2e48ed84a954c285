//! Asking a person: this crate knows when, its caller knows how.

#[cfg(feature = "age-plugin")]
use std::sync::Arc;

use crate::secret::SecretText;

/// A person who can be told and asked. Every answer may be missing, for instance because there is no terminal.
pub trait Prompt: Send + Sync {
    /// Shows `text`, which may ask for something other than an answer: a touch, a key to be plugged in.
    fn tell(&self, text: &str);

    /// Asks whether to go on. `yes` and `no` name the answers; without `no` there is one, to be confirmed.
    fn confirm(&self, text: &str, yes: &str, no: Option<&str>) -> Option<bool>;

    /// Asks for a line that may be seen.
    fn line(&self, text: &str) -> Option<String>;

    /// Asks for a passphrase or PIN, which is not shown while it is typed.
    fn passphrase(&self, text: &str) -> Option<SecretText>;
}

/// For where nobody is there to answer.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Prompt for Nobody {
    fn tell(&self, _: &str) {}

    fn confirm(&self, _: &str, _: &str, _: Option<&str>) -> Option<bool> {
        None
    }

    fn line(&self, _: &str) -> Option<String> {
        None
    }

    fn passphrase(&self, _: &str) -> Option<SecretText> {
        None
    }
}

/// The same for plugins, as the `age` crate wants it.
#[cfg(feature = "age-plugin")]
#[derive(Clone)]
pub(super) struct Callbacks(pub(super) Arc<dyn Prompt>);

#[cfg(feature = "age-plugin")]
impl ::age::Callbacks for Callbacks {
    fn display_message(&self, message: &str) {
        self.0.tell(message);
    }

    fn confirm(&self, message: &str, yes: &str, no: Option<&str>) -> Option<bool> {
        self.0.confirm(message, yes, no)
    }

    fn request_public_string(&self, description: &str) -> Option<String> {
        self.0.line(description)
    }

    fn request_passphrase(&self, description: &str) -> Option<::age::secrecy::SecretString> {
        self.0.passphrase(description).map(|text| to_age(&text))
    }
}

/// A passphrase as the `age` crate takes it, which wipes its copy, too.
pub(super) fn to_age(passphrase: &SecretText) -> ::age::secrecy::SecretString {
    passphrase.expose_secret().to_owned().into()
}

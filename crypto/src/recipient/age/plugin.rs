//! Plugins: recipients `age1NAME1…` and identities `AGE-PLUGIN-NAME-1…`, for which the program `age-plugin-NAME` speaks.
//!
//! Standard: the plugin protocol of age (C2SP `age-plugin.md`), by the `age` crate, which finds the program on the
//! search path of the process. The plugin is given the file key of one wrapped key and makes or opens its stanzas: what it does
//! for that is its own affair. It never sees the data key.
//!
//! A recipient without payload (`age1batchpass1…`, six characters of checksum and no more) stands for what the plugin
//! does without any key of its own, as `-j NAME` does on age's command line.

use std::str::FromStr;
use std::sync::Arc;

use ::age::plugin::{Identity as PluginKey, IdentityPluginV1, Recipient as PluginName, RecipientPluginV1};
use ::age::{DecryptError, EncryptError};

use super::file::{self, Passphrase};
use super::prompt::{Callbacks, Nobody, Prompt};
use super::{AgeRecipient, PublicKey};
use crate::recipient::{Effort, Identity, RecipientId, UnwrapError, UnwrapFailure, WrappedKey};
use crate::secret::SecretBytes;

/// Most characters of what a plugin says that are passed on.
const MESSAGE_CHARACTERS_MAX: usize = 300;

/// Whom a plugin wraps for.
#[derive(Clone)]
pub(super) struct PluginRecipient {
    recipient: PluginName,
    has_payload: bool,
    prompt: Arc<dyn Prompt>,
}

impl PluginRecipient {
    /// Reads `age1NAME1…`. `age1pq1…` is a native kind: what is not read as such is damaged.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let recipient = PluginName::from_str(text).ok().filter(|recipient| recipient.plugin() != "pq")?;
        let (_, payload, _) = bech32::decode(text).ok()?;
        Some(Self { recipient, has_payload: !payload.is_empty(), prompt: Arc::new(Nobody) })
    }

    pub(super) fn name(&self) -> &str {
        self.recipient.plugin()
    }

    pub(super) fn set_prompt(&mut self, prompt: Arc<dyn Prompt>) {
        self.prompt = prompt;
    }

    /// Wraps `key`.
    pub(super) fn seal(&self, key: &SecretBytes) -> Result<String, String> {
        let (recipients, identities) = match self.has_payload {
            true => (vec![self.recipient.clone()], vec![]),
            false => (vec![], vec![PluginKey::default_for_plugin(self.name())]),
        };
        let callbacks = Callbacks(self.prompt.clone());
        let plugin = RecipientPluginV1::new(self.name(), &recipients, &identities, callbacks)
            .map_err(|error| explain_wrap(&error).unwrap_or_else(|| "the age plugin failed".to_owned()))?;
        file::seal(&plugin, key)
    }
}

/// What a plugin opens with.
pub(super) struct PluginIdentity {
    key: PluginKey,
    prompt: Arc<dyn Prompt>,
}

impl PluginIdentity {
    /// Reads `AGE-PLUGIN-NAME-1…`.
    pub(super) fn parse(text: &str, prompt: &Arc<dyn Prompt>) -> Option<Self> {
        Some(Self { key: PluginKey::from_str(text).ok()?, prompt: prompt.clone() })
    }
}

impl Identity for PluginIdentity {
    /// The key itself may be secret.
    fn public(&self) -> String {
        format!("age plugin {}", self.key.plugin())
    }

    fn effort(&self) -> Effort {
        Effort::Interactive
    }

    /// A plugin's identity does not show which recipients it opens for, so it is tried on all that are not certain to
    /// be another kind's, and stays silent about those that it does not know.
    fn unwrap(&self, wrapped: &WrappedKey) -> Option<Result<SecretBytes, UnwrapError>> {
        let RecipientId::Age(name) = &wrapped.recipient else { return None };
        let recipient = AgeRecipient::parse(name).ok()?;
        if !matches!(recipient.key, PublicKey::Plugin(_) | PublicKey::Hybrid(_)) {
            return None;
        }
        let callbacks = Callbacks(self.prompt.clone());
        match IdentityPluginV1::new(self.key.plugin(), std::slice::from_ref(&self.key), callbacks) {
            Ok(plugin) => file::open(&wrapped.enc, &plugin, Passphrase::Allowed),
            Err(error) => Some(Err(explain_unwrap(&error))),
        }
    }
}

/// The plugin called `name` without a key of its own.
pub(super) fn default_identity(
    name: &str,
    prompt: &Arc<dyn Prompt>,
) -> Result<IdentityPluginV1<Callbacks>, String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_name) {
        return Err("no age plugin can have such a name".to_owned());
    }
    let key = PluginKey::default_for_plugin(name);
    IdentityPluginV1::new(name, &[key], Callbacks(prompt.clone()))
        .map_err(|error| explain_unwrap(&error).reason)
}

/// What went wrong with a plugin that was to wrap, if it was that.
pub(super) fn explain_wrap(error: &EncryptError) -> Option<String> {
    match error {
        EncryptError::MissingPlugin { binary_name } => Some(missing(binary_name)),
        EncryptError::Plugin(errors) => Some(said(errors.first())),
        EncryptError::Io(_) => Some("the age plugin ended before it answered".to_owned()),
        _ => None,
    }
}

/// What went wrong with a plugin that was to open.
pub(super) fn explain_unwrap(error: &DecryptError) -> UnwrapError {
    match error {
        DecryptError::MissingPlugin { binary_name } => {
            UnwrapError::new(UnwrapFailure::Unreachable, missing(binary_name))
        }
        DecryptError::Plugin(errors) => UnwrapError::new(UnwrapFailure::Denied, said(errors.first())),
        _ => UnwrapError::new(UnwrapFailure::Unreachable, "the age plugin ended before it answered"),
    }
}

fn missing(program: &str) -> String {
    format!("the program {program} is not on the search path")
}

/// The first thing that a plugin complained about, on one line.
fn said(error: Option<&impl std::fmt::Display>) -> String {
    let text = error.map(ToString::to_string).unwrap_or_default();
    // Its translations put marks of writing direction around names; what plugins send may hold anything.
    let is_mark = |character: char| ('\u{2066}'..='\u{2069}').contains(&character);
    let visible = text.chars().filter(|character| !is_mark(*character)).take(MESSAGE_CHARACTERS_MAX);
    let line: String =
        visible.map(|character| if character.is_control() { ' ' } else { character }).collect();
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipient::Recipient;

    fn nobody() -> Arc<dyn Prompt> {
        Arc::new(Nobody)
    }

    fn recipient(name: &str, payload: &[u8]) -> String {
        use bech32::ToBase32;
        bech32::encode(&format!("age1{name}"), payload.to_base32(), bech32::Variant::Bech32).unwrap()
    }

    #[test]
    fn recipients_are_read_with_and_without_payload() {
        for (payload, expected) in [(&[7; 33][..], true), (&[], false)] {
            let read = PluginRecipient::parse(&recipient("lacre-test", payload)).unwrap();
            assert_eq!((read.name(), read.has_payload), ("lacre-test", expected));
        }
        for text in [recipient("pq", &[7; 1216]), recipient("a/b", &[7]), recipient("", &[7; 32])] {
            assert!(PluginRecipient::parse(&text).is_none(), "{text}");
        }
        assert!(AgeRecipient::parse(&recipient("pq", &[7; 3])).is_err());
        assert!(!AgeRecipient::parse(&recipient("yubikey", &[7])).unwrap().is_post_quantum());
        assert!(AgeRecipient::parse(&recipient("tagpq", &[7])).unwrap().is_post_quantum());
    }

    #[test]
    fn a_plugin_that_is_not_there_is_named_by_its_program() {
        let text = recipient("lacre-test", &[7]);
        let read = AgeRecipient::parse(&text).unwrap();
        let error = read.wrap(&SecretBytes::new(vec![7; 32])).unwrap_err();
        assert!(error.reason.contains("age-plugin-lacre-test is not on the search path"), "{error}");
        let identity =
            PluginIdentity::parse(&PluginKey::default_for_plugin("lacre-test").to_string(), &nobody());
        let identity = identity.unwrap();
        let wrapped = |name: String| WrappedKey {
            recipient: RecipientId::Age(name),
            enc: String::new(),
            created_at: None,
        };
        let error = identity.unwrap(&wrapped(text)).unwrap().unwrap_err();
        assert_eq!(error.kind, UnwrapFailure::Unreachable);
        assert!(error.reason.contains("age-plugin-lacre-test"), "{error}");
        let native = crate::recipient::age::tests::PUBLIC.to_owned();
        assert!(identity.unwrap(&wrapped(native)).is_none(), "no program is run for a native kind");
        assert_eq!(identity.public(), "age plugin lacre-test");
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["", "../sh", "a b", "a/b"] {
            assert!(default_identity(name, &nobody()).err().unwrap().contains("such a name"), "{name}");
        }
    }

    #[test]
    fn a_plugins_words_are_bounded_and_on_one_line() {
        let words = format!("\u{2068}a\u{2069}\n\tb\u{1b}[2J {}", "x".repeat(2 * MESSAGE_CHARACTERS_MAX));
        let line = said(Some(&words));
        assert!(line.starts_with("a b [2J xxx"), "{line}");
        assert!(line.chars().count() <= MESSAGE_CHARACTERS_MAX);
        assert_eq!(said(None::<&String>), "");
    }
}

//! Key services of others: which are asked, and whether this process wraps and unwraps at all.
//!
//! As with sops, what this process holds comes first, then each listed service in turn, for each key, for wrapping
//! and for unwrapping alike.

use std::fmt;

use lacre_crypto::DecryptionOrder;
#[cfg(feature = "key-service")]
use lacre_crypto::recipient::key_service::{AnyWay, KeyService, ServedRecipient, ServiceAddress, Unusable};
use lacre_crypto::recipient::{Recipient, RecipientId};

use super::Keyring;
use crate::args::GlobalArgs;
use crate::error::{CommandError, Kind};

/// How long a key service may take. Longer than a machine needs: a person may be asked there.
#[cfg(feature = "key-service")]
const DEADLINE: std::time::Duration = std::time::Duration::from_secs(60);

/// A key service that was listed; all clones share its connection.
#[derive(Clone)]
pub(crate) struct Service {
    #[cfg(feature = "key-service")]
    client: Option<KeyService>,
}

impl Service {
    /// Reads an address. An empty one, as an empty variable gives it, is no service.
    #[cfg(feature = "key-service")]
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let address = match text.trim() {
            "" => return Ok(Self { client: None }),
            text => ServiceAddress::parse(text).map_err(|error| error.to_string())?,
        };
        Ok(Self { client: Some(KeyService::new(address, DEADLINE)) })
    }

    /// Reads an address, which this build has no use for.
    #[cfg(not(feature = "key-service"))]
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" => Ok(Self {}),
            _ => Err("this build cannot call key services".to_owned()),
        }
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Service")
    }
}

impl GlobalArgs {
    /// Whether this process wraps and unwraps itself.
    pub(super) fn is_local(&self) -> bool {
        self.enable_local_keyservice.unwrap_or(true)
    }

    /// In which order kinds of keys are tried.
    pub(crate) fn order(&self) -> Result<DecryptionOrder, CommandError> {
        DecryptionOrder::parse(self.decryption_order.as_deref().unwrap_or_default()).map_err(|error| {
            CommandError::new(Kind::DuplicateOrder, error)
                .hint("name each kind once in `--decryption-order` or SOPS_DECRYPTION_ORDER")
        })
    }

    #[cfg(feature = "key-service")]
    fn clients(&self) -> impl Iterator<Item = &KeyService> {
        self.keyservice.iter().filter_map(|service| service.client.as_ref())
    }

    /// `id` as something that wraps: by `local`, which makes it ready in this process, then by each service.
    #[cfg(feature = "key-service")]
    pub(crate) fn recipient(
        &self,
        id: &RecipientId,
        local: fn(&RecipientId) -> Result<Box<dyn Recipient>, CommandError>,
    ) -> Result<Box<dyn Recipient>, CommandError> {
        let mut ways: Vec<Box<dyn Recipient>> = Vec::new();
        if self.is_local() {
            ways.push(match local(id) {
                Err(error) if self.clients().next().is_some() => {
                    Box::new(Unusable { id: id.clone(), reason: error.cause.to_string() })
                }
                ready => ready?,
            });
        }
        ways.extend(self.clients().map(|service| {
            Box::new(ServedRecipient::new(id.clone(), service.clone())) as Box<dyn Recipient>
        }));
        let mut ways = ways.into_iter();
        let first = ways.next().ok_or_else(nobody)?;
        let others: Vec<_> = ways.collect();
        Ok(if others.is_empty() { first } else { Box::new(AnyWay::new(first, others)) })
    }

    /// `id` as something that wraps in this process.
    #[cfg(not(feature = "key-service"))]
    pub(crate) fn recipient(
        &self,
        id: &RecipientId,
        local: fn(&RecipientId) -> Result<Box<dyn Recipient>, CommandError>,
    ) -> Result<Box<dyn Recipient>, CommandError> {
        if self.is_local() { local(id) } else { Err(nobody()) }
    }
}

fn nobody() -> CommandError {
    CommandError::general(
        "nobody is left to wrap the data key: this process may not, and no key service is listed",
    )
    .hint("list one with `--keyservice tcp://HOST:PORT`, or leave out `--enable-local-keyservice=false`")
}

/// Adds the listed services.
pub(super) fn gather(global: &GlobalArgs, keyring: &mut Keyring) {
    if !global.is_local() {
        keyring.note("this process", "left out by --enable-local-keyservice or SOPS_ENABLE_LOCAL_KEYSERVICE");
    }
    #[cfg(feature = "key-service")]
    for service in global.clients() {
        keyring.add_service(lacre_crypto::recipient::Identity::public(service), Box::new(service.clone()));
        keyring.services.push(service.clone());
    }
}

/// What could help when a service was not reached.
pub(super) fn next_step(keyring: &Keyring) -> Option<String> {
    #[cfg(feature = "key-service")]
    if keyring.services.iter().any(KeyService::is_lost) {
        let step =
            "start the key service there (`lacre keyservice`), or correct `--keyservice` or SOPS_KEYSERVICE";
        return Some(step.to_owned());
    }
    let _ = keyring;
    None
}

#[cfg(all(test, feature = "key-service"))]
mod tests {
    use super::*;

    #[test]
    fn what_this_process_cannot_is_left_to_services_if_there_are_any() {
        let id = RecipientId::Age("age1x".to_owned());
        let cannot: fn(&RecipientId) -> Result<Box<dyn Recipient>, CommandError> =
            |_| Err(CommandError::general("cannot"));
        let mut global = GlobalArgs::default();
        assert_eq!(global.recipient(&id, cannot).err().unwrap().cause.to_string(), "cannot");
        global.keyservice.push(Service::parse("").unwrap());
        assert!(global.recipient(&id, cannot).is_err());
        global.keyservice.push(Service::parse("tcp://127.0.0.1:1").unwrap());
        assert!(global.recipient(&id, cannot).is_ok());
        global = GlobalArgs { enable_local_keyservice: Some(false), ..GlobalArgs::default() };
        assert!(global.recipient(&id, cannot).err().unwrap().cause.to_string().starts_with("nobody is left"));
    }
}

//! The key service: another process wraps and unwraps with what it holds, over gRPC, as stock sops does both sides.
//!
//! Contract: HTTP/2 in the clear, over TCP or a Unix socket; the messages in `message`. There is no authentication
//! and no encryption: whoever reaches the address can have every key unwrapped that its service can, and whoever is
//! on the way over TCP reads data keys. So a service listens on loopback or on a socket of its owner alone, and what
//! it answers is not believed: a key has 32 or 33 bytes, a wrapped key the form of its kind. A service that wraps
//! learns the data key, as each key service does.
//!
//! Limits: a message has at most 128 KiB; each call has a deadline; a service that was not reached once is not
//! called again. gRPC copies keys into buffers that are not wiped.

mod client;
mod message;
mod server;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use client::{KeyService, ServedRecipient};
pub use server::{Keeper, KeyServer, Limits, Listener};

use super::{KeyError, Recipient, RecipientId, WrapError};
use crate::secret::SecretBytes;

/// Where a key service listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceAddress {
    /// A host and a port.
    Tcp(String),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl ServiceAddress {
    /// Reads `tcp://HOST:PORT` or `unix:///PATH`.
    ///
    /// # Errors
    /// [`KeyError`] when it is neither.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let wrong = || {
            KeyError::new(
                "not the address of a key service: one looks like tcp://127.0.0.1:5000 or unix:///run/lacre.sock",
            )
        };
        match text.split_once("://") {
            Some(("tcp", address)) => {
                let (host, port) = address.rsplit_once(':').ok_or_else(wrong)?;
                let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
                let is_host = match bare {
                    Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
                    None => {
                        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
                        !host.is_empty() && host.bytes().all(plain)
                    }
                };
                let port = port.parse::<u16>().ok().filter(|port| *port > 0);
                if port.is_none() || !is_host {
                    return Err(wrong());
                }
                Ok(Self::Tcp(address.to_owned()))
            }
            Some(("unix", path)) if path.starts_with('/') && path.len() > 1 => Ok(Self::Unix(path.into())),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for ServiceAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(formatter, "tcp://{address}"),
            Self::Unix(path) => write!(formatter, "unix://{}", path.display()),
        }
    }
}

/// One recipient by several ways, in this order: the first that can wrap does.
pub struct AnyWay {
    first: Box<dyn Recipient>,
    others: Vec<Box<dyn Recipient>>,
    /// The way that wrapped last: who a recipient is may be known only after its call.
    used: AtomicUsize,
}

impl AnyWay {
    /// All ways name the same recipient.
    pub fn new(first: Box<dyn Recipient>, others: Vec<Box<dyn Recipient>>) -> Self {
        Self { first, others, used: AtomicUsize::new(0) }
    }

    fn ways(&self) -> impl Iterator<Item = &dyn Recipient> {
        std::iter::once(self.first.as_ref()).chain(self.others.iter().map(AsRef::as_ref))
    }
}

impl Recipient for AnyWay {
    fn id(&self) -> RecipientId {
        self.ways().nth(self.used.load(Ordering::Relaxed)).unwrap_or(self.first.as_ref()).id()
    }

    fn wrap(&self, key: &SecretBytes) -> Result<String, WrapError> {
        let mut said = Vec::new();
        for (index, way) in self.ways().enumerate() {
            match way.wrap(key) {
                Ok(enc) => {
                    self.used.store(index, Ordering::Relaxed);
                    return Ok(enc);
                }
                Err(error) => said.push(error.reason),
            }
        }
        Err(WrapError { recipient: self.first.id(), reason: said.join("; ") })
    }
}

/// A recipient that cannot be used here, for [`AnyWay`] to say why when the other ways fail too.
pub struct Unusable {
    /// Who it is.
    pub id: RecipientId,
    /// What is in the way.
    pub reason: String,
}

impl Recipient for Unusable {
    fn id(&self) -> RecipientId {
        self.id.clone()
    }

    fn wrap(&self, _: &SecretBytes) -> Result<String, WrapError> {
        Err(WrapError { recipient: self.id.clone(), reason: self.reason.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_everything_else_is_refused() {
        for text in ["tcp://127.0.0.1:5000", "tcp://keys.example.org:1", "tcp://[::1]:5000", "unix:///run/x"]
        {
            assert_eq!(ServiceAddress::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "127.0.0.1:5000",
            "tcp://",
            "tcp://host",
            "tcp://:5000",
            "tcp://host:0",
            "tcp://host:65536",
            "tcp://host:5000/path",
            "tcp://user@host:5000",
            "tcp://[host]:5000",
            "http://host:5000",
            "unix://relative",
            "unix:///",
        ] {
            assert!(ServiceAddress::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_first_way_that_can_does_and_all_failures_are_told() {
        struct Wraps(&'static str);
        impl Recipient for Wraps {
            fn id(&self) -> RecipientId {
                RecipientId::Age(self.0.to_owned())
            }
            fn wrap(&self, _: &SecretBytes) -> Result<String, WrapError> {
                Ok(self.0.to_owned())
            }
        }
        let unusable = |reason: &str| -> Box<dyn Recipient> {
            Box::new(Unusable { id: RecipientId::Age("x".to_owned()), reason: reason.to_owned() })
        };
        let key = SecretBytes::new(vec![7; 32]);
        let any = AnyWay::new(unusable("a"), vec![Box::new(Wraps("b")), Box::new(Wraps("c"))]);
        assert_eq!((any.wrap(&key).unwrap().as_str(), any.id()), ("b", RecipientId::Age("b".to_owned())));
        let none = AnyWay::new(unusable("a"), vec![unusable("b")]);
        assert_eq!(none.wrap(&key).unwrap_err().reason, "a; b");
    }
}

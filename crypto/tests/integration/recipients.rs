//! Each kind of recipient and identity, both directions, with the program or service it claims to speak to.

mod age;
#[cfg(feature = "age-ssh")]
mod age_ssh;
#[cfg(feature = "aws")]
mod aws_kms;
#[cfg(feature = "pgp")]
mod pgp;
#[cfg(feature = "vault")]
mod vault;

use lacre_crypto::recipient::{RecipientId, WrappedKey};
use lacre_crypto::secret::SecretBytes;

/// Tests end with an error where a component does.
type Tested = Result<(), Box<dyn std::error::Error>>;

/// A data key and a share, with bytes that a text mode would change.
fn keys() -> [SecretBytes; 2] {
    [32, 33].map(|length| SecretBytes::new((0..length).map(|at: u8| at.wrapping_mul(7) ^ 0x0d).collect()))
}

fn entry(recipient: RecipientId, enc: impl Into<String>) -> WrappedKey {
    WrappedKey { recipient, enc: enc.into(), created_at: None }
}

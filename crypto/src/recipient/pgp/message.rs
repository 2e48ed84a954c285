//! One wrapped key as an OpenPGP message: what is let through, and how it is opened.

use sequoia_openpgp as openpgp;

use openpgp::cert::Cert;
use openpgp::crypto::SessionKey;
use openpgp::packet::key::{SecretParts, UnspecifiedRole};
use openpgp::packet::{Key, PKESK, SKESK};
use openpgp::parse::stream::{DecryptionHelper, DecryptorBuilder, MessageStructure, VerificationHelper};
use openpgp::parse::{PacketParser, PacketParserResult, Parse};
use openpgp::types::SymmetricAlgorithm;
use openpgp::{KeyHandle, Packet};

mod by_go;

use super::POLICY;
use crate::recipient::{UnwrapError, UnwrapFailure, WRAPPED_KEY_BYTES_MAX, read_key};
use crate::secret::SecretBytes;

/// Most session keys that one message may carry. We write one; each may cost its reader an RSA operation.
pub const SESSION_KEYS_MAX: usize = 64;

/// How much plaintext is held back until the whole message proved authentic; the smallest that sequoia takes. A
/// longer message cannot hold a key and is refused without reading on, however far it would decompress.
pub(super) const HELD_BACK_BYTES: usize = 1024;

pub(super) const ARMOR_BEGIN: &str = "-----BEGIN PGP MESSAGE-----";

/// Tag of the "AEAD encrypted data" packet in gpg's own draft.
const TAG_GPG_AEAD: u8 = 20;

/// Opens the armored message `enc` with one of `keys`; `seen` tells afterwards whether it was for one of them.
pub(super) fn open(
    enc: &str,
    keys: &[Key<SecretParts, UnspecifiedRole>],
    seen: &mut Seen,
) -> Result<SecretBytes, UnwrapError> {
    let armored = check_armor(enc)?;
    let helper = Opener { keys, seen };
    let opened = match by_go::repaired(armored) {
        Some(packets) => by_go::open(&packets, helper),
        None => DecryptorBuilder::from_bytes(armored)
            .and_then(|builder| builder.buffer_size(HELD_BACK_BYTES).with_policy(&POLICY, None, helper))
            .map(|mut payload| read_key(&mut payload)),
    };
    match opened {
        Ok(key) => key,
        Err(_) => Err(broken(seen.refusal.unwrap_or(if seen.for_this_key {
            "the OpenPGP message was damaged or tampered with"
        } else {
            "the OpenPGP message is damaged, or for another key than the entry says"
        }))),
    }
}

/// What was met while a message was read, for what is said afterwards.
#[derive(Default)]
pub(super) struct Seen {
    session_keys: usize,
    compressed: bool,
    pub(super) for_this_key: bool,
    refusal: Option<&'static str>,
}

impl Seen {
    /// Lets through the packets of an encrypted, unsigned message that is compressed at most once. Everything else
    /// would be work or a question (a passphrase) that no wrapped key needs. Called before a packet's body is read.
    fn admit(&mut self, packet: &Packet) -> openpgp::Result<()> {
        let refusal = match packet {
            Packet::PKESK(_) if self.session_keys < SESSION_KEYS_MAX => {
                self.session_keys += 1;
                return Ok(());
            }
            Packet::CompressedData(_) if !self.compressed => {
                self.compressed = true;
                return Ok(());
            }
            Packet::Literal(_) | Packet::SEIP(_) => return Ok(()),
            #[allow(deprecated)]
            Packet::MDC(_) => return Ok(()),
            Packet::PKESK(_) => "the OpenPGP message has more session keys than are tried",
            Packet::CompressedData(_) => "the OpenPGP message is compressed more than once",
            Packet::SKESK(_) => "the OpenPGP message asks for a passphrase, not for a key",
            _ => "the OpenPGP message holds something else than an encrypted key",
        };
        self.refusal = Some(refusal);
        Err(openpgp::Error::MalformedMessage(refusal.to_owned()).into())
    }
}

/// What sequoia calls back while it opens a message.
struct Opener<'a> {
    keys: &'a [Key<SecretParts, UnspecifiedRole>],
    seen: &'a mut Seen,
}

impl VerificationHelper for Opener<'_> {
    fn inspect(&mut self, parser: &PacketParser<'_>) -> openpgp::Result<()> {
        self.seen.admit(&parser.packet)
    }

    fn get_certs(&mut self, _: &[KeyHandle]) -> openpgp::Result<Vec<Cert>> {
        Ok(Vec::new())
    }

    /// There is no signature to check: [`Seen::admit`] refuses them.
    fn check(&mut self, _: MessageStructure<'_>) -> openpgp::Result<()> {
        Ok(())
    }
}

impl DecryptionHelper for Opener<'_> {
    fn decrypt(
        &mut self,
        session_keys: &[PKESK],
        _: &[SKESK],
        algorithm: Option<SymmetricAlgorithm>,
        decrypt: &mut dyn FnMut(Option<SymmetricAlgorithm>, &SessionKey) -> bool,
    ) -> openpgp::Result<Option<Cert>> {
        for session_key in session_keys {
            let handle = session_key.recipient();
            for key in self.keys {
                // A message may hide for whom it is; then each key is tried.
                if handle.as_ref().is_some_and(|handle| !handle.aliases(key.key_handle())) {
                    continue;
                }
                self.seen.for_this_key |= handle.is_some();
                let mut pair = key.clone().into_keypair()?;
                if session_key
                    .decrypt(&mut pair, algorithm)
                    .is_some_and(|(algorithm, secret)| decrypt(algorithm, &secret))
                {
                    self.seen.for_this_key = true;
                    return Ok(None);
                }
            }
        }
        Err(openpgp::Error::MissingSessionKey("none of these keys opens it".to_owned()).into())
    }
}

/// The armored message without white space around it, when its size and its first line are right.
fn check_armor(enc: &str) -> Result<&str, UnwrapError> {
    if enc.len() > WRAPPED_KEY_BYTES_MAX {
        return Err(broken(format!("larger than {WRAPPED_KEY_BYTES_MAX} bytes")));
    }
    let armored = enc.trim();
    if !armored.starts_with(ARMOR_BEGIN) {
        return Err(broken("not an armored OpenPGP message"));
    }
    Ok(armored)
}

/// Reads the packets in front of the encrypted part, so that nothing but a message for keys reaches a program that
/// would also verify, import, or ask for a passphrase.
pub(super) fn check_envelope(enc: &str) -> Result<&str, UnwrapError> {
    let armored = check_armor(enc)?;
    let damaged = || broken("the OpenPGP message is damaged");
    let mut seen = Seen::default();
    let repaired = by_go::repaired(armored);
    let packets = repaired.as_deref().unwrap_or(armored.as_bytes());
    let mut next = PacketParser::from_bytes(packets).map_err(|_| damaged())?;
    while let PacketParserResult::Some(parser) = next {
        let is_container = match &parser.packet {
            // The container of gpg 2.3 and later, which sequoia does not read.
            Packet::Unknown(packet) => u8::from(packet.tag()) == TAG_GPG_AEAD,
            packet => matches!(packet, Packet::SEIP(_)),
        };
        if !is_container {
            let refused = seen.admit(&parser.packet).is_err() || seen.session_keys == 0;
            if refused {
                return Err(broken(seen.refusal.unwrap_or("the OpenPGP message is not encrypted for keys")));
            }
        }
        next = parser.next().map_err(|_| damaged())?.1;
        if is_container {
            let is_last = matches!(next, PacketParserResult::EOF(_));
            return if is_last && seen.session_keys > 0 { Ok(armored) } else { Err(damaged()) };
        }
    }
    Err(damaged())
}

fn broken(reason: impl Into<String>) -> UnwrapError {
    UnwrapError::new(UnwrapFailure::Broken, reason)
}

//! Messages as Go's OpenPGP wrote them until 2019, with lengths that no standard allows.
//!
//! Files that sops up to 3.4 sealed in process hold them. Each little write became a chunk, of the container and of the
//! literal data within, where RFC 4880 (4.2.2.4) asks for 512 bytes in the first; and numbers of a session key that
//! begin with zero bits count them, which 3.2 forbids. sequoia refuses both, gpg reads both. Nothing of the cryptography
//! differs, so that this file only deals with lengths and order; nobody writes such messages any more, so that it takes
//! exactly what Go wrote and no other construct.

use std::io::Read;

use sequoia_openpgp as openpgp;

use openpgp::armor::{Kind, Reader, ReaderMode};
use openpgp::packet::{Packet, Tag};
use openpgp::parse::stream::DecryptionHelper;
use openpgp::parse::{PacketParser, PacketParserResult, Parse};
use openpgp::types::PublicKeyAlgorithm;
use zeroize::Zeroizing;

use super::{HELD_BACK_BYTES, Opener};
use crate::recipient::{UnwrapError, WRAPPED_KEY_BYTES_MAX, read_key};
use crate::secret::SecretBytes;

/// Least bytes of a first chunk by the standard.
const FIRST_CHUNK_BYTES_MIN: usize = 512;

/// The bytes before the numbers in a session key packet of version 3: the version, whose it is, the algorithm.
const SESSION_KEY_HEAD_BYTES: usize = 10;

/// The packets of `armored` with right lengths, each in one piece, when one of them was wrong; nothing for every other
/// message, damaged ones among them, which are the usual reader's to judge.
pub(super) fn repaired(armored: &str) -> Option<Vec<u8>> {
    let mode = ReaderMode::Tolerant(Some(Kind::Message));
    let mut packets = Vec::new();
    let limit = WRAPPED_KEY_BYTES_MAX as u64;
    Reader::from_bytes(armored.as_bytes(), mode).take(limit).read_to_end(&mut packets).ok()?;
    let (mut repaired, mut rest, mut is_wrong) = (Vec::new(), &packets[..], false);
    while let Some((&tag, after)) = rest.split_first() {
        // The two high bits mark the only form of header that has chunks, and that Go wrote.
        if tag < 0xc0 {
            return None;
        }
        let (mut body, first_chunk, after) = body(after)?;
        is_wrong |= first_chunk.is_some_and(|bytes| bytes < FIRST_CHUNK_BYTES_MIN);
        if Tag::from(tag & 0x3f) == Tag::PKESK
            && let Some(counted) = without_leading_zeros(&body).filter(|counted| *counted != body)
        {
            (body, is_wrong) = (counted, true);
        }
        repaired.extend([tag, 0xff]);
        repaired.extend(u32::try_from(body.len()).ok()?.to_be_bytes());
        repaired.extend(body);
        rest = after;
    }
    is_wrong.then_some(repaired)
}

/// The body of a session key packet with its numbers (RFC 4880, 3.2) from their first bit on; nothing for kinds that
/// hold something else than numbers.
fn without_leading_zeros(body: &[u8]) -> Option<Vec<u8>> {
    let (head, mut rest) = body.split_at_checked(SESSION_KEY_HEAD_BYTES)?;
    #[allow(deprecated)]
    let is_of_numbers = matches!(
        PublicKeyAlgorithm::from(*head.last()?),
        PublicKeyAlgorithm::RSAEncryptSign
            | PublicKeyAlgorithm::RSAEncrypt
            | PublicKeyAlgorithm::ElGamalEncrypt
            | PublicKeyAlgorithm::ElGamalEncryptSign
    );
    if head.first() != Some(&3) || !is_of_numbers {
        return None;
    }
    let mut counted = head.to_vec();
    while let [high, low, after @ ..] = rest {
        let bytes = usize::from(u16::from_be_bytes([*high, *low])).div_ceil(8);
        let (number, after) = after.split_at_checked(bytes)?;
        let zeros = number.iter().take_while(|&&byte| byte == 0).count();
        let number = &number[zeros..];
        let bits = number.len() * 8 - number.first().map_or(0, |first| first.leading_zeros() as usize);
        counted.extend(u16::try_from(bits).ok()?.to_be_bytes());
        counted.extend(number);
        rest = after;
    }
    rest.is_empty().then_some(counted)
}

/// A packet's body from its length on, how long its first chunk is if there are several, and what follows the packet.
fn body(mut rest: &[u8]) -> Option<(Vec<u8>, Option<usize>, &[u8])> {
    let (mut body, mut first_chunk) = (Vec::new(), None);
    loop {
        let (length, is_last, after) = length(rest)?;
        body.extend(after.get(..length)?);
        rest = &after[length..];
        if is_last {
            return Some((body, first_chunk, rest));
        }
        first_chunk.get_or_insert(length);
    }
}

/// One length (RFC 4880, 4.2.2), and whether the body ends there.
fn length(rest: &[u8]) -> Option<(usize, bool, &[u8])> {
    Some(match *rest {
        [short @ 0..=191, ref after @ ..] => (usize::from(short), true, after),
        [high @ 192..=223, low, ref after @ ..] => {
            ((usize::from(high) - 192) * 256 + usize::from(low) + 192, true, after)
        }
        [power @ 224..=254, ref after @ ..] => (1 << (power & 0x1f), false, after),
        [255, a, b, c, d, ref after @ ..] => {
            (usize::try_from(u32::from_be_bytes([a, b, c, d])).ok()?, true, after)
        }
        _ => return None,
    })
}

/// Opens what [`repaired`] gave: session keys, then a container of one literal and its checksum, then nothing. The key is
/// given out after the checksum, which ends the container, was found to be right.
pub(super) fn open(
    packets: &[u8],
    mut opener: Opener<'_>,
) -> openpgp::Result<Result<SecretBytes, UnwrapError>> {
    let malformed = || openpgp::Error::MalformedMessage("not as Go's OpenPGP wrote it".to_owned());
    let (mut session_keys, mut container, mut key, mut is_authentic) = (Vec::new(), false, None, false);
    let mut next = PacketParser::from_bytes(packets)?;
    while let PacketParserResult::Some(mut parser) = next {
        match (&parser.packet, parser.recursion_depth()) {
            (Packet::PKESK(session_key), 0) if !container => {
                let session_key = session_key.clone();
                opener.seen.admit(&parser.packet)?;
                session_keys.push(session_key);
            }
            (Packet::SEIP(packet), 0) if !container && packet.version() == 1 => {
                container = true;
                opener.decrypt(&session_keys, &[], None, &mut |algorithm, session_key| {
                    parser.decrypt(algorithm, session_key).is_ok()
                })?;
            }
            (Packet::Literal(_), 1) if key.is_none() => key = Some(read_key(&mut parser)),
            (Packet::Unknown(packet), 1) if packet.tag() == Tag::Literal && key.is_none() => {
                key = Some(read_key(&mut literal_content(&mut parser)?.as_slice()));
            }
            #[allow(deprecated)]
            (Packet::MDC(checksum), 1) if key.is_some() && !is_authentic && checksum.valid() => {
                is_authentic = true;
            }
            _ => return Err(malformed().into()),
        }
        next = parser.recurse()?.1;
    }
    key.filter(|_| is_authentic).ok_or_else(|| malformed().into())
}

/// What follows the head of a literal: format, a name behind its length, and the time.
fn literal_content(parser: &mut PacketParser<'_>) -> openpgp::Result<Zeroizing<Vec<u8>>> {
    let mut body = Zeroizing::new(Vec::with_capacity(HELD_BACK_BYTES));
    parser.take(HELD_BACK_BYTES as u64).read_to_end(&mut body)?;
    let head = body.get(1).map_or(usize::MAX, |&name| 2 + usize::from(name) + 4);
    let content = body.get(head..).ok_or_else(|| openpgp::Error::MalformedPacket("no literal".to_owned()))?;
    Ok(Zeroizing::new(content.to_vec()))
}

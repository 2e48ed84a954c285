//! Messages as Go wrote them until 2019, and what looks like one.

use std::io::Read;

use super::*;

/// For `rsa-alice.asc`, in chunks of 1, 16, 2, 1, 4 … bytes, and with leading zeros in its number.
const BY_GO: &str = include_str!("../../../../../testdata/messages/openpgp-go-2019.asc");

fn alice() -> Cert {
    Cert::from_bytes(include_bytes!("../../../../../testdata/keys/rsa-alice.asc")).unwrap()
}

#[test]
fn a_message_as_go_wrote_it_is_opened() {
    let name = alice().fingerprint().to_hex();
    let key = identity(&alice()).unwrap(&entry(&name, BY_GO)).unwrap().unwrap();
    assert_eq!(key.expose_secret(), b"a data key of exactly 32 bytes !");
    assert!(check_envelope(BY_GO).is_ok());
    assert!(identity(&cert()).unwrap(&entry(&name, BY_GO)).is_none());
}

/// A message of two packets, each shorter than 192 bytes, with the container in chunks of one byte and `after` it.
fn in_short_chunks(enc: &str, after: &[u8]) -> String {
    let mut packets = Vec::new();
    let mode = ReaderMode::Tolerant(Some(Kind::Message));
    Reader::from_bytes(enc.as_bytes(), mode).read_to_end(&mut packets).unwrap();
    let (session_key, container) = packets.split_at(2 + usize::from(packets[1]));
    assert_eq!((container[0], usize::from(container[1])), (0xd2, container.len() - 2));
    let mut armored = Writer::new(Vec::new(), Kind::Message).unwrap();
    armored.write_all(session_key).unwrap();
    armored.write_all(&[0xd2]).unwrap();
    container[2..].iter().for_each(|&byte| armored.write_all(&[0xe0, byte]).unwrap());
    armored.write_all(&[0]).unwrap();
    armored.write_all(after).unwrap();
    String::from_utf8(armored.finalize().unwrap()).unwrap()
}

/// A literal with `content` in chunks of one byte.
fn short_literal(content: &[u8]) -> Vec<u8> {
    let mut packet = vec![0xcb];
    [b"b\x00\0\0\0\0", content].concat().iter().for_each(|&byte| packet.extend([0xe0, byte]));
    packet.push(0);
    packet
}

#[test]
fn of_short_chunks_only_the_order_that_was_written_is_opened() {
    let (cert, key) = (cert(), [7; 32]);
    let made = |packets: Vec<u8>, after: &[u8]| {
        let fill = |mut message: Message<'_>| {
            message.write_all(&packets)?;
            message.finalize()
        };
        in_short_chunks(&seal(&[&recipient(&cert)], fill), after)
    };
    let open = |enc: &str| identity(&cert).unwrap(&entry(&cert.fingerprint().to_hex(), enc)).unwrap();
    assert_eq!(open(&made(short_literal(&key), &[])).unwrap().expose_secret(), key);
    let literal = |content: &[u8]| short_literal(content);
    let whole = [&[0xcb, 38][..], b"b\x00\0\0\0\0", &key].concat();
    assert_eq!(open(&made(whole.clone(), &[])).unwrap().expose_secret(), key);
    for (packets, after) in [
        (Vec::new(), &[][..]),
        (literal(&key[..31]), &[]),
        (literal(&[7; 34]), &[]),
        ([literal(&key[..16]), literal(&key[..16])].concat(), &[]),
        ([vec![0xca, 3], b"PGP".to_vec(), literal(&key)].concat(), &[]),
        (literal(&key), &[0xca, 3, b'P', b'G', b'P']),
        (literal(&key), &whole),
        (literal(&key)[..10].to_vec(), &[]),
    ] {
        let error = open(&made(packets.clone(), after)).map(drop).unwrap_err();
        assert_eq!(error.kind, UnwrapFailure::Broken, "{packets:?} {after:?}");
    }
}

#[test]
fn damage_in_short_chunks_is_told_wherever_it_is() {
    let name = alice().fingerprint().to_hex();
    // Without the checksum of the armor, which is optional.
    let lines: Vec<&str> = BY_GO.lines().filter(|line| !line.starts_with('=')).collect();
    for at in 2..lines.len() - 1 {
        let mut lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        let other = if lines[at].as_bytes()[5] == b'A' { "B" } else { "A" };
        lines[at].replace_range(5..6, other);
        let outcome = identity(&alice()).unwrap(&entry(&name, &lines.join("\n"))).unwrap();
        assert_eq!(outcome.map(drop).unwrap_err().kind, UnwrapFailure::Broken, "line {at}");
    }
}

//! Recipients and identities of this kind, against messages made by hand.

mod by_go;

use sequoia_openpgp as openpgp;

use openpgp::Packet;
use openpgp::armor::{Kind, Reader, ReaderMode, Writer};
use openpgp::cert::CertBuilder;
use openpgp::crypto::{S2K, SessionKey};
use openpgp::packet::skesk::SKESK4;
use openpgp::packet::{Marker, Tag};
use openpgp::parse::{PacketParser, PacketParserResult, Parse};
use openpgp::serialize::stream::{ArbitraryWriter, Compressor, Signer};
use openpgp::serialize::{Marshal, SerializeInto};
use openpgp::types::{CompressionAlgorithm, CompressionLevel, HashAlgorithm};

use super::message::{ARMOR_BEGIN, HELD_BACK_BYTES, check_envelope};
use super::*;
use crate::recipient::{Identity, KEY_FILE_BYTES_MAX, UnwrapFailure, WRAPPED_KEY_BYTES_MAX, WrappedKey};

/// A key with the passphrase "pass", as gpg exports it.
const PROTECTED: &str = "-----BEGIN PGP PRIVATE KEY BLOCK-----

lIYEaw3b+BYJKwYBBAHaRw8BAQdAj16nuEr5YKchq51ABVupSd22pI3J6FtkDP22
12i16Fv+BwMCBWOFpK08tcj/qdv2SYdwdm58IZa/5NqE9Yvo+RtM4QW5gRRU8gr8
QM6m6mIX/Oi/4/pzxeyLkGMyxRhRrdV/ivPpEQyo1kfo3XRx0mLnqLQDYUBiiJAE
ExYIADgWIQSRjWsyIKsNKfNOqMR2UuRGHwg1IQUCaw3b+AIbAQULCQgHAgYVCgkI
CwIEFgIDAQIeAQIXgAAKCRB2UuRGHwg1Ib7aAQD9ZIug+7qlxvaLeDjqUwakP/+/
Bpi/1J4HnVmPVDryxwD6ApzBbm3I8Zac2JxBjgKpon1J4pLdZDP+gxEOaQ2FHAOc
iwRrDdv8EgorBgEEAZdVAQUBAQdAoy6T2DzjRcS8Hhh+wSqKwUlxLBMxGbyV3hFZ
KuOFj1EDAQgH/gcDApXKbg1kFozw/7u6sFsX5XG7HWPh5B/05AY6shlVXUC2lq50
aaDjZ4mKQbgmirwAPWrxW3kmMeQ5gBbUjej1zZizQeyv/UT8TyxHutB/KyiIeAQY
FggAIBYhBJGNazIgqw0p806oxHZS5EYfCDUhBQJrDdv8AhsMAAoJEHZS5EYfCDUh
qTQBAM4IHuanIi/jze4PRZLR4dIUKkAAeFYqvuj7cm5Pq+pSAP9ueB3VaUidbwW/
w3t/oOxByRBrryR+biMstUhj8tCJCQ==
=1Z0I
-----END PGP PRIVATE KEY BLOCK-----";

fn cert() -> Cert {
    CertBuilder::general_purpose(Some("a@b")).generate().unwrap().0
}

fn identity(cert: &Cert) -> PgpIdentity {
    let key = SecretBytes::new(cert.as_tsk().armored().to_vec().unwrap());
    read_secret_keys(&key).unwrap().remove(0)
}

fn recipient(cert: &Cert) -> PgpRecipient {
    PgpRecipient::find(&cert.fingerprint().to_hex(), &cert.armored().to_vec().unwrap()).unwrap()
}

fn entry(name: &str, enc: &str) -> WrappedKey {
    WrappedKey { recipient: RecipientId::Pgp(name.to_owned()), enc: enc.to_owned(), created_at: None }
}

fn refusal(cert: &Cert, enc: &str) -> String {
    let error = identity(cert).unwrap(&entry(&cert.fingerprint().to_hex(), enc)).unwrap().unwrap_err();
    assert_eq!(error.kind, UnwrapFailure::Broken);
    error.reason
}

/// An armored message made around the checks of [`PgpRecipient::wrap`]: `fill` writes what is encrypted.
fn seal(recipients: &[&PgpRecipient], fill: impl FnOnce(Message<'_>) -> openpgp::Result<()>) -> String {
    let mut armored = Vec::new();
    let message = Armorer::new(Message::new(&mut armored)).build().unwrap();
    let all = recipients.iter().map(|it| {
        let handle = KeyHandle::from(KeyID::from(it.key.fingerprint()));
        stream::Recipient::new(Features::empty().set_seipdv1(), handle, &it.key)
    });
    let message = Encryptor::for_recipients(message, all);
    fill(message.build().unwrap()).unwrap();
    String::from_utf8(armored).unwrap()
}

fn literal(message: Message<'_>, content: &[u8]) -> openpgp::Result<()> {
    let mut message = LiteralWriter::new(message).build()?;
    message.write_all(content)?;
    message.finalize()
}

#[test]
fn a_key_and_a_share_come_back_and_other_lengths_are_refused() {
    let cert = cert();
    let name = cert.fingerprint().to_hex();
    for length in [32, 33] {
        let key = SecretBytes::new(vec![7; length]);
        let enc = recipient(&cert).wrap(&key).unwrap();
        assert!(enc.starts_with(ARMOR_BEGIN) && enc.ends_with("-----END PGP MESSAGE-----"), "{enc}");
        let spaced = format!("\n{enc}\n\n");
        assert_eq!(identity(&cert).unwrap(&entry(&name, &spaced)).unwrap().unwrap(), key);
    }
    for length in [0, 16, 31, 34, HELD_BACK_BYTES * 2] {
        let key = SecretBytes::new(vec![7; length]);
        assert!(recipient(&cert).wrap(&key).is_err(), "{length}");
        let enc = seal(&[&recipient(&cert)], |message| literal(message, key.expose_secret()));
        assert!(refusal(&cert, &enc).contains("not as long"), "{length}");
    }
}

#[test]
fn the_container_is_the_one_that_gpg_2_2_opens() {
    let cert = cert();
    let enc = recipient(&cert).wrap(&SecretBytes::new(vec![7; 32])).unwrap();
    let mut versions = Vec::new();
    let mut next = PacketParser::from_bytes(&enc).unwrap();
    while let PacketParserResult::Some(parser) = next {
        versions.push((parser.packet.tag(), parser.packet.version()));
        next = parser.next().unwrap().1;
    }
    assert_eq!(versions, [(Tag::PKESK, Some(3)), (Tag::SEIP, Some(1))]);
}

#[test]
fn an_entry_for_somebody_else_is_nothing_and_a_mislabelled_one_is_broken() {
    let [mine, other] = [cert(), cert()];
    let enc = recipient(&other).wrap(&SecretBytes::new(vec![7; 32])).unwrap();
    assert!(identity(&mine).unwrap(&entry(&other.fingerprint().to_hex(), &enc)).is_none());
    assert!(identity(&mine).unwrap(&entry("", "junk")).is_none());
    let age = WrappedKey { recipient: RecipientId::Age(String::new()), ..entry("", &enc) };
    assert!(identity(&mine).unwrap(&age).is_none());
    assert!(refusal(&mine, &enc).contains("another key"));
    // Whatever the entry calls it, the message itself tells whose it is.
    assert!(identity(&other).unwrap(&entry("ops@example.org", &enc)).unwrap().is_ok());
}

#[test]
fn damage_is_told() {
    let cert = cert();
    let enc = recipient(&cert).wrap(&SecretBytes::new(vec![7; 32])).unwrap();
    let lines: Vec<&str> = enc.lines().collect();
    let flipped = |line: usize| {
        let mut all: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        let old = all[line].remove(30);
        all[line].insert(30, if old == 'A' { 'B' } else { 'A' });
        // Without its checksum, which would tell first.
        all.retain(|line| !(line.starts_with('=') && line.len() == 5));
        all.join("\n")
    };
    for (what, text) in [
        ("nothing", String::new()),
        ("not armored", "\u{85}".to_owned()),
        ("another armor", enc.replace("PGP MESSAGE", "PGP SIGNATURE")),
        ("session key", flipped(2)),
        ("payload", flipped(lines.len() - 4)),
        ("cut", lines[..lines.len() - 3].join("\n")),
    ] {
        assert!(!refusal(&cert, &text).is_empty(), "{what}");
    }
}

#[test]
fn size_is_limited_on_both_sides() {
    let cert = cert();
    let enc = recipient(&cert).wrap(&SecretBytes::new(vec![7; 32])).unwrap();
    let padded = |length: usize| format!("{enc}{}", "\n".repeat(length - enc.len()));
    let name = cert.fingerprint().to_hex();
    assert!(identity(&cert).unwrap(&entry(&name, &padded(WRAPPED_KEY_BYTES_MAX))).unwrap().is_ok());
    assert!(refusal(&cert, &padded(WRAPPED_KEY_BYTES_MAX + 1)).contains("larger than"));
}

#[test]
fn session_keys_are_limited_on_both_sides() {
    let [mine, other] = [cert(), cert()];
    let name = mine.fingerprint().to_hex();
    let [to_mine, to_other] = [recipient(&mine), recipient(&other)];
    for (count, fits) in [(SESSION_KEYS_MAX, true), (SESSION_KEYS_MAX + 1, false)] {
        let mut all = vec![&to_other; count - 1];
        all.push(&to_mine);
        let enc = seal(&all, |message| literal(message, &[7; 32]));
        assert_eq!(identity(&mine).unwrap(&entry(&name, &enc)).unwrap().is_ok(), fits, "{count}");
        assert_eq!(check_envelope(&enc).is_ok(), fits, "{count}");
    }
}

fn compress(message: Message<'_>) -> openpgp::Result<Message<'_>> {
    let compressor = Compressor::new(message).algo(CompressionAlgorithm::Zip);
    compressor.level(CompressionLevel::best()).build()
}

#[test]
fn compression_is_opened_once_and_never_far() {
    let cert = cert();
    let to = recipient(&cert);
    let once = seal(&[&to], |message| literal(compress(message)?, &[7; 32]));
    let name = cert.fingerprint().to_hex();
    assert_eq!(identity(&cert).unwrap(&entry(&name, &once)).unwrap().unwrap().len(), 32);
    let twice = seal(&[&to], |message| literal(compress(compress(message)?)?, &[7; 32]));
    assert!(refusal(&cert, &twice).contains("more than once"));
    let bomb = seal(&[&to], |message| literal(compress(message)?, &vec![0; 8 << 20]));
    assert!(bomb.len() < WRAPPED_KEY_BYTES_MAX, "{}", bomb.len());
    let started = std::time::Instant::now();
    assert!(refusal(&cert, &bomb).contains("not as long"));
    assert!(started.elapsed().as_millis() < 200, "{:?}", started.elapsed());
}

/// A message for a passphrase, made by hand because the usual way takes its passphrase through a costly hash.
fn asking() -> String {
    let (algorithm, key) = (SymmetricAlgorithm::AES256, SessionKey::new(32).unwrap());
    let cheap = S2K::Iterated { hash: HashAlgorithm::SHA256, salt: [7; 8], hash_bytes: 1024 };
    let packet = SKESK4::with_password(algorithm, algorithm, cheap, &key, &"pass".into()).unwrap();
    let mut armored = Vec::new();
    let mut message = Armorer::new(Message::new(&mut armored)).build().unwrap();
    Packet::SKESK(packet.into()).serialize(&mut message).unwrap();
    let message = Encryptor::with_session_key(message, algorithm, key).unwrap().build().unwrap();
    literal(message, &[7; 32]).unwrap();
    String::from_utf8(armored).unwrap()
}

#[test]
fn passphrases_signatures_and_fillers_are_refused_before_any_work() {
    let cert = cert();
    let to = recipient(&cert);
    let asking = asking();
    assert!(refusal(&cert, &asking).contains("passphrase"));
    assert!(check_envelope(&asking).unwrap_err().reason.contains("passphrase"));
    let signing = cert.primary_key().key().clone().parts_into_secret().unwrap().into_keypair().unwrap();
    let signed = seal(&[&to], |message| literal(Signer::new(message, signing)?.build()?, &[7; 32]));
    assert!(refusal(&cert, &signed).contains("something else"));
    let filled = seal(&[&to], |message| {
        let mut message = ArbitraryWriter::new(message, Tag::Padding)?;
        message.write_all(&[0; 100])?;
        message.finalize()
    });
    assert!(refusal(&cert, &filled).contains("something else"));
    let mut clear = Vec::new();
    Packet::Marker(Marker::default()).serialize(&mut clear).unwrap();
    let mut armored = openpgp::armor::Writer::new(Vec::new(), openpgp::armor::Kind::Message).unwrap();
    armored.write_all(&clear).unwrap();
    let armored = String::from_utf8(armored.finalize().unwrap()).unwrap();
    assert!(check_envelope(&armored).is_err());
}

#[test]
fn a_certificate_is_found_by_any_of_its_fingerprints() {
    let [cert, other] = [cert(), cert()];
    let mut ring = other.armored().to_vec().unwrap();
    ring.extend(cert.armored().to_vec().unwrap());
    let primary = cert.fingerprint().to_hex();
    for key in cert.keys() {
        let subkey = key.key().fingerprint().to_hex();
        let spaced = format!("0x{} {}", &subkey[..20], subkey[20..].to_ascii_lowercase());
        let found = PgpRecipient::find(&spaced, &ring).unwrap();
        assert_eq!(found.id(), RecipientId::Pgp(subkey.clone()));
        assert_eq!(found.key.fingerprint(), recipient(&cert).key.fingerprint());
        let pinned = PgpRecipient::find(&format!("{subkey}!"), &ring);
        assert_eq!(pinned.is_ok(), found.key.fingerprint().to_hex() == subkey);
    }
    for (text, says) in [
        (&primary[24..], "all of its 40"),
        ("a@b", "all of its 40"),
        ("", "all of its 40"),
        (&"0".repeat(40), "no OpenPGP certificate"),
    ] {
        let reason = PgpRecipient::find(text, &ring).unwrap_err().reason;
        assert!(reason.contains(says), "{text}: {reason}");
    }
}

#[test]
fn certificates_that_must_not_be_used_are_refused() {
    let find = |cert: &Cert| {
        PgpRecipient::find(&cert.fingerprint().to_hex(), &cert.to_vec().unwrap()).unwrap_err().reason
    };
    let (cert, revocation) = CertBuilder::general_purpose(Some("a@b")).generate().unwrap();
    assert!(find(&cert.insert_packets(revocation).unwrap().0).contains("revoked"));
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(1000);
    let expired = CertBuilder::general_purpose(Some("a@b"))
        .set_creation_time(old)
        .set_validity_period(std::time::Duration::from_secs(500));
    assert!(find(&expired.generate().unwrap().0).contains("xpired"));
    let signing = CertBuilder::new().add_userid("a@b").add_signing_subkey().generate().unwrap().0;
    assert!(find(&signing).contains("meant for encryption"));
}

#[test]
fn an_expired_key_still_opens() {
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(1000);
    let (cert, _) = CertBuilder::general_purpose(Some("a@b"))
        .set_creation_time(old)
        .set_validity_period(std::time::Duration::from_secs(500))
        .generate()
        .unwrap();
    let key = cert.keys().subkeys().find(|key| key.key().pk_algo().for_encryption()).unwrap();
    let key = key.key().clone().role_into_unspecified();
    let name = cert.fingerprint().to_hex();
    let enc = PgpRecipient { fingerprint: name.clone(), key }.wrap(&SecretBytes::new(vec![7; 32])).unwrap();
    assert!(identity(&cert).unwrap(&entry(&name, &enc)).unwrap().is_ok());
}

#[test]
fn key_files_are_read_whole_and_refused_without_quoting_them() {
    let [one, two] = [cert(), cert()];
    let mut ring = one.as_tsk().armored().to_vec().unwrap();
    ring.extend(two.as_tsk().armored().to_vec().unwrap());
    assert_eq!(read_secret_keys(&SecretBytes::new(ring)).unwrap().len(), 2);
    let mut ring = one.as_tsk().to_vec().unwrap();
    ring.extend(two.as_tsk().to_vec().unwrap());
    assert_eq!(read_secret_keys(&SecretBytes::new(ring)).unwrap().len(), 2);
    let armored = one.as_tsk().armored().to_vec().unwrap();
    for (what, file, says) in [
        ("empty", Vec::new(), "no key"),
        ("public", one.armored().to_vec().unwrap(), "public certificate"),
        ("protected", PROTECTED.into(), "passphrase"),
        ("junk", b"CANARY-hunter2".to_vec(), "damaged"),
        ("cut", armored[..armored.len() / 2].to_vec(), "damaged"),
        ("keybox", b"\0\0\0 \x01\x01\0\x02KBXf".to_vec(), "damaged"),
        ("large", vec![0; KEY_FILE_BYTES_MAX + 1], "larger than"),
    ] {
        let reason = read_secret_keys(&SecretBytes::new(file)).unwrap_err().reason;
        assert!(reason.contains(says) && !reason.contains("CANARY"), "{what}: {reason}");
    }
}

#[test]
fn formatting_never_shows_the_secret_keys() {
    let cert = cert();
    let shown = format!("{:?}", identity(&cert));
    assert!(shown.contains(&cert.fingerprint().to_hex()) && shown.contains("redacted"), "{shown}");
    assert!(shown.len() < 100, "{shown}");
}

#[test]
fn a_program_that_is_not_there_is_unreachable() {
    let gpg = GpgProgram { program: "/nonexistent/gpg".into(), home: None };
    let enc = recipient(&cert()).wrap(&SecretBytes::new(vec![7; 32])).unwrap();
    let error = gpg.unwrap(&entry("", &enc)).unwrap().unwrap_err();
    assert_eq!(error.kind, UnwrapFailure::Unreachable);
    assert!(PgpRecipient::from_gpg(&"0".repeat(40), &gpg).unwrap_err().reason.contains("cannot run"));
}

#[test]
fn what_a_ring_holds_beside_usable_keys_hides_none_of_them() {
    let [one, two] = [cert(), cert()];
    let protected = Cert::from_bytes(PROTECTED).unwrap();
    let mut ring = protected.as_tsk().to_vec().unwrap();
    ring.extend(one.as_tsk().to_vec().unwrap());
    ring.extend(two.to_vec().unwrap());
    let (usable, others) = usable_secret_keys(&SecretBytes::new(ring.clone())).unwrap();
    assert_eq!(usable[0].public(), format!("pgp {}", one.fingerprint().to_hex()));
    assert_eq!((usable.len(), others.len()), (1, 2));
    assert!(others[0].reason.contains("passphrase") && others[1].reason.contains("public certificate"));
    assert!(read_secret_keys(&SecretBytes::new(ring)).is_err());
    assert!(usable_secret_keys(&SecretBytes::from("CANARY")).is_err());
}

#[test]
fn a_certificate_that_is_not_there_is_told_from_one_that_must_not_be_used() {
    let (cert, revocation) = CertBuilder::general_purpose(Some("a@b")).generate().unwrap();
    let name = cert.fingerprint().to_hex();
    let ring = cert.insert_packets(revocation).unwrap().0.to_vec().unwrap();
    assert!(PgpRecipient::look_up(&"0".repeat(40), &ring).unwrap().is_none());
    assert!(PgpRecipient::look_up(&name, b"").unwrap().is_none());
    assert!(PgpRecipient::look_up(&name, &ring).unwrap_err().reason.contains("revoked"));
}

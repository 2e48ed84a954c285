//! Sealed items, keys and certificates against files that OpenSSL made. New cases need no code: see `testdata/README.md`.

use std::fs;
use std::path::PathBuf;

use lacre_crypto::sealed_item::{ItemError, OpenedItem, open, seal};
use lacre_crypto::sealing_key::{Certificate, SealingKey, SealingKeyError};
use lacre_crypto::{SecretBytes, SecretText};
use xtask::process::Tool;

/// A fixed key by the name of its file.
pub(crate) fn key(name: &str) -> SealingKey {
    SealingKey::from_pem(&SecretText::new(read(&format!("{name}.pem")))).unwrap()
}

fn read(name: &str) -> String {
    fs::read_to_string(xtask::root().join("testdata/sealing-keys").join(name)).unwrap()
}

fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(xtask::root().join("testdata").join(folder)).unwrap();
    let mut files: Vec<_> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// The variant of an error as the cases write it.
fn word(error: &ItemError) -> String {
    match error {
        ItemError::Base64 { at } => format!("Base64 {at}"),
        ItemError::Corrupt { .. } => "Corrupt".to_owned(),
        ItemError::NoKeyOfSize { .. } => "NoKeyOfSize".to_owned(),
        ItemError::NotOpened { .. } => "NotOpened".to_owned(),
        ItemError::TooShort { .. } => "TooShort".to_owned(),
    }
}

fn outcome(opened: Result<OpenedItem, ItemError>) -> String {
    match opened {
        Ok(opened) => {
            let bytes = opened.plaintext.expose_secret().iter();
            format!("opens {}", bytes.map(|byte| format!("{byte:02x}")).collect::<String>())
        }
        Err(error) => word(&error),
    }
}

#[test]
fn items_of_another_writer_open_or_are_refused_for_what_is_wrong_with_them() {
    let (mut opened, mut refused) = (0, 0);
    let items = files("sealed-items");
    for path in items.iter().filter(|path| path.extension().is_some_and(|ending| ending == "item")) {
        let text = fs::read_to_string(path).unwrap();
        let (head, item) = text.split_once("\n\n").unwrap();
        let field = |name: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
            line.unwrap_or_else(|| panic!("{} has no {name}", path.display()))
        };
        let keys: Vec<_> = field("keys").split_whitespace().map(key).collect();
        let keys: Vec<_> = keys.iter().collect();
        let outcome = outcome(open(&keys, field("label").as_bytes(), item));
        assert_eq!(outcome.trim_end(), field("expect").trim_end(), "{}", path.display());
        *(if outcome.starts_with("opens") { &mut opened } else { &mut refused }) += 1;
    }
    assert!(opened >= 10 && refused >= 3 * opened, "{opened} open and {refused} do not");
}

#[test]
fn keys_and_certificates_that_cannot_be_used_say_why() {
    let mut refused = 0;
    for (folder, is_key) in [("sealing-keys/refused", true), ("sealing-keys/certificates", false)] {
        for path in files(folder) {
            let text = fs::read_to_string(&path).unwrap();
            let Some(expected) = text.lines().next().and_then(|line| line.strip_prefix("expect: ")) else {
                continue;
            };
            let error = match is_key {
                true => SealingKey::all_from_pem(&SecretText::from(text.as_str())).err(),
                false => Certificate::from_pem(&text).err(),
            };
            let error = error.unwrap_or_else(|| panic!("{} is taken", path.display())).to_string();
            assert!(error.contains(expected), "{}: {error}", path.display());
            refused += 1;
        }
    }
    assert!(refused >= 20, "only {refused} files");
}

#[test]
fn what_is_sealed_opens_here_only_with_its_key_and_label() {
    let (first, second) = (key("rsa-2048"), key("rsa-2048-b"));
    for length in [0, 1, 15, 16, 17, 1024 * 1024] {
        let plaintext = SecretBytes::new((0..length).map(|number| (number % 251) as u8).collect());
        let item = seal(second.public(), b"shop/db", &plaintext).unwrap();
        let opened = open(&[&first, &second], b"shop/db", &item).unwrap();
        assert!(opened.plaintext == plaintext && opened.key == 1, "{length}");
        assert_eq!(open(&[&first], b"shop/db", &item).err(), Some(ItemError::NotOpened { tried: 1 }));
        assert_eq!(open(&[&first, &second], b"shop", &item).err(), Some(ItemError::NotOpened { tried: 2 }));
    }
}

#[test]
fn two_items_of_one_value_have_nothing_in_common_but_their_length() {
    let key = key("rsa-2048");
    let value = SecretBytes::from("value");
    let (one, two) = (seal(key.public(), b"", &value).unwrap(), seal(key.public(), b"", &value).unwrap());
    // The first three characters say how long the RSA part is.
    assert_eq!(one[..2], two[..2]);
    let equal = one.bytes().zip(two.bytes()).filter(|(a, b)| a == b).count();
    assert!(one.len() == two.len() && equal < one.len() / 4, "{equal} of {} characters", one.len());
}

#[test]
fn bundles_give_every_key_and_keys_come_back_as_they_were_written() {
    let bundle = [
        "Bag Attributes\n",
        &read("certificates/openssl.pem"),
        &read("rsa-2048.pem"),
        &read("rsa-2048-b.pem").replace('\n', "\r\n"),
        &read("rsa-3072.pem"),
    ];
    let keys = SealingKey::all_from_pem(&SecretText::new(bundle.concat())).unwrap();
    let sizes: Vec<_> = keys.iter().map(|key| key.public().modulus_bytes()).collect();
    assert_eq!(sizes, [256, 256, 384]);
    assert_eq!(keys[0].to_pem().expose_secret(), read("rsa-2048.pem"), "PKCS#1 is kept to the byte");
    for key in &keys {
        let again = SealingKey::from_pem(&key.to_pem()).unwrap();
        assert_eq!(again.public(), key.public());
    }
    // One that cannot be used is not passed over.
    let broken = format!("{}{}", read("rsa-2048.pem"), read("refused/rsa-1024.pem"));
    let error = SealingKey::all_from_pem(&SecretText::new(broken)).err();
    assert!(matches!(error, Some(SealingKeyError::Size(_))), "{error:?}");
}

#[test]
fn only_the_usual_sizes_are_made() {
    for bits in [0, 1024, 2047, 2049, 4095, 16384] {
        assert!(matches!(SealingKey::generate(bits), Err(SealingKeyError::Size(_))), "{bits}");
    }
    let made = SealingKey::generate(2048).unwrap();
    assert_eq!(made.public().modulus_bytes(), 256);
    assert_ne!(made.public(), SealingKey::generate(2048).unwrap().public());
}

#[test]
fn fingerprints_are_those_of_ssh() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["rsa-2048", "rsa-2048-b", "rsa-3072"] {
        let path = folder.path().join(name);
        fs::write(&path, key(name).to_pem().expose_secret()).unwrap();
        // ssh-keygen reads no key that others may read.
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let shown = Tool::new("ssh-keygen").arg("-l").arg("-f").arg(&path).run().unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert_eq!(shown.split(' ').nth(1), Some(key(name).public().fingerprint().as_str()), "{shown}");
    }
}

#[test]
fn nothing_of_a_private_key_is_shown() {
    let key = key("rsa-2048");
    let shown = format!("{key:?} {:?}", key.public());
    assert_eq!(shown.matches(&key.public().fingerprint()).count(), 2);
    assert!(shown.len() < 200, "{shown}");
}

#[test]
fn a_certificate_is_what_another_reader_takes_for_one_of_the_peer() {
    let key = key("rsa-2048");
    let start = "2026-03-01T10:20:30Z".parse().unwrap();
    let ten_years = std::time::Duration::from_secs(87_600 * 3600);
    for (name, subject) in
        [("", "subject="), ("vault", "subject=CN = vault"), ("schlüssel", "subject=CN = schl")]
    {
        let certificate = Certificate::self_signed(&key, name, start, ten_years).unwrap();
        assert_eq!(certificate.public(), key.public());
        assert_eq!(certificate.not_before(), start);
        assert_eq!(certificate.not_after().to_string(), "2036-02-27T10:20:30Z");
        let shown = Tool::new("openssl")
            .args(["x509", "-noout", "-text", "-subject", "-certopt", "no_pubkey,no_sigdump"])
            .stdin(certificate.pem().to_owned())
            .run()
            .unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        for part in [
            "Version: 3",
            "sha256WithRSAEncryption",
            "X509v3 Key Usage: critical\n                Encipher Only",
            "X509v3 Basic Constraints: critical\n                CA:TRUE\n",
            "X509v3 Subject Key Identifier:",
            "Not Before: Mar  1 10:20:30 2026 GMT",
            subject,
        ] {
            assert!(shown.contains(part), "{part} is not in\n{shown}");
        }
        // No option makes `openssl verify` look at the signature of a certificate that may not sign.
        let script = "const {X509Certificate} = require('node:crypto'); const fs = require('node:fs');
            const certificate = new X509Certificate(fs.readFileSync(0));
            process.stdout.write(String(certificate.verify(certificate.publicKey)));";
        let verified =
            Tool::new("node").args(["-e", script]).stdin(certificate.pem().to_owned()).run().unwrap();
        assert_eq!(verified.stdout_text(), "true", "{}", verified.stderr_text());
    }
}

#[test]
fn certificates_have_a_serial_number_each_and_an_end() {
    let key = key("rsa-2048");
    let now = lacre_crypto::Timestamp::now();
    let hour = std::time::Duration::from_secs(3600);
    let made = || Certificate::self_signed(&key, "", now, hour).unwrap().pem().to_owned();
    assert_ne!(made(), made());
    // Beyond 2049 the time has another form, and beyond 9999 none.
    let year = hour * 24 * 365;
    let late = Certificate::self_signed(&key, "", now, year * 100).unwrap();
    assert_eq!(late.not_after().as_second(), now.as_second() + 100 * 365 * 86_400);
    let error = Certificate::self_signed(&key, "", now, year * 9000).err();
    assert!(matches!(error, Some(SealingKeyError::Time)), "{error:?}");
}

#[test]
fn certificates_of_others_are_read_with_text_around_them() {
    let certificate = Certificate::from_pem(&read("certificates/openssl.pem")).unwrap();
    assert_eq!(certificate.public(), key("rsa-2048").public());
    let chain =
        format!("subject=x\r\n{}{}", read("certificates/openssl.pem"), read("certificates/refused-ec.pem"));
    assert_eq!(Certificate::from_pem(&chain).unwrap().pem(), certificate.pem(), "the first one counts");
}

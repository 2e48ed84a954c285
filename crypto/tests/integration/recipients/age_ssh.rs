//! SSH keys that OpenSSH makes, with age 1.1 and 1.3 on the other side.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use lacre_crypto::recipient::age::{AgeIdentity, AgeRecipient, Nobody, Prompt, read_ssh_identity};
use lacre_crypto::recipient::{Effort, Identity, KEY_FILE_BYTES_MAX, Recipient, RecipientId};
use lacre_crypto::secret::SecretText;
use xtask::peers::age::Age;
use xtask::peers::ssh_keygen::{SshKey, SshKeygen};

use super::{Tested, entry, keys};

const FORMS: [&[&str]; 3] =
    [&["-t", "ed25519"], &["-t", "rsa", "-b", "2048"], &["-t", "rsa", "-b", "2048", "-m", "PEM"]];

/// Says one passphrase, and counts how often it is asked.
#[derive(Default)]
struct Person {
    says: Option<&'static str>,
    asked: AtomicUsize,
}

impl Prompt for Person {
    fn tell(&self, _: &str) {}

    fn confirm(&self, _: &str, _: &str, _: Option<&str>) -> Option<bool> {
        None
    }

    fn line(&self, _: &str) -> Option<String> {
        None
    }

    fn passphrase(&self, text: &str) -> Option<SecretText> {
        assert_eq!(text, "Passphrase of the SSH key id");
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.says.map(SecretText::from)
    }
}

fn read(key: &SshKey, prompt: Arc<dyn Prompt>) -> Result<Box<dyn Identity>, String> {
    read_ssh_identity(&SecretText::from(key.identity.as_str()), "id", &prompt).map_err(|error| error.reason)
}

/// The type and the key of a public line, without its comment.
fn without_comment(line: &str) -> String {
    line.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

#[test]
fn both_ways_with_age() -> Tested {
    for form in FORMS {
        let theirs = SshKeygen::new()?.generate(form, "")?;
        let recipient = AgeRecipient::parse(&theirs.recipient)?;
        let identity = read(&theirs, Arc::new(Nobody))?;
        assert_eq!(identity.public(), format!("age {}", without_comment(&theirs.recipient)));
        assert_eq!(identity.effort(), Effort::Silent);
        for age in [Age::new()?, Age::v1_3()?] {
            for key in keys() {
                let ours = recipient.wrap(&key)?;
                assert_eq!(age.decrypt(theirs.identity.trim(), ours.as_bytes())?, key.expose_secret());
                let enc = String::from_utf8(age.encrypt(&theirs.recipient, key.expose_secret())?)?;
                let opened = identity.unwrap(&entry(recipient.id(), enc)).ok_or("not for us")??;
                assert_eq!(opened, key, "{form:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn the_comment_is_kept_and_does_not_count() -> Tested {
    let theirs = SshKeygen::new()?.generate(FORMS[0], "")?;
    let recipient = AgeRecipient::parse(&format!("  {}\n", theirs.recipient))?;
    assert_eq!(recipient.to_string(), theirs.recipient);
    let [key, _] = keys();
    let enc = recipient.wrap(&key)?;
    let identity = read(&theirs, Arc::new(Nobody))?;
    let line = without_comment(&theirs.recipient);
    for name in [line.clone(), format!("{line} ci@example.org"), format!(" {line} ")] {
        let opened = identity.unwrap(&entry(RecipientId::Age(name), enc.clone())).ok_or("not for us")??;
        assert_eq!(opened, key);
    }
    let stranger = SshKeygen::new()?.generate(FORMS[0], "")?;
    assert!(identity.unwrap(&entry(RecipientId::Age(stranger.recipient.clone()), enc.clone())).is_none());
    let mislabelled = entry(AgeRecipient::parse(&stranger.recipient)?.id(), enc);
    let error = read(&stranger, Arc::new(Nobody))?.unwrap(&mislabelled).ok_or("not for us")?.unwrap_err();
    assert!(error.reason.contains("another key"), "{error}");
    Ok(())
}

#[test]
fn a_passphrase_is_asked_for_once_and_only_for_its_own_entries() -> Tested {
    let [key, _] = keys();
    for form in &FORMS[..2] {
        let theirs = SshKeygen::new()?.generate(form, "CANARY-hunter2")?;
        let wrapped = entry(
            RecipientId::Age(theirs.recipient.clone()),
            AgeRecipient::parse(&theirs.recipient)?.wrap(&key)?,
        );
        for (says, expected) in [
            (Some("CANARY-hunter2"), None),
            (Some("CANARY-x"), Some("wrong passphrase")),
            (None, Some("nobody gave")),
        ] {
            let person = Arc::new(Person { says, ..Person::default() });
            let identity = read(&theirs, person.clone())?;
            assert_eq!(identity.effort(), Effort::Interactive);
            let other = entry(AgeIdentity::generate().recipient().id(), wrapped.enc.clone());
            assert!(identity.unwrap(&other).is_none());
            assert_eq!(person.asked.load(Ordering::SeqCst), 0);
            for _ in 0..2 {
                match (identity.unwrap(&wrapped).ok_or("not for us")?, expected) {
                    (Ok(opened), None) => assert_eq!(opened, key),
                    (Err(error), Some(expected)) => {
                        assert!(error.reason.contains(expected), "{error}");
                        assert!(!format!("{error:?}").contains("CANARY"), "{error:?}");
                    }
                    (outcome, _) => panic!("{outcome:?}"),
                }
            }
            assert_eq!(person.asked.load(Ordering::SeqCst), 1);
        }
    }
    Ok(())
}

#[test]
fn keys_that_age_cannot_use_are_refused_on_both_sides() -> Tested {
    let keygen = SshKeygen::new()?;
    let small = keygen.generate(&["-t", "rsa", "-b", "1024"], "")?;
    let other = keygen.generate(&["-t", "ecdsa"], "")?;
    let old = keygen.generate(&["-t", "rsa", "-b", "2048", "-m", "PEM"], "CANARY-hunter2")?;
    for (line, says) in [
        (small.recipient.as_str(), "2048"),
        (&other.recipient, "ssh-ed25519 and ssh-rsa"),
        ("ssh-dss AAAAB3NzaC1kc3MAAAAA", "ssh-ed25519 and ssh-rsa"),
        ("ssh-ed25519 AAAA\nssh-ed25519 AAAA", "one line"),
        ("ssh-", "damaged"),
    ] {
        let reason = AgeRecipient::parse(line).unwrap_err().reason;
        assert!(reason.contains(says), "{line}: {reason}");
    }
    for (key, says) in [(&other, "type"), (&old, "old form")] {
        let reason = read(key, Arc::new(Nobody)).err().ok_or("it was read")?;
        assert!(reason.contains(says), "{reason}");
    }
    for (text, says) in [
        (other.recipient.as_str(), "damaged"),
        ("ssh-ed25519 AAAA", "public"),
        ("AGE-SECRET-KEY-1CANARY", "age key file"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nCANARY\n-----END OPENSSH PRIVATE KEY-----\n", "damaged"),
        ("", "damaged"),
    ] {
        let key = SshKey { identity: text.to_owned(), recipient: String::new() };
        let reason = read(&key, Arc::new(Nobody)).err().ok_or("it was read")?;
        assert!(reason.contains(says) && !reason.contains("CANARY"), "{text}: {reason}");
    }
    Ok(())
}

/// The neutral element and the point of order two: what is wrapped for them, everybody can open.
#[test]
fn points_of_low_order_are_refused() {
    let line = |point: [u8; 32]| {
        let blob = [&[0, 0, 0, 11][..], b"ssh-ed25519", &[0, 0, 0, 32], &point].concat();
        format!("ssh-ed25519 {}", BASE64_STANDARD.encode(blob))
    };
    let mut neutral = [0; 32];
    neutral[0] = 1;
    let mut order_two = [0xff; 32];
    (order_two[0], order_two[31]) = (0xec, 0x7f);
    for point in [neutral, order_two] {
        let reason = AgeRecipient::parse(&line(point)).unwrap_err().reason;
        assert!(reason.contains("everybody"), "{reason}");
    }
}

#[test]
fn a_key_file_is_limited_on_both_sides() -> Tested {
    let theirs = SshKeygen::new()?.generate(FORMS[0], "")?;
    let padded = |length: usize| {
        let identity = format!("{}{}", theirs.identity, "\n".repeat(length - theirs.identity.len()));
        read(&SshKey { identity, recipient: String::new() }, Arc::new(Nobody))
    };
    assert!(padded(KEY_FILE_BYTES_MAX).is_ok());
    assert!(padded(KEY_FILE_BYTES_MAX + 1).err().ok_or("it was read")?.contains("larger than"));
    Ok(())
}

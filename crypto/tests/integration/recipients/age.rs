//! age 1.1 of the distribution, and age 1.3 for post-quantum keys.

use jiff::Timestamp;
use lacre_crypto::recipient::age::{AgeIdentity, AgeRecipient, read_identities};
use lacre_crypto::recipient::{Identity, Recipient};
use lacre_crypto::secret::SecretText;
use xtask::peers::age::Age;

use super::{Tested, entry, keys};

#[test]
fn age_opens_what_we_wrap() -> Tested {
    let age = Age::new()?;
    let theirs = age.keygen()?;
    let recipient = AgeRecipient::parse(&theirs.recipient)?;
    for key in keys() {
        let enc = recipient.wrap(&key)?;
        assert_eq!(age.decrypt(&theirs.identity, enc.as_bytes())?, key.expose_secret());
    }
    Ok(())
}

#[test]
fn we_open_what_age_wraps() -> Tested {
    let age = Age::new()?;
    let theirs = age.keygen()?;
    let identity = read_identities(&SecretText::from(theirs.identity.as_str()))?.remove(0);
    assert_eq!(identity.recipient().to_string(), theirs.recipient);
    for key in keys() {
        let enc = String::from_utf8(age.encrypt(&theirs.recipient, key.expose_secret())?)?;
        let opened = identity.unwrap(&entry(identity.recipient().id(), enc)).ok_or("not for us")??;
        assert_eq!(opened, key);
    }
    Ok(())
}

#[test]
fn age_reads_our_key_file() -> Tested {
    let age = Age::new()?;
    let identity = AgeIdentity::generate();
    let file = identity.to_file_text(Timestamp::now());
    let [key, _] = keys();
    let enc = identity.recipient().wrap(&key)?;
    assert_eq!(age.decrypt(file.expose_secret(), enc.as_bytes())?, key.expose_secret());
    Ok(())
}

#[test]
fn what_is_not_as_long_as_a_key_is_refused() -> Tested {
    let age = Age::new()?;
    let identity = AgeIdentity::generate();
    let name = identity.recipient().to_string();
    for length in [16, 34, 1 << 20] {
        let enc = String::from_utf8(age.encrypt(&name, &vec![7; length])?)?;
        let outcome = identity.unwrap(&entry(identity.recipient().id(), enc)).ok_or("not for us")?;
        assert!(outcome.is_err(), "{length}");
    }
    Ok(())
}

#[test]
fn age_opens_what_we_wrap_for_its_post_quantum_key() -> Tested {
    let age = Age::v1_3()?;
    let theirs = age.keygen_pq()?;
    let recipient = AgeRecipient::parse(&theirs.recipient)?;
    assert_eq!(recipient.to_string(), theirs.recipient);
    for key in keys() {
        let enc = recipient.wrap(&key)?;
        assert_eq!(age.decrypt(&theirs.identity, enc.as_bytes())?, key.expose_secret());
    }
    Ok(())
}

#[test]
fn we_open_what_age_wraps_for_a_post_quantum_key() -> Tested {
    let age = Age::v1_3()?;
    let theirs = age.keygen_pq()?;
    let identity = read_identities(&SecretText::from(theirs.identity.as_str()))?.remove(0);
    assert_eq!(identity.recipient().to_string(), theirs.recipient);
    for key in keys() {
        let enc = String::from_utf8(age.encrypt(&theirs.recipient, key.expose_secret())?)?;
        let opened = identity.unwrap(&entry(identity.recipient().id(), enc)).ok_or("not for us")??;
        assert_eq!(opened, key);
    }
    Ok(())
}

#[test]
fn age_reads_the_post_quantum_key_that_we_make() -> Tested {
    let age = Age::v1_3()?;
    let identity = AgeIdentity::generate_post_quantum();
    let file = identity.to_file_text(Timestamp::now());
    let [key, _] = keys();
    let enc = identity.recipient().wrap(&key)?;
    assert_eq!(age.decrypt(file.expose_secret(), enc.as_bytes())?, key.expose_secret());
    let theirs = age.encrypt(&identity.recipient().to_string(), key.expose_secret())?;
    let opened = identity.unwrap(&entry(identity.recipient().id(), String::from_utf8(theirs)?));
    assert_eq!(opened.ok_or("not for us")??, key);
    Ok(())
}

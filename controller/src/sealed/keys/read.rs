//! From the Secrets of sealing keys to a set of keys. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use lacre_crypto::sealing_key::{Certificate, SealingKey};
use lacre_crypto::secret::SecretBytes;

use super::{BACKED_UP, HeldKey, KeySet, Problem};
use crate::apply::PlainSecret;
use crate::args::sealed::KeyOrder;

/// Entry with the private key.
pub const PRIVATE_KEY: &str = "tls.key";

/// Entry with the certificate.
pub const CERTIFICATE: &str = "tls.crt";

/// Most Secrets of keys that are read. One key each month makes 120 in ten years, and each is tried for an item that
/// none opens.
pub const SECRETS_MAX: usize = 1000;

/// Kinds whose objects are written by people who are not those that bring keys.
const SEALED_KINDS: [&str; 2] = ["EncryptedSecret", "SealedSecret"];

/// Reads all of `secrets`. What is wrong with one of them harms no other.
pub fn key_set(mut secrets: Vec<PlainSecret>, order: KeyOrder) -> KeySet {
    let (mut set, mut keys) = (KeySet::default(), Vec::new());
    secrets.sort_by_key(|secret| secret.name_any());
    for (index, secret) in secrets.iter().enumerate() {
        set.looked_at.insert(secret.uid().unwrap_or_default(), secret.resource_version().unwrap_or_default());
        let mut problem = |what: String| {
            let uid = secret.uid().unwrap_or_default();
            set.problems.push(Problem { secret: secret.name_any(), uid, what });
        };
        if index >= SECRETS_MAX {
            problem(format!("more than {SECRETS_MAX} Secrets are labelled as sealing keys"));
            continue;
        }
        match held(secret, order) {
            Err(what) => problem(what),
            Ok((key, what)) => {
                what.into_iter().for_each(&mut problem);
                keys.push(key);
            }
        }
    }
    keys.sort_by(|left, right| newest_first(left).cmp(&newest_first(right)));
    let mut seen = BTreeSet::new();
    // The same key in two Secrets, as after a restore beside the living one: the one that is sealed for counts.
    keys.retain(|key| seen.insert(key.fingerprint.clone()));
    set.keys = keys.into_iter().map(Arc::new).collect();
    set
}

/// Those that are sealed for, then the newest; the name decides between twins.
fn newest_first(key: &HeldKey) -> (bool, std::cmp::Reverse<Timestamp>, std::cmp::Reverse<&str>) {
    use std::cmp::Reverse;
    (key.certificate.is_none(), Reverse(key.ordered_by), Reverse(key.name.as_str()))
}

/// The key of a Secret, and why it only opens, if it does.
fn held(secret: &PlainSecret, order: KeyOrder) -> Result<(HeldKey, Option<String>), String> {
    let Some(pem) = secret.value(PRIVATE_KEY) else { return Err(format!("it has no entry {PRIVATE_KEY}")) };
    let pem = SecretBytes::new(pem.to_vec()).into_text();
    let pem = pem.map_err(|_| format!("{PRIVATE_KEY} is no text"))?;
    let key = SealingKey::from_pem(&pem).map_err(|error| format!("{PRIVATE_KEY}: {error}"))?;
    let (certificate, problem) = match certificate(secret, &key) {
        Ok(certificate) => (Some(certificate), None),
        Err(what) => (None, Some(format!("{what}; it opens, and nothing is sealed for it"))),
    };
    let created = secret.creation_timestamp().map_or(Timestamp::UNIX_EPOCH, |time| time.0);
    let ordered_by = match (&certificate, order) {
        (Some(certificate), KeyOrder::CertNotBefore) => certificate.not_before(),
        _ => created,
    };
    let fingerprint = key.public().fingerprint();
    let backed_up = secret.annotations().get(BACKED_UP).is_some_and(|at| at.parse::<Timestamp>().is_ok());
    let name = secret.name_any();
    Ok((HeldKey { name, fingerprint, key, certificate, ordered_by, created, backed_up }, problem))
}

/// What may be sealed for with this key.
fn certificate(secret: &PlainSecret, key: &SealingKey) -> Result<Certificate, String> {
    let owners = secret.owner_references();
    if let Some(owner) = owners.iter().find(|owner| SEALED_KINDS.contains(&owner.kind.as_str())) {
        return Err(format!("it was made from the {} {}", owner.kind, owner.name));
    }
    let pem = secret.value(CERTIFICATE).and_then(|pem| str::from_utf8(pem).ok());
    let pem = pem.ok_or_else(|| format!("it has no entry {CERTIFICATE} with text"))?;
    let certificate = Certificate::from_pem(pem).map_err(|error| format!("{CERTIFICATE}: {error}"))?;
    match certificate.public() == key.public() {
        true => Ok(certificate),
        false => Err(format!("{CERTIFICATE} is the certificate of another key than {PRIVATE_KEY}")),
    }
}

/// The entries of the Secret of a key.
pub fn entries<'a>(private: &'a str, certificate: &'a str) -> BTreeMap<String, &'a [u8]> {
    BTreeMap::from([
        (CERTIFICATE.to_owned(), certificate.as_bytes()),
        (PRIVATE_KEY.to_owned(), private.as_bytes()),
    ])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
    use kube::api::ObjectMeta;

    use super::*;

    fn pair(seconds: i64) -> (SealingKey, Certificate) {
        let key = SealingKey::generate(2048).unwrap();
        let begin = Timestamp::from_second(seconds).unwrap();
        let certificate = Certificate::self_signed(&key, "", begin, Duration::from_secs(3600)).unwrap();
        (key, certificate)
    }

    fn secret(name: &str, created: i64, private: &str, certificate: &str) -> PlainSecret {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            uid: Some(format!("uid-{name}")),
            resource_version: Some("1".to_owned()),
            creation_timestamp: Some(Time(Timestamp::from_second(created).unwrap())),
            ..ObjectMeta::default()
        };
        PlainSecret::build(
            metadata,
            "kubernetes.io/tls".to_owned(),
            None,
            entries(private, certificate).into_iter(),
        )
    }

    fn good(name: &str, created: i64, begin: i64) -> PlainSecret {
        let (key, certificate) = pair(begin);
        secret(name, created, key.to_pem().expose_secret(), certificate.pem())
    }

    fn names(set: &KeySet) -> String {
        set.keys.iter().map(|key| key.name.as_str()).collect()
    }

    #[test]
    fn the_order_is_that_of_the_time_asked_for() {
        let secrets = || vec![good("a", 30, 1000), good("b", 20, 3000), good("c", 10, 2000)];
        assert_eq!(names(&key_set(secrets(), KeyOrder::CertNotBefore)), "bca");
        assert_eq!(names(&key_set(secrets(), KeyOrder::SecretCreationTimestamp)), "abc");
    }

    #[test]
    fn a_secret_that_is_no_key_is_told_and_passed_over() {
        let secrets = vec![
            good("a", 1, 1),
            secret("b", 2, "-----BEGIN RSA PRIVATE KEY-----\nCANARY\n-----END RSA PRIVATE KEY-----\n", "x"),
            secret("c", 3, "", ""),
        ];
        let set = key_set(secrets, KeyOrder::CertNotBefore);
        assert_eq!(names(&set), "a");
        assert_eq!(set.problems.iter().map(|problem| problem.secret.as_str()).collect::<String>(), "bc");
        assert!(!format!("{:?}", set.problems).contains("CANARY"));
    }

    #[test]
    fn a_key_with_anothers_certificate_opens_and_is_not_sealed_for() {
        let (key, (_, other)) = (pair(1).0, pair(2));
        let secrets = vec![good("a", 1, 1), secret("b", 2, key.to_pem().expose_secret(), other.pem())];
        let set = key_set(secrets, KeyOrder::CertNotBefore);
        assert_eq!((names(&set).as_str(), set.newest().unwrap().name.as_str()), ("ab", "a"));
        assert_eq!(set.problems.len(), 1);
        assert!(set.problems[0].what.contains("another key"), "{:?}", set.problems);
    }

    #[test]
    fn a_key_made_from_a_sealed_object_is_not_sealed_for() {
        let mut planted = good("b", 2, 2000);
        planted.metadata_mut().owner_references = Some(vec![OwnerReference {
            kind: "SealedSecret".to_owned(),
            name: "b".to_owned(),
            ..OwnerReference::default()
        }]);
        let set = key_set(vec![good("a", 1, 1), planted], KeyOrder::CertNotBefore);
        assert_eq!((names(&set).as_str(), set.newest().unwrap().name.as_str()), ("ab", "a"));
    }

    #[test]
    fn the_same_key_twice_is_one_key() {
        let (key, certificate) = pair(1);
        let twin = |name| secret(name, 1, key.to_pem().expose_secret(), certificate.pem());
        let set = key_set(vec![twin("a"), twin("b")], KeyOrder::CertNotBefore);
        assert_eq!((set.keys.len(), set.problems.len()), (1, 0));
    }

    #[test]
    fn a_key_is_backed_up_when_its_secret_says_when() {
        let backed_up = |at: &str| {
            let mut secret = good("a", 1, 1);
            secret.metadata_mut().annotations = Some(BTreeMap::from([(BACKED_UP.to_owned(), at.to_owned())]));
            held(&secret, KeyOrder::CertNotBefore).unwrap().0.backed_up
        };
        assert!(backed_up("2026-05-01T10:00:00Z"));
        assert!(!backed_up("") && !backed_up("false"));
    }
}

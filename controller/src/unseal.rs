//! From a sealed object and identities to the Secret it stands for. Touches no cluster; the only calls that leave the
//! process are those of identities to their key services.
//!
//! This is the one file that knows how `lacre-crypto` reads objects. Whatever the object says, nothing is opened before
//! everything about it is verified.

use std::collections::BTreeMap;

use jiff::Timestamp;
use lacre_crypto::error::NoKeyError;
use lacre_crypto::object::{self, ObjectContext, OpenError};
use lacre_crypto::recipient::{Effort, Identity, UnwrapFailure};
use lacre_crypto::secret::SecretBytes;
use lacre_crypto::{seal, timestamp};

use crate::api::EncryptedSecret;
use crate::api::lenient::LEVELS_MAX;
use crate::error::{Failure, Reason};
use crate::keyring::Held;
use crate::policy::{Policy, Scope};

/// Most recipients or identities that a message lists. A document may have a thousand, and a condition is for people.
const LISTED_MAX: usize = 16;

/// Most calls to key services for one object. They are made at the same time, each on a thread of its own.
const CALLS_MAX: usize = 128;

/// An object that was read and not opened yet.
pub struct Sealed {
    object: object::EncryptedSecret,
}

/// What the Secret shall be.
pub struct Unsealed {
    /// Its type.
    pub type_: String,
    /// Whether it shall be immutable.
    pub immutable: bool,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Its values, decoded.
    pub data: BTreeMap<String, SecretBytes>,
    /// When it was sealed, RFC 3339.
    pub last_modified: String,
    /// How far its seal reaches.
    pub scope: Scope,
    /// A keyed digest of each value.
    pub fingerprints: BTreeMap<String, String>,
}

/// Whether the object is to be left alone. Read leniently, and before all else: an incident must be able to suspend
/// whatever the object's state, which is why the seal does not cover it.
pub fn is_suspended(object: &EncryptedSecret) -> bool {
    object.spec.get("suspend").and_then(serde_json::Value::as_bool) == Some(true)
}

/// Reads an object.
///
/// # Errors
/// [`Reason::InvalidObject`] with the first thing in it that this version cannot read.
pub fn read(object: &EncryptedSecret) -> Result<Sealed, Failure> {
    let invalid = |message: String| Failure::new(Reason::InvalidObject, message);
    if object.sops.is_null() {
        return Err(invalid(format!("it has no sops block, or one of more than {LEVELS_MAX} levels")));
    }
    let json =
        serde_json::to_value(object).map_err(|_| invalid("it cannot be written as JSON".to_owned()))?;
    let object = object::EncryptedSecret::from_json(&json).map_err(|error| invalid(error.to_string()))?;
    Ok(Sealed { object })
}

impl Sealed {
    /// Names of the key Secrets that may open it; none when the controller's own identities may.
    pub fn keys_from(&self) -> &[String] {
        &self.object.content.keys_from
    }

    /// Whether the object may be served under `policy`, as far as that can be told without opening it.
    ///
    /// # Errors
    /// The first rule that it breaks.
    pub fn check(&self, policy: &Policy) -> Result<(), Failure> {
        let content = &self.object.content;
        policy.check_type(&content.secret_type)?;
        policy.check_template(&content.labels)?;
        policy.check_template(&content.annotations)
    }

    fn check_calls(&self, identities: &[&dyn Identity]) -> Result<(), Failure> {
        let remote = identities.iter().filter(|identity| identity.effort() == Effort::Remote).count();
        let calls = remote * self.object.metadata().groups.iter().map(Vec::len).max().unwrap_or_default();
        if calls <= CALLS_MAX {
            return Ok(());
        }
        let message =
            format!("it would take {calls} calls to key services, and at most {CALLS_MAX} are made");
        Err(Failure::new(Reason::UnsupportedMetadata, message))
    }

    /// Verifies and opens it, for the object of unique id `uid` in the cluster of that name. May block.
    ///
    /// # Errors
    /// One reason per cause.
    pub fn open(self, held: &Held, uid: &str, cluster_name: Option<&str>) -> Result<Unsealed, Failure> {
        let identities: Vec<&dyn Identity> = held.identities.iter().map(AsRef::as_ref).collect();
        self.check_calls(&identities)?;
        let key = self.object.unwrap_key(&identities).map_err(|error| no_key(&error, &held.unreadable))?;
        let context = ObjectContext { cluster_name, now: Timestamp::now() };
        let opened = self.object.open(key, &context);
        let mut opened = opened.map_err(|error| Failure::new(reason(&error), error.to_string()))?;
        let fingerprint = |key: &String| Some((key.clone(), opened.fingerprint(uid, key)?));
        let fingerprints = opened.data.keys().filter_map(fingerprint).collect();
        let content = self.object.content;
        Ok(Unsealed {
            type_: content.secret_type,
            immutable: content.immutable,
            labels: content.labels,
            annotations: content.annotations,
            last_modified: timestamp(opened.last_modified),
            scope: scope(opened.scope()),
            fingerprints,
            data: std::mem::take(&mut opened.data),
        })
    }
}

fn scope(scope: seal::Scope) -> Scope {
    match scope {
        seal::Scope::Strict => Scope::Strict,
        seal::Scope::Namespace => Scope::Namespace,
        seal::Scope::Cluster => Scope::Cluster,
    }
}

fn reason(error: &OpenError) -> Reason {
    match error {
        OpenError::FutureLastModified(_) => Reason::FutureLastModified,
        OpenError::InvalidBase64(_) => Reason::InvalidBase64,
        OpenError::MacMismatch => Reason::MacMismatch,
        OpenError::NeverSealed => Reason::NeverSealed,
        OpenError::PlaintextValue(_) => Reason::PlaintextValue,
        OpenError::RecipientsMismatch => Reason::RecipientsMismatch,
        OpenError::ScopeMismatch { .. } => Reason::ScopeMismatch,
        OpenError::SealBroken(_) => Reason::SealBroken,
        OpenError::SealRemoved => Reason::SealRemoved,
        OpenError::TemplateMismatch => Reason::TemplateMismatch,
        OpenError::TooLarge(_) => Reason::TooLarge,
        OpenError::UnsupportedMetadata(_) => Reason::UnsupportedMetadata,
        OpenError::ValueMismatch(_) => Reason::ValueMismatch,
    }
}

/// Why no identity opened it. A service that may still answer outweighs one that said no, which outweighs a wrapped key
/// that is broken: the first is worth another attempt.
fn no_key(error: &NoKeyError, unreadable: &[String]) -> Failure {
    const ORDER: [(UnwrapFailure, Reason); 4] = [
        (UnwrapFailure::Unreachable, Reason::KmsUnreachable),
        (UnwrapFailure::Throttled, Reason::KmsThrottled),
        (UnwrapFailure::Denied, Reason::KmsDenied),
        (UnwrapFailure::Broken, Reason::WrappedKeyBroken),
    ];
    for (failure, reason) in ORDER {
        if let Some(attempt) = error.attempts.iter().find(|attempt| attempt.failure == failure) {
            return Failure::new(reason, format!("{}: {}", attempt.recipient, attempt.reason));
        }
    }
    let mut message = format!("sealed for {}; held: {}", listed(&error.wanted), listed(&error.held));
    if !unreadable.is_empty() {
        message.push_str(&format!("; not readable: {}", listed(unreadable)));
    }
    Failure::new(Reason::NoMatchingIdentity, message)
}

fn listed<T: ToString>(items: &[T]) -> String {
    let mut shown: Vec<String> = items.iter().take(LISTED_MAX).map(ToString::to_string).collect();
    if items.len() > LISTED_MAX {
        shown.push(format!("and {} more", items.len() - LISTED_MAX));
    }
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::ToSpan;
    use lacre_crypto::encrypt::WriteOptions;
    use lacre_crypto::error::Attempt;
    use lacre_crypto::object::ManifestOptions;
    use lacre_crypto::recipient::age::AgeIdentity;
    use lacre_crypto::recipient::{RecipientId, UnwrapError, WrappedKey};
    use lacre_crypto::{Format, Groups, SecretText};

    use super::*;

    const MANIFEST: &str = "apiVersion: v1
kind: Secret
metadata: {name: db, namespace: shop, labels: {tier: back}}
type: Opaque
data: {binary: AP8=}
stringData: {password: hunter2}
";

    fn sealed(identity: &AgeIdentity, now: Timestamp) -> EncryptedSecret {
        let recipient = identity.recipient();
        let text = object::seal_manifest(
            &SecretText::from(MANIFEST),
            Format::Yaml,
            ManifestOptions {
                namespace: None,
                scope: seal::Scope::Namespace,
                clusters: vec!["prod".to_owned()],
                groups: Groups { groups: vec![vec![&recipient]], threshold: None },
                keys_from: vec!["team".to_owned()],
                write: WriteOptions { now, seal: true, allow_plaintext: false },
            },
        );
        yaml_serde::from_str(&text.unwrap()).unwrap()
    }

    fn held(identity: &AgeIdentity) -> Held {
        Held { identities: vec![Arc::new(identity.clone())], unreadable: Vec::new() }
    }

    fn failure(object: &EncryptedSecret, held: &Held, cluster: Option<&str>) -> Failure {
        read(object).unwrap().open(held, "uid", cluster).err().unwrap()
    }

    #[test]
    fn a_sealed_manifest_opens_to_the_secret_it_was_made_from() {
        let identity = AgeIdentity::generate();
        let sealed = read(&sealed(&identity, Timestamp::now())).unwrap();
        assert_eq!(sealed.keys_from(), ["team"]);
        let unsealed = sealed.open(&held(&identity), "uid", Some("prod")).unwrap();
        let value = |key: &str| unsealed.data[key].expose_secret().to_vec();
        assert_eq!((value("binary"), value("password")), (vec![0, 255], b"hunter2".to_vec()));
        assert_eq!(
            (unsealed.type_.as_str(), unsealed.immutable, unsealed.scope),
            ("Opaque", false, Scope::Namespace)
        );
        assert_eq!(unsealed.labels, BTreeMap::from([("tier".to_owned(), "back".to_owned())]));
        assert_eq!(unsealed.fingerprints.keys().collect::<Vec<_>>(), ["binary", "password"]);
    }

    #[test]
    fn a_seal_for_certain_clusters_opens_nowhere_else() {
        let identity = AgeIdentity::generate();
        let object = sealed(&identity, Timestamp::now());
        for cluster in [None, Some("staging")] {
            assert_eq!(failure(&object, &held(&identity), cluster).reason, Reason::ScopeMismatch);
        }
    }

    #[test]
    fn five_minutes_ahead_is_a_clock_and_six_is_refused() {
        let identity = AgeIdentity::generate();
        let ahead = |minutes: i64| sealed(&identity, Timestamp::now() + minutes.minutes());
        let open = |object| read(&object).unwrap().open(&held(&identity), "uid", Some("prod"));
        assert!(open(ahead(4)).is_ok());
        assert_eq!(open(ahead(6)).err().unwrap().reason, Reason::FutureLastModified);
    }

    #[test]
    fn a_foreign_identity_is_told_from_the_wanted_one_by_public_halves() {
        let (wanted, other) = (AgeIdentity::generate(), AgeIdentity::generate());
        let failure = failure(&sealed(&wanted, Timestamp::now()), &held(&other), None);
        assert_eq!(failure.reason, Reason::NoMatchingIdentity);
        let message = format!("sealed for age {}; held: age {}", wanted.recipient(), other.recipient());
        assert_eq!(failure.message, message);
    }

    #[test]
    fn a_field_that_no_seal_covers_is_refused() {
        let mut object = sealed(&AgeIdentity::generate(), Timestamp::now());
        object.spec["later"] = true.into();
        assert_eq!(read(&object).err().unwrap().reason, Reason::InvalidObject);
    }

    #[test]
    fn an_answer_worth_another_attempt_outweighs_a_final_one() {
        let attempt = |failure| Attempt {
            recipient: RecipientId::Age("x".to_owned()),
            failure,
            reason: "y".to_owned(),
        };
        let of = |failures: &[UnwrapFailure]| {
            let attempts = failures.iter().copied().map(attempt).collect();
            no_key(&NoKeyError { wanted: Vec::new(), held: Vec::new(), attempts }, &[]).reason
        };
        use UnwrapFailure::{Broken, Denied, Throttled, Unreachable};
        assert_eq!(of(&[Broken, Denied, Throttled, Unreachable]), Reason::KmsUnreachable);
        assert_eq!(of(&[Broken, Denied, Throttled]), Reason::KmsThrottled);
        assert_eq!(of(&[Broken, Denied]), Reason::KmsDenied);
        assert_eq!(of(&[Broken]), Reason::WrappedKeyBroken);
        assert_eq!(of(&[]), Reason::NoMatchingIdentity);
    }

    #[test]
    fn no_object_makes_more_calls_to_key_services_than_there_are_threads_for() {
        struct Remote;
        impl Identity for Remote {
            fn public(&self) -> String {
                "remote".to_owned()
            }
            fn effort(&self) -> Effort {
                Effort::Remote
            }
            fn unwrap(&self, _: &WrappedKey) -> Option<Result<SecretBytes, UnwrapError>> {
                None
            }
        }
        let mut object = sealed(&AgeIdentity::generate(), Timestamp::now());
        let entry = object.sops["age"][0].clone();
        object.sops["age"] = vec![entry; CALLS_MAX / 2].into();
        let held = |count| Held {
            identities: (0..count).map(|_| Arc::new(Remote) as Arc<dyn Identity>).collect(),
            unreadable: Vec::new(),
        };
        assert_eq!(failure(&object, &held(2), None).reason, Reason::NoMatchingIdentity);
        assert_eq!(failure(&object, &held(3), None).reason, Reason::UnsupportedMetadata);
    }

    #[test]
    fn a_thousand_recipients_do_not_make_a_message_that_nobody_can_store() {
        assert_eq!(listed(&vec!["x"; 1000]).matches('x').count(), LISTED_MAX);
        assert!(listed(&vec!["x"; 1000]).ends_with("and 984 more"));
        assert_eq!(listed::<String>(&[]), "none");
    }

    #[test]
    fn suspension_is_read_from_any_object() {
        let mut object = sealed(&AgeIdentity::generate(), Timestamp::now());
        assert!(!is_suspended(&object));
        object.spec["later"] = true.into();
        object.spec["suspend"] = true.into();
        assert!(is_suspended(&object));
    }
}

//! From what somebody sent over HTTP to whether it opens, or to the same object sealed anew. Pure, and without templates.
//!
//! Item by item, and no further than the first that does not open: a question must not cost more than its answer is
//! worth, and one item that no key opens costs an RSA operation per key.

use std::time::Instant;

use lacre_crypto::document::Document;
use lacre_crypto::format::Format;
use lacre_crypto::object::sealed_secret::{API_VERSION, KIND, SealedSecret};
use lacre_crypto::sealed_item::{self, OpenedItem};
use lacre_crypto::sealing_key::SealingKey;
use serde_json::Value;

use super::keys::{HeldKey, SealingKeys};

/// Why there is no answer, or the answer is no. Holds names of items and nothing of their content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It takes longer than an answer may.
    Busy,
    /// There is nothing to seal for, or to open with.
    NoKey,
    /// An item does not open.
    NotOpened(String),
    /// It is no single SealedSecret.
    Unreadable(String),
}

/// Whether every item of the object in `body` opens.
///
/// # Errors
/// [`Refusal`]
pub fn verify(body: &[u8], keys: &SealingKeys, accept_v1: bool, deadline: Instant) -> Result<(), Refusal> {
    let (_, sealed) = object(body)?;
    let mut opener = Opener::new(&sealed, keys, deadline)?;
    if sealed.legacy_data.as_ref().is_some_and(|data| !data.is_empty()) {
        let keys: Vec<_> = opener.keys.iter().map(|key| &key.key).collect();
        return sealed.verify(&keys, accept_v1).map_err(|error| Refusal::NotOpened(error.to_string()));
    }
    sealed.items.iter().try_for_each(|(name, text)| opener.open(name, text).map(drop))
}

/// The object in `body` as JSON with every item sealed for the newest key, and nothing else changed.
///
/// # Errors
/// [`Refusal`]
pub fn rewrap(body: &[u8], keys: &SealingKeys, deadline: Instant) -> Result<String, Refusal> {
    let (mut value, sealed) = object(body)?;
    if sealed.legacy_data.as_ref().is_some_and(|data| !data.is_empty()) {
        let what = "it holds spec.data, the single blob of old releases: seal its Secret anew";
        return Err(Refusal::Unreadable(what.to_owned()));
    }
    let set = keys.snapshot();
    let newest = set.newest().ok_or(Refusal::NoKey)?;
    let mut opener = Opener::new(&sealed, keys, deadline)?;
    for (name, text) in &sealed.items {
        let opened = opener.open(name, text)?;
        let anew = sealed_item::seal(newest.key.public(), &opener.label, &opened.plaintext);
        let anew = anew.map_err(|error| Refusal::Unreadable(error.to_string()))?;
        // It was there to be opened.
        if let Some(item) = value.pointer_mut("/spec/encryptedData").and_then(|items| items.get_mut(name)) {
            *item = Value::String(anew);
        }
    }
    Ok(value.to_string())
}

/// Opens items of one object, with the key that opened the last one first.
struct Opener {
    keys: Vec<std::sync::Arc<HeldKey>>,
    label: Vec<u8>,
    deadline: Instant,
}

impl Opener {
    fn new(sealed: &SealedSecret, keys: &SealingKeys, deadline: Instant) -> Result<Self, Refusal> {
        let keys = keys.ordered_for(&(sealed.namespace.clone(), sealed.name.clone()));
        match keys.is_empty() {
            true => Err(Refusal::NoKey),
            false => Ok(Self { keys, label: sealed.label(), deadline }),
        }
    }

    fn open(&mut self, name: &str, text: &str) -> Result<OpenedItem, Refusal> {
        if Instant::now() > self.deadline {
            return Err(Refusal::Busy);
        }
        let keys: Vec<&SealingKey> = self.keys.iter().map(|key| &key.key).collect();
        let opened = sealed_item::open(&keys, &self.label, text);
        let opened =
            opened.map_err(|_| Refusal::NotOpened(format!("no key could decrypt secret ({name})")))?;
        self.keys[..=opened.key].rotate_right(1);
        Ok(opened)
    }
}

/// The one SealedSecret that `body` is, JSON or YAML: as it stands, and as it is read.
fn object(body: &[u8]) -> Result<(Value, SealedSecret), Refusal> {
    let unreadable = |what: &dyn std::fmt::Display| Refusal::Unreadable(format!("no SealedSecret: {what}"));
    let text = str::from_utf8(body).map_err(|_| unreadable(&"it is no text"))?;
    let value = match text.trim_start().starts_with('{') {
        // The parser's own words repeat what it read.
        true => serde_json::from_str(text).map_err(|_| unreadable(&"it is no single JSON object"))?,
        false => yaml(text).ok_or_else(|| unreadable(&"it is no single YAML document"))?,
    };
    let is = |field: &str, expected: &str| value.get(field).and_then(Value::as_str) == Some(expected);
    if !is("apiVersion", API_VERSION) || !is("kind", KIND) {
        return Err(unreadable(&format!("it is not of kind {KIND} in {API_VERSION}")));
    }
    let sealed = SealedSecret::from_json(&value).map_err(|error| unreadable(&error))?;
    Ok((value, sealed))
}

fn yaml(text: &str) -> Option<Value> {
    let document = Document::read(text, Format::Yaml).ok()?;
    match document.tree.documents.as_slice() {
        [part] => Some(document.tree.plain(part.root?, true)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use jiff::Timestamp;
    use lacre_crypto::object::sealed_secret::ItemScope;
    use lacre_crypto::sealing_key::Certificate;
    use lacre_crypto::secret::SecretBytes;
    use serde_json::json;

    use super::*;
    use crate::sealed::keys::KeySet;

    fn held(name: &str) -> Arc<HeldKey> {
        let key = SealingKey::generate(2048).unwrap();
        let hour = Duration::from_secs(3600);
        Arc::new(HeldKey {
            name: name.to_owned(),
            fingerprint: key.public().fingerprint(),
            certificate: Some(Certificate::self_signed(&key, "", Timestamp::now(), hour).unwrap()),
            key,
            ordered_by: Timestamp::UNIX_EPOCH,
            created: Timestamp::UNIX_EPOCH,
            backed_up: false,
        })
    }

    fn holding(keys: &[&Arc<HeldKey>]) -> SealingKeys {
        let keys = keys.iter().map(|key| Arc::clone(key)).collect();
        SealingKeys::from(KeySet { keys, ..KeySet::default() })
    }

    fn item(key: &HeldKey, scope: ItemScope, plaintext: &str) -> String {
        let plaintext = SecretBytes::new(plaintext.as_bytes().to_vec());
        sealed_item::seal(key.key.public(), &scope.label("shop", "db"), &plaintext).unwrap()
    }

    fn manifest(items: Value) -> Value {
        json!({
            "kind": "SealedSecret",
            "apiVersion": "bitnami.com/v1alpha1",
            "metadata": {"name": "db", "namespace": "shop", "labels": {"z": "1", "a": "2"}},
            "spec": {
                "template": {
                    "type": "Opaque",
                    "metadata": {"labels": {"tier": "back"}},
                    "data": {"url": "{{ fail \"CANARY\" }}"},
                },
                "encryptedData": items,
            },
        })
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn sealing_anew_changes_ciphertext_and_nothing_else() {
        let (new, old) = (held("new"), held("old"));
        let before = manifest(json!({
            "b": item(&old, ItemScope::Strict, "two"),
            "a": item(&new, ItemScope::Strict, "one"),
        }));
        let keys = holding(&[&new, &old]);
        let text = rewrap(before.to_string().as_bytes(), &keys, soon()).unwrap();
        let after: Value = serde_json::from_str(&text).unwrap();
        for name in ["a", "b"] {
            assert_ne!(after["spec"]["encryptedData"][name], before["spec"]["encryptedData"][name]);
        }
        let mut same = after.clone();
        same["spec"]["encryptedData"] = before["spec"]["encryptedData"].clone();
        assert_eq!(same.to_string(), before.to_string(), "the order stays, too");
        verify(text.as_bytes(), &holding(&[&new]), false, soon()).unwrap();
    }

    #[test]
    fn scope_and_place_are_those_of_the_object_and_never_those_of_its_template() {
        let key = held("key");
        let keys = holding(&[&key]);
        let mut wide = manifest(json!({"a": item(&key, ItemScope::ClusterWide, "one")}));
        wide["spec"]["template"]["metadata"] =
            json!({"annotations": {"sealedsecrets.bitnami.com/cluster-wide": "true"}});
        let answer = verify(wide.to_string().as_bytes(), &keys, true, soon());
        assert_eq!(answer, Err(Refusal::NotOpened("no key could decrypt secret (a)".to_owned())));
        assert!(rewrap(wide.to_string().as_bytes(), &keys, soon()).is_err());
        wide["metadata"]["annotations"] = json!({"sealedsecrets.bitnami.com/cluster-wide": "true"});
        verify(wide.to_string().as_bytes(), &keys, true, soon()).unwrap();
    }

    #[test]
    fn yaml_is_read_and_comes_back_as_json() {
        let key = held("key");
        let text = format!(
            "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata:\n  name: db\n  namespace: shop\nspec:\n  \
             encryptedData:\n    a: {}\n",
            item(&key, ItemScope::Strict, "one")
        );
        let after = rewrap(text.as_bytes(), &holding(&[&key]), soon()).unwrap();
        assert!(
            after.starts_with(r#"{"apiVersion":"bitnami.com/v1alpha1","kind":"SealedSecret""#),
            "{after}"
        );
    }

    #[test]
    fn what_is_no_single_sealed_secret_is_refused_without_its_content() {
        let keys = holding(&[&held("key")]);
        let good = manifest(json!({}));
        let mut other = good.clone();
        other["kind"] = "Secret".into();
        let cases = [
            String::new(),
            "CANARY".to_owned(),
            "{\"CANARY".to_owned(),
            "[]".to_owned(),
            other.to_string(),
            format!("{good}{good}"),
            "a: 1\n---\nb: 2\n".to_owned(),
            json!({"apiVersion": "v1", "kind": "List", "items": [good]}).to_string(),
            json!({"kind": "SealedSecret", "spec": {"encryptedData": {}}}).to_string(),
        ];
        for text in cases {
            for answer in [
                verify(text.as_bytes(), &keys, true, soon()).map(|()| String::new()),
                rewrap(text.as_bytes(), &keys, soon()),
            ] {
                let Err(Refusal::Unreadable(what)) = answer else { panic!("{text}: {answer:?}") };
                assert!(!what.contains("CANARY"), "{what}");
            }
        }
    }

    #[test]
    fn a_damaged_item_is_not_sealed_anew() {
        let key = held("key");
        let mut damaged = item(&key, ItemScope::Strict, "one");
        damaged.replace_range(360..364, "AAAA");
        for items in [json!({"a": damaged}), json!({"a": 5}), json!({"a": ""})] {
            let text = manifest(items).to_string();
            assert!(matches!(rewrap(text.as_bytes(), &holding(&[&key]), soon()), Err(Refusal::NotOpened(_))));
        }
    }

    #[test]
    fn without_keys_or_time_there_is_no_answer() {
        let key = held("key");
        let text = manifest(json!({"a": item(&key, ItemScope::Strict, "one")})).to_string();
        assert_eq!(verify(text.as_bytes(), &SealingKeys::default(), true, soon()), Err(Refusal::NoKey));
        let over = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        assert_eq!(verify(text.as_bytes(), &holding(&[&key]), true, over), Err(Refusal::Busy));
    }
}

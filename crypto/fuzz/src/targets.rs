//! What holds for any bytes: nothing panics, nothing hangs, what is sealed comes back to the byte, and no change to a
//! sealed file opens to other values.
//!
//! The same functions run under LLVM's fuzzer for as long as one likes, and under the tests for a moment.

use std::sync::OnceLock;

use lacre_crypto::document::Document;
use lacre_crypto::object::SealedSecret;
use lacre_crypto::object::sealed_secret::{ItemPlace, MissingKey, Resealed, SealedManifest};
use lacre_crypto::object::template::render;
use lacre_crypto::recipient::age::{AgeIdentity, AgeRecipient, read_identities};
use lacre_crypto::recipient::{Identity, Recipient, RecipientId, WrappedKey};
use lacre_crypto::sealed_item::{self, base64_text};
use lacre_crypto::sealing_key::{Certificate, SealingKey};
use lacre_crypto::value::{Form, Sealed};
use lacre_crypto::{
    EncryptOptions, Format, Groups, Layout, OpenFile, OpenOptions, SealedFile, SecretBytes, SecretText,
    Selector, SelectorKind, TreePath, WriteOptions,
};

/// Templates of any text, over values of any bytes.
fn templates(bytes: &[u8]) {
    let source = String::from_utf8_lossy(bytes);
    let values = std::collections::BTreeMap::from([("a".to_owned(), SecretBytes::new(bytes.to_vec()))]);
    for source in [format!("{{{{ {source} }}}}"), source.into_owned()] {
        if let Err(error) = render("fuzz", &source, &values, MissingKey::Zero) {
            assert!(error.to_string().starts_with("template: fuzz"));
        }
    }
}

/// A function that must bear any bytes.
pub(super) type Target = fn(&[u8]);

/// All targets by name.
pub(super) const ALL: &[(&str, Target)] = &[
    ("binary", |bytes| seal_and_open(bytes, Format::Binary)),
    ("dotenv", |bytes| seal_and_open(bytes, Format::Dotenv)),
    ("ini", |bytes| seal_and_open(bytes, Format::Ini)),
    ("json", |bytes| seal_and_open(bytes, Format::Json)),
    ("keys", keys),
    ("rewrapped-json", |bytes| rewrapped(bytes, Format::Json)),
    ("rewrapped-yaml", |bytes| rewrapped(bytes, Format::Yaml)),
    ("sealed-dotenv", |bytes| open_any(bytes, Format::Dotenv)),
    ("sealed-ini", |bytes| open_any(bytes, Format::Ini)),
    ("sealed-items", sealed_items),
    ("sealed-json", |bytes| open_any(bytes, Format::Json)),
    ("sealed-yaml", |bytes| open_any(bytes, Format::Yaml)),
    ("tampered", tampered),
    ("templates", templates),
    ("words", words),
    ("yaml", |bytes| seal_and_open(bytes, Format::Yaml)),
];

/// More text than this costs time and finds nothing new.
const INPUT_BYTES_MAX: usize = 64 * 1024;

/// Documents that [`tampered`] changes once they are sealed.
const SAMPLES: &[(&str, Format)] = &[
    ("a: 1\nb: two\nc: [x, {y: z}]\n", Format::Yaml),
    ("# c\na: # d\n  b: |\n    text\n  l:\n    - x # e\n    - y\nu_unencrypted: clear\n", Format::Yaml),
    ("a: &x v\nb: [*x, *x]\n---\nc: true\n...\n", Format::Yaml),
    ("{a: 1, b: {c: \"d\"}}\n", Format::Yaml),
    ("{\"a\": 1, \"b\": [\"x\", {\"c\": null}], \"d_unencrypted\": 2.5}", Format::Json),
    ("A=1\n# c\nB=two words\nC_unencrypted=x\n", Format::Dotenv),
    ("a = 1\n[s]\n; c\nb = two\nc_unencrypted = x\n", Format::Ini),
    ("any \u{0} bytes\n", Format::Binary),
];

fn identity() -> &'static AgeIdentity {
    static IDENTITY: OnceLock<AgeIdentity> = OnceLock::new();
    IDENTITY.get_or_init(AgeIdentity::generate)
}

fn seal(bytes: &[u8], format: Format) -> Option<String> {
    let recipient = identity().recipient();
    let options = EncryptOptions {
        groups: Groups::one(vec![&recipient]),
        selector: Selector::default(),
        mac_only_encrypted: false,
        bind: None,
        write: WriteOptions { now: lacre_crypto::Timestamp::UNIX_EPOCH, seal: true, allow_plaintext: true },
    };
    lacre_crypto::encrypt(&SecretBytes::new(bytes.to_vec()), format, &options).ok()
}

fn open(text: &str, format: Format) -> Option<OpenFile> {
    let file = SealedFile::read(text, format).ok()?;
    let key = file.unwrap_key(&[identity()]).ok()?;
    file.open(key, &OpenOptions::default()).ok()
}

/// What is sealed comes back to the byte; what is read can be written in every other format, or says why not.
fn seal_and_open(bytes: &[u8], format: Format) {
    if bytes.len() > INPUT_BYTES_MAX {
        return;
    }
    let Some(sealed) = seal(bytes, format) else { return };
    let opened = open(&sealed, format).expect("what was sealed opens");
    assert!(opened.plaintext().expose_secret() == bytes, "it came back as something else");
    for to in [Format::Yaml, Format::Json, Format::Dotenv, Format::Ini, Format::Binary] {
        let _ = opened.converted(to, &Layout::default());
    }
}

/// A file from anywhere opens or is refused.
fn open_any(bytes: &[u8], format: Format) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if text.len() <= INPUT_BYTES_MAX {
        let _ = open(text, format);
    }
}

/// A sealed file that was changed is refused, or still has the values that were sealed.
fn tampered(bytes: &[u8]) {
    static SEALED: OnceLock<Vec<String>> = OnceLock::new();
    let sealed = SEALED.get_or_init(|| {
        let text =
            |(text, format): &(&str, Format)| seal(text.as_bytes(), *format).expect("samples can be sealed");
        SAMPLES.iter().map(text).collect()
    });
    let Some((first, changes)) = bytes.split_first() else { return };
    let sample = usize::from(*first) % SAMPLES.len();
    let (original, format) = SAMPLES[sample];
    let mut text = sealed[sample].clone().into_bytes();
    changes.chunks_exact(6).take(16).for_each(|change| apply(change, &mut text));
    let Ok(text) = String::from_utf8(text) else { return };
    let Some(opened) = open(&text, format) else { return };
    let content = opened.plaintext().expose_secret();
    assert!(values(content, format) == values(original.as_bytes(), format), "other values: {text}");
}

/// One change: what is done, where, how much, and where else.
fn apply(change: &[u8], text: &mut Vec<u8>) {
    let place = |high: u8, low: u8| (usize::from(high) << 8 | usize::from(low)) % (text.len() + 1);
    let (start, other) = (place(change[1], change[2]), place(change[4], change[5]));
    let end = (start + usize::from(change[3])).min(text.len());
    match change[0] % 6 {
        0 => drop(text.drain(start..end)),
        1 => {
            let copy = text[start..end].to_vec();
            text.splice(other..other, copy);
        }
        2 if start < text.len() => text[start] = change[3],
        3 => text.insert(start, change[3]),
        4 if start < text.len() && other < text.len() => text.swap(start, other),
        // Whole lines, as git merges them.
        5 => {
            let line =
                |at: usize| text[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |found| found + 1);
            let (from, to) = (line(start), line(other));
            let length = text[from..].iter().position(|byte| *byte == b'\n').map_or(0, |found| found + 1);
            let copy: Vec<u8> = text[from..from + length].to_vec();
            text.splice(to..to, copy);
        }
        _ => {}
    }
}

fn values(content: &[u8], format: Format) -> Vec<(String, Vec<u8>)> {
    if format == Format::Binary {
        return vec![(String::new(), content.to_vec())];
    }
    let text = std::str::from_utf8(content).expect("what opened is text");
    let document = Document::read(text, format).expect("what opened can be read");
    let value = |leaf: &lacre_crypto::document::Leaf| {
        (format!("{:?}", leaf.value.kind()), leaf.value.bytes().to_vec())
    };
    document.leaves.iter().map(value).collect()
}

/// Recipients, key files and wrapped keys.
fn keys(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = AgeRecipient::parse(text).map(|recipient| recipient.id());
    let _ = read_identities(&SecretText::from(text));
    let recipient = RecipientId::Age(identity().recipient().to_string());
    let wrapped = WrappedKey { recipient, enc: text.to_owned(), created_at: None };
    let _ = identity().unwrap(&wrapped);
}

fn sealing_key() -> &'static SealingKey {
    static KEY: OnceLock<SealingKey> = OnceLock::new();
    KEY.get_or_init(|| SealingKey::generate(2048).expect("the system has randomness"))
}

/// Items, keys, certificates and objects from anywhere; an item that was changed opens to its value or not at all.
fn sealed_items(bytes: &[u8]) {
    static ITEM: OnceLock<String> = OnceLock::new();
    let item = ITEM.get_or_init(|| {
        let value = SecretBytes::from("a value of some length");
        sealed_item::seal(sealing_key().public(), b"shop/db", &value).expect("the system has randomness")
    });
    let mut changed = item.clone().into_bytes();
    bytes.chunks_exact(6).take(4).for_each(|change| apply(change, &mut changed));
    if let Ok(changed) = String::from_utf8(changed)
        && let Ok(opened) = sealed_item::open(&[sealing_key()], b"shop/db", &changed)
    {
        assert_eq!(opened.plaintext.as_text(), Some("a value of some length"));
    }
    if let Ok(object) = serde_json::from_slice(bytes)
        .map_err(drop)
        .and_then(|value: serde_json::Value| SealedSecret::from_json(&value).map_err(drop))
        && let Err(error) = object.verify(&[sealing_key()], true)
    {
        let suspect = ItemPlace { namespace: object.name.clone(), name: object.namespace.clone() };
        let _ = object.diagnose(&error, &[sealing_key()], &[suspect]).iter().map(ToString::to_string).count();
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    assert!(base64_text::decode(text).err().is_none_or(|at| at <= text.len()), "the place is in the text");
    let _ = SealingKey::all_from_pem(&SecretText::from(text));
    let _ = Certificate::from_pem(text);
}

/// A manifest of which each item was replaced has these items and is the same otherwise, or is refused. The input
/// is a manifest, and once more what stands in the place of the items.
fn rewrapped(bytes: &[u8], format: Format) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if text.len() > INPUT_BYTES_MAX {
        return;
    }
    let within = match format {
        Format::Json => format!(
            "{{\"apiVersion\":\"bitnami.com/v1alpha1\",\"kind\":\"SealedSecret\",\"spec\":{{\"encryptedData\":{text}}}}}"
        ),
        _ => format!(
            "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nspec:\n  encryptedData:\n    {}\n",
            text.replace('\n', "\n    ")
        ),
    };
    for text in [text, &within] {
        let Ok(manifest) = SealedManifest::read(text, format) else { continue };
        let fresh = |object: &lacre_crypto::object::sealed_secret::SealedObject| {
            let names = object.secret.items.keys();
            // As long as the item of a value of some bytes under RSA-2048.
            let items = names.map(|name| (name.clone(), "AQAB".repeat(93))).collect();
            Resealed { items, ..Resealed::default() }
        };
        let resealed: Vec<_> = manifest.objects().iter().map(fresh).collect();
        // What it gives was read again by itself; that it gives something at all is for the tests to say.
        let Ok(replaced) = manifest.with(&resealed) else { continue };
        let again = SealedManifest::read(&replaced, format).expect("what was replaced can be read");
        for (object, resealed) in again.objects().iter().zip(&resealed) {
            let item = |name: &String| base64_text::decode(&object.secret.items[name]).ok();
            assert!(resealed.items.iter().all(|(name, text)| item(name) == base64_text::decode(text).ok()));
        }
    }
}

/// Small texts with a syntax of their own: sealed values, patterns, paths.
fn words(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let strict = Sealed::parse(text, Form::Strict);
    assert!(
        strict.is_err() || Sealed::parse(text, Form::Lax).is_ok(),
        "the lax form takes what the strict one does"
    );
    let _ = Selector::new(SelectorKind::EncryptedRegex, text);
    let _ = TreePath::parse(text);
}

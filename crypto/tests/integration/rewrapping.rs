//! Manifests whose ciphertext is replaced: nothing else of their text may change.

use std::ops::Range;

use lacre_crypto::object::sealed_secret::{Extent, MissingKey, Resealed, SealedManifest, UnsealOptions};
use lacre_crypto::sealed_item::{open, seal};
use lacre_crypto::sealing_key::SealingKey;
use lacre_crypto::{Format, SecretBytes};

use crate::sealed_items::key;

const OPTIONS: UnsealOptions =
    UnsealOptions { accept_v1: true, missing_key: MissingKey::Error, render: false, deadline: None };
/// Where a test's text has an item.
const MARK: &str = "ITEM";

/// `pattern` with an item under `key` for each mark, written as `spell` does, and where they are.
fn filled(pattern: &str, key: &SealingKey, spell: &dyn Fn(&str) -> String) -> (String, Vec<Range<usize>>) {
    let mut parts = pattern.split(MARK);
    let mut text = parts.next().unwrap().to_owned();
    let mut places = Vec::new();
    for (number, part) in parts.enumerate() {
        let value = SecretBytes::new(vec![b'v'; number * 7]);
        let start = text.len();
        text.push_str(&spell(&seal(key.public(), b"shop/db", &value).unwrap()));
        places.push(start..text.len());
        text.push_str(part);
    }
    (text, places)
}

fn resealed(manifest: &SealedManifest, keys: &[&SealingKey], newest: &SealingKey) -> Vec<Resealed> {
    let objects = manifest.objects().iter();
    objects.map(|object| object.secret.reseal(keys, newest.public(), Extent::Outdated).unwrap()).collect()
}

/// Whether `fresh` is `text` but for characters of base64 in `places`.
fn is_same_elsewhere(text: &str, fresh: &str, places: &[Range<usize>]) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    let mut bytes = text.bytes().zip(fresh.bytes()).enumerate();
    text.len() == fresh.len()
        && bytes.all(|(at, (old, new))| {
            let is_item = places.iter().any(|place| place.contains(&at));
            old == new || (is_item && is_digit(old) && is_digit(new))
        })
}

/// Seals `pattern`, re-wraps it, and compares all but the ciphertext to the byte.
fn check(pattern: &str, format: Format, spell: &dyn Fn(&str) -> String) {
    let (old, new) = (key("rsa-2048"), key("rsa-2048-b"));
    let (text, places) = filled(pattern, &old, spell);
    let manifest = SealedManifest::read(&text, format).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let fresh = manifest.with(&resealed(&manifest, &[&old, &new], &new)).unwrap();
    assert!(is_same_elsewhere(&text, &fresh, &places), "{text}\n{fresh}");
    let again = SealedManifest::read(&fresh, format).unwrap();
    let items: usize = again.objects().iter().map(|object| object.secret.items.len()).sum();
    assert_eq!(items, pattern.matches(MARK).count());
    for object in again.objects() {
        assert!(object.secret.open(&[&new], &OPTIONS).is_ok());
        assert!(object.secret.open(&[&old], &OPTIONS).is_err());
    }
    // A second time there is nothing to do.
    let kept = again.with(&resealed(&again, &[&old, &new], &new)).unwrap();
    assert_eq!(kept, fresh);
}

const HEAD: &str =
    "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: db, namespace: shop}\n";

#[test]
fn comments_order_quotes_and_everything_else_of_yaml_stay() {
    let plain = |item: &str| item.to_owned();
    let body = "# who asked\nspec:\n  # items\n  encryptedData:   # of the shop\n    z: ITEM # last year's\n    \"a\":   'ITEM'\n\n    b: \"ITEM\"\n  template:\n    data:\n      conf: |\n        user={{ .a }}   # kept\n\n    metadata: {labels: {a: b,   c: 'd'}}\nunknown: [1, 2]\n";
    check(&format!("{HEAD}{body}"), Format::Yaml, &plain);
    check(&format!("\u{feff}---\n{HEAD}{body}...\n"), Format::Yaml, &plain);
    check(&format!("{HEAD}{body}").replace('\n', "\r\n"), Format::Yaml, &plain);
    check(
        &format!("{HEAD}spec: {{encryptedData: {{a: ITEM, b: \"ITEM\", 'c': 'ITEM'}}}}"),
        Format::Yaml,
        &plain,
    );
    check(&format!("{HEAD}spec:\n  encryptedData:\n    k: ITEM"), Format::Yaml, &plain);
    check(
        &format!("{HEAD}spec:\n  encryptedData:\n    k:\n      ITEM\n    l: &x ITEM\n"),
        Format::Yaml,
        &plain,
    );
}

#[test]
fn values_that_are_broken_over_lines_stay_so() {
    for width in [60, 64, 76] {
        for (header, line_break) in [("|", "\n"), ("|-", "\n"), ("|+", "\n"), ("|2-", "\n"), ("|", "\r\n")] {
            // A block's lines are two further in than its key.
            let indent = if header.contains('2') { 6 } else { 8 };
            let spell = |item: &str| {
                let lines = item.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap());
                let space = " ".repeat(indent);
                let lines: Vec<_> = lines.map(|line| format!("{space}{line}")).collect();
                format!("{header} # long{line_break}{}", lines.join(line_break))
            };
            let pattern = format!(
                "{HEAD}spec:\n  encryptedData:\n    a: ITEM\n    b: ITEM\n\n    c: ITEM\n  template: {{}}\n"
            );
            check(&pattern.replace('\n', line_break), Format::Yaml, &spell);
        }
    }
    let folded = |item: &str| format!(">-\n      {item}");
    check(&format!("{HEAD}spec:\n  encryptedData:\n    a: ITEM\n    b: ITEM\n"), Format::Yaml, &folded);
    let continued = |item: &str| {
        let lines = item.as_bytes().chunks(70).map(|line| std::str::from_utf8(line).unwrap());
        format!("\"{}\"", lines.collect::<Vec<_>>().join("\\\n      "))
    };
    check(&format!("{HEAD}spec:\n  encryptedData:\n    a: ITEM\n    b: ITEM\n"), Format::Yaml, &continued);
    let escaped = |item: &str| {
        let lines = item.as_bytes().chunks(70).map(|line| std::str::from_utf8(line).unwrap());
        format!("\"{}\\n\"", lines.collect::<Vec<_>>().join("\\n"))
    };
    check(&format!("{HEAD}spec:\n  encryptedData:\n    a: ITEM\n"), Format::Yaml, &escaped);
}

#[test]
fn streams_and_lists_are_gone_through() {
    let plain = |item: &str| item.to_owned();
    let object = format!("{HEAD}spec:\n  encryptedData:\n    k: ITEM\n    l: ITEM\n");
    let other = "apiVersion: v1\nkind: ConfigMap\ndata: {encryptedData: x}\n";
    check(&format!("{object}---\n{other}---\n# none\n---\n{object}"), Format::Yaml, &plain);
    let indented = object.trim_end().replace('\n', "\n  ");
    check(&format!("apiVersion: v1\nkind: List\nitems:\n- {indented}\n- {indented}\n"), Format::Yaml, &plain);
    let json = r#"{"kind":"SealedSecret","apiVersion":"bitnami.com/v1alpha1",
  "metadata": {"name": "db", "namespace": "shop"},  "spec": {"template": {"data": null}, "encryptedData": {"k": "ITEM",
    "l":"ITEM"}}}"#;
    check(json, Format::Json, &plain);
    check(&format!("{json}\n{json}\n\n{json}"), Format::Json, &plain);
    check(&format!("{{\"kind\": \"List\", \"items\": [{json}, {{}}]}}\n"), Format::Json, &plain);
}

#[test]
fn the_blob_of_the_first_version_is_replaced_in_its_place() {
    let (old, new) = (key("rsa-2048"), key("rsa-2048-b"));
    let pattern = format!("{HEAD}spec:\n  data: 'ITEM'   # since 2018\n  encryptedData: {{}}\n");
    let (text, places) = filled(&pattern, &old, &|item| item.to_owned());
    let manifest = SealedManifest::read(&text, Format::Yaml).unwrap();
    let fresh = manifest.with(&resealed(&manifest, &[&old], &new)).unwrap();
    assert!(fresh != text && is_same_elsewhere(&text, &fresh, &places), "{fresh}");
    let again = SealedManifest::read(&fresh, Format::Yaml).unwrap();
    let blob = again.objects()[0].secret.legacy_data.clone().unwrap();
    assert!(open(&[&new], b"shop/db", &blob).is_ok());
}

#[test]
fn an_object_that_says_something_else_than_asked_for_is_not_written() {
    let item = |name: &str, text: &str| Resealed {
        items: [(name.to_owned(), text.to_owned())].into(),
        ..Resealed::default()
    };
    let text = format!("{HEAD}spec:\n  encryptedData:\n    a: AgB1\n    b: >\n      AgB1\n      AgB1\n");
    let manifest = SealedManifest::read(&text, Format::Yaml).unwrap();
    assert!(manifest.with(&[item("a", "AgB2")]).is_ok());
    // An item that is not there, one that would become another value, and one whose lines are folded into blanks.
    for resealed in [item("c", "AgB2"), item("a", "x: y"), item("a", "AgB2 # x"), item("b", "AgB2AgB3")] {
        assert!(manifest.with(std::slice::from_ref(&resealed)).is_err(), "{resealed:?}");
    }
}

#[test]
fn a_larger_key_adds_lines_and_a_smaller_one_takes_them() {
    let (small, large) = (key("rsa-2048"), key("rsa-3072"));
    let spell = |item: &str| {
        let lines = item.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap());
        format!("|\n      {}", lines.collect::<Vec<_>>().join("\n      "))
    };
    let pattern = format!("{HEAD}spec:\n  encryptedData:\n    a: ITEM\n    b: ITEM # no\n  template: {{}}\n");
    let pattern = pattern.replace(" # no", "");
    for (old, new) in [(&small, &large), (&large, &small)] {
        let (text, _) = filled(&pattern, old, &spell);
        let manifest = SealedManifest::read(&text, Format::Yaml).unwrap();
        let fresh = manifest.with(&resealed(&manifest, &[old], new)).unwrap();
        let again = SealedManifest::read(&fresh, Format::Yaml).unwrap();
        assert!(again.objects()[0].secret.open(&[new], &OPTIONS).is_ok(), "{fresh}");
        let widths: Vec<_> = fresh.lines().filter(|line| line.len() > 60).map(str::len).collect();
        assert!(widths.iter().all(|width| *width <= 70), "{fresh}");
        assert!(fresh.starts_with(HEAD) && fresh.ends_with("\n  template: {}\n"), "{fresh}");
    }
}

#[test]
fn what_cannot_be_re_wrapped_in_place_is_refused_with_its_line() {
    let item = "AgB1";
    for (text, line, part) in [
        (format!("{HEAD}spec:\n  encryptedData:\n    a: &x {item}\n    b: *x\n"), 7, "the item b"),
        (format!("{HEAD}x: &x {{a: {item}}}\nspec:\n  encryptedData: *x\n"), 6, "alias"),
        (format!("{HEAD}spec:\n  encryptedData:\n    a: 5\n"), 6, "the item a"),
        (format!("{HEAD}spec:\n  encryptedData:\n    a:\n"), 6, "the item a"),
        (format!("{HEAD}spec:\n  encryptedData: [a]\n"), 5, "no mapping"),
        (format!("{HEAD}spec:\n  encryptedData:\n    a: !!binary {item}\n"), 6, "the item a"),
        (format!("{HEAD}spec: 5\n"), 1, "its spec is not an object"),
        (format!("a: 1\n---\n{HEAD}spec: {{template: {{data: {{k: 5}}}}}}\n"), 3, "spec.template.data.k"),
        (format!("{HEAD}spec: {{a: b\n"), 5, ""),
        ("- kind: SealedSecret\n".to_owned(), 1, "root must be a mapping"),
    ] {
        let error = SealedManifest::read(&text, Format::Yaml).err().unwrap_or_else(|| panic!("{text}"));
        assert!(error.reason.contains(part), "{error}");
        assert!(error.line.abs_diff(line) <= 1, "{error}, not {line}\n{text}");
    }
    let error = SealedManifest::read("{\"a\": \"SealedSecret\"}\n{\"b\": }\n", Format::Json).err().unwrap();
    assert_eq!(error.line, 2);
}

#[test]
fn other_manifests_have_nothing_to_re_wrap() {
    for text in [
        "a: 1\n",
        "- a list\n",
        "{{ no YAML }} [\n",
        "apiVersion: bitnami.com/v1alpha1\nkind: SealedSecretX\nspec: {encryptedData: [1]}\n",
        "apiVersion: bitnami.com/v1\nkind: SealedSecret\nspec: {encryptedData: [1]}\n",
        "kind: ConfigMap\ndata:\n  x: |\n    apiVersion: bitnami.com/v1alpha1\n    kind: SealedSecret\n",
    ] {
        let manifest = SealedManifest::read(text, Format::Yaml).unwrap();
        assert!(manifest.objects().is_empty(), "{text}");
        assert_eq!(manifest.with(&[]).unwrap(), text);
    }
}

//! What kubeseal seals we open, and the reverse: every scope, every kind of content, both forms.

use std::fs;

use serde_json::Value;
use xtask::process::Tool;

use super::{both, keys};
use crate::sandbox::Sandbox;

const SCOPES: [&str; 3] = ["strict", "namespace-wide", "cluster-wide"];

/// A Secret with values of every kind, in JSON, and its `data`.
fn secret() -> (String, Value) {
    let binary: Vec<u8> = (0..=255).collect();
    let large: Vec<u8> = (0..1024 * 1024u32).map(|index| (index % 251) as u8).collect();
    let values: [(&str, &[u8]); 6] = [
        ("binary", &binary),
        ("byte", b"x"),
        ("crlf", b"one\r\ntwo\r\n"),
        ("empty", b""),
        ("large", &large),
        ("utf-8", "schl\u{fc}ssel \u{1f511}\n".as_bytes()),
    ];
    let data: serde_json::Map<String, Value> =
        values.iter().map(|(name, value)| ((*name).to_owned(), base64(value).into())).collect();
    let object = serde_json::json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "all", "namespace": "shop"}, "data": data,
    });
    (object.to_string(), Value::Object(data))
}

/// Base64, since neither side of this test shall be ours.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for index in 0..4 {
            match index <= chunk.len() {
                true => text.push(char::from(LETTERS[(word >> (18 - 6 * index) & 63) as usize])),
                false => text.push('='),
            }
        }
    }
    text
}

#[test]
fn what_one_seals_the_other_opens() {
    let sandbox = Sandbox::new();
    let programs = both(&sandbox);
    let (secret, data) = secret();
    fs::write(sandbox.work().join("secret.json"), &secret).unwrap();
    for scope in SCOPES {
        for form in ["json", "yaml"] {
            for (sealing, opening) in [(0, 1), (1, 0)] {
                let sealed = Tool::new(&programs[sealing])
                    .args(["-o", form, "--scope", scope, "-f"])
                    .arg(sandbox.work().join("secret.json"))
                    .arg("--cert")
                    .arg(keys().join("sealing.crt"))
                    .run()
                    .unwrap();
                let sealed = sealed.success().unwrap();
                let opened = Tool::new(&programs[opening])
                    .args(["--recovery-unseal", "--recovery-private-key"])
                    .arg(keys().join("sealing.key"))
                    .stdin(sealed)
                    .run()
                    .unwrap();
                let mut opened: Value = serde_json::from_slice(&opened.success().unwrap()).unwrap();
                // Theirs prints an empty value as null, which deletes it where the result is applied.
                if opening == 0 {
                    assert_eq!(opened["data"]["empty"].take(), Value::Null);
                    opened["data"]["empty"] = "".into();
                }
                assert!(opened["data"] == data, "{scope}, {form}, sealed by {sealing}");
            }
        }
    }
}

#[test]
fn a_value_alone_opens_where_it_was_sealed_for_and_nowhere_else() {
    let sandbox = Sandbox::new();
    let programs = both(&sandbox);
    for (sealing, opening) in [(0, 1), (1, 0)] {
        let item = Tool::new(&programs[sealing])
            .args(["--raw", "-n", "shop", "--name", "db", "--cert"])
            .arg(keys().join("sealing.crt"))
            .stdin("hunter2\n")
            .run()
            .unwrap();
        let item = String::from_utf8(item.success().unwrap()).unwrap();
        for (name, opens) in [("db", true), ("other", false)] {
            let object = serde_json::json!({
                "apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret",
                "metadata": {"name": name, "namespace": "shop"}, "spec": {"encryptedData": {"k": item}},
            });
            let opened = Tool::new(&programs[opening])
                .args(["--recovery-unseal", "--recovery-private-key"])
                .arg(keys().join("sealing.key"))
                .stdin(object.to_string())
                .run()
                .unwrap();
            assert_eq!(opened.code == Some(0), opens, "{name}: {}", opened.stderr_text());
            assert_eq!(opened.stdout_text().contains("aHVudGVyMgo="), opens);
        }
    }
}

#[test]
fn all_keys_of_a_bundle_and_of_backups_are_tried_and_all_documents_opened() {
    let sandbox = Sandbox::new();
    let [stock, ours] = both(&sandbox);
    let [key, other] =
        ["sealing.key", "sealing-other.key"].map(|name| fs::read_to_string(keys().join(name)).unwrap());
    let certificate = fs::read_to_string(keys().join("sealing.crt")).unwrap();
    let backup =
        |pem: &str| serde_json::json!({"data": {"tls.key": base64(pem.as_bytes()), "tls.crt": "eA=="}});
    let list = serde_json::json!({"metadata": {}, "items": [backup(&other), backup(&key)]});
    let files = [
        ("bundle.pem", format!("{certificate}{other}{key}")),
        ("list.json", list.to_string()),
        ("one.json", backup(&key).to_string()),
        ("two.yaml", format!("---\n{}\n---\n{}\n", backup(&other), backup(&key))),
    ];
    let secret = |name: &str| {
        format!("kind: Secret\nmetadata: {{name: {name}, namespace: shop}}\nstringData: {{a: b}}\n")
    };
    let sealing = Tool::new(&stock).args(["-o", "yaml", "--cert"]).arg(keys().join("sealing.crt"));
    let sealing = sealing.stdin(format!("{}---\n{}", secret("one"), secret("two")));
    let sealed = sealing.run().unwrap().success().unwrap();
    for (name, content) in files {
        sandbox.write(name, &content);
        let opening =
            Tool::new(&ours).args(["-o", "yaml", "--recovery-unseal", "--recovery-private-key", name]);
        let opened = opening.dir(sandbox.work()).stdin(sealed.clone()).run().unwrap();
        let opened = String::from_utf8(opened.success().unwrap()).unwrap();
        assert_eq!(opened.matches("  a: Yg==\n").count(), 2, "{name}: {opened}");
    }
}

/// Texts made of what printers stumble over, always the same ones.
fn odd_texts(count: usize) -> Vec<String> {
    const PARTS: [&str; 40] = [
        "a",
        "b ",
        " ",
        "  ",
        "\n",
        "\n\n",
        ": ",
        ":",
        " #",
        "#",
        "- ",
        "-",
        "?",
        "\"",
        "'",
        "{",
        "]",
        "@",
        "%",
        "&",
        "*",
        "|",
        ">",
        "\t",
        "\u{e9}",
        "\u{1f600}",
        "\u{a0}",
        "\r",
        "true",
        "n",
        "1",
        "0x1f",
        "1.5",
        "1e3",
        "~",
        "12:30",
        "2024-01-02",
        "<<",
        "long words that go on and on until the line is full ",
        "---",
    ];
    let mut state: u64 = 40;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    (0..count).map(|_| (0..next(7)).map(|_| PARTS[next(PARTS.len())]).collect()).collect()
}

#[test]
fn odd_texts_are_printed_the_same() {
    let sandbox = Sandbox::new();
    let programs = both(&sandbox);
    let texts = odd_texts(600);
    let annotations: serde_json::Map<String, Value> =
        texts.iter().enumerate().map(|(index, text)| (format!("a{index}"), text.as_str().into())).collect();
    let secret = serde_json::json!({
        "kind": "Secret",
        "metadata": {"name": "odd", "namespace": "shop", "annotations": annotations, "finalizers": texts},
        "stringData": {"a": "b"},
    });
    for form in ["yaml", "json"] {
        let [stock, ours] = [0, 1].map(|side| {
            let tool =
                Tool::new(&programs[side]).args(["-o", form, "--cert"]).arg(keys().join("sealing.crt"));
            let printed = tool.stdin(secret.to_string()).run().unwrap().success().unwrap();
            super::without_values(&printed)
        });
        for (stock, ours) in stock.lines().zip(ours.lines()) {
            assert_eq!(stock, ours, "{form}");
        }
        assert_eq!(stock.len(), ours.len());
    }
}

//! `/v1/verify` and `/v1/rotate`: what they answer, and what they never do.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lacre_crypto::object::sealed_secret::ItemScope;
use lacre_crypto::sealed_item;
use lacre_crypto::sealing_key::Certificate;
use lacre_crypto::secret::SecretBytes;
use serde_json::{Value, json};
use xtask::http::Answer;

use crate::harness::World;

const CLUSTER_WIDE: &str = "sealedsecrets.bitnami.com/cluster-wide";

/// Seals for what the controller says to seal for.
fn item(world: &World, label: &[u8], plaintext: &str) -> Result<String> {
    let certificate = Certificate::from_pem(&world.ask("/v1/cert.pem")?.body)?;
    let plaintext = SecretBytes::new(plaintext.as_bytes().to_vec());
    Ok(sealed_item::seal(certificate.public(), label, &plaintext)?)
}

fn strict() -> Vec<u8> {
    ItemScope::Strict.label("shop", "db")
}

fn manifest(items: Value) -> Value {
    json!({
        "apiVersion": "bitnami.com/v1alpha1",
        "kind": "SealedSecret",
        "metadata": {"name": "db", "namespace": "shop", "labels": {"app": "shop"}},
        "spec": {
            "encryptedData": items,
            "template": {
                "metadata": {"labels": {"tier": "back"}},
                "data": {"url": "{{ .a }}{{ fail \"rendered\" }}"},
            },
        },
    })
}

/// Asks as somebody of whom the API server's proxy says that he is `who`.
fn ask(world: &World, path: &str, who: &str, body: &str) -> Result<Answer> {
    world.post(path, &[("X-Forwarded-For", who)], body)
}

/// A world in which nobody is asked to slow down.
fn world() -> Result<World> {
    World::with_flags(&["--rate-limit=1000", "--rate-limit-burst=1000"])
}

#[test]
fn verify_says_whether_an_object_opens_and_never_renders() -> Result<()> {
    let world = world()?;
    let good = manifest(json!({"a": item(&world, &strict(), "one")?}));
    let elsewhere = manifest(json!({"a": item(&world, b"shop/other", "one")?}));
    let both = manifest(json!({"a": good["spec"]["encryptedData"]["a"], "b": "AgAA"}));
    for (object, status) in [(&good, 200), (&elsewhere, 409), (&both, 409)] {
        let answer = ask(&world, "/v1/verify", "", &object.to_string())?;
        assert_eq!(answer.status, status, "{answer:?}");
    }
    let yaml = yaml_serde::to_string(&good)?;
    assert_eq!(ask(&world, "/v1/verify", "", &yaml)?.status, 200);
    Ok(())
}

#[test]
fn rotate_changes_ciphertext_and_nothing_else() -> Result<()> {
    let world = world()?;
    let before =
        manifest(json!({"b": item(&world, &strict(), "two")?, "a": item(&world, &strict(), "one")?}));
    let answer = ask(&world, "/v1/rotate", "", &before.to_string())?;
    assert_eq!(answer.status, 200, "{answer:?}");
    let after: Value = serde_json::from_str(&answer.body)?;
    let mut same = after.clone();
    for name in ["a", "b"] {
        assert_ne!(after["spec"]["encryptedData"][name], before["spec"]["encryptedData"][name]);
        same["spec"]["encryptedData"][name] = before["spec"]["encryptedData"][name].clone();
    }
    assert_eq!(same.to_string(), before.to_string());
    assert_eq!(ask(&world, "/v1/verify", "", &answer.body)?.status, 200);
    Ok(())
}

#[test]
fn the_scope_of_a_template_opens_nothing() -> Result<()> {
    let world = world()?;
    let mut object = manifest(json!({"a": item(&world, b"", "one")?}));
    object["spec"]["template"]["metadata"]["annotations"] = json!({CLUSTER_WIDE: "true"});
    for path in ["/v1/verify", "/v1/rotate"] {
        assert_eq!(ask(&world, path, "", &object.to_string())?.status, 409, "{path}");
    }
    object["metadata"]["annotations"] = json!({CLUSTER_WIDE: "true"});
    let rotated = ask(&world, "/v1/rotate", "", &object.to_string())?;
    let rotated: Value = serde_json::from_str(&rotated.body)?;
    assert_eq!(rotated["metadata"], object["metadata"]);
    assert_eq!(ask(&world, "/v1/verify", "", &rotated.to_string())?.status, 200);
    // As a scope that its items do not have, so a narrower one.
    object["metadata"]["annotations"] = json!({CLUSTER_WIDE: "True"});
    assert_eq!(ask(&world, "/v1/rotate", "", &object.to_string())?.status, 409);
    Ok(())
}

#[test]
fn what_is_no_single_sealed_secret_is_refused() -> Result<()> {
    let world = world()?;
    let good = manifest(json!({}));
    let mut secret = good.clone();
    secret["kind"] = "Secret".into();
    secret["stringData"] = json!({"a": "CANARY"});
    let cases = [
        String::new(),
        "CANARY".to_owned(),
        "{\"CANARY\"".to_owned(),
        secret.to_string(),
        format!("{good}\n{good}"),
        format!("{}---\n{}", yaml_serde::to_string(&good)?, yaml_serde::to_string(&good)?),
        json!({"apiVersion": "v1", "kind": "List", "items": [good]}).to_string(),
    ];
    for path in ["/v1/verify", "/v1/rotate"] {
        for body in &cases {
            let answer = ask(&world, path, "", body)?;
            assert_eq!(answer.status, 500, "{path} {body}");
            assert!(!answer.body.contains("CANARY"), "{answer:?}");
        }
    }
    assert!(!world.log(0)?.contains("CANARY"));
    Ok(())
}

#[test]
fn a_body_beyond_the_limit_is_refused() -> Result<()> {
    let world = world()?;
    let good = manifest(json!({"a": item(&world, &strict(), "one")?})).to_string();
    let padded = |bytes: usize| format!("{good}{}", " ".repeat(bytes - good.len()));
    for path in ["/v1/verify", "/v1/rotate"] {
        assert_eq!(ask(&world, path, "", &padded(2 * 1024 * 1024))?.status, 200, "{path}");
        assert_eq!(ask(&world, path, "", &padded(2 * 1024 * 1024 + 1))?.status, 413, "{path}");
    }
    Ok(())
}

#[test]
fn a_client_is_slowed_down_by_what_the_last_proxy_says_of_it() -> Result<()> {
    // One request a second in the long run, however slow the machine.
    let world = World::with_flags(&["--rate-limit=1", "--rate-limit-burst=2"])?;
    let body = manifest(json!({})).to_string();
    for path in ["/v1/verify", "/v1/rotate"] {
        let mut refused = None;
        for number in 0..100 {
            // The first entry is the client's own word.
            let answer = ask(&world, path, &format!("10.0.0.{number}, 192.0.2.1"), &body)?;
            if answer.status == 429 {
                refused = Some((number, answer));
                break;
            }
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        let (number, answer) = refused.context("nobody was refused")?;
        ensure!(number >= 3, "only {number} requests were taken");
        assert_eq!(answer.body, "limit exceeded\n");
        assert_eq!(ask(&world, path, "192.0.2.1, 192.0.2.2", &body)?.status, 200, "another client");
    }
    let series =
        r#"sealed_secrets_controller_http_requests_total{path="/v1/rotate",code="429",method="post"}"#;
    assert_eq!(world.metric(series)?, Some(1.0));
    Ok(())
}

#[test]
fn limits_are_told_in_the_headers_of_sealed_secrets() -> Result<()> {
    let world = World::with_flags(&["--rate-limit=1", "--rate-limit-burst=0"])?;
    let body = manifest(json!({})).to_string();
    let taken = world.post("/v1/verify", &[], &body)?.head;
    for header in ["x-ratelimit-limit: 1", "x-ratelimit-remaining: 0", "x-ratelimit-reset: 1"] {
        assert!(taken.contains(header), "{header}\n{taken}");
    }
    assert!(!taken.contains("retry-after"), "{taken}");
    let refused = world.until("a refusal", || {
        let answer = world.post("/v1/verify", &[], &body)?;
        Ok((answer.status == 429).then_some(answer.head))
    })?;
    assert!(refused.contains("retry-after: 1"), "{refused}");
    let certificate = world.ask("/v1/cert.pem")?.head;
    assert!(certificate.contains("content-type: application/x-pem-file"), "{certificate}");
    let rotated = world.post("/v1/rotate", &[], &body)?.head;
    assert!(rotated.contains("content-type: application/json"), "{rotated}");
    Ok(())
}

#[test]
fn where_a_token_is_asked_for_only_one_of_this_cluster_counts() -> Result<()> {
    let mut world = World::without_controller()?;
    world.allow_token_reviews()?;
    world.start(&["--require-token", "--rate-limit=1000", "--rate-limit-burst=1000"])?;
    let body = manifest(json!({"a": item(&world, &strict(), "one")?})).to_string();
    let token = world.admin().run(["-n", &world.home, "create", "token", "lacre-controller"])?;
    let token = String::from_utf8(token)?;
    let with = |value: &str| world.post("/v1/verify", &[("Authorization", value)], &body);
    assert_eq!(with(&format!("Bearer {}", token.trim()))?.status, 200);
    for wrong in ["Bearer x", "Bearer ", "Basic x", ""] {
        assert_eq!(with(wrong)?.status, 401, "{wrong}");
    }
    assert_eq!(world.post("/v1/rotate", &[], &body)?.status, 401);
    assert_eq!(world.ask("/v1/cert.pem")?.status, 200, "the certificate is for everybody");
    world.start(&["--require-token", "--proxy-address=127.0.0.1"])?;
    assert_eq!(world.post("/v1/verify", &[], &body)?.status, 200, "its proxy has asked already");
    Ok(())
}

#[test]
fn other_paths_are_not_there_and_metrics_are_elsewhere() -> Result<()> {
    let world = world()?;
    for path in ["/", "/v1", "/v1/keys", "/metrics/", "/v1/cert.pem/"] {
        assert_eq!(world.ask(path)?.status, 404, "{path}");
    }
    assert_eq!(world.post("/metrics", &[], "")?.status, 404);
    Ok(())
}

#[test]
fn a_request_that_does_not_come_does_not_hold_its_connection() -> Result<()> {
    let world = World::with_flags(&["--read-timeout=300ms"])?;
    for begun in
        ["", "POST /v1/verify HT", "POST /v1/verify HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{"]
    {
        let mut connection = TcpStream::connect(("127.0.0.1", world.port()?))?;
        // Longer than any machine is slow; the end of the connection is what is waited for.
        connection.set_read_timeout(Some(Duration::from_secs(30)))?;
        connection.write_all(begun.as_bytes())?;
        let mut answer = Vec::new();
        // Either way it is over: closed with or without a word.
        let ended = connection.read_to_end(&mut answer);
        let is_timeout = ended.is_err_and(|error| {
            [std::io::ErrorKind::WouldBlock, std::io::ErrorKind::TimedOut].contains(&error.kind())
        });
        ensure!(!is_timeout, "still open after {begun:?}");
        ensure!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(world.ask("/healthz")?.status, 200);
    Ok(())
}

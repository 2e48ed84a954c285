//! Keys in the cloud, as the environment of a person or a pipeline reaches them: both ways with every stock sops, and
//! what must not happen when a file names a stranger's server.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::Output;
use std::sync::{Arc, Mutex};

use xtask::peers::bao::{Bao, TlsBao};
use xtask::peers::clouds::Clouds;
use xtask::peers::moto::Moto;

use crate::interop::{PLAIN, both_ways};
use crate::sandbox::{self, Sandbox};

type Environment = Vec<(&'static str, String)>;

fn run(sandbox: &Sandbox, environment: &Environment, words: &[&str]) -> Output {
    sandbox.command(sandbox::lacre()).envs(environment.iter().cloned()).args(words).output().unwrap()
}

fn ok(sandbox: &Sandbox, environment: &Environment, words: &[&str]) -> String {
    let output = run(sandbox, environment, words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs what must fail with `code`; gives what it said.
fn fails(sandbox: &Sandbox, environment: &Environment, words: &[&str], code: i32) -> String {
    let output = run(sandbox, environment, words);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
    said
}

fn with(environment: &Environment, name: &'static str, value: &str) -> Environment {
    let others = environment.iter().filter(|(other, _)| *other != name).cloned();
    others.chain([(name, value.to_owned())]).collect()
}

fn vault(bao: &Bao) -> Environment {
    vec![("VAULT_ADDR", bao.address().to_owned()), ("VAULT_TOKEN", bao.token().to_owned())]
}

/// A server that gives nothing and keeps what it was sent.
fn listener() -> (String, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let seen: Arc<Mutex<String>> = Arc::default();
    let kept = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut buffer = [0; 8192];
            let count = stream.read(&mut buffer).unwrap_or_default();
            kept.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..count]));
            let _ =
                stream.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    (address, seen)
}

#[test]
fn transit_both_ways() {
    let bao = Bao::shared().unwrap();
    let key = bao.transit_key("both-ways").unwrap();
    both_ways(&["--hc-vault-transit", &key], &vault(bao));
    bao.post("sys/mounts/team/shop/transit", &serde_json::json!({"type": "transit"})).unwrap();
    bao.post("team/shop/transit/keys/k", &serde_json::json!({})).unwrap();
    let key = format!("{}/v1/team/shop/transit/keys/k", bao.address());
    both_ways(&["--hc-vault-transit", &key], &vault(bao));
}

#[test]
fn the_vault_token_does_not_follow_an_address_that_only_the_file_names() {
    let bao = Bao::shared().unwrap();
    let key = bao.transit_key("stolen").unwrap();
    let sandbox = Sandbox::new();
    sandbox.write("a.yaml", PLAIN);
    ok(&sandbox, &vault(bao), &["encrypt", "-i", "--hc-vault-transit", &key, "a.yaml"]);
    let (stranger, seen) = listener();
    sandbox.write("a.yaml", &sandbox.read("a.yaml").replace(bao.address(), &stranger));
    let said = fails(&sandbox, &vault(bao), &["decrypt", "a.yaml"], 128);
    assert!(said.contains(&stranger) && said.contains("SOPS_HC_VAULT_ALLOWLIST"), "{said}");
    let typed = format!("{stranger}/v1/transit/keys/k");
    sandbox.write("b.yaml", PLAIN);
    let said = fails(&sandbox, &vault(bao), &["encrypt", "-i", "--hc-vault-transit", &typed, "b.yaml"], 1);
    assert!(said.contains(&format!("VAULT_ADDR={stranger}")), "{said}");
    for nobody in [vec![], with(&vault(bao), "SOPS_HC_VAULT_ALLOWLIST", "none")] {
        fails(&sandbox, &nobody, &["decrypt", "a.yaml"], 128);
    }
    assert_eq!(*seen.lock().unwrap(), "");
    // The listener does hear those who are sent to it.
    let all = with(&vault(bao), "SOPS_HC_VAULT_ALLOWLIST", "all");
    fails(&sandbox, &all, &["decrypt", "a.yaml"], 128);
    assert!(seen.lock().unwrap().to_lowercase().contains("x-vault-token"));
}

#[test]
fn in_the_place_of_sops_the_vault_token_goes_where_it_always_went_unless_a_list_says_otherwise() {
    let bao = Bao::shared().unwrap();
    let key = bao.transit_key("as-sops").unwrap();
    let sandbox = Sandbox::new();
    sandbox.write("a.yaml", PLAIN);
    let as_sops = |environment: &Environment, words: &[&str]| {
        let mut command = sandbox.command(sandbox::lacre());
        command.arg0("sops").envs(environment.iter().cloned()).args(words).output().unwrap()
    };
    let token: Environment = vec![("VAULT_TOKEN", bao.token().to_owned())];
    let sealed = as_sops(&token, &["encrypt", "-i", "--hc-vault-transit", &key, "a.yaml"]);
    let said = String::from_utf8(sealed.stderr).unwrap();
    assert!(
        sealed.status.success() && said.contains("warning: SOPS_HC_VAULT_ALLOWLIST is not set"),
        "{said}"
    );
    assert_eq!(as_sops(&token, &["decrypt", "a.yaml"]).stdout, PLAIN.as_bytes());
    let listed = with(&token, "SOPS_HC_VAULT_ALLOWLIST", bao.address());
    let opened = as_sops(&listed, &["decrypt", "a.yaml"]);
    assert_eq!((opened.stdout.as_slice(), opened.stderr.as_slice()), (PLAIN.as_bytes(), &b""[..]));
    let other = with(&token, "SOPS_HC_VAULT_ALLOWLIST", "https://vault.example.org");
    assert_eq!(as_sops(&other, &["decrypt", "a.yaml"]).status.code(), Some(128));
    fails(&sandbox, &token, &["decrypt", "a.yaml"], 128);
}

#[test]
fn vault_tokens_are_found_where_the_login_leaves_them() {
    let bao = Bao::shared().unwrap();
    let key = bao.transit_key("login").unwrap();
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.home().join(".vault-token"), format!("{}\n", bao.token())).unwrap();
    sandbox.write("a.yaml", PLAIN);
    let listed = vec![("SOPS_HC_VAULT_ALLOWLIST", bao.address().to_owned()), ("SOPS_VAULT_URIS", key)];
    ok(&sandbox, &listed, &["encrypt", "-i", "a.yaml"]);
    assert_eq!(ok(&sandbox, &listed, &["decrypt", "a.yaml"]), PLAIN);
    let wrong = with(&listed, "VAULT_TOKEN", "CANARY");
    let said = fails(&sandbox, &wrong, &["decrypt", "a.yaml"], 128);
    assert!(said.contains("permission denied") && !said.contains("CANARY"), "{said}");
}

#[test]
fn a_vault_server_proves_who_it_is() {
    let bao = TlsBao::start().unwrap();
    let key = bao.transit_key("tls").unwrap();
    let authority = bao.authority().display().to_string();
    let blind: Environment =
        vec![("VAULT_ADDR", bao.address().to_owned()), ("VAULT_TOKEN", bao.token().to_owned())];
    let trusting = with(&blind, "VAULT_CACERT", &authority);
    both_ways(&["--hc-vault-transit", &key], &trusting);
    let sandbox = Sandbox::new();
    sandbox.write("a.yaml", PLAIN);
    let said = fails(&sandbox, &blind, &["encrypt", "-i", "--hc-vault-transit", &key, "a.yaml"], 23);
    assert!(said.contains("certificate") && sandbox.read("a.yaml") == PLAIN, "{said}");
    ok(&sandbox, &trusting, &["encrypt", "-i", "--hc-vault-transit", &key, "a.yaml"]);
    let bytes = std::fs::read_to_string(bao.authority()).unwrap();
    for environment in [with(&blind, "VAULT_CACERT_BYTES", &bytes), with(&blind, "VAULT_SKIP_VERIFY", "true")]
    {
        assert_eq!(ok(&sandbox, &environment, &["decrypt", "a.yaml"]), PLAIN);
    }
    for (name, value) in
        [("VAULT_CACERT", "/nowhere"), ("VAULT_CACERT_BYTES", "x"), ("VAULT_SKIP_VERIFY", "no")]
    {
        fails(&sandbox, &with(&blind, name, value), &["decrypt", "a.yaml"], 128);
    }
}

#[test]
fn rules_name_keys_in_all_services() {
    let (bao, clouds) = (Bao::shared().unwrap(), Clouds::shared().unwrap());
    let transit = bao.transit_key("rule").unwrap();
    let environment: Environment = vault(bao).into_iter().chain(clouds.environment()).collect();
    let sandbox = Sandbox::new();
    let (gcp, azure) = (clouds.gcp_key("a"), clouds.azure_key());
    let flat = format!(
        "creation_rules:\n  - path_regex: flat\n    gcp_kms: {gcp}\n    azure_keyvault: [{azure}]\n    \
         hc_vault_transit_uri: {transit}\n  - shamir_threshold: 2\n    key_groups:\n      - hc_vault: [{transit}]\n      \
         - gcp_kms: [{{resource_id: {gcp}}}]\n        merge:\n          - azure_keyvault:\n            \
         - {{vaultUrl: https://team.vault.azure.net, key: k, version: \"{}\"}}\n",
        clouds.azure_versions()[0]
    );
    sandbox.write(".sops.yaml", &flat);
    for name in ["flat.yaml", "groups.yaml"] {
        sandbox.write(name, PLAIN);
        ok(&sandbox, &environment, &["encrypt", "-i", name]);
        let sealed = sandbox.read(name);
        for list in ["gcp_kms:", "azure_kv:", "hc_vault:"] {
            assert!(sealed.contains(list), "{list} {sealed}");
        }
        assert_eq!(ok(&sandbox, &environment, &["decrypt", name]), PLAIN);
        // The version that a rule leaves open is the one that the file has.
        let done = run(&sandbox, &environment, &["updatekeys", "--yes", name]);
        assert!(done.status.success() && sandbox.read(name) == sealed, "{done:?}");
    }
    assert!(sandbox.read("groups.yaml").contains(clouds.azure_versions()[0]));
    sandbox.write(".sops.yaml", "creation_rules:\n  - hckms: [\"region:1\"]\n");
    sandbox.write("c.yaml", PLAIN);
    let said = fails(&sandbox, &environment, &["encrypt", "-i", "c.yaml"], 1);
    assert!(said.contains("hckms") && sandbox.read("c.yaml") == PLAIN, "{said}");
}

#[test]
fn gcp_both_ways() {
    let clouds = Clouds::shared().unwrap();
    let key = clouds.gcp_key("a");
    both_ways(&["--gcp-kms", &key], &clouds.environment());
    let others = clouds.environment().into_iter().filter(|(name, _)| *name != "GOOGLE_OAUTH_ACCESS_TOKEN");
    let others: Environment = others.collect();
    both_ways(&["--gcp-kms", &key], &with(&others, "GOOGLE_CREDENTIALS", clouds.google_login()));
    let login = Sandbox::new();
    login.write("login.json", clouds.google_login());
    let path = login.work().join("login.json").display().to_string();
    for name in ["GOOGLE_CREDENTIALS", "GOOGLE_APPLICATION_CREDENTIALS"] {
        both_ways(&["--gcp-kms", &key], &with(&others, name, &path));
    }
    let requests = clouds.requests().unwrap();
    let stock = requests.iter().filter(|line| line.contains("Go-http-client") && line.contains(":decrypt"));
    assert!(stock.count() >= 8, "{requests:?}");
}

#[test]
fn gcp_says_why_not() {
    let clouds = Clouds::shared().unwrap();
    let environment = clouds.environment();
    let sandbox = Sandbox::new();
    sandbox.write("a.yaml", PLAIN);
    let endpoint = with(&environment, "SOPS_GCP_KMS_ENDPOINT", &clouds.gcp_endpoint());
    ok(&sandbox, &endpoint, &["encrypt", "-i", "--gcp-kms", &clouds.gcp_key("a"), "a.yaml"]);
    assert_eq!(ok(&sandbox, &endpoint, &["decrypt", "a.yaml"]), PLAIN);
    let token = with(&environment, "GOOGLE_OAUTH_ACCESS_TOKEN", "CANARY");
    let credentials = with(&environment, "GOOGLE_CREDENTIALS", "{\"type\": \"CANARY\"}");
    let login = clouds.google_login().replace("lacre-test-refresh", "CANARY");
    let refused = with(&environment, "GOOGLE_CREDENTIALS", &login);
    for (environment, words) in
        [(token, "UNAUTHENTICATED"), (credentials, "no known `type`"), (refused, "Google credentials")]
    {
        let said = fails(&sandbox, &environment, &["decrypt", "a.yaml"], 128);
        assert!(said.contains(words) && !said.contains("CANARY"), "{said}");
    }
    sandbox.write("b.yaml", &sandbox.read("a.yaml").replace("cryptoKeys/a", "cryptoKeys/b"));
    assert!(fails(&sandbox, &environment, &["decrypt", "b.yaml"], 128).contains("INVALID_ARGUMENT"));
    sandbox.write("c.yaml", &sandbox.read("a.yaml").replace("cryptoKeys/a", "cryptoKeys/gone"));
    assert!(fails(&sandbox, &environment, &["decrypt", "c.yaml"], 128).contains("NOT_FOUND"));
}

#[test]
fn azure_both_ways() {
    let clouds = Clouds::shared().unwrap();
    both_ways(&["--azure-kv", clouds.azure_key()], &clouds.environment());
    let older = format!("{}/{}", clouds.azure_key(), clouds.azure_versions()[0]);
    both_ways(&["--azure-kv", &older], &clouds.environment());
    let requests = clouds.requests().unwrap();
    let stock = requests.iter().filter(|line| line.contains("azsdk-go") && line.contains("/decrypt"));
    assert!(stock.count() >= 4, "{requests:?}");
}

#[test]
fn an_azure_key_without_a_version_is_written_with_the_one_that_was_used() {
    let clouds = Clouds::shared().unwrap();
    let environment = clouds.environment();
    let [older, newer] = clouds.azure_versions();
    let sandbox = Sandbox::new();
    sandbox.write("a.yaml", PLAIN);
    let pinned = format!("{}/{older}", clouds.azure_key());
    ok(&sandbox, &environment, &["encrypt", "-i", "--azure-kv", &pinned, "a.yaml"]);
    assert!(sandbox.read("a.yaml").contains(older));
    let moved =
        ["rotate", "-i", "--rm-azure-kv", clouds.azure_key(), "--add-azure-kv", clouds.azure_key(), "a.yaml"];
    ok(&sandbox, &environment, &moved);
    let sealed = sandbox.read("a.yaml");
    assert!(sealed.contains(&format!("version: \"{newer}\"")) && !sealed.contains(older), "{sealed}");
    assert_eq!(ok(&sandbox, &environment, &["decrypt", "a.yaml"]), PLAIN);
}

#[test]
fn a_strangers_vault_gets_no_azure_token() {
    let clouds = Clouds::shared().unwrap();
    let environment = clouds.environment();
    let sandbox = Sandbox::new();
    sandbox.write("a.yaml", PLAIN);
    ok(&sandbox, &environment, &["encrypt", "-i", "--azure-kv", clouds.azure_key(), "a.yaml"]);
    let named = sandbox.read("a.yaml").replace("https://team.vault.azure.net", clouds.strange_vault());
    sandbox.write("b.yaml", &named);
    fails(&sandbox, &environment, &["decrypt", "b.yaml"], 128);
    let requests = clouds.requests().unwrap();
    let seen: Vec<&String> =
        requests.iter().filter(|line| line.starts_with("team.vault.example.org ")).collect();
    assert!(!seen.is_empty() && seen.iter().all(|line| line.contains(" none 0 ")), "{seen:?}");
    let wrong = with(&environment, "AZURE_CLIENT_SECRET", "CANARY");
    let said = fails(&sandbox, &wrong, &["decrypt", "a.yaml"], 128);
    assert!(said.contains("AADSTS7000215") && !said.contains("CANARY"), "{said}");
    sandbox.write("c.yaml", &sandbox.read("a.yaml").replace("name: k", "name: gone"));
    assert!(fails(&sandbox, &environment, &["decrypt", "c.yaml"], 128).contains("KeyNotFound"));
}

/// Nobody here can wrap for HuaweiCloud, so a new data key needs its entry gone; until then it stays as it is.
#[test]
fn entries_of_a_kind_that_is_not_here_stay_until_they_are_removed() {
    let sandbox = Sandbox::new();
    sandbox.write("plain.yaml", PLAIN);
    sandbox.write(
        ".sops.yaml",
        &format!("creation_rules: [{{age: {}, seal: false}}]", sandbox::recipient("ops")),
    );
    ok(&sandbox, &vec![], &["encrypt", "--output", "a.yaml", "plain.yaml"]);
    let entry = "    hckms:\n        - created_at: \"2026-01-01T00:00:00Z\"\n          enc: abc\n          key_id: tr-west-1:1\n";
    let sealed = sandbox.read("a.yaml").replace("    lastmodified:", &format!("{entry}    lastmodified:"));
    sandbox.write("a.yaml", &sealed);
    ok(&sandbox, &vec![], &["set", "a.yaml", "[\"port\"]", "5433"]);
    assert!(sandbox.read("a.yaml").contains(entry), "{}", sandbox.read("a.yaml"));
    let words = ["rotate", "-i", "--accept-recipients", "a.yaml"];
    let said = fails(&sandbox, &vec![], &words, 1);
    assert!(said.contains("hckms tr-west-1:1"), "{said}");
    ok(&sandbox, &vec![], &["rotate", "-i", "--accept-recipients", "--rm-hckms", "tr-west-1:1", "a.yaml"]);
    assert!(!sandbox.read("a.yaml").contains("hckms"));
    assert!(ok(&sandbox, &vec![], &["decrypt", "a.yaml"]).contains("port: 5433"));
}

/// The profile stands in the file; what it means stands with the user, here a program that gives the credentials.
#[test]
fn aws_profiles_lead_to_credentials_of_a_process() {
    let moto = Moto::shared().unwrap();
    let arn = moto.create_key().unwrap();
    let sandbox = Sandbox::new();
    sandbox.write("a.yaml", PLAIN);
    let answer = r#"{"Version": 1, "AccessKeyId": "AKIDOFTHEPROCESS", "SecretAccessKey": "s"}"#;
    sandbox.write("credentials.json", answer);
    let program = format!("cat {}", sandbox.work().join("credentials.json").display());
    sandbox.write("config", &format!("[profile ops]\nregion = us-east-1\ncredential_process = {program}\n"));
    let (recorder, seen) = listener();
    let environment = vec![
        ("AWS_CONFIG_FILE", sandbox.work().join("config").display().to_string()),
        ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
        ("AWS_ENDPOINT_URL", moto.endpoint().to_owned()),
    ];
    ok(&sandbox, &environment, &["encrypt", "-i", "--kms", &arn, "--aws-profile", "ops", "a.yaml"]);
    assert!(sandbox.read("a.yaml").contains("aws_profile: ops"));
    assert_eq!(ok(&sandbox, &environment, &["decrypt", "a.yaml"]), PLAIN);
    fails(&sandbox, &with(&environment, "AWS_ENDPOINT_URL", &recorder), &["decrypt", "a.yaml"], 128);
    assert!(seen.lock().unwrap().contains("Credential=AKIDOFTHEPROCESS/"));
    std::fs::write(sandbox.work().join("config"), "").unwrap();
    let said = fails(&sandbox, &environment, &["decrypt", "a.yaml"], 128);
    assert!(said.contains("ops"), "{said}");
}

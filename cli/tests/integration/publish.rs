//! Publishing to real servers, beside stock sops.

use std::process::Output;

use serde_json::{Value, json};
use xtask::peers::bao::Bao;
use xtask::peers::fake_gcs::FakeGcs;
use xtask::peers::moto::Moto;
use xtask::peers::sops::Sops;

use crate::sandbox::{self, Sandbox};

const PLAIN: &str = "\
# who
user: app
port: 5432
rate: 1.50
on: true
none: ~
when: 2001-12-14
password_unencrypted: clear
deep:
    list: [a, [1]]
text: |
    two
    lines
";

/// A sandbox with sealed files and these destination rules.
fn sandbox_with(rules: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let ops = sandbox::recipient("ops");
    sandbox.write("a.yaml", PLAIN);
    sandbox.write("folder/b.json", "{\"b\": \"c\"}");
    sandbox.write("folder/deep/c.env", "D=e\n");
    sandbox.write("folder/plain.yaml", "not: sealed\n");
    for file in ["a.yaml", "folder/b.json", "folder/deep/c.env"] {
        sandbox.lacre_ok(&["encrypt", "--in-place", "--age", &ops, file]);
    }
    sandbox.write(".sops.yaml", &format!("destination_rules:\n{rules}"));
    sandbox
}

fn run(sandbox: &Sandbox, environment: &[(&str, String)], words: &[&str]) -> Output {
    let mut command = sandbox.command(sandbox::lacre());
    command
        .envs(environment.iter().map(|(name, value)| (*name, value.as_str())))
        .args(words)
        .output()
        .unwrap()
}

fn succeeds(sandbox: &Sandbox, environment: &[(&str, String)], words: &[&str]) -> String {
    let output = run(sandbox, environment, words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn stock(sandbox: &Sandbox, environment: &[(&str, String)], words: &[&str]) {
    let tool = Sops::v3_13().unwrap().tool().dir(sandbox.work()).env("HOME", sandbox.home());
    let tool = tool.env("SOPS_AGE_KEY_FILE", sandbox::key_file("ops"));
    let tool = environment.iter().fold(tool, |tool, (name, value)| tool.env(name, value));
    tool.args(words).run().unwrap().success().unwrap();
}

fn vault(bao: &Bao) -> Vec<(&'static str, String)> {
    vec![("VAULT_ADDR", bao.address().to_owned()), ("VAULT_TOKEN", bao.token().to_owned())]
}

#[test]
fn vault_gets_what_stock_sops_puts_there() {
    let bao = Bao::shared().unwrap();
    bao.post("sys/mounts/one", &json!({"type": "kv", "options": {"version": "1"}})).unwrap();
    for (mount, version) in [("secret", 2), ("one", 1)] {
        let rule = |path: &str| {
            format!("- {{vault_path: {path}, vault_kv_mount_name: {mount}, vault_kv_version: {version}}}\n")
        };
        let (ours, theirs) = (sandbox_with(&rule("ours")), sandbox_with(&rule("theirs/")));
        succeeds(&ours, &vault(bao), &["publish", "--yes", "a.yaml"]);
        stock(&theirs, &vault(bao), &["publish", "--yes", "a.yaml"]);
        succeeds(&ours, &vault(bao), &["publish", "--yes", "--recursive", "--omit-extensions", "folder"]);
        std::fs::remove_file(theirs.work().join("folder/plain.yaml")).unwrap();
        stock(&theirs, &vault(bao), &["publish", "--yes", "--recursive", "--omit-extensions", "folder"]);
        for name in ["a.yaml", "b", "deep/c"] {
            let data = |path: &str| match version {
                1 => bao.get(&format!("{mount}/{path}/{name}")).unwrap()["data"].clone(),
                _ => bao.get(&format!("{mount}/data/{path}/{name}")).unwrap()["data"]["data"].clone(),
            };
            assert_eq!(data("ours"), data("theirs"), "{mount} {name}");
            assert!(data("ours").is_object());
        }
    }
}

/// Stock sops makes lists of `Key` and `Value` of them.
#[test]
fn mappings_in_lists_stay_mappings_in_vault() {
    let bao = Bao::shared().unwrap();
    let sandbox = sandbox_with("- {vault_path: lists}\n");
    sandbox.write("l.yaml", "l: [{a: {b: c}}]\n");
    sandbox.lacre_ok(&["encrypt", "--in-place", "--age", &sandbox::recipient("ops"), "l.yaml"]);
    succeeds(&sandbox, &vault(bao), &["publish", "--yes", "l.yaml"]);
    let data = bao.get("secret/data/lists/l.yaml").unwrap()["data"]["data"].clone();
    assert_eq!(data, json!({"l": [{"a": {"b": "c"}}]}));
}

#[test]
fn an_unchanged_secret_gets_no_new_version() {
    let bao = Bao::shared().unwrap();
    let sandbox = sandbox_with("- {vault_path: unchanged}\n");
    let publish = || -> Value {
        let told = succeeds(&sandbox, &vault(bao), &["publish", "--yes", "--json", "a.yaml"]);
        serde_json::from_str(&told).unwrap()
    };
    let version =
        || bao.get("secret/data/unchanged/a.yaml").unwrap()["data"]["metadata"]["version"].as_u64().unwrap();
    assert_eq!(publish()["changed"], true);
    assert_eq!((publish()["changed"].clone(), version()), (json!(false), 1));
    sandbox.lacre_ok(&["set", "a.yaml", r#"["port"]"#, "5433"]);
    assert_eq!((publish()["changed"].clone(), version()), (json!(true), 2));
    let destination = publish()["destination"].as_str().unwrap().to_owned();
    assert_eq!(destination, format!("{}/v1/secret/data/unchanged/a.yaml", bao.address()));
}

#[test]
fn a_token_goes_to_no_server_that_only_the_configuration_names() {
    let bao = Bao::shared().unwrap();
    let sandbox = sandbox_with(&format!("- {{vault_path: elsewhere, vault_address: '{}'}}\n", bao.address()));
    let token = ("VAULT_TOKEN", bao.token().to_owned());
    let list = |list: &str| vec![token.clone(), ("SOPS_HC_VAULT_ALLOWLIST", list.to_owned())];
    let words = ["publish", "--yes", "a.yaml"];
    for environment in [vec![token.clone()], list("none"), list("https://vault.example.org")] {
        let refused = run(&sandbox, &environment, &words);
        let told = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{told}");
        assert!(told.contains("SOPS_HC_VAULT_ALLOWLIST") && !told.contains(bao.token()), "{told}");
        assert!(bao.get("secret/data/elsewhere/a.yaml").is_err());
    }
    succeeds(&sandbox, &list(bao.address()), &words);
    succeeds(&sandbox, &list("all"), &words);
    assert!(bao.get("secret/data/elsewhere/a.yaml").is_ok());
}

#[test]
fn a_token_that_may_not_write_is_told() {
    let bao = Bao::shared().unwrap();
    let sandbox = sandbox_with("- {vault_path: forbidden}\n");
    let environment = [("VAULT_ADDR", bao.address().to_owned()), ("VAULT_TOKEN", "CANARYTOKEN".to_owned())];
    let refused = run(&sandbox, &environment, &["publish", "--yes", "a.yaml"]);
    let told = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{told}");
    assert!(told.contains("403") && !told.contains("CANARYTOKEN") && !told.contains("5432"), "{told}");
}

#[test]
fn s3_gets_the_file_as_it_is_or_sealed_anew() {
    let moto = Moto::shared().unwrap();
    moto.s3("PUT", "/publish-test").unwrap();
    let environment = moto.environment();
    let (ops, ci) = (sandbox::recipient("ops"), sandbox::recipient("ci"));
    let sandbox = sandbox_with(&format!(
        "- {{path_regex: a.yaml, s3_bucket: publish-test, s3_prefix: 'p q/', recreation_rule: {{age: '{ops},{ci}', encrypted_regex: ^password_, mac_only_encrypted: true}}}}\n\
         - {{s3_bucket: publish-test}}\n"
    ));
    succeeds(&sandbox, &environment, &["publish", "--yes", "a.yaml"]);
    succeeds(&sandbox, &environment, &["publish", "--yes", "--recursive", "folder"]);
    assert_eq!(moto.s3("GET", "/publish-test/b.json").unwrap(), sandbox.read("folder/b.json"));
    assert_eq!(moto.s3("GET", "/publish-test/deep/c.env").unwrap(), sandbox.read("folder/deep/c.env"));
    let anew = moto.s3("GET", "/publish-test/p%20q/a.yaml").unwrap();
    sandbox.write("anew.yaml", &anew);
    assert!(anew.contains("user: app\n") && anew.contains("password_unencrypted: ENC["), "{anew}");
    assert!(anew.contains("encrypted_regex: ^password_") && anew.contains(&ci), "{anew}");
    assert_eq!(sandbox.lacre_ok(&["decrypt", "anew.yaml"]), PLAIN);
    stock(&sandbox, &[], &["decrypt", "--output", "opened.yaml", "anew.yaml"]);
    assert!(sandbox.read("opened.yaml").contains("password_unencrypted: clear"));
    // The same place, where stock sops puts it.
    stock(&sandbox, &environment, &["publish", "--yes", "--omit-extensions", "folder/b.json"]);
    assert_eq!(moto.s3("GET", "/publish-test/b").unwrap(), sandbox.read("folder/b.json"));
    let refused =
        run(&sandbox_with("- {s3_bucket: absent-bucket}\n"), &environment, &["publish", "-y", "a.yaml"]);
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(
        refused.status.code() == Some(1) && told.contains("404") && told.contains("NoSuchBucket"),
        "{told}"
    );
}

/// moto computes the signature itself here, and refuses another one.
#[test]
fn what_goes_to_s3_is_signed() {
    let moto = Moto::start().unwrap();
    moto.s3("PUT", "/signed").unwrap();
    let (id, secret) = moto.require_signatures().unwrap();
    let sandbox = sandbox_with("- {s3_bucket: signed, s3_prefix: 'p q/é+~/'}\n");
    let environment = |secret: &str| {
        let mut environment = moto.environment();
        environment.retain(|(name, _)| !name.starts_with("AWS_ACCESS") && !name.starts_with("AWS_SECRET"));
        environment.push(("AWS_ACCESS_KEY_ID", id.clone()));
        environment.push(("AWS_SECRET_ACCESS_KEY", secret.to_owned()));
        environment
    };
    succeeds(&sandbox, &environment(&secret), &["publish", "--yes", "a.yaml"]);
    let refused = run(&sandbox, &environment("another"), &["publish", "--yes", "a.yaml"]);
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(1) && told.contains("403"), "{told}");
}

#[test]
fn gcs_gets_the_file_where_stock_sops_puts_it() {
    let gcs = FakeGcs::start().unwrap();
    gcs.create_bucket("publish-test").unwrap();
    let environment = [("STORAGE_EMULATOR_HOST", gcs.host())];
    let rule =
        |prefix: &str| sandbox_with(&format!("- {{gcs_bucket: publish-test, gcs_prefix: '{prefix}/'}}\n"));
    let (ours, theirs) = (rule("ou rs"), rule("theirs"));
    succeeds(&ours, &environment, &["publish", "--yes", "--recursive", "folder"]);
    assert_eq!(gcs.object("publish-test", "ou%20rs%2Fdeep%2Fc.env").unwrap(), ours.read("folder/deep/c.env"));
    stock(&theirs, &environment, &["publish", "--yes", "folder/b.json"]);
    assert_eq!(gcs.object("publish-test", "theirs%2Fb.json").unwrap(), theirs.read("folder/b.json"));
    let absent = sandbox_with("- {gcs_bucket: absent-bucket}\n");
    let refused = run(&absent, &environment, &["publish", "--yes", "a.yaml"]);
    assert_eq!(refused.status.code(), Some(1));
}

#[test]
fn nothing_is_published_without_an_answer() {
    let bao = Bao::shared().unwrap();
    let sandbox = sandbox_with("- {vault_path: asked}\n");
    let answered = |answer: &str, words: &[&str]| {
        let mut command = sandbox.command(sandbox::lacre());
        command.envs(vault(bao)).args(words);
        sandbox::with_input(command, answer.as_bytes())
    };
    for answer in ["", "n\n", "maybe\nn\n"] {
        let refused = answered(answer, &["publish", "a.yaml"]);
        let told = String::from_utf8(refused.stderr).unwrap();
        assert!(refused.status.code() == Some(1) && told.contains("canceled"), "{told}");
        assert!(told.contains("its plaintext to http://") && !told.contains("5432"), "{told}");
        assert!(bao.get("secret/data/asked/a.yaml").is_err());
    }
    assert!(answered("n\n", &["publish", "--recursive", "folder"]).status.success());
    assert!(answered("what\ny\n", &["publish", "a.yaml"]).status.success());
    assert!(bao.get("secret/data/asked/a.yaml").is_ok());
}

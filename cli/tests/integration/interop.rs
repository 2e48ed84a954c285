//! With the real peers: what one tool seals, the other opens, by keys found where both look for them.

use crate::sandbox::{self, Sandbox};
use xtask::peers::gpg::{Algorithm, Gpg};
use xtask::peers::moto::Moto;
use xtask::peers::sops::{self, Sops};
use xtask::process::Tool;

pub(crate) const PLAIN: &str = "# a comment\nuser: admin\nport: 5432\nlist:\n    - x\n    - true\n";

/// Seals with `lacre` and opens with every sops, then the reverse. `recipient` is the flag with its value.
pub(crate) fn both_ways(recipient: &[&str], environment: &[(&str, String)]) {
    let sandbox = Sandbox::new();
    sandbox.write("plain.yaml", PLAIN);
    let lacre = |words: &[&str]| {
        let mut command = sandbox.command(sandbox::lacre());
        let output = command.envs(environment.iter().cloned()).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    lacre(&[&["encrypt", "--output", "ours.yaml"], recipient, &["plain.yaml"]].concat());
    for sops in Sops::all().unwrap() {
        let tool = |words: &[&str]| {
            let tool: Tool =
                environment.iter().fold(sops.tool(), |tool, (name, value)| tool.env(name, value));
            let key = sandbox::key_file("ops");
            let tool = tool.env("SOPS_AGE_KEY_FILE", key).env("HOME", sandbox.home()).dir(sandbox.work());
            String::from_utf8(tool.args(words).run().unwrap().success().unwrap()).unwrap()
        };
        let opened = tool(&["decrypt", "ours.yaml"]);
        assert!(opened.contains("port: 5432") && opened.contains("- true"), "{}: {opened}", sops.version());
        sandbox.write("theirs.yaml", &tool(&[&["encrypt"], recipient, &["plain.yaml"]].concat()));
        assert_eq!(lacre(&["decrypt", "theirs.yaml"]), PLAIN, "sealed by sops {}", sops.version());
    }
    lacre(&["rotate", "--in-place", "ours.yaml"]);
    assert_eq!(lacre(&["decrypt", "ours.yaml"]), PLAIN);
}

#[test]
fn age() {
    both_ways(&["--age", &sandbox::recipient("ops")], &[]);
}

#[test]
fn pgp_through_the_program() {
    let gpg = Gpg::new().unwrap();
    let fingerprint = gpg.generate("ops <ops@example.org>", Algorithm::Curve25519).unwrap();
    both_ways(&["--pgp", &fingerprint], &[("GNUPGHOME", gpg.home().display().to_string())]);
}

#[test]
fn aws_kms() {
    let moto = Moto::shared().unwrap();
    let arn = moto.create_key().unwrap();
    let environment: Vec<(&str, String)> = moto.environment().into_iter().collect();
    both_ways(&["--kms", &arn], &environment);
    both_ways(&["--kms", &arn, "--encryption-context", "team:shop"], &environment);
}

/// Files in all formats, laid out as sops prints them, and the words by which its library knows the formats.
const FOR_THE_LIBRARY: [(&str, &str, &str); 5] = [
    ("a.yaml", "yaml", PLAIN),
    ("a.json", "json", "{\n\t\"user\": \"admin\",\n\t\"db\": {\n\t\t\"port\": 5432\n\t}\n}\n"),
    ("a.env", "dotenv", "# a comment\nUSER=admin\nPASSWORD=correct horse\n"),
    ("a.ini", "ini", "[db]\nuser     = admin\npassword = secret\n"),
    ("a.txt", "binary", "any text\nof two lines\n"),
];

/// Operators in clusters, plugins of kustomize and providers of terraform read files in this way.
#[test]
fn programs_with_the_library_of_sops_open_files_of_all_formats() {
    let sandbox = Sandbox::new();
    let opened = |name: &str, format: &str| {
        let library = sops::library().unwrap().env("SOPS_AGE_KEY_FILE", sandbox::key_file("ops"));
        library.dir(sandbox.work()).args([name, format]).run().unwrap().success()
    };
    for (name, format, text) in FOR_THE_LIBRARY {
        sandbox.write(name, text);
        let ops = sandbox::recipient("ops");
        sandbox.lacre_ok(&["encrypt", "--in-place", "--input-type", format, "--age", &ops, name]);
        let found = String::from_utf8(opened(name, format).unwrap()).unwrap();
        // It ends INI with an empty line.
        assert_eq!(found.trim_end(), text.trim_end(), "{name}");
    }
    let cut: Vec<String> =
        sandbox.read("a.env").lines().filter(|line| !line.starts_with("USER=")).map(str::to_owned).collect();
    sandbox.write("a.env", &(cut.join("\n") + "\n"));
    let refused = opened("a.env", "dotenv").unwrap_err().to_string();
    assert!(refused.contains("verify data integrity"), "{refused}");
}

#[test]
fn stock_sops_drops_the_seal_and_reseal_puts_it_back() {
    let sandbox = Sandbox::new();
    sandbox.write("a.yaml", "a: b\n");
    sandbox.lacre_ok(&["encrypt", "--in-place", "--age", &sandbox::recipient("ops"), "a.yaml"]);
    for sops in Sops::all().unwrap() {
        let tool = sops.tool().env("SOPS_AGE_KEY_FILE", sandbox::key_file("ops")).dir(sandbox.work());
        tool.args(["set", "a.yaml", r#"["a"]"#, &format!("{:?}", sops.version())])
            .run()
            .unwrap()
            .success()
            .unwrap();
        let before = sandbox.read("a.yaml");
        assert!(!before.contains("    lacre: ENC["), "sops {} kept the seal", sops.version());
        assert!(sandbox.lacre(&["decrypt", "a.yaml"]).status.success(), "a file of sops opens by its MAC");
        sandbox.lacre_ok(&["reseal", "a.yaml"]);
        assert!(sandbox.read("a.yaml").contains("    lacre: ENC["));
        assert_eq!(sandbox.lacre_ok(&["decrypt", "a.yaml"]), format!("a: {}\n", sops.version()));
    }
}

#[test]
fn recipients_that_nothing_vouches_for_are_not_taken_over() {
    let sandbox = Sandbox::new();
    let (ops, stranger) = (sandbox::recipient("ops"), sandbox::recipient("stranger"));
    let sops = Sops::v3_13().unwrap();
    sandbox.write("plain.yaml", "a: b\n");
    let tool = sops.tool().dir(sandbox.work()).args([
        "encrypt",
        "--age",
        &format!("{ops},{stranger}"),
        "plain.yaml",
    ]);
    sandbox.write("a.yaml", &String::from_utf8(tool.run().unwrap().success().unwrap()).unwrap());
    sandbox.write(".sops.yaml", &format!("creation_rules:\n  - age: {ops}\n"));
    let refused = sandbox.lacre(&["rotate", "--in-place", "a.yaml"]);
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1));
    assert!(errors.contains(&format!("does not name age {stranger}")), "{errors}");
    sandbox.lacre_ok(&["rotate", "--in-place", "--accept-recipients", "a.yaml"]);
    assert!(sandbox.read("a.yaml").contains(&stranger));
    sandbox.lacre_ok(&["updatekeys", "--yes", "a.yaml"]);
    assert!(!sandbox.read("a.yaml").contains(&stranger));
}

#[test]
fn a_mixed_team_can_do_without_the_seal() {
    let sandbox = Sandbox::new();
    let ops = sandbox::recipient("ops");
    sandbox.write(".sops.yaml", &format!("creation_rules:\n  - age: {ops}\n    seal: false\n"));
    sandbox.write("a.yaml", "a: b\n");
    sandbox.lacre_ok(&["encrypt", "--in-place", "a.yaml"]);
    for sops in Sops::all().unwrap() {
        let value = format!("{:?}", sops.version());
        let tool = sops.tool().env("SOPS_AGE_KEY_FILE", sandbox::key_file("ops")).dir(sandbox.work());
        tool.args(["set", "a.yaml", r#"["a"]"#, &value]).run().unwrap().success().unwrap();
        sandbox.lacre_ok(&["set", "a.yaml", r#"["b"]"#, &value]);
        assert!(!sandbox.read("a.yaml").contains("lacre:"));
    }
    assert_eq!(sandbox.lacre_ok(&["decrypt", "a.yaml"]), "a: 3.13.3\nb: 3.13.3\n");
}

#[test]
fn services_that_do_not_answer_are_told_with_what_they_said() {
    let sandbox = Sandbox::new();
    let gpg = Gpg::new().unwrap();
    let fingerprint = gpg.generate("ops <ops@example.org>", Algorithm::Curve25519).unwrap();
    let moto = Moto::shared().unwrap();
    let arn = moto.create_key().unwrap();
    sandbox.write("a.yaml", "a: b\n");
    let mut seal = sandbox.command(sandbox::lacre());
    seal.envs(moto.environment()).env("GNUPGHOME", gpg.home());
    let sealed = seal
        .args(["encrypt", "--in-place", "--pgp", &fingerprint, "--kms", &arn, "a.yaml"])
        .output()
        .unwrap();
    assert!(sealed.status.success(), "{}", String::from_utf8_lossy(&sealed.stderr));
    let mut open = sandbox.command(sandbox::lacre());
    open.envs(moto.environment()).env("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
    open.env("AWS_ENDPOINT_URL_KMS", "http://127.0.0.1:1").env("SOPS_GPG_EXEC", "/nowhere/gpg");
    let refused = open.args(["decrypt", "a.yaml"]).output().unwrap();
    let errors = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(128), "{errors}");
    for expected in [
        format!("    pgp {fingerprint}\n"),
        format!("    kms {arn}\n"),
        "    the program /nowhere/gpg: asked\n".to_owned(),
        "    AWS KMS with the credentials of the environment: asked\n".to_owned(),
        format!("    kms {arn}: cannot reach"),
        format!("    pgp {fingerprint}: "),
        "hint: log in to AWS".to_owned(),
        "hint: import the secret key".to_owned(),
    ] {
        assert!(errors.contains(&expected), "`{expected}` is not in\n{errors}");
    }
}

/// A file of any bytes goes there and back, in place too, and stock sops opens it.
#[test]
fn bytes_of_any_kind() {
    let sandbox = Sandbox::new();
    let bytes: Vec<u8> = (0..=255).chain([0, 13, 10, 255]).collect();
    let path = sandbox.work().join("store.p12");
    std::fs::write(&path, &bytes).unwrap();
    let recipient = sandbox::recipient("ops");
    sandbox.lacre_ok(&["encrypt", "--input-type", "binary", "--in-place", "--age", &recipient, "store.p12"]);
    for sops in Sops::all().unwrap() {
        let tool = sops.tool().env("SOPS_AGE_KEY_FILE", sandbox::key_file("ops")).dir(sandbox.work());
        assert_eq!(tool.args(["decrypt", "store.p12"]).run().unwrap().success().unwrap(), bytes);
    }
    let opened = sandbox.lacre(&["decrypt", "--input-type", "binary", "store.p12"]);
    assert_eq!(opened.stdout, bytes, "{}", String::from_utf8_lossy(&opened.stderr));
    sandbox.lacre_ok(&["decrypt", "--input-type", "binary", "--in-place", "store.p12"]);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    let refused = sandbox.lacre(&["encrypt", "--input-type", "yaml", "--age", &recipient, "store.p12"]);
    assert_eq!(refused.status.code(), Some(2));
}

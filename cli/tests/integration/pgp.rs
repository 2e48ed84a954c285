//! OpenPGP keys where GnuPG of all ages keeps them, with the real gpg and sops on the other side.

use std::fs;
use std::path::Path;
use std::process::Output;

use xtask::peers::gpg::{Algorithm, Gpg};
use xtask::peers::sops::Sops;

use crate::sandbox::{self, Sandbox};

const PLAIN: &str = "user: admin\nport: 5432\n";

/// No program answers, so that what is done is done in process.
const NO_GPG: (&str, &str) = ("SOPS_GPG_EXEC", "/nonexistent/gpg");

fn run(sandbox: &Sandbox, program: &Path, environment: &[(&str, &str)], words: &[&str]) -> Output {
    let mut command = sandbox.command(program);
    command.env_remove("SOPS_AGE_KEY_FILE").env("SOPS_DISABLE_VERSION_CHECK", "true");
    command.envs(environment.iter().copied()).args(words).output().unwrap()
}

fn run_ok(sandbox: &Sandbox, program: &Path, environment: &[(&str, &str)], words: &[&str]) -> String {
    let output = run(sandbox, program, environment, words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {words:?}: {said}", program.display());
    String::from_utf8(output.stdout).unwrap()
}

/// A key with a passphrase, which nobody can use in process.
fn generate_protected(gpg: &Gpg) -> String {
    let words = ["--batch", "--pinentry-mode", "loopback", "--passphrase", "pass", "--quick-generate-key"];
    gpg.tool().args(words).args(["old <old@example.org>", "rsa2048", "encr", "never"]).run().unwrap();
    let listed =
        gpg.tool().args(["--batch", "--with-colons", "--list-keys", "old@example.org"]).run().unwrap();
    let listed = listed.stdout_text();
    let line = listed.lines().find(|line| line.starts_with("fpr:")).expect("the key was made");
    line.split(':').nth(9).unwrap().to_owned()
}

#[test]
fn rings_of_gnupg_1_serve_both_ways_without_the_program() {
    let (sandbox, gpg) = (Sandbox::new(), Gpg::new().unwrap());
    generate_protected(&gpg);
    let fingerprint = gpg.generate("ops <ops@example.org>", Algorithm::Curve25519).unwrap();
    let legacy = sandbox.home().join("legacy");
    fs::create_dir(&legacy).unwrap();
    let loopback = ["--batch", "--pinentry-mode", "loopback", "--passphrase", "pass"];
    let exported = |words: &[&str]| gpg.tool().args(loopback).args(words).run().unwrap().success().unwrap();
    fs::write(legacy.join("pubring.gpg"), exported(&["--export"])).unwrap();
    fs::write(legacy.join("secring.gpg"), exported(&["--export-secret-keys"])).unwrap();
    let environment = [("GNUPGHOME", legacy.to_str().unwrap()), NO_GPG];
    sandbox.write("plain.yaml", PLAIN);
    let seal = ["encrypt", "--pgp", &fingerprint, "plain.yaml"];
    sandbox.write("ours.yaml", &run_ok(&sandbox, sandbox::lacre(), &environment, &seal));
    assert_eq!(run_ok(&sandbox, sandbox::lacre(), &environment, &["decrypt", "ours.yaml"]), PLAIN);
    for sops in Sops::all().unwrap() {
        let opened = run_ok(&sandbox, sops.program(), &environment, &["decrypt", "ours.yaml"]);
        assert!(opened.contains("port: 5432"), "{opened}");
        sandbox.write("theirs.yaml", &run_ok(&sandbox, sops.program(), &environment, &seal));
        assert_eq!(run_ok(&sandbox, sandbox::lacre(), &environment, &["decrypt", "theirs.yaml"]), PLAIN);
    }
}

#[test]
fn a_keybox_is_sealed_for_in_process_and_gpg_opens_it() {
    let (sandbox, gpg) = (Sandbox::new(), Gpg::new().unwrap());
    generate_protected(&gpg);
    let fingerprint = gpg.generate("ops <ops@example.org>", Algorithm::Curve25519).unwrap();
    assert!(gpg.home().join("pubring.kbx").exists());
    let home = ("GNUPGHOME", gpg.home().to_str().unwrap());
    sandbox.write("plain.yaml", PLAIN);
    let seal = ["encrypt", "--pgp", &fingerprint, "plain.yaml"];
    sandbox.write("sealed.yaml", &run_ok(&sandbox, sandbox::lacre(), &[home, NO_GPG], &seal));
    assert_eq!(run_ok(&sandbox, sandbox::lacre(), &[home], &["decrypt", "sealed.yaml"]), PLAIN);
    for sops in Sops::all().unwrap() {
        let opened = run_ok(&sandbox, sops.program(), &[home], &["decrypt", "sealed.yaml"]);
        assert!(opened.contains("port: 5432"), "{opened}");
    }
}

#[test]
fn a_pinned_subkey_is_the_one_that_is_used() {
    let (sandbox, gpg) = (Sandbox::new(), Gpg::new().unwrap());
    let fingerprint = gpg.generate("ops <ops@example.org>", Algorithm::Curve25519).unwrap();
    let quiet = ["--batch", "--pinentry-mode", "loopback", "--passphrase", "", "--quick-add-key"];
    gpg.tool().args(quiet).args([&fingerprint, "cv25519", "encr", "never"]).run().unwrap().success().unwrap();
    let listed = gpg.tool().args(["--batch", "--with-colons", "--with-subkey-fingerprint", "--list-keys"]);
    let listed = listed.run().unwrap().stdout_text();
    let subkeys: Vec<&str> = listed
        .lines()
        .filter(|line| line.starts_with("fpr:"))
        .filter_map(|line| line.split(':').nth(9))
        .skip(1)
        .collect();
    assert_eq!(subkeys.len(), 2, "{listed}");
    let home = ("GNUPGHOME", gpg.home().to_str().unwrap());
    let programs = Sops::all().unwrap();
    let programs: Vec<&Path> = programs.iter().map(Sops::program).chain([sandbox::lacre()]).collect();
    sandbox.write("plain.yaml", PLAIN);
    for subkey in &subkeys {
        let pinned = format!("{subkey}!");
        for sealer in &programs {
            let sealed = run_ok(&sandbox, sealer, &[home], &["encrypt", "--pgp", &pinned, "plain.yaml"]);
            assert!(sealed.contains(&format!("fp: {pinned}")), "{sealed}");
            sandbox.write("sealed.yaml", &sealed);
            let armored: Vec<&str> =
                sealed.lines().map(str::trim).skip_while(|line| !line.contains("BEGIN PGP")).collect();
            let end = armored.iter().position(|line| line.contains("END PGP")).unwrap();
            let message = armored[..=end].join("\n") + "\n";
            let packets = gpg.tool().args(["--batch", "--list-packets"]).stdin(message).run().unwrap();
            assert!(
                packets.stdout_text().contains(&subkey[24..]),
                "{}: {}",
                sealer.display(),
                packets.stdout_text()
            );
            for opener in &programs {
                let opened = run_ok(&sandbox, opener, &[home], &["decrypt", "sealed.yaml"]);
                assert!(opened.contains("port: 5432"), "{opened}");
            }
        }
    }
    // Of the primary key, which cannot be encrypted for.
    let refused = run(
        &sandbox,
        sandbox::lacre(),
        &[home],
        &["encrypt", "--pgp", &format!("{fingerprint}!"), "plain.yaml"],
    );
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        said.contains("no key in it is alive and meant for encryption") && refused.stdout.is_empty(),
        "{said}"
    );
}

#[test]
fn nothing_is_sealed_for_revoked_and_expired_certificates() {
    let (sandbox, gpg) = (Sandbox::new(), Gpg::new().unwrap());
    let revoked = gpg.generate("gone <gone@example.org>", Algorithm::Curve25519).unwrap();
    let certificate = fs::read_to_string(gpg.home().join(format!("openpgp-revocs.d/{revoked}.rev"))).unwrap();
    // gpg puts a colon before the armor, so that nobody imports it by accident.
    gpg.tool().args(["--batch", "--import"]).stdin(certificate.replace(":-----", "-----")).run().unwrap();
    let quiet = ["--batch", "--pinentry-mode", "loopback", "--passphrase", ""];
    let past = ["--faked-system-time", "20200101T000000", "--quick-generate-key"];
    gpg.tool()
        .args(quiet)
        .args(past)
        .args(["late <late@example.org>", "rsa2048", "encr", "1d"])
        .run()
        .unwrap();
    let listed =
        gpg.tool().args(["--batch", "--with-colons", "--list-keys", "late@example.org"]).run().unwrap();
    let listed = listed.stdout_text();
    let expired = listed.lines().find(|line| line.starts_with("fpr:")).unwrap().split(':').nth(9).unwrap();
    let home = ("GNUPGHOME", gpg.home().to_str().unwrap());
    sandbox.write("plain.yaml", PLAIN);
    for (fingerprint, says) in [(revoked.as_str(), "revoked"), (expired, "xpired")] {
        for environment in [&[home][..], &[home, NO_GPG]] {
            let words = ["encrypt", "--in-place", "--pgp", fingerprint, "plain.yaml"];
            let refused = run(&sandbox, sandbox::lacre(), environment, &words);
            let said = String::from_utf8_lossy(&refused.stderr);
            assert!(!refused.status.success() && said.contains(says) && said.contains(fingerprint), "{said}");
            assert!(said.contains("hint: import a current certificate"), "{said}");
            assert_eq!(sandbox.read("plain.yaml"), PLAIN);
        }
    }
}

/// A key for everything, made as `options` say; gives its fingerprint.
fn generate_weak(gpg: &Gpg, options: &[&str], user: &str, key: [&str; 2]) -> String {
    let quiet = ["--batch", "--pinentry-mode", "loopback", "--passphrase", ""];
    let made = gpg.tool().args(quiet).args(options).args(["--quick-generate-key", user, key[0], "cert,encr"]);
    made.args([key[1]]).run().unwrap();
    let listed = gpg.tool().args(["--batch", "--with-colons", "--list-keys", user]).run().unwrap();
    let listed = listed.stdout_text();
    listed.lines().find(|line| line.starts_with("fpr:")).unwrap().split(':').nth(9).unwrap().to_owned()
}

#[test]
fn weak_certificates_are_sealed_for_by_the_program_and_warned_of() {
    let (sandbox, gpg) = (Sandbox::new(), Gpg::new().unwrap());
    let sha1 = ["--cert-digest-algo", "SHA1"];
    let small = generate_weak(&gpg, &[], "small@example.org", ["rsa1024", "never"]);
    let hashed = generate_weak(&gpg, &sha1, "hashed@example.org", ["rsa2048", "never"]);
    let both = generate_weak(&gpg, &sha1, "both@example.org", ["rsa1024", "never"]);
    let home = ("GNUPGHOME", gpg.home().to_str().unwrap());
    let programs = Sops::all().unwrap();
    let programs: Vec<&Path> = programs.iter().map(Sops::program).chain([sandbox::lacre()]).collect();
    sandbox.write("plain.yaml", PLAIN);
    for (fingerprint, weakness) in [
        (&small, "RSA of 1024 bits, too"),
        (&format!("{small}!"), "RSA of 1024 bits, too"),
        (&hashed, "a self-signature over SHA-1, too"),
        (&both, "RSA of 1024 bits and a self-signature over SHA-1, too"),
    ] {
        let words = ["encrypt", "--pgp", fingerprint, "plain.yaml"];
        let sealed = run(&sandbox, sandbox::lacre(), &[home], &words);
        let said = String::from_utf8_lossy(&sealed.stderr);
        assert!(sealed.status.success(), "{fingerprint}: {said}");
        assert!(said.contains(&format!("warning: pgp {fingerprint}: {weakness}")), "{said}");
        sandbox.write("sealed.yaml", std::str::from_utf8(&sealed.stdout).unwrap());
        for opener in &programs {
            let opened = run_ok(&sandbox, opener, &[home], &["decrypt", "sealed.yaml"]);
            assert!(opened.contains("port: 5432"), "{opened}");
        }
        // The program alone judges such certificates.
        let refused = run(&sandbox, sandbox::lacre(), &[home, NO_GPG], &words);
        assert!(!refused.status.success() && refused.stdout.is_empty());
    }
}

#[test]
fn nothing_is_sealed_for_weak_certificates_that_are_revoked_or_expired() {
    let (sandbox, gpg) = (Sandbox::new(), Gpg::new().unwrap());
    let revoked = generate_weak(&gpg, &[], "gone@example.org", ["rsa1024", "never"]);
    let certificate = fs::read_to_string(gpg.home().join(format!("openpgp-revocs.d/{revoked}.rev"))).unwrap();
    gpg.tool().args(["--batch", "--import"]).stdin(certificate.replace(":-----", "-----")).run().unwrap();
    let past = ["--faked-system-time", "20200101T000000"];
    let expired = generate_weak(&gpg, &past, "late@example.org", ["rsa1024", "1d"]);
    let home = ("GNUPGHOME", gpg.home().to_str().unwrap());
    sandbox.write("plain.yaml", PLAIN);
    for fingerprint in [revoked, expired] {
        let words = ["encrypt", "--in-place", "--pgp", &fingerprint, "plain.yaml"];
        let refused = run(&sandbox, sandbox::lacre(), &[home], &words);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && said.contains("hint: "), "{said}");
        assert!(!said.contains("sealed through gpg"), "{said}");
        assert_eq!(sandbox.read("plain.yaml"), PLAIN);
    }
}

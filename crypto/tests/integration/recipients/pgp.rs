//! GnuPG 2.2 of the distribution, with an RSA and a Curve25519 key.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use lacre_crypto::recipient::pgp::{GpgProgram, PgpIdentity, PgpRecipient, read_secret_keys};
use lacre_crypto::recipient::{Identity, Recipient, RecipientId, UnwrapFailure};
use lacre_crypto::secret::SecretBytes;
use xtask::peers::gpg::{Algorithm, FixedKey, Gpg};
use xtask::process::Tool;

use super::{Tested, entry, keys};

/// A home with one key of each algorithm, and their fingerprints.
fn home() -> Result<(Gpg, [String; 2]), Box<dyn std::error::Error>> {
    let gpg = Gpg::new()?;
    let fingerprints = [
        gpg.import_fixed(FixedKey::RsaAlice)?,
        gpg.generate("Carol <carol@example.org>", Algorithm::Curve25519)?,
    ];
    Ok((gpg, fingerprints))
}

fn program(gpg: &Gpg) -> GpgProgram {
    GpgProgram { program: PathBuf::from("gpg"), home: Some(gpg.home().to_owned()) }
}

fn identity(gpg: &Gpg, fingerprint: &str) -> Result<PgpIdentity, Box<dyn std::error::Error>> {
    Ok(read_secret_keys(&SecretBytes::new(gpg.export_secret_key(fingerprint)?))?.remove(0))
}

fn seal(
    gpg: &Gpg,
    options: &[&str],
    fingerprint: &str,
    key: &[u8],
) -> Result<String, Box<dyn std::error::Error>> {
    let run = gpg.tool().args(["--batch", "--armor", "--encrypt", "--recipient", fingerprint]).args(options);
    Ok(String::from_utf8(run.stdin(key).run()?.success()?)?)
}

#[test]
fn gpg_opens_what_we_wrap() -> Tested {
    let (gpg, fingerprints) = home()?;
    for fingerprint in &fingerprints {
        let recipient = PgpRecipient::find(fingerprint, &gpg.export_certificate(fingerprint)?)?;
        for key in keys() {
            let enc = recipient.wrap(&key)?;
            let opened = gpg.tool().args(["--batch", "--decrypt"]).stdin(enc.as_bytes()).run()?.success()?;
            assert_eq!(opened, key.expose_secret());
        }
    }
    Ok(())
}

#[test]
fn we_open_what_gpg_wraps() -> Tested {
    let (gpg, fingerprints) = home()?;
    for fingerprint in &fingerprints {
        let identity = identity(&gpg, fingerprint)?;
        assert_eq!(identity.public(), format!("pgp {fingerprint}"));
        for options in [&[][..], &["--throw-keyids"], &["--compress-algo", "zip"]] {
            for key in keys() {
                let enc = seal(&gpg, options, fingerprint, key.expose_secret())?;
                let entry = entry(RecipientId::Pgp(fingerprint.clone()), enc);
                assert_eq!(identity.unwrap(&entry).ok_or("not for us")??, key, "{options:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn the_program_finds_certificates_and_opens_what_is_for_its_keys() -> Tested {
    let (gpg, fingerprints) = home()?;
    let program = program(&gpg);
    for fingerprint in &fingerprints {
        let recipient = PgpRecipient::from_gpg(fingerprint, &program)?;
        for key in keys() {
            let entry = entry(recipient.id(), recipient.wrap(&key)?);
            assert_eq!(program.unwrap(&entry).ok_or("not for us")??, key);
        }
    }
    let reason = PgpRecipient::from_gpg(&"0".repeat(40), &program).map(drop).unwrap_err().reason;
    assert!(reason.contains("no OpenPGP certificate"), "{reason}");
    Ok(())
}

#[test]
fn both_open_what_go_wrapped_in_short_chunks() -> Tested {
    let (gpg, [fingerprint, _]) = home()?;
    let enc = include_str!("../../../../testdata/messages/openpgp-go-2019.asc");
    let entry = entry(RecipientId::Pgp(fingerprint.clone()), enc);
    for identity in [&identity(&gpg, &fingerprint)? as &dyn Identity, &program(&gpg)] {
        let key = identity.unwrap(&entry).ok_or("not for us")??;
        assert_eq!(key.expose_secret(), b"a data key of exactly 32 bytes !", "{}", identity.public());
    }
    Ok(())
}

#[test]
fn the_program_says_nothing_about_messages_for_others() -> Tested {
    let (gpg, fingerprints) = home()?;
    let stranger = Gpg::new()?;
    let [key, _] = keys();
    for fingerprint in &fingerprints {
        let recipient = PgpRecipient::find(fingerprint, &gpg.export_certificate(fingerprint)?)?;
        let entry = entry(recipient.id(), recipient.wrap(&key)?);
        assert!(program(&stranger).unwrap(&entry).is_none());
    }
    Ok(())
}

#[test]
fn what_gpg_wrapped_and_is_no_key_is_refused_by_both() -> Tested {
    let (gpg, [_, fingerprint]) = home()?;
    let identity = identity(&gpg, &fingerprint)?;
    for length in [0, 31, 34, 8 << 20] {
        let enc = seal(&gpg, &["--compress-level", "9"], &fingerprint, &vec![0; length])?;
        let entry = entry(RecipientId::Pgp(fingerprint.clone()), enc);
        for identity in [&identity as &dyn Identity, &program(&gpg)] {
            let error = identity.unwrap(&entry).ok_or("not for us")?.map(drop).unwrap_err();
            assert_eq!(error.kind, UnwrapFailure::Broken, "{length} {}: {error}", identity.public());
        }
    }
    Ok(())
}

#[test]
fn a_damaged_message_is_broken_for_the_program() -> Tested {
    let (gpg, [_, fingerprint]) = home()?;
    let [key, _] = keys();
    let enc = seal(&gpg, &[], &fingerprint, key.expose_secret())?;
    // Without its checksum, which is optional and would tell first.
    let lines: Vec<&str> = enc.lines().filter(|line| !(line.starts_with('=') && line.len() == 5)).collect();
    for at in [3, lines.len() - 2] {
        let mut lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
        let other = if lines[at].starts_with('A') { "B" } else { "A" };
        lines[at].replace_range(..1, other);
        let entry = entry(RecipientId::Pgp(fingerprint.clone()), lines.join("\n"));
        let error = program(&gpg).unwrap(&entry).ok_or("not for us")?.map(drop).unwrap_err();
        assert_eq!(error.kind, UnwrapFailure::Broken, "line {at}: {error}");
    }
    Ok(())
}

/// The window that asks, and somebody who closes it.
const CLOSED: &str = r#"#!/bin/sh
echo "OK"
while read -r line; do
    case "$line" in
        GETPIN*) echo "ERR 83886179 Operation cancelled" ;;
        *) echo "OK" ;;
    esac
done
"#;

#[test]
fn a_passphrase_that_nobody_gives_is_a_refusal() -> Tested {
    let gpg = Gpg::new()?;
    let quiet = ["--batch", "--pinentry-mode", "loopback", "--passphrase", "pass"];
    let make = ["--quick-generate-key", "Dave <dave@example.org>", "rsa2048", "encrypt,cert", "never"];
    gpg.tool().args(quiet).args(make).run()?.success()?;
    let listed = gpg.tool().args(["--batch", "--with-colons", "--list-keys"]).run()?.success()?;
    let listed = String::from_utf8(listed)?;
    let fingerprint = listed.lines().find_map(|line| line.strip_prefix("fpr:::::::::")).ok_or("no key")?;
    let fingerprint = fingerprint.trim_end_matches(':');
    let recipient = PgpRecipient::from_gpg(fingerprint, &program(&gpg))?;
    let [key, _] = keys();
    let entry = entry(recipient.id(), recipient.wrap(&key)?);
    let closed = gpg.home().join("closed");
    fs::write(&closed, CLOSED)?;
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700))?;
    for (asking, kind) in [
        ("/nonexistent", UnwrapFailure::Unreachable),
        (closed.to_str().ok_or("no text")?, UnwrapFailure::Denied),
    ] {
        fs::write(gpg.home().join("gpg-agent.conf"), format!("pinentry-program {asking}\n"))?;
        // The agent that has seen the passphrase would not ask.
        Tool::new("gpgconf").env("GNUPGHOME", gpg.home()).args(["--kill", "gpg-agent"]).run()?.success()?;
        let error = program(&gpg).unwrap(&entry).ok_or("not for us")?.map(drop).unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
    }
    Ok(())
}

/// Stands where gpg would, and writes down what it was given: `--homedir HOME …`.
const WITNESS: &str = r#"#!/bin/sh
env > "$2/environment"
echo "$@" > "$2/arguments"
cat > "$2/input"
"#;

#[test]
fn the_program_gets_the_message_by_standard_input_and_little_of_our_environment() -> Tested {
    let (gpg, [fingerprint, _]) = home()?;
    let path = gpg.home().join("witness");
    fs::write(&path, WITNESS)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700))?;
    let recipient = PgpRecipient::find(&fingerprint, &gpg.export_certificate(&fingerprint)?)?;
    let [key, _] = keys();
    let enc = recipient.wrap(&key)?;
    let witness = GpgProgram { program: path, home: Some(gpg.home().to_owned()) };
    let outcome = witness.unwrap(&entry(recipient.id(), &enc)).ok_or("not for us")?;
    assert!(outcome.is_err());
    let read = |name: &str| fs::read_to_string(gpg.home().join(name));
    assert_eq!(read("input")?, enc);
    let home = gpg.home().display();
    let arguments = format!("--homedir {home} --batch --status-fd 2 --max-output 4096 --decrypt\n");
    assert_eq!(read("arguments")?, arguments);
    let environment = read("environment")?;
    // Cargo set this one for us.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(environment.contains("PATH=") && !environment.contains("CARGO"), "{environment}");
    Ok(())
}

#[test]
fn a_secret_key_with_a_passphrase_is_left_to_the_program() -> Tested {
    let gpg = Gpg::new()?;
    let quiet = ["--batch", "--pinentry-mode", "loopback", "--passphrase", "pass"];
    let make = ["--quick-generate-key", "Erin <erin@example.org>", "rsa2048", "encrypt,cert", "never"];
    gpg.tool().args(quiet).args(make).run()?.success()?;
    let exported = gpg.tool().args(quiet).args(["--armor", "--export-secret-keys"]).run()?.success()?;
    let reason = read_secret_keys(&SecretBytes::new(exported)).map(drop).unwrap_err().reason;
    assert!(reason.contains("use it through gpg"), "{reason}");
    Ok(())
}

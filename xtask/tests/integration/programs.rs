//! Programs that run once.

use std::fs;

use anyhow::Result;
use xtask::peers::age::Age;
use xtask::peers::gpg::{Algorithm, FixedKey, Gpg};
use xtask::peers::sops::Sops;

#[test]
fn each_sops_is_the_version_it_is_called() -> Result<()> {
    for sops in Sops::all()? {
        let said = String::from_utf8(sops.tool().arg("--version").run()?.success()?)?;
        assert!(said.starts_with(&format!("sops {}", sops.version())), "{said}");
    }
    Ok(())
}

#[test]
fn each_sops_opens_what_the_other_sealed_with_age() -> Result<()> {
    let key = Age::new()?.keygen()?;
    let [old, new] = Sops::all()?;
    for (writer, reader) in [(&old, &new), (&new, &old)] {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("a.yaml"), "a: secret\n")?;
        let seal = writer.tool().dir(folder.path()).args(["encrypt", "--age", &key.recipient, "a.yaml"]);
        fs::write(folder.path().join("sealed.yaml"), seal.run()?.success()?)?;
        let open = reader.tool().dir(folder.path()).env("SOPS_AGE_KEY", &key.identity);
        assert_eq!(open.args(["decrypt", "sealed.yaml"]).run()?.success()?, b"a: secret\n");
    }
    Ok(())
}

#[test]
fn sops_does_not_see_the_environment_of_the_test() -> Result<()> {
    let finished = Sops::v3_13()?.tool().args(["decrypt", "/nonexistent.yaml"]).run()?;
    assert_ne!(finished.code, Some(0));
    let environment = xtask::process::Tool::new("env").run()?.success()?;
    let names: Vec<String> = String::from_utf8(environment)?
        .lines()
        .filter_map(|line| Some(line.split_once('=')?.0.to_owned()))
        .collect();
    assert!(names.iter().all(|name| ["HOME", "LC_ALL", "PATH"].contains(&name.as_str())), "{names:?}");
    Ok(())
}

#[test]
fn age_opens_what_it_sealed() -> Result<()> {
    let age = Age::new()?;
    let key = age.keygen()?;
    let sealed = age.encrypt(&key.recipient, b"x")?;
    assert_eq!(age.decrypt(&key.identity, &sealed)?, b"x");
    assert!(age.decrypt(&age.keygen()?.identity, &sealed).is_err());
    Ok(())
}

#[test]
fn a_generated_key_moves_to_another_home() -> Result<()> {
    let (here, there) = (Gpg::new()?, Gpg::new()?);
    let fingerprint = here.generate("Carol <carol@example.org>", Algorithm::Curve25519)?;
    assert_eq!(there.import(&here.export_certificate(&fingerprint)?)?, fingerprint);
    let sealed = there
        .tool()
        .args(["--batch", "--encrypt", "--recipient", &fingerprint])
        .stdin("x")
        .run()?
        .success()?;
    assert_ne!(there.tool().args(["--batch", "--decrypt"]).stdin(sealed.as_slice()).run()?.code, Some(0));
    there.import(&here.export_secret_key(&fingerprint)?)?;
    assert_eq!(there.tool().args(["--batch", "--decrypt"]).stdin(sealed).run()?.success()?, b"x");
    Ok(())
}

#[test]
fn sops_seals_to_the_fixed_rsa_keys() -> Result<()> {
    let gpg = Gpg::new()?;
    gpg.import_fixed(FixedKey::RsaAlice)?;
    let bob = gpg.import_fixed(FixedKey::RsaBob)?;
    for sops in Sops::all()? {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("a.json"), "{\"a\": \"secret\"}")?;
        let tool = || sops.tool().dir(folder.path()).env("GNUPGHOME", gpg.home());
        tool().args(["encrypt", "--in-place", "--pgp", &bob, "a.json"]).run()?.success()?;
        let opened = tool().args(["decrypt", "a.json"]).run()?.success()?;
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&opened)?["a"], "secret");
    }
    Ok(())
}

#[test]
fn no_agent_outlives_its_home() -> Result<()> {
    let gpg = Gpg::new()?;
    gpg.import_fixed(FixedKey::RsaAlice)?;
    let socket = gpg.home().join("S.gpg-agent");
    assert!(socket.exists(), "importing a secret key starts an agent");
    let home = gpg.home().display().to_string();
    assert!(agents().contains(&home));
    drop(gpg);
    xtask::wait::until(std::time::Duration::from_secs(5), "the agent to end", || {
        Ok((!agents().contains(&home)).then_some(()))
    })
}

/// The command lines of all running processes.
fn agents() -> String {
    let processes = fs::read_dir("/proc").expect("Linux has /proc").flatten();
    let lines = processes.filter_map(|process| fs::read_to_string(process.path().join("cmdline")).ok());
    lines.collect::<Vec<_>>().join("\n")
}

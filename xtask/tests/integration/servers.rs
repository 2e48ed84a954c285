//! Servers: what they serve, and that none is left behind.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use xtask::peers::bao::Bao;
use xtask::peers::etcd::Etcd;
use xtask::peers::moto::Moto;
use xtask::peers::sops::Sops;
use xtask::scratch::Scratch;
use xtask::wait;

#[test]
fn sops_seals_with_a_kms_key_of_moto() -> Result<()> {
    let moto = Moto::shared()?;
    let arn = moto.create_key()?;
    for sops in Sops::all()? {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("a.yaml"), "a: secret\n")?;
        let tool = || sops.tool().dir(folder.path()).envs(moto.environment());
        tool().args(["encrypt", "--in-place", "--kms", &arn, "a.yaml"]).run()?.success()?;
        assert_eq!(tool().args(["decrypt", "a.yaml"]).run()?.success()?, b"a: secret\n");
    }
    Ok(())
}

#[test]
fn sops_seals_with_a_transit_key_of_bao() -> Result<()> {
    let bao = Bao::shared()?;
    let key = bao.transit_key("first")?;
    for sops in Sops::all()? {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("a.yaml"), "a: secret\n")?;
        let tool = || {
            sops.tool().dir(folder.path()).env("VAULT_ADDR", bao.address()).env("VAULT_TOKEN", bao.token())
        };
        tool().args(["encrypt", "--in-place", "--hc-vault-transit", &key, "a.yaml"]).run()?.success()?;
        assert_eq!(tool().args(["decrypt", "a.yaml"]).run()?.success()?, b"a: secret\n");
    }
    Ok(())
}

#[test]
fn a_refusal_of_the_server_is_an_error() -> Result<()> {
    let error = Bao::shared()?.post("transit/encrypt/absent/x", &json!({})).unwrap_err().to_string();
    assert!(error.starts_with("POST transit/encrypt/absent/x: 4"), "{error}");
    Ok(())
}

#[test]
fn a_dropped_server_is_gone() -> Result<()> {
    let folder = Scratch::new("lacre-etcd-", "true")?;
    let etcd = Etcd::start(folder.path())?;
    let address = etcd.address().trim_start_matches("http://").to_owned();
    assert!(TcpStream::connect(&address).is_ok());
    drop(etcd);
    assert!(TcpStream::connect(&address).is_err());
    Ok(())
}

/// What Drop cannot do: the test binary of the next function is killed with a server running.
#[test]
fn a_server_dies_with_a_killed_process_and_its_folder_goes() -> Result<()> {
    let mut helper = Command::new(std::env::current_exe()?)
        .args(["--exact", "servers::serves_until_killed", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()?;
    let lines = BufReader::new(helper.stdout.take().context("no pipe")?).lines();
    let line = lines
        .map_while(Result::ok)
        .find(|line| line.contains("SERVES "))
        .context("the helper did not serve")?;
    let mut words = line.split_whitespace().skip_while(|word| *word != "SERVES").skip(1);
    let (address, folder) = (words.next().context("no address")?, words.next().context("no folder")?);
    assert!(TcpStream::connect(address).is_ok());
    helper.kill()?;
    helper.wait()?;
    wait::until(Duration::from_secs(10), "the server's end", || Ok(TcpStream::connect(address).err()))?;
    wait::until(Duration::from_secs(10), "the folder's end", || {
        Ok((!Path::new(folder).exists()).then_some(()))
    })
}

#[test]
#[ignore = "the helper of the test above"]
fn serves_until_killed() -> Result<()> {
    let folder = Scratch::new("lacre-etcd-", "true")?;
    let etcd =
        std::thread::scope(|scope| scope.spawn(|| Etcd::start(folder.path())).join().expect("no panic"))?;
    println!("SERVES {} {}", etcd.address().trim_start_matches("http://"), folder.path().display());
    std::thread::sleep(Duration::from_secs(60));
    Ok(())
}

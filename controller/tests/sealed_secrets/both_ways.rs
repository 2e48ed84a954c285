//! What either command line seals, the other side's controller opens; and each finds the other through the API server.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use xtask::commands::build::{self, Profile};
use xtask::peers::sealed_secrets;
use xtask::process::Tool;
use xtask::scratch::Scratch;

use crate::site::{Site, Turn, Whose};

const SCOPES: [&str; 3] = ["strict", "namespace-wide", "cluster-wide"];
const FORMATS: [&str; 2] = ["json", "yaml"];
/// The most that the API server takes in one Secret.
const MEBIBYTE: usize = 1 << 20;

/// Our command line under the name that it is called by.
pub(crate) struct Kubeseal {
    _folder: Option<Scratch>,
    pub(crate) program: PathBuf,
}

impl Kubeseal {
    pub(crate) fn of(whose: Whose) -> Result<Self> {
        if whose == Whose::Theirs {
            return Ok(Self { _folder: None, program: sealed_secrets::KUBESEAL.path()? });
        }
        let folder = Scratch::new("lacre-kubeseal-", "true")?;
        let program = folder.path().join("kubeseal");
        symlink(build::find(&build::programs(Profile::Debug)?, "lacre")?, &program)?;
        Ok(Self { _folder: Some(folder), program })
    }

    fn on(&self, site: &Site) -> Tool {
        Tool::new(&self.program).env("KUBECONFIG", site.cluster.admin_kubeconfig())
    }
}

#[test]
fn their_controller_opens_what_we_seal() -> Result<()> {
    opens(Whose::Theirs, Whose::Ours)
}

#[test]
fn our_controller_opens_what_they_seal() -> Result<()> {
    opens(Whose::Ours, Whose::Theirs)
}

#[test]
fn their_command_line_asks_our_controller() -> Result<()> {
    asks(Whose::Theirs, Whose::Ours)
}

#[test]
fn our_command_line_asks_their_controller() -> Result<()> {
    asks(Whose::Ours, Whose::Theirs)
}

fn opens(controller: Whose, command_line: Whose) -> Result<()> {
    let kubeseal = Kubeseal::of(command_line)?;
    let site = Turn::take()?;
    let space = site.space("both-ways")?;
    let pod = site.start(controller, &[])?;
    site.certificate(&pod)?;
    let mut expected = Vec::new();
    for scope in SCOPES {
        for format in FORMATS {
            for (kind, data) in [("small", small()), ("large", large())] {
                let name = format!("{kind}-{scope}-{format}");
                let input = json!({"apiVersion": "v1", "kind": "Secret", "data": data,
                    "metadata": {"namespace": space.name, "name": name}});
                let tool = kubeseal.on(&site).args(["--scope", scope, "--format", format]);
                let sealed = tool.stdin(input.to_string()).run()?.success()?;
                site.cluster.admin().tool().args(["create", "-f", "-"]).stdin(sealed).run()?.success()?;
                expected.push((name, data));
            }
        }
    }
    for (name, data) in expected {
        let secret = site
            .until("the Secret", || site.find("Secret", &space.name, &name))
            .with_context(|| format!("{name}: {:?}", site.find("SealedSecret", &space.name, &name)))?;
        // Not `assert_eq!`, which would print a mebibyte.
        assert!(secret["data"] == data, "{name} is not what was sealed");
    }
    Ok(())
}

fn small() -> Value {
    let every_byte: Vec<u8> = (0..=255).collect();
    json!({
        "empty": encode(b""),
        "one-byte": encode(b"x"),
        "binary": encode(&every_byte),
        "utf-8": encode("grüße, 世界 \u{1f511}\n".as_bytes()),
        "crlf": encode(b"a\r\nb\r\n"),
    })
}

fn large() -> Value {
    let bytes: Vec<u8> = (0..MEBIBYTE).map(|at| (at * 31 % 251) as u8).collect();
    json!({"large": encode(&bytes)})
}

fn encode(bytes: &[u8]) -> Value {
    json!(ByteString(bytes.to_vec()))
}

/// The certificate, whether a document opens, and documents sealed anew.
fn asks(command_line: Whose, controller: Whose) -> Result<()> {
    let kubeseal = Kubeseal::of(command_line)?;
    let site = Turn::take()?;
    let space = site.space("asks")?;
    let pod = site.start(controller, &["--rate-limit=100", "--rate-limit-burst=100"])?;
    let certificate = site.certificate(&pod)?;
    let fetched = kubeseal.on(&site).arg("--fetch-cert").run()?.success()?;
    assert_eq!(String::from_utf8(fetched)?, certificate);
    for format in FORMATS {
        let name = format!("db-{format}");
        let input = json!({"apiVersion": "v1", "kind": "Secret", "data": small(),
            "metadata": {"namespace": space.name, "name": name}});
        let run = |flags: &[&str], document: &[u8]| {
            kubeseal.on(&site).args(["--format", format]).args(flags).stdin(document).run()
        };
        let sealed = run(&[], input.to_string().as_bytes())?.success()?;
        run(&["--validate"], &sealed)?.success()?;
        let moved = String::from_utf8(sealed.clone())?.replace(&name, "elsewhere");
        assert_ne!(run(&["--validate"], moved.as_bytes())?.code, Some(0), "a wrong name is not told");
        let again = run(&["--re-encrypt"], &sealed)?.success()?;
        assert_ne!(again, sealed, "nothing was sealed anew");
        run(&["--validate"], &again)?.success()?;
        site.cluster.admin().tool().args(["create", "-f", "-"]).stdin(again).run()?.success()?;
        let secret = site.until("the Secret", || site.find("Secret", &space.name, &name))?;
        assert_eq!(secret["data"], small());
    }
    Ok(())
}

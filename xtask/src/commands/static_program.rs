//! `cargo xtask static`: the controller as one file that needs no library, in the root of an image that holds nothing
//! else but the certificates of authorities. `controller/deploy/Dockerfile` copies that root as it is.
//!
//! It is linked with glibc: no other C library, and no other target, has to be installed. `--try` starts it in that root,
//! where there is no loader, library, shell or `/etc/passwd`, against a real API server whose authority is known from
//! that file of certificates alone. `--debug` builds without optimisation. A static build shares nothing with the
//! others and takes minutes, so this is a command of its own and no test.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::demo::ClusterStage;
use super::test::cargo;
use crate::http;
use crate::output;
use crate::peers::cluster::{Cluster, ServiceAccount};
use crate::process::start_on_free_port;
use crate::scratch::Scratch;
use crate::{commands::dist, root};

/// The program.
const PROGRAM: &str = "lacre-controller";
/// The name that manifests of Sealed Secrets call.
const OTHER_NAME: &str = "controller";
/// Where programs lie in the image.
const PROGRAMS: &str = "usr/local/bin";
/// Where this machine has the certificates of authorities, and where programs look for them.
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";

/// Builds the program and lays out the root.
///
/// # Errors
/// The build fails, or this machine has no certificates; with `--try`, the program does not become ready.
pub fn run(arguments: &[String]) -> Result<ExitCode> {
    let [debug, try_it] = super::switches(arguments, ["--debug", "--try"])?;
    let program = build(debug)?;
    let folder = target().join("static/root");
    lay_out(&folder, &program)?;
    output::line(&folder.display().to_string());
    if try_it {
        try_out(&folder)?;
        output::line("it is ready, with nothing around it");
    }
    Ok(ExitCode::SUCCESS)
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn build(debug: bool) -> Result<PathBuf> {
    let host = dist::host()?;
    ensure!(host.ends_with("-linux-gnu"), "static programs are built on Linux with glibc, not on {host}");
    // With the target named, the flags are for the program, not for what builds it.
    let mut command =
        cargo(&["build", "--locked", "--package", PROGRAM, "--bin", PROGRAM, "--target", &host]);
    command.env("RUSTFLAGS", "-C target-feature=+crt-static").stdout(Stdio::inherit());
    if !debug {
        command.arg("--release");
    }
    ensure!(command.status().context("cannot start cargo")?.success(), "the build failed");
    let profile = if debug { "debug" } else { "release" };
    Ok(target().join(host).join(profile).join(PROGRAM))
}

/// Makes `folder` anew, with what the image holds.
fn lay_out(folder: &Path, program: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let programs = folder.join(PROGRAMS);
    fs::create_dir_all(&programs)?;
    fs::copy(program, programs.join(PROGRAM)).with_context(|| format!("no {}", program.display()))?;
    symlink(PROGRAM, programs.join(OTHER_NAME))?;
    let certificates = folder.join(CERTIFICATES);
    fs::create_dir_all(certificates.parent().context("no folder")?)?;
    let installed = Path::new("/").join(CERTIFICATES);
    fs::copy(&installed, certificates)
        .with_context(|| format!("no {}: install ca-certificates", installed.display()))?;
    Ok(())
}

/// Starts the program with `folder` for its root and waits until it is ready.
fn try_out(folder: &Path) -> Result<()> {
    let cluster = Cluster::start()?;
    let account = ClusterStage::install(&cluster)?;
    let scratch = Scratch::new("lacre-static-", "true")?;
    let inside = scratch.path().join("root");
    let copied = Command::new("cp").arg("--archive").args([folder, &inside]).status()?;
    ensure!(copied.success(), "cannot copy {}", folder.display());
    let certificates = inside.join(CERTIFICATES);
    let authority = fs::read_to_string(cluster.authority())?;
    fs::write(&certificates, fs::read_to_string(&certificates)? + "\n" + &authority)?;
    fs::write(inside.join("kubeconfig"), kubeconfig(cluster.server(), &account).to_string())?;

    let command = |port: u16| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--root"]).arg(&inside).arg("--");
        // By the other name, which is a link.
        command.arg(Path::new("/").join(PROGRAMS).join(OTHER_NAME));
        command.args(["--kubeconfig", "/kubeconfig", "--namespace", "lacre-system", "--key-size=2048"]);
        command.arg(format!("--listen-addr=127.0.0.1:{port}")).arg("--listen-metrics-addr=127.0.0.1:0");
        command.env_clear();
        command
    };
    let ready =
        |port: u16| http::request(port, "GET", "/readyz", &[], "").is_ok_and(|answer| answer.status == 200);
    start_on_free_port(PROGRAM, &scratch.path().join("log"), command, ready).map(drop)
}

/// One that names no authority: the server's is among the certificates.
fn kubeconfig(server: &str, account: &ServiceAccount) -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "try", "cluster": {"server": server}}],
        "users": [{"name": "try", "user": {"token": account.token}}],
        "contexts": [{"name": "try", "context": {"cluster": "try", "user": "try"}}],
        "current-context": "try",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_holds_the_program_under_both_names_and_certificates_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let (program, folder) = (scratch.path().join("built"), scratch.path().join("root"));
        fs::write(&program, "a program").unwrap();
        for _ in 0..2 {
            lay_out(&folder, &program).unwrap();
        }
        let mut files: Vec<_> = files(&folder).iter().map(|file| file.display().to_string()).collect();
        files.sort();
        assert_eq!(files, [CERTIFICATES, "usr/local/bin/controller", "usr/local/bin/lacre-controller"]);
        assert_eq!(fs::read_to_string(folder.join(PROGRAMS).join(OTHER_NAME)).unwrap(), "a program");
        assert!(fs::read_to_string(folder.join(CERTIFICATES)).unwrap().contains("BEGIN CERTIFICATE"));
    }

    fn files(folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![folder.to_path_buf()];
        while let Some(open) = folders.pop() {
            for entry in fs::read_dir(open).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => found.push(path.strip_prefix(folder).unwrap().to_path_buf()),
                }
            }
        }
        found
    }

    #[test]
    fn the_image_is_that_root() {
        let text = fs::read_to_string(root().join("controller/deploy/Dockerfile")).unwrap();
        let orders: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            orders.iter().filter(|order| order.starts_with("FROM")).collect::<Vec<_>>(),
            [&"FROM scratch"]
        );
        assert!(orders.contains(&"COPY root/ /") && orders.contains(&"USER 65532:65532"));
        assert!(orders.contains(&"ENTRYPOINT [\"/usr/local/bin/lacre-controller\"]"));
    }
}

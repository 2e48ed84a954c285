//! `kubeseal` and the Sealed Secrets controller against what takes their place.
//!
//! The controllers start on a real cluster that holds the same objects, with the rights that their own chart gives.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::measure::{self, Comparison, Sample};
use crate::peers::cluster::Cluster;
use crate::peers::pod::{Container, Pod};
use crate::peers::sealed_secrets::{self, SERVICE};
use crate::{http, output, wait};

/// How many Secrets are sealed and opened.
const SECRETS: usize = 500;
/// Values in each of them.
const VALUES: usize = 4;
/// How many pairs of each are run.
const PAIRS: usize = 3;
/// Secrets that no SealedSecret is about.
const FOREIGN: usize = 10_000;
/// How often a Secret is deleted to see how long it is gone.
const DELETIONS: usize = 10;
/// The two sides, in the order of a pair.
pub(super) const NAMES: [&str; 2] = ["lacre", "peer"];
const HOME: &str = "kube-system";
const SPACE: &str = "bench";
/// Counts each time that a SealedSecret was looked at, in both controllers.
const LOOKS: &str = "sealed_secrets_controller_unseal_requests_total";
/// Longer than any start takes.
const DEADLINE: Duration = Duration::from_secs(600);

/// What was measured.
pub(super) struct Results {
    /// Of both programs.
    pub(super) comparisons: Vec<Comparison>,
    /// Milliseconds of processor time of a process that opens the same items and does nothing else.
    decryptions_cpu_ms: f64,
    /// Milliseconds from the deletion of a Secret until it is back with our controller: median and most.
    repair_ms: [f64; 2],
}

impl Results {
    pub(super) fn to_line(&self) -> String {
        let [median, most] = self.repair_ms;
        format!(
            "the same decryptions alone: {:.0} ms CPU; a deleted Secret is back after {median:.0} ms, {most:.0} at most",
            self.decryptions_cpu_ms
        )
    }

    pub(super) fn to_json(&self) -> Value {
        let compared: Vec<_> = self.comparisons.iter().map(Comparison::to_json).collect();
        let [median, most] = self.repair_ms;
        json!({"names": NAMES, "results": compared, "decryptions_alone_cpu_ms": self.decryptions_cpu_ms,
            "repair_ms": {"median": median, "most": most}})
    }
}

/// A cluster with the objects, and the programs of both sides in the order of a pair.
struct Stage {
    cluster: Cluster,
    controllers: [PathBuf; 2],
    kubeseals: [PathBuf; 2],
    certificate: PathBuf,
    folder: PathBuf,
}

/// Measures all of it with our programs `lacre` and `controller`.
///
/// # Errors
/// A program is missing or fails, or a controller does not open everything.
pub(super) fn measure(folder: &Path, lacre: &Path, controller: &Path) -> Result<Results> {
    let stage = Stage::set(folder, lacre, controller)?;
    let mut comparisons = vec![stage.seal()?];
    stage.create_objects()?;
    comparisons.push(stage.pairs_of("controller starts again", |whose| stage.start(whose))?);
    comparisons
        .push(stage.pairs_of("controller starts for the first time", |whose| stage.start_anew(whose))?);
    let (decryptions_cpu_ms, repair_ms) = (stage.decrypt()?, stage.repair()?);
    output::problem(&format!("{FOREIGN} foreign Secrets"));
    stage.create_foreign()?;
    comparisons.push(stage.pairs_of("the same, 10,000 foreign Secrets", |whose| stage.start(whose))?);
    Ok(Results { comparisons, decryptions_cpu_ms, repair_ms })
}

impl Stage {
    fn set(folder: &Path, lacre: &Path, controller: &Path) -> Result<Self> {
        let cluster = Cluster::start()?;
        cluster.admin().apply(&sealed_secrets::installation(HOME)?)?;
        cluster.admin().run(["wait", "--for=condition=Established", "crd/sealedsecrets.bitnami.com"])?;
        cluster.admin().run(["create", "namespace", SPACE])?;
        let kubeseal = folder.join("kubeseal");
        symlink(lacre, &kubeseal)?;
        let stage = Self {
            cluster,
            controllers: [controller.to_path_buf(), sealed_secrets::CONTROLLER.path()?],
            kubeseals: [kubeseal, sealed_secrets::KUBESEAL.path()?],
            certificate: folder.join("certificate.pem"),
            folder: folder.to_path_buf(),
        };
        // Its key has the size that it makes by default, and is the one for all that follows.
        let theirs = stage.pod(1)?;
        let certificate = wait::until(DEADLINE, "the first certificate", || {
            let answer = http::request(theirs.port(), "GET", "/v1/cert.pem", &[], "")?;
            Ok((answer.status == 200 && answer.body.contains("CERTIFICATE")).then_some(answer.body))
        })?;
        fs::write(&stage.certificate, certificate)?;
        Ok(stage)
    }

    fn pod(&self, whose: usize) -> Result<Pod> {
        let arguments: &[&str] = if whose == 0 { &[] } else { &["--kubeclient-qps=-1"] };
        let program = &self.controllers[whose];
        let container = Container { name: "controller", program, arguments, environment: &[] };
        Pod::start(&self.cluster, HOME, SERVICE, &container)
    }

    fn pairs_of(&self, work: &str, run: impl Fn(usize) -> Result<Sample>) -> Result<Comparison> {
        output::problem(&format!("{work}: {PAIRS} pairs"));
        let mut samples = [Vec::new(), Vec::new()];
        for _ in 0..PAIRS {
            for (whose, taken) in samples.iter_mut().enumerate() {
                taken.push(run(whose)?);
            }
        }
        Ok(Comparison::of(NAMES, work.to_owned(), samples))
    }

    fn kubeseal(&self, whose: usize, input: &Path, result: File) -> Result<Sample> {
        let mut command = Command::new(&self.kubeseals[whose]);
        command.env_clear().env("HOME", "/nonexistent").args(["--format", "yaml", "--cert"]);
        command.arg(&self.certificate).stdin(File::open(input)?).stdout(result).stderr(Stdio::piped());
        measure::sample(command)
    }

    fn seal(&self) -> Result<Comparison> {
        let input = self.folder.join("secrets.yaml");
        let one = |number: usize| {
            let values: String =
                (0..VALUES).map(|value| format!("  k{value}: value {number} {value}\n")).collect();
            format!(
                "apiVersion: v1\nkind: Secret\nmetadata:\n  namespace: {SPACE}\n  name: s{number}\nstringData:\n{values}"
            )
        };
        fs::write(&input, (0..SECRETS).map(one).collect::<Vec<_>>().join("---\n"))?;
        let work = format!("seal {SECRETS} Secrets of {VALUES} values");
        self.pairs_of(&work, |whose| self.kubeseal(whose, &input, File::create("/dev/null")?))
    }

    /// Those of their own `kubeseal`.
    fn create_objects(&self) -> Result<()> {
        let sealed = self.folder.join("sealed.yaml");
        self.kubeseal(1, &self.folder.join("secrets.yaml"), File::create(&sealed)?)?;
        let create = self.cluster.admin().tool().args(["create", "-f"]).arg(&sealed).deadline(DEADLINE);
        create.run()?.success()?;
        // Now they are as they will be: with status, and with Secrets that theirs made.
        self.start(1).map(drop)
    }

    /// From the start until all were looked at.
    fn start(&self, whose: usize) -> Result<Sample> {
        let start = Instant::now();
        let pod = self.pod(whose)?;
        wait::until(DEADLINE, "all to be looked at", || Ok((looks(&pod)? >= SECRETS as f64).then_some(())))?;
        measure::running(start, pod.server().pid())
    }

    /// From the start until all Secrets are there, which were not before.
    fn start_anew(&self, whose: usize) -> Result<Sample> {
        let admin = self.cluster.admin();
        let delete = admin.tool().args(["delete", "secrets", "--all", "--namespace", SPACE]);
        delete.deadline(DEADLINE).run()?.success()?;
        let start = Instant::now();
        let pod = self.pod(whose)?;
        wait::until(DEADLINE, "all to be looked at", || Ok((looks(&pod)? >= SECRETS as f64).then_some(())))?;
        wait::until(DEADLINE, "all Secrets", || {
            let names = admin.run(["get", "secrets", "--namespace", SPACE, "--output=name"])?;
            Ok((String::from_utf8(names)?.lines().count() == SECRETS).then_some(()))
        })?;
        measure::running(start, pod.server().pid())
    }

    /// All items in one object, opened by a process that does nothing else.
    fn decrypt(&self) -> Result<f64> {
        let admin = self.cluster.admin();
        let keys = admin.tool().args(["get", "secrets", "--namespace", HOME, "--output=json", "--selector"]);
        let keys = keys.arg("sealedsecrets.bitnami.com/sealed-secrets-key").run()?.success()?;
        let backup = self.folder.join("keys.json");
        fs::write(&backup, keys)?;
        let values: String =
            (0..SECRETS * VALUES).map(|number| format!("  k{number}: value {number}\n")).collect();
        let plain = self.folder.join("large.yaml");
        let head = format!("apiVersion: v1\nkind: Secret\nmetadata:\n  namespace: {SPACE}\n  name: all\n");
        fs::write(&plain, format!("{head}stringData:\n{values}"))?;
        let sealed = self.folder.join("large-sealed.yaml");
        self.kubeseal(1, &plain, File::create(&sealed)?)?;
        let mut samples = Vec::new();
        for _ in 0..PAIRS {
            let mut command = Command::new(&self.kubeseals[0]);
            command.env_clear().env("HOME", "/nonexistent").arg("--recovery-unseal");
            command.arg("--recovery-private-key").arg(&backup).stdin(File::open(&sealed)?);
            command.stdout(File::create("/dev/null")?).stderr(Stdio::piped());
            samples.push(measure::sample(command)?);
        }
        let [_, cpu_ms, _] = measure::least(&samples).figures();
        Ok(cpu_ms)
    }

    /// How long a deleted Secret is gone, with our controller.
    fn repair(&self) -> Result<[f64; 2]> {
        let pod = self.pod(0)?;
        wait::until(DEADLINE, "all to be looked at", || Ok((looks(&pod)? >= SECRETS as f64).then_some(())))?;
        let admin = self.cluster.admin();
        let mut taken = Vec::new();
        for number in 0..DELETIONS {
            let name = format!("s{number}");
            admin.run(["delete", "secret", &name, "--namespace", SPACE, "--wait=false"])?;
            let start = Instant::now();
            wait::until(DEADLINE, "the Secret to be back", || {
                let found = admin.try_run(["get", "secret", &name, "--namespace", SPACE])?;
                Ok((found.code == Some(0)).then_some(()))
            })?;
            taken.push(start.elapsed().as_secs_f64() * 1000.0);
        }
        let most = taken.iter().copied().fold(0.0, f64::max);
        Ok([measure::median(taken.into_iter()), most])
    }

    fn create_foreign(&self) -> Result<()> {
        let value = "x".repeat(1024);
        let one = |number: usize| {
            format!(
                "{{apiVersion: v1, kind: Secret, metadata: {{name: f{number}}}, stringData: {{k: {value}}}}}\n"
            )
        };
        let file = self.folder.join("foreign.yaml");
        fs::write(&file, (0..FOREIGN).map(one).collect::<Vec<_>>().join("---\n"))?;
        let create = self.cluster.admin().tool().args(["create", "--namespace", "default", "-f"]);
        create.arg(&file).deadline(DEADLINE).run()?.success().map(drop)
    }
}

fn looks(pod: &Pod) -> Result<f64> {
    let text = http::request(pod.metrics_port(), "GET", "/metrics", &[], "")?.body;
    let line = text.lines().find_map(|line| line.strip_prefix(LOOKS)?.strip_prefix(' '));
    line.map_or(Ok(0.0), |value| value.parse().context("a metric that is no number"))
}

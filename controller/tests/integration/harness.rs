//! A controller of its own for each test, and the questions that tests ask.

use std::path::Path;
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use lacre_controller::api::{self, crd};
use rustix::process::Signal;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use xtask::http;
use xtask::peers::audit::AuditEntry;
use xtask::peers::cluster::{Cluster, ServiceAccount, SharedCluster};
use xtask::peers::kubectl::Kubectl;
use xtask::process::{Server, start_on_free_port};
use xtask::wait;

/// How long a state may take to come before the test gives up; far more than it ever takes.
const DEADLINE: Duration = Duration::from_secs(30);

/// Asks the API server for the tests.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a test may start threads"));

/// A controller that serves all namespaces would serve those of other tests, too: it runs alone.
static ALONE: RwLock<()> = RwLock::new(());

/// Held while a test runs.
#[allow(dead_code, reason = "held, not read")]
enum Turn {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

/// A running controller.
pub(crate) struct Controller {
    server: Server,
    port: u16,
    metrics_port: u16,
}

/// A cluster with a controller in it.
pub(crate) struct World {
    // Dropped from the top: the controller stops before another test may run alone.
    controllers: Vec<Controller>,
    started: usize,
    pub(crate) cluster: SharedCluster,
    client: Client,
    /// Where the controller lives.
    pub(crate) home: String,
    /// Environment variables of controllers that start.
    pub(crate) environment: Vec<(String, String)>,
    /// Where its objects are.
    pub(crate) namespace: String,
    account: ServiceAccount,
    _turn: Turn,
}

impl World {
    /// A controller with default flags that serves one namespace of its own.
    pub(crate) fn new() -> Result<Self> {
        Self::with_flags(&[])
    }

    /// The same with more flags.
    pub(crate) fn with_flags(flags: &[&str]) -> Result<Self> {
        let mut world = Self::without_controller()?;
        world.start(flags)?;
        Ok(world)
    }

    /// The same before the controller starts.
    pub(crate) fn without_controller() -> Result<Self> {
        let turn = Turn::Shared(ALONE.read().unwrap_or_else(PoisonError::into_inner));
        Self::prepare(turn)
    }

    /// A controller that serves all namespaces, while no other test runs.
    pub(crate) fn of_all_namespaces() -> Result<Self> {
        let turn = Turn::Alone(ALONE.write().unwrap_or_else(PoisonError::into_inner));
        let mut world = Self::prepare(turn)?;
        world.start_with("/readyz", &[])?;
        Ok(world)
    }

    fn prepare(turn: Turn) -> Result<Self> {
        let cluster = Cluster::shared()?;
        install_definition(&cluster)?;
        let home = cluster.namespace("lacre")?;
        let namespace = cluster.namespace("shop")?;
        let account = cluster.service_account(&home, "lacre-controller")?;
        cluster
            .admin()
            .apply(&list(rights(&home)?.into_iter().filter(|item| item["kind"] != "ClusterRole")))?;
        let (controllers, environment) = (Vec::new(), Vec::new());
        let kubeconfig = Kubeconfig::read_from(cluster.admin_kubeconfig())?;
        let client = RUNTIME.block_on(async {
            let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
            Ok::<_, anyhow::Error>(Client::try_from(config)?)
        })?;
        Ok(Self {
            controllers,
            started: 0,
            cluster,
            client,
            home,
            environment,
            namespace,
            account,
            _turn: turn,
        })
    }

    /// Starts a controller that serves this world's namespace; gives its number.
    pub(crate) fn start(&mut self, flags: &[&str]) -> Result<usize> {
        self.start_until("/readyz", flags)
    }

    /// Starts one that serves the namespaces that `flags` say.
    pub(crate) fn start_as(&mut self, flags: &[&str]) -> Result<usize> {
        self.start_with("/readyz", flags)
    }

    /// Starts one that need not become ready.
    pub(crate) fn start_unready(&mut self) -> Result<usize> {
        self.start_unready_with(&[])
    }

    /// The same with more flags.
    pub(crate) fn start_unready_with(&mut self, flags: &[&str]) -> Result<usize> {
        self.start_until("/healthz", flags)
    }

    /// Sends a signal to the newest controller.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        self.controllers.last().context("no controller runs")?.server.signal(signal)
    }

    /// Lets the controller ask whose token it was given.
    pub(crate) fn allow_token_reviews(&self) -> Result<()> {
        let (name, account) = (format!("reviews-{}", self.home), format!("{}:lacre-controller", self.home));
        let account = format!("--serviceaccount={account}");
        let role = "--clusterrole=system:auth-delegator";
        self.admin().run(["create", "clusterrolebinding", &name, role, &account]).map(drop)
    }

    fn start_until(&mut self, probe: &str, flags: &[&str]) -> Result<usize> {
        let namespace = self.namespace.clone();
        let flags: Vec<&str> =
            ["--watch-namespace", &namespace].into_iter().chain(flags.iter().copied()).collect();
        self.start_with(probe, &flags)
    }

    fn start_with(&mut self, probe: &str, flags: &[&str]) -> Result<usize> {
        let number = self.started;
        self.started += 1;
        let log = self.cluster.folder().join(format!("{}-{number}.log", self.home));
        let command = |port: u16| self.command(port, flags);
        let ready =
            |port: u16| http::request(port, "GET", probe, &[], "").is_ok_and(|answer| answer.status == 200);
        let (server, port) = start_on_free_port("lacre-controller", &log, command, ready)?;
        let metrics_port = metrics_port(&std::fs::read_to_string(&log)?)?;
        self.controllers.push(Controller { server, port, metrics_port });
        Ok(number)
    }

    fn command(&self, port: u16, flags: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lacre-controller"));
        command.args(["--namespace", &self.home, "--listen-addr", &format!("127.0.0.1:{port}")]);
        command.args(["--listen-metrics-addr", "127.0.0.1:0"]);
        command.arg("--kubeconfig").arg(&self.account.kubeconfig);
        command.args([
            "--log",
            "lacre_controller=debug,info",
            "--retry-delay",
            "100ms",
            "--retry-delay-max",
            "1s",
            // Made in a tenth of a second.
            "--key-size",
            "2048",
        ]);
        command.args(flags).envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Stops the controller that was started last.
    pub(crate) fn stop(&mut self) {
        self.controllers.pop();
    }

    /// Stops the controller that was started first.
    pub(crate) fn stop_first(&mut self) {
        self.controllers.remove(0);
    }

    /// What the log of controller `number` says so far.
    pub(crate) fn log(&self, number: usize) -> Result<String> {
        Ok(std::fs::read_to_string(self.cluster.folder().join(format!("{}-{number}.log", self.home)))?)
    }

    pub(crate) fn admin(&self) -> &Kubectl {
        self.cluster.admin()
    }

    /// Asks the newest controller.
    pub(crate) fn ask(&self, path: &str) -> Result<http::Answer> {
        self.ask_number(self.controllers.len().saturating_sub(1), path)
    }

    /// Asks controller `number` of those that run.
    pub(crate) fn ask_number(&self, number: usize, path: &str) -> Result<http::Answer> {
        let controller = self.controllers.get(number).context("no such controller runs")?;
        let port = if path == "/metrics" { controller.metrics_port } else { controller.port };
        http::request(port, "GET", path, &[], "")
    }

    /// The port of the newest controller.
    pub(crate) fn port(&self) -> Result<u16> {
        Ok(self.controllers.last().context("no controller runs")?.port)
    }

    /// Sends `body` to the newest controller.
    pub(crate) fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Result<http::Answer> {
        let controller = self.controllers.last().context("no controller runs")?;
        http::request(controller.port, "POST", path, headers, body)
    }

    /// The value of a series, when it is there.
    pub(crate) fn metric(&self, series: &str) -> Result<Option<f64>> {
        let text = self.ask("/metrics")?.body;
        let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.map(|value| Ok(value.parse()?)).transpose()
    }

    /// How often the object was reconciled.
    pub(crate) fn reconciles(&self, name: &str) -> Result<u64> {
        let series =
            format!(r#"lacre_document_reconciles_total{{namespace="{}",name="{name}"}}"#, self.namespace);
        Ok(self.metric(&series)?.unwrap_or_default() as u64)
    }

    /// Does `act`, and waits until the object was reconciled once more. That may still be for an earlier reason: wake
    /// twice where the order matters.
    pub(crate) fn wake(&self, name: &str, act: impl FnOnce() -> Result<()>) -> Result<()> {
        let before = self.reconciles(name)?;
        act()?;
        self.until("another reconcile", || Ok((self.reconciles(name)? > before).then_some(())))
    }

    pub(crate) fn until<T>(&self, what: &str, probe: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        wait::until(DEADLINE, what, probe)
    }

    /// kubectl in the objects' namespace.
    pub(crate) fn kubectl<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Result<String> {
        let namespace = self.namespace.clone();
        let arguments =
            ["--namespace".to_owned(), namespace].into_iter().chain(arguments.into_iter().map(str::to_owned));
        Ok(String::from_utf8(self.admin().run(arguments)?)?)
    }

    /// Applies a manifest as a person would.
    pub(crate) fn apply(&self, manifest: &str) -> Result<()> {
        self.admin().apply_server_side(manifest, "tester")
    }

    /// The object or Secret, when it is there.
    pub(crate) fn find(&self, kind: &str, name: &str) -> Result<Option<Value>> {
        let found = RUNTIME.block_on(self.objects(kind).get_opt(name))?;
        found.map(|object| Ok(serde_json::to_value(object)?)).transpose()
    }

    /// The same questions through kubectl would keep two processors busy with starting it.
    fn objects(&self, kind: &str) -> Api<DynamicObject> {
        let (group, version, kind) = match kind {
            "secret" => ("", "v1", "Secret"),
            "event" => ("events.k8s.io", "v1", "Event"),
            "sealedsecret" => ("bitnami.com", "v1alpha1", "SealedSecret"),
            _ => (api::GROUP, api::VERSION, api::KIND),
        };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    /// Does with the objects' namespace what a controller does, as an administrator.
    pub(crate) fn as_controller<T>(&self, act: impl AsyncFnOnce(Api<Secret>) -> T) -> T {
        RUNTIME.block_on(act(Api::namespaced(self.client.clone(), &self.namespace)))
    }

    pub(crate) fn secret(&self, name: &str) -> Result<Value> {
        self.find("secret", name)?.with_context(|| format!("Secret {name} is not there"))
    }

    /// The value of a key of a Secret, decoded; empty when it is not there.
    pub(crate) fn value(&self, secret: &str, key: &str) -> Result<String> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let secret = RUNTIME.block_on(secrets.get_opt(secret))?;
        let value = secret.and_then(|secret| secret.data?.remove(key)).unwrap_or_default();
        Ok(String::from_utf8(value.0)?)
    }

    /// Merges a patch into an object, as some other tool would.
    pub(crate) fn patch(&self, kind: &str, name: &str, patch: &Value) -> Result<()> {
        let how = PatchParams { field_manager: Some("another-tool".to_owned()), ..PatchParams::default() };
        RUNTIME.block_on(self.objects(kind).patch(name, &how, &Patch::Merge(patch)))?;
        Ok(())
    }

    /// Waits until the object's newest generation was judged `status` for `reason`; gives the Ready condition.
    pub(crate) fn until_ready_is(&self, name: &str, status: &str, reason: &str) -> Result<Value> {
        let mut last = Value::Null;
        let what = format!("{name} to be {status}/{reason}");
        let found = self.until(&what, || {
            let object = self.find("encryptedsecret", name)?.unwrap_or_default();
            last = ready(&object);
            let current = last["observedGeneration"] == object["metadata"]["generation"];
            Ok((current && last["status"] == status && last["reason"] == reason).then(|| last.clone()))
        });
        found.with_context(|| format!("last seen: {last}"))
    }

    pub(crate) fn until_ready(&self, name: &str) -> Result<Value> {
        self.until_ready_is(name, "True", "Synced")
    }

    /// All that the controller wrote in the objects' namespace, as `verb resource/subresource name`.
    pub(crate) fn writes(&self) -> Result<Vec<String>> {
        let entries = self.cluster.audit().writes(&self.namespace, &self.account.user)?;
        Ok(entries.iter().map(describe).collect())
    }

    /// The same without events.
    pub(crate) fn writes_of_objects(&self) -> Result<Vec<String>> {
        Ok(self.writes()?.into_iter().filter(|write| !write.contains(" events")).collect())
    }

    /// The events about an object, oldest first, as `type reason action: note`.
    pub(crate) fn events(&self, name: &str) -> Result<Vec<String>> {
        let list = RUNTIME.block_on(self.objects("event").list(&ListParams::default()))?;
        let mut events = list.items.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
        events.retain(|event| event["regarding"]["name"] == name);
        events.sort_by_key(|event| event["eventTime"].as_str().unwrap_or_default().to_owned());
        let text = |event: &Value, field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let line = |event: &Value| {
            let [type_, reason, action, note] =
                ["type", "reason", "action", "note"].map(|field| text(event, field));
            format!("{type_} {reason} {action}: {note}")
        };
        Ok(events.iter().map(line).collect())
    }

    /// Waits until there are `count` events about an object; gives the last one.
    pub(crate) fn until_events(&self, name: &str, count: usize) -> Result<String> {
        let events =
            self.until("the events", || Ok(Some(self.events(name)?).filter(|events| events.len() >= count)))?;
        ensure!(events.len() == count, "{events:?}");
        events.last().cloned().context("no event")
    }

    /// The public half of the identity that the controller made.
    pub(crate) fn recipient(&self) -> Result<String> {
        let map =
            self.admin().get_json(["--namespace", &self.home, "get", "configmap", "lacre-public-keys"])?;
        let text = map["data"]["age-recipients"].as_str().context("nothing is published")?;
        Ok(text.lines().next().context("nothing is published")?.to_owned())
    }

    /// A key Secret in the objects' namespace.
    pub(crate) fn make_key_secret(&self, name: &str, entry: &str, value: &str, labelled: bool) -> Result<()> {
        let labels = if labelled { json!({"lacre.dev/keys": "true"}) } else { json!({}) };
        self.apply(
            &json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name, "namespace": self.namespace, "labels": labels},
                "stringData": {entry: value},
            })
            .to_string(),
        )
    }
}

/// The Ready condition.
pub(crate) fn ready(object: &Value) -> Value {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == "Ready").unwrap_or_default()
}

fn describe(entry: &AuditEntry) -> String {
    let resource = match entry.subresource.as_str() {
        "" => entry.resource.clone(),
        subresource => format!("{}/{subresource}", entry.resource),
    };
    let code = if (200..300).contains(&entry.code) { String::new() } else { format!(" ({})", entry.code) };
    format!("{} {resource} {}{code}", entry.verb, entry.name)
}

/// The port that the log names: a free one that the system chose.
fn metrics_port(log: &str) -> Result<u16> {
    let start = log.lines().find(|line| line.contains("lacre-controller starts")).context("no start")?;
    let (_, metrics) = start.split_once("metrics").context("no address of metrics")?;
    let (_, port) = metrics.split_once("127.0.0.1:").context("no port of metrics")?;
    let digits: String = port.chars().take_while(char::is_ascii_digit).collect();
    Ok(digits.parse()?)
}

fn install_definition(cluster: &Cluster) -> Result<()> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*installed {
        let roles = rights("lacre-system")?.into_iter().filter(|item| item["kind"] == "ClusterRole");
        let definitions = [crd::encrypted_secret(), crd::sealed_secret()].map(serde_json::to_value);
        let definitions = definitions.into_iter().collect::<Result<Vec<_>, _>>()?;
        cluster.admin().apply_server_side(&list(roles.chain(definitions)), "tester")?;
        for name in ["crd/encryptedsecrets.lacre.dev", "crd/sealedsecrets.bitnami.com"] {
            cluster.admin().run(["wait", "--for=condition=Established", name, "--timeout=30s"])?;
        }
        *installed = true;
    }
    Ok(())
}

/// The rights that `deploy/cluster-wide` gives, for a controller in `home`.
fn rights(home: &str) -> Result<Vec<Value>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    let files = ["cluster-wide/rbac.yaml", "base/rbac.yaml"];
    let texts = files.map(|file| std::fs::read_to_string(folder.join(file)));
    let text = texts.into_iter().collect::<Result<Vec<_>, _>>()?.join("---\n").replace("lacre-system", home);
    let mut items = Vec::new();
    for document in yaml_serde::Deserializer::from_str(&text) {
        let mut item = Value::deserialize(document)?;
        if item["kind"] == "ClusterRoleBinding" {
            // One for each test's controller.
            item["metadata"]["name"] = Value::String(format!("lacre-controller-{home}"));
        }
        items.push(item);
    }
    ensure!(items.len() == 8, "the rights are {} documents", items.len());
    Ok(items)
}

fn list(items: impl Iterator<Item = Value>) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": items.collect::<Vec<_>>()}).to_string()
}

//! A cluster with what the chart of Sealed Secrets installs, and room for one controller: theirs or ours.
//!
//! Both serve all namespaces, so tests take turns. Keys stay from test to test, as they would.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use lacre_crypto::SecretBytes;
use lacre_crypto::sealed_item;
use lacre_crypto::sealing_key::Certificate;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use xtask::peers::cluster::Cluster;
use xtask::peers::pod::{Container, Pod};
use xtask::peers::sealed_secrets::{self, SERVICE};
use xtask::{http, wait};

/// How long a state may take to come before the test gives up; far more than it ever takes.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);
/// Where the controllers live.
pub(crate) const HOME: &str = "kube-system";
/// Requests that are under way at a time.
const CONCURRENCY: usize = 16;

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a test may start threads"));
static SITE: Mutex<Option<Site>> = Mutex::new(None);

/// Whose controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Ours,
    Theirs,
}

/// The cluster.
pub(crate) struct Site {
    pub(crate) cluster: Cluster,
    client: Client,
}

/// The cluster, in the hands of one test.
pub(crate) struct Turn(MutexGuard<'static, Option<Site>>);

/// A namespace that goes with its test.
pub(crate) struct Space {
    pub(crate) name: String,
    admin: xtask::peers::kubectl::Kubectl,
}

impl Turn {
    /// Waits for its turn.
    pub(crate) fn take() -> Result<Self> {
        let mut site = SITE.lock().unwrap_or_else(PoisonError::into_inner);
        if site.is_none() {
            *site = Some(Site::new()?);
        }
        Ok(Self(site))
    }
}

impl Deref for Turn {
    type Target = Site;

    fn deref(&self) -> &Site {
        self.0.as_ref().expect("made before the turn began")
    }
}

impl DerefMut for Turn {
    fn deref_mut(&mut self) -> &mut Site {
        self.0.as_mut().expect("made before the turn began")
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // Other tests do not mind what is left; they only get slower.
        let _ = self.admin.run(["delete", "namespace", &self.name, "--wait=false"]);
    }
}

impl Site {
    fn new() -> Result<Self> {
        let cluster = Cluster::start()?;
        cluster.admin().apply(&sealed_secrets::installation(HOME)?)?;
        let definition = ["wait", "--for=condition=Established", "crd/sealedsecrets.bitnami.com"];
        cluster.admin().run(definition)?;
        let kubeconfig = Kubeconfig::read_from(cluster.admin_kubeconfig())?;
        let client = RUNTIME.block_on(async {
            let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
            Ok::<_, anyhow::Error>(Client::try_from(config)?)
        })?;
        Ok(Self { cluster, client })
    }

    /// A namespace of its own.
    pub(crate) fn space(&self, prefix: &str) -> Result<Space> {
        Ok(Space { name: self.cluster.namespace(prefix)?, admin: self.cluster.admin().clone() })
    }

    /// Starts a controller that serves all namespaces, and makes it the one that `kubeseal` finds.
    pub(crate) fn start(&self, whose: Whose, flags: &[&str]) -> Result<Pod> {
        let pod = match whose {
            Whose::Ours => {
                let quick = ["--key-size=2048", "--retry-delay=100ms", "--retry-delay-max=1s"];
                let quick = quick.into_iter().chain(["--log=lacre_controller=debug,info"]);
                let flags: Vec<&str> = quick.chain(flags.iter().copied()).collect();
                let program = Path::new(env!("CARGO_BIN_EXE_lacre-controller"));
                let name = "lacre-controller";
                let container = Container { name, program, arguments: &flags, environment: &[] };
                Pod::start(&self.cluster, HOME, SERVICE, &container)?
            }
            Whose::Theirs => {
                let quick = ["--key-size=2048", "--kubeclient-qps=-1"];
                let flags: Vec<&str> = quick.into_iter().chain(flags.iter().copied()).collect();
                let program = sealed_secrets::CONTROLLER.path()?;
                Pod::start(&self.cluster, HOME, SERVICE, &sealed_secrets::controller(&program, &flags))?
            }
        };
        pod.publish(&self.cluster, SERVICE)?;
        Ok(pod)
    }

    pub(crate) fn until<T>(&self, what: &str, probe: impl FnMut() -> Result<Option<T>>) -> Result<T> {
        wait::until(DEADLINE, what, probe)
    }

    /// The certificate that the controller gives out, as PEM, once it has one.
    pub(crate) fn certificate(&self, pod: &Pod) -> Result<String> {
        self.until("the certificate", || {
            let answer = http::request(pod.port(), "GET", "/v1/cert.pem", &[], "")?;
            Ok((answer.status == 200 && answer.body.contains("CERTIFICATE")).then_some(answer.body))
        })
    }

    /// The sum of a counter over its labels, as `pod` tells it.
    pub(crate) fn count(&self, pod: &Pod, counter: &str) -> Result<f64> {
        let text = http::request(pod.metrics_port(), "GET", "/metrics", &[], "")?.body;
        let lines = text.lines().filter_map(|line| line.strip_prefix(counter));
        let values =
            lines.filter(|rest| rest.starts_with([' ', '{'])).filter_map(|rest| rest.split(' ').next_back());
        Ok(values.filter_map(|value| value.parse::<f64>().ok()).sum())
    }

    /// Creates objects of one kind, many at a time.
    pub(crate) fn create(&self, kind: &str, objects: Vec<Value>) -> Result<()> {
        RUNTIME.block_on(
            stream::iter(objects)
                .map(|object| async move {
                    let namespace = object["metadata"]["namespace"].as_str().context("no namespace")?;
                    let api = self.objects(kind, namespace);
                    api.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
                    Ok(())
                })
                .buffer_unordered(CONCURRENCY)
                .try_collect(),
        )
    }

    /// All objects of a kind in a namespace, in the order of their names.
    pub(crate) fn list(&self, kind: &str, namespace: &str) -> Result<Vec<Value>> {
        let list = RUNTIME.block_on(self.objects(kind, namespace).list(&ListParams::default()))?;
        Ok(list.items.iter().map(serde_json::to_value).collect::<Result<_, _>>()?)
    }

    /// The object, when it is there.
    pub(crate) fn find(&self, kind: &str, namespace: &str, name: &str) -> Result<Option<Value>> {
        let found = RUNTIME.block_on(self.objects(kind, namespace).get_opt(name))?;
        found.map(|object| Ok(serde_json::to_value(object)?)).transpose()
    }

    /// Puts `object` in place of the one that is there.
    pub(crate) fn replace(&self, kind: &str, object: Value) -> Result<()> {
        let object: DynamicObject = serde_json::from_value(object)?;
        let (namespace, name) = (object.metadata.namespace.clone(), object.metadata.name.clone());
        let api = self.objects(kind, &namespace.context("no namespace")?);
        RUNTIME.block_on(api.replace(&name.context("no name")?, &PostParams::default(), &object))?;
        Ok(())
    }

    fn objects(&self, kind: &str, namespace: &str) -> Api<DynamicObject> {
        let (group, version) = if kind == "SealedSecret" { ("bitnami.com", "v1alpha1") } else { ("", "v1") };
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client.clone(), namespace, &resource)
    }
}

/// A sealed item for the holder of a certificate.
pub(crate) fn item(certificate: &Certificate, label: &str, value: &str) -> Result<String> {
    let plaintext = SecretBytes::new(value.as_bytes().to_vec());
    Ok(sealed_item::seal(certificate.public(), label.as_bytes(), &plaintext)?)
}

/// A SealedSecret of strict scope with these items.
pub(crate) fn strict(
    certificate: &Certificate,
    namespace: &str,
    name: &str,
    items: &[(&str, &str)],
) -> Result<Value> {
    let label = format!("{namespace}/{name}");
    let mut sealed = json!({});
    for (key, value) in items {
        sealed[key] = item(certificate, &label, value)?.into();
    }
    Ok(json!({
        "apiVersion": "bitnami.com/v1alpha1",
        "kind": "SealedSecret",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"encryptedData": sealed},
    }))
}

/// Whether the newest state of a SealedSecret was told to be in its Secret.
pub(crate) fn is_synced(object: &Value) -> bool {
    let status = &object["status"];
    let synced = status["conditions"].as_array().into_iter().flatten().find(|one| one["type"] == "Synced");
    status["observedGeneration"] == object["metadata"]["generation"]
        && synced.is_some_and(|one| one["status"] == "True")
}

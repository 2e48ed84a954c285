//! Kubeconfigs: which are read, which context counts, and what flags put in the place of what stands there.
//!
//! Rules, all of them kubectl's: a file that was named must be there; of those in `KUBECONFIG` the ones that are there
//! are merged, and the first that says something counts; without any, a pod uses its service account. A flag replaces
//! the one setting it stands for, and whatever contradicts it.

use std::path::{Path, PathBuf};

use kube::config::{
    AuthInfo, Cluster, Config, Context, KubeConfigOptions, Kubeconfig, KubeconfigError, NamedAuthInfo,
    NamedCluster, NamedContext,
};
use lacre_crypto::SecretText;

use super::{ClusterOptions, all_causes};
use crate::environment;
use crate::error::{CommandError, Kind};
use crate::files;

/// Where a pod finds what it is.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The namespace of those who say nothing.
const DEFAULT_NAMESPACE: &str = "default";
/// What the one context is called that is made of all that was said.
const JOINED: &str = "joined";

/// A namespace for whatever names none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Namespace {
    /// Its name.
    pub(crate) name: String,
    /// Whether someone asked for it in this call, so that another one in an object is a contradiction.
    pub(crate) is_asked_for: bool,
}

/// The namespace that was asked for, else that of the context, of the pod, or of those who say nothing.
pub(super) fn namespace(options: &ClusterOptions) -> Result<Namespace, CommandError> {
    if let Some(name) = options.namespace.as_deref().filter(|name| !name.is_empty()) {
        return Ok(Namespace { name: without_prefix(name).to_owned(), is_asked_for: true });
    }
    let kubeconfig = read(options)?;
    let is_empty = kubeconfig.contexts.is_empty() && kubeconfig.clusters.is_empty();
    if is_empty && options.server.is_none() && environment::text("KUBERNETES_MASTER").is_none() && !in_pod() {
        return Err(nothing_configured().hint("name the namespace with `--namespace`"));
    }
    let context = context(options, &kubeconfig)?;
    let pod =
        || std::fs::read_to_string(Path::new(SERVICE_ACCOUNT).join("namespace")).ok().filter(|_| in_pod());
    let name = context
        .and_then(|context| context.namespace)
        .filter(|name| !name.is_empty())
        .or_else(|| pod().map(|name| name.trim().to_owned()))
        .unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
    Ok(Namespace { name, is_asked_for: false })
}

/// Where the server is and how one logs in.
pub(super) async fn config(options: &ClusterOptions) -> Result<Config, CommandError> {
    let kubeconfig = read(options)?;
    let cluster = cluster(options, &kubeconfig)?;
    if cluster.server.is_none() && in_pod() {
        return Config::incluster().map_err(|error| unusable(&error));
    }
    if cluster.server.is_none() {
        return Err(nothing_configured());
    }
    let user = user(options, &kubeconfig)?;
    check_token(&user)?;
    let joined = Kubeconfig {
        clusters: vec![named_cluster(cluster)],
        auth_infos: vec![named_user(user)],
        contexts: vec![named_context()],
        current_context: Some(JOINED.to_owned()),
        ..Kubeconfig::default()
    };
    let mut config = Config::from_custom_kubeconfig(joined, &KubeConfigOptions::default())
        .await
        .map_err(|error| unusable(&error))?;
    config.read_timeout = options.request_timeout.filter(|limit| !limit.is_zero());
    Ok(config)
}

/// Whether the token can be sent: the client would end the process over one that cannot.
fn check_token(user: &AuthInfo) -> Result<(), CommandError> {
    let written = serde_json::to_value(user).unwrap_or_default();
    let written = written["token"].as_str().map(SecretText::from);
    let from_file = user.token_file.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
    let token = written.or(from_file.map(SecretText::new)).unwrap_or_default();
    match http::HeaderValue::from_str(token.expose_secret().trim_end_matches('\n')) {
        Ok(_) => Ok(()),
        Err(_) => Err(CommandError::general("the token holds a line break or another control character")
            .hint("take it out where it stands: in the kubeconfig, in its token file or behind `--token`")),
    }
}

/// All that kubeconfigs say, merged.
fn read(options: &ClusterOptions) -> Result<Kubeconfig, CommandError> {
    if let Some(path) = &options.kubeconfig {
        return read_file(path);
    }
    let listed = environment::words("KUBECONFIG");
    let paths: Vec<PathBuf> = match &listed {
        Some(listed) => std::env::split_paths(listed).filter(|path| !path.as_os_str().is_empty()).collect(),
        None => std::env::home_dir().map(|home| home.join(".kube/config")).into_iter().collect(),
    };
    let mut merged = Kubeconfig::default();
    for path in paths.iter().filter(|path| path.exists()) {
        merged = merged.merge(read_file(path)?).map_err(|error| unusable(&error))?;
    }
    Ok(merged)
}

fn read_file(path: &Path) -> Result<Kubeconfig, CommandError> {
    Kubeconfig::read_from(path).map_err(|error| {
        let problem = match &error {
            KubeconfigError::ReadConfig(error, _) => files::plain_words(error),
            // The words of a parser quote the lines around a fault, and tokens stand in them.
            _ => "is no kubeconfig that can be read (what is in it is not shown)".to_owned(),
        };
        CommandError::on(Kind::Read, path.display(), problem)
            .hint("name a kubeconfig that can be read with `--kubeconfig` or KUBECONFIG")
    })
}

/// The context that counts; none when nobody names one.
fn context(options: &ClusterOptions, kubeconfig: &Kubeconfig) -> Result<Option<Context>, CommandError> {
    let asked = options.context.as_ref();
    let Some(name) = asked.or(kubeconfig.current_context.as_ref()).filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let found = kubeconfig.contexts.iter().find(|context| &context.name == name);
    match (found, asked) {
        (Some(found), _) => Ok(found.context.clone()),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(missing("context", name)),
    }
}

fn cluster(options: &ClusterOptions, kubeconfig: &Kubeconfig) -> Result<Cluster, CommandError> {
    let context = context(options, kubeconfig)?;
    let name = options.cluster.as_ref().or(context.as_ref().map(|context| &context.cluster));
    let found = name.and_then(|name| kubeconfig.clusters.iter().find(|cluster| &cluster.name == name));
    if let (None, Some(name)) = (found, &options.cluster) {
        return Err(missing("cluster", name));
    }
    let mut cluster = found.and_then(|found| found.cluster.clone()).unwrap_or_default();
    if let Some(path) = &options.certificate_authority {
        cluster.certificate_authority = Some(path.clone());
        cluster.certificate_authority_data = None;
        cluster.insecure_skip_tls_verify = Some(options.insecure_skip_tls_verify);
    }
    if options.insecure_skip_tls_verify {
        cluster.insecure_skip_tls_verify = Some(true);
        if options.certificate_authority.is_none() {
            (cluster.certificate_authority, cluster.certificate_authority_data) = (None, None);
        }
    }
    if options.server.is_some() || options.tls_server_name.is_some() {
        cluster.tls_server_name = options.tls_server_name.clone();
    }
    if let Some(server) = options.server.clone().or_else(|| master(&cluster)) {
        cluster.server = Some(server);
    }
    let has_authority =
        cluster.certificate_authority.is_some() || cluster.certificate_authority_data.is_some();
    cluster.server = cluster.server.map(|server| with_scheme(server, has_authority));
    if let Some(proxy) = &options.proxy_url {
        cluster.proxy_url = Some(proxy.clone());
    }
    if options.disable_compression {
        cluster.disable_compression = Some(true);
    }
    Ok(cluster)
}

fn master(cluster: &Cluster) -> Option<String> {
    if cluster.server.is_some() { None } else { environment::text("KUBERNETES_MASTER") }
}

fn with_scheme(server: String, has_authority: bool) -> String {
    match (server.contains("://"), has_authority) {
        (true, _) => server,
        (false, true) => format!("https://{server}"),
        (false, false) => format!("http://{server}"),
    }
}

fn user(options: &ClusterOptions, kubeconfig: &Kubeconfig) -> Result<AuthInfo, CommandError> {
    let context = context(options, kubeconfig)?;
    let name = options.user.clone().or(context.and_then(|context| context.user));
    let found = name.as_ref().and_then(|name| kubeconfig.auth_infos.iter().find(|user| &user.name == name));
    if let (None, Some(name)) = (found, &options.user) {
        return Err(missing("user", name));
    }
    let mut user = found.and_then(|found| found.auth_info.clone()).unwrap_or_default();
    if let Some(token) = &options.token {
        user = AuthInfo { token: Some(token.expose_secret().to_owned().into()), ..without_login(user) };
    }
    if options.username.is_some() || options.password.is_some() {
        let before = user.username.take();
        user = AuthInfo {
            username: options.username.clone().or(before),
            password: options.password.as_ref().map(|password| password.expose_secret().to_owned().into()),
            ..without_login(user)
        };
    }
    if let Some(path) = &options.client_certificate {
        user.client_certificate = Some(path.clone());
        user.client_certificate_data = None;
    }
    if let Some(path) = &options.client_key {
        user.client_key = Some(path.clone());
        user.client_key_data = None;
    }
    if options.impersonate.is_some() {
        user.impersonate = options.impersonate.clone();
    }
    if options.impersonate_uid.is_some() {
        user.impersonate_uid = options.impersonate_uid.clone();
    }
    if !options.impersonate_groups.is_empty() {
        user.impersonate_groups = Some(options.impersonate_groups.clone());
    }
    Ok(user)
}

/// A user without what would log in as somebody else than a flag says.
fn without_login(user: AuthInfo) -> AuthInfo {
    AuthInfo {
        token: None,
        token_file: None,
        username: None,
        password: None,
        exec: None,
        auth_provider: None,
        ..user
    }
}

fn named_cluster(cluster: Cluster) -> NamedCluster {
    NamedCluster { name: JOINED.to_owned(), cluster: Some(cluster), other: Default::default() }
}

fn named_user(user: AuthInfo) -> NamedAuthInfo {
    NamedAuthInfo { name: JOINED.to_owned(), auth_info: Some(user), other: Default::default() }
}

fn named_context() -> NamedContext {
    let context = Context { cluster: JOINED.to_owned(), user: Some(JOINED.to_owned()), ..Context::default() };
    NamedContext { name: JOINED.to_owned(), context: Some(context), other: Default::default() }
}

fn in_pod() -> bool {
    environment::words("KUBERNETES_SERVICE_HOST").is_some()
        && Path::new(SERVICE_ACCOUNT).join("token").exists()
}

fn without_prefix(name: &str) -> &str {
    let prefixes = ["namespaces/", "namespace/", "ns/"];
    let found = prefixes.into_iter().find(|prefix| {
        name.len() > prefix.len()
            && name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    });
    found.map_or(name, |prefix| &name[prefix.len()..])
}

fn nothing_configured() -> CommandError {
    CommandError::general("invalid configuration: no configuration has been provided")
        .hint("name a kubeconfig with `--kubeconfig` or KUBECONFIG, or a server with `--server`")
}

fn missing(what: &str, name: &str) -> CommandError {
    CommandError::general(format!("{what} \"{name}\" does not exist"))
        .hint("`kubectl config view` shows what the kubeconfig has")
}

fn unusable(error: &(dyn std::error::Error + 'static)) -> CommandError {
    CommandError::general(format!("the kubeconfig cannot be used: {}", all_causes(error)))
        .hint("`kubectl config view` shows what it says; name another one with `--kubeconfig`")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
apiVersion: v1
kind: Config
current-context: a
contexts:
- name: a
  context: {cluster: one, user: ops, namespace: shop}
- name: b
  context: {cluster: two, user: ci}
clusters:
- name: one
  cluster: {server: 'https://one:6443', certificate-authority-data: eA==, tls-server-name: inside}
- name: two
  cluster: {server: 'two:8080'}
users:
- name: ops
  user: {token: CANARY}
- name: ci
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: login, interactiveMode: Never}}
";

    fn kubeconfig() -> Kubeconfig {
        Kubeconfig::from_yaml(TEXT).unwrap()
    }

    fn options(change: impl FnOnce(&mut ClusterOptions)) -> ClusterOptions {
        let mut options = ClusterOptions::default();
        change(&mut options);
        options
    }

    #[test]
    fn the_context_that_was_asked_for_counts() {
        let asked = options(|options| options.context = Some("b".into()));
        assert_eq!(cluster(&asked, &kubeconfig()).unwrap().server.as_deref(), Some("http://two:8080"));
        assert!(user(&asked, &kubeconfig()).unwrap().exec.is_some());
        let asked = options(|options| options.context = Some("c".into()));
        let error = cluster(&asked, &kubeconfig()).unwrap_err();
        assert_eq!(error.cause.to_string(), "context \"c\" does not exist");
    }

    #[test]
    fn a_flag_takes_away_what_contradicts_it() {
        let asked = options(|options| options.server = Some("https://other".into()));
        let found = cluster(&asked, &kubeconfig()).unwrap();
        assert_eq!((found.server.as_deref(), found.tls_server_name), (Some("https://other"), None));
        let asked = options(|options| options.insecure_skip_tls_verify = true);
        assert_eq!(cluster(&asked, &kubeconfig()).unwrap().certificate_authority_data, None);
        let asked = options(|options| {
            options.context = Some("b".into());
            options.token = Some("t".into());
        });
        let found = user(&asked, &kubeconfig()).unwrap();
        assert!(found.token.is_some() && found.exec.is_none());
        assert!(!format!("{found:?}").contains("CANARY"));
    }

    #[test]
    fn a_namespace_may_be_typed_as_kubectl_prints_it() {
        for (typed, name) in [("ns/a", "a"), ("Namespaces/a", "a"), ("ns/", "ns/"), ("a", "a")] {
            assert_eq!(without_prefix(typed), name);
        }
    }

    #[test]
    fn a_namespace_is_looked_for_where_it_was_said_last() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        std::fs::write(&path, TEXT).unwrap();
        let mut asked = options(|options| options.kubeconfig = Some(path));
        let said = |name: &str, is_asked_for| Namespace { name: name.to_owned(), is_asked_for };
        assert_eq!(namespace(&asked).unwrap(), said("shop", false));
        asked.context = Some("b".into());
        assert_eq!(namespace(&asked).unwrap(), said("default", false));
        asked.namespace = Some("ns/mine".into());
        assert_eq!(namespace(&asked).unwrap(), said("mine", true));
        let gone = options(|options| options.kubeconfig = Some("/nowhere/config".into()));
        assert!(namespace(&gone).is_err());
    }
}

//! What objects may not ask for, so that no right to create them becomes a right to something greater. Pure.
//!
//! Nothing in an object loosens a rule here: objects are written by those whom the rules are for. Only the
//! administrator's flags do.

use std::collections::BTreeMap;
use std::fmt;

use clap::ValueEnum;

use crate::error::{Failure, Reason};

/// Label of Secrets that hold identities; their owner's consent to have them used.
pub const KEY_LABEL: &str = "lacre.dev/keys";

/// Type of the Secrets in which the controller keeps the identities that it made.
pub const IDENTITY_TYPE: &str = "lacre.dev/identity";

/// Types whose Secrets are credentials of the cluster itself, or another controller's memory.
const FORBIDDEN_TYPES: [&str; 3] =
    ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token", IDENTITY_TYPE];

/// Types by their beginning.
const FORBIDDEN_TYPE_PREFIX: &str = "helm.sh/release.";

/// Prefixes of labels and annotations by which the cluster or a sealing controller acts.
const FORBIDDEN_TEMPLATE_PREFIXES: [&str; 4] =
    ["kubernetes.io", "k8s.io", "lacre.dev", "sealedsecrets.bitnami.com"];

/// The label by which Helm finds its releases, whatever the type and name of their Secret.
const HELM_LABEL: (&str, &str) = ("owner", "helm");

/// How far a seal reaches: where its object may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Scope {
    /// In its namespace and under its name.
    Strict,
    /// In its namespace, under any name.
    Namespace,
    /// Anywhere in the cluster.
    Cluster,
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Strict => "strict",
            Self::Namespace => "namespace",
            Self::Cluster => "cluster",
        })
    }
}

/// The administrator's rules.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Where the controller's own keys are; objects there are refused unless `allow_own_namespace`.
    pub own_namespace: String,
    /// Whether objects in the controller's own namespace are served.
    pub allow_own_namespace: bool,
    /// Types that are made although the list forbids them.
    pub allowed_types: Vec<String>,
    /// Label and annotation keys that a template may set although the list forbids them.
    pub allowed_template_keys: Vec<String>,
    /// The furthest reach of a seal that is accepted.
    pub max_scope: Scope,
}

impl Policy {
    /// Whether an object in `namespace` is served at all.
    ///
    /// # Errors
    /// [`Reason::ForbiddenNamespace`] for the controller's own.
    pub fn check_namespace(&self, namespace: &str) -> Result<(), Failure> {
        if namespace != self.own_namespace || self.allow_own_namespace {
            return Ok(());
        }
        let message = format!("objects in the controller's own namespace {namespace} are not served");
        Err(Failure::new(Reason::ForbiddenNamespace, message))
    }

    /// Whether a Secret of type `type_` may be made.
    ///
    /// # Errors
    /// [`Reason::ForbiddenType`], naming the type.
    pub fn check_type(&self, type_: &str) -> Result<(), Failure> {
        let forbidden = FORBIDDEN_TYPES.contains(&type_) || type_.starts_with(FORBIDDEN_TYPE_PREFIX);
        if !forbidden || self.allowed_types.iter().any(|allowed| allowed == type_) {
            return Ok(());
        }
        Err(Failure::new(Reason::ForbiddenType, format!("Secrets of type {type_} are not made")))
    }

    /// Whether the Secret may carry the template's labels or annotations.
    ///
    /// # Errors
    /// [`Reason::ForbiddenTemplate`], naming the first key that is refused.
    pub fn check_template(&self, keys: &BTreeMap<String, String>) -> Result<(), Failure> {
        let refused = |(key, value): &(&String, &String)| {
            (is_forbidden_template_key(key) || (key.as_str(), value.as_str()) == HELM_LABEL)
                && !self.allowed_template_keys.contains(*key)
        };
        match keys.iter().find(refused) {
            None => Ok(()),
            Some((key, _)) => {
                Err(Failure::new(Reason::ForbiddenTemplate, format!("the template may not set {key}")))
            }
        }
    }

    /// Whether a seal may reach as far as `scope`.
    ///
    /// # Errors
    /// [`Reason::ForbiddenScope`], naming both.
    pub fn check_scope(&self, scope: Scope) -> Result<(), Failure> {
        if scope <= self.max_scope {
            return Ok(());
        }
        let message = format!("sealed with scope {scope}, and at most {} is accepted", self.max_scope);
        Err(Failure::new(Reason::ForbiddenScope, message))
    }
}

/// Whether Secrets with these labels hold identities.
pub fn is_key_source(labels: Option<&BTreeMap<String, String>>) -> bool {
    labels.and_then(|labels| labels.get(KEY_LABEL)).is_some_and(|value| value == "true")
}

/// Whether a Secret with these labels must not be written: the label with any value, because its owner may be about
/// to set the one that counts.
pub fn is_marked_as_keys(labels: Option<&BTreeMap<String, String>>) -> bool {
    labels.is_some_and(|labels| labels.contains_key(KEY_LABEL))
}

fn is_forbidden_template_key(key: &str) -> bool {
    let Some((prefix, _)) = key.split_once('/') else { return false };
    FORBIDDEN_TEMPLATE_PREFIXES.contains(&prefix) || prefix.ends_with(".k8s.io")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Policy {
        Policy {
            own_namespace: "lacre-system".to_owned(),
            allow_own_namespace: false,
            allowed_types: Vec::new(),
            allowed_template_keys: Vec::new(),
            max_scope: Scope::Namespace,
        }
    }

    fn keys(key: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(key.to_owned(), "x".to_owned())])
    }

    #[test]
    fn the_own_namespace_is_refused_unless_allowed() {
        let mut policy = policy();
        assert!(policy.check_namespace("shop").is_ok());
        assert_eq!(policy.check_namespace("lacre-system").unwrap_err().reason, Reason::ForbiddenNamespace);
        policy.allow_own_namespace = true;
        assert!(policy.check_namespace("lacre-system").is_ok());
    }

    #[test]
    fn types_that_are_credentials_of_the_cluster_are_refused_unless_allowed() {
        let mut policy = policy();
        for allowed in ["Opaque", "kubernetes.io/tls", "kubernetes.io/dockerconfigjson", "helm.sh/other"] {
            assert!(policy.check_type(allowed).is_ok(), "{allowed}");
        }
        for refused in [
            "kubernetes.io/service-account-token",
            "bootstrap.kubernetes.io/token",
            "helm.sh/release.v1",
            "lacre.dev/identity",
        ] {
            assert_eq!(policy.check_type(refused).unwrap_err().reason, Reason::ForbiddenType, "{refused}");
        }
        policy.allowed_types.push("kubernetes.io/service-account-token".to_owned());
        assert!(policy.check_type("kubernetes.io/service-account-token").is_ok());
    }

    #[test]
    fn template_keys_that_others_act_upon_are_refused_unless_allowed() {
        let mut policy = policy();
        for allowed in ["tier", "app.kubernetes.io/name", "example.org/k8s.io", "notk8s.io/x"] {
            assert!(policy.check_template(&keys(allowed)).is_ok(), "{allowed}");
        }
        for refused in [
            "kubernetes.io/service-account.name",
            "k8s.io/x",
            "storage.k8s.io/x",
            "lacre.dev/keys",
            "sealedsecrets.bitnami.com/sealed-secrets-key",
        ] {
            let failure = policy.check_template(&keys(refused)).unwrap_err();
            assert_eq!(failure.reason, Reason::ForbiddenTemplate);
            assert!(failure.message.contains(refused), "{failure}");
        }
        let owner = |value: &str| BTreeMap::from([("owner".to_owned(), value.to_owned())]);
        assert!(policy.check_template(&owner("team-a")).is_ok());
        assert!(policy.check_template(&owner("helm")).is_err(), "Helm would take it for a release");
        policy.allowed_template_keys.push("storage.k8s.io/x".to_owned());
        assert!(policy.check_template(&keys("storage.k8s.io/x")).is_ok());
        assert!(policy.check_template(&keys("storage.k8s.io/y")).is_err());
    }

    #[test]
    fn a_seal_reaches_no_further_than_the_greatest_scope_allowed() {
        assert!(
            policy().check_scope(Scope::Strict).is_ok() && policy().check_scope(Scope::Namespace).is_ok()
        );
        assert_eq!(policy().check_scope(Scope::Cluster).unwrap_err().reason, Reason::ForbiddenScope);
    }

    #[test]
    fn a_secret_with_the_key_label_is_never_a_target_whatever_its_value() {
        assert!(is_marked_as_keys(Some(&keys(KEY_LABEL))) && !is_key_source(Some(&keys(KEY_LABEL))));
        assert!(!is_marked_as_keys(Some(&keys("tier"))) && !is_marked_as_keys(None));
    }
}

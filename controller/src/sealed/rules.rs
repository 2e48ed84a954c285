//! What a SealedSecret may not make, so that no right to write one becomes a right to something greater. Pure.
//!
//! Sealed Secrets lets an object make any Secret. Two things are refused here all the same: a Secret that this
//! controller would take for one of its own keys, and, unless a flag says otherwise, one that makes the API server issue
//! a token. A flag puts SealedSecrets under all the rules for EncryptedSecrets.

use super::target::key_label;
use super::write::Wanted;
use crate::error::{Failure, Reason};
use crate::policy::{Policy, Scope};
use lacre_crypto::object::sealed_secret::ItemScope;

/// The type of Secrets into which the API server writes tokens.
const TOKEN_TYPE: &str = "kubernetes.io/service-account-token";

/// The administrator's rules.
pub struct Rules {
    /// Those for EncryptedSecrets.
    pub policy: Policy,
    /// Whether all of them hold for SealedSecrets, too.
    pub restrict: bool,
    /// What names of key Secrets begin with. In the first releases of Sealed Secrets it was the whole name, without any
    /// label.
    pub key_prefix: String,
}

impl Rules {
    /// Whether an object of this scope in `namespace` is served at all.
    ///
    /// # Errors
    /// [`Reason::ForbiddenNamespace`] and [`Reason::ForbiddenScope`].
    pub fn check_place(&self, namespace: &str, scope: ItemScope) -> Result<(), Failure> {
        if !self.restrict {
            return Ok(());
        }
        self.policy.check_namespace(namespace)?;
        self.policy.check_scope(match scope {
            ItemScope::Strict => Scope::Strict,
            ItemScope::NamespaceWide => Scope::Namespace,
            ItemScope::ClusterWide => Scope::Cluster,
        })
    }

    /// Whether the Secret may be made.
    ///
    /// # Errors
    /// [`Reason::ForbiddenTemplate`] and [`Reason::ForbiddenType`], naming what is refused.
    pub fn check(&self, wanted: &Wanted) -> Result<(), Failure> {
        let metadata = wanted.metadata();
        if let Some(label) = key_label(metadata.labels.as_ref()) {
            let message = format!("the template may not set {label}: the Secret would be taken for a key");
            return Err(Failure::new(Reason::ForbiddenTemplate, message));
        }
        let (name, namespace) = (metadata.name.as_deref(), metadata.namespace.as_deref());
        // Longer ones, too: they would occupy the names of keys to come, so that none could be made.
        let is_name_of_key = name.is_some_and(|name| name.starts_with(&self.key_prefix));
        if is_name_of_key && namespace == Some(self.policy.own_namespace.as_str()) {
            let message = format!("names that begin with {} are those of keys here", self.key_prefix);
            return Err(Failure::new(Reason::ForbiddenTarget, message));
        }
        if self.restrict {
            return self.check_strictly(wanted);
        }
        if wanted.type_() == TOKEN_TYPE { self.policy.check_type(TOKEN_TYPE) } else { Ok(()) }
    }

    fn check_strictly(&self, wanted: &Wanted) -> Result<(), Failure> {
        let metadata = wanted.metadata();
        self.policy.check_type(wanted.type_())?;
        for texts in [&metadata.labels, &metadata.annotations].into_iter().flatten() {
            self.policy.check_template(texts)?;
        }
        if !wanted.has_owner()
            || metadata.finalizers.as_ref().is_some_and(|finalizers| !finalizers.is_empty())
        {
            let message = "the template may not set finalizers or owners".to_owned();
            return Err(Failure::new(Reason::ForbiddenTemplate, message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kube::api::ObjectMeta;
    use lacre_crypto::object::sealed_secret::PlainSecret;
    use serde_json::{Value, json};

    use super::*;
    use crate::sealed::api::SealedSecret;
    use crate::sealed::unseal::Opened;

    fn rules(restrict: bool, allowed: &[&str]) -> Rules {
        let policy = Policy {
            own_namespace: "home".to_owned(),
            allow_own_namespace: false,
            allowed_types: allowed.iter().map(|type_| type_.to_string()).collect(),
            allowed_template_keys: Vec::new(),
            max_scope: Scope::Namespace,
        };
        Rules { policy, restrict, key_prefix: "sealed-secrets-key".to_owned() }
    }

    fn wanted(namespace: &str, name: &str, type_: &str, template: Value) -> Wanted {
        let metadata = ObjectMeta {
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            uid: Some("1".to_owned()),
            ..ObjectMeta::default()
        };
        let secret = PlainSecret {
            metadata: template.as_object().cloned().unwrap_or_default(),
            type_: type_.to_owned(),
            immutable: None,
            data: BTreeMap::new(),
            opened_by: Vec::new(),
        };
        Wanted::new(
            &SealedSecret::new(metadata, Value::Null, Value::Null),
            Opened { secret, keys: Vec::new() },
        )
        .unwrap()
    }

    fn check(rules: &Rules, wanted: &Wanted, expected: Option<Reason>) {
        assert_eq!(rules.check(wanted).err().map(|failure| failure.reason), expected);
    }

    #[test]
    fn no_object_makes_a_key_wherever_it_is_and_whatever_the_value() {
        for label in ["sealedsecrets.bitnami.com/sealed-secrets-key", "lacre.dev/keys"] {
            for (namespace, value) in [("home", "active"), ("shop", "true"), ("home", "later")] {
                let forged = wanted(namespace, "db", "", json!({"labels": {(label): value}}));
                check(&rules(false, &[]), &forged, Some(Reason::ForbiddenTemplate));
            }
        }
        let legacy = |namespace| wanted(namespace, "sealed-secrets-key", "", json!({}));
        check(&rules(false, &[]), &legacy("home"), Some(Reason::ForbiddenTarget));
        check(&rules(false, &[]), &legacy("shop"), None);
        let occupied = |namespace| wanted(namespace, "sealed-secrets-keyb2c4d", "", json!({}));
        check(&rules(false, &[]), &occupied("home"), Some(Reason::ForbiddenTarget));
        check(&rules(false, &[]), &occupied("shop"), None);
    }

    #[test]
    fn a_token_is_issued_only_where_the_administrator_lists_its_type() {
        let token = wanted("shop", "db", TOKEN_TYPE, json!({}));
        check(&rules(false, &[]), &token, Some(Reason::ForbiddenType));
        check(&rules(false, &[TOKEN_TYPE]), &token, None);
        check(&rules(false, &[]), &wanted("shop", "db", "bootstrap.kubernetes.io/token", json!({})), None);
    }

    #[test]
    fn what_sealed_secrets_allows_is_allowed_until_it_is_restricted() {
        let skip = json!({"annotations": {(crate::sealed::target::SKIP_OWNER): "true"}});
        for (type_, template, reason) in [
            ("helm.sh/release.v1", json!({}), Reason::ForbiddenType),
            (
                "",
                json!({"labels": {"app.kubernetes.io/name": "db", "kubernetes.io/x": "1"}}),
                Reason::ForbiddenTemplate,
            ),
            ("", json!({"finalizers": ["example.com/f"]}), Reason::ForbiddenTemplate),
            ("", skip, Reason::ForbiddenTemplate),
        ] {
            let wanted = wanted("home", "db", type_, template);
            check(&rules(false, &[]), &wanted, None);
            check(&rules(true, &[]), &wanted, Some(reason));
        }
        let reason = |restrict, namespace, scope| {
            rules(restrict, &[]).check_place(namespace, scope).err().map(|failure| failure.reason)
        };
        assert_eq!(reason(false, "home", ItemScope::ClusterWide), None);
        assert_eq!(reason(true, "home", ItemScope::Strict), Some(Reason::ForbiddenNamespace));
        assert_eq!(reason(true, "shop", ItemScope::ClusterWide), Some(Reason::ForbiddenScope));
        assert_eq!(reason(true, "shop", ItemScope::NamespaceWide), None);
    }
}

//! Cluster objects as plain data: no client, no cluster.
//!
//! A document whose root says that it is an object of ours is sealed under the object profile: over its typed
//! content and not its text, which an API server, kubectl and GitOps tools rewrite on the way.

use serde_json::Value as Plain;

use crate::document::{Document, Origin};
use crate::format::Format;
use crate::seal::{Bind, ObjectBind, Profile, Scope};
use crate::selector::{Selector, SelectorKind};

pub mod content;
pub mod encrypted_secret;
pub mod manifest;
pub mod open_error;
#[cfg(feature = "sealed-secrets")]
pub mod sealed_secret;
#[cfg(feature = "sealed-secrets")]
pub mod template;

pub use content::Content;
pub use encrypted_secret::{EncryptedSecret, ObjectContext, OpenSecret};
pub use manifest::{ManifestOptions, seal_manifest};
pub use open_error::OpenError;
#[cfg(feature = "sealed-secrets")]
pub use sealed_secret::SealedSecret;

/// API group of our kinds.
pub const GROUP: &str = "lacre.dev";
/// `apiVersion` of our kinds.
pub const API_VERSION: &str = "lacre.dev/v1alpha1";
/// The annotation by which Flux leaves an object to its own controller.
pub(crate) const FLUX_ANNOTATION: &str = "kustomize.toolkit.fluxcd.io/decrypt";
/// The kind that is opened into a Secret.
pub const KIND: &str = "EncryptedSecret";
/// The pattern that selects an object's secret fields and, in an object of ours, nothing else.
pub const SELECTOR: &str = "^(data|stringData)$";

/// An object is not what its kind says it must be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ObjectError(pub String);

impl ObjectError {
    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// The profile under which a document is sealed, by its `apiVersion` and `kind`.
pub(crate) fn profile(document: &Document) -> Profile {
    let is_manifest = matches!(document.format, Format::Json | Format::Yaml);
    let is_ours =
        document.text_at(&["apiVersion"]) == Some(API_VERSION) && document.text_at(&["kind"]) == Some(KIND);
    if is_manifest && is_ours { Profile::Object } else { Profile::File }
}

/// The selector that objects have.
pub(crate) fn selector() -> Selector {
    Selector::new(SelectorKind::EncryptedRegex, SELECTOR)
        .expect("the pattern is a constant that a test compiles")
}

/// The digest of a sealed object's content.
pub(crate) fn tree(document: &Document) -> Result<String, ObjectError> {
    tree_with(document, &|_| None)
}

/// The digest of an object's content with the texts of its sealed leaves.
pub(crate) fn tree_with<'a>(
    document: &'a Document,
    sealed: &dyn Fn(usize) -> Option<&'a str>,
) -> Result<String, ObjectError> {
    let mut object = plain(document)?;
    for (index, leaf) in document.leaves.iter().enumerate() {
        let text = sealed(index)
            .or_else(|| document.sealed_text(leaf).filter(|_| !matches!(leaf.origin, Origin::Copy(_))));
        let keys = document.paths.components(leaf.path);
        if let (Some(text), [first, second, third], false) = (text, keys.as_slice(), leaf.is_comment())
            && *first == "spec"
            && matches!(*second, "data" | "stringData")
        {
            object["spec"][*second][*third] = text.into();
        }
    }
    Content::read(object.get("spec").unwrap_or(&Plain::Null)).map(|content| content.digest())
}

/// What an object is bound to when no seal says it: the very place where it stands. Nothing for a file, and for an
/// object that names no namespace.
pub(crate) fn bind_here(document: &Document) -> Option<Bind> {
    let text = |keys: &[&str]| document.text_at(keys).filter(|text| !text.is_empty()).map(str::to_owned);
    if profile(document) == Profile::File {
        return None;
    }
    let (namespace, name) = (text(&["metadata", "namespace"])?, text(&["metadata", "name"])?);
    let (group, kind) = (GROUP.to_owned(), KIND.to_owned());
    Some(Bind::Object(ObjectBind { group, kind, scope: Scope::Strict, namespace, name, clusters: None }))
}

/// Whether the object stands where its seal says.
pub(crate) fn check_bind(document: &Document, bind: Option<&Bind>) -> Result<(), String> {
    let Some(Bind::Object(bind)) = bind else {
        return Err("it does not say which object it was made for".to_owned());
    };
    let text = |keys: &[&str]| document.text_at(keys).unwrap_or_default().to_owned();
    let (namespace, name) = (text(&["metadata", "namespace"]), text(&["metadata", "name"]));
    // A manifest may leave the namespace to whoever applies it: then only the controller can tell.
    let namespace = if namespace.is_empty() { bind.namespace.clone() } else { namespace };
    match bind_allows(bind, &namespace, &name) {
        true => Ok(()),
        false => Err(format!("it was sealed for {}, and this is {namespace}/{name}", shown(bind))),
    }
}

/// Whether an object of that namespace and name may be opened under `bind`.
pub(crate) fn bind_allows(bind: &ObjectBind, namespace: &str, name: &str) -> bool {
    let kind_fits = bind.group == GROUP && bind.kind == KIND;
    kind_fits
        && match bind.scope {
            Scope::Cluster => true,
            Scope::Namespace => bind.namespace == namespace,
            Scope::Strict => bind.namespace == namespace && bind.name == name,
        }
}

/// What a seal was made for, in words.
pub(crate) fn shown(bind: &ObjectBind) -> String {
    let place = match bind.scope {
        Scope::Cluster => "any namespace and name".to_owned(),
        Scope::Namespace => format!("namespace {}", bind.namespace),
        Scope::Strict => format!("{}/{}", bind.namespace, bind.name),
    };
    match &bind.clusters {
        Some(clusters) => format!("{place} in {}", clusters.join(", ")),
        None => place,
    }
}

fn plain(document: &Document) -> Result<Plain, ObjectError> {
    match document.tree.documents.as_slice() {
        [part] => Ok(part.root.map_or(Plain::Null, |root| document.tree.plain(root, true))),
        _ => Err(ObjectError::new("a file holds one EncryptedSecret and nothing else: split it")),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_selector_compiles() {
        assert_eq!(super::selector().text(), super::SELECTOR);
    }
}

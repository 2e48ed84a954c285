//! Why an item does not open, as far as it can be found out: for the message alone.
//!
//! The RSA part of an item fails in the same way under a wrong key and under a wrong label. So other labels are tried:
//! the other scopes of the object, the place that its template names, and places that the caller has reason to suspect.
//! A hit opens nothing: it compares the label inside the session key's wrapping and never looks at a plaintext.

use std::fmt;

use super::{ItemScope, SealedSecret, UnsealError};
use crate::sealed_item::{Item, ItemError};
use crate::sealing_key::SealingKey;

/// Most RSA operations that one diagnosis takes: about half a second.
const TRIES_MAX: usize = 256;
/// The namespace that clients seal for when nobody said one.
const DEFAULT_NAMESPACE: &str = "default";

/// A namespace and a name in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemPlace {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// What was found out about one item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// Its name in the object; empty for the single blob of the first version.
    pub item: String,
    /// What is wrong.
    pub cause: Cause,
}

/// What is wrong with an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nothing of it can be read: not base64, cut off, damaged, or for a key of a size that is not here.
    Item(ItemError),
    /// A key opens it under another label: it stands where it was not sealed for.
    SealedFor {
        /// The scope that it was sealed with.
        scope: ItemScope,
        /// Where it would open. The name means nothing for the wider scopes, the namespace nothing for the widest.
        place: ItemPlace,
        /// Where it stands.
        stands: ItemPlace,
        /// The scope that the object says.
        object_scope: ItemScope,
    },
    /// No key opens it under any label that was tried.
    Unknown {
        /// How many keys of its size were tried.
        keys: usize,
        /// How many labels.
        labels: usize,
    },
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.item.is_empty() {
            true => write!(formatter, "spec.data: {}", self.cause),
            false => write!(formatter, "{}: {}", self.item, self.cause),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Item(error) => write!(formatter, "{error}{}", next_step(error)),
            Self::SealedFor { scope, place, stands, object_scope } => {
                let ItemPlace { namespace, name } = place;
                match scope {
                    ItemScope::Strict => write!(formatter, "it was sealed for {namespace}/{name}")?,
                    ItemScope::NamespaceWide => {
                        write!(formatter, "it was sealed for any name in namespace {namespace}")?;
                    }
                    ItemScope::ClusterWide => formatter.write_str("it was sealed for the whole cluster")?,
                }
                let ItemPlace { namespace: here, name: of } = stands;
                write!(formatter, ", and this is {here}/{of} with scope {object_scope}: ")?;
                let fits = scope.label(here, of) == scope.label(namespace, name);
                match (fits, scope.annotation()) {
                    (true, Some(annotation)) => {
                        write!(formatter, "annotate the object with {annotation}: \"true\", or seal it again")
                    }
                    (true, None) => {
                        formatter.write_str("take the scope annotation off the object, or seal it again")
                    }
                    (false, _) => formatter.write_str("seal it again for this place"),
                }
            }
            Self::Unknown { keys, labels } => write!(
                formatter,
                "none of {keys} keys opens it, under this or any of {labels} likely labels: it was sealed for another cluster or for a key that is gone (restore it), or for another name or namespace (seal it again)"
            ),
        }
    }
}

fn next_step(error: &ItemError) -> &'static str {
    match error {
        ItemError::Base64 { .. } | ItemError::Corrupt { .. } | ItemError::TooShort { .. } => {
            ": take it from git again, or seal it again"
        }
        ItemError::NoKeyOfSize { .. } => {
            ": it was sealed for another cluster, or its key is gone (restore it)"
        }
        ItemError::NotOpened { .. } => "",
    }
}

impl SealedSecret {
    /// What can be found out about the items that `error` names, with `suspects` as places to try besides the object's
    /// own. Takes time: not for a path where strangers make it fail.
    pub fn diagnose(
        &self,
        error: &UnsealError,
        keys: &[&SealingKey],
        suspects: &[ItemPlace],
    ) -> Vec<Diagnosis> {
        let mut candidates = self.candidates(suspects);
        let mut tries = TRIES_MAX;
        let mut examine = |item: &str, text: &str, error: &ItemError| {
            let cause = match error {
                ItemError::NotOpened { .. } => self.search(text, keys, &mut candidates, &mut tries),
                other => Cause::Item(other.clone()),
            };
            Diagnosis { item: item.to_owned(), cause }
        };
        match error {
            UnsealError::Items(failures) => {
                let text = |item: &str| self.items.get(item).map_or("", String::as_str);
                failures
                    .iter()
                    .map(|failure| examine(&failure.item, text(&failure.item), &failure.error))
                    .collect()
            }
            UnsealError::Legacy(error) => {
                vec![examine("", self.legacy_data.as_deref().unwrap_or_default(), error)]
            }
            UnsealError::LegacyBesideItems
            | UnsealError::LegacyContent
            | UnsealError::LegacyRefused
            | UnsealError::Templates(_)
            | UnsealError::TooManyTemplates
            | UnsealError::TooMuchWork => Vec::new(),
        }
    }

    fn place(&self) -> ItemPlace {
        ItemPlace { namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// Scopes and places whose label is another than the object's, each label once, the likeliest first.
    fn candidates(&self, suspects: &[ItemPlace]) -> Vec<(ItemScope, ItemPlace)> {
        let metadata = |field: &str| self.template.metadata.get(field).and_then(|value| value.as_str());
        let own = self.place();
        let template = ItemPlace {
            namespace: metadata("namespace").unwrap_or(&self.namespace).to_owned(),
            name: metadata("name").unwrap_or(&self.name).to_owned(),
        };
        let default = ItemPlace { namespace: DEFAULT_NAMESPACE.to_owned(), name: self.name.clone() };
        let places = [own, template].into_iter().chain(suspects.iter().cloned()).chain([default]);
        let mut labels = vec![self.label()];
        let mut candidates = Vec::new();
        for place in places {
            for scope in ItemScope::ALL {
                let label = scope.label(&place.namespace, &place.name);
                if !labels.contains(&label) {
                    labels.push(label);
                    candidates.push((scope, place.clone()));
                }
            }
        }
        candidates
    }

    fn search(
        &self,
        text: &str,
        keys: &[&SealingKey],
        candidates: &mut [(ItemScope, ItemPlace)],
        tries: &mut usize,
    ) -> Cause {
        let Ok(item) = Item::parse(text) else {
            return Cause::Unknown { keys: 0, labels: 0 };
        };
        let fitting: Vec<_> = keys.iter().filter(|key| item.fits(key.public())).collect();
        for index in 0..candidates.len() {
            let (scope, place) = candidates[index].clone();
            let label = scope.label(&place.namespace, &place.name);
            let affordable = fitting.iter().take(*tries);
            let hit = affordable.clone().any(|key| item.is_for(key, &label));
            *tries -= affordable.count();
            if hit {
                // The next item was most likely sealed in the same call.
                candidates.swap(0, index);
                let (stands, object_scope) = (self.place(), self.scope);
                return Cause::SealedFor { scope, place, stands, object_scope };
            }
        }
        Cause::Unknown { keys: fitting.len(), labels: candidates.len() + 1 }
    }
}

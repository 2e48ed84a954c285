//! How far an item may travel: the scope of an object, and the label that binds its items to it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The annotation of objects whose items open in any namespace and under any name.
pub const CLUSTER_WIDE_ANNOTATION: &str = "sealedsecrets.bitnami.com/cluster-wide";
/// The annotation of objects whose items open under any name of their namespace.
pub const NAMESPACE_WIDE_ANNOTATION: &str = "sealedsecrets.bitnami.com/namespace-wide";
/// The only value that switches an annotation on. `True`, `1` and `yes` do not.
pub const ANNOTATION_ON: &str = "true";

/// Where the items of an object open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ItemScope {
    /// Only in one namespace and under one name.
    #[default]
    Strict,
    /// In one namespace, under any name.
    NamespaceWide,
    /// Anywhere in the cluster.
    ClusterWide,
}

impl ItemScope {
    /// All of them, from the narrowest.
    pub const ALL: [Self; 3] = [Self::Strict, Self::NamespaceWide, Self::ClusterWide];

    /// The scope that annotations say. The wider one wins where both are set.
    pub fn from_annotations(annotations: &BTreeMap<String, String>) -> Self {
        let is_on = |name: &str| annotations.get(name).is_some_and(|value| value == ANNOTATION_ON);
        match (is_on(CLUSTER_WIDE_ANNOTATION), is_on(NAMESPACE_WIDE_ANNOTATION)) {
            (true, _) => Self::ClusterWide,
            (false, true) => Self::NamespaceWide,
            (false, false) => Self::Strict,
        }
    }

    /// The annotation that says it. The narrowest is said by none.
    pub fn annotation(self) -> Option<&'static str> {
        match self {
            Self::Strict => None,
            Self::NamespaceWide => Some(NAMESPACE_WIDE_ANNOTATION),
            Self::ClusterWide => Some(CLUSTER_WIDE_ANNOTATION),
        }
    }

    /// The label of items of an object of that namespace and name. A slash is in no namespace, so labels of two scopes
    /// are never the same unless the namespace is empty.
    pub fn label(self, namespace: &str, name: &str) -> Vec<u8> {
        match self {
            Self::Strict => format!("{namespace}/{name}").into_bytes(),
            Self::NamespaceWide => namespace.as_bytes().to_vec(),
            Self::ClusterWide => Vec::new(),
        }
    }
}

impl fmt::Display for ItemScope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Strict => "strict",
            Self::NamespaceWide => "namespace-wide",
            Self::ClusterWide => "cluster-wide",
        })
    }
}

impl FromStr for ItemScope {
    type Err = &'static str;

    /// As it is typed: nothing means the narrowest.
    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "" => Ok(Self::Strict),
            _ => Self::ALL
                .into_iter()
                .find(|scope| scope.to_string() == word)
                .ok_or("must be one of: strict, namespace-wide, cluster-wide"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_word_widens_the_scope_and_the_wider_one_wins() {
        let scope = |cluster: Option<&str>, namespace: Option<&str>| {
            let pairs = [(CLUSTER_WIDE_ANNOTATION, cluster), (NAMESPACE_WIDE_ANNOTATION, namespace)];
            let set =
                pairs.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
            ItemScope::from_annotations(&set.collect())
        };
        assert_eq!(scope(Some("true"), Some("true")), ItemScope::ClusterWide);
        assert_eq!(scope(Some("false"), Some("true")), ItemScope::NamespaceWide);
        for value in ["True", "TRUE", "1", "yes", "false", "", " true"] {
            assert_eq!(scope(Some(value), Some(value)), ItemScope::Strict, "{value}");
        }
        assert_eq!(scope(None, None), ItemScope::Strict);
    }

    #[test]
    fn words_are_read_as_they_are_written() {
        for scope in ItemScope::ALL {
            assert_eq!(scope.to_string().parse(), Ok(scope));
        }
        assert_eq!("".parse(), Ok(ItemScope::Strict));
        for word in ["Strict", "cluster", "namespace", "strict "] {
            assert!(word.parse::<ItemScope>().is_err(), "{word}");
        }
    }

    #[test]
    fn labels_are_those_of_existing_items() {
        assert_eq!(ItemScope::Strict.label("shop", "db"), b"shop/db");
        assert_eq!(ItemScope::NamespaceWide.label("shop", "db"), b"shop");
        assert_eq!(ItemScope::ClusterWide.label("shop", "db"), b"");
    }
}

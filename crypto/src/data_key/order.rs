//! In which order the entries of a group are tried.
//!
//! Unless someone says otherwise, cost decides: what is silent first, what asks a person last. Stock tools order by
//! kind instead; whoever says an order means theirs, and it wins.

use crate::metadata::kind_of;
use crate::recipient::{KeyError, WrappedKey};

/// The kinds in the order in which stock tools load them, for those that an order does not name.
const KINDS: [&str; 7] = ["kms", "gcp_kms", "hckms", "azure_kv", "hc_vault", "age", "pgp"];

/// Which kinds of keys are tried first. The default leaves it to what an attempt costs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecryptionOrder(Vec<String>);

impl DecryptionOrder {
    /// Reads kinds by their names in the `sops` block: `age,pgp,kms`. Nothing is the default. A word that is no kind
    /// has no effect, as in stock tools.
    ///
    /// # Errors
    /// [`KeyError`] when a kind stands there twice.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut kinds: Vec<String> = Vec::new();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            if kinds.iter().any(|kind| kind == word) {
                return Err(KeyError::new(format!("the decryption order names `{word}` twice")));
            }
            kinds.push(word.to_owned());
        }
        Ok(Self(kinds))
    }

    /// Words in it that name no kind of key.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str).filter(|word| !KINDS.contains(word))
    }

    /// The entries of `group` in this order, or nothing when cost decides.
    pub(super) fn sorted<'a>(&self, group: &'a [WrappedKey]) -> Option<Vec<&'a WrappedKey>> {
        if self.0.is_empty() {
            return None;
        }
        let mut entries: Vec<&WrappedKey> = group.iter().collect();
        entries.sort_by_key(|wrapped| self.rank(kind_of(&wrapped.recipient)));
        Some(entries)
    }

    /// Named kinds first, then the others as stock tools have them, then what nobody knows.
    fn rank(&self, kind: &str) -> (usize, usize) {
        let named = self.0.iter().position(|named| named == kind).unwrap_or(self.0.len());
        (named, KINDS.iter().position(|known| *known == kind).unwrap_or(KINDS.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipient::{AwsKmsKey, RecipientId};

    fn sorted(order: &str) -> Option<Vec<String>> {
        let entry = |recipient| WrappedKey { recipient, enc: String::new(), created_at: None };
        let group = [
            entry(RecipientId::Age("a".to_owned())),
            entry(RecipientId::Other { kind: "oci".to_owned(), name: "o".to_owned() }),
            entry(RecipientId::Other { kind: "hckms".to_owned(), name: "h".to_owned() }),
            entry(RecipientId::AwsKms(AwsKmsKey { arn: "k".to_owned(), ..AwsKmsKey::default() })),
            entry(RecipientId::Pgp("p".to_owned())),
            entry(RecipientId::Age("b".to_owned())),
        ];
        let order = DecryptionOrder::parse(order).unwrap();
        let names = |entries: Vec<&WrappedKey>| {
            entries
                .iter()
                .map(|entry| entry.recipient.to_string().split(' ').nth(1).unwrap().to_owned())
                .collect()
        };
        order.sorted(&group).map(names)
    }

    #[test]
    fn named_kinds_come_first_and_the_others_as_stock_tools_load_them() {
        assert_eq!(sorted("pgp,age").unwrap().concat(), "pabkho");
        assert_eq!(sorted(" kms , nothing").unwrap().concat(), "khabpo");
        assert_eq!(sorted("hckms").unwrap().concat(), "hkabpo");
        assert_eq!(sorted(""), None);
    }

    #[test]
    fn a_kind_stands_there_once_and_unknown_words_are_told() {
        assert!(DecryptionOrder::parse("age,pgp,age").is_err());
        let order = DecryptionOrder::parse("age,gpg").unwrap();
        assert_eq!(order.unknown().collect::<Vec<_>>(), ["gpg"]);
    }
}

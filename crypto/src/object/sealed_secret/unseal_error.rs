//! Why a SealedSecret does not open: the text that the place it replaces has, and the causes one by one.

use std::collections::BTreeMap;
use std::fmt;

use super::TEMPLATES_MAX;
use crate::sealed_item::ItemError;

/// One item that does not open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemFailure {
    /// Its name in the object.
    pub item: String,
    /// Why.
    pub error: ItemError,
}

/// One template that does not render.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateFailure {
    /// Its name in the object.
    pub key: String,
    /// Why, without a value in it.
    pub reason: String,
}

/// Why an object does not open. It is shown as dashboards and scripts know it: equal causes once, with the items that
/// have them in brackets. The order is fixed, so that the same failure has the same text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnsealError {
    /// Some items do not open.
    Items(Vec<ItemFailure>),
    /// The single blob of the first version does not open.
    Legacy(ItemError),
    /// The blob of the first version stands beside items.
    LegacyBesideItems,
    /// What the blob holds is no Secret.
    LegacyContent,
    /// Objects of the first version are not accepted here.
    LegacyRefused,
    /// All items open and some templates do not render.
    Templates(Vec<TemplateFailure>),
    /// There are more than [`TEMPLATES_MAX`](super::TEMPLATES_MAX) templates.
    TooManyTemplates,
    /// The deadline came before the end.
    TooMuchWork,
}

impl std::error::Error for UnsealError {}

impl fmt::Display for UnsealError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Items(failures) => {
                let pairs = failures.iter().map(|failure| (known(&failure.error), failure.item.as_str()));
                formatter.write_str(&grouped(pairs))
            }
            Self::Legacy(error) => formatter.write_str(&known(error)),
            Self::LegacyBesideItems => formatter.write_str(
                "cannot use the field 'encryptedData' and the deprecated field 'data' at the same time",
            ),
            Self::LegacyContent => {
                formatter.write_str("the deprecated field 'data' does not hold a Secret: seal it again")
            }
            Self::LegacyRefused => formatter
                .write_str("using deprecated 'data' field, use 'encryptedData' or flip the feature flag"),
            Self::Templates(failures) => {
                let pairs = failures.iter().map(|failure| (failure.reason.clone(), failure.key.as_str()));
                formatter.write_str(&grouped(pairs))
            }
            Self::TooManyTemplates => {
                write!(formatter, "there are more than {TEMPLATES_MAX} templates: divide the object")
            }
            Self::TooMuchWork => formatter.write_str(
                "opening it takes too long: divide the object, make its templates simpler, or retire unused keys",
            ),
        }
    }
}

/// The words by which a cause has always been known.
fn known(error: &ItemError) -> String {
    match error {
        ItemError::Base64 { at } => format!("illegal base64 data at input byte {at}"),
        ItemError::Corrupt { .. }
        | ItemError::NoKeyOfSize { .. }
        | ItemError::NotOpened { .. }
        | ItemError::TooShort { .. } => "no key could decrypt secret".to_owned(),
    }
}

fn grouped<'a>(pairs: impl Iterator<Item = (String, &'a str)>) -> String {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    pairs.for_each(|(reason, name)| groups.entry(reason).or_default().push(name));
    let shown = groups.into_iter().map(|(reason, mut names)| {
        names.sort_unstable();
        format!("{reason} ({})", names.join(", "))
    });
    shown.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_causes_are_told_once_and_always_in_the_same_order() {
        let failure = |item: &str, error| ItemFailure { item: item.to_owned(), error };
        let failures = vec![
            failure("user", ItemError::NotOpened { tried: 2 }),
            failure("z", ItemError::Base64 { at: 40 }),
            failure("pw", ItemError::TooShort { bytes: 0 }),
        ];
        let reversed = failures.iter().rev().cloned().collect();
        for failures in [failures, reversed] {
            assert_eq!(
                UnsealError::Items(failures).to_string(),
                "illegal base64 data at input byte 40 (z); no key could decrypt secret (pw, user)"
            );
        }
    }
}

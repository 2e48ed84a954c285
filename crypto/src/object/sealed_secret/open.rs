//! From a SealedSecret to the Secret that it stands for, in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Instant;

use serde_json::{Map, Value};

use super::legacy::LegacySecret;
use super::{ItemFailure, SealedSecret, TemplateFailure, UnsealError};
use crate::object::template;
use crate::parallel;
use crate::sealed_item::{Item, ItemError, OpenedItem};
use crate::sealing_key::SealingKey;
use crate::secret::SecretBytes;

/// Most templates of an object. Each may take as many steps as one rendering is allowed.
pub const TEMPLATES_MAX: usize = 1000;

/// What a template does with a name that is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingKey {
    /// It fails.
    #[default]
    Error,
    /// It shows `<no value>`.
    Zero,
}

/// How an object is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsealOptions {
    /// Whether the single blob of the first version is read.
    pub accept_v1: bool,
    /// What a template does with a name that is not there.
    pub missing_key: MissingKey,
    /// Whether templates are rendered. Whoever answers strangers must not: a template can ask about a value bit by bit.
    pub render: bool,
    /// When no further item or template is begun; none for never. Whoever opens the objects of strangers sets it.
    pub deadline: Option<Instant>,
}

/// The Secret that an object stands for.
pub struct PlainSecret {
    /// Metadata of the template with the object's own namespace and name. Owners are as the template says them.
    pub metadata: Map<String, Value>,
    /// Its type; empty means `Opaque`.
    pub type_: String,
    /// Whether it may never change.
    pub immutable: Option<bool>,
    /// Its values.
    pub data: BTreeMap<String, SecretBytes>,
    /// Indices of the keys that opened at least one item, each once, in ascending order.
    pub opened_by: Vec<usize>,
}

impl SealedSecret {
    /// The Secret, if every item opens and every template renders. `keys` are tried in their order, except that the
    /// key that opened one item is tried first for the next.
    ///
    /// # Errors
    /// See [`UnsealError`]: all items that fail are in it.
    pub fn open(&self, keys: &[&SealingKey], options: &UnsealOptions) -> Result<PlainSecret, UnsealError> {
        if let Some(blob) = self.legacy(options.accept_v1)? {
            return self.open_legacy(keys, blob);
        }
        if options.render && self.template.data.len() > TEMPLATES_MAX {
            return Err(UnsealError::TooManyTemplates);
        }
        let opened = self.open_items_until(keys, options.deadline)?;
        let opened_by = opened.values().map(|item| item.key).collect::<BTreeSet<_>>().into_iter().collect();
        let mut data: BTreeMap<_, _> =
            opened.into_iter().map(|(name, item)| (name, item.plaintext)).collect();
        if options.render && !self.template.data.is_empty() {
            self.render(&mut data, options)?;
        }
        Ok(PlainSecret {
            metadata: self.placed(self.template.metadata.clone()),
            type_: self.template.type_.clone(),
            immutable: self.template.immutable,
            data,
            opened_by,
        })
    }

    /// Whether every item opens. No template is looked at.
    ///
    /// # Errors
    /// See [`UnsealError`]: all items that fail are in it.
    pub fn verify(&self, keys: &[&SealingKey], accept_v1: bool) -> Result<(), UnsealError> {
        match self.legacy(accept_v1)? {
            Some(blob) => self.open_legacy(keys, blob).map(|_| ()),
            None => self.open_items(keys).map(|_| ()),
        }
    }

    /// Its items opened, with the index of the key that opened each.
    ///
    /// # Errors
    /// [`UnsealError::Items`] with every item that does not open.
    pub fn open_items(&self, keys: &[&SealingKey]) -> Result<BTreeMap<String, OpenedItem>, UnsealError> {
        self.open_items_until(keys, None)
    }

    fn open_items_until(
        &self,
        keys: &[&SealingKey],
        deadline: Option<Instant>,
    ) -> Result<BTreeMap<String, OpenedItem>, UnsealError> {
        let (label, items) = (self.label(), self.items.iter().collect::<Vec<_>>());
        let work = |range: Range<usize>| {
            let mut order: Vec<_> = (0..keys.len()).collect();
            let mut open = |(name, text): &(&String, &String)| {
                let opened = Item::parse(text).and_then(|item| item.open(keys, &order, &label));
                if let Ok(opened) = &opened {
                    try_first(&mut order, opened.key);
                }
                ((*name).clone(), opened)
            };
            let in_time = |item| (!is_past(deadline)).then(|| open(item));
            items[range].iter().map_while(in_time).collect::<Vec<_>>()
        };
        let attempts: Vec<_> = parallel::by_processors(items.len(), work).into_iter().flatten().collect();
        if attempts.len() < items.len() {
            return Err(UnsealError::TooMuchWork);
        }
        sorted_out(attempts.into_iter())
    }

    /// The blob of the first version, when there is one and it may be read.
    pub(super) fn legacy(&self, accept_v1: bool) -> Result<Option<&str>, UnsealError> {
        match &self.legacy_data {
            None => Ok(None),
            Some(_) if !accept_v1 => Err(UnsealError::LegacyRefused),
            Some(_) if !self.items.is_empty() => Err(UnsealError::LegacyBesideItems),
            Some(blob) => Ok(Some(blob)),
        }
    }

    fn open_legacy(&self, keys: &[&SealingKey], blob: &str) -> Result<PlainSecret, UnsealError> {
        let order: Vec<_> = (0..keys.len()).collect();
        let opened = Item::parse(blob).and_then(|item| item.open(keys, &order, &self.label()));
        let opened = opened.map_err(UnsealError::Legacy)?;
        let mut secret = LegacySecret::read(&opened.plaintext).ok_or(UnsealError::LegacyContent)?;
        Ok(PlainSecret {
            metadata: self.placed(secret.metadata.take().unwrap_or_default()),
            type_: secret.type_.take().unwrap_or_default(),
            immutable: secret.immutable,
            data: secret.values(),
            opened_by: vec![opened.key],
        })
    }

    /// Renders the templates over items and clear values. An item wins over what is rendered under its name, and a null
    /// drops the key: both as in 0.40.
    fn render(
        &self,
        data: &mut BTreeMap<String, SecretBytes>,
        options: &UnsealOptions,
    ) -> Result<(), UnsealError> {
        let mut values = data.clone();
        for (key, source) in &self.template.data {
            if let Some(source) = source {
                values.entry(key.clone()).or_insert_with(|| SecretBytes::from(source.as_str()));
            }
        }
        let mut failures = Vec::new();
        for (key, source) in &self.template.data {
            let Some(source) = source else {
                data.remove(key);
                continue;
            };
            if is_past(options.deadline) {
                return Err(UnsealError::TooMuchWork);
            }
            match template::render(key, source, &values, options.missing_key) {
                Ok(rendered) => drop(data.entry(key.clone()).or_insert(rendered)),
                Err(error) => failures.push(TemplateFailure { key: key.clone(), reason: error.to_string() }),
            }
        }
        if failures.is_empty() { Ok(()) } else { Err(UnsealError::Templates(failures)) }
    }

    /// Metadata with the namespace and the name of the object itself, whatever they said.
    fn placed(&self, mut metadata: Map<String, Value>) -> Map<String, Value> {
        metadata.insert("namespace".to_owned(), self.namespace.clone().into());
        metadata.insert("name".to_owned(), self.name.clone().into());
        metadata
    }
}

fn is_past(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

fn try_first(order: &mut Vec<usize>, key: usize) {
    order.retain(|other| *other != key);
    order.insert(0, key);
}

type Attempt = (String, Result<OpenedItem, ItemError>);

fn sorted_out(attempts: impl Iterator<Item = Attempt>) -> Result<BTreeMap<String, OpenedItem>, UnsealError> {
    let (mut opened, mut failures) = (BTreeMap::new(), Vec::new());
    for (item, attempt) in attempts {
        match attempt {
            Ok(plain) => drop(opened.insert(item, plain)),
            Err(error) => failures.push(ItemFailure { item, error }),
        }
    }
    if failures.is_empty() { Ok(opened) } else { Err(UnsealError::Items(failures)) }
}

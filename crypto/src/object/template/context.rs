//! What one rendering may cost, and the containers that it has made.
//!
//! Every step, every byte and every list is paid for before it is made, so that a hostile template ends early. The
//! containers are all held until the end and then taken apart one by one: however deep they nest and even where a map
//! holds itself, dropping them needs no recursion and leaves nothing behind.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::value::{Element, Key, List, Map, Value};
use super::{LIST_ITEMS_MAX, MEMORY_BYTES_MAX, STEPS_MAX};
use crate::secret::SecretBytes;

/// Why a function or a step failed, in words that show no value.
pub(super) type Fault = String;

#[derive(Default)]
pub(super) struct Context {
    steps: usize,
    memory: usize,
    containers: Vec<Value>,
}

/// What a value takes in a list or a map, roughly.
const ITEM_BYTES: usize = 48;

impl Context {
    /// Pays for `steps` units of work.
    pub(super) fn step(&mut self, steps: usize) -> Result<(), Fault> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > STEPS_MAX {
            return Err(format!("the template takes more than {STEPS_MAX} steps: make it simpler"));
        }
        Ok(())
    }

    /// Pays for `bytes` before they are made.
    pub(super) fn reserve(&mut self, bytes: usize) -> Result<(), Fault> {
        self.memory = self.memory.saturating_add(bytes);
        if self.memory > MEMORY_BYTES_MAX {
            return Err(format!(
                "the template makes more than {MEMORY_BYTES_MAX} bytes on its way: make it simpler"
            ));
        }
        self.step(bytes / 64)
    }

    pub(super) fn text(&mut self, bytes: impl Into<Vec<u8>>) -> Result<Value, Fault> {
        let bytes = SecretBytes::new(bytes.into());
        self.reserve(bytes.len())?;
        Ok(Value::Text(Rc::new(bytes)))
    }

    /// Pays for a list of `count` items before it is made.
    pub(super) fn reserve_items(&mut self, count: usize) -> Result<(), Fault> {
        if count > LIST_ITEMS_MAX {
            return Err(format!("a list would have more than {LIST_ITEMS_MAX} items"));
        }
        self.reserve(count * ITEM_BYTES)
    }

    pub(super) fn list(&mut self, element: Element, items: Vec<Value>) -> Result<Value, Fault> {
        self.reserve_items(items.len())?;
        let items = items.into_iter().map(|item| if item.is_nothing() { Value::Nil } else { item }).collect();
        let list = Value::List(List { element, items: Rc::new(items), is_nil: false });
        self.containers.push(list.clone());
        Ok(list)
    }

    pub(super) fn texts<T: Into<Vec<u8>>>(
        &mut self,
        texts: impl IntoIterator<Item = T>,
    ) -> Result<Value, Fault> {
        let mut items = Vec::new();
        for text in texts {
            items.push(self.text(text)?);
            if items.len() > LIST_ITEMS_MAX {
                break;
            }
        }
        self.list(Element::Text, items)
    }

    /// Go's nil slice of interfaces.
    pub(super) fn nil_list(element: Element) -> Value {
        Value::List(List { element, items: Rc::new(Vec::new()), is_nil: true })
    }

    pub(super) fn map(&mut self, of_text: bool, entries: BTreeMap<Key, Value>) -> Result<Value, Fault> {
        let keys: usize = entries.keys().map(|key| key.bytes().len()).sum();
        self.reserve(keys)?;
        self.reserve_items(entries.len())?;
        let map = Value::Map(Map { of_text, entries: Rc::new(RefCell::new(entries)) });
        self.containers.push(map.clone());
        Ok(map)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        for container in &self.containers {
            if let Value::Map(map) = container {
                // What the map held is still held by this list of containers, or holds nothing itself.
                map.entries.borrow_mut().clear();
            }
        }
        // A list holds only what was made before it.
        while self.containers.pop().is_some() {}
    }
}

//! How a value is addressed: the keys from the document's root to it, and the additional data made from them.
//!
//! List positions are no part of an address, and neither is the document's number: that is the wire format's
//! choice, and one reason why the seal exists.

/// Handle of one address in a [`Paths`] table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(u32);

/// The address of the document's root.
pub const ROOT: PathId = PathId(0);

/// All addresses of a document: each is its parent's and one key more. The same keys in two places, as in a list of
/// mappings, are two entries.
#[derive(Clone, Debug)]
pub struct Paths {
    /// The parent of each, and where its key ends in `keys`.
    entries: Vec<(PathId, usize)>,
    /// All keys, one behind the other.
    keys: String,
}

impl Default for Paths {
    fn default() -> Self {
        Self::with_room(0)
    }
}

impl Paths {
    /// A table with the root alone, and room for `more` addresses.
    pub(crate) fn with_room(more: usize) -> Self {
        let mut entries = Vec::with_capacity(more + 1);
        entries.push((ROOT, 0));
        Self { entries, keys: String::new() }
    }

    /// A new address: `key` under `parent`.
    pub fn child(&mut self, parent: PathId, key: &str) -> PathId {
        let id =
            PathId(u32::try_from(self.entries.len()).expect("fewer keys than bytes, and these are limited"));
        self.keys.push_str(key);
        self.entries.push((parent, self.keys.len()));
        id
    }

    /// The keys from the root, outermost first.
    pub fn components(&self, mut id: PathId) -> Vec<&str> {
        let mut keys = Vec::new();
        while let Some((parent, key)) = self.split(id) {
            keys.push(key);
            id = parent;
        }
        keys.reverse();
        keys
    }

    /// Whether the keys from the root are these.
    pub(crate) fn is(&self, mut id: PathId, keys: &[&str]) -> bool {
        for expected in keys.iter().rev() {
            match self.split(id) {
                Some((parent, key)) if key == *expected => id = parent,
                _ => return false,
            }
        }
        id == ROOT
    }

    /// The last key and the address it stands under; nothing for the root.
    pub fn split(&self, id: PathId) -> Option<(PathId, &str)> {
        (id != ROOT).then(|| {
            let (parent, end) = self.entries[id.index()];
            let (_, start) = self.entries[id.index() - 1];
            (parent, &self.keys[start..end])
        })
    }

    /// All handles, parents before children.
    pub fn ids(&self) -> impl Iterator<Item = PathId> + use<> {
        (0..self.entries.len() as u32).map(PathId)
    }

    /// The additional data of a value here: the keys joined by `:` with one more at the end. The root's is `:`.
    pub fn associated_data(&self, id: PathId) -> String {
        let mut text = String::new();
        self.write_associated_data(id, &mut text);
        text
    }

    /// As [`Paths::associated_data`], in the place of what `text` held.
    pub(crate) fn write_associated_data(&self, id: PathId, text: &mut String) {
        text.clear();
        self.push_keys(id, text);
        if id == ROOT {
            text.push(':');
        }
    }

    fn push_keys(&self, id: PathId, text: &mut String) {
        if let Some((parent, key)) = self.split(id) {
            self.push_keys(parent, text);
            text.push_str(key);
            text.push(':');
        }
    }

    /// The address as people read it: `a.b`, and `.` for the root.
    pub fn shown(&self, id: PathId) -> String {
        if id == ROOT { ".".to_owned() } else { self.components(id).join(".") }
    }
}

impl PathId {
    /// Position in the table.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additional_data_joins_keys_and_ends_in_a_colon() {
        let mut paths = Paths::default();
        let a = paths.child(ROOT, "a");
        let b = paths.child(a, "b");
        assert_eq!(paths.associated_data(ROOT), ":");
        assert_eq!(paths.associated_data(b), "a:b:");
        assert_eq!(paths.shown(b), "a.b");
        assert!(paths.is(b, &["a", "b"]) && paths.is(ROOT, &[]));
        assert!(!paths.is(b, &["b"]) && !paths.is(b, &["x", "a", "b"]) && !paths.is(a, &["a", "b"]));
    }
}

//! A sorted map that can take back everything since the last commit.
//!
//! Invariant: after [`Table::roll_back`] it holds exactly what it held at the last [`Table::commit`].

use std::collections::BTreeMap;
use std::ops::RangeBounds;

/// Rows by key, with a journal of what the open transaction changed.
#[derive(Debug, Clone)]
pub(crate) struct Table<K, V> {
    rows: BTreeMap<K, V>,
    undo: Vec<(K, Option<V>)>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), undo: Vec::new() }
    }
}

impl<K: Ord + Clone, V> Table<K, V> {
    /// The row under a key.
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.rows.get(key)
    }

    /// Whether there is one.
    pub(crate) fn contains(&self, key: &K) -> bool {
        self.rows.contains_key(key)
    }

    /// Writes a row, new or not.
    pub(crate) fn put(&mut self, key: K, value: V) {
        let before = self.rows.insert(key.clone(), value);
        self.undo.push((key, before));
    }

    /// Takes a row out.
    pub(crate) fn remove(&mut self, key: &K) {
        if let Some(before) = self.rows.remove(key) {
            self.undo.push((key.clone(), Some(before)));
        }
    }

    /// All rows, by key.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.rows.iter()
    }

    /// Rows of a range, by key.
    pub(crate) fn range(&self, bounds: impl RangeBounds<K>) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.rows.range(bounds)
    }

    /// How many rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Keeps what was changed; answers whether anything was.
    pub(crate) fn commit(&mut self) -> bool {
        let changed = !self.undo.is_empty();
        self.undo.clear();
        changed
    }

    /// Takes back what was changed.
    pub(crate) fn roll_back(&mut self) {
        while let Some((key, before)) = self.undo.pop() {
            match before {
                Some(value) => self.rows.insert(key, value),
                None => self.rows.remove(&key),
            };
        }
    }
}

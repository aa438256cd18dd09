//! Small numbers for keys and texts that repeat in rows, remembered so that a row costs no join.
//!
//! Invariants: what is behind a number never changes, so what is remembered never goes stale; only what a rolled-back
//! transaction had added must be forgotten, see [`Refs::forget`]. The memory has a limit. Deliberately absent: figures
//! and terms of SKUs, which do change.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use onceward_domain::error::Error;
use onceward_domain::id::{ActivityId, SkuId, SkuKey};
use onceward_domain::machine;
use rusqlite::{Connection, OptionalExtension};

use crate::failure::{defect, failed, guard_lost};
use crate::queries;

/// So many entries are remembered of each kind; past it they are all forgotten, which only costs reading them again.
const REMEMBERED: usize = 65_536;

/// What one connection remembers.
#[derive(Debug, Default)]
pub(crate) struct Refs {
    sku_refs: HashMap<SkuKey, i64>,
    sku_keys: HashMap<i64, SkuKey>,
    word_refs: HashMap<Arc<str>, i64>,
    words: HashMap<i64, Arc<str>>,
}

impl Refs {
    /// Forgets everything, because a transaction that may have added some of it was rolled back.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// The number of a SKU, or none where there is no such SKU.
    pub(crate) fn sku_ref(&mut self, conn: &Connection, key: &SkuKey) -> Result<Option<i64>, Error> {
        if let Some(found) = self.sku_refs.get(key) {
            return Ok(Some(*found));
        }
        let doing = failed("finding a SKU by its key");
        let mut statement = conn.prepare_cached(queries::SKU_REF_OF).map_err(&doing)?;
        let parameters = (key.activity.as_str(), key.sku.as_str());
        let found = statement.query_row(parameters, |row| row.get(0)).optional().map_err(&doing)?;
        if let Some(sku_ref) = found {
            self.remember_sku(sku_ref, key.clone());
        }
        Ok(found)
    }

    /// The number of a SKU that a new row names.
    pub(crate) fn known_sku_ref(&mut self, conn: &Connection, key: &SkuKey) -> Result<i64, Error> {
        self.sku_ref(conn, key)?
            .ok_or_else(|| defect(format!("a change names the SKU {key}, which is not there")))
    }

    /// The number of a SKU that a guarded change was decided on.
    pub(crate) fn guarded_sku_ref(&mut self, conn: &Connection, key: &SkuKey) -> Result<i64, Error> {
        self.sku_ref(conn, key)?.ok_or_else(|| guard_lost(format!("{key} was decided on, it is not there")))
    }

    /// The key behind a number.
    pub(crate) fn sku_key(&mut self, conn: &Connection, sku_ref: i64) -> Result<SkuKey, Error> {
        if let Some(found) = self.sku_keys.get(&sku_ref) {
            return Ok(found.clone());
        }
        let doing = failed("finding a SKU by its number");
        let mut statement = conn.prepare_cached(queries::SKU_KEY_OF).map_err(&doing)?;
        let (activity, sku): (String, String) =
            statement.query_row([sku_ref], |row| Ok((row.get(0)?, row.get(1)?))).map_err(&doing)?;
        let key = SkuKey { activity: ActivityId::trusted(&activity), sku: SkuId::trusted(&sku) };
        self.remember_sku(sku_ref, key.clone());
        Ok(key)
    }

    /// Remembers a SKU that was just read or added.
    pub(crate) fn remember_sku(&mut self, sku_ref: i64, key: SkuKey) {
        if self.sku_refs.len() >= REMEMBERED || self.sku_keys.len() >= REMEMBERED {
            self.sku_refs.clear();
            self.sku_keys.clear();
        }
        self.sku_keys.insert(sku_ref, key.clone());
        self.sku_refs.insert(key, sku_ref);
    }

    /// The number of a text, or none where it was never written.
    pub(crate) fn word_ref(&mut self, conn: &Connection, text: &str) -> Result<Option<i64>, Error> {
        if let Some(found) = self.word_refs.get(text) {
            return Ok(Some(*found));
        }
        let doing = failed("finding a word by its text");
        let mut statement = conn.prepare_cached(queries::WORD_REF_OF).map_err(&doing)?;
        let found = statement.query_row([text], |row| row.get(0)).optional().map_err(&doing)?;
        if let Some(word_ref) = found {
            self.remember_word(word_ref, Arc::from(text));
        }
        Ok(found)
    }

    /// The number of a text, which is written where it is new. Only the writer may ask.
    pub(crate) fn word_ref_or_new(&mut self, conn: &Connection, text: &str) -> Result<i64, Error> {
        if let Some(found) = self.word_ref(conn, text)? {
            return Ok(found);
        }
        let doing = failed("keeping a word");
        let mut statement = conn.prepare_cached(queries::WORD_INSERT).map_err(&doing)?;
        let word_ref = statement.insert([text]).map_err(&doing)?;
        self.remember_word(word_ref, Arc::from(text));
        Ok(word_ref)
    }

    /// The text behind a number.
    pub(crate) fn word(&mut self, conn: &Connection, word_ref: i64) -> Result<Arc<str>, Error> {
        if let Some(found) = self.words.get(&word_ref) {
            return Ok(Arc::clone(found));
        }
        let doing = failed("finding a word by its number");
        let mut statement = conn.prepare_cached(queries::WORD_TEXT_OF).map_err(&doing)?;
        let text: Arc<str> = statement.query_row([word_ref], |row| row.get(0)).map_err(&doing)?;
        self.remember_word(word_ref, Arc::clone(&text));
        Ok(text)
    }

    fn remember_word(&mut self, word_ref: i64, text: Arc<str>) {
        if self.word_refs.len() >= REMEMBERED || self.words.len() >= REMEMBERED {
            self.word_refs.clear();
            self.words.clear();
        }
        self.words.insert(word_ref, Arc::clone(&text));
        self.word_refs.insert(text, word_ref);
    }
}

/// The text as the constant that the machines use. A label of an earlier version that no table holds any more is kept
/// for good: there are only as many of them as were ever released.
pub(crate) fn label(text: &str) -> &'static str {
    static LABELS: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(|| {
        let mut labels = HashSet::new();
        for view in machine::all() {
            labels.insert(view.name);
            labels.extend(view.states);
            labels.extend(view.rows.iter().map(|row| row.label));
        }
        Mutex::new(labels)
    });
    let mut labels = LABELS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = labels.get(text) {
        return known;
    }
    let kept: &'static str = Box::leak(Box::from(text));
    labels.insert(kept);
    kept
}

//! Small numbers for keys and texts that repeat in rows, remembered so that a row costs no join.
//!
//! Invariants: what is behind a number never changes, so what is remembered never goes stale; only what was committed is
//! remembered for others, what a transaction adds is its own until then ([`Fresh`]). The memory has a limit. Deliberately
//! absent: figures and terms of SKUs, which do change.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use onceward_domain::due::Lane;
use onceward_domain::error::Error;
use onceward_domain::id::{ActivityId, SkuId, SkuKey};
use onceward_domain::machine;
use tokio_postgres::Row;

use crate::failure::{defect, guard_lost};
use crate::link::Link;
use crate::pipeline::params;
use crate::queries;
use crate::rows::{get, text};

/// So many entries are remembered of each kind; past it they are all forgotten, which only costs reading them again.
const REMEMBERED: usize = 65_536;

/// What is remembered.
#[derive(Debug, Default)]
struct Known {
    sku_refs: HashMap<SkuKey, i32>,
    sku_keys: HashMap<i32, SkuKey>,
    word_refs: HashMap<Arc<str>, i32>,
}

/// What the sessions of one store remember together.
#[derive(Debug, Default)]
pub(crate) struct Refs {
    known: RwLock<Known>,
}

/// Numbers that one work needs, with those that its own transaction has added.
#[derive(Debug, Default)]
pub(crate) struct Fresh {
    skus: HashMap<SkuKey, i32>,
    words: HashMap<Arc<str>, i32>,
}

impl Refs {
    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.sku_refs.len() >= REMEMBERED || known.word_refs.len() >= REMEMBERED {
            *known = Known::default();
        }
        known
    }

    /// Remembers what a transaction has added, once it is committed.
    pub(crate) fn learn(&self, fresh: Fresh) {
        if fresh.skus.is_empty() && fresh.words.is_empty() {
            return;
        }
        let mut known = self.write();
        for (key, sku_ref) in fresh.skus {
            known.sku_keys.insert(sku_ref, key.clone());
            known.sku_refs.insert(key, sku_ref);
        }
        known.word_refs.extend(fresh.words);
    }

    /// The numbers of those SKUs that are there. What is remembered by this was committed.
    pub(crate) async fn sku_refs<'a>(
        &self,
        link: &Link,
        keys: impl Iterator<Item = &'a SkuKey>,
    ) -> Result<HashMap<SkuKey, i32>, Error> {
        let mut fresh = Fresh::default();
        let mut found = HashMap::new();
        self.find_skus(link, keys, &mut fresh).await?.into_iter().for_each(|(key, sku_ref)| {
            found.insert(key, sku_ref);
        });
        self.learn(fresh);
        Ok(found)
    }

    async fn find_skus<'a>(
        &self,
        link: &Link,
        keys: impl Iterator<Item = &'a SkuKey>,
        fresh: &mut Fresh,
    ) -> Result<Vec<(SkuKey, i32)>, Error> {
        let mut found = Vec::new();
        let mut missing: Vec<SkuKey> = Vec::new();
        let mut seen = HashSet::new();
        {
            let known = self.read();
            for key in keys.filter(|key| seen.insert(*key)) {
                match known.sku_refs.get(key).or_else(|| fresh.skus.get(key)) {
                    Some(sku_ref) => found.push((key.clone(), *sku_ref)),
                    None => missing.push(key.clone()),
                }
            }
        }
        if missing.is_empty() {
            return Ok(found);
        }
        let activities: Vec<&str> = missing.iter().map(|key| key.activity.as_str()).collect();
        let skus: Vec<&str> = missing.iter().map(|key| key.sku.as_str()).collect();
        let doing = "finding SKUs by their keys";
        for row in link.rows(doing, queries::SKU_REFS_OF, params![activities, skus]).await? {
            let (sku_ref, key) = sku_key(&row)?;
            fresh.skus.insert(key.clone(), sku_ref);
            found.push((key, sku_ref));
        }
        Ok(found)
    }

    /// Sees to it that the keys behind these numbers are remembered, and gives them.
    pub(crate) async fn sku_keys(
        &self,
        link: &Link,
        sku_refs: impl Iterator<Item = i32>,
    ) -> Result<HashMap<i32, SkuKey>, Error> {
        let mut found = HashMap::new();
        let mut missing = BTreeSet::new();
        {
            let known = self.read();
            for sku_ref in sku_refs {
                if found.contains_key(&sku_ref) {
                    continue;
                }
                match known.sku_keys.get(&sku_ref) {
                    Some(key) => drop(found.insert(sku_ref, key.clone())),
                    None => drop(missing.insert(sku_ref)),
                }
            }
        }
        if missing.is_empty() {
            return Ok(found);
        }
        let missing: Vec<i32> = missing.into_iter().collect();
        let rows = link.rows("finding SKUs by their numbers", queries::SKU_KEYS_OF, params![missing]).await?;
        let mut known = self.write();
        for row in rows {
            let (sku_ref, key) = sku_key(&row)?;
            known.sku_keys.insert(sku_ref, key.clone());
            known.sku_refs.insert(key.clone(), sku_ref);
            found.insert(sku_ref, key);
        }
        Ok(found)
    }

    /// The number of a lane, or none where it was never used.
    pub(crate) async fn lane(&self, link: &Link, lane: &Lane) -> Result<Option<i32>, Error> {
        Ok(self.words(link, [lane.as_str()].into_iter()).await?.get(lane.as_str()).copied())
    }

    /// The numbers of those texts that are there. What is remembered by this was committed.
    pub(crate) async fn words<'a>(
        &self,
        link: &Link,
        texts: impl Iterator<Item = &'a str>,
    ) -> Result<HashMap<Arc<str>, i32>, Error> {
        let mut found = HashMap::new();
        let missing = self.missing_words(texts, &mut found);
        if missing.is_empty() {
            return Ok(found);
        }
        let new = words_there(link, &missing).await?;
        self.write().word_refs.extend(new.iter().map(|(text, number)| (Arc::clone(text), *number)));
        found.extend(new);
        Ok(found)
    }

    fn missing_words<'a>(
        &self,
        texts: impl Iterator<Item = &'a str>,
        found: &mut HashMap<Arc<str>, i32>,
    ) -> Vec<&'a str> {
        let known = self.read();
        let mut missing = BTreeSet::new();
        for text in texts {
            if found.contains_key(text) {
                continue;
            }
            match known.word_refs.get_key_value(text) {
                Some((text, number)) => drop(found.insert(Arc::clone(text), *number)),
                None => drop(missing.insert(text)),
            }
        }
        missing.into_iter().collect()
    }
}

/// What a work that writes knows of numbers.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    refs: &'a Refs,
    skus: HashMap<SkuKey, i32>,
    words: HashMap<Arc<str>, i32>,
    fresh: Fresh,
}

impl<'a> Names<'a> {
    /// Nothing yet.
    pub(crate) fn new(refs: &'a Refs) -> Self {
        Self { refs, skus: HashMap::new(), words: HashMap::new(), fresh: Fresh::default() }
    }

    /// Finds the numbers of SKUs.
    pub(crate) async fn find_skus(
        &mut self,
        link: &Link,
        keys: impl Iterator<Item = &SkuKey>,
    ) -> Result<(), Error> {
        let found = self.refs.find_skus(link, keys, &mut self.fresh).await?;
        self.skus.extend(found);
        Ok(())
    }

    /// Notes a SKU that this transaction has added.
    pub(crate) fn add_sku(&mut self, row: &Row) -> Result<(), Error> {
        let (sku_ref, key) = sku_key(row)?;
        self.skus.insert(key.clone(), sku_ref);
        self.fresh.skus.insert(key, sku_ref);
        Ok(())
    }

    /// Finds the numbers of texts, and keeps those that are new.
    pub(crate) async fn find_words(
        &mut self,
        link: &Link,
        texts: impl Iterator<Item = &str>,
    ) -> Result<(), Error> {
        let missing = self.refs.missing_words(texts, &mut self.words);
        if missing.is_empty() {
            return Ok(());
        }
        link.rows("keeping words", queries::WORD_INSERT, params![missing.clone()]).await?;
        let new = words_there(link, &missing).await?;
        self.fresh.words.extend(new.iter().map(|(text, number)| (Arc::clone(text), *number)));
        self.words.extend(new);
        Ok(())
    }

    /// The number of a SKU that a new row names.
    pub(crate) fn known_sku(&self, key: &SkuKey) -> Result<i32, Error> {
        let found = self.skus.get(key).copied();
        found.ok_or_else(|| defect(format!("a change names the SKU {key}, which is not there")))
    }

    /// The number of a SKU that a guarded change was decided on.
    pub(crate) fn guarded_sku(&self, key: &SkuKey) -> Result<i32, Error> {
        self.skus
            .get(key)
            .copied()
            .ok_or_else(|| guard_lost(format!("{key} was decided on, it is not there")))
    }

    /// The number of a text.
    pub(crate) fn word(&self, text: &str) -> Result<i32, Error> {
        self.words.get(text).copied().ok_or_else(|| defect(format!("{text} has no number")))
    }

    /// What is to be remembered after the commit.
    pub(crate) fn into_fresh(self) -> Fresh {
        self.fresh
    }
}

async fn words_there(link: &Link, texts: &[&str]) -> Result<Vec<(Arc<str>, i32)>, Error> {
    let rows =
        link.rows("finding words by their texts", queries::WORD_REFS_OF, params![texts.to_vec()]).await?;
    rows.iter().map(|row| Ok((Arc::from(text(row, 1)?), get(row, 0)?))).collect()
}

/// A SKU's number and key from the first three columns.
fn sku_key(row: &Row) -> Result<(i32, SkuKey), Error> {
    let key = SkuKey { activity: ActivityId::trusted(text(row, 1)?), sku: SkuId::trusted(text(row, 2)?) };
    Ok((get(row, 0)?, key))
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

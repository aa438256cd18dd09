//! Loading what a decision names: a [`Need`] becomes [`Facts`].
//!
//! Invariants: what is asked for and not there is simply absent; the purchases of a buyer come oldest first. On the
//! writer the rows are locked by its write lock; on a reader they are one snapshot. Read next: `rows`, `apply`.

use std::sync::Arc;

use onceward_domain::catalogue::{Activity, Bucket, LatePayment, Sku, Stock};
use onceward_domain::changes::{Answered, CompensationTask};
use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{ActivityId, PurchaseId, SkuId, SkuKey, UserId};
use onceward_domain::purchase::Purchase;
use onceward_domain::time::{Millis, Timestamp};
use rusqlite::{Connection, Row};

use crate::credit;
use crate::failure::failed;
use crate::refs::Refs;
use crate::rows::{self, get, listed, purchase, purchase_id, state};
use crate::{due, group, money, notice, queries};

/// Loads everything that a need names.
pub(crate) fn load(conn: &Connection, refs: &mut Refs, need: &Need, now: Timestamp) -> Result<Facts, Error> {
    let mut facts = Facts::empty(now);
    for id in &need.activities {
        if let Some(activity) = activity(conn, id)? {
            facts.activities.insert(id.clone(), activity);
        }
    }
    for key in &need.skus {
        if let Some(sku) = sku(conn, refs, key)? {
            facts.skus.insert(key.clone(), sku);
            if !facts.activities.contains_key(&key.activity) {
                let its_activity = activity(conn, &key.activity)?;
                facts.activities.extend(its_activity.map(|activity| (key.activity.clone(), activity)));
            }
        }
    }
    for key in &need.buckets {
        if let Some(bucket) = bucket(conn, refs, key)? {
            facts.buckets.insert(key.clone(), bucket);
        }
    }
    load_purchases(conn, refs, &need.purchases, &mut facts)?;
    load_buyers(conn, refs, &need.buyers, &mut facts)?;
    for id in &need.compensations {
        if let Some(task) = compensation(conn, *id)? {
            facts.compensations.insert(*id, task);
        }
    }
    for key in &need.answers {
        if let Some(answer) = answer(conn, key)? {
            facts.answers.insert(Arc::clone(key), answer);
        }
    }
    money::load(conn, need, &mut facts)?;
    notice::load(conn, need, &mut facts)?;
    due::load(conn, refs, need, &mut facts)?;
    group::load(conn, need, &mut facts)?;
    credit::load(conn, refs, need, &mut facts)?;
    Ok(facts)
}

/// The first row of a query as a value.
pub(crate) fn first<T>(
    conn: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
    doing: &str,
    mut read: impl FnMut(&Row<'_>) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    let mut statement = conn.prepare_cached(sql).map_err(failed(doing))?;
    let mut rows = statement.query(parameters).map_err(failed(doing))?;
    rows.next().map_err(failed(doing))?.map(&mut read).transpose()
}

/// Every row of a query as a value.
pub(crate) fn every<T>(
    conn: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
    doing: &str,
    mut read: impl FnMut(&Row<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let mut statement = conn.prepare_cached(sql).map_err(failed(doing))?;
    let mut rows = statement.query(parameters).map_err(failed(doing))?;
    let mut values = Vec::new();
    while let Some(row) = rows.next().map_err(failed(doing))? {
        values.push(read(row)?);
    }
    Ok(values)
}

fn activity(conn: &Connection, id: &ActivityId) -> Result<Option<Activity>, Error> {
    first(conn, queries::ACTIVITY_BY_ID, [id.as_str()], "loading an activity", |row| {
        Ok(Activity {
            id: id.clone(),
            name: get(row, 0)?,
            starts_at: Timestamp(get(row, 1)?),
            ends_at: Timestamp(get(row, 2)?),
            payment_window: Millis(get(row, 3)?),
            cancel_grace: Millis(get(row, 4)?),
            reservation_deadline: Millis(get(row, 5)?),
            confirm_after_cancel: Millis(get(row, 6)?),
            late_payment: listed(&LatePayment::ALL, get(row, 7)?, "late payment rule")?,
            cancelled_frees_limit: get(row, 8)?,
        })
    })
}

fn sku(conn: &Connection, refs: &mut Refs, key: &SkuKey) -> Result<Option<Sku>, Error> {
    let Some(sku_ref) = refs.sku_ref(conn, key)? else { return Ok(None) };
    first(conn, queries::SKU_BY_REF, [sku_ref], "loading a SKU", |row| sku_of(row, 0, key.clone()))
}

/// A SKU from a whole row, with its number.
pub(crate) fn keyed_sku(row: &Row<'_>) -> Result<(i64, Sku), Error> {
    let (activity, sku): (String, String) = (get(row, 1)?, get(row, 2)?);
    let key = SkuKey { activity: ActivityId::trusted(&activity), sku: SkuId::trusted(&sku) };
    Ok((get(row, 0)?, sku_of(row, 3, key)?))
}

/// A SKU from its columns, which begin at `from`.
fn sku_of(row: &Row<'_>, from: usize, key: SkuKey) -> Result<Sku, Error> {
    Ok(Sku {
        key,
        price: rows::money(get(row, from)?, get(row, from + 1)?)?,
        per_user_limit: get(row, from + 2)?,
        limit_since: Timestamp(get(row, from + 3)?),
        buckets: get(row, from + 4)?,
        opening: get(row, from + 5)?,
        stock: Stock {
            initial: get(row, from + 6)?,
            available: get(row, from + 7)?,
            occupied: get(row, from + 8)?,
            sold: get(row, from + 9)?,
        },
        adjustments: get(row, from + 10)?,
        revision: get(row, from + 11)?,
    })
}

/// The bucket of a SKU.
pub(crate) fn bucket(conn: &Connection, refs: &mut Refs, key: &SkuKey) -> Result<Option<Bucket>, Error> {
    let Some(sku_ref) = refs.sku_ref(conn, key)? else { return Ok(None) };
    first(conn, queries::BUCKET_BY_REF, [sku_ref], "loading a bucket", |row| {
        Ok(Bucket {
            key: key.clone(),
            initial: get(row, 0)?,
            available: get(row, 1)?,
            open_reserved: get(row, 2)?,
            committed: get(row, 3)?,
            adjustments: get(row, 4)?,
            revision: get(row, 5)?,
        })
    })
}

fn load_purchases(
    conn: &Connection,
    refs: &mut Refs,
    ids: &[PurchaseId],
    facts: &mut Facts,
) -> Result<(), Error> {
    for id in ids {
        let found = first(conn, queries::PURCHASE_BY_ID, [id.bytes()], "loading a purchase", |row| {
            purchase(conn, refs, row)
        })?;
        if let Some(found) = found {
            facts.purchases.insert(*id, found);
        }
    }
    Ok(())
}

fn load_buyers(
    conn: &Connection,
    refs: &mut Refs,
    buyers: &[(SkuKey, UserId)],
    facts: &mut Facts,
) -> Result<(), Error> {
    if buyers.is_empty() {
        return Ok(());
    }
    let doing = failed("loading the purchases of a buyer");
    let any_direct =
        first(conn, queries::ORDER_LINE_ANY, [], "looking for direct orders", |row| get(row, 0))?;
    let mut flash = conn.prepare_cached(queries::PURCHASE_OF_BUYER).map_err(&doing)?;
    for (key, user) in buyers {
        let mut found: Vec<Purchase> = Vec::new();
        if let Some(sku_ref) = refs.sku_ref(conn, key)? {
            let mut rows = flash.query((user.as_str(), sku_ref)).map_err(&doing)?;
            while let Some(row) = rows.next().map_err(&doing)? {
                // One that was asked for by its id is not made a second time.
                let known = facts.purchases.get(&purchase_id(row)?).cloned();
                found.push(known.map_or_else(|| purchase(conn, refs, row), Ok)?);
            }
            if any_direct == Some(true) {
                found.extend(direct_of_buyer(conn, refs, user, sku_ref)?);
            }
        }
        found.sort_by_key(|purchase| purchase.handle);
        found.dedup_by_key(|purchase| purchase.handle);
        facts.buyers.insert((key.clone(), user.clone()), found.iter().map(|purchase| purchase.id).collect());
        facts.purchases.extend(found.into_iter().map(|purchase| (purchase.id, purchase)));
    }
    Ok(())
}

fn direct_of_buyer(
    conn: &Connection,
    refs: &mut Refs,
    user: &UserId,
    sku_ref: i64,
) -> Result<Vec<Purchase>, Error> {
    let doing = "loading the direct orders of a buyer";
    let handles: Vec<i64> =
        every(conn, queries::ORDER_LINE_OF_BUYER, (user.as_str(), sku_ref), doing, |row| get(row, 0))?;
    let mut found = Vec::with_capacity(handles.len());
    for handle in handles {
        found
            .extend(first(conn, queries::PURCHASE_BY_SEQ, [handle], doing, |row| purchase(conn, refs, row))?);
    }
    Ok(found)
}

fn compensation(conn: &Connection, id: PurchaseId) -> Result<Option<CompensationTask>, Error> {
    let doing = "loading a compensation task";
    first(conn, queries::COMPENSATION_BY_PURCHASE, [id.bytes()], doing, |row| {
        Ok(CompensationTask {
            purchase: id,
            status: state(get(row, 0)?)?,
            attempts: get(row, 1)?,
            last_result: get(row, 2)?,
            created_at: Timestamp(get(row, 3)?),
            updated_at: Timestamp(get(row, 4)?),
            revision: get(row, 5)?,
        })
    })
}

fn answer(conn: &Connection, key: &Arc<str>) -> Result<Option<Answered>, Error> {
    first(conn, queries::ANSWER_BY_KEY, [key], "loading a first answer", |row| {
        Ok(Answered {
            key: Arc::clone(key),
            fingerprint: get(row, 0)?,
            status: get(row, 1)?,
            body: get(row, 2)?,
            at: Timestamp(get(row, 3)?),
            lasting: get(row, 4)?,
        })
    })
}

//! Writing activities, SKUs, stock and buckets.
//!
//! Invariant: figures move only on the revision that was loaded; the checks of the tables stand behind it.

use onceward_domain::catalogue::{Activity, Bucket, LatePayment, Sku};
use onceward_domain::changes::{BucketMove, StockMove};
use onceward_domain::error::Error;
use onceward_domain::id::SkuKey;
use rusqlite::{Connection, params};

use crate::failure::{failed, guard_lost};
use crate::load::first;
use crate::queries;
use crate::refs::Refs;
use crate::rows::{get, position};

pub(super) fn put_activities(conn: &Connection, activities: &[Activity]) -> Result<(), Error> {
    let doing = failed("putting an activity");
    for activity in activities {
        let mut statement = conn.prepare_cached(queries::ACTIVITY_PUT).map_err(&doing)?;
        let parameters = params![
            activity.id.as_str(),
            activity.name,
            activity.starts_at.0,
            activity.ends_at.0,
            activity.payment_window.0,
            activity.cancel_grace.0,
            activity.reservation_deadline.0,
            activity.confirm_after_cancel.0,
            position(&LatePayment::ALL, activity.late_payment),
            activity.cancelled_frees_limit,
        ];
        statement.execute(parameters).map_err(&doing)?;
    }
    Ok(())
}

pub(super) fn add_skus(conn: &Connection, refs: &mut Refs, skus: &[Sku]) -> Result<(), Error> {
    let doing = failed("adding a SKU");
    for sku in skus {
        let mut statement = conn.prepare_cached(queries::SKU_INSERT).map_err(&doing)?;
        let parameters = params![
            sku.key.activity.as_str(),
            sku.key.sku.as_str(),
            sku.price.amount(),
            sku.price.currency().numeric(),
            sku.per_user_limit,
            sku.limit_since.0,
            sku.buckets,
            sku.opening,
            sku.stock.initial,
            sku.stock.available,
            sku.stock.occupied,
            sku.stock.sold,
            sku.adjustments,
            sku.revision,
        ];
        let sku_ref = statement.insert(parameters).map_err(&doing)?;
        refs.remember_sku(sku_ref, sku.key.clone());
    }
    Ok(())
}

pub(super) fn change_terms(conn: &Connection, refs: &mut Refs, skus: &[Sku]) -> Result<(), Error> {
    let doing = failed("changing the terms of a SKU");
    for sku in skus {
        let sku_ref = refs.guarded_sku_ref(conn, &sku.key)?;
        let mut statement = conn.prepare_cached(queries::SKU_CHANGE_TERMS).map_err(&doing)?;
        let parameters = params![
            sku.price.amount(),
            sku.price.currency().numeric(),
            sku.per_user_limit,
            sku.limit_since.0,
            sku.buckets,
            sku_ref,
            sku.revision,
        ];
        if statement.execute(parameters).map_err(&doing)? != 1 {
            return Err(sku_lost(conn, sku_ref, &sku.key, sku.revision)?);
        }
    }
    Ok(())
}

pub(super) fn move_stock(conn: &Connection, refs: &mut Refs, moves: &[StockMove]) -> Result<(), Error> {
    let doing = failed("moving stock");
    for change in moves {
        let sku_ref = refs.guarded_sku_ref(conn, &change.key)?;
        let mut statement = conn.prepare_cached(queries::SKU_MOVE_STOCK).map_err(&doing)?;
        let parameters = params![
            change.stock.initial,
            change.stock.available,
            change.stock.occupied,
            change.stock.sold,
            change.adjustments,
            sku_ref,
            change.revision,
        ];
        if statement.execute(parameters).map_err(&doing)? != 1 {
            return Err(sku_lost(conn, sku_ref, &change.key, change.revision)?);
        }
    }
    Ok(())
}

pub(super) fn add_buckets(conn: &Connection, refs: &mut Refs, buckets: &[Bucket]) -> Result<(), Error> {
    let doing = failed("opening a bucket");
    for bucket in buckets {
        let sku_ref = refs.known_sku_ref(conn, &bucket.key)?;
        let mut statement = conn.prepare_cached(queries::BUCKET_INSERT).map_err(&doing)?;
        let parameters = params![
            sku_ref,
            bucket.initial,
            bucket.available,
            bucket.open_reserved,
            bucket.committed,
            bucket.adjustments,
            bucket.revision,
        ];
        statement.execute(parameters).map_err(&doing)?;
    }
    Ok(())
}

pub(super) fn move_buckets(conn: &Connection, refs: &mut Refs, moves: &[BucketMove]) -> Result<(), Error> {
    let doing = failed("moving a bucket");
    for BucketMove { bucket } in moves {
        let sku_ref = refs.guarded_sku_ref(conn, &bucket.key)?;
        let mut statement = conn.prepare_cached(queries::BUCKET_MOVE).map_err(&doing)?;
        let parameters = params![
            bucket.initial,
            bucket.available,
            bucket.open_reserved,
            bucket.committed,
            bucket.adjustments,
            sku_ref,
            bucket.revision,
        ];
        if statement.execute(parameters).map_err(&doing)? != 1 {
            let there: Option<i64> = peek(conn, queries::BUCKET_PEEK, sku_ref)?;
            return Err(revision_lost("bucket", &bucket.key, bucket.revision, there));
        }
    }
    Ok(())
}

fn sku_lost(conn: &Connection, sku_ref: i64, key: &SkuKey, revision: i64) -> Result<Error, Error> {
    let there = peek(conn, queries::SKU_PEEK, sku_ref)?;
    Ok(revision_lost("SKU", key, revision, there))
}

/// The revision that is there.
pub(super) fn peek(conn: &Connection, sql: &str, key: i64) -> Result<Option<i64>, Error> {
    first(conn, sql, [key], "reading what is there instead", |row| get(row, 0))
}

/// What an operator reads when a revision was another one.
pub(crate) fn revision_lost(
    what: &str,
    key: &dyn std::fmt::Display,
    decided_on: i64,
    there: Option<i64>,
) -> Error {
    match there {
        Some(there) => {
            guard_lost(format!("{what} {key} was decided on at revision {decided_on}, it is at {there}"))
        }
        None => guard_lost(format!("{what} {key} was decided on at revision {decided_on}, it is not there")),
    }
}

//! Writing activities, SKUs, stock and buckets.
//!
//! Invariant: figures move only on the revision that was loaded; the checks of the tables stand behind it.

use onceward_domain::catalogue::{Activity, Bucket, LatePayment, Sku};
use onceward_domain::changes::{BucketMove, ChangeSet, StockMove};
use onceward_domain::error::Error;
use onceward_domain::id::SkuKey;

use super::script::{Guarded, Loss, Script, column};
use crate::link::Link;
use crate::pipeline::params;
use crate::queries;
use crate::refs::Names;
use crate::rows::{currency_code, position};
use crate::transact::Refusal;

/// Adds activities and SKUs at once, because the rest of the set may need the numbers of the SKUs.
pub(super) async fn add(
    link: &Link,
    names: &mut Names<'_>,
    (activities, skus): (&[Activity], &[Sku]),
) -> Result<(), Refusal> {
    if !activities.is_empty() {
        let mut script = Script::new(link);
        put_activities(&mut script, activities).await?;
        script.carry_out().await?;
    }
    if skus.is_empty() {
        return Ok(());
    }
    let doing = "adding a SKU";
    let statement = link.statement(queries::SKU_INSERT).await.map_err(|cause| Refusal::of(doing, cause))?;
    let parameters = params![
        column(skus, |sku| sku.key.activity.as_str()),
        column(skus, |sku| sku.key.sku.as_str()),
        column(skus, |sku| sku.price.amount()),
        column(skus, |sku| currency_code(sku.price.currency())),
        column(skus, |sku| i64::from(sku.per_user_limit)),
        column(skus, |sku| sku.limit_since.0),
        column(skus, |sku| i32::from(sku.buckets)),
        column(skus, |sku| sku.opening),
        column(skus, |sku| sku.stock.initial),
        column(skus, |sku| sku.stock.available),
        column(skus, |sku| sku.stock.occupied),
        column(skus, |sku| sku.stock.sold),
        column(skus, |sku| i64::from(sku.adjustments)),
        column(skus, |sku| sku.revision),
    ];
    let rows = link.rows_of(&statement, parameters).await.map_err(|cause| Refusal::of(doing, cause))?;
    Ok(rows.iter().try_for_each(|row| names.add_sku(row))?)
}

async fn put_activities<'a>(script: &mut Script<'a>, activities: &'a [Activity]) -> Result<(), Refusal> {
    let parameters = params![
        column(activities, |one| one.id.as_str()),
        column(activities, |one| &*one.name),
        column(activities, |one| one.starts_at.0),
        column(activities, |one| one.ends_at.0),
        column(activities, |one| one.payment_window.0),
        column(activities, |one| one.cancel_grace.0),
        column(activities, |one| one.reservation_deadline.0),
        column(activities, |one| one.confirm_after_cancel.0),
        column(activities, |one| position(&LatePayment::ALL, one.late_payment)),
        column(activities, |one| one.cancelled_frees_limit),
    ];
    script.any("putting an activity", queries::ACTIVITY_PUT, parameters).await
}

pub(super) async fn write<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    changes: &'a ChangeSet,
) -> Result<(), Refusal> {
    change_terms(script, names, &changes.changed_skus).await?;
    move_stock(script, names, &changes.stock).await?;
    add_buckets(script, names, &changes.new_buckets).await?;
    move_buckets(script, names, &changes.buckets).await
}

/// Numbers of SKUs that guarded changes were decided on.
fn guarded<'k>(names: &Names<'_>, keys: impl Iterator<Item = &'k SkuKey>) -> Result<Vec<i32>, Error> {
    keys.map(|key| names.guarded_sku(key)).collect()
}

/// The loss of rows that stand under a SKU's number.
fn lost<'k>(
    what: &'static str,
    peek: &'static str,
    rows: impl Iterator<Item = (i32, &'k SkuKey, i64)>,
) -> Loss {
    let rows = rows.map(|(sku_ref, key, revision)| Guarded {
        shown: key.to_string(),
        key: params![sku_ref],
        revision,
    });
    Loss::Revision { what, peek, rows: rows.collect() }
}

async fn change_terms<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    skus: &'a [Sku],
) -> Result<(), Refusal> {
    if skus.is_empty() {
        return Ok(());
    }
    let sku_refs = guarded(names, skus.iter().map(|sku| &sku.key))?;
    let parameters = params![
        sku_refs.clone(),
        column(skus, |sku| sku.revision),
        column(skus, |sku| sku.price.amount()),
        column(skus, |sku| currency_code(sku.price.currency())),
        column(skus, |sku| i64::from(sku.per_user_limit)),
        column(skus, |sku| sku.limit_since.0),
        column(skus, |sku| i32::from(sku.buckets)),
    ];
    let loss = move || {
        let rows = sku_refs.into_iter().zip(skus).map(|(sku_ref, sku)| (sku_ref, &sku.key, sku.revision));
        lost("SKU", queries::SKU_PEEK, rows)
    };
    script
        .guarded("changing the terms of a SKU", queries::SKU_CHANGE_TERMS, parameters, (skus.len(), loss))
        .await
}

async fn move_stock<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    moves: &'a [StockMove],
) -> Result<(), Refusal> {
    if moves.is_empty() {
        return Ok(());
    }
    let sku_refs = guarded(names, moves.iter().map(|change| &change.key))?;
    let parameters = params![
        sku_refs.clone(),
        column(moves, |change| change.revision),
        column(moves, |change| change.stock.initial),
        column(moves, |change| change.stock.available),
        column(moves, |change| change.stock.occupied),
        column(moves, |change| change.stock.sold),
        column(moves, |change| i64::from(change.adjustments)),
    ];
    let loss = move || {
        let rows = sku_refs.into_iter().zip(moves).map(|(sku_ref, one)| (sku_ref, &one.key, one.revision));
        lost("SKU", queries::SKU_PEEK, rows)
    };
    script.guarded("moving stock", queries::SKU_MOVE_STOCK, parameters, (moves.len(), loss)).await
}

async fn add_buckets<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    buckets: &'a [Bucket],
) -> Result<(), Refusal> {
    if buckets.is_empty() {
        return Ok(());
    }
    let sku_refs: Vec<i32> =
        buckets.iter().map(|bucket| names.known_sku(&bucket.key)).collect::<Result<_, _>>()?;
    let parameters = params![
        sku_refs,
        column(buckets, |one| one.initial),
        column(buckets, |one| one.available),
        column(buckets, |one| one.open_reserved),
        column(buckets, |one| one.committed),
        column(buckets, |one| i64::from(one.adjustments)),
        column(buckets, |one| one.revision),
    ];
    script.any("opening a bucket", queries::BUCKET_INSERT, parameters).await
}

async fn move_buckets<'a>(
    script: &mut Script<'a>,
    names: &Names<'_>,
    moves: &'a [BucketMove],
) -> Result<(), Refusal> {
    if moves.is_empty() {
        return Ok(());
    }
    let sku_refs = guarded(names, moves.iter().map(|change| &change.bucket.key))?;
    let parameters = params![
        sku_refs.clone(),
        column(moves, |change| change.bucket.revision),
        column(moves, |change| change.bucket.initial),
        column(moves, |change| change.bucket.available),
        column(moves, |change| change.bucket.open_reserved),
        column(moves, |change| change.bucket.committed),
        column(moves, |change| i64::from(change.bucket.adjustments)),
    ];
    let loss = move || {
        let rows = sku_refs.into_iter().zip(moves);
        let rows = rows.map(|(sku_ref, one)| (sku_ref, &one.bucket.key, one.bucket.revision));
        lost("bucket", queries::BUCKET_PEEK, rows)
    };
    script.guarded("moving a bucket", queries::BUCKET_MOVE, parameters, (moves.len(), loss)).await
}

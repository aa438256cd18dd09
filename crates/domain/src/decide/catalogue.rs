//! Putting activities and SKUs on sale, and adjusting stock.
//!
//! Invariants: a repeat with the same body changes nothing; an activity does not change once it exists, a SKU only
//! in price and limit; stock changes only by an adjustment, which is a ledger entry of its own and never takes
//! what is occupied or sold.

use std::sync::Arc;

use crate::catalogue::{Activity, Bucket, STOCK_LIMIT, Sku, Stock};
use crate::changes::{ChangeSet, StockEntry};
use crate::decide::Draft;
use crate::error::{Code, Error};
use crate::event::{Event, Fact};
use crate::facts::Facts;
use crate::id::{AdjustmentId, EventId, SkuKey};
use crate::money::Money;
use crate::time::Timestamp;

/// What a PUT did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// It is new.
    Created,
    /// It was there, the same.
    Unchanged,
    /// It was there; something that may change has changed.
    Changed,
}

/// A SKU to put on sale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSku {
    /// Activity and SKU.
    pub key: SkuKey,
    /// Units on sale.
    pub stock: i64,
    /// Price of one unit.
    pub price: Money,
    /// Most units per buyer.
    pub per_user_limit: u32,
    /// Admission buckets.
    pub buckets: u16,
}

/// Nobody can have bought before the first limit was in force.
const FROM_THE_BEGINNING: Timestamp = Timestamp(0);

/// A person's change of stock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdjustStock {
    /// Derived from the idempotency key; see [`crate::derive::KeyRing::adjustment`].
    pub id: AdjustmentId,
    /// Of what.
    pub key: SkuKey,
    /// By how many units, not zero.
    pub delta: i64,
    /// Why.
    pub reason: Arc<str>,
}

/// Puts an activity. Needs `activities`.
///
/// # Errors
/// [`Code::Differs`] where it exists with other values.
pub fn put_activity(facts: &mut Facts, activity: &Activity) -> Result<(ChangeSet, Put), Error> {
    match facts.activities.get(&activity.id) {
        Some(known) if known == activity => Ok((ChangeSet::default(), Put::Unchanged)),
        Some(_) => Err(Error::new(Code::Differs, format!("putting activity {}", activity.id))),
        None => {
            let changes = ChangeSet { activities: vec![activity.clone()], ..ChangeSet::default() };
            Ok((changes, Put::Created))
        }
    }
}

/// Puts a SKU; `with_bucket` where the gate's counters live in the same store. Needs `activities` and `skus`.
///
/// # Errors
/// [`Code::NotFound`] without the activity; [`Code::Invalid`] where the price of all that one buyer may hold passes the
/// limit of amounts; [`Code::Differs`] where stock or buckets differ, or the currency does.
pub fn put_sku(facts: &mut Facts, new: &NewSku, with_bucket: bool) -> Result<(ChangeSet, Put), Error> {
    let about = || format!("putting SKU {}", new.key);
    if !facts.activities.contains_key(&new.key.activity) {
        return Err(Error::new(Code::NotFound, about()));
    }
    // Whatever a buyer may hold must have a price: else a reservation could be let in that no order can follow (C111).
    new.price.times(new.per_user_limit).map_err(|cause| Error::new(Code::Invalid, about()).because(cause))?;
    let Some(known) = facts.skus.get(&new.key) else {
        let sku = Sku {
            key: new.key.clone(),
            price: new.price,
            per_user_limit: new.per_user_limit,
            limit_since: FROM_THE_BEGINNING,
            buckets: new.buckets,
            opening: new.stock,
            stock: Stock::full(new.stock),
            adjustments: 0,
            revision: 0,
        };
        let new_buckets =
            if with_bucket { vec![Bucket::full(new.key.clone(), new.stock)] } else { Vec::new() };
        return Ok((ChangeSet { new_skus: vec![sku], new_buckets, ..ChangeSet::default() }, Put::Created));
    };
    let differs = known.opening != new.stock
        || known.buckets != new.buckets
        || known.price.currency() != new.price.currency();
    if differs {
        return Err(Error::new(Code::Differs, about()));
    }
    if known.price == new.price && known.per_user_limit == new.per_user_limit {
        return Ok((ChangeSet::default(), Put::Unchanged));
    }
    let is_same_limit = known.per_user_limit == new.per_user_limit;
    let limit_since = if is_same_limit { known.limit_since } else { facts.now };
    let (price, per_user_limit) = (new.price, new.per_user_limit);
    let changed = Sku { price, per_user_limit, limit_since, ..known.clone() };
    Ok((ChangeSet { changed_skus: vec![changed], ..ChangeSet::default() }, Put::Changed))
}

/// Adjusts stock. Needs `skus`.
///
/// # Errors
/// [`Code::NotFound`], [`Code::Invalid`] for zero or past the limit, [`Code::InsufficientStock`] where the free
/// units do not cover a negative delta.
pub fn adjust_stock(facts: &mut Facts, command: &AdjustStock) -> Result<ChangeSet, Error> {
    let about = || format!("adjusting stock of {}", command.key);
    let sku = facts.skus.get_mut(&command.key).ok_or_else(|| Error::new(Code::NotFound, about()))?;
    if command.delta == 0 || command.delta.saturating_add(sku.stock.initial) > STOCK_LIMIT {
        return Err(Error::new(Code::Invalid, about()));
    }
    if command.delta < -sku.stock.available {
        return Err(Error::new(Code::InsufficientStock, about()));
    }
    sku.stock.initial += command.delta;
    sku.stock.available += command.delta;
    sku.adjustments += 1;
    let number = sku.adjustments;
    let mut draft = Draft::default();
    draft.touch_stock(&command.key);
    draft.changes.stock_entries.push(StockEntry {
        key: command.key.clone(),
        purchase: None,
        adjustment: Some(command.id),
        cause: "adjusted",
        available: command.delta,
        occupied: 0,
        sold: 0,
        note: Some(command.reason.clone()),
        at: facts.now,
    });
    draft.changes.events.push(Event {
        id: EventId(command.id.0),
        at: facts.now,
        fact: Fact::StockAdjusted { key: command.key.clone(), delta: command.delta, number },
    });
    Ok(draft.finish(facts))
}

//! The watch: keeps gauges fresh and looks at the invariants, without touching anything.

use onceward_domain::error::Error;
use onceward_domain::time::Millis;

use crate::engine::Engine;
use crate::observe;
use crate::workers::Next;

/// How long between two looks, where a look is quick.
pub const INTERVAL: Millis = Millis(5_000);
/// A look adds up the whole store, which takes longer the more there is: it rests so many times as long as it took, so that
/// watching never costs more than one part in so many (OT-11).
const REST: i64 = 50;

/// Looks once.
///
/// # Errors
/// The store's.
pub async fn step(engine: &Engine) -> Result<Next, Error> {
    let started = engine.store().now().await?;
    let lanes = engine.store().lanes().await?;
    let tally = engine.store().tally().await?;
    observe::lanes(tally.now, &lanes);
    let (mut store, mut gate, mut across) = (0, 0, 0);
    for one in &tally.skus {
        let stock = one.sku.stock;
        store += stock.initial - stock.available - stock.occupied - stock.sold;
        if let Some(bucket) = &one.bucket {
            gate += bucket.initial - bucket.available - bucket.open_reserved - bucket.committed;
            across += bucket.committed - stock.occupied - stock.sold;
        }
    }
    observe::invariant_deltas(store, gate, across);
    let took = engine.store().now().await?.since(started);
    Ok(Next::Wait(Some(Millis(took.0.saturating_mul(REST).max(INTERVAL.0)))))
}

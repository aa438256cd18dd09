//! The sweep (OT-10): ends due orders that no deadline trigger told of, by the orders' own rows.
//!
//! Invariants: it asks the store, whichever trigger there is, and begins with the earliest, so its cost is that of what was
//! lost, not of what lies ahead; an order is left to the trigger for `sweep_after`; one that cannot be ended does not
//! hide those behind it (A10). It holds no claim: two sweeps at once end an order once, by its revision. What another trigger
//! left in the store's lane is told from here, so that changing the setting strands nothing.

use onceward_domain::due::Lane;
use onceward_domain::error::Error;
use onceward_domain::id::PurchaseId;
use onceward_domain::ports::deadline::{DeadlineTrigger, SignalEnd, TriggerKind};
use onceward_domain::ports::store::Expiring;
use onceward_domain::time::Timestamp;

use crate::engine::Engine;
use crate::workers::expiry::end_orders;
use crate::workers::{Next, wait_until};

/// Name of the sweep's transactions.
pub const NAME: &str = "sweep_orders";
/// Pages of one step; so many orders may fail before those behind them wait for another step.
const PAGES_LIMIT: usize = 64;

/// Looks for overdue orders and ends them.
///
/// # Errors
/// The store's; or the defect of an order that could not be ended, where nothing else was left to do.
pub async fn step(engine: &Engine) -> Result<Next, Error> {
    let left = left_over(engine).await?;
    // Mostly nothing is lost: then one row says so, however many wait.
    let first = engine.store().expiries(1, None).await?;
    let first = first.first().map(|one| one.due_at.plus(engine.settings().sweep_after));
    let now = engine.store().now().await?;
    if first.is_none_or(|first| first > now) {
        return wait_until(engine, first.into_iter().chain(left).min()).await;
    }
    end_lost(engine).await
}

async fn end_lost(engine: &Engine) -> Result<Next, Error> {
    let settings = engine.settings();
    let limit = u32::try_from(settings.order_batch).unwrap_or(u32::MAX);
    let mut after: Option<Expiring> = None;
    let mut defect = None;
    for _ in 0..PAGES_LIMIT {
        let page = engine.store().expiries(limit, after).await?;
        let now = engine.store().now().await?;
        let is_lost = |one: &&Expiring| one.due_at.plus(settings.sweep_after) <= now;
        let lost: Vec<Expiring> = page.iter().take_while(is_lost).copied().collect();
        let Some(last) = lost.last().copied() else { break };
        let orders: Vec<PurchaseId> = lost.iter().map(|one| one.purchase).collect();
        let ended = end_orders(engine, NAME, &orders).await?;
        if ended.ended > 0 {
            return Ok(Next::Again);
        }
        // None of these could be ended, or somebody else was quicker: those behind them must not wait for that.
        defect = ended.defect.or(defect);
        after = Some(last);
    }
    defect.map_or(Ok(Next::Again), Err)
}

/// Clears the store's lane where another trigger is used now; answers when the rest of it is due. The orders themselves are
/// found by their rows.
async fn left_over(engine: &Engine) -> Result<Option<Timestamp>, Error> {
    if engine.deadline_trigger().kind() == TriggerKind::Store {
        return Ok(None);
    }
    let settings = engine.settings();
    let lane = engine.store_trigger();
    let signals = lane.take(settings.claim_batch, settings.lease).await?;
    if !signals.is_empty() {
        lane.settle(signals.into_iter().map(|one| SignalEnd::Ack(one.receipt)).collect()).await?;
    }
    engine.store().next_due(Lane::new(Lane::ORDER_EXPIRY)).await
}

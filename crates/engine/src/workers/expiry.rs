//! The expiry worker (OT-04): unpaid orders are cancelled when `expires_at` + grace has come.
//!
//! Invariants: one entry stands for the orders of one batch, due at the earliest of them; what is not yet due goes back
//! for its own time in the same transaction; an order that was paid or cancelled in between is passed over.

use onceward_domain::decide::cancel::expire;
use onceward_domain::due::{Claimed, Lane, unpack_ids};
use onceward_domain::error::{Class, Error};
use onceward_domain::facts::Need;

use crate::engine::Engine;
use crate::execute::execute;
use crate::workers::{Next, claim_from, wait_until};

/// Claims entries whose time has come and cancels what is due of them.
///
/// # Errors
/// The store's; what was claimed comes again after its lease.
pub async fn step(engine: &Engine) -> Result<Next, Error> {
    let lane = Lane::new(Lane::ORDER_EXPIRY);
    let claimed = claim_from(engine, Lane::ORDER_EXPIRY).await?;
    if claimed.is_empty() {
        return wait_until(engine, engine.store().next_due(lane).await?).await;
    }
    for entry in claimed {
        match end(engine, entry).await {
            Ok(_) => {
                engine.signals().relay.notify_one();
                engine.signals().cancel.notify_one();
            }
            // The lease was lost: whoever holds it now does the same.
            Err(error) if error.class() == Class::Conflict => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Next::Again)
}

async fn end(engine: &Engine, entry: Claimed) -> Result<u32, Error> {
    let ids = unpack_ids(&entry.body);
    let known = engine.store().view(Need { purchases: ids.clone(), ..Need::default() }).await?;
    let mut need = Need { purchases: ids.clone(), attempts: ids.clone(), ..Need::default() };
    for id in &ids {
        for line in known.purchases.get(id).iter().flat_map(|purchase| &purchase.lines) {
            if !need.skus.contains(&line.key) {
                need.skus.push(line.key.clone());
            }
        }
    }
    execute(engine, "expire_orders", need, move |facts| expire(facts, &ids, &entry.held)).await
}

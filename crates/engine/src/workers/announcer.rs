//! Tells providers of payment attempts (OT-03): from the durable row, outside any transaction, with the same id each time.
//!
//! Usually the request that made the attempt has told the provider already and removed the entry; this worker is for the
//! times it could not. Invariant: an attempt nobody could announce stays an attempt; its order's expiry asks about it.

use futures_util::future::join_all;
use onceward_domain::due::{Charge, Claimed, DueChange, Lane};
use onceward_domain::error::Error;
use onceward_domain::facts::Need;
use onceward_domain::id::PaymentId;
use onceward_domain::ports::provider::PaymentOrder;
use onceward_domain::retry::After;
use uuid::Uuid;

use crate::engine::Engine;
use crate::execute::{Ending, settle};
use crate::workers::{Next, claim_for_provider, wait_until};

/// Claims attempts, announces each, settles them.
///
/// # Errors
/// The store's; what was claimed comes again after its lease.
pub async fn step(engine: &Engine) -> Result<Next, Error> {
    let claimed = claim_for_provider(engine, Lane::PAYMENT).await?;
    if claimed.is_empty() {
        return wait_until(engine, engine.store().next_due(Lane::new(Lane::PAYMENT)).await?).await;
    }
    let told = join_all(claimed.iter().map(|entry| announce(engine, entry))).await;
    let mut endings: Vec<Ending> = Vec::with_capacity(claimed.len());
    for (entry, told) in claimed.into_iter().zip(told) {
        endings.push(end(engine, entry, told?));
    }
    settle(engine.store(), "payment.announced", endings).await?;
    Ok(Next::Again)
}

/// The attempt's id, as the entry's body keeps it.
pub(crate) fn payment_of(entry: &Claimed) -> Option<PaymentId> {
    Uuid::from_slice(&entry.body).ok().map(PaymentId)
}

async fn announce(engine: &Engine, entry: &Claimed) -> Result<bool, Error> {
    let Some(id) = payment_of(entry) else { return Ok(true) };
    let facts = engine.store().view(Need { payments: vec![id], ..Need::default() }).await?;
    let Some(payment) = facts.payments.get(&id).filter(|one| one.is_open()) else {
        return Ok(true);
    };
    let Some(provider) = engine.provider(&payment.provider) else { return Ok(false) };
    match provider.create(PaymentOrder { payment: id, amount: payment.amount }).await {
        Ok(_) => Ok(true),
        Err(error) => {
            tracing::warn!(target: "onceward", event = "payment.announce_failed", payment_id = %id, error = ?error);
            Ok(false)
        }
    }
}

fn end(engine: &Engine, entry: Claimed, told: bool) -> Ending {
    let after = engine.settings().retry().after(entry.attempts, entry.held.seed());
    let held = entry.held;
    Ending::at(move |now| {
        let held = held.clone();
        match after {
            After::Again(wait) if !told => {
                DueChange::Retry { held, due_at: now.plus(wait), body: None, charge: Charge::Keep }
            }
            After::Again(_) | After::Exhausted => DueChange::Complete(held),
        }
    })
}

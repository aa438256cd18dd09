//! A deadline trigger that lives in the store: the lane `order_expiry`, written once over the `Store` port (OT-10 `store`).
//!
//! Invariants: the entry is written by the transaction that makes the orders, so an order and its entry are there together;
//! one entry stands for the orders of one transaction, due at the earliest of them; times are judged by the store's clock.
//! Deliberately absent: `offer`, which has nothing left to tell.

use std::sync::Arc;

use onceward_domain::due::{
    Charge, ClaimRequest, DueChange, Held, Lane, Member, Sequence, pack_ids, unpack_ids,
};
use onceward_domain::error::Error;
use onceward_domain::id::PurchaseId;
use onceward_domain::ports::Answer;
use onceward_domain::ports::deadline::{DeadlineTrigger, Expiry, Receipt, Signal, SignalEnd, TriggerKind};
use onceward_domain::ports::store::Store;
use onceward_domain::time::Millis;

use crate::execute::{Ending, settle};

/// The trigger.
pub struct StoreTrigger {
    store: Arc<dyn Store>,
}

impl StoreTrigger {
    /// A trigger over a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    async fn claim(&self, limit: u32, lease: Millis) -> Result<Vec<Signal>, Error> {
        let request = ClaimRequest { lane: lane(), limit, lease, sequence: Sequence::ByDue };
        let claimed = self.store.claim_due(request).await?;
        let signals = claimed.into_iter().map(|entry| Signal {
            orders: unpack_ids(&entry.body),
            attempts: entry.attempts,
            receipt: Receipt { member: entry.held.member, token: entry.held.token },
        });
        Ok(signals.collect())
    }

    async fn wait(&self) -> Result<Option<Millis>, Error> {
        let Some(next) = self.store.next_due(lane()).await? else { return Ok(None) };
        Ok(Some(next.since(self.store.now().await?)))
    }
}

fn lane() -> Lane {
    Lane::new(Lane::ORDER_EXPIRY)
}

fn held(receipt: Receipt) -> Held {
    Held { lane: lane(), member: receipt.member, token: receipt.token }
}

fn ending(end: SignalEnd) -> Ending {
    match end {
        SignalEnd::Ack(receipt) => {
            let held = held(receipt);
            Ending::at(move |_| DueChange::Complete(held.clone()))
        }
        SignalEnd::Again { receipt, orders, wait } => {
            let (held, body) = (held(receipt), pack_ids(&orders));
            Ending::at(move |now| {
                let (held, body) = (held.clone(), Some(body.clone()));
                // Being early is nobody's failure, so it costs no attempt.
                DueChange::Retry { held, due_at: now.plus(wait), body, charge: Charge::Refund }
            })
        }
    }
}

impl DeadlineTrigger for StoreTrigger {
    fn kind(&self) -> TriggerKind {
        TriggerKind::Store
    }

    fn within(&self, member: &Member, expiries: &[Expiry]) -> Vec<DueChange> {
        let Some(due_at) = expiries.iter().map(|one| one.due_at).min() else { return Vec::new() };
        let orders: Vec<PurchaseId> = expiries.iter().map(|one| one.purchase).collect();
        vec![DueChange::Put { lane: lane(), member: member.clone(), due_at, body: pack_ids(&orders) }]
    }

    fn offer(&self, _expiries: Vec<Expiry>) -> Answer<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn take(&self, limit: u32, lease: Millis) -> Answer<'_, Vec<Signal>> {
        Box::pin(self.claim(limit, lease))
    }

    fn settle(&self, ends: Vec<SignalEnd>) -> Answer<'_, u32> {
        let endings = ends.into_iter().map(ending).collect();
        Box::pin(settle(&*self.store, "deadline.settle", endings))
    }

    fn next_in(&self) -> Answer<'_, Option<Millis>> {
        Box::pin(self.wait())
    }
}

//! The deadline trigger over a sorted set in Redis (OT-10, `zset`): each order is a member of one lane of the due-work queue.
//!
//! Invariants: an order that is offered again while it waits is the same member; a signal is told under a lease until it is
//! settled; to be early costs no attempt. Deliberately absent: orders from before a loss of Redis; the sweep ends those.

use onceward_domain::due::{DueChange, Held, Lane, Member, pack_ids, unpack_ids};
use onceward_domain::error::Error;
use onceward_domain::id::PurchaseId;
use onceward_domain::ports::Answer;
use onceward_domain::ports::deadline::{DeadlineTrigger, Expiry, Receipt, Signal, SignalEnd, TriggerKind};
use onceward_domain::ports::due_queue::{
    ClaimWork, Due, DueQueue, NewWork, QUEUE_BATCH_LIMIT, Settled, Settlement,
};
use onceward_domain::retry::RetryPolicy;
use onceward_domain::time::Millis;

use crate::queue::RedisQueue;

/// The trigger.
pub struct RedisTrigger {
    queue: RedisQueue,
}

impl RedisTrigger {
    /// A trigger over a queue; it uses the lane `order_expiry`.
    #[must_use]
    pub fn new(queue: RedisQueue) -> Self {
        Self { queue }
    }

    async fn offer_all(&self, expiries: Vec<Expiry>) -> Result<(), Error> {
        for part in expiries.chunks(QUEUE_BATCH_LIMIT) {
            let work = part.iter().map(|one| NewWork {
                member: member_of(one.purchase),
                due: Due::At(one.due_at),
                body: pack_ids(&[one.purchase]),
            });
            self.queue.put(lane(), work.collect()).await?;
        }
        Ok(())
    }

    async fn take_some(&self, limit: u32, lease: Millis) -> Result<Vec<Signal>, Error> {
        // Whether an order ends is decided on its row: a signal is never given up.
        let policy = RetryPolicy::default().for_ever();
        let claimed = self.queue.claim(ClaimWork { lane: lane(), limit, lease, policy }).await?;
        let signal = |one: onceward_domain::due::Claimed| Signal {
            receipt: Receipt { member: one.held.member, token: one.held.token },
            attempts: one.attempts,
            orders: unpack_ids(&one.body),
        };
        Ok(claimed.into_iter().map(signal).collect())
    }

    async fn settle_all(&self, ends: Vec<SignalEnd>) -> Result<u32, Error> {
        let held = |receipt: Receipt| Held { lane: lane(), member: receipt.member, token: receipt.token };
        let settlements: Vec<Settlement> = ends
            .into_iter()
            .map(|end| match end {
                SignalEnd::Ack(receipt) => Settlement::Complete(held(receipt)),
                // A signal is about one order, so what comes again is all of it.
                SignalEnd::Again { receipt, wait, .. } => Settlement::HandBack { held: held(receipt), wait },
            })
            .collect();
        let mut still_held = 0;
        for part in settlements.chunks(QUEUE_BATCH_LIMIT) {
            let settled = self.queue.settle(part.to_vec()).await?;
            let lost = settled.iter().filter(|one| **one == Settled::LeaseLost).count();
            still_held += settled.len() - lost;
        }
        Ok(u32::try_from(still_held).unwrap_or(u32::MAX))
    }
}

fn lane() -> Lane {
    Lane::new(Lane::ORDER_EXPIRY)
}

fn member_of(purchase: PurchaseId) -> Member {
    Member::from(purchase.order().to_string().as_str())
}

impl DeadlineTrigger for RedisTrigger {
    fn kind(&self) -> TriggerKind {
        TriggerKind::Zset
    }

    fn within(&self, _member: &Member, _expiries: &[Expiry]) -> Vec<DueChange> {
        Vec::new()
    }

    fn offer(&self, expiries: Vec<Expiry>) -> Answer<'_, ()> {
        Box::pin(self.offer_all(expiries))
    }

    fn take(&self, limit: u32, lease: Millis) -> Answer<'_, Vec<Signal>> {
        Box::pin(self.take_some(limit, lease))
    }

    fn settle(&self, ends: Vec<SignalEnd>) -> Answer<'_, u32> {
        Box::pin(self.settle_all(ends))
    }

    fn next_in(&self) -> Answer<'_, Option<Millis>> {
        self.queue.next_in(lane())
    }
}

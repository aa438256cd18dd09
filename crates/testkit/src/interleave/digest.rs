//! What can still matter, as one number. Names that only tell copies apart — tokens, revisions, numbers of rows — are left out;
//! a claim is known by who holds it.

use std::hash::{DefaultHasher, Hash};

use onceward_domain::due::Lane;
use onceward_domain::time::Timestamp;

use super::actor::Actor;
use crate::bank::Bank;
use crate::model::rows::Rows;

/// Hashes rows, the bank's books and processes; the caller adds what only it knows.
pub(super) fn of(rows: &Rows, bank: &Bank, actors: &[Actor], now: Timestamp) -> DefaultHasher {
    let mut hasher = DefaultHasher::new();
    now.hash(&mut hasher);
    for (id, purchase) in rows.purchases.iter() {
        let order = purchase.order.as_ref();
        (id, order.map(|order| (order.status, order.paid, order.refunded))).hash(&mut hasher);
        for line in &purchase.lines {
            line.place.hash(&mut hasher);
        }
    }
    for (_, sku) in rows.skus.iter() {
        (sku.stock.available, sku.stock.occupied, sku.stock.sold).hash(&mut hasher);
    }
    for (id, payment) in rows.payments.iter() {
        (id, payment.status, payment.transaction.as_deref()).hash(&mut hasher);
    }
    for (id, refund) in rows.refunds.iter() {
        (id, refund.status, refund.cause).hash(&mut hasher);
    }
    for (key, _) in rows.callbacks.iter() {
        key.hash(&mut hasher);
    }
    for (_, case) in rows.cases.iter() {
        (case.kind, &case.subject).hash(&mut hasher);
    }
    for (_, entry) in rows.entries.iter() {
        entry.cause.hash(&mut hasher);
    }
    for (key, answer) in rows.answers.iter() {
        (key, answer.status).hash(&mut hasher);
    }
    let mut standings: Vec<_> = actors.iter().map(Actor::standing).collect();
    standings.sort_unstable();
    standings.hash(&mut hasher);
    for ((lane, member), row) in rows.due.iter().filter(|((lane, _), _)| is_ours(lane)) {
        let is_held = row.is_held;
        let holder = actors.iter().find(|actor| is_held && actor.holds(row.token));
        (lane.as_str(), member, row.due_at, row.attempts, is_held).hash(&mut hasher);
        holder.map(Actor::standing).hash(&mut hasher);
    }
    bank.hash_books(&mut hasher);
    hasher
}

/// Lanes of events are nobody's here: what is told to the gate is another story.
pub(super) fn is_ours(lane: &Lane) -> bool {
    lane.as_str() != Lane::OUTBOX && !lane.as_str().starts_with(Lane::BUS_PREFIX)
}

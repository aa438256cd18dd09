//! Cancelling orders: a buyer asks (OT-12) or time is up (OT-04), for orders without a payment attempt (OT-03).
//!
//! Invariants (OT-06): the order's end, the stock's release by its own ledger entry, the reservation's move and the
//! event are one ChangeSet; the entry's uniqueness keeps stock from coming back twice. An order in `PAYING` only
//! moves to `CANCEL_PENDING` here: its attempts must be proved unpaid first, which comes with payments.

use std::sync::Arc;

use crate::changes::{ChangeSet, Step, StockEntry};
use crate::decide::{Draft, ENGINE, freed_place};
use crate::due::{Charge, DueChange, Held, pack_ids};
use crate::error::{Code, Error};
use crate::event::Event;
use crate::facts::Facts;
use crate::id::{IdKind, PurchaseId};
use crate::machine::Machine;
use crate::machine::order::{Order as OrderStatus, OrderEvent};
use crate::machine::reservation::ReservationEvent;
use crate::purchase::{Order, Purchase};
use crate::time::Timestamp;

/// Reason written on orders whose time was up.
pub const EXPIRED: &str = "expired";

/// A buyer's wish to cancel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancelRequest {
    /// Which order.
    pub purchase: PurchaseId,
    /// Why.
    pub reason: Arc<str>,
    /// Who asked.
    pub actor: Arc<str>,
}

/// Cancels an order on request; a repeat answers the order as it is.
///
/// Needs `purchases`, and `skus` of every line.
///
/// # Errors
/// [`Code::NotFound`] where there is no order; [`Code::OrderNotCancellable`] once money was taken.
pub fn cancel(facts: &mut Facts, request: &CancelRequest) -> Result<(ChangeSet, Purchase), Error> {
    let about = || format!("cancelling order {}", request.purchase.order());
    let purchase =
        facts.purchases.get(&request.purchase).ok_or_else(|| Error::new(Code::NotFound, about()))?;
    let order = purchase.order.as_ref().ok_or_else(|| Error::new(Code::NotFound, about()))?;
    let mut draft = Draft::default();
    match order.status {
        OrderStatus::Cancelled | OrderStatus::CancelPending => {}
        OrderStatus::Created | OrderStatus::Paying => {
            let why =
                Why { event: OrderEvent::RequestCancel, reason: &request.reason, actor: &request.actor };
            end(facts, &mut draft, request.purchase, &why)?;
        }
        OrderStatus::Paid | OrderStatus::Refunding | OrderStatus::Refunded | OrderStatus::ManualReview => {
            return Err(Error::new(Code::OrderNotCancellable, about()));
        }
    }
    let after = facts.purchases[&request.purchase].clone();
    Ok((draft.finish(facts), after))
}

/// Cancels what is due of a claimed expiry entry and puts the rest back for its own time.
///
/// Needs `purchases` of every id and `skus` of every line.
///
/// # Errors
/// [`Code::GuardLost`] where the entry names a purchase twice.
pub fn expire(facts: &mut Facts, ids: &[PurchaseId], held: &Held) -> Result<(ChangeSet, u32), Error> {
    let mut draft = Draft::default();
    let (mut ended, mut waiting, mut next) = (0, Vec::new(), Timestamp(i64::MAX));
    let (reason, actor): (Arc<str>, Arc<str>) = (Arc::from(EXPIRED), Arc::from(ENGINE));
    for id in ids {
        let Some(order) = facts.purchases.get(id).and_then(|purchase| purchase.order.as_ref()) else {
            continue;
        };
        if order.status.next(OrderEvent::Expire).is_none() {
            continue;
        }
        if facts.now < order.cancel_due_at {
            next = next.min(order.cancel_due_at);
            waiting.push(*id);
            continue;
        }
        end(facts, &mut draft, *id, &Why { event: OrderEvent::Expire, reason: &reason, actor: &actor })?;
        ended += 1;
    }
    draft.changes.due.push(if waiting.is_empty() {
        DueChange::Complete(held.clone())
    } else {
        let body = Some(pack_ids(&waiting));
        DueChange::Retry { held: held.clone(), due_at: next, body, charge: Charge::Refund }
    });
    Ok((draft.finish(facts), ended))
}

struct Why<'a> {
    event: OrderEvent,
    reason: &'a Arc<str>,
    actor: &'a Arc<str>,
}

fn end(facts: &mut Facts, draft: &mut Draft, id: PurchaseId, why: &Why<'_>) -> Result<(), Error> {
    let before = facts.purchases[&id].clone();
    let order = before.order.clone().expect("the caller found the order");
    let pending = order.status.next(why.event).expect("the caller checked the move");
    draft.note(facts, id, pending, why.actor, Some(why.reason.clone()));
    let mut purchase = before.clone();
    let has_attempt = order.status == OrderStatus::Paying;
    let mut order = Order { status: pending.to, cancel_reason: Some(why.reason.clone()), ..order };
    if !has_attempt {
        release(facts, draft, &mut purchase, &mut order, why);
    }
    let reservation = purchase.reservation.filter(|after| before.reservation != Some(*after));
    let places = purchase.lines.iter().map(|line| line.place).collect();
    draft.move_purchase(facts, &before, Step::Order { order: order.clone(), reservation, places })?;
    purchase.order = Some(order);
    purchase.updated_at = facts.now;
    facts.remember(purchase);
    Ok(())
}

fn release(facts: &mut Facts, draft: &mut Draft, purchase: &mut Purchase, order: &mut Order, why: &Why<'_>) {
    let row = order.status.next(OrderEvent::Cancel).expect("a pending cancel may be completed");
    order.status = row.to;
    order.cancelled_at = Some(facts.now);
    draft.note(facts, purchase.id, row, why.actor, Some(why.reason.clone()));
    for line in &mut purchase.lines {
        draft.move_stock(facts, &line.key, row.effect, line.quantity);
        let units = |per_unit: i8| i64::from(per_unit) * i64::from(line.quantity);
        draft.changes.stock_entries.push(StockEntry {
            key: line.key.clone(),
            purchase: Some(purchase.id),
            adjustment: None,
            cause: row.label,
            available: units(row.effect.available),
            occupied: units(row.effect.occupied),
            sold: units(row.effect.sold),
            note: None,
            at: facts.now,
        });
        if facts.activities.get(&line.key.activity).is_some_and(|activity| activity.cancelled_frees_limit) {
            line.place = freed_place(purchase.id);
        }
    }
    if let Some(row) = purchase.reservation.and_then(|status| status.next(ReservationEvent::Cancel)) {
        purchase.reservation = Some(row.to);
        draft.note(facts, purchase.id, row, why.actor, None);
    }
    let event = Event::order_cancelled(purchase.id, purchase.user.clone(), purchase.lines.clone(), facts.now);
    debug_assert_eq!(event.id, purchase.id.event(IdKind::EventOrderCancelled));
    draft.changes.events.push(event);
}

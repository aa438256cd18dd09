//! Cancelling orders: a buyer asks (OT-12) or time is up (OT-04).
//!
//! An order without a payment attempt ends at once. Where an attempt may still take money, the order waits in
//! `CANCEL_PENDING` until every attempt is proved unpaid ([`conclude`], OT-03, OT-05), and is asked about once more
//! afterwards ([`confirm`], OT-07). The same two rounds ask about what is left of a paid order's other attempts. Invariants (OT-06): the order's end, the stock's release by its own ledger entry, the
//! reservation's move and the event are one ChangeSet; the entry's uniqueness keeps stock from coming back twice.

use std::sync::Arc;

use crate::changes::{ChangeSet, Step, StockEntry};
use crate::decide::pay::hear_into;
use crate::decide::{Draft, ENGINE, freed_place};
use crate::due::{Charge, DueChange, Held, Lane, pack_ids};
use crate::error::{Code, Error};
use crate::event::Event;
use crate::facts::Facts;
use crate::guard::Guard;
use crate::id::{IdKind, PaymentId, PurchaseId};
use crate::machine::Machine;
use crate::machine::order::{Order as OrderStatus, OrderEvent};
use crate::machine::payment::Payment as PaymentStatus;
use crate::machine::reservation::ReservationEvent;
use crate::payment::{Payment, Word};
use crate::purchase::{Order, Purchase};
use crate::time::Millis;

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
/// Needs `purchases`, their `attempts`, and `skus` of every line.
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
            if Guard::PaidOrderIsNotCancelled.stands() {
                return Err(Error::new(Code::OrderNotCancellable, about()));
            }
        }
    }
    let after = facts.purchases[&request.purchase].clone();
    Ok((draft.finish(facts), after))
}

/// What became of orders whose time was said to be up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expired {
    /// How many end now.
    pub ended: u32,
    /// Those that wait for their own time, with how long that is.
    pub early: Vec<(PurchaseId, Millis)>,
}

/// Cancels those of these orders whose time has come by the store's clock, whoever said so. One that was paid or cancelled
/// in between is passed over; one whose time lies ahead is left alone and told (C36).
///
/// Needs `purchases` and `attempts` of every id and `skus` of every line.
///
/// # Errors
/// [`Code::GuardLost`] where one decision would change a purchase twice in different ways.
pub fn expire(facts: &mut Facts, ids: &[PurchaseId]) -> Result<(ChangeSet, Expired), Error> {
    let mut draft = Draft::default();
    let mut expired = Expired { ended: 0, early: Vec::new() };
    let (reason, actor): (Arc<str>, Arc<str>) = (Arc::from(EXPIRED), Arc::from(ENGINE));
    for id in ids {
        let Some(order) = facts.purchases.get(id).and_then(|purchase| purchase.order.as_ref()) else {
            continue;
        };
        if order.status.next(OrderEvent::Expire).is_none() {
            continue;
        }
        if !Guard::GraceIsKept.holds(facts.now >= order.cancel_due_at) {
            expired.early.push((*id, order.cancel_due_at.since(facts.now)));
            continue;
        }
        end(facts, &mut draft, *id, &Why { event: OrderEvent::Expire, reason: &reason, actor: &actor })?;
        expired.ended += 1;
    }
    Ok((draft.finish(facts), expired))
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
    let mut order = Order { status: pending.to, cancel_reason: Some(why.reason.clone()), ..order };
    if !Guard::CancelWaitsForProof.holds(!may_take_money(facts, id)) {
        ask_for_last_words(facts, draft, id);
    } else {
        release(facts, draft, &mut purchase, &mut order, why.actor);
        if facts.payments_of(id).next().is_some() && Guard::EndedAttemptsAreConfirmedToo.stands() {
            confirm_later(facts, draft, &purchase);
        }
    }
    let reservation = purchase.reservation.filter(|after| before.reservation != Some(*after));
    let places = purchase.lines.iter().map(|line| line.place).collect();
    draft.move_purchase(facts, &before, Step::Order { order: order.clone(), reservation, places })?;
    purchase.order = Some(order);
    purchase.updated_at = facts.now;
    facts.remember(purchase);
    Ok(())
}

/// Whether an attempt of the order has not had the provider's last word: only declined or closed ones have (OT-03).
fn may_take_money(facts: &Facts, id: PurchaseId) -> bool {
    facts.payments_of(id).any(|one| !matches!(one.status, PaymentStatus::Failed | PaymentStatus::Closed))
}

/// What a provider said of a cancelled order's attempts, and the claim under which it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Which order.
    pub purchase: PurchaseId,
    /// One word per attempt that was asked about.
    pub words: Vec<Word>,
    /// The claim.
    pub held: Held,
    /// How long to wait before asking again, where that is needed.
    pub wait: Millis,
    /// Who asked, for the order's history.
    pub source: Arc<str>,
}

/// How a round of asking ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concluded {
    /// The order is cancelled now.
    Cancelled,
    /// Nothing is left to do: it was paid, or ended before.
    Settled,
    /// Not every attempt had a last word: ask again.
    AskAgain,
}

/// Ends a pending cancel where every attempt is proved unpaid; else waits and asks again (OT-05). Money that shows up
/// is heard first, so it wins (DR-01).
///
/// Needs `purchases` and `attempts`, and `skus` and `buyers` of every line.
///
/// # Errors
/// [`Code::GuardLost`] where one decision would change the purchase twice in different ways.
pub fn conclude(facts: &mut Facts, asked: &Asked) -> Result<(ChangeSet, Concluded), Error> {
    let mut draft = Draft::default();
    for word in &asked.words {
        hear_into(facts, &mut draft, word, &asked.source)?;
    }
    let pending = facts.purchases.get(&asked.purchase).filter(|purchase| {
        let status = purchase.order.as_ref().map(|order| order.status);
        Guard::MoneyBeatsThePendingCancel.holds(status == Some(OrderStatus::CancelPending))
    });
    let Some(before) = pending.cloned() else {
        let concluded = settle_asked(facts, &mut draft, asked);
        return Ok((draft.finish(facts), concluded));
    };
    if !Guard::SilenceProvesNothing.holds(!may_take_money(facts, asked.purchase)) {
        draft.changes.due.push(ask_again(facts, asked));
        return Ok((draft.finish(facts), Concluded::AskAgain));
    }
    let mut purchase = before.clone();
    let mut order = before.order.clone().expect("a pending cancel has its order");
    release(facts, &mut draft, &mut purchase, &mut order, &asked.source);
    let reservation = purchase.reservation.filter(|after| before.reservation != Some(*after));
    let places = purchase.lines.iter().map(|line| line.place).collect();
    draft.move_purchase(facts, &before, Step::Order { order: order.clone(), reservation, places })?;
    draft.changes.due.push(DueChange::Complete(asked.held.clone()));
    if Guard::SecondConfirmationIsPlanned.stands() {
        confirm_later(facts, &mut draft, &purchase);
    }
    purchase.order = Some(order);
    purchase.updated_at = facts.now;
    facts.remember(purchase);
    Ok((draft.finish(facts), Concluded::Cancelled))
}

/// What follows where no cancel is pending: of a paid order every attempt must have had its last word all the same.
fn settle_asked(facts: &Facts, draft: &mut Draft, asked: &Asked) -> Concluded {
    let paid = facts.purchases.get(&asked.purchase).filter(|purchase| {
        let status = purchase.order.as_ref().map(|order| order.status);
        matches!(status, Some(OrderStatus::Paid | OrderStatus::Refunding | OrderStatus::Refunded))
    });
    let is_open = facts.payments_of(asked.purchase).any(Payment::is_open);
    if !Guard::OtherAttemptsAreAskedAgain.holds(paid.is_none() || !is_open) {
        draft.changes.due.push(ask_again(facts, asked));
        return Concluded::AskAgain;
    }
    draft.changes.due.push(DueChange::Complete(asked.held.clone()));
    if let Some(purchase) = paid.filter(|_| !asked.words.is_empty()) {
        confirm_later(facts, draft, purchase);
    }
    Concluded::Settled
}

/// Plans what must still be learnt of the other attempts of an order that one of them has just paid: what is open is closed at
/// its provider, what has ended is asked about once more. Money that shows up has come twice, and goes back (OT-07).
pub(super) fn settle_others(facts: &Facts, draft: &mut Draft, purchase: &Purchase, paid_by: PaymentId) {
    let mut others = facts.payments_of(purchase.id).filter(|one| one.id != paid_by).peekable();
    if others.peek().is_none() || !Guard::OtherAttemptsAreSettled.stands() {
        return;
    }
    if others.any(Payment::is_open) {
        ask_for_last_words(facts, draft, purchase.id);
    } else {
        confirm_later(facts, draft, purchase);
    }
}

/// Has the order's open attempts asked about and closed, until each has had its provider's last word.
fn ask_for_last_words(facts: &Facts, draft: &mut Draft, id: PurchaseId) {
    draft.changes.due.push(DueChange::Put {
        lane: Lane::new(Lane::CANCELLATION),
        member: Arc::from(id.order().to_string()),
        due_at: facts.now,
        body: pack_ids(&[id]),
    });
}

/// Plans the second confirmation: an attempt that was declined or closed may still bring money (OT-07).
fn confirm_later(facts: &Facts, draft: &mut Draft, purchase: &Purchase) {
    let activity = purchase.lines.first().and_then(|line| facts.activities.get(&line.key.activity));
    let wait = activity.map_or(Millis(0), |activity| activity.confirm_after_cancel);
    draft.changes.due.push(DueChange::Put {
        lane: Lane::new(Lane::CONFIRMATION),
        member: Arc::from(purchase.id.order().to_string()),
        due_at: facts.now.plus(wait),
        body: pack_ids(&[purchase.id]),
    });
}

/// The second confirmation: hears what the provider says after the cancel; silence is asked again (OT-07).
///
/// Needs the same as [`conclude`].
///
/// # Errors
/// [`Code::GuardLost`] where one decision would change the purchase twice in different ways.
pub fn confirm(facts: &mut Facts, asked: &Asked) -> Result<(ChangeSet, Concluded), Error> {
    let mut draft = Draft::default();
    let mut is_certain = true;
    for word in &asked.words {
        hear_into(facts, &mut draft, word, &asked.source)?;
        is_certain &= !matches!(word, Word::Silent { .. } | Word::Processing { .. });
    }
    let (end, concluded) = if Guard::SilentConfirmationIsRepeated.holds(is_certain) {
        (DueChange::Complete(asked.held.clone()), Concluded::Settled)
    } else {
        (ask_again(facts, asked), Concluded::AskAgain)
    };
    draft.changes.due.push(end);
    Ok((draft.finish(facts), concluded))
}

fn ask_again(facts: &Facts, asked: &Asked) -> DueChange {
    let due_at = facts.now.plus(asked.wait);
    DueChange::Retry { held: asked.held.clone(), due_at, body: None, charge: Charge::Keep }
}

fn release(
    facts: &mut Facts,
    draft: &mut Draft,
    purchase: &mut Purchase,
    order: &mut Order,
    actor: &Arc<str>,
) {
    let row = order.status.next(OrderEvent::Cancel).expect("a pending cancel may be completed");
    order.status = row.to;
    order.cancelled_at = Some(facts.now);
    draft.note(facts, purchase.id, row, actor, order.cancel_reason.clone());
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
        draft.note(facts, purchase.id, row, actor, None);
    }
    let event = Event::order_cancelled(purchase.id, purchase.user.clone(), purchase.lines.clone(), facts.now);
    debug_assert_eq!(event.id, purchase.id.event(IdKind::EventOrderCancelled));
    draft.changes.events.push(event);
}

//! Refunds (OT-09): asked for by somebody, or owed because money was not wanted.
//!
//! Invariants: the sum of refunds that went back or may still do so never passes what was paid, whoever asks at the same
//! time (C51); one key is one refund (C57); a refund without an answer stays open and is asked about (C55); one that
//! fails — at once or days later — frees its amount again, once.

use std::sync::Arc;

use crate::changes::ChangeSet;
use crate::decide::Draft;
use crate::decide::pay::Heard;
use crate::due::{DueChange, Lane};
use crate::error::{Code, Error};
use crate::event::Event;
use crate::facts::Facts;
use crate::guard::Guard;
use crate::id::{PurchaseId, RefundId};
use crate::machine::Machine;
use crate::machine::order::{Order as OrderStatus, OrderEvent};
use crate::machine::payment::Payment as PaymentStatus;
use crate::machine::refund::{Refund as RefundStatus, RefundEvent};
use crate::money::Money;
use crate::payment::{CaseKind, Payment, Refund, RefundCause, Word};
use crate::purchase::Purchase;

/// Somebody asks for money back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskRefund {
    /// Derived from order and idempotency key; see [`crate::derive::KeyRing::refund`].
    pub id: RefundId,
    /// Of which order.
    pub purchase: PurchaseId,
    /// How much; nothing given means all that is left.
    pub amount: Option<Money>,
    /// Why.
    pub reason: Arc<str>,
    /// Who.
    pub actor: Arc<str>,
}

/// Decides a refund. Needs `purchases` and `attempts`.
///
/// # Errors
/// [`Code::NotFound`]; [`Code::OrderNotRefundable`] where nothing is left or the state forbids it;
/// [`Code::RefundExceedsPaid`]; [`Code::Invalid`] for zero or another currency.
pub fn ask(facts: &mut Facts, command: &AskRefund) -> Result<(ChangeSet, Refund), Error> {
    let about = || format!("refunding order {}", command.purchase.order());
    if let Some(known) = facts.refunds.get(&command.id).filter(|_| Guard::KnownRefundIsAnswered.stands()) {
        return Ok((ChangeSet::default(), known.clone()));
    }
    let purchase = facts.purchases.get(&command.purchase).cloned();
    let purchase = purchase.ok_or_else(|| Error::new(Code::NotFound, about()))?;
    let mut order = purchase.order.clone().ok_or_else(|| Error::new(Code::NotFound, about()))?;
    let is_refundable = Guard::OnlyAPaidOrderIsRefunded
        .holds(matches!(order.status, OrderStatus::Paid | OrderStatus::Refunding));
    let has_money = |one: &&Payment| Guard::SomethingIsLeftToRefund.holds(left_of(facts, one) > 0);
    let paid = facts.payments_of(command.purchase).find(has_money).cloned();
    let (true, Some(payment)) = (is_refundable, paid) else {
        return Err(Error::new(Code::OrderNotRefundable, about()).in_state(order.status.name()));
    };
    let left = left_of(facts, &payment);
    let currency = order.total.currency();
    let all =
        Money::new(left, currency).map_err(|error| Error::new(Code::Invalid, about()).because(error))?;
    let amount = command.amount.unwrap_or(all);
    let is_an_amount = Guard::RefundKeepsTheCurrency.holds(amount.currency() == currency)
        && Guard::RefundIsNotZero.holds(amount.amount() > 0);
    if !is_an_amount {
        return Err(Error::new(Code::Invalid, about()));
    }
    if !Guard::RefundsStayWithinWhatWasPaid.holds(amount.amount() <= left) {
        return Err(Error::new(Code::RefundExceedsPaid, about()));
    }
    let mut draft = Draft::default();
    if let Some(row) = order.status.next(OrderEvent::StartRefund) {
        draft.note(facts, purchase.id, row, &command.actor, Some(Arc::from(command.id.to_string())));
        order.status = row.to;
    }
    // Even where the state stays: another refund, or the end of one, may be decided on the same sums at this moment, and
    // the order's revision lets only one of them through (C51).
    if Guard::RefundMovesTheOrder.stands() || purchase.order.as_ref() != Some(&order) {
        draft.move_order(facts, &purchase, order, None)?;
    }
    let opening =
        Opening { id: command.id, amount, cause: RefundCause::Requested, reason: command.reason.clone() };
    let refund = open(facts, &mut draft, &payment, opening);
    Ok((draft.finish(facts), refund))
}

/// What of a payment's money has neither gone back nor is on its way.
fn left_of(facts: &Facts, payment: &Payment) -> i64 {
    if !Guard::OnlyTakenMoneyGoesBack.holds(payment.status == PaymentStatus::Succeeded) {
        return 0;
    }
    let counted: i64 = facts
        .refunds_of(payment.purchase)
        .filter(|one| one.payment == payment.id && one.counts())
        .map(|one| one.amount.amount())
        .sum();
    payment.amount.amount() - counted
}

pub(super) struct Opening {
    pub(super) id: RefundId,
    pub(super) amount: Money,
    pub(super) cause: RefundCause,
    pub(super) reason: Arc<str>,
}

/// Writes a refund and the durable row from which the provider will hear of it.
pub(super) fn open(facts: &mut Facts, draft: &mut Draft, payment: &Payment, opening: Opening) -> Refund {
    let refund = Refund {
        id: opening.id,
        purchase: payment.purchase,
        payment: payment.id,
        amount: opening.amount,
        status: RefundStatus::Pending,
        cause: opening.cause,
        reason: opening.reason,
        created_at: facts.now,
        updated_at: facts.now,
        revision: 0,
    };
    draft.changes.due.push(DueChange::Put {
        lane: Lane::new(Lane::REFUND),
        member: Arc::from(refund.id.to_string()),
        due_at: facts.now,
        body: refund.id.0.as_bytes().to_vec(),
    });
    draft.changes.new_refunds.push(refund.clone());
    facts.refunds.insert(refund.id, refund.clone());
    refund
}

pub(super) fn hear_into(
    facts: &mut Facts,
    draft: &mut Draft,
    word: &Word,
    source: &Arc<str>,
) -> Result<Heard, Error> {
    let (id, event) = match word {
        Word::Refunded { refund } => (*refund, RefundEvent::Succeed),
        Word::RefundFailed { refund } => (*refund, RefundEvent::Fail),
        Word::RefundSilent { refund } => (*refund, RefundEvent::LoseAnswer),
        Word::Succeeded { .. }
        | Word::Failed { .. }
        | Word::Closed { .. }
        | Word::Processing { .. }
        | Word::Silent { .. } => return Ok(Heard::Nothing),
    };
    let Some(before) = facts.refunds.get(&id).cloned() else {
        return Ok(Heard::UnknownPayment);
    };
    let Some(row) = before.status.next(event) else {
        return Ok(Heard::Nothing);
    };
    let after = Refund { status: row.to, updated_at: facts.now, ..before.clone() };
    draft.changes.refunds.push(after.clone());
    facts.refunds.insert(id, after.clone());
    let is_refused = row.to == RefundStatus::Failed && after.cause != RefundCause::Requested;
    if is_refused && Guard::RefusedUnwantedRefundIsACase.stands() {
        let detail = format!("the provider refused to give {} back ({})", after.amount, after.cause.name());
        draft.open_case(facts, CaseKind::RefundFailed, id.to_string(), detail);
    }
    if let Some(purchase) = facts.purchases.get(&after.purchase).cloned() {
        settle_order(facts, draft, &purchase, &before, &after, source)?;
    }
    Ok(Heard::Applied)
}

/// Moves the order's refunded amount with the refund, and its state where the last open refund ended.
fn settle_order(
    facts: &mut Facts,
    draft: &mut Draft,
    purchase: &Purchase,
    before: &Refund,
    after: &Refund,
    source: &Arc<str>,
) -> Result<(), Error> {
    let Some(mut order) = purchase.order.clone() else { return Ok(()) };
    let original = order.clone();
    let went_back = |refund: &Refund| refund.status == RefundStatus::Succeeded;
    match (went_back(before), went_back(after)) {
        (false, true) => order.refunded += after.amount.amount(),
        (true, false) => order.refunded -= after.amount.amount(),
        (false, false) | (true, true) => {}
    }
    assert!(
        (0..=order.paid).contains(&order.refunded),
        "refunds of {} left their bounds",
        purchase.id.order()
    );
    let is_open = facts.refunds_of(purchase.id).any(Refund::is_open);
    let event = match order.status {
        OrderStatus::Refunding if order.refunded == order.paid => Some(OrderEvent::CompleteRefund),
        OrderStatus::Refunding if Guard::LastRefundEndsRefunding.holds(!is_open) => {
            Some(OrderEvent::EndRefund)
        }
        // A refund still under way may only be of money that came after the full refund: silence returns nothing (DR-02).
        OrderStatus::Refunded
            if order.refunded < order.paid && Guard::OpenRefundReturnsNothing.holds(!is_open) =>
        {
            Some(OrderEvent::ReturnRefund)
        }
        OrderStatus::Refunding
        | OrderStatus::Refunded
        | OrderStatus::Created
        | OrderStatus::Paying
        | OrderStatus::Paid
        | OrderStatus::CancelPending
        | OrderStatus::Cancelled
        | OrderStatus::ManualReview => None,
    };
    if let Some(row) = event.and_then(|event| order.status.next(event)) {
        draft.note(facts, purchase.id, row, source, Some(Arc::from(after.id.to_string())));
        order.status = row.to;
        if row.to == OrderStatus::Refunded {
            draft.changes.events.push(Event::order_refunded(purchase.id, purchase.user.clone(), facts.now));
        }
    }
    // Even where nothing of the order changed: another refund may end on the same facts, each taking the other for open, and
    // the order would stay REFUNDING for ever.
    let has_ended = before.is_open() != after.is_open();
    if order != original || (has_ended && Guard::RefundsEndMovesTheOrder.stands()) {
        draft.move_order(facts, purchase, order, None)?;
    }
    Ok(())
}

//! Payments: starting an attempt, and hearing what a provider says of it (OT-03, OT-07, OT-08; DR-01, DR-02).
//!
//! One rule hears every [`Word`], whether a callback brought it, a query, a second confirmation or a statement.
//! Invariants: proof of money beats any time-out until the cancel is written; money for an order that cannot take it
//! is given back once, or becomes a case — it is never reported unpaid; a wrong amount never pays an order; silence
//! changes nothing but the attempt's own state. Read next: [`super::refund`].

use std::sync::Arc;

use crate::catalogue::LatePayment;
use crate::changes::{ChangeSet, Step, StockEntry};
use crate::decide::cancel::settle_others;
use crate::decide::{Draft, free_place};
use crate::due::{DueChange, Lane};
use crate::error::{Code, Error};
use crate::event::Event;
use crate::facts::Facts;
use crate::guard::Guard;
use crate::id::{PaymentId, PurchaseId};
use crate::machine::Machine;
use crate::machine::order::{Order as OrderStatus, OrderEvent};
use crate::machine::payment::{Payment as PaymentStatus, PaymentEvent};
use crate::machine::reservation::ReservationEvent;
use crate::money::Money;
use crate::payment::{Case, CaseKind, Payment, RefundCause, Word, refund_of_unwanted};
use crate::purchase::Purchase;
use crate::time::Millis;

/// How long the worker leaves a new attempt to the request that made it.
pub const ANNOUNCE_HEAD_START: Millis = Millis(3_000);

/// A buyer starts to pay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartPayment {
    /// Derived from order and idempotency key; see [`crate::derive::KeyRing::payment`].
    pub id: PaymentId,
    /// For which order.
    pub purchase: PurchaseId,
    /// At which provider.
    pub provider: Arc<str>,
    /// Who asked.
    pub actor: Arc<str>,
}

/// Starts an attempt; while one is open it is that one (C47). Needs `purchases` and `attempts`.
///
/// # Errors
/// [`Code::NotFound`]; [`Code::OrderNotPayable`] where the order's state or time does not allow it.
pub fn start(facts: &mut Facts, command: &StartPayment) -> Result<(ChangeSet, Payment), Error> {
    let about = || format!("starting a payment of order {}", command.purchase.order());
    let known = facts.payments.get(&command.id).filter(|one| one.purchase == command.purchase);
    if let Some(known) = known.filter(|_| Guard::KnownAttemptIsAnswered.stands()) {
        return Ok((ChangeSet::default(), known.clone()));
    }
    let purchase = facts.purchases.get(&command.purchase).cloned();
    let purchase = purchase.ok_or_else(|| Error::new(Code::NotFound, about()))?;
    let order = purchase.order.clone().ok_or_else(|| Error::new(Code::NotFound, about()))?;
    let is_payable = Guard::OnlyAnUnpaidOrderIsPaidFor
        .holds(matches!(order.status, OrderStatus::Created | OrderStatus::Paying));
    let open = facts.payments_of(command.purchase).find(|one| one.is_open());
    // A pending cancel or a person may hold the order while an attempt is open: nobody is sent to pay for it then.
    if let (true, Some(open)) = (is_payable && Guard::OneAttemptIsOpen.stands(), open) {
        return Ok((ChangeSet::default(), open.clone()));
    }
    if !is_payable || !Guard::NobodyStartsTooLate.holds(facts.now < order.expires_at) {
        return Err(Error::new(Code::OrderNotPayable, about()).in_state(order.status.name()));
    }
    let mut draft = Draft::default();
    let mut after = order.clone();
    if let Some(row) = order.status.next(OrderEvent::StartPayment) {
        let reference = Some(Arc::from(command.id.to_string()));
        draft.note(facts, purchase.id, row, &command.actor, reference);
        after.status = row.to;
    }
    // Even where the state stays: a cancel that saw no open attempt, or another start, may be decided at this moment, and
    // the order's revision lets only one of them through (C47, OT-03).
    if after != order || Guard::StartMovesTheOrder.stands() {
        draft.move_order(facts, &purchase, after, None)?;
    }
    let payment = Payment {
        id: command.id,
        purchase: command.purchase,
        provider: command.provider.clone(),
        amount: order.total,
        status: PaymentStatus::Pending,
        transaction: None,
        created_at: facts.now,
        updated_at: facts.now,
        revision: 0,
    };
    draft.changes.due.push(DueChange::Put {
        lane: Lane::new(Lane::PAYMENT),
        member: Arc::from(command.id.to_string()),
        due_at: facts.now.plus(ANNOUNCE_HEAD_START),
        body: command.id.0.as_bytes().to_vec(),
    });
    draft.changes.new_payments.push(payment.clone());
    facts.payments.insert(payment.id, payment.clone());
    Ok((draft.finish(facts), payment))
}

/// What became of a word about a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// It was news and changed something.
    Applied,
    /// It was known, or changes nothing.
    Nothing,
    /// The order was cancelled, frozen or paid before: the money goes back, or is a case.
    Unwanted,
    /// The amount or transaction contradicts what we know: a case.
    Contradiction,
    /// We know no such payment (yet).
    UnknownPayment,
}

/// Hears a word about a payment. Needs the payment, its `purchases` and `attempts`, the `skus` and `buyers` of its lines.
///
/// # Errors
/// [`Code::GuardLost`] where one decision would change the purchase twice.
pub fn hear(facts: &mut Facts, word: &Word, source: &Arc<str>) -> Result<(ChangeSet, Heard), Error> {
    let mut draft = Draft::default();
    let heard = hear_into(facts, &mut draft, word, source)?;
    Ok((draft.finish(facts), heard))
}

pub(super) fn hear_into(
    facts: &mut Facts,
    draft: &mut Draft,
    word: &Word,
    source: &Arc<str>,
) -> Result<Heard, Error> {
    match word {
        Word::Succeeded { payment, transaction, amount } => {
            succeed(facts, draft, &Success { payment: *payment, transaction, amount: *amount, source })
        }
        Word::Failed { payment } => Ok(move_payment(facts, draft, *payment, PaymentEvent::Fail)),
        Word::Closed { payment } => Ok(move_payment(facts, draft, *payment, PaymentEvent::Close)),
        Word::Silent { payment } => Ok(move_payment(facts, draft, *payment, PaymentEvent::LoseAnswer)),
        Word::Processing { payment } => {
            let known = facts.payments.contains_key(payment);
            Ok(if known { Heard::Nothing } else { Heard::UnknownPayment })
        }
        Word::Refunded { .. } | Word::RefundFailed { .. } | Word::RefundSilent { .. } => {
            super::refund::hear_into(facts, draft, word, source)
        }
    }
}

fn move_payment(facts: &mut Facts, draft: &mut Draft, id: PaymentId, event: PaymentEvent) -> Heard {
    let now = facts.now;
    let Some(payment) = facts.payments.get_mut(&id) else {
        return Heard::UnknownPayment;
    };
    let Some(row) = payment.status.next(event) else {
        return Heard::Nothing;
    };
    payment.status = row.to;
    payment.updated_at = now;
    draft.put_payment(payment);
    Heard::Applied
}

struct Success<'a> {
    payment: PaymentId,
    transaction: &'a Arc<str>,
    amount: Money,
    source: &'a Arc<str>,
}

fn succeed(facts: &mut Facts, draft: &mut Draft, success: &Success<'_>) -> Result<Heard, Error> {
    let Some(payment) = facts.payments.get(&success.payment).cloned() else {
        return Ok(Heard::UnknownPayment);
    };
    let is_right = Guard::AmountAgrees.holds(payment.amount.amount() == success.amount.amount())
        && Guard::CurrencyAgrees.holds(payment.amount.currency() == success.amount.currency());
    if !is_right {
        return contradict(facts, draft, &payment, success);
    }
    let Some(row) = payment.status.next(PaymentEvent::Succeed) else {
        return Ok(repeated(facts, draft, &payment, success));
    };
    let after = Payment {
        status: row.to,
        transaction: Some(success.transaction.clone()),
        updated_at: facts.now,
        ..payment.clone()
    };
    draft.put_payment(&after);
    facts.payments.insert(after.id, after);
    let purchase = facts.purchases.get(&payment.purchase).cloned();
    let Some(purchase) = purchase.filter(|one| one.order.is_some()) else {
        return Err(Error::new(Code::ConstraintViolated, format!("payment {} has no order", payment.id)));
    };
    take_money(facts, draft, &purchase, success)
}

/// A success that is known already is nothing new; under another transaction it is money taken twice for one attempt.
fn repeated(facts: &Facts, draft: &mut Draft, payment: &Payment, success: &Success<'_>) -> Heard {
    if Guard::OneTransactionPerPayment.holds(payment.transaction.as_ref() == Some(success.transaction)) {
        return Heard::Nothing;
    }
    let first = payment.transaction.as_deref().unwrap_or("none");
    let detail = format!("{} was paid by {first}, and again by {}", payment.id, success.transaction);
    let subject = format!("{}/{}", payment.id, success.transaction);
    draft.open_case(facts, CaseKind::SecondTransaction, subject, detail);
    Heard::Contradiction
}

/// A wrong amount never pays an order; the order is frozen, so that no cancel or second payment touches it meanwhile.
fn contradict(
    facts: &mut Facts,
    draft: &mut Draft,
    payment: &Payment,
    success: &Success<'_>,
) -> Result<Heard, Error> {
    let detail = format!(
        "expected {}, the provider took {} ({})",
        payment.amount, success.amount, success.transaction
    );
    draft.open_case(facts, CaseKind::AmountMismatch, payment.id.to_string(), detail);
    let Some(purchase) = facts.purchases.get(&payment.purchase).cloned() else {
        return Ok(Heard::Contradiction);
    };
    let Some(mut order) = purchase.order.clone() else {
        return Ok(Heard::Contradiction);
    };
    let row = order.status.next(OrderEvent::Freeze);
    if let Some(row) = row.filter(|_| Guard::WrongAmountFreezes.stands()) {
        draft.note(facts, purchase.id, row, success.source, Some(Arc::from(payment.id.to_string())));
        order.status = row.to;
        draft.move_order(facts, &purchase, order, None)?;
    }
    Ok(Heard::Contradiction)
}

fn take_money(
    facts: &mut Facts,
    draft: &mut Draft,
    purchase: &Purchase,
    success: &Success<'_>,
) -> Result<Heard, Error> {
    let mut order = purchase.order.clone().expect("the caller found the order");
    order.paid = order.paid.checked_add(success.amount.amount()).ok_or_else(|| {
        Error::new(
            Code::ConstraintViolated,
            format!("order {} was paid beyond counting", purchase.id.order()),
        )
    })?;
    let reference = Some(Arc::from(success.payment.to_string()));
    if let Some(row) = order.status.next(OrderEvent::Pay) {
        for line in &purchase.lines {
            draft.move_stock(facts, &line.key, row.effect, line.quantity);
        }
        draft.note(facts, purchase.id, row, success.source, reference);
        order.status = row.to;
        order.paid_at = Some(facts.now);
        draft.changes.events.push(Event::order_paid(purchase.id, purchase.user.clone(), facts.now));
        draft.move_order(facts, purchase, order, None)?;
        settle_others(facts, draft, purchase, success.payment);
        return Ok(Heard::Applied);
    }
    match order.status {
        OrderStatus::Cancelled => late_money(facts, draft, purchase, order, success),
        OrderStatus::ManualReview => {
            if Guard::MoneyOfAFrozenOrderIsACase.stands() {
                let detail = format!("{} was taken while a person holds the order", success.amount);
                draft.open_case(facts, CaseKind::PaymentWhileFrozen, success.payment.to_string(), detail);
            }
            draft.move_order(facts, purchase, order, None)?;
            Ok(Heard::Unwanted)
        }
        OrderStatus::Paid | OrderStatus::Refunding | OrderStatus::Refunded => {
            draft.move_order(facts, purchase, order, None)?;
            if Guard::SecondMoneyGoesBack.stands() {
                give_back(facts, draft, success, RefundCause::DoublePayment);
            }
            Ok(Heard::Unwanted)
        }
        OrderStatus::Created | OrderStatus::Paying | OrderStatus::CancelPending => {
            unreachable!("the table lets these be paid")
        }
    }
}

/// Money for a cancelled order (OT-07): the activity's rule decides.
fn late_money(
    facts: &mut Facts,
    draft: &mut Draft,
    purchase: &Purchase,
    order: crate::purchase::Order,
    success: &Success<'_>,
) -> Result<Heard, Error> {
    let activity = purchase.lines.first().and_then(|line| facts.activities.get(&line.key.activity));
    let rule = activity.map_or(LatePayment::Refund, |activity| activity.late_payment);
    if rule == LatePayment::Reinstate && can_lock_again(facts, purchase) {
        return reinstate(facts, draft, purchase, order, success);
    }
    draft.move_order(facts, purchase, order, None)?;
    let is_a_persons = rule == LatePayment::Manual;
    if is_a_persons && Guard::LateMoneyIsACase.stands() {
        let detail = format!("{} was taken for a cancelled order", success.amount);
        draft.open_case(facts, CaseKind::LatePayment, success.payment.to_string(), detail);
    }
    if !is_a_persons && Guard::LateMoneyGoesBack.stands() {
        give_back(facts, draft, success, RefundCause::LatePayment);
    }
    Ok(Heard::Unwanted)
}

/// Stock for every line, and the buyer still under every limit.
fn can_lock_again(facts: &Facts, purchase: &Purchase) -> bool {
    purchase.lines.iter().all(|line| {
        let (Some(sku), Some(activity)) =
            (facts.skus.get(&line.key), facts.activities.get(&line.key.activity))
        else {
            return false;
        };
        let held: u64 = facts
            .purchases_of(&line.key, &purchase.user)
            .filter(|one| one.id != purchase.id && one.holds_a_place(activity.cancelled_frees_limit))
            .map(|one| u64::from(one.units_of(&line.key)))
            .sum();
        let has_room = held + u64::from(line.quantity) <= u64::from(sku.per_user_limit);
        Guard::ReinstatingNeedsStock.holds(sku.stock.available >= i64::from(line.quantity))
            && Guard::ReinstatingKeepsTheLimit.holds(has_room)
    })
}

fn reinstate(
    facts: &mut Facts,
    draft: &mut Draft,
    purchase: &Purchase,
    mut order: crate::purchase::Order,
    success: &Success<'_>,
) -> Result<Heard, Error> {
    let row = order.status.next(OrderEvent::Reinstate).expect("a cancelled order may be reinstated");
    let mut after = purchase.clone();
    for line in &mut after.lines {
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
        if line.place < 0 {
            line.place = free_place(facts, &line.key, &purchase.user, line.quantity);
        }
    }
    draft.note(facts, purchase.id, row, success.source, Some(Arc::from(success.payment.to_string())));
    order.status = row.to;
    order.paid_at = Some(facts.now);
    order.cancelled_at = None;
    order.cancel_reason = None;
    if let Some(row) = purchase.reservation.and_then(|status| status.next(ReservationEvent::Reinstate)) {
        after.reservation = Some(row.to);
        draft.note(facts, purchase.id, row, success.source, None);
    }
    let event = Event::order_reinstated(purchase.id, purchase.user.clone(), after.lines.clone(), facts.now);
    draft.changes.events.push(event);
    let reservation = after.reservation.filter(|status| purchase.reservation != Some(*status));
    let places = after.lines.iter().map(|line| line.place).collect();
    draft.move_purchase(facts, purchase, Step::Order { order: order.clone(), reservation, places })?;
    after.order = Some(order);
    facts.remember(after);
    settle_others(facts, draft, purchase, success.payment);
    Ok(Heard::Applied)
}

/// One refund per unwanted payment: a success is news once, and its id follows from the payment's, so whoever finds it
/// makes the same one.
fn give_back(facts: &mut Facts, draft: &mut Draft, success: &Success<'_>, cause: RefundCause) {
    let payment = facts.payments[&success.payment].clone();
    let id = refund_of_unwanted(payment.id);
    let opening =
        super::refund::Opening { id, amount: success.amount, cause, reason: Arc::from(cause.name()) };
    super::refund::open(facts, draft, &payment, opening);
}

impl Draft {
    /// Notes an order's change without one of the reservation, and remembers it.
    pub(super) fn move_order(
        &mut self,
        facts: &mut Facts,
        purchase: &Purchase,
        order: crate::purchase::Order,
        reservation: Option<crate::machine::reservation::Reservation>,
    ) -> Result<(), Error> {
        let places = purchase.lines.iter().map(|line| line.place).collect();
        self.move_purchase(facts, purchase, Step::Order { order: order.clone(), reservation, places })?;
        let mut after = purchase.clone();
        after.order = Some(order);
        after.updated_at = facts.now;
        facts.remember(after);
        Ok(())
    }

    /// Notes a payment's present state; the last one of a set counts.
    pub(super) fn put_payment(&mut self, payment: &Payment) {
        let fresh = self.changes.new_payments.iter_mut().chain(&mut self.changes.payments);
        match fresh.into_iter().find(|one| one.id == payment.id) {
            Some(noted) => *noted = payment.clone(),
            None => self.changes.payments.push(payment.clone()),
        }
    }

    /// Opens a case; one per kind and subject.
    pub(super) fn open_case(&mut self, facts: &Facts, kind: CaseKind, subject: String, detail: String) {
        let (subject, detail) = (Arc::from(subject), Arc::from(detail));
        self.changes.cases.push(Case { kind, subject, detail, at: facts.now });
    }
}

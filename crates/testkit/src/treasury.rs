//! The rules of money: what must hold of orders, attempts and refunds beside the bank's own books.
//!
//! **Purpose.** A second opinion that knows no decision: sums are made again from attempts and refunds, and the bank is the
//! judge of what was really taken. The simulator asks after every commit, the exploration in every state.
//!
//! **Invariants checked.** An order's money is the sum of its attempts and refunds, and no more goes back than came; what is
//! called taken or given back was; an order is cancelled only when no attempt can bring money but by force; at most one
//! attempt is open; unwanted money goes back once; at rest order and bank agree on every order.

use std::collections::BTreeMap;
use std::sync::Arc;

use onceward_domain::catalogue::LatePayment;
use onceward_domain::id::{PaymentId, PurchaseId};
use onceward_domain::machine::Machine;
use onceward_domain::machine::order::{Order as OrderStatus, OrderEvent};
use onceward_domain::machine::payment::Payment as PaymentStatus;
use onceward_domain::machine::refund::Refund as RefundStatus;
use onceward_domain::payment::{CaseKind, Payment, Refund, RefundCause, Word};
use onceward_domain::purchase::{Order, Purchase};

use crate::bank::{Bank, Standing};
use crate::model::rows::Rows;

/// What does not hold now, whoever is under way.
pub(crate) fn broken(rows: &Rows, bank: &Bank) -> Vec<String> {
    let mut found = Vec::new();
    for (id, purse) in purses(rows) {
        let Some(order) = order_of(rows, id) else {
            found.push(format!("there is money for {id:?}, which is no order"));
            continue;
        };
        let cancels = releases(rows, id, "cancelled") - releases(rows, id, "reinstated");
        let broken = rules_of(bank, order, &purse, cancels).into_iter().filter(|(_, holds)| !holds);
        found.extend(broken.map(|(rule, _)| format!("broken: {rule}: {}", describe(order, &purse))));
    }
    found
}

/// What does not hold though nothing is under way any more.
pub(crate) fn broken_at_rest(rows: &Rows, bank: &Bank) -> Vec<String> {
    let mut found = Vec::new();
    for (id, purse) in &purses(rows) {
        let purchase = rows.purchases.get(id).expect("looked at before");
        let order = purchase.order.as_ref().expect("looked at before");
        let rules = rules_at_rest(bank, rows, purchase, order, purse);
        let broken = rules.into_iter().filter(|(_, holds)| !holds);
        found.extend(broken.map(|(rule, _)| format!("at rest: {rule}: {}", describe(order, purse))));
    }
    for (id, account) in bank.accounts() {
        if account.standing == Standing::Succeeded && !rows.payments.contains(&id) {
            found.push(format!("the bank took money for payment {id}, which nobody started"));
        }
    }
    found
}

/// Attempts and refunds of one order.
#[derive(Default)]
struct Purse<'a> {
    attempts: Vec<&'a Payment>,
    refunds: Vec<&'a Refund>,
}

impl Purse<'_> {
    fn paid(&self) -> i64 {
        self.took().map(|one| one.amount.amount()).sum()
    }

    fn took(&self) -> impl Iterator<Item = &&Payment> {
        self.attempts.iter().filter(|one| one.status == PaymentStatus::Succeeded)
    }

    fn sum(&self, counts: impl Fn(&Refund) -> bool) -> i64 {
        self.refunds.iter().filter(|one| counts(one)).map(|one| one.amount.amount()).sum()
    }

    fn unwanted(&self, payment: PaymentId) -> usize {
        let owed = |one: &&&Refund| one.payment == payment && one.cause != RefundCause::Requested;
        self.refunds.iter().filter(owed).count()
    }
}

fn purses(rows: &Rows) -> BTreeMap<PurchaseId, Purse<'_>> {
    let mut purses: BTreeMap<PurchaseId, Purse<'_>> = BTreeMap::new();
    for (_, payment) in rows.payments.iter() {
        purses.entry(payment.purchase).or_default().attempts.push(payment);
    }
    for (_, refund) in rows.refunds.iter() {
        purses.entry(refund.purchase).or_default().refunds.push(refund);
    }
    purses
}

pub(crate) fn order_of(rows: &Rows, purchase: PurchaseId) -> Option<&Order> {
    rows.purchases.get(&purchase).and_then(|one| one.order.as_ref())
}

fn has_case(rows: &Rows, kind: CaseKind, subject: &str) -> bool {
    rows.case_keys.contains(&(kind.name(), Arc::from(subject)))
}

/// How often units of an order moved in the ledger for this cause; each of its lines as often.
fn releases(rows: &Rows, id: PurchaseId, cause: &str) -> usize {
    let entries = rows.entries.iter().filter(|(_, one)| one.purchase == Some(id) && one.cause == cause);
    let lines = rows.purchases.get(&id).map_or(1, |purchase| purchase.lines.len());
    entries.count() / lines.max(1)
}

fn rules_of(bank: &Bank, order: &Order, purse: &Purse<'_>, cancels: usize) -> Vec<(&'static str, bool)> {
    let is_paid = matches!(order.status, OrderStatus::Paid | OrderStatus::Refunding | OrderStatus::Refunded);
    let is_cancelled = order.status == OrderStatus::Cancelled;
    let closed = |one: &&Payment| {
        bank.account(one.id).is_some_and(|account| match account.standing {
            Standing::Open => false,
            Standing::Closed | Standing::Failed => true,
            Standing::Succeeded => account.is_forced,
        })
    };
    let refunded = |status: RefundStatus| status == RefundStatus::Succeeded;
    let right = purse.took().any(|one| one.amount == order.total);
    let within = |one: &&Payment| {
        let counted: i64 = purse
            .refunds
            .iter()
            .filter(|back| back.payment == one.id && back.counts())
            .map(|back| back.amount.amount())
            .sum();
        counted <= one.amount.amount()
    };
    vec![
        ("paid is the sum of its succeeded attempts", order.paid == purse.paid()),
        (
            "refunded is the sum of its succeeded refunds",
            order.refunded == purse.sum(|one| refunded(one.status)),
        ),
        ("no more may go back than came (C51)", purse.sum(Refund::counts) <= order.paid),
        ("no attempt gives more back than it brought", purse.took().all(within)),
        ("only money pays an order", !is_paid || right),
        ("an unpaid order took nothing", order.status.next(OrderEvent::Pay).is_none() || order.paid == 0),
        (
            "one attempt is open at a time (C47)",
            purse.attempts.iter().filter(|one| one.is_open()).count() <= 1,
        ),
        ("unwanted money goes back once", purse.attempts.iter().all(|one| purse.unwanted(one.id) <= 1)),
        ("stock of a cancelled order came back once (OT-06)", cancels == usize::from(is_cancelled)),
        (
            "an order is cancelled only when every attempt is proved unpaid (OT-03)",
            !is_cancelled || purse.attempts.iter().all(closed),
        ),
    ]
}

fn rules_at_rest(
    bank: &Bank,
    rows: &Rows,
    purchase: &Purchase,
    order: &Order,
    purse: &Purse<'_>,
) -> Vec<(&'static str, bool)> {
    let is_frozen = order.status == OrderStatus::ManualReview;
    let is_paid = matches!(order.status, OrderStatus::Paid | OrderStatus::Refunding | OrderStatus::Refunded);
    let waits = matches!(order.status, OrderStatus::Created | OrderStatus::Paying);
    let mismatch = |one: &Payment| has_case(rows, CaseKind::AmountMismatch, &one.id.to_string());
    let late = |one: &Payment| has_case(rows, CaseKind::LatePayment, &one.id.to_string());
    let heard = |one: &&Payment| {
        let account = bank.account(one.id);
        let took = account.is_some_and(|account| account.standing == Standing::Succeeded);
        took == (one.status == PaymentStatus::Succeeded) || mismatch(one) || is_frozen || waits
    };
    let agrees = |one: &&Refund| match (one.status, bank.refund_word(one.id)) {
        (RefundStatus::Succeeded, Some(Word::Refunded { .. }))
        | (RefundStatus::Failed, Some(Word::RefundFailed { .. })) => true,
        (
            RefundStatus::Failed | RefundStatus::Succeeded | RefundStatus::Pending | RefundStatus::Unknown,
            _,
        ) => false,
    };
    let kept = purse.took().filter(|one| purse.unwanted(one.id) == 0).count();
    let first = purchase.lines.first().and_then(|line| rows.activities.get(&line.key.activity));
    let is_manual = first.is_some_and(|activity| activity.late_payment == LatePayment::Manual);
    let is_open = purse.attempts.iter().any(|one| one.is_open());
    vec![
        (
            "nothing is under way",
            !matches!(order.status, OrderStatus::Refunding | OrderStatus::CancelPending),
        ),
        ("the bank holds no money that the store does not know of (OT-07)", purse.attempts.iter().all(heard)),
        ("every refund has the bank's last word", purse.refunds.iter().all(agrees)),
        ("an order that took money keeps it once", !is_paid || kept == 1),
        (
            "money of a cancelled order goes back, or is a case (OT-07)",
            order.status != OrderStatus::Cancelled
                || purse.took().all(|one| purse.unwanted(one.id) == 1 || (is_manual && late(one))),
        ),
        ("a cancelled order has no open attempt", order.status != OrderStatus::Cancelled || !is_open),
        ("a frozen order has its case", !is_frozen || purse.attempts.iter().any(|one| mismatch(one))),
        (
            "an order is REFUNDED exactly when all its money is back",
            !is_paid || (order.status == OrderStatus::Refunded) == (order.refunded == order.paid),
        ),
    ]
}

fn describe(order: &Order, purse: &Purse<'_>) -> String {
    let attempts: Vec<_> = purse.attempts.iter().map(|one| (one.id.to_string(), one.status)).collect();
    let refunds: Vec<_> =
        purse.refunds.iter().map(|one| (one.amount.amount(), one.status, one.cause)).collect();
    format!(
        "order {:?} of {}, paid {}, refunded {}: {attempts:?}, {refunds:?}",
        order.status, order.total, order.paid, order.refunded
    )
}

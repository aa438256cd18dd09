//! The treasurer: compares the store's money with itself after every commit, and with the bank at the end.
//!
//! **Purpose.** A second opinion, like the auditor's: sums are made again from attempts and refunds, and the bank's own
//! books are the judge of what was really taken.
//!
//! **Invariants checked.** An order's money is the sum of its attempts and refunds, and no more goes back than came; what is
//! called taken or given back was; an order is cancelled only when no attempt can bring money but by force; at most one
//! attempt is open; unwanted money goes back once; at rest order and bank agree on every order.

use std::collections::BTreeMap;
use std::sync::Arc;

use onceward::wire;
use onceward_domain::catalogue::LatePayment;
use onceward_domain::id::{PaymentId, PurchaseId, RefundId};
use onceward_domain::machine::Machine;
use onceward_domain::machine::order::{Order as OrderStatus, OrderEvent};
use onceward_domain::machine::payment::Payment as PaymentStatus;
use onceward_domain::machine::refund::Refund as RefundStatus;
use onceward_domain::payment::{CaseKind, Payment, Refund, RefundCause, Word};
use onceward_domain::purchase::{Order, Purchase};

use super::audit::reaches;
use super::world::World;
use crate::bank::Standing;
use crate::model::rows::Rows;

/// What the treasurer remembers of earlier looks.
#[derive(Default)]
pub(crate) struct Treasurer {
    payments: BTreeMap<PaymentId, PaymentStatus>,
    refunds: BTreeMap<RefundId, RefundStatus>,
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

fn order_of(rows: &Rows, purchase: PurchaseId) -> Option<&Order> {
    rows.purchases.get(&purchase).and_then(|one| one.order.as_ref())
}

fn has_case(rows: &Rows, kind: CaseKind, subject: &str) -> bool {
    rows.case_keys.contains(&(kind.name(), Arc::from(subject)))
}

/// Whether an order took money at some time, or is frozen; such an order cannot be cancelled.
pub(crate) fn was_taken(world: &World, purchase: PurchaseId) -> bool {
    let rows = world.store.rows();
    order_of(&rows, purchase).is_some_and(|order| order.paid > 0 || order.status == OrderStatus::ManualReview)
}

/// Whether a waiting callback is about something that was never started here; it is kept for good.
pub(crate) fn is_stray(rows: &Rows, body: &[u8]) -> bool {
    match wire::decode_word(body) {
        Ok(Word::Processing { payment } | Word::Succeeded { payment, .. }) => {
            !rows.payments.contains(&payment)
        }
        Ok(_) | Err(_) => false,
    }
}

/// Payments of which the bank holds money that nothing here will ask about again: their order was paid by another
/// attempt, or is held by a person.
pub(crate) fn beyond_asking(world: &World) -> Vec<PaymentId> {
    let rows = world.store.rows();
    let is_unheard = |payment: &&Payment| {
        let took = world.bank.account(payment.id).is_some_and(|one| one.standing == Standing::Succeeded);
        took && payment.status != PaymentStatus::Succeeded
    };
    let is_over = |payment: &&Payment| {
        order_of(&rows, payment.purchase).is_some_and(|order| {
            order.status.next(OrderEvent::Pay).is_none() && order.status != OrderStatus::Cancelled
        })
    };
    rows.payments.iter().map(|(_, one)| one).filter(is_unheard).filter(is_over).map(|one| one.id).collect()
}

impl Treasurer {
    /// Looks at every order's money after a commit.
    pub(crate) fn look(&mut self, world: &World, rows: &Rows) {
        for (id, purse) in purses(rows) {
            let Some(order) = order_of(rows, id) else {
                world.violated(format!("there is money for {id:?}, which is no order"));
                continue;
            };
            let cancels = releases(rows, id, "cancelled") - releases(rows, id, "reinstated");
            for (rule, holds) in rules_of(world, order, &purse, cancels) {
                if !holds {
                    world.violated(format!("broken: {rule}: {}", describe(order, &purse)));
                }
            }
        }
        self.follow_payments(world, rows);
        self.follow_refunds(world, rows);
    }

    fn follow_payments(&mut self, world: &World, rows: &Rows) {
        for (id, payment) in rows.payments.iter() {
            let before = self.payments.insert(*id, payment.status).unwrap_or(PaymentStatus::Pending);
            if before == payment.status {
                continue;
            }
            let account = world.bank.account(*id);
            let standing = account.as_ref().map(|one| one.standing);
            let is_true = match payment.status {
                PaymentStatus::Succeeded => {
                    standing == Some(Standing::Succeeded)
                        && account.is_some_and(|one| one.amount == payment.amount)
                }
                // Money may have been forced since the bank said so.
                PaymentStatus::Failed | PaymentStatus::Closed => {
                    standing.is_some_and(|one| one != Standing::Open)
                }
                PaymentStatus::Pending | PaymentStatus::Unknown => true,
            };
            if !is_true || !reaches(before, payment.status) {
                let status = payment.status;
                world.violated(format!(
                    "payment {id} went from {before:?} to {status:?}, the bank says {standing:?}"
                ));
            }
            let order = order_of(rows, payment.purchase).map(|order| order.status);
            if payment.status == PaymentStatus::Succeeded
                && world.unsent(*id).is_some_and(|word| matches!(word, Word::Succeeded { .. }))
            {
                world.sometimes(match order {
                    Some(OrderStatus::Cancelled) => "second_confirmation_found_money",
                    _ => "unsent_money_found",
                });
            }
        }
    }

    fn follow_refunds(&mut self, world: &World, rows: &Rows) {
        for (id, refund) in rows.refunds.iter() {
            let before = self.refunds.insert(*id, refund.status).unwrap_or(RefundStatus::Pending);
            if before == refund.status {
                continue;
            }
            let word = world.bank.refund_word(*id);
            let is_true = match refund.status {
                RefundStatus::Succeeded => word.is_some(),
                RefundStatus::Failed => matches!(word, Some(Word::RefundFailed { .. })),
                RefundStatus::Pending | RefundStatus::Unknown => true,
            };
            if !is_true || !reaches(before, refund.status) {
                let status = refund.status;
                world.violated(format!(
                    "refund {id} went from {before:?} to {status:?}, the bank says {word:?}"
                ));
            }
            match (refund.status, refund.cause) {
                (RefundStatus::Succeeded, RefundCause::Requested) => world.sometimes("refunded"),
                (RefundStatus::Succeeded, RefundCause::LatePayment) => {
                    world.sometimes("late_payment_refunded")
                }
                (RefundStatus::Succeeded, RefundCause::DoublePayment) => {
                    world.sometimes("double_payment_refunded")
                }
                (RefundStatus::Failed, _) if before == RefundStatus::Succeeded => {
                    world.sometimes("refund_returned")
                }
                (RefundStatus::Failed, _) => world.sometimes("refund_declined"),
                (RefundStatus::Pending | RefundStatus::Unknown, _) => {}
            }
        }
    }

    /// Everything is quiet: order and bank agree on every order.
    pub(crate) fn look_at_the_end(&self, world: &World) {
        let rows = world.store.rows();
        let known = purses(&rows);
        for (id, purse) in &known {
            let purchase = rows.purchases.get(id).expect("looked at before");
            let order = purchase.order.as_ref().expect("looked at before");
            for (rule, holds) in rules_at_rest(world, &rows, purchase, order, purse) {
                if !holds {
                    world.violated(format!("at rest: {rule}: {}", describe(order, purse)));
                }
            }
        }
        for (id, account) in world.bank.accounts() {
            if account.standing == Standing::Succeeded && !rows.payments.contains(&id) {
                world.violated(format!("the bank took money for payment {id}, which nobody started"));
            }
        }
        for (_, case) in rows.cases.iter() {
            world.sometimes(match case.kind {
                CaseKind::AmountMismatch => "amount_mismatch",
                CaseKind::LatePayment => "late_payment_for_a_person",
                CaseKind::RefundFailed => "unwanted_refund_failed",
                CaseKind::PaymentWhileFrozen => "payment_while_frozen",
                CaseKind::TransactionReused => "transaction_reused",
                CaseKind::SecondTransaction => "second_transaction",
                CaseKind::EventReused => "event_reused",
            });
        }
    }
}

/// How often units of an order moved in the ledger for this cause; each of its lines as often.
fn releases(rows: &Rows, id: PurchaseId, cause: &str) -> usize {
    let entries = rows.entries.iter().filter(|(_, one)| one.purchase == Some(id) && one.cause == cause);
    let lines = rows.purchases.get(&id).map_or(1, |purchase| purchase.lines.len());
    entries.count() / lines.max(1)
}

fn rules_of(world: &World, order: &Order, purse: &Purse<'_>, cancels: usize) -> Vec<(&'static str, bool)> {
    let is_paid = matches!(order.status, OrderStatus::Paid | OrderStatus::Refunding | OrderStatus::Refunded);
    let is_cancelled = order.status == OrderStatus::Cancelled;
    let closed = |one: &&Payment| {
        world.bank.account(one.id).is_some_and(|account| match account.standing {
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
    world: &World,
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
        let account = world.bank.account(one.id);
        let took = account.is_some_and(|account| account.standing == Standing::Succeeded);
        took == (one.status == PaymentStatus::Succeeded) || mismatch(one) || is_frozen || waits
    };
    let agrees = |one: &&Refund| match (one.status, world.bank.refund_word(one.id)) {
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

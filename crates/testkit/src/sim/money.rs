//! The treasurer: compares the store's money with itself after every commit, and with the bank at the end.
//!
//! **Purpose.** A second opinion, like the auditor's: [`crate::treasury`] says what must hold in a state; here is what must hold
//! from one state to the next, and what came about.
//!
//! **Invariants checked.** Attempts and refunds move only as their tables allow, and only where the bank's books say the same.

use std::collections::BTreeMap;

use onceward::wire;
use onceward_domain::id::{PaymentId, PurchaseId, RefundId};
use onceward_domain::machine::Machine;
use onceward_domain::machine::order::{Order as OrderStatus, OrderEvent};
use onceward_domain::machine::payment::Payment as PaymentStatus;
use onceward_domain::machine::refund::Refund as RefundStatus;
use onceward_domain::payment::{CaseKind, Payment, RefundCause, Word};

use super::audit::reaches;
use super::world::World;
use crate::bank::Standing;
use crate::model::rows::Rows;
use crate::treasury::{self, order_of};

/// What the treasurer remembers of earlier looks.
#[derive(Default)]
pub(crate) struct Treasurer {
    payments: BTreeMap<PaymentId, PaymentStatus>,
    refunds: BTreeMap<RefundId, RefundStatus>,
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
        for sentence in treasury::broken(rows, &world.bank) {
            world.violated(sentence);
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
        for sentence in treasury::broken_at_rest(&rows, &world.bank) {
            world.violated(sentence);
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
                CaseKind::StatementUnknown => "statement_unknown",
            });
        }
    }
}

//! Payment attempts, refunds, callbacks and cases in the model.
//!
//! Invariants: an attempt's provider transaction is unique with its provider; changed rows name the revision they were
//! decided on; repeated callbacks and cases are ignored.

use onceward_domain::changes::ChangeSet;
use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::machine::payment::Payment as PaymentStatus;
use onceward_domain::machine::refund::Refund as RefundStatus;
use onceward_domain::payment::{Case, Payment, Refund};
use onceward_domain::ports::store::PageRequest;
use onceward_domain::purchase::Purchase;

use super::Defect;
use super::apply::{lost, violated};
use super::rows::Rows;

impl Rows {
    pub(super) fn apply_money(&mut self, changes: &mut ChangeSet, defect: Defect) -> Result<(), Error> {
        for payment in std::mem::take(&mut changes.new_payments) {
            if self.payments.contains(&payment.id) || !self.purchases.contains(&payment.purchase) {
                return Err(violated(format!("payment {} exists, or has no order", payment.id)));
            }
            self.put_payment(payment)?;
        }
        for mut payment in std::mem::take(&mut changes.payments) {
            let before = self.payments.get(&payment.id);
            let before =
                before.filter(|row| row.revision == payment.revision || defect == Defect::IgnoreRevisions);
            let before = before.ok_or_else(|| lost(format!("moving payment {}", payment.id)))?;
            payment.revision = before.revision + 1;
            self.put_payment(payment)?;
        }
        for refund in std::mem::take(&mut changes.new_refunds) {
            if self.refunds.contains(&refund.id) || !self.payments.contains(&refund.payment) {
                return Err(violated(format!("refund {} exists, or has no payment", refund.id)));
            }
            self.put_refund(refund);
        }
        for mut refund in std::mem::take(&mut changes.refunds) {
            let before = self.refunds.get(&refund.id);
            let before =
                before.filter(|row| row.revision == refund.revision || defect == Defect::IgnoreRevisions);
            let before = before.ok_or_else(|| lost(format!("moving refund {}", refund.id)))?;
            refund.revision = before.revision + 1;
            self.put_refund(refund);
        }
        for callback in std::mem::take(&mut changes.callbacks) {
            let key = (callback.provider.clone(), callback.event.clone());
            if !self.callbacks.contains(&key) {
                self.callbacks.put(key, callback);
            }
        }
        for case in std::mem::take(&mut changes.cases) {
            let key = (case.kind.name(), case.subject.clone());
            if !self.case_keys.contains(&key) {
                let number = self.number();
                self.case_keys.put(key, number);
                self.cases.put(number, case);
            }
        }
        Ok(())
    }

    fn put_payment(&mut self, payment: Payment) -> Result<(), Error> {
        if let Some(transaction) = &payment.transaction {
            let key = (payment.provider.clone(), transaction.clone());
            if self.transactions_taken.get(&key).is_some_and(|owner| *owner != payment.id) {
                return Err(violated(format!("transaction {transaction} belongs to another payment")));
            }
            self.transactions_taken.put(key, payment.id);
        }
        self.payments.put(payment.id, payment);
        Ok(())
    }

    fn put_refund(&mut self, refund: Refund) {
        self.refunds.put(refund.id, refund);
    }

    pub(super) fn load_money(&self, need: &Need, facts: &mut Facts) {
        for id in &need.payments {
            facts.payments.extend(self.payments.get(id).map(|row| (*id, row.clone())));
        }
        for id in &need.refunds {
            facts.refunds.extend(self.refunds.get(id).map(|row| (*id, row.clone())));
        }
        for purchase in &need.attempts {
            facts.payments.extend(self.payments_of(purchase).map(|row| (row.id, row.clone())));
            facts.refunds.extend(self.refunds_of(purchase).map(|row| (row.id, row.clone())));
        }
        for key in &need.callbacks {
            facts.callbacks.extend(self.callbacks.get(key).map(|row| (key.clone(), row.clone())));
        }
    }

    fn payments_of(&self, purchase: &onceward_domain::id::PurchaseId) -> impl Iterator<Item = &Payment> {
        let purchase = *purchase;
        self.payments.iter().map(|(_, row)| row).filter(move |row| row.purchase == purchase)
    }

    fn refunds_of(&self, purchase: &onceward_domain::id::PurchaseId) -> impl Iterator<Item = &Refund> {
        let purchase = *purchase;
        self.refunds.iter().map(|(_, row)| row).filter(move |row| row.purchase == purchase)
    }

    /// Whether the order's money is not the sum of its attempts and refunds.
    pub(super) fn contradicts_money(&self, purchase: &Purchase) -> bool {
        let Some(order) = &purchase.order else { return false };
        let paid: i64 = self
            .payments_of(&purchase.id)
            .filter(|row| row.status == PaymentStatus::Succeeded)
            .map(|row| row.amount.amount())
            .sum();
        let sum = |counts: &dyn Fn(&Refund) -> bool| -> i64 {
            self.refunds_of(&purchase.id).filter(|row| counts(row)).map(|row| row.amount.amount()).sum()
        };
        let refunded = sum(&|row| row.status == RefundStatus::Succeeded);
        order.paid != paid || order.refunded != refunded || sum(&Refund::counts) > paid
    }

    /// Cases, newest first.
    pub(super) fn list_cases(&self, page: PageRequest) -> Vec<(i64, Case)> {
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
        let rows = self.cases.range(..page.before.unwrap_or(i64::MAX)).rev();
        rows.take(limit).map(|(number, case)| (*number, case.clone())).collect()
    }
}

//! Applies a change set: guards first, then rows; the caller takes everything back on an error.
//!
//! Invariants: a guard that does not hit exactly one row is `guard_lost`; a broken constraint is
//! `needs_operator`. No rule of the business is here: what a store must refuse, and nothing else.

use onceward_domain::catalogue::{Bucket, Sku};
use onceward_domain::changes::{BucketMove, ChangeSet, CompensationTask, StockEntry, StockMove};
use onceward_domain::error::{Code, Error};
use onceward_domain::time::Timestamp;

use super::Defect;
use super::rows::Rows;

/// A guard hit no row.
pub(super) fn lost(what: impl Into<String>) -> Error {
    Error::new(Code::GuardLost, what)
}

/// A constraint of the schema was broken.
pub(super) fn violated(what: impl Into<String>) -> Error {
    Error::new(Code::ConstraintViolated, what)
}

impl Rows {
    /// Writes the whole set or says why not; the caller rolls back then.
    pub(super) fn apply(
        &mut self,
        mut changes: ChangeSet,
        now: Timestamp,
        defect: Defect,
    ) -> Result<(), Error> {
        if !changes.events.is_empty() {
            return Err(violated("events reached the store that should be in an outbox entry"));
        }
        self.forget(std::mem::take(&mut changes.forgotten))?;
        for activity in std::mem::take(&mut changes.activities) {
            self.activities.put(activity.id.clone(), activity);
        }
        for sku in std::mem::take(&mut changes.new_skus) {
            self.add_sku(sku)?;
        }
        for sku in std::mem::take(&mut changes.changed_skus) {
            self.change_terms(sku)?;
        }
        for change in std::mem::take(&mut changes.stock) {
            self.move_stock(change, defect)?;
        }
        for bucket in std::mem::take(&mut changes.new_buckets) {
            self.add_bucket(bucket)?;
        }
        for change in std::mem::take(&mut changes.buckets) {
            self.move_bucket(change, defect)?;
        }
        for purchase in std::mem::take(&mut changes.new_purchases) {
            self.add_purchase(purchase)?;
        }
        self.move_purchases(std::mem::take(&mut changes.purchases), defect)?;
        self.apply_money(&mut changes, defect)?;
        self.apply_groups(&mut changes, defect)?;
        self.apply_credit(&mut changes, defect)?;
        for task in changes.new_compensations {
            self.add_compensation(task)?;
        }
        for task in changes.compensations {
            self.move_compensation(task, defect)?;
        }
        for entry in changes.stock_entries {
            self.add_entry(entry)?;
        }
        for transition in changes.transitions {
            let key = (transition.purchase, self.number());
            self.transitions.put(key, transition);
        }
        for message in changes.quarantined {
            let key = (message.message_id.clone(), message.payload_hash);
            if !self.quarantined.contains(&key) {
                self.quarantined.put(key, message);
            }
        }
        for answer in changes.answers {
            if self.answers.contains(&answer.key) {
                return Err(violated(format!("the first answer to {} is kept already", answer.key)));
            }
            self.answers.put(answer.key.clone(), answer);
        }
        self.apply_notices(changes.new_notices, changes.notices, defect)?;
        for change in changes.due {
            self.change_due(change, now, defect)?;
        }
        Ok(())
    }

    fn add_sku(&mut self, sku: Sku) -> Result<(), Error> {
        if !self.activities.contains(&sku.key.activity) {
            return Err(violated(format!("{} has no activity", sku.key)));
        }
        if self.skus.contains(&sku.key) {
            return Err(violated(format!("{} exists", sku.key)));
        }
        if !sku.stock.holds() {
            return Err(violated(format!("stock of {} does not add up: {:?}", sku.key, sku.stock)));
        }
        self.skus.put(sku.key.clone(), sku);
        Ok(())
    }

    fn change_terms(&mut self, changed: Sku) -> Result<(), Error> {
        let before = self.skus.get(&changed.key).filter(|row| row.revision == changed.revision);
        let before = before.ok_or_else(|| lost(format!("changing the terms of {}", changed.key)))?;
        let after = Sku {
            price: changed.price,
            per_user_limit: changed.per_user_limit,
            limit_since: changed.limit_since,
            buckets: changed.buckets,
            revision: before.revision + 1,
            ..before.clone()
        };
        self.skus.put(changed.key, after);
        Ok(())
    }

    fn move_stock(&mut self, change: StockMove, defect: Defect) -> Result<(), Error> {
        let before = self.skus.get(&change.key);
        let before =
            before.filter(|row| row.revision == change.revision || defect == Defect::IgnoreRevisions);
        let before = before.ok_or_else(|| lost(format!("moving stock of {}", change.key)))?;
        if !change.stock.holds() {
            return Err(violated(format!("stock of {} does not add up: {:?}", change.key, change.stock)));
        }
        let after = Sku {
            stock: change.stock,
            adjustments: change.adjustments,
            revision: before.revision + 1,
            ..before.clone()
        };
        self.skus.put(change.key, after);
        Ok(())
    }

    fn add_bucket(&mut self, bucket: Bucket) -> Result<(), Error> {
        if self.buckets.contains(&bucket.key) {
            return Ok(());
        }
        if !bucket.holds() {
            return Err(violated(format!("the bucket of {} does not add up", bucket.key)));
        }
        self.buckets.put(bucket.key.clone(), bucket);
        Ok(())
    }

    fn move_bucket(&mut self, change: BucketMove, defect: Defect) -> Result<(), Error> {
        let mut after = change.bucket;
        let before = self.buckets.get(&after.key);
        let before = before.filter(|row| row.revision == after.revision || defect == Defect::IgnoreRevisions);
        let before = before.ok_or_else(|| lost(format!("moving the bucket of {}", after.key)))?;
        if !after.holds() {
            return Err(violated(format!("the bucket of {} does not add up: {after:?}", after.key)));
        }
        after.revision = before.revision + 1;
        self.buckets.put(after.key.clone(), after);
        Ok(())
    }

    fn add_compensation(&mut self, task: CompensationTask) -> Result<(), Error> {
        if self.compensations.contains(&task.purchase) {
            return Err(violated(format!("the task of {:?} exists", task.purchase)));
        }
        if !self.purchases.contains(&task.purchase) {
            return Err(violated(format!("the task of {:?} has no purchase", task.purchase)));
        }
        self.compensations.put(task.purchase, task);
        Ok(())
    }

    fn move_compensation(&mut self, mut task: CompensationTask, defect: Defect) -> Result<(), Error> {
        let before = self.compensations.get(&task.purchase);
        let before = before.filter(|row| row.revision == task.revision || defect == Defect::IgnoreRevisions);
        let before = before.ok_or_else(|| lost(format!("moving the task of {:?}", task.purchase)))?;
        task.revision = before.revision + 1;
        task.created_at = before.created_at;
        self.compensations.put(task.purchase, task);
        Ok(())
    }

    fn add_entry(&mut self, entry: StockEntry) -> Result<(), Error> {
        let key = (entry.purchase, entry.adjustment, entry.key.clone(), entry.cause);
        if self.entry_keys.contains(&key) {
            return Err(violated(format!("{} of {} is in the ledger already", entry.cause, entry.key)));
        }
        let number = self.number();
        self.entry_keys.put(key, number);
        self.entries.put(number, entry);
        Ok(())
    }
}

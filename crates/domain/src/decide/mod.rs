//! Decisions: pure functions over batches. All rules of the engine are here, once.
//!
//! Each takes the loaded [`Facts`] and commands, writes what it decides back into the facts (so that the next
//! command of the batch sees it), and returns a [`ChangeSet`] with one outcome per command, in order — the same
//! outcomes as if the commands had come one by one. Invariants: no I/O, no clock (`facts.now` is the store's), no
//! randomness; idempotency is checked before anything else. Read next: [`create_order`].

pub mod adopt;
pub mod behind;
pub mod cancel;
pub mod catalogue;
pub mod compensate;
pub mod create_order;
pub mod credit;
pub mod deadline;
pub mod direct_order;
pub mod forget;
pub mod group;
pub mod job;
pub mod job_queue;
pub mod notify;
pub mod pay;
pub mod project;
pub mod queue;
pub mod refund;
pub mod relay;
pub mod reserve;
pub mod settle;
pub mod statement;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::changes::{BucketMove, ChangeSet, PurchaseMove, Step, StockMove, Transition};
use crate::error::{Code, Error};
use crate::facts::Facts;
use crate::id::{AccountId, JobId, PurchaseId, SkuKey, UserId};
use crate::machine::admission::CounterEffect;
use crate::machine::order::StockEffect;
use crate::machine::{Machine, Row};
use crate::purchase::Purchase;

/// The actor of everything that nobody asked for by hand.
pub const ENGINE: &str = "engine";

/// A decision in the making.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) changes: ChangeSet,
    stock: BTreeSet<SkuKey>,
    buckets: BTreeSet<SkuKey>,
    moved: HashMap<PurchaseId, usize>,
    accounts: BTreeSet<AccountId>,
    new_jobs: BTreeSet<JobId>,
    jobs: BTreeSet<JobId>,
}

impl Draft {
    /// Moves `quantity` units of a SKU that was loaded.
    pub(crate) fn move_stock(&mut self, facts: &mut Facts, key: &SkuKey, effect: StockEffect, quantity: u32) {
        let sku = facts.skus.get_mut(key).expect("the caller loaded the SKU");
        sku.stock = sku.stock.moved(effect, quantity);
        assert!(sku.stock.holds(), "a decision broke the stock of {key}: {:?}", sku.stock);
        self.stock.insert(key.clone());
    }

    /// Marks a SKU whose figures the caller has changed itself.
    pub(crate) fn touch_stock(&mut self, key: &SkuKey) {
        self.stock.insert(key.clone());
    }

    /// Moves `quantity` units of a bucket that was loaded.
    pub(crate) fn move_bucket(
        &mut self,
        facts: &mut Facts,
        key: &SkuKey,
        effect: CounterEffect,
        quantity: u32,
    ) {
        let bucket = facts.buckets.get_mut(key).expect("the caller loaded the bucket");
        bucket.shift(effect, quantity);
        assert!(bucket.holds(), "a decision broke the counters of {key}: {bucket:?}");
        self.buckets.insert(key.clone());
    }

    /// Marks a bucket whose counters the caller has changed itself.
    pub(crate) fn touch_bucket(&mut self, key: &SkuKey) {
        self.buckets.insert(key.clone());
    }

    /// Notes a purchase's change, guarded by the revision that was loaded.
    ///
    /// # Errors
    /// A purchase may change once in a set; only two projections, or two moves of its order, are merged.
    pub(crate) fn move_purchase(
        &mut self,
        facts: &Facts,
        purchase: &Purchase,
        step: Step,
    ) -> Result<(), Error> {
        if let Some(position) = self.moved.get(&purchase.id) {
            return merge(&mut self.changes.purchases[*position], step);
        }
        self.moved.insert(purchase.id, self.changes.purchases.len());
        self.changes.purchases.push(PurchaseMove {
            id: purchase.id,
            handle: purchase.handle,
            revision: purchase.revision,
            at: facts.now,
            step,
        });
        Ok(())
    }

    /// Notes a line of history for a row of a machine's table.
    pub(crate) fn note<M: Machine>(
        &mut self,
        facts: &Facts,
        purchase: PurchaseId,
        row: &Row<M, M::Event, M::Effect>,
        actor: &Arc<str>,
        reference: Option<Arc<str>>,
    ) {
        self.changes.transitions.push(Transition {
            purchase,
            at: facts.now,
            kind: M::NAME,
            from: Some(row.from.name()),
            to: row.to.name(),
            cause: row.label,
            actor: actor.clone(),
            reference,
        });
    }

    /// Marks a credit account whose row the caller has changed itself.
    pub(crate) fn touch_account(&mut self, id: &AccountId) {
        self.accounts.insert(id.clone());
    }

    /// Marks a job that the caller has just added.
    pub(crate) fn open_job(&mut self, id: &JobId) {
        self.new_jobs.insert(id.clone());
    }

    /// Marks a job whose row the caller has changed itself.
    pub(crate) fn touch_job(&mut self, id: &JobId) {
        if !self.new_jobs.contains(id) {
            self.jobs.insert(id.clone());
        }
    }

    /// Closes the draft: one move per SKU, bucket, credit account and job, however many commands met it, on the revisions that were loaded.
    pub(crate) fn finish(mut self, facts: &Facts) -> ChangeSet {
        for key in &self.stock {
            let sku = &facts.skus[key];
            self.changes.stock.push(StockMove {
                key: key.clone(),
                revision: sku.revision,
                stock: sku.stock,
                adjustments: sku.adjustments,
            });
        }
        for key in &self.buckets {
            self.changes.buckets.push(BucketMove { bucket: facts.buckets[key].clone() });
        }
        self.changes.new_jobs.extend(self.new_jobs.iter().map(|id| facts.jobs[id].clone()));
        self.changes.jobs.extend(self.jobs.iter().map(|id| facts.jobs[id].clone()));
        self.changes.accounts.extend(self.accounts.iter().map(|id| facts.accounts[id].clone()));
        self.changes
    }
}

fn merge(earlier: &mut PurchaseMove, step: Step) -> Result<(), Error> {
    match (&mut earlier.step, step) {
        (Step::Admission { .. }, step @ Step::Admission { .. }) => {
            earlier.step = step;
            return Ok(());
        }
        (Step::Order { reservation: first, .. }, Step::Order { order, reservation, places }) => {
            let reservation = reservation.or(*first);
            earlier.step = Step::Order { order, reservation, places };
            return Ok(());
        }
        _ => {}
    }
    Err(Error::new(Code::GuardLost, "one batch wanted to change a purchase twice"))
}

/// The first of `quantity` neighbouring places that no purchase of the buyer holds.
pub(crate) fn free_place(facts: &Facts, key: &SkuKey, user: &UserId, quantity: u32) -> i64 {
    let mut taken: Vec<(i64, i64)> = facts
        .purchases_of(key, user)
        .flat_map(|purchase| &purchase.lines)
        .filter(|line| line.key == *key && line.place >= 0)
        .map(|line| (line.place, line.place + i64::from(line.quantity)))
        .collect();
    taken.sort_unstable();
    let mut candidate = 0;
    for (start, end) in taken {
        if candidate + i64::from(quantity) <= start {
            break;
        }
        candidate = candidate.max(end);
    }
    candidate
}

/// A place that nobody can want: negative, and unique for the purchase.
pub(crate) fn freed_place(id: PurchaseId) -> i64 {
    let mut head = [0_u8; 8];
    head.copy_from_slice(&id.bytes()[8..16]);
    -1 - (i64::from_be_bytes(head) & (i64::MAX >> 1))
}

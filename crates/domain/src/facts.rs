//! What a decision may look at: the rows it asked for, locked, and the store's own time.
//!
//! Invariants: `now` is the clock of the store that holds the rows (DR-06); a row that was asked for and does
//! not exist is simply not there. Decisions work on their own copy: as they decide, they write the outcome back
//! into these facts, so that the next command of the batch sees it. Deliberately absent: order of maps — nothing
//! may iterate over the hash maps, or a replay would differ.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::catalogue::{Activity, Bucket, Sku};
use crate::changes::{Answered, CompensationTask};
use crate::credit::{Account, Entry};
use crate::due::{DueEntry, Lane, Member};
use crate::group::{GroupOrder, Participant};
use crate::id::{
    AccountId, ActivityId, GroupId, JobId, NoticeId, PaymentId, PurchaseId, RefundId, SkuKey, UserId,
};
use crate::job::Job;
use crate::notice::Notice;
use crate::payment::{Callback, Payment, Refund};
use crate::purchase::Purchase;
use crate::time::Timestamp;

/// The rows a command names. Stores lock them in the order of the fields, each list by key (design.md §7).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Need {
    /// Activities by id.
    pub activities: Vec<ActivityId>,
    /// SKUs, each with its activity.
    pub skus: Vec<SkuKey>,
    /// Admission buckets.
    pub buckets: Vec<SkuKey>,
    /// Purchases by id.
    pub purchases: Vec<PurchaseId>,
    /// The purchases of a buyer that hold a place on the SKU (`place >= 0`): what the buyer holds now, not what the buyer
    /// ever did, so that the cost does not grow with a buyer's history (FS-01). One that is asked for by id counts too.
    pub buyers: Vec<(SkuKey, UserId)>,
    /// Compensation tasks.
    pub compensations: Vec<PurchaseId>,
    /// First answers by idempotency key.
    pub answers: Vec<Arc<str>>,
    /// Payment attempts by id.
    pub payments: Vec<PaymentId>,
    /// Refunds by id.
    pub refunds: Vec<RefundId>,
    /// All attempts and refunds of a purchase.
    pub attempts: Vec<PurchaseId>,
    /// Callbacks by provider and event.
    pub callbacks: Vec<(Arc<str>, Arc<str>)>,
    /// Notices by id.
    pub notices: Vec<NoticeId>,
    /// Members of due work.
    pub due: Vec<(Lane, Member)>,
    /// Group orders by id.
    pub groups: Vec<GroupId>,
    /// Participants by group and user.
    pub participants: Vec<(GroupId, UserId)>,
    /// All participants of a group.
    pub participants_of: Vec<GroupId>,
    /// Credit accounts by id.
    pub accounts: Vec<AccountId>,
    /// Charges of an account that belong to no job, by their reference; each comes with its account.
    pub charges: Vec<(AccountId, Arc<str>)>,
    /// Jobs by id; each comes with its account.
    pub jobs: Vec<JobId>,
}

/// The rows that are there.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The store's time.
    pub now: Timestamp,
    /// Activities.
    pub activities: BTreeMap<ActivityId, Activity>,
    /// SKUs.
    pub skus: BTreeMap<SkuKey, Sku>,
    /// Buckets.
    pub buckets: BTreeMap<SkuKey, Bucket>,
    /// Purchases, whichever way they were asked for.
    pub purchases: HashMap<PurchaseId, Purchase>,
    /// For each buyer that was asked for, the ids of the purchases, oldest first.
    pub buyers: HashMap<(SkuKey, UserId), Vec<PurchaseId>>,
    /// Compensation tasks.
    pub compensations: HashMap<PurchaseId, CompensationTask>,
    /// First answers.
    pub answers: HashMap<Arc<str>, Answered>,
    /// Payment attempts, whichever way they were asked for.
    pub payments: BTreeMap<PaymentId, Payment>,
    /// Refunds, whichever way they were asked for.
    pub refunds: BTreeMap<RefundId, Refund>,
    /// Callbacks by provider and event.
    pub callbacks: BTreeMap<(Arc<str>, Arc<str>), Callback>,
    /// Notices.
    pub notices: BTreeMap<NoticeId, Notice>,
    /// Members of due work.
    pub due: BTreeMap<(Lane, Member), DueEntry>,
    /// Group orders.
    pub groups: BTreeMap<GroupId, GroupOrder>,
    /// Participants, whichever way they were asked for.
    pub participants: BTreeMap<(GroupId, UserId), Participant>,
    /// Credit accounts, whichever way they were asked for.
    pub accounts: BTreeMap<AccountId, Account>,
    /// Charges that belong to no job, by account and reference.
    pub charges: BTreeMap<(AccountId, Arc<str>), Entry>,
    /// Jobs.
    pub jobs: BTreeMap<JobId, Job>,
}

impl Facts {
    /// No rows, at a time.
    #[must_use]
    pub fn empty(now: Timestamp) -> Self {
        Self {
            now,
            activities: BTreeMap::new(),
            skus: BTreeMap::new(),
            buckets: BTreeMap::new(),
            purchases: HashMap::new(),
            buyers: HashMap::new(),
            compensations: HashMap::new(),
            answers: HashMap::new(),
            payments: BTreeMap::new(),
            refunds: BTreeMap::new(),
            callbacks: BTreeMap::new(),
            notices: BTreeMap::new(),
            due: BTreeMap::new(),
            groups: BTreeMap::new(),
            participants: BTreeMap::new(),
            accounts: BTreeMap::new(),
            charges: BTreeMap::new(),
            jobs: BTreeMap::new(),
        }
    }

    /// The purchases of a buyer that have a line of this SKU.
    pub fn purchases_of<'a>(&'a self, key: &SkuKey, user: &UserId) -> impl Iterator<Item = &'a Purchase> {
        let ids = self.buyers.get(&(key.clone(), user.clone()));
        ids.into_iter().flatten().filter_map(|id| self.purchases.get(id))
    }

    /// The payment attempts of a purchase, by id.
    pub fn payments_of(&self, purchase: PurchaseId) -> impl Iterator<Item = &Payment> {
        self.payments.values().filter(move |one| one.purchase == purchase)
    }

    /// The refunds of a purchase, by id.
    pub fn refunds_of(&self, purchase: PurchaseId) -> impl Iterator<Item = &Refund> {
        self.refunds.values().filter(move |one| one.purchase == purchase)
    }

    /// The participants of a group, by user.
    pub fn participants_of<'a>(&'a self, group: &'a GroupId) -> impl Iterator<Item = &'a Participant> {
        self.participants.values().filter(move |one| one.group == *group)
    }

    /// Adds a purchase that this batch has just decided on.
    pub fn remember(&mut self, purchase: Purchase) {
        for line in &purchase.lines {
            let ids = self.buyers.entry((line.key.clone(), purchase.user.clone())).or_default();
            if !ids.contains(&purchase.id) {
                ids.push(purchase.id);
            }
        }
        self.purchases.insert(purchase.id, purchase);
    }
}

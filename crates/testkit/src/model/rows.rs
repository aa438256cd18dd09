//! The model's rows and how facts are read from them.
//!
//! Invariants: every table is a sorted map; indexes are tables too, kept in step by the code that writes the rows.

use std::sync::Arc;

use onceward_domain::catalogue::{Activity, Bucket, Sku};
use onceward_domain::changes::{Answered, CompensationTask, Quarantined, StockEntry, Transition};
use onceward_domain::credit::{Account, Entry, EntryKind};
use onceward_domain::due::{DueEntry, Lane, Member, Token};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::group::{GroupOrder, GroupTransition, Participant};
use onceward_domain::id::{
    AccountId, ActivityId, GroupId, JobId, NoticeId, PaymentId, PurchaseId, RefundId, SkuKey, UserId,
};
use onceward_domain::job::Job;
use onceward_domain::notice::Notice;
use onceward_domain::payment::{Callback, Case, Payment, Refund};
use onceward_domain::purchase::Purchase;
use onceward_domain::time::Timestamp;

use super::table::Table;

/// One member of a lane.
#[derive(Debug, Clone)]
pub(crate) struct DueRow {
    /// Arrival, unique in the store.
    pub(crate) sequence: i64,
    /// When it is due, or when its lease ends.
    pub(crate) due_at: Timestamp,
    /// When it was put in.
    pub(crate) created_at: Timestamp,
    /// Claims so far.
    pub(crate) attempts: u32,
    /// The last claim.
    pub(crate) token: Token,
    /// Whether that claim may settle it.
    pub(crate) is_held: bool,
    /// What was put in.
    pub(crate) body: Vec<u8>,
}

impl DueRow {
    /// Whether a lease is running.
    pub(crate) fn is_leased(&self, now: Timestamp) -> bool {
        self.is_held && self.due_at > now
    }

    fn entry(&self) -> DueEntry {
        DueEntry {
            due_at: self.due_at,
            created_at: self.created_at,
            attempts: self.attempts,
            token: self.token,
            is_held: self.is_held,
            body: self.body.clone(),
        }
    }
}

/// What is known of a lane besides its members.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LaneRow {
    /// Whether nothing of it is given out.
    pub(crate) paused: bool,
    /// When something was last given out.
    pub(crate) last_claim: Option<Timestamp>,
}

/// What makes a ledger entry unique.
pub(crate) type EntryKey =
    (Option<PurchaseId>, Option<onceward_domain::id::AdjustmentId>, SkuKey, &'static str);

/// Everything that is kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rows {
    pub(crate) activities: Table<ActivityId, Activity>,
    pub(crate) skus: Table<SkuKey, Sku>,
    pub(crate) buckets: Table<SkuKey, Bucket>,
    pub(crate) purchases: Table<PurchaseId, Purchase>,
    /// Purchases by age.
    pub(crate) by_handle: Table<i64, PurchaseId>,
    /// Purchases of a buyer that have a line of a SKU, by age.
    pub(crate) by_buyer: Table<(SkuKey, UserId, i64), PurchaseId>,
    /// Taken places.
    pub(crate) places: Table<(SkuKey, UserId, i64), PurchaseId>,
    pub(crate) compensations: Table<PurchaseId, CompensationTask>,
    pub(crate) entries: Table<i64, StockEntry>,
    pub(crate) entry_keys: Table<EntryKey, i64>,
    pub(crate) transitions: Table<(PurchaseId, i64), Transition>,
    pub(crate) quarantined: Table<(Arc<str>, [u8; 32]), Quarantined>,
    pub(crate) answers: Table<Arc<str>, Answered>,
    pub(crate) payments: Table<PaymentId, Payment>,
    pub(crate) refunds: Table<RefundId, Refund>,
    /// Provider transactions, each of one payment.
    pub(crate) transactions_taken: Table<(Arc<str>, Arc<str>), PaymentId>,
    pub(crate) callbacks: Table<(Arc<str>, Arc<str>), Callback>,
    pub(crate) cases: Table<i64, Case>,
    pub(crate) case_keys: Table<(&'static str, Arc<str>), i64>,
    pub(crate) groups: Table<GroupId, GroupOrder>,
    /// Group orders by age.
    pub(crate) group_handles: Table<i64, GroupId>,
    pub(crate) participants: Table<(GroupId, UserId), Participant>,
    pub(crate) group_transitions: Table<(GroupId, i64), GroupTransition>,
    pub(crate) accounts: Table<AccountId, Account>,
    pub(crate) credit_entries: Table<(AccountId, i64), Entry>,
    /// Charges that belong to no job, by account and reference.
    pub(crate) charges: Table<(AccountId, Arc<str>), i64>,
    pub(crate) jobs: Table<JobId, Job>,
    /// Entries of jobs, once each by kind.
    pub(crate) job_entries: Table<(JobId, EntryKind), i64>,
    pub(crate) due: Table<(Lane, Member), DueRow>,
    pub(crate) by_due: Table<(Lane, Timestamp, i64), Member>,
    pub(crate) by_arrival: Table<(Lane, i64), Member>,
    pub(crate) lanes: Table<Lane, LaneRow>,
    pub(crate) notices: Table<NoticeId, Notice>,
    /// Notices by age.
    pub(crate) notices_by_age: Table<i64, NoticeId>,
    /// Last number given out; shared by handles, arrivals, entries and transitions. Never taken back.
    pub(crate) last_number: i64,
    /// Last fencing token. Never taken back, or a token could repeat.
    pub(crate) last_token: i64,
    /// Counts commits that changed something.
    pub(crate) version: u64,
}

/// Does the same to every table.
macro_rules! every_table {
    ($rows:ident, $table:ident => $what:expr) => {{
        {
            let $table = &mut $rows.activities;
            $what;
        }
        {
            let $table = &mut $rows.skus;
            $what;
        }
        {
            let $table = &mut $rows.buckets;
            $what;
        }
        {
            let $table = &mut $rows.purchases;
            $what;
        }
        {
            let $table = &mut $rows.by_handle;
            $what;
        }
        {
            let $table = &mut $rows.by_buyer;
            $what;
        }
        {
            let $table = &mut $rows.places;
            $what;
        }
        {
            let $table = &mut $rows.compensations;
            $what;
        }
        {
            let $table = &mut $rows.entries;
            $what;
        }
        {
            let $table = &mut $rows.entry_keys;
            $what;
        }
        {
            let $table = &mut $rows.transitions;
            $what;
        }
        {
            let $table = &mut $rows.quarantined;
            $what;
        }
        {
            let $table = &mut $rows.answers;
            $what;
        }
        {
            let $table = &mut $rows.payments;
            $what;
        }
        {
            let $table = &mut $rows.refunds;
            $what;
        }
        {
            let $table = &mut $rows.transactions_taken;
            $what;
        }
        {
            let $table = &mut $rows.callbacks;
            $what;
        }
        {
            let $table = &mut $rows.cases;
            $what;
        }
        {
            let $table = &mut $rows.case_keys;
            $what;
        }
        {
            let $table = &mut $rows.groups;
            $what;
        }
        {
            let $table = &mut $rows.group_handles;
            $what;
        }
        {
            let $table = &mut $rows.participants;
            $what;
        }
        {
            let $table = &mut $rows.group_transitions;
            $what;
        }
        {
            let $table = &mut $rows.accounts;
            $what;
        }
        {
            let $table = &mut $rows.credit_entries;
            $what;
        }
        {
            let $table = &mut $rows.charges;
            $what;
        }
        {
            let $table = &mut $rows.jobs;
            $what;
        }
        {
            let $table = &mut $rows.job_entries;
            $what;
        }
        {
            let $table = &mut $rows.due;
            $what;
        }
        {
            let $table = &mut $rows.by_due;
            $what;
        }
        {
            let $table = &mut $rows.by_arrival;
            $what;
        }
        {
            let $table = &mut $rows.lanes;
            $what;
        }
        {
            let $table = &mut $rows.notices;
            $what;
        }
        {
            let $table = &mut $rows.notices_by_age;
            $what;
        }
    }};
}

impl Rows {
    /// Keeps what the open transaction changed.
    pub(crate) fn commit(&mut self) {
        let mut changed = false;
        every_table!(self, table => changed |= table.commit());
        if changed {
            self.version += 1;
        }
    }

    /// Takes it back.
    pub(crate) fn roll_back(&mut self) {
        every_table!(self, table => table.roll_back());
    }

    /// A number that was never given out before.
    pub(crate) fn number(&mut self) -> i64 {
        self.last_number += 1;
        self.last_number
    }

    /// Reads the rows of a need; a row that is not there is absent.
    pub(crate) fn load(&self, need: &Need, now: Timestamp) -> Facts {
        let mut facts = Facts::empty(now);
        for id in &need.activities {
            facts.activities.extend(self.activities.get(id).map(|row| (id.clone(), row.clone())));
        }
        for row in need.skus.iter().filter_map(|key| self.skus.get(key)) {
            let activity = self.activities.get(&row.key.activity);
            facts.activities.extend(activity.map(|activity| (activity.id.clone(), activity.clone())));
            facts.skus.insert(row.key.clone(), row.clone());
        }
        for key in &need.buckets {
            facts.buckets.extend(self.buckets.get(key).map(|row| (key.clone(), row.clone())));
        }
        for id in &need.purchases {
            facts.purchases.extend(self.purchases.get(id).map(|row| (*id, row.clone())));
        }
        for (key, user) in &need.buyers {
            let ids = self.purchases_of(key, user);
            for id in &ids {
                facts.purchases.extend(self.purchases.get(id).map(|row| (*id, row.clone())));
            }
            facts.buyers.insert((key.clone(), user.clone()), ids);
        }
        for id in &need.compensations {
            facts.compensations.extend(self.compensations.get(id).map(|row| (*id, row.clone())));
        }
        for key in &need.answers {
            facts.answers.extend(self.answers.get(key).map(|row| (Arc::clone(key), row.clone())));
        }
        self.load_money(need, &mut facts);
        for id in &need.notices {
            facts.notices.extend(self.notices.get(id).map(|row| (*id, row.clone())));
        }
        for key in &need.due {
            facts.due.extend(self.due.get(key).map(|row| (key.clone(), row.entry())));
        }
        self.load_groups(need, &mut facts);
        self.load_credit(need, &mut facts);
        facts
    }

    fn holds_a_place(&self, id: PurchaseId, key: &SkuKey) -> bool {
        let lines = self.purchases.get(&id).into_iter().flat_map(|purchase| &purchase.lines);
        lines.into_iter().any(|line| line.key == *key && line.place >= 0)
    }

    /// Purchases of a buyer that hold a place on the SKU, oldest first.
    fn purchases_of(&self, key: &SkuKey, user: &UserId) -> Vec<PurchaseId> {
        let first = (key.clone(), user.clone(), i64::MIN);
        let last = (key.clone(), user.clone(), i64::MAX);
        let ids = self.by_buyer.range(first..=last).map(|(_, id)| *id);
        ids.filter(|id| self.holds_a_place(*id, key)).collect()
    }
}

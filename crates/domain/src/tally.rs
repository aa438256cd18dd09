//! Sums over the whole store, from which the invariants are judged.
//!
//! Stores add up; [`crate::audit`] judges. Deliberately absent: any verdict here.

use std::sync::Arc;

use crate::catalogue::{Bucket, Sku};
use crate::machine::admission::Admission;
use crate::machine::order::Order as OrderStatus;
use crate::machine::reservation::Reservation as ReservationStatus;
use crate::time::Timestamp;

/// Purchases of one SKU that share their states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Admission's view.
    pub admission: Admission,
    /// The store's view.
    pub reservation: Option<ReservationStatus>,
    /// The order's state.
    pub order: Option<OrderStatus>,
    /// How many purchases.
    pub purchases: u64,
    /// How many units of the SKU.
    pub units: i64,
}

/// One SKU with all that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkuTally {
    /// The SKU of record.
    pub sku: Sku,
    /// Admission's counters, where the store holds them.
    pub bucket: Option<Bucket>,
    /// Its purchases, grouped by state.
    pub groups: Vec<Group>,
    /// Units of reservations that only the gate's journal holds ([`crate::journal`]).
    pub journaled: i64,
    /// Buyers whose live orders hold more than `per_user_limit` units, and who have ordered since that limit is in force: the
    /// order was judged by it. A limit that was lowered takes nothing from anybody.
    pub buyers_over_limit: u64,
    /// Sum of `available` over all ledger entries that were written (releases and adjustments).
    pub ledger_available: i64,
}

/// Group orders in sums.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupTally {
    /// Group orders.
    pub groups: u64,
    /// Their participants.
    pub participants: u64,
    /// Groups whose count is not that of their participants, or whose state contradicts their charges: an open charge in
    /// a settled group, any charge in one that is open or cancelled, none where the deadline has passed through a close.
    pub state_contradictions: u64,
    /// Participants who pay out of a wallet and whose entry in the credit ledger is not what their charge says: one of the
    /// amount, under the charge's id, where it was charged, and none where it was not (GS-03).
    pub wallet_contradictions: u64,
    /// Groups that wait for their deadline or their next attempt and are in no queue.
    pub unscheduled: u64,
}

/// The credit ledger in sums (CL-01).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreditTally {
    /// Accounts.
    pub accounts: u64,
    /// Entries.
    pub entries: u64,
    /// Accounts whose balance or count is not what their entries make, or an entry of which says another balance than the
    /// entries until then.
    pub balance_contradictions: u64,
    /// Jobs whose entries are not what their marks and state say: their sum is neither −cost nor 0, or 0 after delivery.
    pub job_contradictions: u64,
    /// Jobs that wait for a run, or for a person, and are in no lane.
    pub jobs_nowhere: u64,
}

/// The whole store in sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// The store's time.
    pub now: Timestamp,
    /// Every SKU, by key.
    pub skus: Vec<SkuTally>,
    /// Rejected or compensating purchases without a task.
    pub rejections_without_task: u64,
    /// Tasks whose purchase is in a state that needs none.
    pub tasks_without_rejection: u64,
    /// Purchases with an inbox result that contradicts their state.
    pub inbox_contradictions: u64,
    /// Cancelled orders whose stock release is not exactly one ledger entry per line.
    pub cancels_without_release: u64,
    /// Orders whose paid or refunded amount is not the sum of their attempts or refunds, or whose refunds pass it.
    pub money_contradictions: u64,
    /// Group orders.
    pub group_orders: GroupTally,
    /// The credit ledger.
    pub credit: CreditTally,
    /// Cases for people.
    pub cases: u64,
    /// Messages set aside.
    pub quarantined: u64,
    /// Size of the store on disk, in bytes, with its log; 0 where it is unknown.
    pub bytes: u64,
    /// Free text about the store, e.g. its settings.
    pub about: Arc<str>,
}

//! The ChangeSet: what a decision wants written, all of it or nothing.
//!
//! Invariants: every changed row names the revision (or state) it was decided on, and the store refuses the
//! whole set when one guard does not hit exactly one row; new rows are refused when their key exists.
//! Deliberately absent: SQL, and any "maybe". Read next: [`crate::ports::store`].

use std::sync::Arc;

use crate::catalogue::{Activity, Bucket, Sku, Stock};
use crate::credit::{Account, Entry};
use crate::due::DueChange;
use crate::event::Event;
use crate::group::{GroupOrder, GroupTransition, Participant};
use crate::id::{AdjustmentId, CompensationId, PurchaseId, SkuKey};
use crate::job::Job;
use crate::machine::admission::Admission;
use crate::machine::compensation::Compensation;
use crate::machine::reservation::Reservation as ReservationStatus;
use crate::notice::Notice;
use crate::payment::{Callback, Case, Payment, Refund};
use crate::ports::deadline::Expiry;
use crate::purchase::{Inbox, Order, Purchase, Reason};
use crate::retention::Aged;
use crate::time::Timestamp;

/// A new set of figures for a SKU, decided on `revision`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StockMove {
    /// Which.
    pub key: SkuKey,
    /// The revision that was loaded.
    pub revision: i64,
    /// The figures after.
    pub stock: Stock,
    /// The adjustment count after.
    pub adjustments: u32,
}

/// A new set of counters for a bucket, decided on its loaded revision (`bucket.revision`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketMove {
    /// The counters after; `revision` is the one that was loaded.
    pub bucket: Bucket,
}

/// A change of a purchase, decided on `revision`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PurchaseMove {
    /// Which.
    pub id: PurchaseId,
    /// The handle that came with it.
    pub handle: i64,
    /// The revision that was loaded; the store writes `revision + 1`.
    pub revision: i64,
    /// When.
    pub at: Timestamp,
    /// What.
    pub step: Step,
}

/// What changes on a purchase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// The order is born: reservation, inbox, order, price and place in one write (FS-06).
    CreateOrder {
        /// The reservation's state after.
        reservation: ReservationStatus,
        /// The message that asked.
        inbox: Inbox,
        /// The order.
        order: Order,
        /// First of the buyer's places that it holds.
        place: i64,
        /// Price of one unit.
        unit_price: crate::money::Money,
    },
    /// The reservation moves without an order.
    Reservation {
        /// State after.
        to: ReservationStatus,
        /// Why, where it is refused.
        reason: Option<Reason>,
        /// The message that caused it, if one did.
        inbox: Option<Inbox>,
        /// The place after (negative: free again).
        place: i64,
    },
    /// Only the inbox learns something (a late message).
    Inbox(Inbox),
    /// Admission's view moves.
    Admission {
        /// State after.
        to: Admission,
        /// The compensation that did it.
        compensation: Option<CompensationId>,
        /// The place after.
        place: i64,
    },
    /// The order moves, and with it, perhaps, the reservation.
    Order {
        /// The order after.
        order: Order,
        /// The reservation's state after, where it moves too.
        reservation: Option<ReservationStatus>,
        /// Places after, one per line.
        places: Vec<i64>,
    },
}

/// One line of an order's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// Of which purchase.
    pub purchase: PurchaseId,
    /// When.
    pub at: Timestamp,
    /// Which machine.
    pub kind: &'static str,
    /// State before, if there was one.
    pub from: Option<&'static str>,
    /// State after.
    pub to: &'static str,
    /// Label of the table's row.
    pub cause: &'static str,
    /// Who: `engine`, or a person or key by name.
    pub actor: Arc<str>,
    /// An id or reason that belongs to it.
    pub reference: Option<Arc<str>>,
}

/// A compensation task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompensationTask {
    /// Of which purchase; also the task's idempotency key.
    pub purchase: PurchaseId,
    /// State.
    pub status: Compensation,
    /// How often it was claimed.
    pub attempts: u32,
    /// What admission last answered.
    pub last_result: Option<Arc<str>>,
    /// When it was decided.
    pub created_at: Timestamp,
    /// Last change.
    pub updated_at: Timestamp,
    /// Guards the next change.
    pub revision: i64,
}

/// A stock ledger entry. Entries for the birth of flash orders are not written: the purchase row states them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StockEntry {
    /// Of what.
    pub key: SkuKey,
    /// For which purchase; none for an adjustment.
    pub purchase: Option<PurchaseId>,
    /// For which adjustment; none for a purchase.
    pub adjustment: Option<AdjustmentId>,
    /// Label of the move; with the purchase and the SKU it is unique, so stock comes back once (OT-06).
    pub cause: &'static str,
    /// Change of free units.
    pub available: i64,
    /// Change of locked units.
    pub occupied: i64,
    /// Change of sold units.
    pub sold: i64,
    /// Why, for an adjustment.
    pub note: Option<Arc<str>>,
    /// When.
    pub at: Timestamp,
}

/// A message that was set aside (FS-08).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// The message's id, as text.
    pub message_id: Arc<str>,
    /// SHA-256 of the payload; with the id it is unique.
    pub payload_hash: [u8; 32],
    /// Why.
    pub reason: &'static str,
    /// The payload, for a person to read.
    pub payload: Vec<u8>,
    /// When.
    pub at: Timestamp,
}

/// The first answer to a request with an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// Caller scope and key.
    pub key: Arc<str>,
    /// SHA-256 of method, path and body.
    pub fingerprint: [u8; 32],
    /// HTTP status of the first answer.
    pub status: u16,
    /// Its body.
    pub body: Vec<u8>,
    /// When it was given.
    pub at: Timestamp,
    /// Whether it speaks of an effect, so that it must never be forgotten: a repeat would land twice.
    pub lasting: bool,
}

/// Everything one decision writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeSet {
    /// New or replaced activities.
    pub activities: Vec<Activity>,
    /// New SKUs.
    pub new_skus: Vec<Sku>,
    /// Changed terms (price, limit) of SKUs; stock is left alone.
    pub changed_skus: Vec<Sku>,
    /// Stock moves, one per SKU.
    pub stock: Vec<StockMove>,
    /// New buckets; where one exists, nothing happens.
    pub new_buckets: Vec<Bucket>,
    /// Bucket moves, one per SKU.
    pub buckets: Vec<BucketMove>,
    /// New purchases.
    pub new_purchases: Vec<Purchase>,
    /// Changed purchases, each at most once.
    pub purchases: Vec<PurchaseMove>,
    /// New compensation tasks.
    pub new_compensations: Vec<CompensationTask>,
    /// Changed tasks; `revision` is the one that was loaded.
    pub compensations: Vec<CompensationTask>,
    /// Ledger entries.
    pub stock_entries: Vec<StockEntry>,
    /// History.
    pub transitions: Vec<Transition>,
    /// Messages set aside; a repeat is ignored.
    pub quarantined: Vec<Quarantined>,
    /// First answers.
    pub answers: Vec<Answered>,
    /// Records that go, each as old as it was seen.
    pub forgotten: Vec<Aged>,
    /// New payment attempts.
    pub new_payments: Vec<Payment>,
    /// Changed attempts, each at most once; `revision` is the one that was loaded.
    pub payments: Vec<Payment>,
    /// New refunds.
    pub new_refunds: Vec<Refund>,
    /// Changed refunds, each at most once; `revision` is the one that was loaded.
    pub refunds: Vec<Refund>,
    /// Callbacks; a repeat of a known event is ignored.
    pub callbacks: Vec<Callback>,
    /// Cases for people; a repeat of a known one is ignored.
    pub cases: Vec<Case>,
    /// Notices to people (LQ-05); a repeat of a known one is ignored. The engine adds the due work that sends them.
    pub new_notices: Vec<Notice>,
    /// Changed notices, each at most once; `revision` is the one that was loaded.
    pub notices: Vec<Notice>,
    /// New group orders.
    pub new_groups: Vec<GroupOrder>,
    /// Changed group orders, each at most once; `revision` is the one that was loaded.
    pub groups: Vec<GroupOrder>,
    /// New participants.
    pub new_participants: Vec<Participant>,
    /// Changed participants, each at most once; `revision` is the one that was loaded.
    pub participants: Vec<Participant>,
    /// Participants who leave, as they were loaded: nothing is charged to them and they are not there any more.
    pub left_participants: Vec<Participant>,
    /// History of group orders.
    pub group_transitions: Vec<GroupTransition>,
    /// New credit accounts, empty.
    pub new_accounts: Vec<Account>,
    /// New jobs.
    pub new_jobs: Vec<Job>,
    /// Changed jobs, each at most once; `revision` is the one that was loaded.
    pub jobs: Vec<Job>,
    /// Credit ledger entries; those of one account in the order of their numbers.
    pub entries: Vec<Entry>,
    /// Changed accounts, each at most once, also new ones that got entries; `revision` is the one that was loaded.
    pub accounts: Vec<Account>,
    /// Events; the engine turns them into one outbox entry before the set is applied.
    pub events: Vec<Event>,
    /// New orders with their due-times; the engine hands them to the deadline trigger. Stores do not write them: the
    /// orders' own rows state the same.
    pub expiries: Vec<Expiry>,
    /// Due work.
    pub due: Vec<DueChange>,
}

impl ChangeSet {
    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

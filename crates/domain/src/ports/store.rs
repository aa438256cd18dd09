//! The store of record.
//!
//! One method changes it: [`Store::transact`] loads the rows of a [`Need`] under lock, runs the decision on them
//! and applies the [`ChangeSet`], all in one transaction. Everything else only reads, or claims due work.
//! Invariants: a decision may run more than once (on a conflict) and only the last run is applied; a transaction
//! is durable when its answer is `Ok`; an `UnknownOutcome` may or may not have been applied. Adapters hold no rules.

use std::fmt;
use std::sync::Arc;

use crate::catalogue::Sku;
use crate::changes::{ChangeSet, Transition};
use crate::credit::{Entry, Standing};
use crate::due::{ClaimRequest, Claimed, Lane, LaneStatus, Waiting};
use crate::error::Error;
use crate::facts::{Facts, Need};
use crate::group::{GroupOrder, GroupTransition};
use crate::id::{AccountId, ActivityId, GroupId, PurchaseId, SkuKey, UserId};
use crate::machine::group::Group as GroupStatus;
use crate::machine::order::Order as OrderStatus;
use crate::notice::Notice;
use crate::payment::Case;
use crate::ports::Answer;
use crate::purchase::Purchase;
use crate::retention::Aged;
use crate::tally::Tally;
use crate::time::Timestamp;

/// A pure decision: it may change its facts as it goes, and says what to write.
pub type Decide = Arc<dyn Fn(&mut Facts) -> Result<ChangeSet, Error> + Send + Sync>;

/// One transaction's worth of work.
#[derive(Clone)]
pub struct Work {
    /// What the operation is called in logs and metrics.
    pub name: &'static str,
    /// The rows to load and lock.
    pub need: Need,
    /// The decision.
    pub decide: Decide,
}

impl fmt::Debug for Work {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Work").field("name", &self.name).field("need", &self.need).finish_non_exhaustive()
    }
}

/// Which orders a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrderFilter {
    /// Of this buyer.
    pub user: Option<UserId>,
    /// In this state.
    pub status: Option<OrderStatus>,
    /// With a line of this activity.
    pub activity: Option<ActivityId>,
}

/// A page of a list, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// At most this many, 1 to 200.
    pub limit: u32,
    /// Only rows older than this handle.
    pub before: Option<i64>,
}

/// An order that expires unless something happens to it first: it waits for its payment (OT-03, OT-04).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expiring {
    /// When it is to be cancelled.
    pub due_at: Timestamp,
    /// The store's handle of the row.
    pub handle: i64,
    /// Whose order.
    pub purchase: PurchaseId,
}

/// The store of record.
pub trait Store: Send + Sync {
    /// Loads, decides and applies in one durable transaction. An error of the decision itself is handed
    /// through and nothing is written.
    fn transact(&self, work: Work) -> Answer<'_, ()>;

    /// Reads the rows of a need without locking them.
    fn view(&self, need: Need) -> Answer<'_, Facts>;

    /// Claims due members of a lane under a lease (LQ-01, LQ-02); of a paused lane, none (LQ-06).
    fn claim_due(&self, request: ClaimRequest) -> Answer<'_, Vec<Claimed>>;

    /// Earliest due-time, or lease end, of a lane; of a paused lane, none.
    fn next_due(&self, lane: Lane) -> Answer<'_, Option<Timestamp>>;

    /// The member of a lane whose packed body holds this purchase, if there is one.
    fn find_due(&self, lane: Lane, purchase: PurchaseId) -> Answer<'_, Option<Waiting>>;

    /// Members of a lane, oldest first; `after` is the last member of the page before.
    fn list_due(&self, lane: Lane, limit: u32, after: Option<Arc<str>>) -> Answer<'_, Vec<Waiting>>;

    /// Every lane that has members or is paused.
    fn lanes(&self) -> Answer<'_, Vec<LaneStatus>>;

    /// The lanes that are paused, without counting what waits in any: it is asked by whoever works.
    fn paused(&self) -> Answer<'_, Vec<Lane>>;

    /// SKUs in the order of their ids, from behind `after` on.
    fn list_skus(&self, limit: u32, after: Option<SkuKey>) -> Answer<'_, Vec<Sku>>;

    /// Orders, newest first.
    fn list_orders(&self, filter: OrderFilter, page: PageRequest) -> Answer<'_, Vec<Purchase>>;

    /// Orders that expire unless something happens to them first, earliest first, told by their own rows; `after` is the
    /// last one of the page before. This is what finds what a deadline trigger lost (OT-10).
    fn expiries(&self, limit: u32, after: Option<Expiring>) -> Answer<'_, Vec<Expiring>>;

    /// Cases for people with their handles, newest first.
    fn list_cases(&self, page: PageRequest) -> Answer<'_, Vec<(i64, Case)>>;

    /// Notices with their handles, newest first.
    fn list_notices(&self, page: PageRequest) -> Answer<'_, Vec<(i64, Notice)>>;

    /// Records of one kind behind a place, oldest first. Whether one may go, the decision says ([`crate::decide::forget`]).
    fn aged(&self, limit: u32, after: Aged) -> Answer<'_, Vec<Aged>>;

    /// Group orders, newest first, in this state or in any.
    fn list_groups(&self, status: Option<GroupStatus>, page: PageRequest) -> Answer<'_, Vec<GroupOrder>>;

    /// What happened to a group order after it was made, oldest first.
    fn group_transitions(&self, group: GroupId) -> Answer<'_, Vec<GroupTransition>>;
    /// The entries of a credit account, newest first; the handle of an entry is its number.
    fn list_entries(&self, account: AccountId, page: PageRequest) -> Answer<'_, Vec<Entry>>;

    /// How a credit account stood at a moment, which may lie before its first entry; none where nobody has heard of it.
    /// Cost: grows with the logarithm of the entries (CL-08).
    fn standing(&self, account: AccountId, at: Timestamp) -> Answer<'_, Option<Standing>>;

    /// What happened to a purchase after it was created, oldest first.
    fn transitions(&self, purchase: PurchaseId) -> Answer<'_, Vec<Transition>>;

    /// Sums over everything.
    fn tally(&self) -> Answer<'_, Tally>;

    /// The store's time; also the readiness probe.
    fn now(&self) -> Answer<'_, Timestamp>;
}

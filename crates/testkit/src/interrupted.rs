//! A store whose holder is paused before one of its calls, while others go on.
//!
//! Invariants: the pause falls before the call of the given number, once; what happens meanwhile is whatever the test says;
//! every other call goes through untouched. With a pause longer than the lease, at every number in turn, no place is left
//! where a late worker could do harm unseen. Deliberately absent: lost answers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use onceward_domain::changes::Transition;
use onceward_domain::credit::{Entry, Standing};
use onceward_domain::due::{ClaimRequest, Claimed, Lane, LaneStatus, Waiting};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::group::{GroupOrder, GroupTransition};
use onceward_domain::id::{AccountId, GroupId, PurchaseId};
use onceward_domain::machine::group::Group as GroupStatus;
use onceward_domain::notice::Notice;
use onceward_domain::payment::Case;
use onceward_domain::ports::Answer;
use onceward_domain::ports::store::{Expiring, OrderFilter, PageRequest, Store, Work};
use onceward_domain::purchase::Purchase;
use onceward_domain::tally::Tally;
use onceward_domain::time::Timestamp;

type Meanwhile = Box<dyn FnOnce() + Send>;

/// A line to a store that is cut once, for a while.
pub struct Interrupted {
    inner: Arc<dyn Store>,
    calls: AtomicU64,
    at: u64,
    meanwhile: Mutex<Option<Meanwhile>>,
}

impl Interrupted {
    /// Lets this happen before call number `at`, counted from 0.
    pub fn new(inner: Arc<dyn Store>, at: u64, meanwhile: impl FnOnce() + Send + 'static) -> Self {
        let meanwhile: Meanwhile = Box::new(meanwhile);
        Self { inner, calls: AtomicU64::new(0), at, meanwhile: Mutex::new(Some(meanwhile)) }
    }

    /// Whether the pause has been.
    #[must_use]
    pub fn was_paused(&self) -> bool {
        self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn count(&self) -> &dyn Store {
        if self.calls.fetch_add(1, Ordering::SeqCst) == self.at {
            let meanwhile = self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(meanwhile) = meanwhile {
                meanwhile();
            }
        }
        &*self.inner
    }
}

impl Store for Interrupted {
    fn transact(&self, work: Work) -> Answer<'_, ()> {
        self.count().transact(work)
    }

    fn view(&self, need: Need) -> Answer<'_, Facts> {
        self.count().view(need)
    }

    fn claim_due(&self, request: ClaimRequest) -> Answer<'_, Vec<Claimed>> {
        self.count().claim_due(request)
    }

    fn next_due(&self, lane: Lane) -> Answer<'_, Option<Timestamp>> {
        self.count().next_due(lane)
    }

    fn find_due(&self, lane: Lane, purchase: PurchaseId) -> Answer<'_, Option<Waiting>> {
        self.count().find_due(lane, purchase)
    }

    fn list_due(&self, lane: Lane, limit: u32, after: Option<Arc<str>>) -> Answer<'_, Vec<Waiting>> {
        self.count().list_due(lane, limit, after)
    }

    fn lanes(&self) -> Answer<'_, Vec<LaneStatus>> {
        self.count().lanes()
    }

    fn list_orders(&self, filter: OrderFilter, page: PageRequest) -> Answer<'_, Vec<Purchase>> {
        self.count().list_orders(filter, page)
    }

    fn expiries(&self, limit: u32, after: Option<Expiring>) -> Answer<'_, Vec<Expiring>> {
        self.count().expiries(limit, after)
    }

    fn list_cases(&self, page: PageRequest) -> Answer<'_, Vec<(i64, Case)>> {
        self.count().list_cases(page)
    }

    fn list_notices(&self, page: PageRequest) -> Answer<'_, Vec<(i64, Notice)>> {
        self.count().list_notices(page)
    }

    fn list_groups(&self, status: Option<GroupStatus>, page: PageRequest) -> Answer<'_, Vec<GroupOrder>> {
        self.count().list_groups(status, page)
    }

    fn group_transitions(&self, group: GroupId) -> Answer<'_, Vec<GroupTransition>> {
        self.count().group_transitions(group)
    }

    fn list_entries(&self, account: AccountId, page: PageRequest) -> Answer<'_, Vec<Entry>> {
        self.count().list_entries(account, page)
    }

    fn standing(&self, account: AccountId, at: Timestamp) -> Answer<'_, Option<Standing>> {
        self.count().standing(account, at)
    }

    fn transitions(&self, purchase: PurchaseId) -> Answer<'_, Vec<Transition>> {
        self.count().transitions(purchase)
    }

    fn tally(&self) -> Answer<'_, Tally> {
        self.count().tally()
    }

    fn now(&self) -> Answer<'_, Timestamp> {
        self.count().now()
    }
}

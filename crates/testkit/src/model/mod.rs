//! The model store: sorted maps behind a lock, with the guards that every store must have.
//!
//! **Purpose.** The shortest program that keeps every promise of the `Store` port. It passes the same conformance
//! suite as the real stores, and the simulator runs the engine over it.
//!
//! **Invariants.** A transaction is all or nothing; numbers and tokens are never given out twice; equal calls in
//! equal order give equal answers. Its clock is handed in.
//!
//! **Deliberately absent.** Durability, and rules: decisions come in as functions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onceward_domain::catalogue::Sku;
use onceward_domain::changes::Transition;
use onceward_domain::credit::{Entry, Standing};
use onceward_domain::due::{ClaimRequest, Claimed, Lane, LaneStatus, Waiting};
use onceward_domain::error::Error;
use onceward_domain::facts::{Facts, Need};
use onceward_domain::group::{GroupOrder, GroupTransition};
use onceward_domain::id::{AccountId, GroupId, PurchaseId, SkuKey};
use onceward_domain::machine::group::Group as GroupStatus;
use onceward_domain::notice::Notice;
use onceward_domain::payment::Case;
use onceward_domain::ports::Answer;
use onceward_domain::ports::clock::Clock;
use onceward_domain::ports::store::{Expiring, OrderFilter, PageRequest, Store, Work};
use onceward_domain::purchase::Purchase;
use onceward_domain::retention::Aged;
use onceward_domain::tally::Tally;
use onceward_domain::time::Timestamp;

use rows::Rows;

pub(crate) mod rows;

mod apply;
mod credit;
mod due;
mod groups;
mod money;
mod notices;
mod purchases;
mod read;
mod retention;
mod table;

/// A guard left out on purpose, so that a suite can show that it notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Defect {
    /// None: the store keeps its promises.
    #[default]
    None,
    /// Stock, buckets, purchases and tasks are written whatever revision they were decided on.
    IgnoreRevisions,
    /// Due work is settled whatever token its holder shows.
    IgnoreTokens,
    /// Every claim of a member gets the same token.
    RepeatTokens,
}

/// An in-memory store of record.
pub struct ModelStore {
    clock: Arc<dyn Clock>,
    defect: Defect,
    rows: Mutex<Rows>,
}

impl ModelStore {
    /// An empty store that reads this clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::with_defect(clock, Defect::None)
    }

    /// An empty store that breaks one promise.
    #[must_use]
    pub fn with_defect(clock: Arc<dyn Clock>, defect: Defect) -> Self {
        Self { clock, defect, rows: Mutex::new(Rows::default()) }
    }

    /// A store that holds these rows.
    pub(crate) fn holding(clock: Arc<dyn Clock>, rows: Rows) -> Self {
        Self { clock, defect: Defect::None, rows: Mutex::new(rows) }
    }

    /// The rows themselves; the open transaction is never seen, because the lock is held for all of it.
    pub(crate) fn rows(&self) -> MutexGuard<'_, Rows> {
        // A decision that panics leaves an open transaction behind; what it wrote is taken back first.
        self.rows.lock().unwrap_or_else(|poisoned: PoisonError<_>| {
            let mut rows = poisoned.into_inner();
            rows.roll_back();
            rows
        })
    }

    fn run(&self, work: &Work) -> Result<(), Error> {
        let mut rows = self.rows();
        let now = self.clock.now();
        let mut facts = rows.load(&work.need, now);
        let changes = (work.decide)(&mut facts)?;
        match rows.apply(changes, now, self.defect) {
            Ok(()) => {
                rows.commit();
                Ok(())
            }
            Err(error) => {
                rows.roll_back();
                Err(error)
            }
        }
    }
}

impl Store for ModelStore {
    fn transact(&self, work: Work) -> Answer<'_, ()> {
        Box::pin(async move { self.run(&work) })
    }

    fn view(&self, need: Need) -> Answer<'_, Facts> {
        Box::pin(async move { Ok(self.rows().load(&need, self.clock.now())) })
    }

    fn claim_due(&self, request: ClaimRequest) -> Answer<'_, Vec<Claimed>> {
        Box::pin(async move {
            let mut rows = self.rows();
            let claimed = rows.claim(&request, self.clock.now(), self.defect);
            rows.commit();
            Ok(claimed)
        })
    }

    fn next_due(&self, lane: Lane) -> Answer<'_, Option<Timestamp>> {
        Box::pin(async move { Ok(self.rows().next_due(&lane)) })
    }

    fn find_due(&self, lane: Lane, purchase: PurchaseId) -> Answer<'_, Option<Waiting>> {
        Box::pin(async move { Ok(self.rows().find_due(&lane, purchase, self.clock.now())) })
    }

    fn list_due(&self, lane: Lane, limit: u32, after: Option<Arc<str>>) -> Answer<'_, Vec<Waiting>> {
        Box::pin(async move { Ok(self.rows().list_due(&lane, limit, after.as_ref(), self.clock.now())) })
    }

    fn lanes(&self) -> Answer<'_, Vec<LaneStatus>> {
        Box::pin(async move { Ok(self.rows().lanes(self.clock.now())) })
    }

    fn paused(&self) -> Answer<'_, Vec<Lane>> {
        Box::pin(async move { Ok(self.rows().paused()) })
    }

    fn list_skus(&self, limit: u32, after: Option<SkuKey>) -> Answer<'_, Vec<Sku>> {
        Box::pin(async move { Ok(self.rows().list_skus(limit, after.as_ref())) })
    }

    fn list_orders(&self, filter: OrderFilter, page: PageRequest) -> Answer<'_, Vec<Purchase>> {
        Box::pin(async move { Ok(self.rows().list_orders(&filter, page)) })
    }

    fn expiries(&self, limit: u32, after: Option<Expiring>) -> Answer<'_, Vec<Expiring>> {
        Box::pin(async move { Ok(self.rows().expiries(limit, after)) })
    }

    fn list_cases(&self, page: PageRequest) -> Answer<'_, Vec<(i64, Case)>> {
        Box::pin(async move { Ok(self.rows().list_cases(page)) })
    }

    fn list_notices(&self, page: PageRequest) -> Answer<'_, Vec<(i64, Notice)>> {
        Box::pin(async move { Ok(self.rows().list_notices(page)) })
    }

    fn aged(&self, limit: u32, after: Aged) -> Answer<'_, Vec<Aged>> {
        Box::pin(async move { Ok(self.rows().aged(limit, &after)) })
    }

    fn list_groups(&self, status: Option<GroupStatus>, page: PageRequest) -> Answer<'_, Vec<GroupOrder>> {
        Box::pin(async move { Ok(self.rows().list_groups(status, page)) })
    }

    fn group_transitions(&self, group: GroupId) -> Answer<'_, Vec<GroupTransition>> {
        Box::pin(async move { Ok(self.rows().group_history(&group)) })
    }

    fn list_entries(&self, account: AccountId, page: PageRequest) -> Answer<'_, Vec<Entry>> {
        Box::pin(async move { Ok(self.rows().list_entries(&account, page)) })
    }

    fn standing(&self, account: AccountId, at: Timestamp) -> Answer<'_, Option<Standing>> {
        Box::pin(async move { Ok(self.rows().standing(&account, at)) })
    }

    fn transitions(&self, purchase: PurchaseId) -> Answer<'_, Vec<Transition>> {
        Box::pin(async move { Ok(self.rows().history(purchase)) })
    }

    fn tally(&self) -> Answer<'_, Tally> {
        Box::pin(async move { Ok(self.rows().tally(self.clock.now())) })
    }

    fn now(&self) -> Answer<'_, Timestamp> {
        Box::pin(async move { Ok(self.clock.now()) })
    }
}

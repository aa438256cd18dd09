//! The port: every method is a task that takes a session, asks, and gives it back.
//!
//! Invariant: nothing is decided here. Read next: `transact`, `claim`, `load`.

use std::future::Future;
use std::sync::Arc;

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
use onceward_domain::ports::store::{Expiring, OrderFilter, PageRequest, Store, Work};
use onceward_domain::purchase::Purchase;
use onceward_domain::retention::Aged;
use onceward_domain::tally::Tally;
use onceward_domain::time::Timestamp;

use crate::load::{Mode, load};
use crate::open::{PostgresStore, Shared};
use crate::pool::{Lent, Pool};
use crate::settings::{self, Security, ServerSettings};
use crate::{claim, credit, group, list, money, notice, retention, tally, transact};

impl PostgresStore {
    /// Asks something in a task of its own, on a session for look-ups.
    fn ask<T, F, A>(&self, doing: &'static str, question: F) -> Answer<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(Arc<Shared>, Lent) -> A + Send + 'static,
        A: Future<Output = Result<T, Error>> + Send + 'static,
    {
        self.ask_of(doing, |shared| &shared.works, question)
    }

    /// The same on a session of this pool.
    fn ask_of<T, F, A>(&self, doing: &'static str, pool: fn(&Shared) -> &Pool, question: F) -> Answer<'_, T>
    where
        T: Send + 'static,
        F: FnOnce(Arc<Shared>, Lent) -> A + Send + 'static,
        A: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        Box::pin(self.apart(doing, async move {
            let link = pool(&shared).link().await?;
            let giving_up = link.giving_up();
            pool(&shared).answered(giving_up, question(Arc::clone(&shared), link)).await
        }))
    }

    /// The server's settings, for people and for `doctor`.
    ///
    /// # Errors
    /// `Unavailable` where the server cannot be asked.
    pub async fn settings(&self) -> Result<ServerSettings, Error> {
        self.ask("settings", |_, link| async move { settings::read(&link).await }).await
    }

    /// How the line to the server is secured, for `doctor`.
    ///
    /// # Errors
    /// `Unavailable` where the server cannot be asked.
    pub async fn security(&self) -> Result<Security, Error> {
        self.ask("security", |_, link| async move { settings::security(&link).await }).await
    }
}

impl Store for PostgresStore {
    fn transact(&self, work: Work) -> Answer<'_, ()> {
        let shared = Arc::clone(&self.shared);
        Box::pin(self.apart(work.name, async move { transact::transact(&shared, work).await }))
    }

    fn view(&self, need: Need) -> Answer<'_, Facts> {
        self.ask("view", |shared, link| async move {
            let facts = load(&shared, &link, &need, Mode::Snapshot).await?;
            link.batch("ending a look", "COMMIT").await?;
            link.set_in_transaction(false);
            Ok(facts)
        })
    }

    fn claim_due(&self, request: ClaimRequest) -> Answer<'_, Vec<Claimed>> {
        let shared = Arc::clone(&self.shared);
        Box::pin(self.apart("claim", async move { claim::claim(&shared, request).await }))
    }

    fn next_due(&self, lane: Lane) -> Answer<'_, Option<Timestamp>> {
        self.ask("next_due", |shared, link| async move { list::next_due(&shared, &link, &lane).await })
    }

    fn find_due(&self, lane: Lane, purchase: PurchaseId) -> Answer<'_, Option<Waiting>> {
        self.ask("find_due", move |shared, link| async move {
            list::find_due(&shared, &link, &lane, purchase).await
        })
    }

    fn list_due(&self, lane: Lane, limit: u32, after: Option<Arc<str>>) -> Answer<'_, Vec<Waiting>> {
        self.ask("list_due", move |shared, link| async move {
            list::list_due(&shared, &link, &lane, (limit, after)).await
        })
    }

    fn lanes(&self) -> Answer<'_, Vec<LaneStatus>> {
        self.ask_of(
            "lanes",
            |shared| &shared.sums,
            |shared, link| async move { list::lanes(&shared, &link).await },
        )
    }

    fn paused(&self) -> Answer<'_, Vec<Lane>> {
        self.ask("paused", |_, link| async move { list::paused(&link).await })
    }

    fn list_skus(&self, limit: u32, after: Option<SkuKey>) -> Answer<'_, Vec<Sku>> {
        self.ask("list_skus", move |_, link| async move { list::skus(&link, limit, after.as_ref()).await })
    }

    fn list_orders(&self, filter: OrderFilter, page: PageRequest) -> Answer<'_, Vec<Purchase>> {
        self.ask("list_orders", move |shared, link| async move {
            list::orders(&shared, &link, &filter, page).await
        })
    }

    fn expiries(&self, limit: u32, after: Option<Expiring>) -> Answer<'_, Vec<Expiring>> {
        self.ask("expiries", move |_, link| async move { list::expiries(&link, limit, after).await })
    }

    fn list_cases(&self, page: PageRequest) -> Answer<'_, Vec<(i64, Case)>> {
        self.ask("list_cases", move |_, link| async move { money::cases(&link, page).await })
    }

    fn list_notices(&self, page: PageRequest) -> Answer<'_, Vec<(i64, Notice)>> {
        self.ask("list_notices", move |_, link| async move { notice::list(&link, page).await })
    }

    fn aged(&self, limit: u32, after: Aged) -> Answer<'_, Vec<Aged>> {
        self.ask("aged", move |_, link| async move { retention::aged(&link, limit, &after).await })
    }

    fn list_groups(&self, status: Option<GroupStatus>, page: PageRequest) -> Answer<'_, Vec<GroupOrder>> {
        self.ask("list_groups", move |_, link| async move { group::list(&link, status, page).await })
    }

    fn group_transitions(&self, group: GroupId) -> Answer<'_, Vec<GroupTransition>> {
        self.ask("group_transitions", |_, link| async move { group::transitions(&link, &group).await })
    }

    fn list_entries(&self, account: AccountId, page: PageRequest) -> Answer<'_, Vec<Entry>> {
        self.ask("list_entries", move |_, link| async move { credit::entries(&link, &account, page).await })
    }

    fn standing(&self, account: AccountId, at: Timestamp) -> Answer<'_, Option<Standing>> {
        self.ask("standing", move |_, link| async move { credit::standing(&link, &account, at).await })
    }

    fn transitions(&self, purchase: PurchaseId) -> Answer<'_, Vec<Transition>> {
        self.ask("transitions", move |_, link| async move { list::transitions(&link, purchase).await })
    }

    fn tally(&self) -> Answer<'_, Tally> {
        self.ask_of(
            "tally",
            |shared| &shared.sums,
            |shared, link| async move { tally::tally(&shared, &link).await },
        )
    }

    fn now(&self) -> Answer<'_, Timestamp> {
        self.ask("now", |shared, link| async move { shared.time.now(&link).await })
    }
}

//! The port: every method either goes to the writer or asks a reader.
//!
//! Invariant: nothing is decided here. Read next: `writer`, `readers`.

use std::path::Path;
use std::sync::Arc;

use onceward_domain::catalogue::Sku;
use onceward_domain::changes::Transition;
use onceward_domain::credit::{Entry, Standing};
use onceward_domain::due::{ClaimRequest, Claimed, Lane, LaneStatus, Waiting};
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

use crate::failure::failed;
use crate::keeper::log_of;
use crate::open::SqliteStore;
use crate::{credit, group, list, load, money, notice, queries, remembered, retention};

impl Store for SqliteStore {
    fn transact(&self, work: Work) -> Answer<'_, ()> {
        Box::pin(self.writer.transact(work))
    }

    fn view(&self, need: Need) -> Answer<'_, Facts> {
        let clock = self.clock.clone();
        Box::pin(
            self.readers.ask(move |reader| load::load(&reader.conn, &mut reader.refs, &need, clock.now())),
        )
    }

    fn claim_due(&self, request: ClaimRequest) -> Answer<'_, Vec<Claimed>> {
        Box::pin(self.writer.claim(request))
    }

    fn next_due(&self, lane: Lane) -> Answer<'_, Option<Timestamp>> {
        Box::pin(self.readers.ask(move |reader| list::next_due(&reader.conn, &mut reader.refs, &lane)))
    }

    fn find_due(&self, lane: Lane, purchase: PurchaseId) -> Answer<'_, Option<Waiting>> {
        let clock = self.clock.clone();
        Box::pin(
            self.readers.ask(move |reader| {
                list::find_due(&reader.conn, &mut reader.refs, &lane, purchase, clock.now())
            }),
        )
    }

    fn list_due(&self, lane: Lane, limit: u32, after: Option<Arc<str>>) -> Answer<'_, Vec<Waiting>> {
        let clock = self.clock.clone();
        Box::pin(self.readers.ask(move |reader| {
            list::list_due(&reader.conn, &mut reader.refs, &lane, (limit, after), clock.now())
        }))
    }

    fn lanes(&self) -> Answer<'_, Vec<LaneStatus>> {
        let clock = self.clock.clone();
        Box::pin(self.readers.ask(move |reader| remembered::lanes(reader, clock.now())))
    }

    fn paused(&self) -> Answer<'_, Vec<Lane>> {
        Box::pin(self.readers.ask(|reader| list::paused(&reader.conn, &mut reader.refs)))
    }

    fn list_skus(&self, limit: u32, after: Option<SkuKey>) -> Answer<'_, Vec<Sku>> {
        Box::pin(self.readers.ask(move |reader| list::skus(&reader.conn, limit, after.as_ref())))
    }

    fn list_orders(&self, filter: OrderFilter, page: PageRequest) -> Answer<'_, Vec<Purchase>> {
        Box::pin(self.readers.ask(move |reader| list::orders(&reader.conn, &mut reader.refs, &filter, page)))
    }

    fn expiries(&self, limit: u32, after: Option<Expiring>) -> Answer<'_, Vec<Expiring>> {
        Box::pin(self.readers.ask(move |reader| list::expiries(&reader.conn, limit, after)))
    }

    fn list_cases(&self, page: PageRequest) -> Answer<'_, Vec<(i64, Case)>> {
        Box::pin(self.readers.ask(move |reader| money::cases(&reader.conn, page)))
    }

    fn list_notices(&self, page: PageRequest) -> Answer<'_, Vec<(i64, Notice)>> {
        Box::pin(self.readers.ask(move |reader| notice::list(&reader.conn, page)))
    }

    fn aged(&self, limit: u32, after: Aged) -> Answer<'_, Vec<Aged>> {
        Box::pin(self.readers.ask(move |reader| retention::aged(&reader.conn, limit, &after)))
    }

    fn list_groups(&self, status: Option<GroupStatus>, page: PageRequest) -> Answer<'_, Vec<GroupOrder>> {
        Box::pin(self.readers.ask(move |reader| group::list(&reader.conn, status, page)))
    }

    fn group_transitions(&self, group: GroupId) -> Answer<'_, Vec<GroupTransition>> {
        Box::pin(self.readers.ask(move |reader| group::transitions(&reader.conn, &mut reader.refs, &group)))
    }

    fn list_entries(&self, account: AccountId, page: PageRequest) -> Answer<'_, Vec<Entry>> {
        Box::pin(
            self.readers.ask(move |reader| credit::entries(&reader.conn, &mut reader.refs, &account, page)),
        )
    }

    fn standing(&self, account: AccountId, at: Timestamp) -> Answer<'_, Option<Standing>> {
        Box::pin(self.readers.ask(move |reader| credit::standing(&reader.conn, &account, at)))
    }

    fn transitions(&self, purchase: PurchaseId) -> Answer<'_, Vec<Transition>> {
        Box::pin(self.readers.ask(move |reader| list::transitions(&reader.conn, &mut reader.refs, purchase)))
    }

    fn tally(&self) -> Answer<'_, Tally> {
        let (clock, bytes) = (self.clock.clone(), bytes_on_disk(&self.path));
        Box::pin(self.readers.ask(move |reader| remembered::tally(reader, clock.now(), bytes)))
    }

    fn now(&self) -> Answer<'_, Timestamp> {
        let clock = self.clock.clone();
        Box::pin(self.readers.ask(move |reader| {
            // Reads the file, so that an answer means that the store is there.
            let read = reader
                .conn
                .prepare_cached(queries::SCHEMA_COUNT)
                .and_then(|mut statement| statement.exists([]));
            read.map(|_| clock.now()).map_err(failed("reading from the file"))
        }))
    }
}

/// The file and its log; a file that cannot be looked at counts nothing.
fn bytes_on_disk(path: &Path) -> u64 {
    [path.to_path_buf(), log_of(path)]
        .iter()
        .filter_map(|file| std::fs::metadata(file).ok())
        .map(|data| data.len())
        .sum()
}

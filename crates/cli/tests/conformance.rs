//! Gate, bus and queue over the embedded store keep every promise of their ports (EM-02), as they do over the model.
//!
//! It stands here because only the binary's crate may know a store and the engine at once.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use onceward::journal_admission::JournalAdmission;
use onceward::store_admission::StoreAdmission;
use onceward::store_bus::StoreBus;
use onceward::store_deadline::StoreTrigger;
use onceward::store_queue::StoreQueue;
use onceward_domain::ports::admission::Admission;
use onceward_domain::ports::store::{PageRequest, Store};
use onceward_sqlite::{OpenOptions, SqliteStore};
use onceward_testkit::block_on::block_on;
use onceward_testkit::clock::ManualClock;
use onceward_testkit::conformance::{admission, bus, deadline, due_queue};
use onceward_testkit::ids::CountingIds;

struct Folder {
    path: PathBuf,
    stores: AtomicU32,
}

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("onceward-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder can be made");
        Self { path, stores: AtomicU32::new(0) }
    }

    fn store(&self, clock: Arc<ManualClock>) -> Arc<dyn Store> {
        let path = self.path.join(format!("{}.db", self.stores.fetch_add(1, Ordering::Relaxed)));
        Arc::new(SqliteStore::open(OpenOptions::new(path, clock)).expect("a fresh file opens"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

#[test]
fn em_02_the_embedded_bus_passes_the_suite() {
    let folder = Folder::new("bus");
    bus::run_all(&|clock| Arc::new(StoreBus::new(folder.store(clock), Arc::new(CountingIds::new("bus")))));
}

#[test]
fn em_02_the_embedded_gate_passes_the_suite() {
    let folder = Folder::new("gate");
    admission::run_all(&|clock| {
        let store = folder.store(clock);
        let gate: Arc<dyn Admission> =
            Arc::new(StoreAdmission::new(store.clone(), Arc::new(CountingIds::new("gate"))));
        (store, gate)
    });
}

#[test]
fn em_02_the_embedded_queue_passes_the_suite() {
    let folder = Folder::new("queue");
    due_queue::run_all(&|clock| {
        let store = folder.store(clock);
        let queue = Arc::new(StoreQueue::new(store.clone()));
        let notices = move || {
            let page = PageRequest { limit: 10_000, before: None };
            let mut found = block_on(store.list_notices(page)).expect("the store answers");
            found.reverse();
            found.into_iter().map(|(_, notice)| notice).collect()
        };
        due_queue::UnderTest { queue, notices: Box::new(notices) }
    });
}

#[test]
fn em_02_the_embedded_gate_with_a_journal_passes_the_suite() {
    let folder = Folder::new("journal");
    admission::run_all(&|clock| {
        let store = folder.store(clock);
        let gate: Arc<dyn Admission> =
            Arc::new(JournalAdmission::new(store.clone(), Arc::new(CountingIds::new("gate"))));
        (store, gate)
    });
}

#[test]
fn ot_10_the_embedded_deadline_trigger_passes_the_suite() {
    let folder = Folder::new("deadline");
    deadline::run_all(&|clock| {
        let store = folder.store(clock);
        (store.clone(), Arc::new(StoreTrigger::new(store)))
    });
}

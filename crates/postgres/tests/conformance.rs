//! Every promise of the `Store` port, and of the ports that are written over it, on a real server (EM-02, EM-05).

mod real;

use std::sync::Arc;

use onceward::journal_admission::JournalAdmission;
use onceward::store_admission::StoreAdmission;
use onceward::store_bus::StoreBus;
use onceward::store_deadline::StoreTrigger;
use onceward::store_queue::StoreQueue;
use onceward_domain::ports::admission::Admission;
use onceward_domain::ports::store::{PageRequest, Store};
use onceward_testkit::block_on::block_on;
use onceward_testkit::clock::ManualClock;
use onceward_testkit::conformance::{admission, bus, deadline, due_queue, store};
use onceward_testkit::ids::CountingIds;
use real::Ground;

fn fresh(ground: &Ground, clock: Arc<ManualClock>) -> Arc<dyn Store> {
    Arc::new(ground.store(clock))
}

#[test]
fn em_02_the_cluster_store_keeps_every_promise() {
    let ground = Ground::new("store");
    store::run_all(&|clock| fresh(&ground, clock));
}

#[test]
fn em_05_the_bus_over_the_cluster_store_passes_the_suite() {
    let ground = Ground::new("bus");
    bus::run_all(&|clock| Arc::new(StoreBus::new(fresh(&ground, clock), Arc::new(CountingIds::new("bus")))));
}

#[test]
fn em_05_the_gate_over_the_cluster_store_passes_the_suite() {
    let ground = Ground::new("gate");
    admission::run_all(&|clock| {
        let store = fresh(&ground, clock);
        let gate: Arc<dyn Admission> =
            Arc::new(StoreAdmission::new(store.clone(), Arc::new(CountingIds::new("gate"))));
        (store, gate)
    });
}

#[test]
fn em_05_the_gate_with_a_journal_over_the_cluster_store_passes_the_suite() {
    let ground = Ground::new("journal");
    admission::run_all(&|clock| {
        let store = fresh(&ground, clock);
        let gate: Arc<dyn Admission> =
            Arc::new(JournalAdmission::new(store.clone(), Arc::new(CountingIds::new("gate"))));
        (store, gate)
    });
}

#[test]
fn em_05_the_queue_over_the_cluster_store_passes_the_suite() {
    let ground = Ground::new("queue");
    due_queue::run_all(&|clock| {
        let store = fresh(&ground, clock);
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
fn ot_10_the_deadline_trigger_over_the_cluster_store_passes_the_suite() {
    let ground = Ground::new("deadline");
    deadline::run_all(&|clock| {
        let store = fresh(&ground, clock);
        (store.clone(), Arc::new(StoreTrigger::new(store)))
    });
}

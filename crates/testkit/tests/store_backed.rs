//! Gate and bus over a store keep the promises of their ports (EM-05), shown over the model store.

use std::sync::Arc;

use onceward::journal_admission::JournalAdmission;
use onceward::queue_deadline::QueueTrigger;
use onceward::store_admission::StoreAdmission;
use onceward::store_bus::StoreBus;
use onceward::store_deadline::StoreTrigger;
use onceward::store_queue::StoreQueue;
use onceward_domain::notice::Notice;
use onceward_domain::ports::admission::Admission;
use onceward_domain::ports::store::{PageRequest, Store};
use onceward_testkit::block_on::block_on;
use onceward_testkit::conformance::{admission, bus, deadline, due_queue};
use onceward_testkit::ids::CountingIds;
use onceward_testkit::model::{Defect, ModelStore};

#[test]
fn em_05_the_store_backed_bus_passes_the_suite() {
    bus::run_all(&|clock| {
        let store = Arc::new(ModelStore::new(clock));
        Arc::new(StoreBus::new(store, Arc::new(CountingIds::new("bus"))))
    });
}

#[test]
fn ot_10_both_deadline_triggers_of_the_embedded_mode_pass_the_suite() {
    deadline::run_all(&|clock| {
        let store: Arc<dyn Store> = Arc::new(ModelStore::new(clock));
        let trigger = Arc::new(StoreTrigger::new(store.clone()));
        (store, trigger)
    });
    deadline::run_all(&|clock| {
        let store: Arc<dyn Store> = Arc::new(ModelStore::new(clock.clone()));
        (store, Arc::new(QueueTrigger::new(clock)))
    });
}

#[test]
fn em_05_the_store_backed_gate_passes_the_suite() {
    admission::run_all(&|clock| {
        let store: Arc<dyn Store> = Arc::new(ModelStore::new(clock));
        let gate = StoreAdmission::new(store.clone(), Arc::new(CountingIds::new("gate")));
        let gate: Arc<dyn Admission> = Arc::new(gate);
        (store, gate)
    });
}

/// A queue over this store, with the store's notices.
fn queue_over(store: ModelStore) -> due_queue::UnderTest {
    let store: Arc<dyn Store> = Arc::new(store);
    let queue = Arc::new(StoreQueue::new(store.clone()));
    due_queue::UnderTest { queue, notices: Box::new(move || notices_of(&*store)) }
}

fn notices_of(store: &dyn Store) -> Vec<Notice> {
    let page = PageRequest { limit: 10_000, before: None };
    let mut found = block_on(store.list_notices(page)).expect("the store answers");
    found.reverse();
    found.into_iter().map(|(_, notice)| notice).collect()
}

#[test]
fn em_05_the_store_backed_queue_passes_the_suite() {
    due_queue::run_all(&|clock| queue_over(ModelStore::new(clock)));
}

#[test]
fn pr_03_the_queues_suite_notices_a_store_without_fencing() {
    let noticed = std::panic::catch_unwind(|| {
        due_queue::run_all(&|clock| queue_over(ModelStore::with_defect(clock, Defect::RepeatTokens)));
    });
    assert!(noticed.is_err(), "the queue's suite is blind");
}

#[test]
fn em_05_the_journalled_gate_passes_the_suite() {
    admission::run_all(&|clock| {
        let store: Arc<dyn Store> = Arc::new(ModelStore::new(clock));
        let gate = JournalAdmission::new(store.clone(), Arc::new(CountingIds::new("gate")));
        let gate: Arc<dyn Admission> = Arc::new(gate);
        (store, gate)
    });
}

#[test]
fn pr_03_all_suites_notice_a_store_without_fencing() {
    let noticed = std::panic::catch_unwind(|| {
        bus::run_all(&|clock| {
            let store = Arc::new(ModelStore::with_defect(clock, Defect::IgnoreTokens));
            Arc::new(StoreBus::new(store, Arc::new(CountingIds::new("bus"))))
        });
    });
    assert!(noticed.is_err(), "the bus's suite is blind");
    let noticed = std::panic::catch_unwind(|| {
        admission::run_all(&|clock| {
            let store: Arc<dyn Store> = Arc::new(ModelStore::with_defect(clock, Defect::IgnoreTokens));
            let gate = StoreAdmission::new(store.clone(), Arc::new(CountingIds::new("gate")));
            let gate: Arc<dyn Admission> = Arc::new(gate);
            (store, gate)
        });
    });
    assert!(noticed.is_err(), "the gate's suite is blind");
    let noticed = std::panic::catch_unwind(|| {
        deadline::run_all(&|clock| {
            let store: Arc<dyn Store> = Arc::new(ModelStore::with_defect(clock, Defect::IgnoreTokens));
            let trigger = Arc::new(StoreTrigger::new(store.clone()));
            (store, trigger)
        });
    });
    assert!(noticed.is_err(), "the deadline trigger's suite is blind");
}

//! Gate and bus over a store keep the promises of their ports (EM-05), shown over the model store.

use std::sync::Arc;

use onceward::store_admission::StoreAdmission;
use onceward::store_bus::StoreBus;
use onceward_domain::ports::admission::Admission;
use onceward_domain::ports::store::Store;
use onceward_testkit::conformance::{admission, bus};
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
fn em_05_the_store_backed_gate_passes_the_suite() {
    admission::run_all(&|clock| {
        let store: Arc<dyn Store> = Arc::new(ModelStore::new(clock));
        let gate = StoreAdmission::new(store.clone(), Arc::new(CountingIds::new("gate")));
        let gate: Arc<dyn Admission> = Arc::new(gate);
        (store, gate)
    });
}

#[test]
fn pr_03_both_suites_notice_a_store_without_fencing() {
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
}

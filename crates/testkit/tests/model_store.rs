//! The model store keeps the promises of the `Store` port, and the suite notices one that does not.

use std::sync::Arc;

use onceward_testkit::conformance::store;
use onceward_testkit::model::{Defect, ModelStore};

#[test]
fn em_02_the_model_store_passes_the_suite() {
    store::run_all(&|clock| Arc::new(ModelStore::new(clock)));
}

#[test]
fn pr_03_the_suite_notices_a_store_without_guards() {
    for defect in [Defect::IgnoreRevisions, Defect::IgnoreTokens] {
        let run = std::panic::catch_unwind(|| {
            store::run_all(&|clock| Arc::new(ModelStore::with_defect(clock, defect)));
        });
        assert!(run.is_err(), "{defect:?} went unnoticed");
    }
}

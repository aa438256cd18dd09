//! Suites that every adapter of a port must pass.
//!
//! Each suite is a list of named cases; a name carries the requirement it shows. Adapters run all of them from a
//! test of their own. Read next: [`store`].

use std::panic::{AssertUnwindSafe, catch_unwind};

pub mod admission;
pub mod archive;
pub mod bus;
pub mod deadline;
pub mod deadline_served;
pub mod due_queue;
pub mod provider;
pub mod store;

/// Runs every case, and panics at the end with the names of those that failed.
fn run_named<F: FnOnce()>(port: &str, cases: impl Iterator<Item = (&'static str, F)>) {
    let failed: Vec<&str> = cases
        .filter_map(|(name, case)| catch_unwind(AssertUnwindSafe(case)).is_err().then_some(name))
        .collect();
    assert!(failed.is_empty(), "the {port} breaks {} promises: {failed:#?}", failed.len());
}

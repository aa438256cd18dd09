//! What every [`Store`] promises, as a table of cases.
//!
//! ```
//! use std::sync::Arc;
//! use onceward_testkit::{conformance::store, model::ModelStore};
//! store::run_all(&|clock| Arc::new(ModelStore::new(clock)));
//! ```
//!
//! Each case gets a fresh store whose time is the given clock. Deliberately absent: a runtime — answers are
//! awaited on the calling thread.

use std::sync::Arc;

use onceward_domain::ports::store::Store;

use crate::clock::ManualClock;
use ground::{Ground, START};

mod claims;
mod credit;
mod facts;
pub(super) mod ground;
mod groups;
mod jobs;
mod lanes;
mod lists;
mod moves;
mod notices;
mod retention;
mod settles;
mod sums;
mod threads;
mod writes;

/// Makes a fresh, empty store that takes its time from the clock.
pub type MakeStore<'a> = &'a dyn Fn(Arc<ManualClock>) -> Arc<dyn Store>;

/// One promise.
#[derive(Clone, Copy)]
pub struct Case {
    /// Requirement or scenario, and what is shown.
    pub name: &'static str,
    check: fn(&Ground),
}

impl std::fmt::Debug for Case {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Case").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Case {
    const fn new(name: &'static str, check: fn(&Ground)) -> Self {
        Self { name, check }
    }

    /// Runs the case on a store that is there and empty, for suites that look at what it leaves behind.
    pub(super) fn check_on(&self, ground: &Ground) {
        (self.check)(ground);
    }

    /// Runs the case on a fresh store; panics where the promise is broken.
    pub fn run(&self, make: MakeStore<'_>) {
        let clock = Arc::new(ManualClock::new(START));
        let store = make(Arc::clone(&clock));
        (self.check)(&Ground::new(clock, store));
    }
}

/// Every case, in reading order.
#[must_use]
pub fn cases() -> Vec<Case> {
    let parts = [
        writes::CASES,
        facts::CASES,
        groups::CASES,
        claims::CASES,
        settles::CASES,
        moves::CASES,
        notices::CASES,
        retention::CASES,
        lanes::CASES,
        credit::CASES,
        jobs::CASES,
        lists::CASES,
        sums::CASES,
        threads::CASES,
    ];
    parts.concat()
}

/// Runs every case, each on a fresh store, and panics at the end with the names of those that failed.
///
/// # Panics
/// Where a case fails.
pub fn run_all(make: MakeStore<'_>) {
    let all = cases();
    super::run_named("store", all.iter().map(|case| (case.name, move || case.run(make))));
}

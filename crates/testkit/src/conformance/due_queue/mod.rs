//! What every [`DueQueue`] promises, as a table of cases.
//!
//! Each case gets a fresh queue whose time is the given clock. Where adapters may differ, the case asks the queue's
//! capabilities. Deliberately absent: the store; a queue of another kind brings its notices to the store on its own way,
//! and the ground says how to look at them.

use std::sync::Arc;

use onceward_domain::notice::Notice;
use onceward_domain::ports::due_queue::DueQueue;

use crate::clock::ManualClock;
use ground::Ground;

use super::store::ground::START;

mod claims;
mod exhaustion;
mod ground;
mod hands;
mod leases;

/// A fresh, empty queue, and how to see the notices that its exhaustions have led to, oldest first. Where the queue does not
/// write them itself, looking carries over what waits to be announced.
pub struct UnderTest {
    /// The queue.
    pub queue: Arc<dyn DueQueue>,
    /// Its notices, as rows.
    pub notices: Box<dyn Fn() -> Vec<Notice>>,
}

/// Makes one that takes its time from the clock.
pub type MakeQueue<'a> = &'a dyn Fn(Arc<ManualClock>) -> UnderTest;

/// One promise: requirement or scenario and what is shown, and how.
type Case = (&'static str, fn(&Ground));

/// Runs every case, each on a fresh queue, and panics at the end with the names of those that failed.
///
/// # Panics
/// Where a case fails.
pub fn run_all(make: MakeQueue<'_>) {
    let all = [claims::CASES, leases::CASES, exhaustion::CASES, hands::CASES].concat();
    let run = |case: fn(&Ground)| {
        let clock = Arc::new(ManualClock::new(START));
        let UnderTest { queue, notices } = make(Arc::clone(&clock));
        case(&Ground { clock, queue, notices });
    };
    super::run_named("due queue", all.iter().map(|(name, case)| (*name, move || run(*case))));
}

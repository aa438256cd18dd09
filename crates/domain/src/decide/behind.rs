//! What a process says of its consumers being far behind, for the deadline workers of every process (FS-17).
//!
//! Invariants: what was said ends by itself, so that consumers which die while they are behind hold nobody up for long; each
//! process speaks for itself alone; it paces work, and decides nothing. Deliberately absent: when consumers count as far behind,
//! which is for the process that runs them. Read next: [`crate::decide::deadline`].

use crate::changes::ChangeSet;
use crate::due::{DueChange, Lane, Member};
use crate::facts::Facts;
use crate::time::{Millis, Timestamp};

/// So long it holds: longer than consumers that are behind take for a batch, and shorter than anybody minds to wait for units.
pub const HOLDS: Millis = Millis(60_000);

/// The consumers of this process are far behind at this time. Said again, it holds for longer.
#[must_use]
pub fn say(process: &Member, now: Timestamp) -> ChangeSet {
    let put = DueChange::Put {
        lane: Lane::new(Lane::BEHIND),
        member: process.clone(),
        due_at: now.plus(HOLDS),
        body: Vec::new(),
    };
    // What is there is not put in again.
    ChangeSet { due: vec![remove(process), put], ..ChangeSet::default() }
}

/// They are not any more.
#[must_use]
pub fn take_back(process: &Member) -> ChangeSet {
    ChangeSet { due: vec![remove(process)], ..ChangeSet::default() }
}

/// Removes what holds no longer of what these processes have said; they may be dead. Needs `due` of each.
#[must_use]
pub fn sweep(facts: &Facts, processes: &[Member]) -> ChangeSet {
    let is_over = |process: &&Member| {
        let said = facts.due.get(&(Lane::new(Lane::BEHIND), Member::clone(process)));
        said.is_some_and(|said| said.due_at <= facts.now)
    };
    ChangeSet { due: processes.iter().filter(is_over).map(remove).collect(), ..ChangeSet::default() }
}

fn remove(process: &Member) -> DueChange {
    DueChange::Remove { lane: Lane::new(Lane::BEHIND), member: process.clone() }
}

//! What a process says of its consumers being far behind, for the deadline workers of every process (FS-17).
//!
//! Invariants: what was said ends by itself, so that consumers which die while they are behind hold nobody up for long, also where
//! it was said by a clock that ran ahead; each process speaks for itself alone; it paces work, and decides nothing. Deliberately absent: when consumers count as far behind,
//! which is for the process that runs them. Read next: [`crate::decide::deadline`].

use crate::changes::ChangeSet;
use crate::due::{DueChange, Lane, Member};
use crate::facts::Facts;
use crate::time::{Millis, Timestamp};

/// So long it holds: longer than consumers that are behind take for a batch, and shorter than anybody minds to wait for units.
pub const HOLDS: Millis = Millis(60_000);

/// Whether what ends at this time is to be said again: half of it is over, or it was said by a clock that has been set back since.
#[must_use]
pub fn is_stale(said_at: Timestamp, now: Timestamp) -> bool {
    said_at > now || now.since(said_at).0 >= HOLDS.0 / 2
}

/// Whether what was said, and is due at this time, holds. What would hold for longer than anything can be said for was said by a clock
/// that ran ahead.
#[must_use]
pub fn holds(due_at: Timestamp, now: Timestamp) -> bool {
    due_at > now && due_at <= now.plus(HOLDS)
}

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
        said.is_some_and(|said| !holds(said.due_at, facts.now))
    };
    ChangeSet { due: processes.iter().filter(is_over).map(remove).collect(), ..ChangeSet::default() }
}

fn remove(process: &Member) -> DueChange {
    DueChange::Remove { lane: Lane::new(Lane::BEHIND), member: process.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fs_17_what_was_said_holds_for_so_long_and_never_by_a_clock_that_ran_ahead() {
        let now = Timestamp(1_000_000);
        for (ahead, expected) in [(0, false), (1, true), (HOLDS.0, true), (HOLDS.0 + 1, false)] {
            assert_eq!(holds(now.plus(Millis(ahead)), now), expected, "{ahead}");
        }
        for (ago, expected) in [(-1, true), (0, false), (HOLDS.0 / 2 - 1, false), (HOLDS.0 / 2, true)] {
            assert_eq!(is_stale(now.minus(Millis(ago)), now), expected, "{ago}");
        }
    }
}

//! What becomes of outbox entries after the bus was asked to take their events (FS-11).
//!
//! Invariants: an entry is done when the bus has acknowledged all of it, and nothing behind one that is not done is done
//! before it, so order is kept. A try is charged only to the first entry that is not done, and only where the bus has shown
//! that it is there: by acknowledging something else, or by refusing. So a bus that is away, or has too much to do, uses up
//! nobody's tries, however long that lasts, and a poison entry dies alone. Deliberately absent: sending, and the store's time.

use crate::retry::{After, RetryPolicy};
use crate::time::Millis;

/// What was learnt about one entry, in the order of the lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// Its body says nothing that anybody could send.
    Unreadable,
    /// It was handed to the bus.
    Offered {
        /// Events that the bus acknowledged.
        acked: usize,
        /// Events that it refused, or did not look at because of one before them.
        rejected: usize,
        /// Events of which nobody knows.
        unknown: usize,
        /// Events that it did not take because it has too much to do.
        busy: usize,
        /// How many claims of the entry there were, this one counted.
        attempts: u32,
        /// Differs from claim to claim, to spread waits by.
        seed: u64,
        /// How long it has been in the outbox.
        age: Millis,
    },
}

/// What becomes of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is done.
    Sent,
    /// It is sent again after this long; the try counts.
    Charged(Millis),
    /// It is sent again after this long; the try does not count, because it was not the entry's fault.
    Kept(Millis),
    /// A person must look.
    GivenUp,
}

/// Judges what one round of sending came to; one fate each, in order.
#[must_use]
pub fn judge(entries: &[Seen], policy: RetryPolicy) -> Vec<Fate> {
    let is_there = shows_itself(entries);
    let mut hold_up: Option<Millis> = None;
    let mut fates = Vec::with_capacity(entries.len());
    for entry in entries {
        fates.push(match (*entry, hold_up) {
            (Seen::Unreadable, _) => Fate::GivenUp,
            (Seen::Offered { rejected: 0, unknown: 0, busy: 0, .. }, None) => Fate::Sent,
            // Not before the one that holds it up, and not by its own fault.
            (Seen::Offered { .. }, Some(wait)) => Fate::Kept(wait),
            (Seen::Offered { rejected, unknown, attempts, seed, age, .. }, None) => {
                let is_at_fault = rejected > 0 || unknown > 0;
                let fate = if is_there && is_at_fault {
                    charge(policy, attempts, seed)
                } else {
                    Fate::Kept(policy.wait_of_age(age))
                };
                hold_up = match fate {
                    Fate::Charged(wait) | Fate::Kept(wait) => Some(wait),
                    Fate::Sent | Fate::GivenUp => Some(Millis(0)),
                };
                fate
            }
        });
    }
    fates
}

fn charge(policy: RetryPolicy, attempts: u32, seed: u64) -> Fate {
    match policy.after(attempts, seed) {
        After::Again(wait) => Fate::Charged(wait),
        After::Exhausted => Fate::GivenUp,
    }
}

/// Whether the bus was there: it took something, or it refused and left nothing open.
fn shows_itself(entries: &[Seen]) -> bool {
    let sum = |of: fn(&Seen) -> usize| entries.iter().map(of).sum::<usize>();
    let acked = sum(|one| if let Seen::Offered { acked, .. } = one { *acked } else { 0 });
    let rejected = sum(|one| if let Seen::Offered { rejected, .. } = one { *rejected } else { 0 });
    let unknown = sum(|one| if let Seen::Offered { unknown, .. } = one { *unknown } else { 0 });
    acked > 0 || (rejected > 0 && unknown == 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const POLICY: RetryPolicy =
        RetryPolicy { first: Millis(100), cap: Some(Millis(30_000)), jitter: 0, attempts: Some(4) };

    fn offered(acked: usize, rejected: usize, unknown: usize, attempts: u32) -> Seen {
        Seen::Offered { acked, rejected, unknown, busy: 0, attempts, seed: 0, age: Millis(8_000) }
    }

    fn busy(acked: usize, busy: usize) -> Seen {
        Seen::Offered { acked, rejected: 0, unknown: 0, busy, attempts: 4, seed: 0, age: Millis(8_000) }
    }

    #[test]
    fn fs_11_only_the_entry_at_fault_pays_and_only_to_a_bus_that_is_there() {
        let table: [(&str, Vec<Seen>, Vec<Fate>); 10] = [
            ("all is taken", vec![offered(3, 0, 0, 1), offered(1, 0, 0, 9)], vec![Fate::Sent, Fate::Sent]),
            (
                "nobody answers",
                vec![offered(0, 0, 3, 4), offered(0, 0, 1, 4)],
                vec![Fate::Kept(Millis(2_000)), Fate::Kept(Millis(2_000))],
            ),
            (
                "what follows an open one in its sequence is not sent",
                vec![offered(0, 2, 1, 4)],
                vec![Fate::Kept(Millis(2_000))],
            ),
            (
                "a bus with too much to do",
                vec![offered(2, 0, 0, 1), busy(1, 1), offered(1, 0, 0, 4)],
                vec![Fate::Sent, Fate::Kept(Millis(2_000)), Fate::Kept(Millis(2_000))],
            ),
            (
                "one that is refused behind what was too much",
                vec![busy(0, 2), offered(0, 1, 0, 4)],
                vec![Fate::Kept(Millis(2_000)), Fate::Kept(Millis(2_000))],
            ),
            ("a refusal counts", vec![offered(0, 1, 0, 2)], vec![Fate::Charged(Millis(200))]),
            ("until tries are used up", vec![offered(0, 1, 0, 4)], vec![Fate::GivenUp]),
            (
                "one fails among others",
                vec![offered(2, 0, 0, 1), offered(1, 0, 1, 3), offered(1, 0, 0, 4), offered(0, 1, 0, 4)],
                vec![
                    Fate::Sent,
                    Fate::Charged(Millis(400)),
                    Fate::Kept(Millis(400)),
                    Fate::Kept(Millis(400)),
                ],
            ),
            (
                "those behind one that is given up begin anew",
                vec![offered(0, 1, 0, 4), offered(1, 0, 0, 4)],
                vec![Fate::GivenUp, Fate::Kept(Millis(0))],
            ),
            (
                "an unreadable one holds up nobody",
                vec![Seen::Unreadable, offered(1, 0, 0, 1)],
                vec![Fate::GivenUp, Fate::Sent],
            ),
        ];
        for (name, entries, fates) in table {
            assert_eq!(judge(&entries, POLICY), fates, "{name}");
        }
    }

    fn any_seen() -> impl Strategy<Value = Seen> {
        prop_oneof![
            1 => Just(Seen::Unreadable),
            9 => (0_usize..3, 0_usize..3, 0_usize..3, 1_u32..6).prop_map(|(a, r, u, n)| offered(a, r, u, n)),
        ]
    }

    proptest! {
        #[test]
        fn fs_11_nothing_overtakes_and_at_most_one_pays(entries in proptest::collection::vec(any_seen(), 0..12)) {
            let fates = judge(&entries, POLICY);
            prop_assert_eq!(fates.len(), entries.len());
            let readable = || entries.iter().zip(&fates).filter(|(seen, _)| **seen != Seen::Unreadable);
            let done = readable().take_while(|(_, fate)| **fate == Fate::Sent).count();
            prop_assert!(readable().skip(done).all(|(_, fate)| *fate != Fate::Sent), "{:?}", fates);
            let paid = readable().filter(|(_, fate)| matches!(fate, Fate::Charged(_) | Fate::GivenUp)).count();
            prop_assert!(paid <= 1);
        }

        #[test]
        fn fs_11_a_silent_bus_uses_up_nobodys_tries(attempts in proptest::collection::vec(1_u32..1_000, 1..9)) {
            let entries: Vec<Seen> = attempts.iter().map(|attempts| offered(0, 0, 1, *attempts)).collect();
            prop_assert!(judge(&entries, POLICY).iter().all(|fate| matches!(fate, Fate::Kept(_))));
        }
    }
}

//! What each buyer does: a pure function of the seed and the buyer's number.
//!
//! Invariants: everybody pays within [`AROUND`] of the moment at which the engine may begin to cancel; a buyer whose money
//! only a callback could tell of has one sent. Deliberately absent: doing any of it; see `lane`.

use onceward_domain::time::Millis;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

/// How far from its order's due-time a payment is made, either way.
pub(super) const AROUND: Millis = Millis(150);
/// Longest wait of a callback that is sent late: some come when the second confirmation has found the money.
pub(super) const DELAY_MAX: Millis = Millis(4_000);

/// What the activity does with money for a cancelled order; both are on sale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Late {
    /// It goes back.
    Refund,
    /// It brings the order back.
    Reinstate,
}

impl Late {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::Refund, Self::Reinstate];

    /// As the API names it; also what the activity is called.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Refund => "refund",
            Self::Reinstate => "reinstate",
        }
    }
}

/// What happens to the word that a payment was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Calling {
    Send,
    Drop,
    Duplicate,
}

impl Calling {
    /// As the API names it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Drop => "drop",
            Self::Duplicate => "duplicate",
        }
    }
}

/// What a buyer does besides paying.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Habit {
    /// Nothing.
    Pays,
    /// Is declined first, and tries again; the word of it may be dropped.
    IsDeclinedFirst(Calling),
    /// Is declined first, pays by another attempt, and then the first one brings money as well.
    PaysTwice,
    /// Asks to cancel, this much before paying.
    Cancels(Millis),
    /// Wants all of it back, and says so twice under one key.
    WantsItBack,
    /// Wants 60 of 100 back, twice under two keys.
    WantsTooMuchBack,
}

/// One buyer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Course {
    /// Bought through the gate, or directly.
    pub(super) is_flash: bool,
    /// In which activity.
    pub(super) late: Late,
    /// When the payment is made, from the order's due-time on.
    pub(super) offset: Millis,
    /// Whether the money moves even where the attempt was closed.
    pub(super) by_force: bool,
    /// What becomes of the callback.
    pub(super) calling: Calling,
    /// How late it is.
    pub(super) delay: Millis,
    /// What else.
    pub(super) habit: Habit,
}

impl Course {
    /// What this buyer does.
    pub(super) fn of(seed: u64, number: usize) -> Self {
        let mixed = seed ^ (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut rng = StdRng::seed_from_u64(mixed);
        let calling = match rng.random_range(0..10_u32) {
            0..=4 => Calling::Send,
            5..=7 => Calling::Drop,
            _ => Calling::Duplicate,
        };
        let delay = match rng.random_range(0..10_u32) {
            0..=3 => 0,
            4..=7 => rng.random_range(1..=300),
            _ => rng.random_range(300..=DELAY_MAX.0),
        };
        let habit = habit(&mut rng);
        // Where an order is paid by one attempt, nobody asks about another: only its callback tells of its money.
        let calling =
            if habit == Habit::PaysTwice && calling == Calling::Drop { Calling::Send } else { calling };
        Self {
            is_flash: rng.random_range(0..4_u32) == 0,
            late: Late::ALL[rng.random_range(0..Late::ALL.len())],
            offset: Millis(rng.random_range(-AROUND.0..=AROUND.0)),
            by_force: rng.random_range(0..2_u32) == 0,
            calling,
            delay: Millis(delay),
            habit,
        }
    }
}

fn habit(rng: &mut StdRng) -> Habit {
    match rng.random_range(0..100_u32) {
        0..=3 => Habit::IsDeclinedFirst(Calling::Send),
        4..=7 => Habit::IsDeclinedFirst(Calling::Drop),
        8..=11 => Habit::PaysTwice,
        12..=23 => Habit::Cancels(Millis(rng.random_range(0..=40))),
        24..=29 => Habit::WantsItBack,
        30..=35 => Habit::WantsTooMuchBack,
        _ => Habit::Pays,
    }
}

/// A figure of the whole plan: equal for equal seeds and builds.
pub(super) fn fingerprint(seed: u64, buyers: usize) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    (0..buyers).fold(0xcbf2_9ce4_8422_2325, |hash: u64, number| {
        let text = format!("{:?}", Course::of(seed, number));
        text.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_seed_is_a_plan_and_every_kind_of_buyer_comes() {
        assert_eq!(fingerprint(7, 100), fingerprint(7, 100));
        assert_ne!(fingerprint(7, 100), fingerprint(8, 100));
        let courses: Vec<Course> = (0..2_000).map(|number| Course::of(7, number)).collect();
        assert!(courses.iter().all(|one| one.offset.0.abs() <= AROUND.0 && one.delay.0 <= DELAY_MAX.0));
        let kinds: BTreeSet<String> = courses
            .iter()
            .filter_map(|one| format!("{:?} {:?}", one.late, one.habit).split('(').next().map(str::to_owned))
            .collect();
        assert_eq!(kinds.len(), 12, "{kinds:?}");
        let forced = courses.iter().filter(|one| one.by_force && one.calling == Calling::Drop).count();
        assert!(forced > 100, "{forced}");
    }
}

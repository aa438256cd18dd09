//! Whether the gate may let buyers in while work piles up behind it (FS-16, FS-17; reference 003 §11.3).
//!
//! Three figures are looked at: how many reservations wait for their message to be sent, how long the oldest of them has
//! waited, and how long everything undecided will take at the pace that was measured. Each has two bounds: admission closes
//! above the one and opens again only when every figure is at or below the other, so it never flaps between them. Invariant:
//! the decision is pure; whoever asks again with the same figures gets the same answer. Deliberately absent: where the
//! figures come from (`engine`), and any refusal: that a reservation is known is found before admission is closed to it.

use crate::time::Millis;

/// What the pace of decisions is counted in: decisions in this many milliseconds.
const KILOSECOND: u64 = 1_000_000;
/// Shortest stretch that a pace is measured over. Decisions come in batches, so a shorter one would see all or nothing.
const STRETCH: Millis = Millis(2_000);
/// A new measurement counts for one part in so many, the pace so far for the others.
const WEIGHT: u64 = 4;
/// The whole of a reservation's time, in the parts that [`Limits::drain`] counts.
pub const WHOLE_DEADLINE: u64 = 1_000;

/// Two bounds of one figure: what lies between them changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Band {
    /// Above this, admission closes.
    closes: u64,
    /// At this or below, it may open.
    opens: u64,
}

impl Band {
    /// A band; a second bound above the first is lowered to it.
    ///
    /// ```
    /// use onceward_domain::governor::Band;
    /// assert_eq!(Band::new(10, 20), Band::new(10, 10));
    /// ```
    #[must_use]
    pub fn new(closes: u64, opens: u64) -> Self {
        Self { closes, opens: opens.min(closes) }
    }

    /// A band that opens at half of what closes it.
    #[must_use]
    pub fn above(closes: u64) -> Self {
        Self::new(closes, closes / 2)
    }

    /// The bound that closes.
    #[must_use]
    pub fn closes(self) -> u64 {
        self.closes
    }

    fn is_above(self, figure: u64) -> bool {
        figure > self.closes
    }

    fn is_calm(self, figure: u64) -> bool {
        figure <= self.opens
    }
}

/// The bounds of all three figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Reservations whose message was not sent.
    pub unsent: Band,
    /// Milliseconds for which the oldest of them has waited: so long has the bus taken nothing.
    pub outage: Band,
    /// Time that the undecided ones will take, in thousandths of what a reservation has until its business deadline.
    pub drain: Band,
    /// So few undecided ones close nothing, however slow the consumers are.
    pub undecided_floor: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Some seconds of a hot sale: a sender that is alive never has so many.
            unsent: Band::above(100_000),
            // The critical threshold of reference 003 §12.3, and its warning.
            outage: Band::new(15_000, 3_000),
            // Half of the time is kept for what an estimate cannot know.
            drain: Band::new(WHOLE_DEADLINE / 2, WHOLE_DEADLINE / 4),
            undecided_floor: 1_000,
        }
    }
}

/// What is seen behind the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sight {
    /// Reservations whose message no bus has acknowledged.
    pub unsent: u64,
    /// How long the oldest of them has waited.
    pub oldest_unsent: Millis,
    /// Units that were let in and of which the gate has not heard a decision.
    pub undecided: u64,
    /// Decisions in a thousand seconds; none while nothing was measured.
    pub pace: Option<u64>,
    /// Shortest time that a reservation on sale has until its business deadline.
    pub deadline: Millis,
}

impl Sight {
    /// How long the undecided ones will take; none where that cannot be said.
    #[must_use]
    pub fn drain(&self) -> Option<Millis> {
        if self.undecided == 0 {
            return Some(Millis(0));
        }
        let long = match self.pace? {
            0 => i64::MAX,
            pace => {
                let long = u128::from(self.undecided) * u128::from(KILOSECOND) / u128::from(pace);
                i64::try_from(long).unwrap_or(i64::MAX)
            }
        };
        Some(Millis(long))
    }

    /// The same in thousandths of the deadline; nothing where it cannot be said, or where too few wait to matter.
    fn drain_share(&self, floor: u64) -> u64 {
        let Some(drain) = self.drain().filter(|_| self.undecided > floor) else { return 0 };
        let deadline = u128::from(self.deadline.0.max(1).unsigned_abs());
        let share = u128::from(drain.0.unsigned_abs()) * u128::from(WHOLE_DEADLINE) / deadline;
        u64::try_from(share).unwrap_or(u64::MAX)
    }
}

/// Why admission is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trouble {
    /// Too many reservations wait to be sent.
    Unsent,
    /// The bus has taken nothing for too long.
    Outage,
    /// What waits cannot be decided in time.
    Backlog,
}

impl Trouble {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::Unsent, Self::Outage, Self::Backlog];

    /// The reason's name, for metrics and operators.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Unsent => "unsent",
            Self::Outage => "outage",
            Self::Backlog => "backlog",
        }
    }
}

/// Whether buyers are let in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Passage {
    /// They are.
    #[default]
    Open,
    /// They are not, for this reason.
    Closed(Trouble),
}

impl Passage {
    /// What follows from a sight.
    ///
    /// ```
    /// use onceward_domain::{governor::{Limits, Passage, Sight, Trouble}, time::Millis};
    /// let (limits, deadline) = (Limits::default(), Millis(300_000));
    /// let calm = Sight { unsent: 0, oldest_unsent: Millis(0), undecided: 0, pace: None, deadline };
    /// let away = Sight { unsent: 1, oldest_unsent: Millis(15_001), ..calm };
    /// let between = Sight { unsent: 1, oldest_unsent: Millis(9_000), ..calm };
    /// let closed = Passage::Open.next(&away, &limits);
    /// assert_eq!(closed, Passage::Closed(Trouble::Outage));
    /// assert_eq!(closed.next(&between, &limits), closed);
    /// assert_eq!(closed.next(&calm, &limits), Passage::Open);
    /// ```
    #[must_use]
    pub fn next(self, sight: &Sight, limits: &Limits) -> Self {
        let figures = [
            (Trouble::Unsent, limits.unsent, sight.unsent),
            (Trouble::Outage, limits.outage, sight.oldest_unsent.0.max(0).unsigned_abs()),
            (Trouble::Backlog, limits.drain, sight.drain_share(limits.undecided_floor)),
        ];
        let above = figures.iter().find(|(_, band, figure)| band.is_above(*figure));
        let is_calm = figures.iter().all(|(_, band, figure)| band.is_calm(*figure));
        match (self, above) {
            (_, Some((trouble, ..))) => Self::Closed(*trouble),
            (Self::Closed(_), None) if is_calm => Self::Open,
            (same, None) => same,
        }
    }
}

/// Measures the pace at which reservations are decided.
///
/// While something waits all the time, what is decided is what the consumers can do. While nothing waits it is only what
/// comes in, so the pace is then never lowered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Meter {
    pace: Option<u64>,
    decided: u64,
    within: i64,
    was_idle: bool,
}

/// What happened since a meter was last fed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Units that were decided.
    pub decided: u64,
    /// For so long.
    pub within: Millis,
    /// Units that wait now.
    pub undecided: u64,
}

impl Meter {
    /// Takes a reading.
    pub fn feed(&mut self, reading: Reading) {
        self.decided = self.decided.saturating_add(reading.decided);
        self.within = self.within.saturating_add(reading.within.0.max(0));
        self.was_idle |= reading.undecided == 0;
        if self.within < STRETCH.0 {
            return;
        }
        let measured =
            u128::from(self.decided) * u128::from(KILOSECOND) / u128::from(self.within.unsigned_abs());
        let measured = u64::try_from(measured).unwrap_or(u64::MAX);
        self.pace = match (self.pace, self.was_idle) {
            // Nothing came, so nothing was learnt.
            (pace, true) if self.decided == 0 => pace,
            (None, _) => Some(measured),
            (Some(pace), true) => Some(pace.max(measured)),
            (Some(pace), false) => Some(pace - pace / WEIGHT + measured / WEIGHT),
        };
        (self.decided, self.within, self.was_idle) = (0, 0, false);
    }

    /// Decisions in a thousand seconds; none while nothing was measured.
    #[must_use]
    pub fn pace(&self) -> Option<u64> {
        self.pace
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DEADLINE: Millis = Millis(100_000);

    fn limits() -> Limits {
        Limits {
            unsent: Band::new(100, 40),
            outage: Band::new(10_000, 2_000),
            drain: Band::new(500, 200),
            undecided_floor: 10,
        }
    }

    /// `pace` in decisions a second.
    fn sight(unsent: u64, oldest: i64, undecided: u64, pace: Option<u64>) -> Sight {
        let pace = pace.map(|pace| pace * 1_000);
        Sight { unsent, oldest_unsent: Millis(oldest), undecided, pace, deadline: DEADLINE }
    }

    #[test]
    fn fs_16_fs_17_admission_closes_above_one_bound_and_opens_at_the_other() {
        use Passage::{Closed, Open};
        use Trouble::{Backlog, Outage, Unsent};
        let table = [
            (Open, sight(0, 0, 0, None), Open),
            (Open, sight(100, 10_000, 50, Some(1)), Open),
            (Open, sight(101, 0, 0, None), Closed(Unsent)),
            (Open, sight(1, 10_001, 0, None), Closed(Outage)),
            (Open, sight(0, 0, 51, Some(1)), Closed(Backlog)),
            (Open, sight(0, 0, 10, Some(0)), Open),
            (Open, sight(0, 0, 11, Some(0)), Closed(Backlog)),
            (Open, sight(0, 0, 1_000_000, None), Open),
            (Closed(Unsent), sight(41, 0, 0, None), Closed(Unsent)),
            (Closed(Unsent), sight(40, 2_000, 20, Some(1)), Open),
            (Closed(Outage), sight(1, 2_001, 0, None), Closed(Outage)),
            (Closed(Unsent), sight(0, 10_001, 0, None), Closed(Outage)),
            (Closed(Backlog), sight(0, 0, 21, Some(1)), Closed(Backlog)),
            (Closed(Backlog), sight(0, 0, 20, Some(1)), Open),
            (Closed(Outage), sight(0, 0, 0, Some(0)), Open),
        ];
        for (before, sight, after) in table {
            assert_eq!(before.next(&sight, &limits()), after, "{before:?} {sight:?}");
        }
    }

    #[test]
    fn fs_17_the_time_to_drain_is_what_waits_over_the_pace() {
        // Reference 003 §11.3: a million eight hundred thousand at a thousand a second are half an hour.
        let reference = sight(0, 0, 1_800_000, Some(1_000));
        assert_eq!(reference.drain(), Some(Millis(1_800_000)));
        assert_eq!(sight(0, 0, 5, None).drain(), None);
        assert_eq!(sight(0, 0, 0, None).drain(), Some(Millis(0)));
        assert_eq!(sight(0, 0, u64::MAX, Some(0)).drain(), Some(Millis(i64::MAX)));
    }

    #[test]
    fn fs_17_an_idle_stretch_never_lowers_the_pace_and_a_busy_one_does() {
        let mut meter = Meter::default();
        let feed = |meter: &mut Meter, decided, undecided| {
            meter.feed(Reading { decided, within: STRETCH, undecided });
            meter.pace()
        };
        assert_eq!(feed(&mut meter, 0, 0), None, "nothing happened");
        assert_eq!(feed(&mut meter, 2_000, 50), Some(1_000_000));
        assert_eq!(feed(&mut meter, 10, 0), Some(1_000_000));
        assert_eq!(feed(&mut meter, 4_000, 0), Some(2_000_000));
        assert_eq!(feed(&mut meter, 0, 50), Some(1_500_000));
        for _stretch in 0..60 {
            feed(&mut meter, 0, 50);
        }
        assert!(meter.pace() < Some(10), "consumers that stand still are found out: {:?}", meter.pace());
        let mut short = Meter::default();
        short.feed(Reading { decided: 0, within: Millis(500), undecided: 9 });
        assert_eq!(short.pace(), None, "one batch may be on its way");
    }

    prop_compose! {
        fn any_sight()(
            unsent in 0_u64..200, oldest in 0_i64..20_000, undecided in 0_u64..200,
            pace in proptest::option::of(0_u64..20),
        ) -> Sight {
            sight(unsent, oldest, undecided, pace)
        }
    }

    fn any_band() -> impl Strategy<Value = Band> {
        (0_u64..150, 0_u64..150).prop_map(|(closes, opens)| Band::new(closes, opens))
    }

    prop_compose! {
        fn any_limits()(
            unsent in any_band(), outage in any_band(), drain in any_band(), floor in 0_u64..100,
        ) -> Limits {
            Limits { unsent, outage, drain, undecided_floor: floor }
        }
    }

    proptest! {
        #[test]
        fn fs_16_fs_17_between_the_bounds_nothing_flaps(
            limits in any_limits(), sights in proptest::collection::vec(any_sight(), 1..60),
        ) {
            let mut passage = Passage::Open;
            for sight in sights {
                let next = passage.next(&sight, &limits);
                prop_assert_eq!(next.next(&sight, &limits), next, "the same figures say the same again");
                let open_to_open = Passage::Open.next(&sight, &limits) == Passage::Open;
                match (passage, next) {
                    (Passage::Open, Passage::Closed(_)) => prop_assert!(!open_to_open),
                    (Passage::Closed(_), Passage::Open) => prop_assert!(open_to_open, "it would close at once"),
                    (Passage::Open, Passage::Open) | (Passage::Closed(_), Passage::Closed(_)) => {}
                }
                passage = next;
            }
        }

        #[test]
        fn fs_16_what_is_drained_opens(limits in any_limits(), before in any_sight(), pace in proptest::option::of(0_u64..9)) {
            let passage = Passage::Open.next(&before, &limits);
            prop_assert_eq!(passage.next(&sight(0, 0, 0, pace), &limits), Passage::Open);
        }

        #[test]
        fn fs_16_more_trouble_never_opens(limits in any_limits(), one in any_sight(), more in 0_u64..100) {
            let worse = Sight { unsent: one.unsent + more, undecided: one.undecided + more, ..one };
            for before in [Passage::Open, Passage::Closed(Trouble::Unsent)] {
                let is_open = |sight: &Sight| before.next(sight, &limits) == Passage::Open;
                prop_assert!(is_open(&one) || !is_open(&worse));
            }
        }
    }
}

//! What every deadline trigger promises whose server has time of its own, which passes while a case waits.
//!
//! The cases of [`super::deadline`] move a clock to the millisecond; these can only ask again and again. Each is on a fresh
//! trigger, and all run at once, so that they wait together. Invariant: what a case expects never is told too early; how late
//! it may be told is bounded by [`PATIENCE`].

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use onceward_domain::id::PurchaseId;
use onceward_domain::ports::deadline::{DeadlineTrigger, Expiry, Signal, SignalEnd};
use onceward_domain::time::{Millis, Timestamp};

use super::store::ground::id;
use crate::block_on::block_on;

/// A trigger in a server, and the time by which it judges.
pub struct Served {
    /// The trigger.
    pub trigger: Arc<dyn DeadlineTrigger>,
    /// Its time.
    pub now: fn() -> Timestamp,
}

/// Makes a fresh trigger for the case of this name.
pub type MakeServed<'a> = &'a (dyn Fn(&str) -> Served + Sync);

type Case = (&'static str, fn(&Served));

const CASES: &[Case] = &[
    ("ot_11_nothing_is_told_before_its_time_and_it_is_told_then", on_time),
    ("ot_10_what_was_not_settled_is_told_again_and_what_was_is_not", told_again),
    ("ot_04_what_a_server_told_early_is_told_again_at_its_time", early),
    ("ot_10_an_order_that_a_server_is_offered_twice_ends", offered_twice),
    ("lq_02_a_lease_that_a_server_took_back_ends_nothing", stale_receipt),
    ("d_4_five_hundred_at_once_are_told_in_bounded_parts", many_at_once),
    ("d_8_delays_of_24_25_and_400_days_are_taken_and_not_early", long_delays),
    ("d_9_d_13_milliseconds_are_told_apart_by_a_server", exact),
];

/// The shortest lease that servers give.
const LEASE: Millis = Millis(10_000);
/// Longest wait for a telling, on a busy machine whose server looks for ended leases now and then.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long nothing must come for a case to believe that nothing will.
const QUIET: Duration = Duration::from_secs(25);

/// Runs every case at once, and panics at the end with the names of those that failed.
///
/// # Panics
/// Where a case fails.
pub fn run_all(make: MakeServed<'_>) {
    let failed: Vec<&str> = std::thread::scope(|scope| {
        let run = |name: &'static str, case: fn(&Served)| {
            scope.spawn(move || catch_unwind(AssertUnwindSafe(|| case(&make(name)))).is_err())
        };
        let threads: Vec<_> = CASES.iter().map(|(name, case)| (*name, run(name, *case))).collect();
        let has_failed = |thread: std::thread::ScopedJoinHandle<'_, bool>| thread.join().unwrap_or(true);
        threads.into_iter().filter_map(|(name, thread)| has_failed(thread).then_some(name)).collect()
    });
    assert!(failed.is_empty(), "the served trigger breaks {} promises: {failed:#?}", failed.len());
}

impl Served {
    /// Announces orders, each due so long from now; answers the times.
    fn announce(&self, orders: &[(u64, i64)]) -> Vec<Timestamp> {
        let now = (self.now)();
        let expiries: Vec<Expiry> = orders
            .iter()
            .map(|(number, after)| Expiry { due_at: now.plus(Millis(*after)), purchase: id(*number) })
            .collect();
        let times = expiries.iter().map(|one| one.due_at).collect();
        block_on(self.trigger.offer(expiries)).expect("the trigger takes it");
        times
    }

    fn take(&self, limit: u32) -> Vec<Signal> {
        block_on(self.trigger.take(limit, LEASE)).expect("the trigger answers")
    }

    /// Asks until so many orders were told, or patience ends. Each is noted with when it was told.
    fn wait_for(&self, count: usize) -> Vec<(Signal, Timestamp)> {
        let until = Instant::now() + PATIENCE;
        let mut told: Vec<(Signal, Timestamp)> = Vec::new();
        while told.iter().map(|(signal, _)| signal.orders.len()).sum::<usize>() < count {
            assert!(Instant::now() < until, "{} of {count} were told", told.len());
            let signals = self.take(100);
            let now = (self.now)();
            told.extend(signals.into_iter().map(|signal| (signal, now)));
        }
        told
    }

    fn settle(&self, ends: Vec<SignalEnd>) -> u32 {
        block_on(self.trigger.settle(ends)).expect("a settlement is never refused")
    }

    fn ack(&self, told: &[(Signal, Timestamp)]) -> u32 {
        self.settle(told.iter().map(|(signal, _)| SignalEnd::Ack(signal.receipt.clone())).collect())
    }

    fn stays_quiet(&self) {
        let until = Instant::now() + QUIET;
        while Instant::now() < until {
            assert!(self.take(100).is_empty(), "nothing was to be told any more");
        }
    }
}

fn on_time(served: &Served) {
    let due = served.announce(&[(1, 5_000)])[0];
    let told = served.wait_for(1);
    assert_eq!((told[0].0.orders.as_slice(), told[0].0.attempts), ([id(1)].as_slice(), 1));
    assert!(told[0].1 >= due, "told {} ms early", due.since(told[0].1).0);
    served.ack(&told);
}

fn told_again(served: &Served) {
    served.announce(&[(1, 0)]);
    let first = served.wait_for(1);
    let again = served.wait_for(1);
    assert_eq!((again[0].0.orders.as_slice(), again[0].0.attempts), ([id(1)].as_slice(), 2));
    assert!(again[0].1.since(first[0].1).0 >= LEASE.0 / 4, "a lease keeps others away");
    assert_eq!(served.ack(&again), 1);
    served.stays_quiet();
    assert_eq!(served.ack(&again), 0, "a repeat ends nothing and is no error");
}

fn early(served: &Served) {
    served.announce(&[(1, 0)]);
    let told = served.wait_for(1);
    let (receipt, orders) = (told[0].0.receipt.clone(), vec![id(1)]);
    let from = (served.now)();
    let again = SignalEnd::Again { receipt, orders, wait: Millis(4_000) };
    assert_eq!(served.settle(vec![again.clone()]), 1);
    let told = served.wait_for(1);
    assert!(told[0].1 >= from.plus(Millis(4_000)), "to be early twice");
    assert_eq!(told[0].0.attempts, 1, "to be early costs no attempt");
    assert_eq!(served.settle(vec![again]), 0, "whoever does not hold it moves nothing");
    served.ack(&told);
}

fn offered_twice(served: &Served) {
    served.announce(&[(1, 100)]);
    served.announce(&[(1, 100)]);
    let mut tellings = served.ack(&served.wait_for(1));
    let until = Instant::now() + QUIET;
    while Instant::now() < until {
        let told = served.take(100);
        assert!(told.iter().all(|one| one.orders == [id(1)]));
        tellings += served.settle(told.into_iter().map(|one| SignalEnd::Ack(one.receipt)).collect());
    }
    assert!((1..=2).contains(&tellings), "told once or twice, then never again: {tellings}");
}

fn stale_receipt(served: &Served) {
    served.announce(&[(1, 0)]);
    let first = served.wait_for(1);
    let second = served.wait_for(1);
    assert_eq!(served.ack(&first), 0);
    assert_eq!(served.ack(&second), 1);
    served.stays_quiet();
}

fn many_at_once(served: &Served) {
    const COUNT: u64 = 500;
    const PART: u32 = 7;
    for number in 0..COUNT {
        served.announce(&[(number, 3_000)]);
    }
    let (mut told, until) = (BTreeSet::new(), Instant::now() + 2 * PATIENCE);
    while told.len() < usize::try_from(COUNT).expect("small") {
        assert!(Instant::now() < until, "{} of {COUNT} were told", told.len());
        let part = served.take(PART);
        assert!(part.len() <= usize::try_from(PART).expect("small"));
        told.extend(part.iter().flat_map(|one| one.orders.clone()));
        served.settle(part.into_iter().map(|one| SignalEnd::Ack(one.receipt)).collect());
    }
}

fn long_delays(served: &Served) {
    const DAY: i64 = 24 * 60 * 60 * 1_000;
    served.announce(&[(1, 24 * DAY), (2, 25 * DAY), (3, 400 * DAY)]);
    served.stays_quiet();
}

fn exact(served: &Served) {
    let spread: Vec<(u64, i64)> = [(1, 4_001), (2, 4_000), (3, 4_900), (4, 6_200)].to_vec();
    let times = served.announce(&spread);
    let told = served.wait_for(spread.len());
    for (signal, at) in &told {
        let earliest = signal.orders.iter().map(|order| time_of(&spread, &times, *order)).min();
        assert!(earliest.is_some_and(|due| *at >= due), "{signal:?} at {at:?}");
    }
    served.ack(&told);
}

fn time_of(spread: &[(u64, i64)], times: &[Timestamp], order: PurchaseId) -> Timestamp {
    let place = spread.iter().position(|(number, _)| id(*number) == order).expect("it was announced");
    times[place]
}

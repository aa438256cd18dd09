//! What every [`DeadlineTrigger`] promises while nothing goes wrong: what it was told it tells, at its time and not before,
//! under leases, until it is acknowledged.
//!
//! Each case announces orders as the engine does: due work inside a transaction, an offer after it. Deliberately absent:
//! what a trigger may lose; the sweep's tests are about that.

use std::collections::BTreeMap;
use std::sync::Arc;

use onceward_domain::changes::ChangeSet;
use onceward_domain::id::PurchaseId;
use onceward_domain::ports::deadline::{DeadlineTrigger, Expiry, Signal, SignalEnd};
use onceward_domain::ports::store::Store;
use onceward_domain::time::{Millis, Timestamp};

use super::store::ground::{Ground as StoreGround, LEASE, START, id};
use crate::block_on::block_on;
use crate::clock::ManualClock;

/// Makes a fresh trigger that takes its time from the clock, and the store whose transactions it may write into.
pub type MakeTrigger<'a> = &'a dyn Fn(Arc<ManualClock>) -> (Arc<dyn Store>, Arc<dyn DeadlineTrigger>);

type Case = (&'static str, fn(&Ground));

const CASES: &[Case] = &[
    ("ot_11_nothing_is_told_before_its_time_and_the_wait_for_it_is_known", on_time),
    ("ot_10_what_was_not_settled_is_told_again_after_its_lease", told_again),
    ("ot_10_what_was_acknowledged_is_not_told_again", ends),
    ("ot_10_one_acknowledgement_ends_one_signal", ends_alone),
    ("ot_04_what_came_early_is_told_again_at_its_time", early),
    ("ot_10_an_order_that_is_offered_twice_ends", offered_twice),
    ("lq_02_a_lost_lease_ends_nothing", stale_receipt),
    ("f_5_a_lease_counts_from_the_telling", lease_from_telling),
    ("d_4_five_thousand_on_one_millisecond_are_told_in_bounded_parts", many_at_once),
    ("d_8_delays_of_24_25_and_400_days_are_never_early", long_delays),
    ("d_9_d_13_milliseconds_are_told_apart", exact),
];

/// Runs every case, each on a fresh trigger, and panics at the end with the names of those that failed.
///
/// # Panics
/// Where a case fails.
pub fn run_all(make: MakeTrigger<'_>) {
    let run = |case: fn(&Ground)| {
        let clock = Arc::new(ManualClock::new(START));
        let (store, trigger) = make(Arc::clone(&clock));
        case(&Ground { store: StoreGround::new(Arc::clone(&clock), store), clock, trigger });
    };
    super::run_named("deadline trigger", CASES.iter().map(|(name, case)| (*name, move || run(*case))));
}

struct Ground {
    store: StoreGround,
    clock: Arc<ManualClock>,
    trigger: Arc<dyn DeadlineTrigger>,
}

/// More than any case announces.
const ALL: u32 = 10_000;

impl Ground {
    /// Announces orders in one transaction of this name; each is due so long after the start.
    fn announce(&self, name: &str, orders: &[(u64, i64)]) {
        let expiries: Vec<Expiry> = orders
            .iter()
            .map(|(number, after)| Expiry { due_at: START.plus(Millis(*after)), purchase: id(*number) })
            .collect();
        let due = self.trigger.within(&Arc::from(name), &expiries);
        self.store.must(ChangeSet { due, ..ChangeSet::default() });
        block_on(self.trigger.offer(expiries)).expect("the trigger answers");
    }

    fn take_some(&self, limit: u32) -> Vec<Signal> {
        block_on(self.trigger.take(limit, LEASE)).expect("the trigger answers")
    }

    fn take(&self) -> Vec<Signal> {
        self.take_some(ALL)
    }

    fn settle(&self, ends: Vec<SignalEnd>) -> u32 {
        block_on(self.trigger.settle(ends)).expect("a settlement is never refused")
    }

    fn ack(&self, signals: &[Signal]) -> u32 {
        self.settle(signals.iter().map(|one| SignalEnd::Ack(one.receipt.clone())).collect())
    }

    /// Checks what the trigger says of its next telling, where it can say anything.
    fn next_is(&self, expected: Option<Millis>) {
        let next = block_on(self.trigger.next_in()).expect("the trigger answers");
        let can_say = self.trigger.capabilities().foresight;
        assert_eq!(next, if can_say { expected } else { Some(Millis(0)) });
    }

    fn at(&self, after: i64) {
        self.clock.set(START.plus(Millis(after)));
    }
}

fn orders(signals: &[Signal]) -> Vec<PurchaseId> {
    let mut orders: Vec<PurchaseId> = signals.iter().flat_map(|one| one.orders.clone()).collect();
    orders.sort_unstable();
    orders
}

fn ids<const N: usize>(numbers: [u64; N]) -> Vec<PurchaseId> {
    let mut ids = numbers.map(id).to_vec();
    ids.sort_unstable();
    ids
}

fn on_time(ground: &Ground) {
    assert!(ground.take().is_empty());
    ground.next_is(None);
    ground.announce("a", &[(1, 10_000)]);
    ground.next_is(Some(Millis(10_000)));
    ground.at(9_999);
    assert!(ground.take().is_empty());
    ground.next_is(Some(Millis(1)));
    ground.at(10_000);
    ground.next_is(Some(Millis(0)));
    let told = ground.take();
    assert_eq!(orders(&told), ids([1]));
    assert_eq!(told[0].attempts, 1);
}

fn told_again(ground: &Ground) {
    ground.announce("a", &[(1, 0)]);
    ground.announce("b", &[(2, 0)]);
    assert_eq!(orders(&ground.take()), ids([1, 2]));
    assert!(ground.take().is_empty(), "a lease keeps others away");
    ground.next_is(Some(LEASE));
    ground.at(LEASE.0 - 1);
    assert!(ground.take().is_empty());
    ground.at(LEASE.0);
    let again = ground.take();
    assert_eq!(orders(&again), ids([1, 2]));
    assert!(again.iter().all(|signal| signal.attempts == 2));
}

fn ends(ground: &Ground) {
    ground.announce("a", &[(1, 0), (2, 0)]);
    let told = ground.take();
    assert_eq!(ground.ack(&told), u32::try_from(told.len()).expect("few"));
    ground.next_is(None);
    ground.at(LEASE.0 * 10);
    assert!(ground.take().is_empty());
    assert_eq!(ground.ack(&told), 0, "a repeat ends nothing and is no error");
}

fn ends_alone(ground: &Ground) {
    ground.announce("a", &[(1, 0)]);
    ground.announce("b", &[(2, 0)]);
    let told = ground.take();
    let one: Vec<Signal> = told.into_iter().filter(|signal| signal.orders == [id(1)]).collect();
    assert_eq!(ground.ack(&one), 1);
    ground.at(LEASE.0);
    assert_eq!(orders(&ground.take()), ids([2]));
}

fn early(ground: &Ground) {
    ground.announce("a", &[(1, 0)]);
    let told = ground.take();
    let again = SignalEnd::Again { receipt: told[0].receipt.clone(), orders: vec![id(1)], wait: Millis(500) };
    assert_eq!(ground.settle(vec![again.clone()]), 1);
    ground.next_is(Some(Millis(500)));
    ground.at(499);
    assert!(ground.take().is_empty());
    ground.at(500);
    let told = ground.take();
    assert_eq!((orders(&told), told[0].attempts), (ids([1]), 1), "to be early costs no attempt");
    assert_eq!(ground.settle(vec![again]), 0, "whoever does not hold it moves nothing");
}

fn offered_twice(ground: &Ground) {
    ground.announce("a", &[(1, 100)]);
    ground.announce("b", &[(1, 100)]);
    ground.at(100);
    let mut tellings = 0;
    for _round in 0..5 {
        let told = ground.take();
        assert!(orders(&told).iter().all(|order| *order == id(1)));
        tellings += ground.ack(&told);
    }
    assert!((1..=2).contains(&tellings), "told once or twice, then never again: {tellings}");
    ground.next_is(None);
}

fn stale_receipt(ground: &Ground) {
    ground.announce("a", &[(1, 0)]);
    let first = ground.take();
    ground.at(LEASE.0);
    let second = ground.take();
    assert_eq!(orders(&second), ids([1]));
    assert_eq!(ground.ack(&first), 0);
    let again = SignalEnd::Again { receipt: first[0].receipt.clone(), orders: vec![id(1)], wait: Millis(0) };
    assert_eq!(ground.settle(vec![again]), 0);
    assert!(ground.take().is_empty(), "whoever lost the lease gives nothing back either");
    assert_eq!(ground.ack(&second), 1);
}

fn lease_from_telling(ground: &Ground) {
    ground.announce("a", &[(1, 0)]);
    ground.at(600_000);
    assert_eq!(ground.take().len(), 1);
    ground.next_is(Some(LEASE));
}

fn many_at_once(ground: &Ground) {
    const COUNT: u64 = 5_000;
    const PART: u32 = 64;
    for number in 0..COUNT {
        ground.announce(&format!("m{number:05}"), &[(number, 1_000)]);
    }
    ground.at(1_000);
    let mut told: BTreeMap<PurchaseId, u32> = BTreeMap::new();
    for _ in 0..COUNT {
        let part = ground.take_some(PART);
        if part.is_empty() {
            break;
        }
        assert!(part.len() <= usize::try_from(PART).expect("small"));
        for order in orders(&part) {
            *told.entry(order).or_default() += 1;
        }
        ground.ack(&part);
    }
    assert_eq!(told.len(), usize::try_from(COUNT).expect("small"));
    assert!(told.values().all(|times| *times == 1));
    ground.next_is(None);
}

fn long_delays(ground: &Ground) {
    const DAY: i64 = 24 * 60 * 60 * 1_000;
    let days = [24, 25, 400];
    for (number, days) in (1_u64..).zip(days) {
        ground.announce(&format!("d{days}"), &[(number, days * DAY)]);
    }
    assert!(ground.take().is_empty());
    for (number, days) in (1_u64..).zip(days) {
        ground.at(days * DAY - 1);
        assert!(ground.take().is_empty(), "{days} days");
        ground.next_is(Some(Millis(1)));
        ground.at(days * DAY);
        let told = ground.take();
        assert_eq!(orders(&told), ids([number]), "{days} days");
        ground.ack(&told);
    }
}

fn exact(ground: &Ground) {
    /// 2040-01-01T00:00:00Z.
    const FAR: Timestamp = Timestamp(2_208_988_800_000);
    let far = FAR.since(START).0;
    for (number, millis) in [(1, 2), (2, 0), (3, 1), (4, 900), (5, 200)] {
        ground.announce(&format!("m{number}"), &[(number, far + millis)]);
    }
    for (millis, number) in [(0, 2), (1, 3), (2, 1), (200, 5), (900, 4)] {
        ground.at(far + millis - 1);
        assert!(ground.take().is_empty());
        ground.at(far + millis);
        let told = ground.take();
        assert_eq!(orders(&told), ids([number]));
        ground.ack(&told);
    }
}

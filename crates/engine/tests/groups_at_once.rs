//! Settling with rivals, with workers that stop at every step, and with lives that end in the middle (GS-03, GS-04, LQ-02).

mod house;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use house::circle::{Circle, DEADLINE};
use house::slow::{Actor, SlowLine, SlowStore};
use onceward::Engine;
use onceward::workers::Worker;
use onceward_domain::error::Error;
use onceward_domain::id::{ChargeId, PaymentId};
use onceward_domain::machine::group::Group as Status;
use onceward_domain::machine::group_charge::GroupCharge as Charge;
use onceward_domain::payment::{ChargeWord, Word};
use onceward_domain::ports::Answer;
use onceward_domain::ports::provider::{
    ChargeOrder, ClientData, PaymentOrder, Provider, RawCallback, RefundOrder, Verified,
};
use onceward_testkit::bank::{Bank, Mood};
use onceward_testkit::sim::rng::Rng;

/// Longer than any lease of a settlement.
const PAST_LEASE: i64 = 61_000;

fn slow(circle: &Circle) -> Engine {
    Circle::engine_over(Arc::new(SlowStore(circle.store.clone())), Arc::new(SlowLine(circle.bank.clone())))
}

fn settled_lines(circle: &Circle) -> usize {
    circle.timeline().iter().filter(|line| line.cause == "settled").count()
}

fn assert_charged_once(circle: &Circle, wallets: bool) {
    assert_eq!(circle.status(), Status::Settled);
    assert_eq!(settled_lines(circle), 1);
    for (name, charge) in circle.charges() {
        assert_eq!(charge, Charge::Charged, "{name}");
        if wallets {
            assert_eq!(circle.entries(&name).len(), 2, "{name}: a gift and a charge");
        }
    }
    let expected = if wallets { 0 } else { circle.charges().len() };
    assert_eq!(circle.taken().len(), expected);
    assert!(circle.taken().iter().all(|(_, times)| *times == 1));
}

fn due(wallets: bool) -> Circle {
    let circle = if wallets {
        Circle::with_wallets(&[("ann", 10), ("bob", 30)])
    } else {
        Circle::with("sandbox", 1, &["ann", "bob"])
    };
    circle.clock.set(DEADLINE);
    circle
}

#[test]
fn gs_03_two_workers_on_one_due_group_ten_thousand_times_one_settles() {
    const TIMES: u64 = 10_000;
    let mut met = BTreeSet::new();
    for seed in 0..TIMES {
        let wallets = seed % 2 == 0;
        let circle = due(wallets);
        let engines = [slow(&circle), slow(&circle)];
        let mut rng = Rng::new(seed);
        let mut workers = engines.each_ref().map(|engine| Actor::new(Worker::Settler.step(engine)));
        // Both hold a claim in every third run: the first one's lease ends at a moment that the seed chooses.
        let mut lapses = rng.chance(330).then(|| rng.below(30));
        let mut polls = 0_u64;
        loop {
            if lapses == Some(polls) {
                circle.wait(PAST_LEASE);
                lapses = None;
                met.insert("a lease ended meanwhile");
            }
            polls += 1;
            let chosen = rng.index(2);
            let is_over = workers[chosen].go();
            if is_over && workers[1 - chosen].go() {
                break;
            }
        }
        drop(workers);
        circle.wait(PAST_LEASE);
        circle.rest();
        assert_charged_once(&circle, wallets);
    }
    assert_eq!(met.len(), 1, "claims met");
}

#[test]
fn lq_02_f_2_a_worker_that_stops_past_its_lease_at_any_step_changes_nothing_when_it_goes_on() {
    /// More than a step has.
    const POLLS_LIMIT: usize = 500;
    for wallets in [true, false] {
        let mut stops = 0;
        for stop in 0..POLLS_LIMIT {
            let circle = due(wallets);
            let engine = slow(&circle);
            let mut sleeper = Actor::new(Worker::Settler.step(&engine));
            let ended = (0..stop).any(|_| sleeper.go());
            if ended {
                break;
            }
            stops += 1;
            circle.wait(PAST_LEASE);
            circle.rest();
            assert_charged_once(&circle, wallets);
            let (view, lines) = (circle.view(), circle.timeline());
            let entries: Vec<_> = ["ann", "bob"].map(|name| circle.entries(name)).to_vec();
            drop(sleeper.finish());
            assert_eq!((circle.view(), circle.timeline()), (view, lines), "stopped at {stop}");
            assert_eq!(["ann", "bob"].map(|name| circle.entries(name)).to_vec(), entries);
            assert_charged_once(&circle, wallets);
            circle.assert_invariants();
        }
        assert!((5..POLLS_LIMIT).contains(&stops), "a step has {stops} places to stop at");
    }
}

/// A line to the bank on which a life ends: at this call, before or after the money moved.
struct Mortal {
    bank: Arc<Bank>,
    calls: AtomicU64,
    dies_at: u64,
    after_effect: bool,
}

impl Provider for Mortal {
    fn name(&self) -> &'static str {
        self.bank.name()
    }

    fn create(&self, order: PaymentOrder) -> Answer<'_, ClientData> {
        self.bank.create(order)
    }

    fn query(&self, payment: PaymentId) -> Answer<'_, Word> {
        self.bank.query(payment)
    }

    fn close(&self, payment: PaymentId) -> Answer<'_, Word> {
        self.bank.close(payment)
    }

    fn refund(&self, order: RefundOrder) -> Answer<'_, Word> {
        self.bank.refund(order)
    }

    fn charge(&self, order: ChargeOrder) -> Answer<'_, ChargeWord> {
        let is_last = self.calls.fetch_add(1, Ordering::Relaxed) == self.dies_at;
        if !is_last {
            return self.bank.charge(order);
        }
        Box::pin(async move {
            if self.after_effect {
                drop(self.bank.charge(order).await);
            }
            std::future::pending().await
        })
    }

    fn query_charge(&self, charge: ChargeId) -> Answer<'_, ChargeWord> {
        self.bank.query_charge(charge)
    }

    fn verify(&self, callback: &RawCallback<'_>) -> Result<Verified, Error> {
        self.bank.verify(callback)
    }
}

/// Lives of one settlement that end in the middle; a round has six attempts.
const LIVES: u64 = 3;
/// More turns than a group of a thousand takes.
const TURNS_LIMIT: u32 = 50;

#[test]
fn gs_04_a_thousand_participants_are_charged_once_each_though_answers_are_lost_and_workers_die_200_times() {
    const SEEDS: u64 = 200;
    const PARTICIPANTS: u32 = 1_000;
    for seed in 0..SEEDS {
        let circle = Circle::of_many("sandbox", PARTICIPANTS);
        circle.bank.when_charging(Mood::SilentAfterEffect, false);
        circle.clock.set(DEADLINE);
        let mut rng = Rng::new(seed);
        for _ in 0..LIVES {
            let line = Mortal {
                bank: circle.bank.clone(),
                calls: AtomicU64::new(0),
                dies_at: rng.below(u64::from(PARTICIPANTS) / LIVES),
                after_effect: rng.chance(500),
            };
            let engine = Circle::engine_over(circle.store.clone(), Arc::new(line));
            // A step that stops is a life that ended; what it had begun ends with its lease.
            let died = (0..TURNS_LIMIT).any(|_| !Actor::new(Worker::Settler.step(&engine)).go());
            assert!(died, "seed {seed}: it outlived its end");
            circle.wait(PAST_LEASE);
        }
        assert_eq!(circle.status(), Status::Closed, "seed {seed}: it ended too early to prove anything");
        circle.rest();
        assert_eq!((circle.status(), settled_lines(&circle)), (Status::Settled, 1), "seed {seed}");
        let charges = circle.bank.charges();
        assert_eq!(charges.len(), 1_000, "seed {seed}");
        assert!(charges.values().all(|one| one.times == 1 && one.amount.amount() == 10), "seed {seed}");
        assert!(circle.charges().iter().all(|(_, charge)| *charge == Charge::Charged), "seed {seed}");
        circle.assert_invariants();
    }
}

#[test]
fn gs_04_a_thousand_participants_are_charged_in_bounded_rounds_and_turns() {
    let circle = Circle::of_many("sandbox", 1_000);
    circle.clock.set(DEADLINE);
    let settings = circle.engine.settings();
    let per_turn = settings.charge_round * settings.charge_rounds;
    let mut turns = 0;
    while circle.status() != Status::Settled {
        let before = circle.taken().len();
        circle.step().expect("it steps");
        let charged = circle.taken().len() - before;
        assert!(charged <= per_turn, "{charged} in one turn");
        turns += 1;
        assert!(turns < 100, "it never settles");
    }
    assert_eq!(
        (turns, circle.group().attempts),
        (1_000_usize.div_ceil(per_turn), 1),
        "going on is no attempt"
    );
}

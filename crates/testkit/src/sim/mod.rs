//! The simulator: the real engine over a model store, driven by a seed (PR-03).
//!
//! **Purpose.** One seed is one run: nodes, buyers, a bank, interleavings, crashes, lost answers, copies, jumping clocks.
//! After every step all invariants are checked; at the end everything must have settled.
//!
//! **Invariants.** Single-threaded; chance from one generator; time from one hand-moved clock. Equal seeds give
//! equal traces, on every platform.
//!
//! **Deliberately absent.** Mocks of rules: decisions, operations and workers are the shipped ones.
//!
//! **Read next.** [`run`], then `executor.rs` for how a step is chosen and `audit.rs`, `money.rs`, `group_audit.rs` and
//! `job_audit.rs` for what must hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use onceward_domain::catalogue::{Activity, Bucket, Sku, Stock};
use onceward_domain::changes::ChangeSet;
use onceward_domain::facts::Need;
use onceward_domain::money::{Currency, Money};
use onceward_domain::ports::clock::Clock;
use onceward_domain::ports::store::{Store, Work};
use onceward_domain::time::{Millis, Timestamp};

use crate::block_on::block_on;
use crate::clock::ManualClock;
use crate::model::{Defect, ModelStore};
use executor::Executor;
use rng::Rng;
use scenario::Scenario;
pub use world::Fault;
use world::World;

mod audit;
mod courier;
mod executor;
mod faulty_notifier;
mod faulty_ports;
mod faulty_provider;
mod faulty_store;
mod faulty_trigger;
mod group_audit;
mod group_people;
mod job_audit;
mod job_people;
mod money;
mod net;
mod node;
mod outcome;
mod payer;
mod people;
mod queues;
pub mod rng;
mod scenario;
mod world;

/// When every run begins: 2026-01-01T00:00:00Z.
const START: Timestamp = Timestamp(1_767_225_600_000);

/// How the adapter in front of the bank reads a silent bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Adapter {
    /// Silence is no answer (DR-02).
    #[default]
    Careful,
    /// Silence is taken for "closed", to show that the simulator notices.
    TakesSilenceForClosed,
}

/// What may differ between runs of one seed.
#[derive(Debug, Clone, Copy, Default)]
pub struct SimOptions {
    /// A promise that the store breaks, to show that the simulator notices.
    pub defect: Defect,
    /// A promise that the bank's adapter breaks, likewise.
    pub adapter: Adapter,
    /// How many of the last lines of the trace to keep in the report.
    pub tail: usize,
}

/// What a run found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimReport {
    /// The seed.
    pub seed: u64,
    /// Broken invariants; empty in a good run.
    pub violations: Vec<String>,
    /// Hash of every decision and answer; equal hashes mean equal runs.
    pub trace_hash: u64,
    /// The last lines of the trace, as many as were asked for.
    pub tail: Vec<String>,
    /// Polls and time steps.
    pub steps: u64,
    /// Simulated time.
    pub simulated_ms: i64,
    /// How often interesting cases came about.
    pub sometimes: BTreeMap<&'static str, u64>,
}

/// A run along one fixed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathReport {
    /// What it found.
    pub report: SimReport,
    /// The port calls, in order, by name.
    pub calls: Vec<String>,
}

/// The fixed paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// One buyer reserves the only unit and gets an order.
    Purchase,
    /// A direct order takes the only unit first: the reservation is refused and compensated.
    Rejection,
}

/// Runs one seed.
///
/// ```
/// use onceward_testkit::sim::{SimOptions, run};
/// let report = run(7, &SimOptions::default());
/// assert!(report.violations.is_empty(), "{report:#?}");
/// assert_eq!(report, run(7, &SimOptions::default()));
/// ```
#[must_use]
pub fn run(seed: u64, options: &SimOptions) -> SimReport {
    let scenario = Scenario::draw(&mut Rng::new(seed ^ 0x5ce7_a210));
    let world = open_world(seed, options.defect, &scenario);
    world.keep_tail(options.tail);
    play(seed, &world, Scenario { adapter: options.adapter, ..scenario })
}

/// Runs a fixed path with at most one fault, at the port call of this number (from 0).
///
/// # Panics
/// Where no interleaving follows the path, which would make the run worthless.
#[must_use]
pub fn run_path(path: Path, fault: Option<(u64, Fault)>) -> PathReport {
    /// Interleavings that are tried; about every third follows the path.
    const SEEDS: u64 = 200;
    let follows = |seed: &u64| {
        let met = follow(path, *seed, None).report.sometimes;
        path.cases().iter().all(|case| met.contains_key(case))
    };
    let seed = (0..SEEDS).find(follows).expect("some interleaving follows the path");
    follow(path, seed, fault)
}

impl Path {
    /// Cases that a run along the path meets.
    fn cases(self) -> &'static [&'static str] {
        match self {
            Self::Purchase => &["order_created"],
            Self::Rejection => &["stock_short", "compensated", "direct_order"],
        }
    }
}

fn follow(path: Path, seed: u64, fault: Option<(u64, Fault)>) -> PathReport {
    let scenario = match path {
        Path::Purchase => Scenario::one_purchase(),
        Path::Rejection => Scenario::one_rejection(),
    };
    let world = open_world(seed, Defect::None, &scenario);
    world.record_calls();
    if let Some((call, fault)) = fault {
        world.plan(call, fault);
    }
    let report = play(seed, &world, scenario);
    PathReport { report, calls: world.take_calls() }
}

fn play(seed: u64, world: &Arc<World>, scenario: Scenario) -> SimReport {
    let mut executor = Executor::new(world.clone(), scenario.clone());
    let steps = executor.run();
    if !world.has_violations() {
        outcome::check_events(world);
        outcome::check_audit(world);
        outcome::check_winners(world, &scenario);
    }
    let sometimes = world.take_sometimes();
    SimReport {
        seed,
        violations: world.violations(),
        trace_hash: world.trace_hash(),
        tail: world.take_tail(),
        steps,
        simulated_ms: world.now().since(START).0,
        sometimes,
    }
}

/// A store with the sale in it.
fn open_world(seed: u64, defect: Defect, scenario: &Scenario) -> Arc<World> {
    let clock = Arc::new(ManualClock::new(START));
    let shared: Arc<dyn Clock> = clock.clone();
    let store = Arc::new(ModelStore::with_defect(shared, defect));
    let changes = on_sale(scenario);
    let decide = Arc::new(move |_: &mut _| Ok(changes.clone()));
    let work = Work { name: "simulation.put_on_sale", need: Need::default(), decide };
    block_on(store.transact(work)).expect("an empty store takes a new sale");
    Arc::new(World::new(seed, clock, store))
}

fn on_sale(scenario: &Scenario) -> ChangeSet {
    let mut changes = ChangeSet::default();
    for (number, stall) in scenario.stalls.iter().enumerate() {
        let key = people::sku_key(number);
        changes.activities.push(Activity {
            id: key.activity.clone(),
            name: Arc::from("Simulated sale"),
            starts_at: START.minus(Millis(3_600_000)),
            ends_at: START.plus(onceward_domain::time::LONGEST),
            payment_window: stall.payment_window,
            cancel_grace: Millis(2_000),
            reservation_deadline: stall.deadline,
            confirm_after_cancel: stall.confirm_after,
            late_payment: stall.late_payment,
            cancelled_frees_limit: scenario.frees_limit,
        });
        changes.new_buckets.push(Bucket::full(key.clone(), stall.stock));
        changes.new_skus.push(Sku {
            key,
            price: Money::new(1999, Currency::CNY).expect("a small price"),
            per_user_limit: scenario.per_user_limit,
            limit_since: Timestamp(0),
            buckets: 1,
            opening: stall.stock,
            stock: Stock::full(stall.stock),
            adjustments: 0,
            revision: 0,
        });
    }
    changes
}

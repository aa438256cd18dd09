//! Workers that are paused past their lease at every step (LQ-02, F1, F2): what they do late has no effect.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the message, also in what the tests share")]

mod house;

use std::sync::Arc;

use house::{House, engine_over, usual_activity};
use onceward::workers::Worker;
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::ports::store::Store;
use onceward_domain::time::Millis;
use onceward_testkit::block_on::block_on;
use onceward_testkit::interrupted::Interrupted;

/// More calls than any worker makes in one step.
const CALLS_LIMIT: u64 = 100;

/// Brings a house to where the worker has something to do.
fn prepared(worker: Worker) -> House {
    let house = House::with(2, 2, usual_activity());
    house.reserve_all(&[("u1", "r1", 1), ("u2", "r2", 1), ("u3", "r3", 1)]);
    let before: &[Worker] = match worker {
        Worker::Sender => &[],
        Worker::Consumer => &[Worker::Sender],
        Worker::Relay => &[Worker::Sender, Worker::Consumer],
        Worker::Projector => &[Worker::Sender, Worker::Consumer, Worker::Relay],
        Worker::Deadline => {
            house.clock.advance(usual_activity().reservation_deadline);
            &[]
        }
        Worker::Compensator => {
            house.clock.advance(usual_activity().reservation_deadline);
            &[Worker::Deadline]
        }
        Worker::Expiry => {
            house.rest();
            house.clock.advance(Millis(1_300_000));
            &[]
        }
        Worker::Announcer
        | Worker::Teller
        | Worker::Canceller
        | Worker::Confirmer
        | Worker::Refunder
        | Worker::Herald
        | Worker::Settler
        | Worker::Forwarder
        | Worker::Retention
        | Worker::Sweep
        | Worker::Governor
        | Worker::Watch => panic!("{worker:?} is prepared elsewhere"),
    };
    for worker in before {
        house.step(*worker).unwrap();
    }
    house
}

/// Lets another process do all the work while this one sleeps longer than any lease.
fn meanwhile(house: &House) -> impl FnOnce() + Send + 'static {
    let lease = house.engine.settings().provider_lease;
    let other = House {
        clock: house.clock.clone(),
        store: house.store.clone(),
        engine: engine_over(house.store.clone()),
    };
    move || {
        other.clock.advance(Millis(lease.0 + 1));
        other.rest();
    }
}

/// What a house looks like when everything has come to its end: figures, orders, events, dead letters.
fn end_of(house: &House) -> String {
    house.pass(3_000_000);
    house.assert_invariants();
    let tally = block_on(house.store.tally()).unwrap();
    let lanes: Vec<(String, u64)> = block_on(house.store.lanes())
        .unwrap()
        .into_iter()
        .filter(|lane| lane.size > 0)
        .map(|lane| (lane.lane.to_string(), lane.size))
        .collect();
    let groups: Vec<String> =
        tally.skus.iter().flat_map(|one| &one.groups).map(|one| format!("{one:?}")).collect();
    let released: i64 = tally.skus.iter().map(|one| one.ledger_available).sum();
    format!("{:?} released {released} {groups:?} {lanes:?}", house.figures())
}

fn paused_at_every_step(worker: Worker) {
    // Where two workers race for one reservation, either may win; undisturbed, one does or the other.
    let first = prepared(worker);
    first.step(worker).unwrap();
    let expected = [end_of(&first), end_of(&prepared(worker))];
    for at in 0..CALLS_LIMIT {
        let house = prepared(worker);
        let paused = Arc::new(Interrupted::new(house.store.clone(), at, meanwhile(&house)));
        let slow = engine_over(paused.clone() as Arc<dyn Store>);
        // What it hears late is its own affair; what counts is what is stored.
        drop(block_on(worker.step(&slow)));
        if !paused.was_paused() {
            assert!(at > 1, "{worker:?} made {at} calls only");
            return;
        }
        let end = end_of(&house);
        assert!(
            expected.contains(&end),
            "{worker:?} was paused before call {at}: {end} and not {expected:?}"
        );
    }
    panic!("{worker:?} never came to an end");
}

#[test]
fn lq_02_q_f1_q_f2_a_worker_paused_past_its_lease_at_every_step_changes_nothing_late() {
    for worker in [
        Worker::Sender,
        Worker::Consumer,
        Worker::Relay,
        Worker::Projector,
        Worker::Deadline,
        Worker::Compensator,
        Worker::Expiry,
    ] {
        paused_at_every_step(worker);
    }
}

#[test]
fn ot_06_an_order_that_expired_under_two_workers_is_released_once() {
    let house = prepared(Worker::Expiry);
    let paused = Arc::new(Interrupted::new(house.store.clone(), 2, meanwhile(&house)));
    drop(block_on(Worker::Expiry.step(&engine_over(paused as Arc<dyn Store>))));
    house.rest();
    let order = house.purchase(house.id("u1", "r1")).unwrap().order.unwrap();
    assert_eq!(order.status, OrderStatus::Cancelled);
    assert_eq!(house.figures().0, [2, 0, 0]);
}

//! From one gate to another over the same store: what was promised by the one is kept behind the other.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod house;

use std::sync::Arc;

use house::{House, keys, usual_activity};
use onceward::hand_over::{adopt_journal, holds_open_reservations};
use onceward::operations::queue;
use onceward::workers::{Next, Worker};
use onceward::{Engine, Ports, Settings};
use onceward_domain::due::Lane;
use onceward_domain::ports::admission::ReserveAnswer;
use onceward_testkit::block_on::block_on;
use onceward_testkit::ids::CountingIds;

const STOCK: i64 = 10;

/// A house with two units for each buyer.
fn house() -> House {
    House::with(STOCK, 2, usual_activity())
}

/// The gate becomes one over rows, as several nodes share it.
fn share(house: &mut House) -> usize {
    let adopted = block_on(adopt_journal(&*house.store)).unwrap();
    let ports = Ports::store_backed(house.store.clone(), Arc::new(CountingIds::new("shared")));
    house.engine = Engine::new(ports, keys(), Settings::default());
    adopted
}

/// The gate becomes one that remembers, over a journal.
fn embed(house: &mut House) {
    house.engine = house::engine_over(house.store.clone());
}

fn queued(house: &House, user: &str, request: &str) {
    let answer = house.reserve(user, request, 1);
    assert_eq!(answer, ReserveAnswer::Queued { reservation: house.id(user, request).reservation() });
}

fn is_known(house: &House, user: &str, request: &str) {
    let answer = house.reserve(user, request, 1);
    let reservation = house.id(user, request).reservation();
    assert!(
        matches!(answer, ReserveAnswer::Repeat { reservation: known, .. } if known == reservation),
        "{answer:?}"
    );
}

/// Three open reservations of two buyers, and one that has its order.
fn let_in(house: &House) {
    queued(house, "dan", "r");
    house.rest();
    queued(house, "ann", "r1");
    queued(house, "ann", "r2");
    queued(house, "bob", "r");
}

fn all_are_known(house: &House) {
    for (user, request) in [("dan", "r"), ("ann", "r1"), ("ann", "r2"), ("bob", "r")] {
        is_known(house, user, request);
    }
    assert!(matches!(house.reserve("ann", "r3", 1), ReserveAnswer::LimitReached { .. }));
}

/// Only what rejects and gives back runs, as where no message ever comes.
fn pass_the_deadline(house: &House) {
    house.clock.advance(usual_activity().reservation_deadline);
    for _more_than_needed in 0..10 {
        for worker in [Worker::Deadline, Worker::Relay, Worker::Projector, Worker::Compensator] {
            house.step(worker).unwrap();
        }
    }
    house.assert_invariants();
    assert_eq!(house.figures().1, [STOCK - 1, 0, 1], "what nobody decided on was given back");
    house.rest();
    assert_eq!(house.figures().1, [STOCK - 1, 0, 1], "and messages that come now are late");
    house.assert_invariants();
}

fn everybody_gets_an_order(house: &House) {
    house.rest();
    house.assert_invariants();
    assert_eq!(house.figures(), ([STOCK - 4, 4, 0], [STOCK - 4, 0, 4]));
    assert!(!block_on(holds_open_reservations(&*house.store)).unwrap());
}

#[test]
fn em_05_what_a_journal_states_goes_on_behind_a_gate_over_rows() {
    let mut house = house();
    let_in(&house);
    let before = house.figures();
    assert_eq!(share(&mut house), 3);
    assert_eq!(share(&mut house), 0, "a repeat changes nothing");
    assert_eq!((house.lane(Lane::JOURNAL), house.figures()), (0, before));
    house.assert_invariants();
    let place = |request| house.purchase(house.id("ann", request)).unwrap().lines[0].place;
    assert_ne!(place("r1"), place("r2"), "each holds a place of its own");
    all_are_known(&house);
    everybody_gets_an_order(&house);
}

#[test]
fn fs_15_deadlines_go_on_behind_a_gate_over_rows() {
    let mut house = house();
    let_in(&house);
    share(&mut house);
    pass_the_deadline(&house);
}

#[test]
fn em_05_rows_go_on_behind_a_gate_that_remembers() {
    let mut house = house();
    share(&mut house);
    let_in(&house);
    embed(&mut house);
    house.assert_invariants();
    all_are_known(&house);
    everybody_gets_an_order(&house);
    assert_eq!(house.lane(Lane::DEADLINE), 4, "their deadlines are still ahead");
    house.clock.advance(usual_activity().reservation_deadline);
    house.rest();
    assert_eq!(house.lane(Lane::DEADLINE), 0);
    assert_eq!(house.figures().1, [STOCK - 4, 0, 4]);
}

#[test]
fn fs_15_deadlines_of_rows_go_on_behind_a_gate_that_remembers() {
    let mut house = house();
    share(&mut house);
    let_in(&house);
    embed(&mut house);
    pass_the_deadline(&house);
}

#[test]
fn lq_06_fs_15_a_pause_of_the_deadlines_of_rows_loses_none_of_them() {
    let mut house = house();
    share(&mut house);
    let_in(&house);
    embed(&mut house);
    let pause = |is_paused| block_on(queue::set_paused(&house.engine, Lane::DEADLINE, is_paused, "ann"));
    pause(true).unwrap();
    house.clock.advance(usual_activity().reservation_deadline);
    assert!(matches!(house.step(Worker::Deadline).unwrap(), Next::Wait(_)), "nothing is given out");
    pause(false).unwrap();
    pass_the_deadline(&house);
}

#[test]
fn fs_18_a_gate_elsewhere_hears_whether_the_one_in_the_store_still_holds_something() {
    let mut house = house();
    let holds = |house: &House| block_on(holds_open_reservations(&*house.store)).unwrap();
    for is_shared in [false, true] {
        assert!(!holds(&house));
        queued(&house, &format!("{is_shared}"), "r");
        assert!(holds(&house), "it is not sent");
        house.step(Worker::Sender).unwrap();
        assert!(holds(&house), "it is sent, and nobody has decided on it");
        house.step(Worker::Consumer).unwrap();
        assert!(!holds(&house), "it has its order, although its deadline is still ahead");
        house.rest();
        share(&mut house);
    }
}

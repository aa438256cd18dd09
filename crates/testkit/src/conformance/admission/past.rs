//! What a gate promises about a sale that is long past (FS-14): it may let go of what it kept, and nobody notices.
//!
//! Every case holds for a gate in the store as well, which lets go of nothing: that is what "nobody notices" means. A gate elsewhere
//! must have been given [`WINDOW`] as its retention. Read next: [`Admission::retire`].
//!
//! [`Admission::retire`]: onceward_domain::ports::admission::Admission::retire

use onceward_domain::catalogue::Stock;
use onceward_domain::changes::{ChangeSet, Step, StockMove};
use onceward_domain::machine::reservation::Reservation as Status;
use onceward_domain::machine::transport::Transport;
use onceward_domain::ports::admission::{CompensateCode, Projected, ReserveAnswer, SendSettlement};
use onceward_domain::retention::WINDOW;
use onceward_domain::time::Millis;

use super::super::store::ground::{LEASE, activity, step_of};
use super::{Case, Ground, adjusted, cancelled, created};
use crate::block_on::block_on;
use crate::conformance::store::ground::id;

pub(super) const CASES: &[Case] = &[
    ("fs_14_a_gate_says_of_a_sale_that_is_past_what_it_said_before", says_the_same),
    ("fs_14_nothing_goes_before_the_window_is_over", waits_for_the_window),
    ("fs_14_nothing_goes_while_a_reservation_has_no_end", waits_for_reservations),
    ("fs_14_nothing_goes_while_an_order_is_unpaid", waits_for_payments),
    ("fs_14_what_comes_late_moves_nothing", late_events),
];

fn retire(ground: &Ground) -> u64 {
    block_on(ground.gate.retire()).expect("the gate answers")
}

/// How many buckets go, where the sale may.
fn all_that_goes(ground: &Ground) -> u64 {
    u64::from(!ground.gate.lives_in_store())
}

/// The last moment of the window, and the first one after it.
fn go_to_the_window(ground: &Ground) {
    ground.clock.set(activity("sale").ends_at.plus(WINDOW).minus(Millis(1)));
}

fn go_past(ground: &Ground) {
    ground.clock.set(activity("sale").ends_at.plus(WINDOW));
}

/// Messages are sent, and deadlines have come to nothing.
fn settle_lanes(ground: &Ground) {
    for claim in ground.claim() {
        assert_eq!(ground.settle(SendSettlement::Sent(claim.held)), 1);
    }
    ground.clock.advance(Millis(120_000));
    let claims = block_on(ground.gate.claim_overdue(10, LEASE)).expect("the gate answers");
    let mut ended = claims;
    ended.iter_mut().for_each(|claim| claim.remaining = None);
    block_on(ground.gate.settle_overdue(ended)).expect("the gate answers");
}

/// Units of the stock of record that are in orders.
fn stock(ground: &Ground, occupied: i64, sold: i64) {
    let sku = ground.base.sku(&ground.key);
    let stock = Stock { available: sku.stock.initial - occupied - sold, occupied, sold, ..sku.stock };
    let moved = StockMove { key: sku.key, revision: sku.revision, stock, adjustments: sku.adjustments };
    ground.base.must(ChangeSet { stock: vec![moved], ..ChangeSet::default() });
}

/// Rejects a reservation, and gives its units back.
fn give_back(ground: &Ground, number: u64) {
    let rejected = ground.reject(number);
    assert_eq!(ground.compensate(rejected), CompensateCode::Applied);
    let row = ground.recorded(number);
    let place = row.lines[0].place;
    let step = Step::Reservation { to: Status::Compensated, reason: None, inbox: None, place };
    ground.base.must(ChangeSet { purchases: vec![step_of(&row, step)], ..ChangeSet::default() });
}

/// Of three units, one is paid for, and one was given back.
fn sell(ground: &Ground) {
    ground.must(1, "u", 1);
    ground.must(2, "v", 1);
    let order = ground.order(1);
    assert_eq!(ground.project(created(&order)), Projected::Applied);
    stock(ground, 0, 1);
    give_back(ground, 2);
    settle_lanes(ground);
}

/// Whoever asks after the sale hears what became of their request.
fn asked_again(ground: &Ground) {
    let repeat =
        |number: u64, status| ReserveAnswer::Repeat { reservation: id(number).reservation(), status };
    assert_eq!(ground.reserve(1, "u", 1), repeat(1, Status::OrderCreated));
    assert_eq!(ground.reserve(2, "v", 1), repeat(2, Status::Compensated));
    assert_eq!(ground.reserve(1, "u", 2), ReserveAnswer::RequestConflict);
    assert_eq!(ground.reserve(3, "w", 1), ReserveAnswer::NotOpen);
    assert_eq!(ground.transport(id(1)), Transport::Published);
    assert_eq!(ground.counters(), (2, 0, 1));
}

fn says_the_same(ground: &Ground) {
    sell(ground);
    go_past(ground);
    asked_again(ground);
    assert_eq!(retire(ground), all_that_goes(ground));
    asked_again(ground);
    assert_eq!(retire(ground), 0, "it is gone, and nobody's asking has brought it back");
    let standing = block_on(ground.gate.standing(ground.key.clone())).expect("the gate answers");
    let standing = standing.expect("there is such a SKU");
    assert_eq!((standing.is_retired, standing.closed), (!ground.gate.lives_in_store(), 0));
    block_on(ground.gate.rebuild(ground.key.clone())).expect("there is nothing to be made anew");
    asked_again(ground);
}

fn waits_for_the_window(ground: &Ground) {
    sell(ground);
    go_to_the_window(ground);
    assert_eq!(retire(ground), 0);
    asked_again(ground);
}

fn waits_for_reservations(ground: &Ground) {
    ground.must(1, "u", 1);
    settle_lanes(ground);
    go_past(ground);
    assert_eq!(retire(ground), 0);
    assert_eq!(ground.counters(), (2, 1, 0));
    give_back(ground, 1);
    assert_eq!(retire(ground), all_that_goes(ground));
    assert_eq!(ground.counters(), (3, 0, 0));
}

fn waits_for_payments(ground: &Ground) {
    ground.must(1, "u", 1);
    let order = ground.order(1);
    assert_eq!(ground.project(created(&order)), Projected::Applied);
    stock(ground, 1, 0);
    settle_lanes(ground);
    go_past(ground);
    assert_eq!(retire(ground), 0);
    assert_eq!(ground.project(cancelled(&order)), Projected::Applied, "an order that was never paid");
    stock(ground, 0, 0);
    assert_eq!(ground.counters(), (3, 0, 0));
    assert_eq!(retire(ground), all_that_goes(ground));
    assert_eq!(ground.counters(), (3, 0, 0));
}

fn late_events(ground: &Ground) {
    sell(ground);
    go_past(ground);
    retire(ground);
    let order = ground.recorded(1);
    assert_eq!(ground.project(created(&order)), Projected::Nothing, "it was counted when it came");
    assert_eq!(ground.compensate(id(2)), CompensateCode::AlreadyApplied);
    assert_eq!(ground.compensate(id(9)), CompensateCode::Missing, "nobody knows it");
    ground.adjust_stock(4);
    let heard = ground.project(adjusted(&ground.key, 4, 1));
    assert!(heard == Projected::Nothing || ground.gate.lives_in_store());
    assert_eq!(ground.counters(), (6, 0, 1));
}

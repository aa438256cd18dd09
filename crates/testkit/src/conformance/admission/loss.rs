//! What a gate promises that is not in the store and may lose what it knows (FS-18): it closes, is made anew from what the
//! store has decided, opens, and nothing was sold twice and nothing lost that the store knows.
//!
//! Two losses: of everything, as after a flush; and of what was written last, as after the promotion of a copy that had not
//! heard of it. Deliberately absent: how the adapter notices. Read next: the adapter's own module about rebuilding.

use std::sync::Arc;

use onceward_domain::changes::{ChangeSet, Step};
use onceward_domain::machine::reservation::Reservation as Status;
use onceward_domain::ports::admission::{Admission, CompensateCode, Projected, ReserveAnswer};
use onceward_domain::ports::store::Store;
use onceward_domain::time::Millis;

use super::super::store::ground::step_of;
use super::{Ground, created};
use crate::block_on::block_on;
use crate::clock::ManualClock;
use crate::conformance::store::ground::id;

/// A gate that can lose things, in front of a fresh, empty store.
pub struct Lossy {
    /// The store of record; it loses nothing.
    pub store: Arc<dyn Store>,
    /// The gate.
    pub gate: Arc<dyn Admission>,
    /// Makes the gate lose everything.
    pub lose_everything: Box<dyn Fn()>,
    /// Remembers what the gate knows now.
    pub keep: Box<dyn Fn()>,
    /// Makes the gate lose what it has learnt since, as a promoted copy has.
    pub fall_back: Box<dyn Fn()>,
}

/// Makes one that takes its time from the clock.
pub type MakeLossy<'a> = &'a dyn Fn(Arc<ManualClock>) -> Lossy;

type Case = (&'static str, fn(&Losing));

const CASES: &[Case] = &[
    ("fs_18_after_a_flush_the_gate_is_made_anew_from_the_store", everything),
    ("fs_18_after_a_promotion_what_was_decided_since_is_caught_up", last_writes),
    ("fs_18_a_lost_reservation_is_given_back_without_adding_anything", lost_compensation),
    ("fs_18_a_reservation_that_a_promoted_copy_never_heard_of_is_given_back_alike", unheard_of),
    ("fs_18_looking_at_a_gate_that_has_lost_something_changes_nothing", looked_at),
    ("fs_18_a_lost_adjustment_is_caught_up", lost_adjustment),
    ("fs_18_a_rebuild_keeps_what_is_open_and_may_be_said_twice", said_twice),
];

struct Losing {
    ground: Ground,
    lossy: Lossy,
}

/// Runs every case, each on a fresh gate, and panics at the end with the names of those that failed.
///
/// # Panics
/// Where a case fails.
pub fn run_all(make: MakeLossy<'_>) {
    let run = |case: fn(&Losing)| {
        let clock = Arc::new(ManualClock::new(super::START));
        let lossy = make(Arc::clone(&clock));
        let ground = Ground::new(clock, Arc::clone(&lossy.store), Arc::clone(&lossy.gate));
        let losing = Losing { ground, lossy };
        case(&losing);
        losing.ground.counters();
    };
    super::super::run_named("lossy gate", CASES.iter().map(|(name, case)| (*name, move || run(*case))));
}

fn queued(number: u64) -> ReserveAnswer {
    ReserveAnswer::Queued { reservation: id(number).reservation() }
}

fn everything(losing: &Losing) {
    let ground = &losing.ground;
    ground.must(1, "u", 1);
    ground.must(2, "v", 1);
    let order = ground.order(1);
    (losing.lossy.lose_everything)();
    // What became an order is known; what the store has not heard of comes again under its own id.
    let status = Status::OrderCreated;
    let repeat = ReserveAnswer::Repeat { reservation: id(1).reservation(), status };
    assert_eq!(ground.reserve(1, "u", 1), repeat);
    assert_eq!(ground.counters(), (2, 0, 1));
    assert_eq!(ground.project(created(&order)), Projected::Nothing, "it was counted by the rebuild");
    assert_eq!(ground.reserve(2, "v", 1), queued(2));
    assert!(matches!(ground.reserve(3, "u", 2), ReserveAnswer::LimitReached { .. }), "marks are back");
    assert_eq!(ground.reserve(4, "w", 1), queued(4));
    assert_eq!(ground.reserve(5, "x", 1), ReserveAnswer::SoldOut);
    assert_eq!(ground.counters(), (0, 2, 1));
}

fn last_writes(losing: &Losing) {
    let ground = &losing.ground;
    ground.must(1, "u", 1);
    ground.must(2, "v", 1);
    (losing.lossy.keep)();
    let order = ground.order(1);
    assert_eq!(ground.project(created(&order)), Projected::Applied);
    let rejected = ground.reject(2);
    assert_eq!(ground.compensate(rejected), CompensateCode::Applied);
    let row = ground.recorded(2);
    let (to, place) = (Status::Compensated, row.lines[0].place);
    let step = Step::Reservation { to, reason: None, inbox: None, place };
    ground.base.must(ChangeSet { purchases: vec![step_of(&row, step)], ..ChangeSet::default() });
    ground.must(3, "w", 1);
    (losing.lossy.fall_back)();
    // The order and the compensation are caught up; of the third nobody knows any more, until its buyer asks again.
    assert_eq!(ground.reserve(4, "x", 1), queued(4));
    assert_eq!(ground.counters(), (1, 1, 1));
    assert_eq!(ground.compensate(rejected), CompensateCode::AlreadyApplied);
    assert_eq!(ground.reserve(3, "w", 1), queued(3));
    assert_eq!(ground.counters(), (0, 2, 1));
}

fn lost_compensation(losing: &Losing) {
    let ground = &losing.ground;
    ground.must(1, "u", 2);
    let rejected = ground.reject(1);
    (losing.lossy.lose_everything)();
    ground.clock.advance(Millis(1));
    assert_eq!(ground.compensate(rejected), CompensateCode::AlreadyApplied);
    assert_eq!(ground.counters(), (3, 0, 0));
    assert_eq!(ground.compensate(id(9)), CompensateCode::Missing, "whom the store does not know either");
}

fn unheard_of(losing: &Losing) {
    let ground = &losing.ground;
    ground.must(1, "u", 1);
    (losing.lossy.keep)();
    ground.clock.advance(Millis(1));
    ground.must(2, "v", 2);
    let rejected = ground.reject(2);
    (losing.lossy.fall_back)();
    // Nobody has come since: the bucket was last opened before this reservation, and still the loss is noticed.
    ground.clock.advance(Millis(1));
    assert_eq!(ground.compensate(rejected), CompensateCode::AlreadyApplied);
    assert_eq!(ground.counters(), (2, 1, 0));
}

fn looked_at(losing: &Losing) {
    let ground = &losing.ground;
    let standing = || block_on(ground.gate.standing(ground.key.clone())).expect("the gate answers");
    let closed = || standing().expect("it is on sale").closed;
    ground.must(1, "u", 1);
    let before = standing().expect("it is on sale");
    assert_eq!((before.buckets, before.closed), (1, 0));
    (losing.lossy.keep)();
    (losing.lossy.fall_back)();
    assert_eq!((closed(), closed()), (1, 1), "it has lost something");
    assert_eq!(ground.counters(), (2, 1, 0));
    let rebuilt = standing().expect("it is on sale");
    assert_eq!((rebuilt.closed, rebuilt.epoch), (0, before.epoch + 1));
    (losing.lossy.lose_everything)();
    assert_eq!((closed(), standing().expect("it is on sale").counters), (1, None));
    block_on(ground.gate.rebuild(ground.key.clone())).expect("a rebuild answers");
    assert_eq!(closed(), 0);
}

fn lost_adjustment(losing: &Losing) {
    let ground = &losing.ground;
    ground.must(1, "u", 1);
    (losing.lossy.keep)();
    ground.adjust_stock(4);
    assert_eq!(ground.project(super::adjusted(&ground.key, 4, 1)), Projected::Applied);
    assert_eq!(ground.counters(), (6, 1, 0));
    (losing.lossy.fall_back)();
    assert_eq!(ground.reserve(2, "v", 1), queued(2));
    assert_eq!(ground.counters(), (5, 2, 0));
    (losing.lossy.lose_everything)();
    assert_eq!(ground.counters(), (7, 0, 0));
    assert_eq!(ground.project(super::adjusted(&ground.key, 4, 1)), Projected::Nothing);
}

fn said_twice(losing: &Losing) {
    let ground = &losing.ground;
    let purchase = ground.must(1, "u", 1);
    for _twice in 0..2 {
        block_on(ground.gate.rebuild(ground.key.clone())).expect("a rebuild answers");
        assert_eq!(ground.counters(), (2, 1, 0));
    }
    let status = Status::Reserved;
    let repeat = ReserveAnswer::Repeat { reservation: purchase.reservation(), status };
    assert_eq!(ground.reserve(1, "u", 1), repeat);
    assert_eq!(ground.claim().len(), 1, "its message is still to be sent");
}

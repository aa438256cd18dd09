//! What every gate promises: one atomic step per reservation, counters that always add up, sends and compensations
//! that survive a crash.
//!
//! The sale is written to the store of record first; a gate elsewhere learns of it from `make`. Invariant checked in
//! every case: `initial = available + open_reserved + committed`. Read next: [`onceward_domain::ports::admission`].

use std::sync::Arc;

use onceward_domain::catalogue::{Activity, Bucket, Stock};
use onceward_domain::changes::{ChangeSet, Step, StockMove};
use onceward_domain::event::{Event, Fact, OrderCreateRequested};
use onceward_domain::id::{IdKind, PurchaseId, RequestId, SkuKey, UserId};
use onceward_domain::machine::reservation::Reservation as Status;
use onceward_domain::machine::transport::Transport;
use onceward_domain::ports::admission::{
    Admission, Compensate, CompensateCode, Projected, Reserve, ReserveAnswer, SendClaim, SendSettlement,
    Unsent,
};
use onceward_domain::ports::store::Store;
use onceward_domain::purchase::{Line, Purchase, Reason};
use onceward_domain::time::Millis;

use super::store::ground::{
    Ground as Base, LEASE, START, activity, create_order, id, ordered, sku, step_of, task,
};
use crate::block_on::block_on;
use crate::clock::ManualClock;

pub mod loss;

/// Makes a fresh, empty store and the gate in front of it; both take their time from the clock.
pub type MakeAdmission<'a> = &'a dyn Fn(Arc<ManualClock>) -> (Arc<dyn Store>, Arc<dyn Admission>);

type Case = (&'static str, fn(&Ground));

const CASES: &[Case] = &[
    ("fs_01_a_reservation_moves_units_and_is_found", reserves),
    ("fs_02_a_repeat_hears_of_the_first_reservation", repeats),
    ("fs_02_another_body_is_refused_and_changes_nothing", other_body),
    ("fs_12_c_11_a_known_request_is_recognised_before_stock_and_hours", known_first),
    ("c_82_the_sale_is_open_from_its_start_to_just_before_its_end", opening_hours),
    ("fs_19_the_limit_counts_units", limits),
    ("fs_01_a_batch_is_answered_as_if_they_had_come_one_by_one", batches),
    ("fs_01_each_of_a_batch_has_an_answer_of_its_own", each),
    ("fs_01_what_is_not_on_sale_is_unknown", unknown),
    ("fs_05_a_message_is_claimed_under_a_lease_until_it_is_settled", sends),
    ("fs_05_an_unsent_message_waits_and_comes_again_the_same", sends_again),
    ("fs_16_what_is_unsent_is_counted_with_its_age_until_it_was_sent", counts_unsent),
    ("fs_15_a_deadline_is_claimed_when_it_has_come", overdue),
    ("fs_12_a_compensation_gives_units_back_once", compensates),
    ("fs_12_nothing_is_given_back_blindly", compensates_nothing),
    ("fs_13_a_projection_is_applied_once", projects),
    ("fs_13_a_direct_order_is_projected_as_well", projects_direct),
    ("fs_13_adjustments_are_applied_in_their_order", adjusts),
    ("fs_13_each_event_of_a_batch_has_an_answer_of_its_own", each_event),
    ("fs_02_fs_19_a_reservation_is_found_in_the_part_of_its_buyer", finds_at),
];

/// Runs every case, each on a fresh gate, and panics at the end with the names of those that failed.
///
/// # Panics
/// Where a case fails.
pub fn run_all(make: MakeAdmission<'_>) {
    let run = |case: fn(&Ground)| {
        let clock = Arc::new(ManualClock::new(START));
        let (store, gate) = make(Arc::clone(&clock));
        let ground = Ground::new(clock, store, gate);
        case(&ground);
        ground.counters();
    };
    super::run_named("gate", CASES.iter().map(|(name, case)| (*name, move || run(*case))));
}

/// A gate with three units on sale, two per buyer.
struct Ground {
    clock: Arc<ManualClock>,
    base: Base,
    gate: Arc<dyn Admission>,
    key: SkuKey,
}

/// A buyer's command; number and user make the request.
fn command(key: &SkuKey, number: u64, user: &str, quantity: u32) -> Reserve {
    let request = RequestId::trusted(&format!("request-{number}"));
    Reserve {
        purchase: id(number),
        older: Vec::new(),
        key: key.clone(),
        user: UserId::trusted(user),
        request,
        quantity,
    }
}

impl Ground {
    fn new(clock: Arc<ManualClock>, store: Arc<dyn Store>, gate: Arc<dyn Admission>) -> Self {
        let base = Base::new(Arc::clone(&clock), store);
        let key = base.sale(3);
        Self { clock, base, gate, key }
    }

    fn reserve(&self, number: u64, user: &str, quantity: u32) -> ReserveAnswer {
        let commands = vec![command(&self.key, number, user, quantity)];
        block_on(self.gate.reserve(commands)).expect("the gate answers").remove(0)
    }

    fn must(&self, number: u64, user: &str, quantity: u32) -> PurchaseId {
        let reservation = id(number).reservation();
        assert_eq!(self.reserve(number, user, quantity), ReserveAnswer::Queued { reservation });
        id(number)
    }

    /// Available, open reserved and committed, which must add up.
    fn counters(&self) -> (i64, i64, i64) {
        let bucket = block_on(self.gate.counters(self.key.clone())).expect("the gate answers");
        let Bucket { initial, available, open_reserved, committed, .. } = bucket.expect("it is on sale");
        assert_eq!(initial, available + open_reserved + committed);
        (available, open_reserved, committed)
    }

    fn claim(&self) -> Vec<SendClaim> {
        block_on(self.gate.claim_send(10, LEASE)).expect("the gate answers")
    }

    fn settle(&self, settlement: SendSettlement) -> u32 {
        block_on(self.gate.settle_send(vec![settlement])).expect("the gate answers")
    }

    fn transport(&self, purchase: PurchaseId) -> Transport {
        let view = block_on(self.gate.find(purchase)).expect("the gate answers");
        view.expect("it was reserved").transport
    }

    fn compensate(&self, purchase: PurchaseId) -> CompensateCode {
        let compensation = purchase.compensation();
        let command = Compensate { purchase, key: self.key.clone(), compensation };
        block_on(self.gate.compensate(vec![command]))
            .expect("the gate answers")
            .remove(0)
            .expect("this one as well")
    }

    fn project(&self, event: Event) -> Projected {
        block_on(self.gate.project(vec![event]))
            .expect("the gate answers")
            .remove(0)
            .expect("this one as well")
    }

    /// The reservation as the store of record keeps it: written there with the state it is born with, where the gate has
    /// kept it to itself until now.
    fn recorded(&self, number: u64) -> Purchase {
        if self.base.purchase(id(number)).is_none() {
            let view = block_on(self.gate.find(id(number))).expect("the gate answers");
            let mut purchase = view.expect("it was reserved").purchase;
            let message = OrderCreateRequested::of(&purchase);
            purchase.admission =
                block_on(self.gate.births(vec![message])).expect("the gate answers")[0].admission();
            self.base.must(ChangeSet { new_purchases: vec![purchase], ..ChangeSet::default() });
        }
        self.base.purchase(id(number)).expect("it is there")
    }

    /// A durable, authorized rejection, as the compensator needs it.
    fn reject(&self, number: u64) -> PurchaseId {
        let purchase = self.recorded(number);
        let reason = Some(Reason::StockShort);
        let place = purchase.lines[0].place;
        let step = Step::Reservation { to: Status::Compensating, reason, inbox: None, place };
        self.base.must(ChangeSet {
            purchases: vec![step_of(&purchase, step)],
            new_compensations: vec![task(purchase.id)],
            ..ChangeSet::default()
        });
        purchase.id
    }

    /// The first adjustment of the stock of record.
    fn adjust_stock(&self, delta: i64) {
        let sku = self.base.sku(&self.key);
        let (initial, available) = (sku.stock.initial + delta, sku.stock.available + delta);
        let stock = Stock { initial, available, ..sku.stock };
        let adjusted = StockMove { key: sku.key, revision: sku.revision, stock, adjustments: 1 };
        self.base.must(ChangeSet { stock: vec![adjusted], ..ChangeSet::default() });
    }

    /// An order in the store of record.
    fn order(&self, number: u64) -> Purchase {
        let purchase = self.recorded(number);
        let changed = create_order(&purchase, purchase.lines[0].place);
        self.base.must(ChangeSet { purchases: vec![changed], ..ChangeSet::default() });
        self.base.purchase(purchase.id).expect("it is there")
    }
}

fn created(purchase: &Purchase) -> Event {
    Event::order_created(purchase.id, purchase.user.clone(), purchase.lines.clone(), START)
}

fn cancelled(purchase: &Purchase) -> Event {
    Event::order_cancelled(purchase.id, purchase.user.clone(), purchase.lines.clone(), START)
}

fn reserves(ground: &Ground) {
    let purchase = ground.must(1, "u", 2);
    assert_eq!(ground.counters(), (1, 2, 0));
    let view = block_on(ground.gate.find(purchase)).expect("the gate answers").expect("it was reserved");
    assert_eq!(view.transport, Transport::Pending);
    assert_eq!(view.purchase.reservation_status(), Status::Reserved);
    assert_eq!((view.purchase.reserved_at, view.purchase.lines[0].quantity), (START, 2));
    assert_eq!(view.purchase.business_deadline, START.plus(Millis(120_000)));
    assert_eq!(block_on(ground.gate.find(id(9))).expect("the gate answers"), None);
}

fn repeats(ground: &Ground) {
    let reservation = ground.must(1, "u", 1).reservation();
    let repeat = ReserveAnswer::Repeat { reservation, status: Status::Reserved };
    for _ in 0..3 {
        assert_eq!(ground.reserve(1, "u", 1), repeat);
    }
    let twice = vec![command(&ground.key, 2, "v", 1), command(&ground.key, 2, "v", 1)];
    let answers = block_on(ground.gate.reserve(twice)).expect("the gate answers");
    let reservation = id(2).reservation();
    let expected = [
        ReserveAnswer::Queued { reservation },
        ReserveAnswer::Repeat { reservation, status: Status::Reserved },
    ];
    assert_eq!(answers, expected);
    assert_eq!(ground.counters(), (1, 2, 0));
}

fn other_body(ground: &Ground) {
    ground.must(1, "u", 1);
    assert_eq!(ground.reserve(1, "u", 2), ReserveAnswer::RequestConflict);
    assert_eq!(ground.counters(), (2, 1, 0));
    ground.must(2, "v", 1);
}

fn known_first(ground: &Ground) {
    let winner = ground.must(1, "u", 2);
    ground.must(2, "v", 1);
    assert_eq!(ground.reserve(3, "w", 1), ReserveAnswer::SoldOut);
    let repeat = ReserveAnswer::Repeat { reservation: winner.reservation(), status: Status::Reserved };
    assert_eq!(ground.reserve(1, "u", 2), repeat);
    ground.clock.advance(Millis(100_000_000));
    assert_eq!(ground.reserve(1, "u", 2), repeat);
    assert_eq!(ground.reserve(4, "w", 1), ReserveAnswer::NotOpen);
}

/// A sale ahead: a store's time need not be able to run back to before the usual one.
fn opening_hours(ground: &Ground) {
    let (start, end) = (START.plus(Millis(1_000)), START.plus(Millis(2_000)));
    let ahead = Activity { starts_at: start, ends_at: end, ..activity("ahead") };
    let sku = sku("ahead", "one", 3);
    let bucket = Bucket::full(sku.key.clone(), 3);
    ground.base.must(ChangeSet {
        activities: vec![ahead],
        new_skus: vec![sku.clone()],
        new_buckets: vec![bucket],
        ..ChangeSet::default()
    });
    let moments =
        [(start.minus(Millis(1)), false), (start, true), (end.minus(Millis(1)), true), (end, false)];
    for (number, (moment, is_open)) in (1..).zip(moments.into_iter().chain([(end.plus(Millis(1)), false)])) {
        ground.clock.set(moment);
        let commands = vec![command(&sku.key, number, &format!("u{number}"), 1)];
        let answer = block_on(ground.gate.reserve(commands)).expect("the gate answers").remove(0);
        let expected = if is_open {
            ReserveAnswer::Queued { reservation: id(number).reservation() }
        } else {
            ReserveAnswer::NotOpen
        };
        assert_eq!(answer, expected, "{moment:?}");
    }
}

fn limits(ground: &Ground) {
    assert!(matches!(ground.reserve(1, "u", 3), ReserveAnswer::LimitReached { .. }));
    ground.must(2, "u", 1);
    assert!(matches!(ground.reserve(3, "u", 2), ReserveAnswer::LimitReached { .. }));
    ground.must(4, "u", 1);
    assert!(matches!(ground.reserve(5, "u", 1), ReserveAnswer::LimitReached { .. }));
    ground.must(6, "v", 1);
    assert_eq!(ground.counters(), (0, 3, 0));
}

fn batches(ground: &Ground) {
    let commands = (1..=5).map(|number| command(&ground.key, number, &format!("u{number}"), 1)).collect();
    let answers = block_on(ground.gate.reserve(commands)).expect("the gate answers");
    let queued = (1..=3).map(|number| ReserveAnswer::Queued { reservation: id(number).reservation() });
    let expected: Vec<_> = queued.chain([ReserveAnswer::SoldOut, ReserveAnswer::SoldOut]).collect();
    assert_eq!(answers, expected);
    assert_eq!(ground.counters(), (0, 3, 0));
    let sent: usize = ground.claim().iter().map(|claim| claim.messages.len()).sum();
    assert_eq!(sent, 3, "each admitted buyer has a message to send");
    assert_eq!(block_on(ground.gate.reserve(Vec::new())).expect("the gate answers"), []);
}

fn each(ground: &Ground) {
    let elsewhere = super::store::ground::key("sale", "nothing");
    let commands = vec![
        command(&ground.key, 1, "u1", 2),
        command(&elsewhere, 2, "u2", 1),
        command(&ground.key, 3, "u3", 2),
        command(&ground.key, 4, "u4", 1),
    ];
    let answers = block_on(ground.gate.reserve_each(commands)).expect("the gate answers");
    let answers: Vec<_> = answers.into_iter().map(|answer| answer.expect("nothing is closed")).collect();
    let queued = |number| ReserveAnswer::Queued { reservation: id(number).reservation() };
    assert_eq!(answers, [queued(1), ReserveAnswer::Unknown, ReserveAnswer::SoldOut, queued(4)]);
    assert_eq!(ground.counters(), (0, 3, 0));
}

fn unknown(ground: &Ground) {
    let elsewhere = super::store::ground::key("sale", "nothing");
    let commands = vec![command(&elsewhere, 1, "u", 1)];
    assert_eq!(block_on(ground.gate.reserve(commands)).expect("the gate answers"), [ReserveAnswer::Unknown]);
    assert_eq!(block_on(ground.gate.counters(elsewhere)).expect("the gate answers"), None);
}

fn sends(ground: &Ground) {
    let purchase = ground.must(1, "u", 2);
    let next = block_on(ground.gate.next_send()).expect("the gate answers");
    assert!(next.is_some_and(|next| next <= START));
    let claim = ground.claim().remove(0);
    let message = &claim.messages[0];
    assert_eq!((message.purchase, message.quantity, message.reserved_at), (purchase, 2, START));
    assert_eq!((claim.attempts, claim.oldest), (1, START));
    assert_eq!(ground.transport(purchase), Transport::Publishing);
    assert!(ground.claim().is_empty(), "a lease keeps others away");
    ground.clock.advance(LEASE);
    let again = ground.claim().remove(0);
    assert_eq!((again.attempts, &again.messages), (2, &claim.messages));
    assert_eq!(ground.settle(SendSettlement::Sent(claim.held)), 0, "the lease was lost");
    assert_eq!(ground.settle(SendSettlement::Sent(again.held)), 1);
    assert_eq!(ground.transport(purchase), Transport::Published);
    ground.clock.advance(LEASE);
    assert!(ground.claim().is_empty());
    assert_eq!(block_on(ground.gate.next_send()).expect("the gate answers"), None);
}

fn sends_again(ground: &Ground) {
    let purchase = ground.must(1, "u", 1);
    let first = ground.claim().remove(0);
    let again = SendSettlement::Again { held: first.held, unsent: vec![purchase], wait: Millis(5_000) };
    assert_eq!(ground.settle(again), 1);
    assert_eq!(ground.transport(purchase), Transport::Unknown);
    ground.clock.advance(Millis(4_999));
    assert!(ground.claim().is_empty());
    ground.clock.advance(Millis(1));
    let second = ground.claim().remove(0);
    assert_eq!((second.attempts, second.messages), (2, first.messages), "the same message under the same id");
}

fn counts_unsent(ground: &Ground) {
    let unsent = |limit| block_on(ground.gate.unsent(limit)).expect("the gate answers");
    assert_eq!(unsent(10), Unsent::default());
    let first = ground.must(1, "u", 1);
    ground.clock.advance(Millis(2_000));
    ground.must(2, "v", 2);
    let both = Unsent { reservations: 2, oldest: Some(Millis(2_000)) };
    assert_eq!(unsent(10), both);
    let claims = ground.claim();
    assert_eq!(unsent(10), both, "what is claimed is not sent yet");
    for claim in claims {
        let left: Vec<PurchaseId> =
            claim.messages.iter().map(|one| one.purchase).filter(|id| *id == first).collect();
        let end = match left.is_empty() {
            true => SendSettlement::Sent(claim.held),
            false => SendSettlement::Again { held: claim.held, unsent: left, wait: Millis(60_000) },
        };
        assert_eq!(ground.settle(end), 1);
    }
    ground.clock.advance(Millis(1_000));
    assert_eq!(unsent(10), Unsent { reservations: 1, oldest: Some(Millis(3_000)) }, "a retry keeps its age");
    assert!(unsent(0).reservations > 0, "counting goes on until the limit is passed");
}

fn overdue(ground: &Ground) {
    let claim = || block_on(ground.gate.claim_overdue(10, LEASE)).expect("the gate answers");
    let purchase = ground.must(1, "u", 1);
    ground.clock.set(START.plus(Millis(119_999)));
    assert!(claim().is_empty());
    let next = block_on(ground.gate.next_overdue()).expect("the gate answers");
    assert_eq!(next, Some(START.plus(Millis(120_000))));
    ground.clock.advance(Millis(1));
    let claims = claim();
    assert_eq!(claims[0].reservations[0].purchase, purchase);
    assert!(claim().is_empty());
    ground.clock.advance(LEASE);
    let again = claim();
    assert_eq!(again.len(), 1, "a claim that died comes again");
    let settle = |claims| block_on(ground.gate.settle_overdue(claims)).expect("the gate answers");
    assert_eq!(settle(claims), 0, "the lease was lost");
    assert_eq!(settle(again), 1);
    ground.clock.advance(LEASE);
    assert!(claim().is_empty());
    assert_eq!(ground.counters(), (2, 1, 0), "a deadline alone gives nothing back (DR-03)");
}

fn compensates(ground: &Ground) {
    let purchase = ground.must(1, "u", 2);
    ground.reject(1);
    assert_eq!(ground.compensate(purchase), CompensateCode::Applied);
    assert_eq!(ground.counters(), (3, 0, 0));
    for _ in 0..3 {
        assert_eq!(ground.compensate(purchase), CompensateCode::AlreadyApplied);
    }
    assert_eq!(ground.counters(), (3, 0, 0));
    ground.must(2, "u", 2);
}

fn compensates_nothing(ground: &Ground) {
    assert_eq!(ground.compensate(id(9)), CompensateCode::Missing);
    let purchase = ground.must(1, "u", 1);
    let order = ground.order(1);
    assert_eq!(ground.project(created(&order)), Projected::Applied);
    assert_eq!(ground.compensate(purchase), CompensateCode::OrderExists);
    assert_eq!(ground.project(cancelled(&order)), Projected::Applied);
    assert_eq!(ground.compensate(purchase), CompensateCode::WrongState);
    assert_eq!(ground.counters(), (3, 0, 0));
}

fn projects(ground: &Ground) {
    ground.must(1, "u", 2);
    let order = ground.order(1);
    assert_eq!(ground.project(created(&order)), Projected::Applied);
    assert_eq!(ground.counters(), (1, 0, 2));
    assert_eq!(ground.project(created(&order)), Projected::Nothing);
    assert_eq!(ground.counters(), (1, 0, 2));
    assert_eq!(ground.project(cancelled(&order)), Projected::Applied);
    for event in [cancelled(&order), created(&order)] {
        assert_eq!(ground.project(event), Projected::Nothing);
    }
    assert_eq!(ground.counters(), (3, 0, 0));
    let rejected = Event::rejected(id(1), order.user.clone(), Reason::StockShort, START);
    assert_eq!(ground.project(rejected), Projected::Nothing);

    // A cancellation that overtakes the creation ends alike.
    ground.must(2, "v", 1);
    let order = ground.order(2);
    assert_eq!(ground.project(cancelled(&order)), Projected::Applied);
    assert_eq!(ground.project(created(&order)), Projected::Nothing);
    assert_eq!(ground.counters(), (3, 0, 0));
}

fn adjusted(key: &SkuKey, delta: i64, number: u32) -> Event {
    let at = START.plus(Millis(i64::from(number)));
    let id = id(u64::from(number)).event(IdKind::StockAdjustment);
    Event { id, at, fact: Fact::StockAdjusted { key: key.clone(), delta, number } }
}

/// A direct order never went through the gate, and counts there all the same.
fn projects_direct(ground: &Ground) {
    assert_eq!(ground.counters(), (3, 0, 0));
    let order = ordered(8, "u", &ground.key, 0);
    ground.base.must(ChangeSet { new_purchases: vec![order.clone()], ..ChangeSet::default() });
    assert_eq!(ground.project(created(&order)), Projected::Applied);
    assert_eq!(ground.project(created(&order)), Projected::Nothing);
    assert_eq!(ground.counters(), (2, 0, 1));
    assert!(matches!(ground.reserve(1, "u", 2), ReserveAnswer::LimitReached { .. }));
    ground.must(2, "u", 1);
    assert_eq!(ground.project(cancelled(&order)), Projected::Applied);
    assert_eq!(ground.counters(), (2, 1, 0));
}

fn each_event(ground: &Ground) {
    ground.must(1, "u", 1);
    let order = ground.order(1);
    let (first, second) = (adjusted(&ground.key, 4, 1), adjusted(&ground.key, -1, 2));
    let late = adjusted(&ground.key, 1, 4);
    let events = vec![first, created(&order), second, late, created(&order)];
    let answers = block_on(ground.gate.project(events)).expect("the gate answers");
    let answers: Vec<_> = answers.into_iter().map(|answer| answer.expect("nothing is closed")).collect();
    let expected =
        [Projected::Applied, Projected::Applied, Projected::Applied, Projected::TooEarly, Projected::Nothing];
    assert_eq!(answers, expected);
    assert_eq!(ground.counters(), (5, 0, 1));
    assert_eq!(block_on(ground.gate.project(Vec::new())).expect("the gate answers").len(), 0);
    assert_eq!(block_on(ground.gate.compensate(Vec::new())).expect("the gate answers").len(), 0);
}

fn finds_at(ground: &Ground) {
    let command = command(&ground.key, 1, "u", 1);
    ground.must(1, "u", 1);
    assert_eq!(ground.gate.part(&command), ground.gate.part(&command));
    let find_at = |number: u64, user: &str| {
        let user = UserId::trusted(user);
        block_on(ground.gate.find_at(id(number), &ground.key, &user)).expect("the gate answers")
    };
    let found = find_at(1, "u");
    assert_eq!(found, block_on(ground.gate.find(id(1))).expect("the gate answers"));
    assert!(found.is_some());
    assert_eq!(find_at(9, "u"), None);
    ground.order(1);
    assert!(find_at(1, "u").is_some(), "the row says the same");
}

fn adjusts(ground: &Ground) {
    let adjusted = |delta, number| adjusted(&ground.key, delta, number);
    assert_eq!(ground.project(adjusted(-1, 2)), Projected::TooEarly);
    assert_eq!(ground.project(adjusted(4, 1)), Projected::Applied);
    assert_eq!(ground.project(adjusted(4, 1)), Projected::Nothing);
    assert_eq!(ground.counters(), (7, 0, 0));
    assert_eq!(ground.project(adjusted(-1, 2)), Projected::Applied);
    assert_eq!(ground.counters(), (6, 0, 0));
    let lines = vec![Line { key: ground.key.clone(), quantity: 1, place: 0, unit_price: None }];
    let stranger = Event::order_created(id(77), UserId::trusted("x"), lines, START);
    assert_eq!(ground.project(stranger), Projected::Nothing, "no such purchase here");
}

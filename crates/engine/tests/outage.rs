//! A store that is away while the bus is there: what was taken is not counted to death (FS-16).

mod house;

use std::cell::Cell;
use std::sync::Arc;

use house::line::Line;
use house::{House, engine_over, keys, usual_activity};
use onceward::store_bus::StoreBus;
use onceward::workers::{Next, Worker};
use onceward::{Engine, Ports, Settings};
use onceward_domain::due::{ClaimRequest, Claimed, Lane};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::PurchaseId;
use onceward_domain::machine::reservation::Reservation;
use onceward_domain::ports::Answer;
use onceward_domain::ports::bus::Topic;
use onceward_domain::ports::store::{Store, Work};
use onceward_domain::time::Millis;
use onceward_testkit::block_on::block_on;
use onceward_testkit::ids::CountingIds;

/// What of the store is away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Away {
    Nothing,
    /// It answers, and writes nothing: its disk is full.
    Writes,
    All,
    /// It cannot decide on this one: somebody holds its row.
    One(PurchaseId),
    /// A decision on this one meets a defect.
    Defect(PurchaseId),
    /// It decides, and nobody hears of it.
    Answers,
    /// It decides nothing, and nobody hears of that either.
    Silent,
}

thread_local! {
    /// Of this thread's store; each test is a thread of its own.
    static AWAY: Cell<Away> = const { Cell::new(Away::Nothing) };
}

fn unless<'a, T: Send + 'a>(away: &[Away], answer: Answer<'a, T>) -> Answer<'a, T> {
    if away.contains(&AWAY.get()) {
        return Box::pin(async { Err(Error::new(Code::Unavailable, "nobody is there")) });
    }
    answer
}

fn asked<'a, T: Send + 'a>(answer: Answer<'a, T>) -> Answer<'a, T> {
    unless(&[Away::All], answer)
}

fn lost() -> Error {
    Error::new(Code::OutcomeUnknown, "the connection was cut")
}

struct Absent(Arc<dyn Store>);

impl Store for Absent {
    fn transact(&self, work: Work) -> Answer<'_, ()> {
        let is_decision = ["create_orders", "admission.project"].contains(&work.name);
        match AWAY.get() {
            Away::One(id) if is_decision && work.need.purchases.contains(&id) => {
                Box::pin(async { Err(Error::new(Code::Unavailable, "its row is locked")) })
            }
            Away::Defect(id) if work.need.purchases.contains(&id) => {
                Box::pin(async { Err(Error::new(Code::ConstraintViolated, "a check of the database")) })
            }
            Away::Answers if is_decision => Box::pin(async {
                self.0.transact(work).await?;
                Err(lost())
            }),
            Away::Silent if is_decision => Box::pin(async { Err(lost()) }),
            Away::Nothing
            | Away::Writes
            | Away::All
            | Away::One(_)
            | Away::Defect(_)
            | Away::Answers
            | Away::Silent => unless(&[Away::All, Away::Writes], self.0.transact(work)),
        }
    }

    fn view(&self, need: Need) -> Answer<'_, Facts> {
        asked(self.0.view(need))
    }

    fn claim_due(&self, request: ClaimRequest) -> Answer<'_, Vec<Claimed>> {
        unless(&[Away::All, Away::Writes], self.0.claim_due(request))
    }

    onceward_testkit::pass_questions_on!(self => self.0, asked);
}

/// A house whose bus lives in a store of its own.
fn two_stores() -> (House, House) {
    let (house, post, _line) = two_stores_and_a_line(Settings::default());
    (house, post)
}

fn two_stores_and_a_line(settings: Settings) -> (House, House, Arc<Line>) {
    let mut house = House::new(9);
    let post = House::with(1, 1, usual_activity());
    let ports = Ports::embedded(Arc::new(Absent(house.store.clone())), Arc::new(CountingIds::new("o")));
    let line = Line::to(Arc::new(StoreBus::new(post.store.clone(), Arc::new(CountingIds::new("b")))));
    house.engine = Engine::new(ports.with_bus(line.clone()), keys(), settings);
    (house, post, line)
}

fn lane(topic: Topic) -> String {
    format!("bus/{}/{}", topic.name(), topic.group())
}

fn let_pass(house: &House, post: &House, time: Millis) {
    house.clock.advance(time);
    post.clock.advance(time);
}

/// Far more rounds than a message has tries, each after the longest wait.
fn outage(house: &House, post: &House, worker: Worker, away: Away) {
    AWAY.set(away);
    for _ in 0..200 {
        assert!(house.step(worker).is_err(), "nothing can be decided");
        let_pass(house, post, Millis(31_000));
    }
    AWAY.set(Away::Nothing);
}

#[test]
fn fs_16_a_store_that_is_away_uses_up_no_tries_of_messages_and_events() {
    for away in [Away::All, Away::Writes, Away::Silent] {
        let (house, post, line) = two_stores_and_a_line(Settings::default());
        house.reserve("u1", "r1", 1);
        house.step(Worker::Sender).unwrap();
        outage(&house, &post, Worker::Consumer, away);
        assert!(away == Away::Silent || line.given() == 1, "a broker counts what it gives: {}", line.given());
        house.step(Worker::Consumer).unwrap();
        let made = house.purchase(house.id("u1", "r1")).map(|one| one.reservation);
        assert_eq!(made, Some(Some(Reservation::OrderCreated)), "the outage is over");

        house.step(Worker::Relay).unwrap();
        let given = line.given();
        outage(&house, &post, Worker::Projector, away);
        assert!(line.given() <= given + 1, "a broker counts what it gives: {}", line.given());
        house.step(Worker::Projector).unwrap();
        assert_eq!(house.figures(), ([8, 1, 0], [8, 0, 1]));
        for topic in Topic::ALL {
            let lane = lane(topic);
            assert_eq!((post.lane(&lane), post.lane(&format!("dead/{lane}"))), (0, 0), "{lane}");
        }
        house.assert_invariants();
    }
}

#[test]
fn fs_10_dr_02_decisions_whose_answers_are_lost_are_looked_up_and_never_set_aside() {
    let (house, post) = two_stores();
    house.reserve("u1", "r1", 1);
    house.step(Worker::Sender).unwrap();
    AWAY.set(Away::Answers);
    house.step(Worker::Consumer).unwrap();
    assert_eq!(post.lane(&lane(Topic::OrderCreate)), 0, "it was looked up");
    house.step(Worker::Relay).unwrap();
    for _more_than_there_are_tries in 0..20 {
        drop(house.step(Worker::Projector));
        let_pass(&house, &post, Millis(31_000));
    }
    AWAY.set(Away::Nothing);
    house.step(Worker::Projector).unwrap();
    let events = lane(Topic::Events);
    assert_eq!((post.lane(&events), post.lane(&format!("dead/{events}"))), (0, 0));
    assert_eq!(house.figures(), ([8, 1, 0], [8, 0, 1]));
    house.assert_invariants();
}

#[test]
fn fs_16_what_cannot_be_tried_comes_less_and_less_often_although_others_are_decided_meanwhile() {
    let (house, post, _line) = two_stores_and_a_line(Settings { order_batch: 1, ..Settings::default() });
    house.reserve("held", "r", 1);
    house.step(Worker::Sender).unwrap();
    AWAY.set(Away::One(house.id("held", "r")));
    let orders = Lane::new(&lane(Topic::OrderCreate));
    let mut waits = Vec::new();
    for round in 0..5 {
        assert!(house.step(Worker::Consumer).is_err(), "its row is locked");
        let user = format!("u{round}");
        house.reserve(&user, "r", 1);
        house.step(Worker::Sender).unwrap();
        assert_eq!(house.step(Worker::Consumer).unwrap(), Next::Again, "others are decided");
        assert!(house.purchase(house.id(&user, "r")).is_some());
        let now = block_on(post.store.now()).unwrap();
        let wait = block_on(post.store.next_due(orders.clone())).unwrap().unwrap().since(now);
        waits.push(wait.0);
        let_pass(&house, &post, wait);
    }
    assert_eq!(waits, [100, 200, 400, 800, 1_600]);
    AWAY.set(Away::Nothing);
    house.step(Worker::Consumer).unwrap();
    assert_eq!(post.lane(orders.as_str()), 0);
}

#[test]
fn fs_06_settlements_that_are_lost_keep_nobody_waiting_who_was_not_looked_at() {
    let (house, post, line) = two_stores_and_a_line(Settings { order_batch: 1, ..Settings::default() });
    let buyers = ["u1", "u2", "u3"];
    house.reserve_all(&buyers.map(|user| (user, "r", 1)));
    house.step(Worker::Sender).unwrap();
    line.lose_settlements();
    assert!(house.step(Worker::Consumer).is_err(), "the first is decided, and the bus does not know");
    // Long before a lease is over.
    let_pass(&house, &post, Millis(1_000));
    house.step(Worker::Consumer).unwrap();
    assert!(buyers.iter().all(|user| house.purchase(house.id(user, "r")).is_some()));
    assert_eq!(post.lane(&lane(Topic::OrderCreate)), 0);
    house.assert_invariants();
}

#[test]
fn fs_13_an_event_that_meets_a_defect_is_set_aside_alone_and_holds_up_nobody() {
    let (house, post) = two_stores();
    let users = ["u1", "u2", "u3", "u4", "u5"];
    for user in users {
        house.reserve(user, "r", 1);
    }
    house.step(Worker::Sender).unwrap();
    house.step(Worker::Consumer).unwrap();
    house.step(Worker::Relay).unwrap();
    AWAY.set(Away::Defect(house.id("u3", "r")));
    house.step(Worker::Projector).unwrap();
    assert_eq!(house.figures().1, [4, 1, 4], "the others are projected with the first try");
    let events = lane(Topic::Events);
    assert_eq!(
        (post.lane(&events), post.lane(&format!("dead/{events}"))),
        (0, 1),
        "a person looks at the one"
    );
    AWAY.set(Away::Nothing);
}

#[test]
fn fs_15_a_deadline_that_meets_a_defect_holds_up_no_other() {
    let (house, _post) = two_stores();
    // In one entry, and another one behind it.
    house.reserve_all(&[("u1", "r", 1), ("u2", "r", 1)]);
    house.clock.advance(Millis(1));
    house.reserve("u3", "r", 1);
    house.clock.advance(usual_activity().reservation_deadline);
    AWAY.set(Away::Defect(house.id("u1", "r")));
    house.step(Worker::Deadline).unwrap();
    let state = |user| house.purchase(house.id(user, "r")).map(|one| one.reservation);
    AWAY.set(Away::Nothing);
    for user in ["u2", "u3"] {
        assert_eq!(state(user), Some(Some(Reservation::OrderRejected)), "{user}");
    }
    house.clock.advance(house.engine.settings().lease);
    house.step(Worker::Deadline).unwrap();
    assert_eq!(state("u1"), Some(Some(Reservation::OrderRejected)), "it comes again");
    house.rest();
    house.assert_invariants();
}

#[test]
fn fs_11_what_a_bus_held_before_another_was_used_is_brought_over() {
    let (house, post) = two_stores();
    // The gate over a journal is alone: the process that has the other bus begins when this one has ended.
    let engine = engine_over(house.store.clone());
    let before = House { clock: house.clock.clone(), store: house.store.clone(), engine };
    for user in ["u1", "u2"] {
        before.reserve(user, "r1", 1);
        before.step(Worker::Sender).unwrap();
    }
    before.step(Worker::Consumer).unwrap();
    before.reserve("u3", "r1", 1);
    for worker in [Worker::Sender, Worker::Relay] {
        before.step(worker).unwrap();
    }
    assert_eq!(
        Topic::ALL.map(|topic| house.lane(&lane(topic))),
        [1, 1],
        "a message and events are left behind"
    );
    house.step(Worker::Forwarder).unwrap();
    assert_eq!(Topic::ALL.map(|topic| (house.lane(&lane(topic)), post.lane(&lane(topic)))), [(0, 1), (0, 1)]);
    house.rest();
    assert_eq!(house.figures(), ([6, 3, 0], [6, 0, 3]));
    house.assert_invariants();
}

#[test]
fn fs_11_what_could_not_be_brought_over_is_tried_again_as_soon_as_it_comes_back() {
    let mut house = House::new(9);
    house.reserve("u1", "r1", 1);
    house.step(Worker::Sender).unwrap();
    let post = House::with(1, 1, usual_activity());
    let line = Line::to(Arc::new(StoreBus::new(post.store.clone(), Arc::new(CountingIds::new("b")))));
    let ports = Ports::embedded(house.store.clone(), Arc::new(CountingIds::new("o")));
    house.engine = Engine::new(ports.with_bus(line.clone()), keys(), Settings::default());
    line.cut();
    assert!(house.step(Worker::Forwarder).is_err(), "the new bus is away");
    line.mend();
    let Next::Wait(Some(wait)) = house.step(Worker::Forwarder).unwrap() else { panic!("it was handed back") };
    assert_eq!(wait, house.engine.settings().poll);
    house.clock.advance(wait);
    assert_eq!(house.step(Worker::Forwarder).unwrap(), Next::Again, "it is brought over");
    assert_eq!(house.step(Worker::Forwarder).unwrap(), Next::Wait(Some(Millis(60_000))), "nothing is left");
}

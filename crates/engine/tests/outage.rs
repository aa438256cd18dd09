//! A store that is away while the bus is there: what was taken is not counted to death (FS-16).

mod house;

use std::cell::Cell;
use std::sync::Arc;

use house::{House, engine_over, keys, usual_activity};
use onceward::store_bus::StoreBus;
use onceward::workers::Worker;
use onceward::{Engine, Ports, Settings};
use onceward_domain::due::{ClaimRequest, Claimed};
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::machine::reservation::Reservation;
use onceward_domain::ports::Answer;
use onceward_domain::ports::bus::Topic;
use onceward_domain::ports::store::{Store, Work};
use onceward_domain::time::Millis;
use onceward_testkit::ids::CountingIds;

/// What of the store is away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Away {
    Nothing,
    /// It answers, and writes nothing: its disk is full.
    Writes,
    All,
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

struct Absent(Arc<dyn Store>);

impl Store for Absent {
    fn transact(&self, work: Work) -> Answer<'_, ()> {
        unless(&[Away::All, Away::Writes], self.0.transact(work))
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
    let mut house = House::new(9);
    let post = House::with(1, 1, usual_activity());
    let ports = Ports::embedded(Arc::new(Absent(house.store.clone())), Arc::new(CountingIds::new("o")));
    let bus = Arc::new(StoreBus::new(post.store.clone(), Arc::new(CountingIds::new("b"))));
    house.engine = Engine::new(ports.with_bus(bus), keys(), Settings::default());
    (house, post)
}

/// Far more rounds than a message has tries, each after the longest wait.
fn outage(house: &House, post: &House, worker: Worker, away: Away) {
    AWAY.set(away);
    for _ in 0..200 {
        assert!(house.step(worker).is_err(), "nothing can be decided");
        house.clock.advance(Millis(31_000));
        post.clock.advance(Millis(31_000));
    }
    AWAY.set(Away::Nothing);
}

#[test]
fn fs_16_a_store_that_is_away_uses_up_no_tries_of_messages_and_events() {
    for away in [Away::All, Away::Writes] {
        let (house, post) = two_stores();
        house.reserve("u1", "r1", 1);
        house.step(Worker::Sender).unwrap();
        outage(&house, &post, Worker::Consumer, away);
        house.step(Worker::Consumer).unwrap();
        let made = house.purchase(house.id("u1", "r1")).map(|one| one.reservation);
        assert_eq!(made, Some(Some(Reservation::OrderCreated)), "the outage is over");

        house.step(Worker::Relay).unwrap();
        outage(&house, &post, Worker::Projector, away);
        house.step(Worker::Projector).unwrap();
        assert_eq!(house.figures(), ([8, 1, 0], [8, 0, 1]));
        for topic in Topic::ALL {
            let lane = format!("bus/{}/{}", topic.name(), topic.group());
            assert_eq!((post.lane(&lane), post.lane(&format!("dead/{lane}"))), (0, 0), "{lane}");
        }
        house.assert_invariants();
    }
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
    let lane = |topic: Topic| format!("bus/{}/{}", topic.name(), topic.group());
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

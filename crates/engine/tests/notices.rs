//! Telling people (LQ-05): every exhaustion once, however long nobody listens and however many machines try.
#![expect(clippy::unwrap_used, reason = "in a test a panic is the message, also in what the tests share")]

mod house;

use std::collections::BTreeMap;
use std::sync::Arc;

use house::{House, engine_with};
use onceward::workers::{Next, Worker};
use onceward_domain::due::{Lane, Member};
use onceward_domain::id::NoticeId;
use onceward_domain::machine::notice::Notice as Status;
use onceward_domain::ports::due_queue::{ClaimWork, Due, NewWork, Settled, Settlement};
use onceward_domain::ports::store::PageRequest;
use onceward_domain::retry::RetryPolicy;
use onceward_domain::time::Millis;
use onceward_testkit::block_on::block_on;
use onceward_testkit::notifier::{Hearing, People};

const LANE: &str = "settlement";

/// A house whose work has failed until its tries were used up, and the people who should hear of it.
fn with_exhausted(count: usize) -> (House, Arc<People>) {
    let mut house = House::new(1);
    let people = Arc::new(People::default());
    house.engine = engine_with(house.store.clone(), people.clone());
    let work = (0..count).map(|number| NewWork {
        member: Member::from(format!("group-{number}")),
        due: Due::After(Millis(0)),
        body: Vec::new(),
    });
    block_on(house.engine.queue().put(Lane::new(LANE), work.collect())).unwrap();
    (house, people)
}

/// Claims and fails everything that is due; answers the waits that follow.
fn fail(house: &House) -> Vec<Settled> {
    let policy = RetryPolicy::default();
    let request = ClaimWork { lane: Lane::new(LANE), limit: 100, lease: Millis(30_000), policy };
    let claims = block_on(house.engine.queue().claim(request)).unwrap();
    let failed = claims.into_iter().map(|one| Settlement::Retry { held: one.held, policy }).collect();
    block_on(house.engine.queue().settle(failed)).unwrap()
}

fn exhaust(house: &House) {
    let start = block_on(house.store.now()).unwrap();
    let mut now = start;
    for wait in [1_000, 2_000, 4_000, 8_000, 16_000] {
        let settled = fail(house);
        now = now.plus(Millis(wait));
        assert!(!settled.is_empty() && settled.iter().all(|one| *one == Settled::Again(now)), "{settled:?}");
        house.clock.set(now.minus(Millis(1)));
        assert!(fail(house).is_empty(), "not a millisecond early");
        house.clock.set(now);
    }
    assert_eq!(now.since(start), Millis(31_000), "1 + 2 + 4 + 8 + 16 seconds");
    assert!(fail(house).iter().all(|one| *one == Settled::Exhausted));
}

fn heard(people: &People) -> BTreeMap<NoticeId, usize> {
    let mut heard = BTreeMap::new();
    people.told().into_iter().for_each(|one| *heard.entry(one.id).or_default() += 1);
    heard
}

fn statuses(house: &House) -> Vec<Status> {
    let page = PageRequest { limit: 200, before: None };
    let found = block_on(house.store.list_notices(page)).unwrap();
    found.into_iter().map(|(_, one)| one.status).collect()
}

#[test]
fn lq_04_lq_05_after_1_2_4_8_16_seconds_each_is_told_once_though_nobody_listened_for_ten_rounds() {
    let (house, people) = with_exhausted(3);
    exhaust(&house);
    assert_eq!(house.lane("dead/settlement"), 3);
    people.hear(Hearing::Away);
    for round in 1..=10 {
        assert_eq!(house.step(Worker::Herald).unwrap(), Next::Again, "round {round}");
        assert_eq!((people.calls(), people.told().len()), (3 * round, 0));
        assert!(matches!(house.step(Worker::Herald).unwrap(), Next::Wait(Some(_))), "it waits for its turn");
        house.clock.advance(house.engine.settings().back_off_cap);
    }
    people.hear(Hearing::Ok);
    house.rest();
    assert_eq!(heard(&people).into_values().collect::<Vec<_>>(), [1, 1, 1]);
    house.pass(10_000_000);
    assert_eq!((people.told().len(), statuses(&house)), (3, vec![Status::Sent; 3]));
    assert_eq!((house.lane("notice"), house.lane("dead/settlement")), (0, 3), "only a person replays");
}

#[test]
fn lq_05_two_machines_do_not_tell_twice() {
    let (house, people) = with_exhausted(20);
    exhaust(&house);
    let twin = engine_with(house.store.clone(), people.clone());
    // Each takes its turn while the other still sends: what is under a lease is given to nobody.
    let both = [&house.engine, &twin];
    for turn in 0..40 {
        block_on(Worker::Herald.step(both[turn % 2])).unwrap();
    }
    assert_eq!(heard(&people).len(), 20);
    assert!(heard(&people).into_values().all(|times| times == 1));
}

#[test]
fn lq_05_dr_02_a_lost_answer_is_repeated_under_the_same_id_and_a_sent_one_never() {
    let (house, people) = with_exhausted(1);
    exhaust(&house);
    people.hear(Hearing::AnswerLost);
    house.step(Worker::Herald).unwrap();
    assert_eq!(statuses(&house), [Status::Pending], "silence is not an answer");
    people.hear(Hearing::Ok);
    house.pass(100_000);
    let told = people.told();
    assert_eq!((told.len(), told[0].id), (2, told[1].id), "the receiver knows the repeat by its id");
    assert_eq!(statuses(&house), [Status::Sent]);
    house.pass(10_000_000);
    assert_eq!(people.told().len(), 2);
}

#[test]
fn lq_05_without_a_notifier_notices_wait_and_cost_nothing() {
    let (house, people) = with_exhausted(1);
    exhaust(&house);
    let ids = Arc::new(onceward_testkit::ids::CountingIds::new("mute"));
    let ports = onceward::Ports::store_backed(house.store.clone(), ids);
    let mute = onceward::Engine::new(ports, house::keys(), onceward::Settings::default());
    assert_eq!(block_on(Worker::Herald.step(&mute)).unwrap(), Next::Wait(None));
    assert_eq!(house.lane("notice"), 1);
    house.rest();
    assert_eq!(people.told().len(), 1, "a node that has one finds them");
}

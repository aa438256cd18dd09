//! A part of the gate that is away, or hangs, while the rest of it answers: nobody else waits for it (FS-19).

#![expect(clippy::unwrap_used, reason = "in a test a panic is the message, also in what the tests share")]

mod house;
#[path = "house/parted.rs"]
mod parted;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use house::{House, key, keys, usual_activity};
use onceward::execute::transact;
use onceward::gate::{Gate, ReserveRequest};
use onceward::operations::operate;
use onceward::store_admission::StoreAdmission;
use onceward::store_bus::{aside_of, lane_of};
use onceward::workers::{Next, Worker};
use onceward::{Engine, Ports, Settings, wire};
use onceward_domain::catalogue::Bucket;
use onceward_domain::changes::ChangeSet;
use onceward_domain::due::DueChange;
use onceward_domain::error::{Class, Code, Error};
use onceward_domain::event::{Event, Fact};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::id::{IdKind, PurchaseId, RequestId, UserId};
use onceward_domain::machine::reservation::Reservation;
use onceward_domain::ports::admission::{Admission, Reserve, ReserveAnswer};
use onceward_domain::ports::bus::Topic;
use onceward_domain::time::Millis;
use onceward_testkit::block_on::block_on;
use onceward_testkit::ids::CountingIds;
use parted::Parted;
use tokio::time::timeout;

/// Three sales, and a gate with a part for each.
struct Fair {
    house: House,
    gate: Arc<Parted>,
    /// The same gate, with nothing away.
    whole: Arc<dyn Admission>,
}

impl Fair {
    fn new() -> Self {
        Self::with(true)
    }

    fn with(tells_parts: bool) -> Self {
        let mut house = House::with(50, 1, usual_activity());
        house.put_sku("mug", 50, 1);
        house.put_sku("pen", 50, 1);
        let ids = Arc::new(CountingIds::new("fair"));
        let whole: Arc<dyn Admission> = Arc::new(StoreAdmission::new(house.store.clone(), ids.clone()));
        let gate = Parted::over(whole.clone(), tells_parts);
        let ports = Ports { admission: gate.clone(), ..Ports::store_backed(house.store.clone(), ids) };
        house.engine = Engine::new(ports, keys(), Settings::default());
        Self { house, gate, whole }
    }

    /// Asks the front of the gate.
    async fn ask(gate: Gate, sku: &'static str, number: usize) -> Result<ReserveAnswer, Error> {
        let (user, request) = (UserId::trusted(&format!("u{number}")), RequestId::trusted("r"));
        gate.reserve(ReserveRequest { key: key(sku), user, request, quantity: 1 }).await
    }

    fn command(&self, sku: &str, user: &str) -> Reserve {
        let (key, user, request) = (key(sku), UserId::trusted(user), RequestId::trusted("r"));
        let purchase = self.house.engine.keys().reservation(&key, &user, &request);
        Reserve { purchase, older: Vec::new(), key, user, request, quantity: 1 }
    }

    /// Whoever was let in before anything was away.
    fn reserve(&self, sku: &str, user: &str) -> PurchaseId {
        let command = self.command(sku, user);
        let id = command.purchase;
        let answer = block_on(self.whole.reserve(vec![command])).unwrap().remove(0);
        assert!(matches!(answer, ReserveAnswer::Queued { .. }), "{answer:?}");
        id
    }

    /// A reservation whose order is made, and whose event is on the bus.
    fn order(&self, sku: &str, user: &str) -> PurchaseId {
        let id = self.reserve(sku, user);
        for worker in [Worker::Sender, Worker::Consumer, Worker::Relay] {
            self.house.step(worker).unwrap();
        }
        id
    }

    /// An adjustment of this number is on the bus.
    fn adjusted(&self, sku: &str, delta: i64, number: u32) {
        let fact = Fact::StockAdjusted { key: key(sku), delta, number };
        let id = PurchaseId::from_bytes([7; 16]).event(IdKind::StockAdjustment);
        let at = block_on(self.house.store.now()).unwrap();
        let messages = wire::split_events(&wire::encode_events(&[Event { id, at, fact }])).unwrap();
        block_on(self.house.engine.bus().publish(Topic::Events, messages)).unwrap();
    }

    fn step(&self, worker: Worker) -> Next {
        self.house.step(worker).unwrap()
    }

    /// `(available, open_reserved, committed)` of a SKU at the gate.
    fn counters(&self, sku: &str) -> (i64, i64, i64) {
        let need = Need { buckets: vec![key(sku)], ..Need::default() };
        let facts = block_on(self.house.store.view(need)).unwrap();
        let Bucket { available, open_reserved, committed, .. } = facts.buckets[&key(sku)];
        (available, open_reserved, committed)
    }

    fn dead_letters(&self) -> u64 {
        let lanes = block_on(self.house.store.lanes()).unwrap();
        lanes.iter().filter(|one| one.lane.living().is_some()).map(|one| one.size).sum()
    }
}

/// More rounds than there are tries, each after the longest wait.
const ROUNDS: usize = 40;
/// Far longer than anything takes that nobody is waited for.
const SOON: Duration = Duration::from_secs(10);
const LONGEST_WAIT: Millis = Millis(31_000);

#[test]
fn fs_19_a_part_of_the_gate_that_is_away_stops_the_projection_of_no_other_sale() {
    let fair = Fair::new();
    fair.gate.take_away(key("mug"));
    for number in 0..8 {
        for sku in ["mug", "cup"] {
            fair.order(sku, &format!("u{number}"));
        }
    }
    fair.step(Worker::Projector);
    assert_eq!(fair.counters("cup"), (42, 0, 8), "they do not wait");
    assert_eq!(fair.counters("mug"), (42, 8, 0));
    for round in 0..ROUNDS {
        for sku in ["mug", "cup"] {
            fair.order(sku, &format!("late{round}"));
        }
        fair.step(Worker::Projector);
        assert_eq!(fair.house.lane(lane_of(Topic::Events).as_str()), 0, "what comes behind it does not wait");
        fair.house.clock.advance(LONGEST_WAIT);
    }
    assert_eq!(fair.counters("cup"), (2, 0, 48));
    assert_eq!(fair.dead_letters(), 0, "it uses up no tries");
    fair.gate.mend();
    fair.house.clock.advance(LONGEST_WAIT);
    fair.step(Worker::Projector);
    fair.step(Worker::Projector);
    fair.step(Worker::Projector);
    assert_eq!(fair.counters("mug"), (2, 0, 48));
    assert_eq!((fair.house.lane(aside_of(Topic::Events).as_str()), fair.dead_letters()), (0, 0));
    fair.house.assert_invariants();
}

#[test]
fn fs_19_what_only_a_part_that_is_away_would_take_is_put_aside_and_what_nobody_would_is_left_on_the_bus() {
    let fair = Fair::new();
    fair.order("mug", "u");
    fair.gate.take_all_away();
    let lanes =
        || [lane_of(Topic::Events), aside_of(Topic::Events)].map(|lane| fair.house.lane(lane.as_str()));
    for _ in 0..ROUNDS {
        assert!(fair.house.step(Worker::Projector).is_err(), "nobody is there");
        fair.house.clock.advance(LONGEST_WAIT);
    }
    assert_eq!(lanes(), [1, 0]);
    fair.gate.mend();
    fair.gate.take_away(key("mug"));
    fair.step(Worker::Projector);
    assert_eq!(lanes(), [0, 1]);
    fair.gate.mend();
    fair.house.clock.advance(LONGEST_WAIT);
    fair.step(Worker::Projector);
    assert_eq!((lanes(), fair.counters("mug"), fair.dead_letters()), ([0, 0], (49, 0, 1), 0));
}

#[test]
fn fs_13_what_fails_on_the_shelf_holds_up_nothing_on_the_bus() {
    let fair = Fair::new();
    fair.order("mug", "u");
    fair.gate.take_away(key("mug"));
    fair.step(Worker::Projector);
    fair.gate.mend();
    fair.gate.poison(key("mug"));
    for round in 0..3 {
        fair.house.clock.advance(LONGEST_WAIT);
        fair.order("cup", &format!("u{round}"));
        fair.step(Worker::Projector);
        assert_eq!(fair.counters("cup"), (49 - round, 0, 1 + round));
    }
    fair.gate.mend();
    fair.house.clock.advance(LONGEST_WAIT);
    fair.step(Worker::Projector);
    assert_eq!((fair.counters("mug"), fair.dead_letters()), ((49, 0, 1), 0));
}

#[test]
fn fs_13_an_adjustment_that_comes_too_early_holds_up_nobody_behind_it() {
    let fair = Fair::new();
    fair.adjusted("mug", -3, 2);
    for round in 0..3 {
        fair.order("cup", &format!("u{round}"));
        fair.step(Worker::Projector);
        assert_eq!(fair.house.lane(lane_of(Topic::Events).as_str()), 0);
        assert_eq!(fair.counters("cup"), (49 - round, 0, 1 + round));
    }
    assert_eq!((fair.house.lane(aside_of(Topic::Events).as_str()), fair.counters("mug")), (1, (50, 0, 0)));
    fair.adjusted("mug", 5, 1);
    fair.step(Worker::Projector);
    fair.house.clock.advance(LONGEST_WAIT);
    fair.step(Worker::Projector);
    assert_eq!((fair.house.lane(aside_of(Topic::Events).as_str()), fair.counters("mug")), (0, (52, 0, 0)));
    assert_eq!(fair.dead_letters(), 0);
}

#[test]
fn fs_19_what_is_away_pays_nothing_for_what_is_early_beside_it() {
    let fair = Fair::new();
    fair.gate.take_away(key("mug"));
    fair.gate.take_away(key("cup"));
    fair.adjusted("cup", -3, 2);
    for sku in ["mug", "pen"] {
        fair.order(sku, "u");
    }
    fair.step(Worker::Projector);
    fair.gate.mend();
    fair.gate.take_away(key("mug"));
    for round in 0..ROUNDS {
        fair.house.clock.advance(LONGEST_WAIT);
        fair.order("pen", &format!("u{round}"));
        fair.step(Worker::Projector);
        assert_eq!(fair.dead_letters(), 0);
    }
    fair.gate.mend();
    fair.adjusted("cup", 5, 1);
    for _ in 0..2 {
        fair.step(Worker::Projector);
        fair.house.clock.advance(LONGEST_WAIT);
    }
    assert_eq!((fair.counters("mug"), fair.counters("cup")), ((49, 0, 1), (52, 0, 0)));
    assert_eq!((fair.house.lane(aside_of(Topic::Events).as_str()), fair.dead_letters()), (0, 0));
}

#[test]
fn fs_11_a_carrier_that_cannot_be_unpacked_becomes_a_dead_letter_and_holds_up_nothing() {
    let fair = Fair::new();
    for lane in [lane_of(Topic::Events), aside_of(Topic::Events)] {
        let put = move |facts: &mut Facts| {
            let damaged: [(&str, &[u8]); 2] = [("damaged", b"\0\xffnobody has packed this"), ("empty", b"")];
            let put = damaged.map(|(member, body)| DueChange::Put {
                lane: lane.clone(),
                member: member.into(),
                due_at: facts.now,
                body: body.to_vec(),
            });
            Ok((ChangeSet { due: put.into(), ..ChangeSet::default() }, ()))
        };
        block_on(transact(&*fair.house.store, "damage", Need::default(), put)).unwrap();
    }
    fair.order("cup", "u");
    fair.step(Worker::Projector);
    assert_eq!((fair.counters("cup"), fair.dead_letters()), ((49, 0, 1), 4));
    let lanes = [lane_of(Topic::Events), aside_of(Topic::Events)].map(|lane| fair.house.lane(lane.as_str()));
    assert_eq!(lanes, [0, 0]);
}

#[test]
fn fs_12_fs_19_a_part_of_the_gate_that_is_away_stops_the_compensations_of_no_other_sale() {
    let fair = Fair::new();
    let (mug, cup) = (fair.reserve("mug", "u"), fair.reserve("cup", "u"));
    fair.house.clock.advance(usual_activity().reservation_deadline);
    fair.step(Worker::Deadline);
    fair.step(Worker::Deadline);
    fair.gate.take_away(key("mug"));
    let state = |id| fair.house.purchase(id).unwrap().reservation;
    for _ in 0..ROUNDS {
        fair.step(Worker::Compensator);
        assert_eq!((state(cup), fair.counters("cup")), (Some(Reservation::Compensated), (50, 0, 0)));
        assert_eq!(state(mug), Some(Reservation::Compensating));
        fair.house.clock.advance(LONGEST_WAIT);
    }
    assert_eq!(fair.dead_letters(), 0, "it uses up no tries");
    fair.gate.mend();
    fair.house.pass(3_600_000);
    assert_eq!((state(mug), fair.counters("mug")), (Some(Reservation::Compensated), (50, 0, 0)));
    fair.house.assert_invariants();
}

#[test]
fn fs_18_fs_19_a_stray_in_a_part_of_the_gate_that_is_away_holds_up_no_other_order() {
    let fair = Fair::new();
    let mug = fair.reserve("mug", "u");
    fair.house.clock.advance(usual_activity().reservation_deadline);
    for worker in [Worker::Deadline, Worker::Compensator] {
        fair.step(worker);
    }
    assert_eq!(fair.house.purchase(mug).unwrap().reservation, Some(Reservation::Compensated));
    fair.gate.take_away(key("mug"));
    // Its message comes late, together with that of somebody else.
    let cup = fair.reserve("cup", "u");
    fair.step(Worker::Sender);
    for _ in 0..ROUNDS {
        fair.step(Worker::Consumer);
        let made = fair.house.purchase(cup).unwrap().reservation;
        assert_eq!(made, Some(Reservation::OrderCreated));
        assert_eq!(
            fair.house.lane(lane_of(Topic::OrderCreate).as_str()),
            1,
            "the stray is asked about again"
        );
        fair.house.clock.advance(LONGEST_WAIT);
    }
    assert_eq!(fair.dead_letters(), 0, "it uses up no tries");
    fair.gate.mend();
    fair.step(Worker::Consumer);
    assert_eq!(fair.house.lane(lane_of(Topic::OrderCreate).as_str()), 0);
}

#[test]
fn fs_17_fs_19_the_governor_looks_at_the_rest_of_a_gate_of_which_a_part_is_away() {
    let fair = Fair::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let gate = Gate::open(fair.house.engine.clone());
        for (sku, number) in [("mug", 0), ("cup", 1), ("cup", 2)] {
            assert!(Fair::ask(gate.clone(), sku, number).await.is_ok());
        }
    });
    let undecided = || {
        fair.step(Worker::Governor);
        fair.house.engine.governor().view().sight.expect("it looked").undecided
    };
    assert_eq!(undecided(), 3);
    fair.gate.take_away(key("mug"));
    assert_eq!(undecided(), 3, "what cannot be counted is as it was");
    for worker in [Worker::Sender, Worker::Consumer, Worker::Relay, Worker::Projector] {
        fair.step(worker);
    }
    assert_eq!(undecided(), 1);
    let overview = block_on(operate::overview(&fair.house.engine)).unwrap();
    let counted: Vec<bool> = overview.tally.skus.iter().map(|sku| sku.bucket.is_some()).collect();
    assert_eq!(counted.len(), 3);
    assert!(counted.contains(&true), "the others are shown all the same");
}

#[test]
fn fs_18_fs_19_a_part_of_the_gate_that_hangs_is_waited_for_by_its_own_buyers_only() {
    let fair = Fair::new();
    fair.gate.hang(key("mug"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let gate = Gate::open(fair.house.engine.clone());
        let ask = |sku, number| tokio::spawn(Fair::ask(gate.clone(), sku, number));
        let mut waiting = Vec::new();
        // In the same bursts, and more of them than there are batches on their way.
        for number in 0..10 {
            waiting.push(ask("mug", number));
            let others = [ask("cup", 2 * number), ask("cup", 2 * number + 1)];
            for other in others {
                let answer = timeout(SOON, other).await.expect("they are answered at once").unwrap();
                assert!(matches!(answer, Ok(ReserveAnswer::Queued { .. })), "{answer:?}");
            }
        }
        assert!(waiting.iter().all(|one| !one.is_finished()), "nobody knows what becomes of them");
        fair.gate.end();
        for one in waiting {
            let error = one.await.unwrap().unwrap_err();
            assert_eq!(error.code(), Code::Unavailable, "they may come again");
        }
    });
    assert_eq!((fair.counters("cup"), fair.counters("mug")), ((30, 20, 0), (50, 0, 0)));
}

#[test]
fn fs_19_a_closed_part_of_the_gate_refuses_those_who_came_to_it_and_the_others_get_their_reservation() {
    for tells_parts in [true, false] {
        let fair = Fair::with(tells_parts);
        fair.gate.take_away(key("mug"));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let answers = runtime.block_on(async {
            let gate = Gate::open(fair.house.engine.clone());
            let skus = ["mug", "cup"].into_iter().cycle().take(20);
            join_all(skus.enumerate().map(|(number, sku)| Fair::ask(gate.clone(), sku, number))).await
        });
        for pair in answers.chunks(2) {
            let refused = pair[0].as_ref().unwrap_err();
            assert_eq!((refused.code(), refused.class()), (Code::Unavailable, Class::Retryable));
            assert!(matches!(pair[1], Ok(ReserveAnswer::Queued { .. })), "{:?}", pair[1]);
        }
        assert_eq!((fair.counters("cup"), fair.counters("mug")), ((40, 10, 0), (50, 0, 0)));
        // The refused ones ask again, and are as new as before.
        fair.gate.mend();
        fair.reserve("mug", "u0");
    }
}

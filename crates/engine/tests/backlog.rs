//! What happens while work piles up: a bus that is away, consumers that are behind (FS-11, FS-16, FS-17).
#![expect(clippy::unwrap_used, reason = "in a test a panic is the message, also in what the tests share")]

mod house;

use std::num::NonZeroU32;
use std::sync::Arc;

use house::line::Line;
use house::{House, key, keys, usual_activity};
use onceward::gate::{Gate, ReserveRequest};
use onceward::governor::GovernorSettings;
use onceward::operations::{operate, queue};
use onceward::workers::{Next, Worker};
use onceward::{Engine, Ports, Settings};
use onceward_domain::decide::behind::{self, HOLDS};
use onceward_domain::due::Lane;
use onceward_domain::error::{Code, Error};
use onceward_domain::facts::{Facts, Need};
use onceward_domain::governor::{Band, Limits, Passage, Trouble};
use onceward_domain::id::{RequestId, UserId};
use onceward_domain::machine::reservation::Reservation;
use onceward_domain::ports::admission::ReserveAnswer;
use onceward_domain::time::{Millis, Timestamp};
use onceward_testkit::block_on::block_on;
use onceward_testkit::ids::CountingIds;
use onceward_testkit::notifier::People;
use tokio::runtime::Runtime;

/// A house with a gate in front, and a line to its bus that can be cut.
struct Sale {
    house: House,
    line: Arc<Line>,
    gate: Gate,
    runtime: Runtime,
}

fn limits() -> Limits {
    Limits {
        unsent: Band::new(20, 5),
        outage: Band::new(15_000, 3_000),
        drain: Band::new(500, 250),
        undecided_floor: 10,
    }
}

impl Sale {
    fn with(stock: i64, governor: GovernorSettings) -> Self {
        let mut house = House::with(stock, 1, usual_activity());
        let ports = Ports::embedded(house.store.clone(), Arc::new(CountingIds::new("sale")));
        let line = Line::to(ports.bus.clone());
        let ports = Ports { bus: line.clone(), ..ports }.with_notifier(Arc::new(People::default()));
        house.engine = Engine::new(ports, keys(), Settings { governor, ..Settings::default() });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let gate = {
            let _inside = runtime.enter();
            Gate::open(house.engine.clone())
        };
        Self { house, line, gate, runtime }
    }

    fn new(stock: i64) -> Self {
        Self::with(stock, GovernorSettings { limits: limits(), ..GovernorSettings::default() })
    }

    fn ask(&self, user: &str, quantity: u32) -> Result<ReserveAnswer, Error> {
        let (user, request) = (UserId::trusted(user), RequestId::trusted("r"));
        let request = ReserveRequest { key: key("cup"), user, request, quantity };
        self.runtime.block_on(self.gate.reserve(request))
    }

    /// Whether the buyer is let in.
    fn lets_in(&self, user: &str) -> bool {
        match self.ask(user, 1) {
            Ok(answer) => matches!(answer, ReserveAnswer::Queued { .. }),
            Err(error) => {
                assert_eq!(error.code(), Code::Backlog, "{error}");
                assert!(
                    error.wait().is_some_and(|wait| wait >= Millis(1_000)),
                    "a buyer is told when to come back"
                );
                false
            }
        }
    }

    fn look(&self) -> Passage {
        self.house.step(Worker::Governor).unwrap();
        self.house.engine.governor().passage()
    }

    /// Lets time pass while the relay and the sender try.
    fn outage(&self, length: i64, stride: i64) {
        for _ in 0..length / stride {
            for worker in [Worker::Sender, Worker::Relay, Worker::Governor] {
                self.house.step(worker).unwrap();
            }
            self.house.clock.advance(Millis(stride));
        }
    }

    fn orders(&self, users: impl Iterator<Item = String>) -> usize {
        let created = |user: String| {
            let purchase = self.house.purchase(self.house.id(&user, "r"));
            purchase.is_some_and(|one| one.reservation == Some(Reservation::OrderCreated))
        };
        users.filter(|user| created(user.clone())).count()
    }
}

fn user(number: usize) -> String {
    format!("u{number}")
}

#[test]
fn fs_16_a_bus_that_is_away_closes_admission_which_opens_by_itself_and_nothing_is_lost() {
    let sale = Sale::new(100);
    sale.line.cut();
    let mut admitted = 0;
    for number in 0..40 {
        admitted += usize::from(sale.lets_in(&user(number)));
        sale.look();
        sale.house.step(Worker::Sender).unwrap();
    }
    assert_eq!(admitted, 21, "it closes when the bound is passed");
    assert_eq!(sale.house.engine.governor().passage(), Passage::Closed(Trouble::Unsent));
    assert!(matches!(sale.ask("u0", 1), Ok(ReserveAnswer::Repeat { .. })), "who was let in is known (FS-02)");
    assert_eq!(sale.ask("u0", 7).unwrap(), ReserveAnswer::RequestConflict);
    sale.outage(120_000, 500);
    assert_eq!(sale.look(), Passage::Closed(Trouble::Unsent), "time alone opens nothing");
    assert_eq!(sale.house.figures().1, [79, 21, 0]);

    sale.line.mend();
    sale.house.pass(60_000);
    assert_eq!(sale.look(), Passage::Open);
    assert_eq!(sale.orders((0..40).map(user)), 21);
    assert!(sale.lets_in("late"));
    sale.house.rest();
    assert_eq!(sale.house.figures(), ([78, 22, 0], [78, 0, 22]));
    sale.house.assert_invariants();
}

#[test]
fn fs_16_one_reservation_that_nobody_takes_for_so_long_closes_admission() {
    let sale = Sale::new(100);
    sale.line.cut();
    assert!(sale.lets_in("first"));
    sale.outage(15_000, 500);
    assert_eq!(sale.look(), Passage::Open);
    sale.house.clock.advance(Millis(1));
    assert_eq!(sale.look(), Passage::Closed(Trouble::Outage));
    assert!(!sale.lets_in("second"));
    sale.line.mend();
    sale.house.pass(60_000);
    assert_eq!(sale.look(), Passage::Open);
    assert!(sale.lets_in("second"), "the refused request is as new as before");
    sale.house.rest();
    sale.house.assert_invariants();
}

#[test]
fn fs_17_admission_closes_where_what_waits_cannot_be_decided_in_time_and_opens_when_it_is() {
    let sale = Sale::new(100);
    for number in 0..11 {
        assert!(sale.lets_in(&user(number)));
    }
    sale.house.step(Worker::Sender).unwrap();
    assert_eq!(sale.look(), Passage::Open, "nothing was measured yet");
    sale.house.clock.advance(Millis(3_000));
    assert_eq!(sale.look(), Passage::Closed(Trouble::Backlog), "the consumers stand still");
    let sight = sale.house.engine.governor().view().sight.unwrap();
    assert_eq!((sight.undecided, sight.unsent, sight.pace), (11, 0, Some(0)));
    assert!(!sale.lets_in("late"));
    sale.house.rest();
    assert_eq!(sale.look(), Passage::Open);
    assert!(sale.lets_in("late"));
    sale.house.rest();
    assert_eq!(sale.orders((0..11).map(user)), 11);
    sale.house.assert_invariants();
}

#[test]
fn fs_17_deadlines_pause_while_consumers_are_far_behind_and_no_longer_than_that_can_mean() {
    /// More than one claim takes off the bus, each in a carrier of its own.
    const COUNT: usize = 20;
    let hour = 3_600_000;
    for (behind, rejected) in [(400_000, 0), (2 * hour, 4)] {
        let sale = Sale::new(100);
        for number in 0..COUNT {
            sale.house.reserve(&user(number), "r", 1);
            sale.house.step(Worker::Sender).unwrap();
        }
        sale.house.clock.advance(Millis(behind));
        sale.house.step(Worker::Consumer).unwrap();
        assert_eq!(sale.orders((0..COUNT).map(user)), 16);
        let deadlines = sale.house.step(Worker::Deadline).unwrap();
        assert_eq!(deadlines == Next::Again, rejected > 0, "{behind}");
        sale.house.rest();
        assert_eq!(sale.orders((0..COUNT).map(user)), COUNT - rejected, "{behind}");
        assert_eq!(sale.house.lane(Lane::JOURNAL), 0, "nobody behind any more, nothing is left lying");
        sale.house.assert_invariants();
    }
}

#[test]
fn fs_17_em_03_deadlines_pause_in_a_process_without_consumers_for_as_long_as_consumers_are_behind() {
    /// More than one claim takes off the bus, each in a carrier of its own.
    const COUNT: usize = 20;
    for is_dead in [false, true] {
        let mut house = House::with(100, 1, usual_activity());
        let node = |name| {
            let ports = Ports::store_backed(house.store.clone(), Arc::new(CountingIds::new(name)));
            Engine::new(ports, keys(), Settings::default())
        };
        let (consumers, scheduler) = (node("consumers"), node("scheduler"));
        let scheduler = House { engine: scheduler, store: house.store.clone(), clock: house.clock.clone() };
        house.engine = consumers;
        for number in 0..COUNT {
            house.reserve(&user(number), "r", 1);
            house.step(Worker::Sender).unwrap();
        }
        house.clock.advance(Millis(400_000));
        house.step(Worker::Consumer).unwrap();
        assert_eq!(house.lane(Lane::BEHIND), 1, "they say so");
        assert_ne!(scheduler.step(Worker::Deadline).unwrap(), Next::Again, "their messages may be the next");
        if is_dead {
            house.clock.advance(HOLDS);
        } else {
            for _more_than_are_left in 0..COUNT {
                house.step(Worker::Consumer).unwrap();
            }
        }
        assert_eq!(scheduler.step(Worker::Deadline).unwrap(), Next::Again, "nobody says it any more");
        assert_eq!(house.lane(Lane::BEHIND), 0);
        let state = |number| house.purchase(house.id(&user(number), "r")).unwrap().reservation;
        let orders = (0..COUNT).filter(|number| state(*number) == Some(Reservation::OrderCreated)).count();
        assert_eq!(orders, if is_dead { 16 } else { COUNT });
        house.assert_invariants();
    }
}

#[test]
fn fs_17_a_consumer_asks_no_more_of_the_store_than_it_was_told_it_can_do() {
    let governor = GovernorSettings { orders_per_second: NonZeroU32::new(10), ..GovernorSettings::default() };
    let sale = Sale::with(100, governor);
    let buyers: Vec<String> = (0..50).map(user).collect();
    let all: Vec<(&str, &str, u32)> = buyers.iter().map(|user| (user.as_str(), "r", 1)).collect();
    sale.house.reserve_all(&all);
    sale.house.step(Worker::Sender).unwrap();
    sale.house.reserve("late", "r", 1);
    sale.house.step(Worker::Sender).unwrap();
    assert_eq!(sale.house.step(Worker::Consumer).unwrap(), Next::Again);
    assert_eq!(sale.house.step(Worker::Consumer).unwrap(), Next::Wait(Some(Millis(5_100))));
    sale.house.clock.advance(Millis(5_099));
    assert_eq!(sale.house.step(Worker::Consumer).unwrap(), Next::Wait(Some(Millis(1))));
    sale.house.reserve("later", "r", 1);
    sale.house.step(Worker::Sender).unwrap();
    sale.house.clock.advance(Millis(1));
    assert_eq!(sale.house.step(Worker::Consumer).unwrap(), Next::Again);
    assert_eq!(sale.orders(["later".to_owned()].into_iter()), 1);
}

/// Says in the store that this process was far behind at this time.
fn say(house: &House, process: &str, at: Timestamp) {
    let process: Arc<str> = Arc::from(process);
    let say = move |_: &mut Facts| Ok((behind::say(&process, at), ()));
    block_on(onceward::execute::transact(&*house.store, "test", Need::default(), say)).unwrap();
}

#[test]
fn fs_17_consumers_that_rest_for_longer_than_what_they_said_holds_say_it_again() {
    /// More than one claim takes off the bus.
    const CARRIERS: usize = 20;
    let governor = GovernorSettings { orders_per_second: NonZeroU32::new(1), ..GovernorSettings::default() };
    let sale = Sale::with(1_000, governor);
    let user = |number: usize| format!("u{number}");
    for carrier in 0..CARRIERS {
        let buyers: Vec<String> = (8 * carrier..8 * (carrier + 1)).map(user).collect();
        let all: Vec<(&str, &str, u32)> = buyers.iter().map(|user| (user.as_str(), "r", 1)).collect();
        sale.house.reserve_all(&all);
        sale.house.step(Worker::Sender).unwrap();
    }
    sale.house.clock.advance(Millis(400_000));
    assert_eq!(sale.house.step(Worker::Consumer).unwrap(), Next::Again);
    let rest = sale.house.step(Worker::Consumer).unwrap();
    assert!(matches!(rest, Next::Wait(Some(rest)) if rest > HOLDS), "{rest:?}");
    // As often as a worker looks that nobody wakes.
    for _ in 0..100 {
        sale.house.clock.advance(sale.house.engine.settings().poll);
        assert!(matches!(sale.house.step(Worker::Consumer).unwrap(), Next::Wait(_)), "it rests");
        assert_ne!(sale.house.step(Worker::Deadline).unwrap(), Next::Again, "their messages may be the next");
    }
    sale.house.clock.advance(HOLDS);
    assert_eq!(sale.house.step(Worker::Consumer).unwrap(), Next::Again);
    assert_eq!(sale.orders((0..8 * CARRIERS).map(user)), 8 * CARRIERS, "nobody was rejected");
    sale.house.assert_invariants();
}

#[test]
fn fs_17_what_a_clock_that_ran_ahead_said_holds_up_no_deadline() {
    let house = House::new(9);
    house.reserve("u", "r", 1);
    house.clock.advance(usual_activity().reservation_deadline);
    let now = block_on(house.store.now()).unwrap();
    say(&house, "ahead", now.plus(Millis(86_400_000)));
    assert_eq!(house.step(Worker::Deadline).unwrap(), Next::Again);
    assert_eq!(house.lane(Lane::BEHIND), 0, "it is over");
}

#[test]
fn fs_17_whoever_is_alive_and_far_behind_is_seen_behind_any_number_of_dead_ones() {
    let house = House::new(9);
    house.reserve("u", "r", 1);
    let dead_at = block_on(house.store.now()).unwrap();
    for number in 0..200 {
        say(&house, &format!("dead-{number}"), dead_at);
    }
    house.clock.advance(usual_activity().reservation_deadline);
    say(&house, "alive", block_on(house.store.now()).unwrap());
    assert_ne!(house.step(Worker::Deadline).unwrap(), Next::Again, "its messages may be the next");
    assert_eq!(house.lane(Lane::BEHIND), 1, "the dead ones are gone");
    house.clock.advance(HOLDS);
    assert_eq!(house.step(Worker::Deadline).unwrap(), Next::Again);
}

#[test]
fn fs_17_what_processes_say_of_themselves_is_no_work_that_waits() {
    let house = House::new(9);
    say(&house, "process", block_on(house.store.now()).unwrap());
    let (_, queues) = block_on(queue::queues(&house.engine)).unwrap();
    let overview = block_on(operate::overview(&house.engine)).unwrap();
    let shown = queues.iter().map(|one| &one.lane).chain(&overview.lanes);
    assert!(shown.clone().count() > 10, "work is shown");
    assert!(shown.clone().all(|one| one.lane.as_str() != Lane::BEHIND), "it is nobody's to work off");
    let error = block_on(queue::set_paused(&house.engine, Lane::BEHIND, true, "ann")).unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
}

/// Two orders whose events wait in the outbox, each in an entry of its own.
fn with_events(sale: &Sale) {
    for user in ["first", "second"] {
        sale.house.reserve(user, "r", 1);
        sale.house.step(Worker::Sender).unwrap();
        sale.house.step(Worker::Consumer).unwrap();
    }
    assert_eq!(sale.house.lane(Lane::OUTBOX), 2);
}

#[test]
fn fs_11_fs_16_events_survive_a_day_without_a_bus_and_leave_in_their_order() {
    let day = 86_400_000;
    for silent in [false, true] {
        let sale = Sale::new(10);
        with_events(&sale);
        if silent {
            sale.line.silence()
        } else {
            sale.line.cut()
        }
        let before = sale.line.asked();
        sale.outage(600_000, 1_000);
        let tries = sale.line.asked() - before;
        assert!((20..120).contains(&tries), "the waits grow up to half a minute: {tries}");
        sale.outage(day, 30_000);
        assert_eq!((sale.house.lane(Lane::OUTBOX), sale.house.lane("dead/outbox")), (2, 0));
        sale.line.mend();
        sale.house.pass(60_000);
        assert_eq!(sale.house.lane(Lane::OUTBOX), 0);
        assert_eq!(sale.house.figures().1, [10, 0, 0], "both were projected, and have expired since");
        sale.house.assert_invariants();
    }
}

#[test]
fn fs_11_a_poison_event_dies_alone_and_a_person_is_told() {
    let sale = Sale::new(10);
    with_events(&sale);
    sale.line.refuse(&poison(&sale, "first"));
    sale.outage(900_000, 1_000);
    sale.house.rest();
    assert_eq!((sale.house.lane(Lane::OUTBOX), sale.house.lane("dead/outbox")), (0, 1));
    assert_eq!(sale.house.figures().1, [8, 1, 1], "the one behind it was projected");
    let letters = block_on(queue::dead_letters(&sale.house.engine, 10, None)).unwrap();
    sale.line.refuse("nothing");
    block_on(queue::replay_dead_letter(&sale.house.engine, &letters[0].member, "ann")).unwrap();
    sale.house.rest();
    assert_eq!(sale.house.figures().1, [8, 0, 2]);
}

/// The id of the event that tells of this buyer's order.
fn poison(sale: &Sale, user: &str) -> String {
    use onceward_domain::id::IdKind;
    sale.house.id(user, "r").event(IdKind::EventOrderCreated).0.to_string()
}

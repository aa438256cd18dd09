//! Time is up: whatever tells of it, and however badly, each due order is cancelled, and none before its time (OT-04, OT-10).

mod house;

use std::sync::Arc;

use house::{House, keys, usual_activity};
use onceward::queue_deadline::QueueTrigger;
use onceward::runtime::Role;
use onceward::workers::{Next, Worker};
use onceward::{Engine, Ports, Settings};
use onceward_domain::catalogue::Activity;
use onceward_domain::due::{DueChange, Lane, Member};
use onceward_domain::facts::Need;
use onceward_domain::id::PurchaseId;
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::ports::Answer;
use onceward_domain::ports::clock::Clock as _;
use onceward_domain::ports::deadline::{DeadlineTrigger, Expiry, Signal, SignalEnd, TriggerKind};
use onceward_domain::time::{Millis, Timestamp};
use onceward_testkit::block_on::block_on;
use onceward_testkit::ids::CountingIds;

const DAY: i64 = 24 * 60 * 60 * 1_000;

/// How a trigger goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bend {
    Straight,
    LosesAll,
    DoublesEverything,
    Early,
    Late,
}

const BENDS: [Bend; 5] = [Bend::Straight, Bend::LosesAll, Bend::DoublesEverything, Bend::Early, Bend::Late];

/// How much too early or late.
const OFF: Millis = Millis(30 * 60 * 1_000);

/// A trigger that goes wrong in one way.
struct Bent {
    inner: Arc<dyn DeadlineTrigger>,
    bend: Bend,
}

impl Bent {
    fn moved(&self, expiries: &[Expiry]) -> Vec<Expiry> {
        let at = |due_at: Timestamp| match self.bend {
            Bend::Early => due_at.minus(OFF),
            Bend::Late => due_at.plus(OFF),
            Bend::Straight | Bend::LosesAll | Bend::DoublesEverything => due_at,
        };
        expiries.iter().map(|one| Expiry { due_at: at(one.due_at), ..*one }).collect()
    }
}

impl DeadlineTrigger for Bent {
    fn kind(&self) -> TriggerKind {
        self.inner.kind()
    }

    fn within(&self, member: &Member, expiries: &[Expiry]) -> Vec<DueChange> {
        let expiries = self.moved(expiries);
        let mut rows = self.inner.within(member, &expiries);
        match self.bend {
            Bend::LosesAll => return Vec::new(),
            Bend::DoublesEverything => rows.extend(self.inner.within(&Arc::from("again"), &expiries)),
            Bend::Straight | Bend::Early | Bend::Late => {}
        }
        rows
    }

    fn offer(&self, expiries: Vec<Expiry>) -> Answer<'_, ()> {
        let expiries = self.moved(&expiries);
        Box::pin(async move {
            if self.bend == Bend::LosesAll {
                return Ok(());
            }
            if self.bend == Bend::DoublesEverything {
                self.inner.offer(expiries.clone()).await?;
            }
            self.inner.offer(expiries).await
        })
    }

    fn take(&self, limit: u32, lease: Millis) -> Answer<'_, Vec<Signal>> {
        Box::pin(async move {
            let mut taken = self.inner.take(limit, lease).await?;
            if self.bend == Bend::DoublesEverything {
                taken.extend(taken.clone());
            }
            Ok(taken)
        })
    }

    fn settle(&self, ends: Vec<SignalEnd>) -> Answer<'_, u32> {
        self.inner.settle(ends)
    }

    fn next_in(&self) -> Answer<'_, Option<Millis>> {
        self.inner.next_in()
    }
}

/// A trigger of the embedded mode.
#[derive(Debug, Clone, Copy)]
enum Embedded {
    Store,
    Queue,
}

const TRIGGERS: [Embedded; 2] = [Embedded::Store, Embedded::Queue];

/// A house whose engine is told by this trigger, bent.
fn told_by(trigger: Embedded, bend: Bend, activity: Activity) -> House {
    let mut house = House::with(500, 1, activity);
    house.engine = engine_of(&house, trigger, bend);
    house
}

fn engine_of(house: &House, trigger: Embedded, bend: Bend) -> Engine {
    let ports = Ports::store_backed(house.store.clone(), Arc::new(CountingIds::new("d")));
    let inner = match trigger {
        Embedded::Store => ports.deadline.clone(),
        Embedded::Queue => Arc::new(QueueTrigger::new(house.clock.clone())),
    };
    Engine::new(ports.with_deadline_trigger(Arc::new(Bent { inner, bend })), keys(), Settings::default())
}

fn window(payment: i64, grace: i64) -> Activity {
    Activity {
        payment_window: Millis(payment),
        cancel_grace: Millis(grace),
        ends_at: END,
        ..usual_activity()
    }
}

const END: Timestamp = Timestamp(i64::MAX / 2);

/// Orders of this many buyers.
fn order(house: &House, buyers: usize) -> Vec<PurchaseId> {
    let names: Vec<String> = (0..buyers).map(|number| format!("u{number}")).collect();
    let wishes: Vec<(&str, &str, u32)> = names.iter().map(|name| (name.as_str(), "r", 1)).collect();
    house.reserve_all(&wishes);
    house.rest();
    names.iter().map(|name| house.id(name, "r")).collect()
}

/// How many of these orders are in this state.
fn count(house: &House, orders: &[PurchaseId], status: OrderStatus) -> usize {
    let facts = block_on(house.store.view(Need { purchases: orders.to_vec(), ..Need::default() }))
        .expect("it is there");
    let is = |id: &&PurchaseId| facts.purchases[*id].order.as_ref().expect("it is an order").status == status;
    orders.iter().filter(is).count()
}

fn at(house: &House, start: Timestamp, after: i64) {
    house.clock.set(start.plus(Millis(after)));
    house.rest();
}

#[test]
fn ot_10_whatever_a_trigger_does_each_due_order_is_cancelled_once_and_none_early() {
    const DUE: i64 = 1_200_000;
    let sweep_after = Settings::default().sweep_after.0;
    for trigger in TRIGGERS {
        for bend in BENDS {
            let case = format!("{trigger:?} {bend:?}");
            let house = told_by(trigger, bend, usual_activity());
            let start = Timestamp(10_000);
            let orders = order(&house, 30);
            for after in [DUE - OFF.0.min(DUE - 1), DUE / 2, DUE - 1] {
                at(&house, start, after);
                assert_eq!(count(&house, &orders, OrderStatus::Created), 30, "{case}: early at {after}");
            }
            at(&house, start, DUE);
            let told = match bend {
                Bend::LosesAll | Bend::Late => 0,
                Bend::Straight | Bend::DoublesEverything | Bend::Early => 30,
            };
            assert_eq!(count(&house, &orders, OrderStatus::Cancelled), told, "{case}: on time");
            at(&house, start, DUE + sweep_after - 1);
            assert_eq!(count(&house, &orders, OrderStatus::Cancelled), told, "{case}: left to the trigger");
            at(&house, start, DUE + sweep_after);
            assert_eq!(count(&house, &orders, OrderStatus::Cancelled), 30, "{case}: swept");
            at(&house, start, DUE + 2 * OFF.0);
            assert_eq!(count(&house, &orders, OrderStatus::Cancelled), 30, "{case}: it stays");
            assert_eq!(house.lane(Lane::ORDER_EXPIRY), 0, "{case}: nothing is left behind");
            assert_eq!(house.figures(), ([500, 0, 0], [500, 0, 0]), "{case}: stock came back once");
            house.assert_invariants();
        }
    }
}

#[test]
fn d_3_ot_10_a_restart_forgets_the_queue_and_the_sweep_finds_its_orders() {
    let mut house = told_by(Embedded::Queue, Bend::Straight, usual_activity());
    let orders = order(&house, 5);
    house.engine = engine_of(&house, Embedded::Queue, Bend::Straight);
    at(&house, Timestamp(10_000), 1_200_000 + Settings::default().sweep_after.0);
    assert_eq!(count(&house, &orders, OrderStatus::Cancelled), 5);
}

#[test]
fn ot_10_changing_the_trigger_strands_nothing() {
    for (before, after) in [(Embedded::Store, Embedded::Queue), (Embedded::Queue, Embedded::Store)] {
        let mut house = told_by(before, Bend::Straight, usual_activity());
        let orders = order(&house, 5);
        house.engine = engine_of(&house, after, Bend::Straight);
        at(&house, Timestamp(10_000), 1_300_000);
        assert_eq!(count(&house, &orders, OrderStatus::Cancelled), 5, "{before:?} to {after:?}");
        assert_eq!(house.lane(Lane::ORDER_EXPIRY), 0, "{before:?} to {after:?}");
    }
}

#[test]
fn ot_10_two_sweeps_and_a_trigger_at_once_end_an_order_once() {
    let house = told_by(Embedded::Store, Bend::Straight, usual_activity());
    let orders = order(&house, 20);
    house.clock.set(Timestamp(10_000 + 1_300_000));
    let other = engine_of(&house, Embedded::Store, Bend::LosesAll);
    std::thread::scope(|scope| {
        for (engine, worker) in
            [(&house.engine, Worker::Sweep), (&other, Worker::Sweep), (&house.engine, Worker::Expiry)]
        {
            scope.spawn(move || while block_on(worker.step(engine)).unwrap() == Next::Again {});
        }
    });
    house.rest();
    assert_eq!(count(&house, &orders, OrderStatus::Cancelled), 20);
    assert_eq!(house.figures(), ([500, 0, 0], [500, 0, 0]));
    house.assert_invariants();
}

#[test]
fn d_8_ot_04_delays_of_24_25_and_400_days_are_never_early() {
    for trigger in TRIGGERS {
        for days in [24, 25, 400] {
            let house = told_by(trigger, Bend::Straight, window(days * DAY, 0));
            let orders = order(&house, 2);
            let start = Timestamp(10_000);
            for after in [1, DAY, days * DAY - 1] {
                at(&house, start, after);
                assert_eq!(count(&house, &orders, OrderStatus::Created), 2, "{trigger:?} {days} {after}");
            }
            at(&house, start, days * DAY);
            assert_eq!(count(&house, &orders, OrderStatus::Cancelled), 2, "{trigger:?} {days}");
        }
    }
}

/// Zones and changes of clock are offsets of what somebody calls the time; the engine knows milliseconds since 1970 only. A
/// clock that jumps by such an offset, forward or back, must not end an order before the store's own time has come.
#[test]
fn c_36_no_order_ends_before_its_creation_and_limit_whatever_the_clock_does() {
    const HOUR: i64 = 60 * 60 * 1_000;
    const LIMIT: i64 = 20 * 60 * 1_000;
    for trigger in TRIGGERS {
        for jump in [-12 * HOUR, -HOUR, -1, 1] {
            let house = told_by(trigger, Bend::Straight, window(LIMIT, 0));
            house.clock.set(Timestamp(30 * HOUR));
            let orders = order(&house, 3);
            let created = house.purchase(orders[0]).unwrap().order.unwrap();
            assert_eq!(created.cancel_due_at, created.created_at.plus(Millis(LIMIT)));
            house.clock.advance(Millis(jump));
            let due = created.cancel_due_at;
            for moment in [house.clock.now(), due.minus(Millis(1))] {
                house.clock.set(moment);
                house.rest();
                assert_eq!(count(&house, &orders, OrderStatus::Created), 3, "{trigger:?} {jump}");
            }
            house.clock.set(due);
            house.rest();
            assert_eq!(count(&house, &orders, OrderStatus::Cancelled), 3, "{trigger:?} {jump}");
        }
    }
}

#[test]
fn c_1_a_clock_that_steps_back_between_telling_and_deciding_drops_nothing() {
    for trigger in TRIGGERS {
        let house = told_by(trigger, Bend::Straight, window(60_000, 0));
        let orders = order(&house, 3);
        house.clock.set(Timestamp(10_000 + 60_000));
        let taken = block_on(house.engine.deadline_trigger().take(10, Millis(1_000))).unwrap();
        assert!(!taken.is_empty());
        house.clock.advance(Millis(-5_000));
        for _ in 0..20 {
            house.clock.advance(Millis(500));
            house.rest();
        }
        assert_eq!(count(&house, &orders, OrderStatus::Cancelled), 3, "{trigger:?}");
    }
}

#[test]
fn d_14_a_store_that_stalls_over_a_thousand_deadlines_skips_none() {
    for trigger in TRIGGERS {
        let mut house = House::with(1_000, 1, window(60_000, 0));
        house.engine = engine_of(&house, trigger, Bend::Straight);
        let orders = order(&house, 1_000);
        // Nobody could look for an hour.
        at(&house, Timestamp(10_000), 60 * 60_000);
        assert_eq!(count(&house, &orders, OrderStatus::Cancelled), 1_000, "{trigger:?}");
        house.assert_invariants();
    }
}

#[test]
fn d_13_due_times_within_one_second_keep_their_order() {
    for trigger in TRIGGERS {
        let house = told_by(trigger, Bend::Straight, window(60_000, 0));
        let mut orders = Vec::new();
        for (number, millis) in [200, 900, 999].into_iter().enumerate() {
            house.clock.set(Timestamp(100_000 + millis));
            house.reserve(&format!("s{number}"), "r", 1);
            house.rest();
            orders.push(house.id(&format!("s{number}"), "r"));
        }
        for (millis, ended) in [(199, 0), (200, 1), (899, 1), (900, 2), (998, 2), (999, 3)] {
            house.clock.set(Timestamp(160_000 + millis));
            house.rest();
            assert_eq!(count(&house, &orders, OrderStatus::Cancelled), ended, "{trigger:?} at {millis}");
        }
    }
}

#[test]
fn ot_11_the_wait_is_that_for_the_next_due_time() {
    for trigger in TRIGGERS {
        let house = told_by(trigger, Bend::Straight, window(60_000, 5_000));
        assert_eq!(house.step(Worker::Expiry).unwrap(), Next::Wait(None), "{trigger:?}: nothing is to come");
        assert_eq!(house.step(Worker::Sweep).unwrap(), Next::Wait(None), "{trigger:?}: nothing is to come");
        order(&house, 1);
        house.clock.advance(Millis(1_000));
        let until = |length: i64| Next::Wait(Some(Millis(length)));
        assert_eq!(house.step(Worker::Expiry).unwrap(), until(64_000), "{trigger:?}");
        let sweep = 64_000 + Settings::default().sweep_after.0;
        assert_eq!(house.step(Worker::Sweep).unwrap(), until(sweep), "{trigger:?}");
    }
}

#[test]
fn d_15_a_runtime_that_nobody_wakes_finds_what_comes_due() {
    // An hour goes by without a single request; then one order is due, and nothing is inserted.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_time().worker_threads(1).build().unwrap();
    for trigger in TRIGGERS {
        let house = told_by(trigger, Bend::Straight, window(60 * 60_000, 0));
        let orders = order(&house, 1);
        runtime.block_on(async {
            let running = onceward::runtime::start(&house.engine, &[Role::Scheduler]);
            house.clock.advance(Millis(60 * 60_000));
            let cancelled = async {
                while count(&house, &orders, OrderStatus::Cancelled) == 0 {
                    tokio::task::yield_now().await;
                }
            };
            let limit = std::time::Duration::from_secs(20);
            tokio::time::timeout(limit, cancelled).await.expect("it is found by the bounded poll");
            running.drain().await;
        });
    }
}

#[test]
fn ot_10_due_work_is_written_only_where_the_trigger_lives_in_the_store() {
    for (trigger, entries) in [(Embedded::Store, 1), (Embedded::Queue, 0)] {
        let house = told_by(trigger, Bend::Straight, usual_activity());
        order(&house, 3);
        assert_eq!(house.lane(Lane::ORDER_EXPIRY), entries, "{trigger:?}: one entry for the batch, or none");
    }
}

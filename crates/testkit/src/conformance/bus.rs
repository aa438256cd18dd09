//! What every [`Bus`] promises: at least once, under leases, in order where the topic says so.
//!
//! A case settles every message that it took, so that a bus may carry several messages in one parcel and end them
//! together. What a bus does otherwise it declares as [`Capabilities`], and the cases ask. A bus in the process takes its
//! time from a clock that the case moves; a broker has time of its own, which passes while the case asks it again and
//! again. Deliberately absent: exactly once; copies are allowed, so no case counts deliveries from above.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use onceward_domain::ports::bus::{
    Bus, Capabilities, Delivery, Message, Order, Published, Settlement, Topic,
};
use onceward_domain::time::{Millis, Timestamp};

use super::store::ground::{LEASE, START};
use crate::block_on::block_on;
use crate::clock::ManualClock;

/// Makes a fresh, empty bus that takes its time from the clock.
pub type MakeBus<'a> = &'a dyn Fn(Arc<ManualClock>) -> Arc<dyn Bus>;

/// Makes a fresh, empty bus for the case of this name, in a server that has time of its own.
pub type MakeServed<'a> = &'a (dyn Fn(&str) -> Served + Sync);

/// A bus in a server, and the server's time.
pub struct Served {
    /// The bus.
    pub bus: Arc<dyn Bus>,
    /// The time by which the server stamps what is published.
    pub now: fn() -> Timestamp,
}

type Case = (&'static str, fn(&Ground));

const CASES: &[Case] = &[
    ("dr_02_what_was_acknowledged_is_delivered_as_it_was", delivered_as_published),
    ("fs_06_what_was_not_settled_comes_again_after_its_lease", comes_again),
    ("fs_06_what_was_settled_does_not_come_again", ends),
    ("fs_11_a_retry_waits_and_counts", retry_waits),
    ("fs_16_what_is_handed_back_waits_and_does_not_count", hand_back_waits),
    ("fs_08_what_is_dead_does_not_come_again", dead),
    ("lq_02_a_receipt_of_a_lost_lease_settles_nothing", stale_receipt),
    ("fs_11_topics_are_apart", topics_apart),
    ("fs_11_events_keep_their_order", events_in_order),
    ("fs_11_a_key_keeps_its_order_across_batches", keys_in_order),
    ("ot_11_the_next_delivery_is_known", next_delivery),
    ("fs_06_two_thousand_messages_all_arrive", many),
];

/// Runs every case, each on a fresh bus, and panics at the end with the names of those that failed.
///
/// # Panics
/// Where a case fails.
pub fn run_all(make: MakeBus<'_>) {
    let run = |case: fn(&Ground)| {
        let clock = Arc::new(ManualClock::new(START));
        let bus = make(Arc::clone(&clock));
        case(&Ground { time: Time::Ours(clock), bus });
    };
    super::run_named("bus", CASES.iter().map(|(name, case)| (*name, move || run(*case))));
}

/// The same on a server, whose time passes by itself: all cases at once, each on a fresh bus, so that they wait together.
///
/// # Panics
/// Where a case fails.
pub fn run_all_served(make: MakeServed<'_>) {
    let run = |name: &str, case: fn(&Ground)| {
        let Served { bus, now } = make(name);
        case(&Ground { time: Time::Theirs(now), bus });
    };
    let failed: Vec<&str> = std::thread::scope(|scope| {
        let threads: Vec<_> = CASES
            .iter()
            .map(|(name, case)| {
                (*name, scope.spawn(move || catch_unwind(AssertUnwindSafe(|| run(name, *case)))))
            })
            .collect();
        let is_broken = |thread: std::thread::ScopedJoinHandle<'_, std::thread::Result<()>>| {
            !matches!(thread.join(), Ok(Ok(())))
        };
        threads.into_iter().filter_map(|(name, thread)| is_broken(thread).then_some(name)).collect()
    });
    assert!(failed.is_empty(), "the served bus breaks {} promises: {failed:#?}", failed.len());
}

/// Whose time it is.
enum Time {
    /// The case moves it.
    Ours(Arc<ManualClock>),
    /// It passes; the function reads it.
    Theirs(fn() -> Timestamp),
}

struct Ground {
    time: Time,
    bus: Arc<dyn Bus>,
}

const ORDERS: Topic = Topic::OrderCreate;
const EVENTS: Topic = Topic::Events;
/// More than any case publishes.
const ALL: u32 = 10_000;
/// What a server may take on a busy machine, beyond what it declares.
const PATIENCE: Duration = Duration::from_secs(30);
/// How exactly a case can meet a point in a server's time: it is asked again and again, and each asking waits a while.
const BLUR: Millis = Millis(3_000);

fn message(id: &str) -> Message {
    let payload = [id.as_bytes(), &[0, 255, 10]].concat();
    Message { id: Arc::from(id), key: Arc::from(format!("key-{id}").as_str()), payload }
}

fn duration(length: Millis) -> Duration {
    Duration::from_millis(length.0.unsigned_abs())
}

impl Ground {
    fn can(&self) -> Capabilities {
        self.bus.capabilities()
    }

    fn lease(&self) -> Millis {
        match self.time {
            Time::Ours(_) => LEASE,
            Time::Theirs(_) => self.can().shortest_lease,
        }
    }

    /// The least by which a case stays clear of a point in time.
    fn tick(&self) -> Millis {
        match self.time {
            Time::Ours(_) => Millis(1),
            Time::Theirs(_) => BLUR,
        }
    }

    /// Longer than it takes until anything that is not settled has come again.
    fn ages(&self) -> Millis {
        match self.time {
            Time::Ours(_) => Millis(LEASE.0 * 10),
            Time::Theirs(_) => Millis(self.lease().0 + self.can().lateness.0),
        }
    }

    fn publish_all(&self, topic: Topic, messages: Vec<Message>) {
        let count = messages.len();
        let outcomes = block_on(self.bus.publish(topic, messages)).expect("the bus answers");
        assert_eq!(outcomes, vec![Published::Acked; count]);
    }

    fn publish(&self, topic: Topic, ids: &[&str]) {
        self.publish_all(topic, ids.iter().map(|id| message(id)).collect());
    }

    fn consume(&self, topic: Topic) -> Vec<Delivery> {
        block_on(self.bus.consume(topic, ALL, self.lease())).expect("the bus answers")
    }

    /// Consumes until so many messages have come, or no more are to be expected.
    fn take(&self, topic: Topic, count: usize) -> Vec<Delivery> {
        let until = Instant::now() + PATIENCE + duration(self.can().lateness);
        let mut taken = Vec::new();
        while taken.len() < count {
            let deliveries = self.consume(topic);
            let is_over = match self.time {
                Time::Ours(_) => deliveries.is_empty(),
                Time::Theirs(_) => Instant::now() > until,
            };
            taken.extend(deliveries);
            if is_over {
                break;
            }
        }
        taken
    }

    /// Lets this much time pass in which nothing is delivered, its last moment included.
    fn quiet(&self, topic: Topic, length: Millis) {
        match &self.time {
            Time::Ours(clock) => {
                clock.advance(length);
                assert!(self.consume(topic).is_empty(), "nothing was to come yet, or any more");
            }
            Time::Theirs(_) => {
                let until = Instant::now() + duration(length);
                while Instant::now() < until {
                    assert!(self.consume(topic).is_empty(), "nothing was to come yet, or any more");
                }
            }
        }
    }

    /// Lets this much time pass, in which a server may deliver already.
    fn pass(&self, length: Millis) {
        match &self.time {
            Time::Ours(clock) => clock.advance(length),
            Time::Theirs(_) => {}
        }
    }

    fn settle(&self, topic: Topic, settlements: Vec<Settlement>) {
        block_on(self.bus.settle(topic, settlements)).expect("a settlement is never refused");
    }

    fn ack(&self, topic: Topic, deliveries: &[Delivery]) {
        self.settle(topic, deliveries.iter().map(|one| Settlement::Ack(one.receipt.clone())).collect());
    }

    fn next(&self, topic: Topic) -> Option<Timestamp> {
        block_on(self.bus.next_delivery(topic)).expect("the bus answers")
    }

    /// Nothing is there, as far as the bus can say.
    fn is_empty(&self, topic: Topic) -> bool {
        !self.can().foresight || self.next(topic).is_none()
    }
}

fn ids(deliveries: &[Delivery]) -> BTreeSet<&str> {
    deliveries.iter().map(|delivery| &*delivery.message.id).collect()
}

fn delivered_as_published(ground: &Ground) {
    assert!(ground.consume(ORDERS).is_empty());
    assert_eq!(block_on(ground.bus.publish(ORDERS, Vec::new())).expect("the bus answers"), []);
    let now = || match ground.time {
        Time::Ours(_) => START,
        Time::Theirs(now) => now(),
    };
    let from = now();
    ground.publish(ORDERS, &["a", "b"]);
    ground.publish(ORDERS, &["c"]);
    let deliveries = ground.take(ORDERS, 3);
    assert_eq!(ids(&deliveries), BTreeSet::from(["a", "b", "c"]));
    for delivery in &deliveries {
        assert_eq!(delivery.message, message(&delivery.message.id));
        assert_eq!(delivery.attempts, 1);
        assert!((from..=now()).contains(&delivery.published_at), "{:?}", delivery.published_at);
    }
    ground.ack(ORDERS, &deliveries);
}

fn comes_again(ground: &Ground) {
    ground.publish(ORDERS, &["a", "b"]);
    let first = ground.take(ORDERS, 2);
    assert_eq!(ids(&first), BTreeSet::from(["a", "b"]));
    ground.quiet(ORDERS, Millis(ground.lease().0 - ground.tick().0));
    ground.pass(ground.tick());
    let again = ground.take(ORDERS, 2);
    assert_eq!(ids(&again), BTreeSet::from(["a", "b"]));
    assert!(again.iter().all(|delivery| delivery.attempts == 2));
    ground.ack(ORDERS, &again);
}

fn ends(ground: &Ground) {
    ground.publish(ORDERS, &["a", "b"]);
    ground.ack(ORDERS, &ground.take(ORDERS, 2));
    ground.quiet(ORDERS, ground.ages());
    assert!(ground.is_empty(ORDERS));
}

fn retry_waits(ground: &Ground) {
    ground.publish(ORDERS, &["a", "b"]);
    let deliveries = ground.take(ORDERS, 2);
    let settlement = |delivery: &Delivery| match &*delivery.message.id {
        "a" => Settlement::Ack(delivery.receipt.clone()),
        _ => Settlement::Retry(delivery.receipt.clone(), Millis(5_000)),
    };
    ground.settle(ORDERS, deliveries.iter().map(settlement).collect());
    ground.quiet(ORDERS, Millis(5_000 - ground.tick().0));
    ground.pass(ground.tick());
    let again = ground.take(ORDERS, 1);
    assert_eq!(ids(&again), BTreeSet::from(["b"]));
    assert_eq!(again[0].attempts, 2);
    ground.ack(ORDERS, &again);
    ground.quiet(ORDERS, ground.ages());
}

fn hand_back_waits(ground: &Ground) {
    ground.publish(ORDERS, &["a", "b"]);
    let first = ground.take(ORDERS, 2);
    let settlement = |delivery: &Delivery| match &*delivery.message.id {
        "a" => Settlement::Ack(delivery.receipt.clone()),
        _ => Settlement::HandBack(delivery.receipt.clone(), Millis(5_000)),
    };
    ground.settle(ORDERS, first.iter().map(settlement).collect());
    ground.quiet(ORDERS, Millis(5_000 - ground.tick().0));
    ground.pass(ground.tick());
    let second = ground.take(ORDERS, 1);
    assert_eq!(ids(&second), BTreeSet::from(["b"]));
    assert_eq!(second[0].attempts, 1, "what could not be tried is no try");
    ground.settle(ORDERS, vec![Settlement::Retry(second[0].receipt.clone(), Millis(1))]);
    ground.pass(Millis(1));
    let third = ground.take(ORDERS, 1);
    assert_eq!((ids(&third), third[0].attempts), (BTreeSet::from(["b"]), 2));
    ground.ack(ORDERS, &third);
    ground.quiet(ORDERS, ground.ages());
}

fn dead(ground: &Ground) {
    ground.publish(ORDERS, &["a", "b"]);
    let deliveries = ground.take(ORDERS, 2);
    ground.settle(ORDERS, deliveries.iter().map(|one| Settlement::Dead(one.receipt.clone())).collect());
    ground.quiet(ORDERS, ground.ages());
}

fn stale_receipt(ground: &Ground) {
    ground.publish(ORDERS, &["a"]);
    let first = ground.take(ORDERS, 1);
    ground.pass(ground.lease());
    let second = ground.take(ORDERS, 1);
    assert_eq!(ids(&second), BTreeSet::from(["a"]));
    ground.ack(ORDERS, &first);
    ground.pass(ground.lease());
    let third = ground.take(ORDERS, 1);
    assert_eq!(ids(&third), BTreeSet::from(["a"]), "whoever lost the lease ends nothing");
    ground.ack(ORDERS, &third);
    ground.ack(ORDERS, &third);
    ground.quiet(ORDERS, ground.ages());
}

fn topics_apart(ground: &Ground) {
    ground.publish(ORDERS, &["order"]);
    ground.publish(EVENTS, &["event"]);
    assert_eq!(ids(&ground.take(EVENTS, 1)), BTreeSet::from(["event"]));
    assert_eq!(ids(&ground.take(ORDERS, 1)), BTreeSet::from(["order"]));
}

fn of_key(key: &str, id: &str) -> Message {
    Message { key: Arc::from(key), ..message(id) }
}

fn events_in_order(ground: &Ground) {
    // One key: these must keep their order whatever else the bus does at once.
    for id in ["e1", "e2", "e3"] {
        ground.publish_all(EVENTS, vec![of_key("sku", id)]);
    }
    let first = ground.take(EVENTS, 1);
    assert_eq!(first.first().map(|head| &*head.message.id), Some("e1"), "the head is given out");
    ground.quiet(EVENTS, Millis(ground.lease().0 - ground.tick().0));
    ground.pass(ground.tick());
    let mut seen: Vec<String> = Vec::new();
    for _round in 0..20 {
        let deliveries = ground.take(EVENTS, 1);
        seen.extend(deliveries.iter().map(|delivery| delivery.message.id.to_string()));
        ground.ack(EVENTS, &deliveries);
        if seen.iter().any(|id| id == "e3") {
            break;
        }
    }
    seen.dedup();
    assert_eq!(seen, ["e1", "e2", "e3"]);
}

fn keys_in_order(ground: &Ground) {
    const KEYS: usize = 40;
    const ROUNDS: usize = 6;
    const BATCHES: usize = 3;
    let mut published = 0;
    for batch in 0..BATCHES {
        let of_batch = (0..ROUNDS * KEYS).map(|number| {
            let (round, key) = (batch * ROUNDS + number / KEYS, number % KEYS);
            of_key(&format!("key{key:02}"), &format!("{key:02}/{round:02}"))
        });
        ground.publish_all(EVENTS, of_batch.collect());
        published += ROUNDS * KEYS;
    }
    let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut count = 0;
    while count < published {
        let deliveries = ground.take(EVENTS, 1);
        assert!(!deliveries.is_empty(), "{count} of {published} have come");
        for Delivery { message, .. } in &deliveries {
            seen.entry(message.key.to_string()).or_default().push(message.id.to_string());
        }
        ground.ack(EVENTS, &deliveries);
        count = seen.values().map(|of_key| of_key.iter().collect::<BTreeSet<_>>().len()).sum();
    }
    assert_eq!(seen.len(), KEYS);
    for (key, mut of_key) in seen {
        of_key.dedup();
        assert!(of_key.is_sorted(), "{key}: {of_key:?}");
    }
}

fn next_delivery(ground: &Ground) {
    if !ground.can().foresight {
        // It says "ask again now", and the asking itself waits.
        assert!(ground.next(EVENTS).is_some_and(|next| next <= START));
        return;
    }
    assert_eq!(ground.next(EVENTS), None);
    for topic in Topic::ALL {
        ground.publish(topic, &["a"]);
        assert!(ground.next(topic).is_some_and(|next| next <= START), "something is there now");
        ground.take(topic, 1);
        ground.publish(topic, &["b"]);
        let next = ground.next(topic).expect("something will come");
        match (topic, ground.can().order) {
            // What waits behind the head of an ordered topic comes no earlier than the head.
            (Topic::Events, Order::Topic) => assert_eq!(next, START.plus(LEASE)),
            (Topic::Events, Order::Key) | (Topic::OrderCreate, _) => assert!(next <= START.plus(LEASE)),
        }
    }
}

fn many(ground: &Ground) {
    const COUNT: usize = 2_000;
    let names: Vec<String> = (0..COUNT).map(|number| format!("m{number:05}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    ground.publish(ORDERS, &names);
    let mut seen: BTreeSet<String> = BTreeSet::new();
    while seen.len() < COUNT {
        let deliveries = ground.take(ORDERS, 1);
        assert!(!deliveries.is_empty(), "{} of {COUNT} have come", seen.len());
        seen.extend(deliveries.iter().map(|delivery| delivery.message.id.to_string()));
        ground.ack(ORDERS, &deliveries);
    }
    assert!(ground.is_empty(ORDERS));
}

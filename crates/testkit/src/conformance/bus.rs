//! What every [`Bus`] promises: at least once, under leases, in order where the topic says so.
//!
//! A case settles every message that it took, so that a bus may carry several messages in one parcel and end them
//! together. Deliberately absent: exactly once; copies are allowed, so no case counts deliveries from above.

use std::collections::BTreeSet;
use std::sync::Arc;

use onceward_domain::ports::bus::{Bus, Delivery, Message, Published, Settlement, Topic};
use onceward_domain::time::{Millis, Timestamp};

use super::store::ground::{LEASE, START};
use crate::block_on::block_on;
use crate::clock::ManualClock;

/// Makes a fresh, empty bus that takes its time from the clock.
pub type MakeBus<'a> = &'a dyn Fn(Arc<ManualClock>) -> Arc<dyn Bus>;

type Case = (&'static str, fn(&Ground));

const CASES: &[Case] = &[
    ("dr_02_what_was_acknowledged_is_delivered_as_it_was", delivered_as_published),
    ("fs_06_what_was_not_settled_comes_again_after_its_lease", comes_again),
    ("fs_06_what_was_settled_does_not_come_again", ends),
    ("fs_11_a_retry_waits_and_counts", retry_waits),
    ("fs_08_what_is_dead_does_not_come_again", dead),
    ("lq_02_a_lost_lease_ends_nothing", stale_receipt),
    ("fs_11_topics_are_apart", topics_apart),
    ("fs_11_events_keep_their_order", events_in_order),
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
        case(&Ground { clock, bus });
    };
    super::run_named("bus", CASES.iter().map(|(name, case)| (*name, move || run(*case))));
}

struct Ground {
    clock: Arc<ManualClock>,
    bus: Arc<dyn Bus>,
}

const ORDERS: Topic = Topic::OrderCreate;
const EVENTS: Topic = Topic::Events;
/// More than any case publishes.
const ALL: u32 = 10_000;

fn message(id: &str) -> Message {
    let payload = [id.as_bytes(), &[0, 255, 10]].concat();
    Message { id: Arc::from(id), key: Arc::from(format!("key-{id}").as_str()), payload }
}

impl Ground {
    fn publish(&self, topic: Topic, ids: &[&str]) {
        let messages = ids.iter().map(|id| message(id)).collect();
        let outcomes = block_on(self.bus.publish(topic, messages)).expect("the bus answers");
        assert_eq!(outcomes, vec![Published::Acked; ids.len()]);
    }

    fn consume(&self, topic: Topic) -> Vec<Delivery> {
        block_on(self.bus.consume(topic, ALL, LEASE)).expect("the bus answers")
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
}

fn ids(deliveries: &[Delivery]) -> BTreeSet<&str> {
    deliveries.iter().map(|delivery| &*delivery.message.id).collect()
}

fn delivered_as_published(ground: &Ground) {
    assert!(ground.consume(ORDERS).is_empty());
    assert_eq!(block_on(ground.bus.publish(ORDERS, Vec::new())).expect("the bus answers"), []);
    ground.publish(ORDERS, &["a", "b"]);
    ground.publish(ORDERS, &["c"]);
    let deliveries = ground.consume(ORDERS);
    assert_eq!(ids(&deliveries), BTreeSet::from(["a", "b", "c"]));
    for delivery in deliveries {
        assert_eq!(delivery.message, message(&delivery.message.id));
        assert_eq!((delivery.attempts, delivery.published_at), (1, START));
    }
}

fn comes_again(ground: &Ground) {
    ground.publish(ORDERS, &["a", "b"]);
    assert_eq!(ids(&ground.consume(ORDERS)).len(), 2);
    ground.clock.advance(Millis(LEASE.0 - 1));
    assert!(ground.consume(ORDERS).is_empty(), "a lease keeps others away");
    ground.clock.advance(Millis(1));
    let again = ground.consume(ORDERS);
    assert_eq!(ids(&again), BTreeSet::from(["a", "b"]));
    assert!(again.iter().all(|delivery| delivery.attempts == 2));
}

fn ends(ground: &Ground) {
    ground.publish(ORDERS, &["a", "b"]);
    ground.ack(ORDERS, &ground.consume(ORDERS));
    ground.clock.advance(Millis(LEASE.0 * 10));
    assert!(ground.consume(ORDERS).is_empty());
    assert_eq!(ground.next(ORDERS), None);
}

fn retry_waits(ground: &Ground) {
    ground.publish(ORDERS, &["a", "b"]);
    let deliveries = ground.consume(ORDERS);
    let settlement = |delivery: &Delivery| match &*delivery.message.id {
        "a" => Settlement::Ack(delivery.receipt.clone()),
        _ => Settlement::Retry(delivery.receipt.clone(), Millis(5_000)),
    };
    ground.settle(ORDERS, deliveries.iter().map(settlement).collect());
    ground.clock.advance(Millis(4_999));
    assert!(ground.consume(ORDERS).is_empty());
    ground.clock.advance(Millis(1));
    let again = ground.consume(ORDERS);
    assert_eq!(ids(&again), BTreeSet::from(["b"]));
    assert_eq!(again[0].attempts, 2);
}

fn dead(ground: &Ground) {
    ground.publish(ORDERS, &["a", "b"]);
    let deliveries = ground.consume(ORDERS);
    ground.settle(ORDERS, deliveries.iter().map(|one| Settlement::Dead(one.receipt.clone())).collect());
    ground.clock.advance(Millis(LEASE.0 * 10));
    assert!(ground.consume(ORDERS).is_empty());
}

fn stale_receipt(ground: &Ground) {
    ground.publish(ORDERS, &["a"]);
    let first = ground.consume(ORDERS);
    ground.clock.advance(LEASE);
    let second = ground.consume(ORDERS);
    assert_eq!(ids(&second), BTreeSet::from(["a"]));
    ground.ack(ORDERS, &first);
    ground.clock.advance(LEASE);
    let third = ground.consume(ORDERS);
    assert_eq!(ids(&third), BTreeSet::from(["a"]), "whoever lost the lease ends nothing");
    ground.ack(ORDERS, &third);
    ground.ack(ORDERS, &third);
    ground.clock.advance(LEASE);
    assert!(ground.consume(ORDERS).is_empty());
}

fn topics_apart(ground: &Ground) {
    ground.publish(ORDERS, &["order"]);
    ground.publish(EVENTS, &["event"]);
    assert_eq!(ids(&ground.consume(EVENTS)), BTreeSet::from(["event"]));
    assert_eq!(ids(&ground.consume(ORDERS)), BTreeSet::from(["order"]));
}

fn events_in_order(ground: &Ground) {
    // One key: these must keep their order whatever else the bus does at once.
    for id in ["e1", "e2", "e3"] {
        let one = Message { key: Arc::from("sku"), ..message(id) };
        block_on(ground.bus.publish(EVENTS, vec![one])).expect("the bus answers");
    }
    let mut seen: Vec<String> = Vec::new();
    for round in 0..20 {
        let deliveries = ground.consume(EVENTS);
        if round == 0 {
            assert!(ground.consume(EVENTS).is_empty(), "nothing overtakes what is under a lease");
            let first = deliveries.first().expect("the head is given out");
            assert_eq!(&*first.message.id, "e1");
            ground.clock.advance(LEASE);
            continue;
        }
        seen.extend(deliveries.iter().map(|delivery| delivery.message.id.to_string()));
        ground.ack(EVENTS, &deliveries);
    }
    seen.dedup();
    assert_eq!(seen, ["e1", "e2", "e3"]);
}

fn next_delivery(ground: &Ground) {
    assert_eq!(ground.next(EVENTS), None);
    for topic in Topic::ALL {
        ground.publish(topic, &["a"]);
        assert!(ground.next(topic).is_some_and(|next| next <= START), "something is there now");
        ground.consume(topic);
        ground.publish(topic, &["b"]);
        let next = ground.next(topic).expect("something will come");
        match topic {
            // What waits behind the head of an ordered topic comes no earlier than the head.
            Topic::Events => assert_eq!(next, START.plus(LEASE)),
            Topic::OrderCreate => assert!(next <= START.plus(LEASE)),
        }
    }
}

fn many(ground: &Ground) {
    const COUNT: usize = 2_000;
    let names: Vec<String> = (0..COUNT).map(|number| format!("m{number:05}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    ground.publish(ORDERS, &names);
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for _ in 0..COUNT {
        let deliveries = ground.consume(ORDERS);
        if deliveries.is_empty() {
            break;
        }
        seen.extend(deliveries.iter().map(|delivery| delivery.message.id.to_string()));
        ground.ack(ORDERS, &deliveries);
    }
    assert_eq!(seen.len(), COUNT);
    assert_eq!(ground.next(ORDERS), None);
}

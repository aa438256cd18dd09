//! The bus over a broker that does what brokers do on bad days.

use std::sync::Arc;
use std::time::Duration;

use onceward_domain::carrier;
use onceward_domain::error::{Class, Error};
use onceward_domain::id::PurchaseId;
use onceward_domain::ports::bus::{Bus, Delivery, Message, Published, Settlement, Topic};
use onceward_domain::ports::deadline::{DeadlineTrigger, Expiry};
use onceward_domain::ports::store::Store;
use onceward_domain::time::{Millis, Timestamp};
use onceward_testkit::clock::ManualClock;
use onceward_testkit::conformance::{bus, deadline};
use onceward_testkit::ids::CountingIds;
use onceward_testkit::model::ModelStore;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::{Call, FakeBroker, Fault};
use crate::deadline::LONGEST_DELAY;
use crate::options::{Names, Options};
use crate::publish::CARRIER_LIMIT;
use crate::{RocketBus, RocketTrigger, proto};

const LEASE: Millis = Millis(30_000);
const ORDERS: Topic = Topic::OrderCreate;
const EVENTS: Topic = Topic::Events;
/// How long something may take that happens by itself.
const PATIENCE: Duration = Duration::from_secs(20);

struct House {
    broker: Arc<FakeBroker>,
    clock: Arc<ManualClock>,
    bus: RocketBus,
    server: tokio::task::JoinHandle<()>,
    port: u16,
}

pub(super) fn broker_of(clock: &Arc<ManualClock>) -> Arc<FakeBroker> {
    let names = Names::default();
    let topics: Vec<String> =
        Topic::ALL.iter().flat_map(|topic| [names.topic(*topic), names.dead_letters(*topic)]).collect();
    FakeBroker::new(clock.clone(), &topics, &[names.group(EVENTS)])
}

fn bus_at(port: u16, clock: &Arc<ManualClock>) -> RocketBus {
    bus_of("test", port, clock)
}

fn bus_of(process: &str, port: u16, clock: &Arc<ManualClock>) -> RocketBus {
    let options = Options::parse(&format!("rocketmq://127.0.0.1:{port}")).unwrap();
    RocketBus::open(&options, clock.clone(), Arc::new(CountingIds::new(process))).unwrap()
}

impl House {
    async fn new() -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp(1_767_225_600_000)));
        let broker = broker_of(&clock);
        let (address, server) = broker.serve().await;
        let bus = bus_at(address.port(), &clock);
        Self { broker, bus, clock, server, port: address.port() }
    }

    async fn publish(&self, topic: Topic, messages: Vec<Message>) -> Vec<Published> {
        self.bus.publish(topic, messages).await.unwrap()
    }

    async fn take(&self, topic: Topic) -> Vec<Delivery> {
        self.bus.consume(topic, 100, LEASE).await.unwrap()
    }

    async fn settle(&self, topic: Topic, settlements: Vec<Settlement>) -> Result<(), Error> {
        self.bus.settle(topic, settlements).await
    }

    /// Consumes until the bus has got over its trouble.
    async fn take_at_last(&self, topic: Topic) -> Vec<Delivery> {
        let at_last = async {
            loop {
                if let Ok(deliveries) = self.bus.consume(topic, 100, LEASE).await {
                    return deliveries;
                }
            }
        };
        timeout(PATIENCE, at_last).await.expect("it gets over it")
    }
}

fn message(id: &str, key: &str) -> Message {
    Message { id: id.into(), key: key.into(), payload: id.as_bytes().to_vec() }
}

fn some(ids: &[&str]) -> Vec<Message> {
    ids.iter().map(|id| message(id, "key")).collect()
}

fn ids(deliveries: &[Delivery]) -> Vec<&str> {
    deliveries.iter().map(|delivery| &*delivery.message.id).collect()
}

fn acks(deliveries: &[Delivery]) -> Vec<Settlement> {
    deliveries.iter().map(|delivery| Settlement::Ack(delivery.receipt.clone())).collect()
}

#[test]
fn em_02_the_bus_passes_the_suite_over_a_broker_in_memory() {
    let runtime = Runtime::new().unwrap();
    bus::run_all(&|clock| {
        let broker = broker_of(&clock);
        let _inside = runtime.enter();
        let (address, _) = runtime.block_on(broker.serve());
        Arc::new(bus_at(address.port(), &clock))
    });
}

#[tokio::test]
async fn dr_02_a_send_is_what_its_answer_says_and_unknown_without_one() {
    let table = [
        (Fault::LoseAnswer, Published::Unknown, 1),
        (Fault::LoseRequest, Published::Unknown, 0),
        (Fault::Hang, Published::Unknown, 1),
        (Fault::Refuse(50_401), Published::Unknown, 0),
        (Fault::Refuse(42_900), Published::Busy, 0),
    ];
    for (fault, expected, stored) in table {
        let house = House::new().await;
        house.broker.hurt(Call::Send, fault);
        assert_eq!(house.publish(ORDERS, some(&["a"])).await, [expected], "{fault:?}");
        assert_eq!(house.broker.content("onceward-order-create").len(), stored, "{fault:?}");
        // DR-04: it is sent again under the same id.
        assert_eq!(house.publish(ORDERS, some(&["a"])).await, [Published::Acked]);
        let content = house.broker.content("onceward-order-create");
        assert_eq!(content.len(), stored + 1);
        assert!(content.iter().all(|(_, keys)| keys == &["a"]), "the id is ours, and among the keys");
    }
}

#[tokio::test]
async fn fs_11_what_is_behind_a_send_that_failed_does_not_overtake_it() {
    for fault in [Fault::LoseRequest, Fault::LoseAnswer, Fault::Refuse(50_000)] {
        let house = House::new().await;
        let names: Vec<String> = (0..2 * CARRIER_LIMIT).map(|number| format!("{number:04}")).collect();
        let batch: Vec<Message> = names.iter().map(|id| message(id, "one key")).collect();
        house.broker.hurt(Call::Send, fault);
        let outcomes = house.publish(EVENTS, batch.clone()).await;
        let (first, behind) = outcomes.split_at(CARRIER_LIMIT);
        assert!(first.iter().all(|one| *one == Published::Unknown), "{fault:?}");
        assert!(behind.iter().all(|one| *one == Published::Rejected), "{fault:?}");
        assert_eq!(house.broker.calls(Call::Send), 1, "the second was not sent");
        assert!(house.publish(EVENTS, batch).await.iter().all(|one| *one == Published::Acked));
        let mut seen = Vec::new();
        loop {
            let deliveries = house.take(EVENTS).await;
            if deliveries.is_empty() {
                break;
            }
            seen.extend(ids(&deliveries).into_iter().map(str::to_owned));
            house.settle(EVENTS, acks(&deliveries)).await.unwrap();
        }
        seen.retain({
            let mut last = String::new();
            move |id| {
                id > &last && {
                    last.clone_from(id);
                    true
                }
            }
        });
        assert_eq!(seen, names, "without copies it is the order of the publisher");
    }
}

#[tokio::test]
async fn fs_06_an_acknowledgement_that_is_lost_is_harmless() {
    for fault in [Fault::LoseAnswer, Fault::LoseRequest, Fault::Refuse(50_001)] {
        let house = House::new().await;
        house.publish(ORDERS, some(&["a", "b"])).await;
        let deliveries = house.take(ORDERS).await;
        house.broker.hurt(Call::Ack, fault);
        let refused = house.settle(ORDERS, acks(&deliveries)).await.unwrap_err();
        assert_eq!(refused.class(), Class::Retryable, "{fault:?}");
        // It comes again, is known, and is acknowledged anew.
        for _again in 0..2 {
            house.clock.advance(LEASE);
            assert!(house.take(ORDERS).await.is_empty(), "{fault:?}");
        }
        assert!(house.broker.content("onceward-order-create").is_empty(), "{fault:?}");
    }
}

#[tokio::test]
async fn fs_08_a_dead_message_is_set_aside_alone_and_the_others_go_their_ways() {
    let house = House::new().await;
    house.publish(ORDERS, some(&["done", "dead", "later"])).await;
    let deliveries = house.take(ORDERS).await;
    let ends = |deliveries: &[Delivery]| -> Vec<Settlement> {
        let end = |one: &Delivery| match &*one.message.id {
            "done" => Settlement::Ack(one.receipt.clone()),
            "dead" => Settlement::Dead(one.receipt.clone()),
            _ => Settlement::Retry(one.receipt.clone(), Millis(5_000)),
        };
        deliveries.iter().map(end).collect()
    };
    // The grave cannot be dug: nothing is lost, all of it comes again.
    house.broker.hurt(Call::Send, Fault::LoseRequest);
    house.settle(ORDERS, ends(&deliveries)).await.unwrap();
    assert!(house.broker.content("%DLQ%order-consumer").is_empty());
    house.clock.advance(LEASE);
    let again = house.take(ORDERS).await;
    assert_eq!(ids(&again), ["done", "dead", "later"]);
    house.settle(ORDERS, ends(&again)).await.unwrap();
    let graves = house.broker.content("%DLQ%order-consumer");
    assert_eq!(graves.len(), 1);
    assert_eq!(graves[0].1, ["dead"]);
    assert_eq!(carrier::unpack(&graves[0].0).unwrap(), some(&["dead"]));
    house.clock.advance(Millis(5_000));
    let last = house.take(ORDERS).await;
    assert_eq!(ids(&last), ["later"]);
    house.settle(ORDERS, acks(&last)).await.unwrap();
    house.clock.advance(LEASE);
    assert!(house.take(ORDERS).await.is_empty());
    assert!(house.broker.content("onceward-order-create").is_empty());
}

#[tokio::test]
async fn fs_08_what_somebody_else_put_there_is_handed_on_whole() {
    let house = House::new().await;
    let properties = proto::SystemProperties { message_id: "theirs".to_owned(), ..Default::default() };
    let foreign =
        proto::Message { system_properties: Some(properties), body: b"{}".to_vec(), ..Default::default() };
    house.broker.put("onceward-order-create", foreign);
    let deliveries = house.take(ORDERS).await;
    assert_eq!(ids(&deliveries), ["theirs"]);
    assert_eq!(deliveries[0].message.payload, b"{}");
    house.settle(ORDERS, acks(&deliveries)).await.unwrap();
    assert!(house.broker.content("onceward-order-create").is_empty());
}

#[tokio::test]
async fn fs_11_events_whose_delivery_was_lost_are_asked_for_again_at_once() {
    let house = House::new().await;
    house.publish(EVENTS, some(&["e1", "e2"])).await;
    house.broker.hurt(Call::Receive, Fault::LoseAnswer);
    assert_eq!(house.bus.consume(EVENTS, 100, LEASE).await.unwrap_err().class(), Class::Retryable);
    let deliveries = house.take(EVENTS).await;
    assert_eq!(ids(&deliveries), ["e1", "e2"], "the clock has not moved");
    assert!(deliveries.iter().all(|delivery| delivery.attempts == 1));
    house.settle(EVENTS, acks(&deliveries)).await.unwrap();
    assert!(house.take(EVENTS).await.is_empty());
}

#[tokio::test]
async fn dr_02_a_broker_that_was_started_anew_is_told_again_who_we_are() {
    let house = House::new().await;
    house.publish(ORDERS, some(&["a"])).await;
    assert_eq!(ids(&house.take(ORDERS).await), ["a"]);
    house.broker.hurt(Call::Telemetry, Fault::LoseRequest);
    house.broker.forget_everybody();
    house.publish(ORDERS, some(&["b"])).await;
    assert_eq!(ids(&house.take_at_last(ORDERS).await), ["b"]);
}

#[tokio::test]
async fn fs_16_a_broker_that_is_away_refuses_nothing_for_good() {
    let house = House::new().await;
    house.publish(ORDERS, some(&["before"])).await;
    house.server.abort();
    drop(house.server.await);
    let elsewhere = bus_at(house.port, &house.clock);
    assert_eq!(elsewhere.publish(ORDERS, some(&["while"])).await.unwrap(), [Published::Unknown]);
    assert_eq!(elsewhere.consume(ORDERS, 100, LEASE).await.unwrap_err().class(), Class::Retryable);
    assert_eq!(elsewhere.check().await.unwrap_err().class(), Class::Retryable);
    let listener = TcpListener::bind(("127.0.0.1", house.port)).await.unwrap();
    let _server = house.broker.serve_on(listener);
    let at_last = async {
        while elsewhere.publish(ORDERS, some(&["after"])).await.unwrap() != [Published::Acked] {}
        loop {
            match elsewhere.consume(ORDERS, 100, LEASE).await {
                Ok(deliveries) if !deliveries.is_empty() => return deliveries,
                Ok(_) | Err(_) => {}
            }
        }
    };
    let deliveries = timeout(PATIENCE, at_last).await.expect("the line comes back by itself");
    assert!(ids(&deliveries).starts_with(&["before"]), "{deliveries:?}");
    assert_eq!(elsewhere.check().await.unwrap().len(), 4);
}

#[tokio::test]
async fn fs_11_a_group_without_order_is_no_reader_of_events() {
    let house = House::new().await;
    house.broker.set_ordered("projector", false);
    let refused = house.bus.consume(EVENTS, 100, LEASE).await.unwrap_err();
    assert!(refused.operator_text().contains("consumeMessageOrderly=true"), "{refused}");
    house.broker.set_ordered("projector", true);
    assert!(house.take_at_last(EVENTS).await.is_empty(), "it is looked at again");
}

#[tokio::test]
async fn a_bus_that_closes_says_goodbye() {
    let house = House::new().await;
    house.publish(ORDERS, some(&["a"])).await;
    house.take(ORDERS).await;
    house.take(EVENTS).await;
    assert_eq!(house.broker.state().clients.len(), 3);
    timeout(PATIENCE, house.bus.close()).await.expect("it closes");
    assert_eq!(house.broker.state().clients.len(), 0);
}

#[tokio::test]
async fn fs_06_what_comes_to_a_bus_that_closes_is_handed_back_at_once() {
    for topic in Topic::ALL {
        let house = House::new().await;
        house.broker.hurt(Call::Receive, Fault::Wait);
        assert!(house.take(topic).await.is_empty(), "its poll is under way at the broker");
        house.publish(topic, some(&["a"])).await;
        // The poll is let go while the bus closes, and is given the message.
        house.broker.let_go();
        timeout(PATIENCE, house.bus.close()).await.expect("it closes");
        assert_eq!(house.broker.calls(Call::ChangeLease), 1, "{topic:?}");
        let elsewhere = bus_of("elsewhere", house.port, &house.clock);
        house.clock.advance(Millis(1_000));
        let came = elsewhere.consume(topic, 100, LEASE).await.unwrap();
        assert_eq!(ids(&came), ["a"], "{topic:?}, long before its lease is over");
    }
}

fn trigger_of(clock: &Arc<ManualClock>) -> (Arc<FakeBroker>, Arc<RocketTrigger>) {
    let broker = FakeBroker::new(clock.clone(), &[Names::default().due_topic()], &[]);
    let serving = Arc::clone(&broker);
    let (address, _server) = tokio::task::block_in_place(|| {
        tokio::runtime::Handle::current().block_on(async move { serving.serve().await })
    });
    let options = Options::parse(&format!("rocketmq://127.0.0.1:{}", address.port())).unwrap();
    let trigger = RocketTrigger::open(&options, clock.clone(), Arc::new(CountingIds::new("due"))).unwrap();
    (broker, Arc::new(trigger))
}

#[test]
fn ot_10_the_broker_trigger_keeps_every_promise() {
    let runtime = Runtime::new().unwrap();
    deadline::run_all(&|clock| {
        let inside = clock.clone();
        let (_broker, trigger) =
            runtime.block_on(async move { tokio::spawn(async move { trigger_of(&inside) }).await.unwrap() });
        let store: Arc<dyn Store> = Arc::new(ModelStore::new(clock));
        (store, trigger as Arc<dyn DeadlineTrigger>)
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn ot_10_d_8_what_lies_further_ahead_than_a_broker_delays_is_armed_again_until_its_time() {
    let clock = Arc::new(ManualClock::new(Timestamp(1_767_225_600_000)));
    let (broker, trigger) = trigger_of(&clock);
    let order = PurchaseId::from_digest([9; 16], 1);
    let due_at = Timestamp(1_767_225_600_000).plus(Millis(LONGEST_DELAY.0 * 2 + 60_000));
    trigger.offer(vec![Expiry { due_at, purchase: order }]).await.unwrap();
    let mut told = Vec::new();
    for _hop in 0..3 {
        assert!(told.is_empty());
        clock.advance(LONGEST_DELAY);
        told = trigger.take(10, LEASE).await.unwrap();
    }
    assert_eq!(told.iter().map(|one| one.orders.clone()).collect::<Vec<_>>(), [vec![order]]);
    assert_eq!(broker.calls(Call::Send), 3, "armed, and armed again twice");
    assert_eq!(broker.content(&Names::default().due_topic()).len(), 1, "each time the old one was ended");
}

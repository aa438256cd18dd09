//! Laws, tried on arbitrary inputs: a batch means what its members mean one by one (design.md §1), and events may be
//! projected in any order and any number of times (FS-13).

mod house;

use house::{House, key, usual_activity};
use onceward::wire;
use onceward::workers::Worker;
use onceward_domain::decide::create_order::{Incoming, Outcome, create_orders};
use onceward_domain::derive::payload_hash;
use onceward_domain::event::OrderCreateRequested;
use onceward_domain::facts::Need;
use onceward_domain::id::{RequestId, UserId};
use onceward_domain::ports::admission::{Birth, ReserveAnswer};
use onceward_domain::ports::bus::{Message, Topic};
use onceward_domain::purchase::InboxResult;
use onceward_domain::time::{Millis, Timestamp};
use onceward_testkit::block_on::block_on;
use proptest::prelude::*;

type Buyer = (u8, u8, u32);

fn buyers() -> impl Strategy<Value = Vec<Buyer>> {
    prop::collection::vec((0..6_u8, 0..4_u8, 1..4_u32), 1..40)
}

fn ask(house: &House, buyers: &[Buyer]) -> Vec<ReserveAnswer> {
    let names: Vec<(String, String, u32)> = buyers
        .iter()
        .map(|(user, request, units)| (format!("u{user}"), format!("r{request}"), *units))
        .collect();
    let plain: Vec<(&str, &str, u32)> = names.iter().map(|(u, r, n)| (u.as_str(), r.as_str(), *n)).collect();
    house.reserve_all(&plain)
}

fn message(house: &House, (user, request, quantity): Buyer) -> OrderCreateRequested {
    let (user, request) = (UserId::trusted(&format!("u{user}")), RequestId::trusted(&format!("r{request}")));
    OrderCreateRequested {
        purchase: house.engine.keys().reservation(&key("cup"), &user, &request),
        key: key("cup"),
        user,
        request,
        quantity,
        reserved_at: Timestamp(10_000),
        business_deadline: Timestamp(310_000),
    }
}

/// Messages straight into the store, as from a gate that lives elsewhere.
fn order(house: &House, messages: &[OrderCreateRequested]) -> Vec<Outcome> {
    let batch: Vec<Incoming> = messages
        .iter()
        .map(|message| {
            let payload = wire::encode_message(message).payload;
            Incoming {
                birth: Birth::Absent,
                message: message.clone(),
                payload_hash: payload_hash(&payload),
                gate_may_forget: true,
                payload: payload.into(),
            }
        })
        .collect();
    let need = Need {
        skus: vec![key("cup")],
        purchases: messages.iter().map(|message| message.purchase).collect(),
        buyers: messages.iter().map(|message| (key("cup"), message.user.clone())).collect(),
        ..Need::default()
    };
    let decide = move |facts: &mut _| create_orders(facts, &batch);
    block_on(onceward::execute::execute(&house.engine, "create_orders", need, decide)).expect("it decides")
}

fn events_of(house: &House) -> Vec<Message> {
    house.step(Worker::Sender).expect("it sends");
    house.step(Worker::Consumer).expect("it orders");
    let lane = onceward_domain::due::Lane::new(onceward_domain::due::Lane::OUTBOX);
    let entries = block_on(house.store.list_due(lane, 200, None)).expect("it lists");
    entries.iter().flat_map(|entry| wire::split_events(&entry.body).expect("it splits")).collect()
}

#[test]
fn fs_18_fs_08_a_request_that_a_gate_lost_and_let_in_again_is_a_copy_and_nothing_else_is() {
    let house = House::with(5, 5, usual_activity());
    let first = message(&house, (1, 1, 1));
    let decided = |message: OrderCreateRequested| order(&house, &[message]).remove(0);
    assert!(matches!(decided(first.clone()), Outcome::Created(_)));
    let stock = house.facts().skus[&key("cup")].stock;
    let later = |time: Timestamp| time.plus(Millis(60_000));
    let (reserved_at, business_deadline) = (later(first.reserved_at), later(first.business_deadline));
    let again = OrderCreateRequested { reserved_at, business_deadline, ..first.clone() };
    assert_eq!(decided(again.clone()), Outcome::Duplicate(InboxResult::OrderCreated));
    assert_eq!(decided(OrderCreateRequested { quantity: 2, ..again }), Outcome::PayloadConflict);
    assert_eq!(decided(OrderCreateRequested { business_deadline, ..first }), Outcome::PayloadConflict);
    assert_eq!(block_on(house.store.tally()).expect("it adds up").quarantined, 2);
    assert_eq!(house.facts().skus[&key("cup")].stock, stock);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fs_01_a_batch_of_reservations_means_what_its_members_mean(
        buyers in buyers(), stock in 0..12_i64, limit in 1..5_u32,
    ) {
        let (together, alone) = (House::with(stock, limit, usual_activity()), House::with(stock, limit, usual_activity()));
        let batch = ask(&together, &buyers);
        let singles: Vec<ReserveAnswer> = buyers.iter().flat_map(|buyer| ask(&alone, &[*buyer])).collect();
        prop_assert_eq!(batch, singles);
        prop_assert_eq!(together.figures(), alone.figures());
        together.rest();
        alone.rest();
        prop_assert_eq!(together.figures(), alone.figures());
        together.assert_invariants();
    }

    #[test]
    fn fs_06_fs_09_a_batch_of_messages_means_what_its_members_mean(
        buyers in buyers(), stock in 0..12_i64, limit in 1..5_u32,
    ) {
        let (together, alone) = (House::with(stock, limit, usual_activity()), House::with(stock, limit, usual_activity()));
        let messages: Vec<OrderCreateRequested> = buyers.iter().map(|buyer| message(&together, *buyer)).collect();
        let batch = order(&together, &messages);
        let singles: Vec<Outcome> = messages.iter().flat_map(|one| order(&alone, std::slice::from_ref(one))).collect();
        prop_assert_eq!(batch, singles);
        prop_assert_eq!(together.figures().0, alone.figures().0);
        let stock = together.facts().skus[&key("cup")].stock;
        prop_assert!(stock.holds());
    }

    #[test]
    fn fs_13_events_in_any_order_and_number_end_alike(
        seed in any::<u64>(), copies in 1..4_usize, cancels in 0..6_usize,
    ) {
        let house = House::with(10, 10, usual_activity());
        for n in 0..8_u8 {
            ask(&house, &[(n, 0, 1)]);
        }
        house.step(Worker::Sender).expect("it sends");
        house.step(Worker::Consumer).expect("it orders");
        for n in 0..cancels {
            let id = house.id(&format!("u{n}"), "r0").order();
            let cancel = onceward::operations::order::cancel(&house.engine, id, "mind".into(), "test".into());
            block_on(cancel).expect("it cancels");
        }
        let mut events: Vec<Message> = Vec::new();
        for _ in 0..copies {
            events.extend(events_of(&house));
        }
        let mut state = seed;
        for index in (1..events.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            events.swap(index, (state >> 33) as usize % (index + 1));
        }
        block_on(house.engine.bus().publish(Topic::Events, events)).expect("it publishes");
        house.clock.advance(Millis(1));
        house.rest();
        let cancels = i64::try_from(cancels).expect("few");
        prop_assert_eq!(house.figures(), ([2 + cancels, 8 - cancels, 0], [2 + cancels, 0, 8 - cancels]));
        house.assert_invariants();
    }

    #[test]
    fn se_04_arbitrary_bytes_never_panic_a_decoder(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(wire::decode_message(&bytes).is_err());
        prop_assert!(wire::decode_event(&bytes).is_err());
        drop(wire::split_events(&bytes));
        drop(onceward_domain::carrier::unpack(&bytes));
    }
}

//! The flash sale, requirement by requirement (requirements.md §2, reference 003 §13).

mod house;

use std::sync::Arc;

use house::{House, engine_over, key, usual_activity};
use onceward::operations::order;
use onceward::wire;
use onceward::workers::{Next, Worker};
use onceward_domain::due::Lane;
use onceward_domain::error::Code;
use onceward_domain::event::OrderCreateRequested;
use onceward_domain::facts::Need;
use onceward_domain::id::{PurchaseId, RequestId, UserId};
use onceward_domain::machine::admission::Admission;
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::machine::reservation::Reservation;
use onceward_domain::ports::admission::{Compensate, CompensateCode, ReserveAnswer};
use onceward_domain::ports::bus::Topic;
use onceward_domain::purchase::{InboxResult, Reason};
use onceward_domain::time::Millis;
use onceward_testkit::block_on::block_on;

fn is_queued(answer: &ReserveAnswer) -> bool {
    matches!(answer, ReserveAnswer::Queued { .. })
}

fn message_of(house: &House, id: PurchaseId) -> OrderCreateRequested {
    let view =
        block_on(house.engine.admission().find(id)).expect("the gate answers").expect("it was reserved");
    OrderCreateRequested::of(&view.purchase)
}

fn publish(house: &House, message: &OrderCreateRequested, copies: usize) {
    let encoded = wire::encode_message(message);
    block_on(house.engine.bus().publish(Topic::OrderCreate, vec![encoded; copies]))
        .expect("the bus takes it");
}

#[test]
fn fs_01_order_of_checks_is_known_request_open_limit_stock() {
    let house = House::new(1);
    assert!(is_queued(&house.reserve("u1", "r1", 1)));
    let first = house.id("u1", "r1").reservation();
    let table = [
        ("u1", "r1", ReserveAnswer::Repeat { reservation: first, status: Reservation::Reserved }),
        ("u1", "r2", ReserveAnswer::LimitReached { live: Some(first) }),
        ("u2", "r1", ReserveAnswer::SoldOut),
    ];
    for (user, request, expected) in &table {
        assert_eq!(&house.reserve(user, request, 1), expected, "{user} {request}");
    }
    house.clock.set(usual_activity().ends_at);
    assert_eq!(house.reserve("u1", "r1", 1), table[0].2, "a known request is known after the end");
    assert_eq!(house.reserve("u1", "r2", 1), ReserveAnswer::NotOpen);
    assert_eq!(house.reserve("u3", "r1", 1), ReserveAnswer::NotOpen);
}

#[test]
fn c_82_d_13_the_sale_opens_at_its_start_and_closes_at_its_end() {
    let house = House::new(10);
    let activity = usual_activity();
    for (at, open) in
        [(activity.ends_at.0 - 1, true), (activity.ends_at.0, false), (activity.ends_at.0 + 1, false)]
    {
        house.clock.set(onceward_domain::time::Timestamp(at));
        assert_eq!(is_queued(&house.reserve(&format!("u{at}"), "r", 1)), open, "{at}");
    }
}

#[test]
fn fs_02_a_known_request_with_another_body_is_refused_and_nothing_changes() {
    let house = House::with(10, 5, usual_activity());
    assert!(is_queued(&house.reserve("u1", "r1", 2)));
    let before = house.figures();
    assert_eq!(house.reserve("u1", "r1", 3), ReserveAnswer::RequestConflict);
    assert_eq!(house.figures(), before);
    assert!(is_queued(&house.reserve("u2", "r1", 1)), "another buyer's equal request id is another request");
    assert_ne!(house.id("u1", "r1"), house.id("u2", "r1"));
}

#[test]
fn c_11_the_last_winners_retry_hears_its_reservation_not_sold_out() {
    let house = House::new(1);
    assert!(is_queued(&house.reserve("u1", "r1", 1)));
    assert!(matches!(house.reserve("u1", "r1", 1), ReserveAnswer::Repeat { .. }));
    house.rest();
    let again = house.reserve("u1", "r1", 1);
    assert!(matches!(again, ReserveAnswer::Repeat { status: Reservation::OrderCreated, .. }), "{again:?}");
    assert_eq!(house.figures(), ([0, 1, 0], [0, 0, 1]));
}

#[test]
fn fs_05_c_6_a_reservation_whose_process_died_before_sending_becomes_an_order() {
    let house = House::new(1);
    assert!(is_queued(&house.reserve("u1", "r1", 1)));
    let next_life = House {
        engine: engine_over(house.store.clone()),
        clock: house.clock.clone(),
        store: house.store.clone(),
    };
    next_life.rest();
    let purchase = next_life.purchase(house.id("u1", "r1")).unwrap();
    assert_eq!(purchase.reservation, Some(Reservation::OrderCreated));
    next_life.assert_invariants();
}

#[test]
fn fs_05_a_claim_that_was_dropped_comes_again_after_its_lease_with_the_same_message_id() {
    let house = House::new(1);
    assert!(is_queued(&house.reserve("u1", "r1", 1)));
    let lease = Millis(30_000);
    let first = block_on(house.engine.admission().claim_send(10, lease)).unwrap();
    assert_eq!(block_on(house.engine.admission().claim_send(10, lease)).unwrap().len(), 0, "it is leased");
    house.clock.advance(lease);
    let second = block_on(house.engine.admission().claim_send(10, lease)).unwrap();
    assert_eq!(wire::encode_message(&first[0].messages[0]), wire::encode_message(&second[0].messages[0]));
    assert_eq!(second[0].attempts, 2);
    assert_ne!(first[0].held.token, second[0].held.token);
    let stale = onceward_domain::ports::admission::SendSettlement::Sent(first[0].held.clone());
    assert_eq!(
        block_on(house.engine.admission().settle_send(vec![stale])).unwrap(),
        0,
        "its lease is not its own"
    );
}

#[test]
fn fs_06_pr_02_one_message_ten_thousand_times_is_one_order() {
    let house = House::new(5);
    assert!(is_queued(&house.reserve("u1", "r1", 1)));
    publish(&house, &message_of(&house, house.id("u1", "r1")), 10_000);
    house.rest();
    assert_eq!(house.figures(), ([4, 1, 0], [4, 0, 1]));
    let orders = block_on(order::list(
        &house.engine,
        order::OrderFilter::default(),
        order::PageRequest { limit: 200, before: None },
    ));
    assert_eq!(orders.unwrap().len(), 1);
    house.assert_invariants();
}

#[test]
fn fs_07_late_message_is_rejected_and_compensated_once() {
    let house = House::new(1);
    assert!(is_queued(&house.reserve("u1", "r1", 1)));
    let id = house.id("u1", "r1");
    let message = message_of(&house, id);
    let claims = block_on(house.engine.admission().claim_send(10, Millis(10_000_000))).unwrap();
    assert_eq!(claims.len(), 1, "the message is stuck in a stalled sender");
    house.clock.advance(usual_activity().reservation_deadline);
    house.rest();
    assert_eq!(house.purchase(id).unwrap().reservation, Some(Reservation::Compensated));
    assert_eq!(house.purchase(id).unwrap().reason, Some(Reason::BusinessDeadlineExceeded));
    publish(&house, &message, 3);
    house.rest();
    let purchase = house.purchase(id).unwrap();
    assert_eq!(purchase.inbox.map(|inbox| inbox.result), Some(InboxResult::LateRejected));
    assert_eq!((purchase.reservation, purchase.order), (Some(Reservation::Compensated), None));
    assert_eq!(house.figures(), ([1, 0, 0], [1, 0, 0]));
    house.assert_invariants();
}

#[test]
fn fs_07_dr_05_a_passed_deadline_alone_refuses_nothing() {
    let house = House::new(1);
    assert!(is_queued(&house.reserve("u1", "r1", 1)));
    house.clock.advance(Millis(usual_activity().reservation_deadline.0 * 2));
    house.step(Worker::Sender).unwrap();
    house.step(Worker::Consumer).unwrap();
    let purchase = house.purchase(house.id("u1", "r1")).unwrap();
    assert_eq!(
        purchase.reservation,
        Some(Reservation::OrderCreated),
        "no durable rejection stood against it"
    );
    house.rest();
    house.assert_invariants();
}

#[test]
fn fs_08_c_91_same_id_with_another_payload_has_no_effect_and_is_set_aside() {
    let house = House::with(5, 5, usual_activity());
    assert!(is_queued(&house.reserve("u1", "r1", 1)));
    house.rest();
    let before = house.figures();
    let mut forged = message_of(&house, house.id("u1", "r1"));
    forged.reserved_at = forged.reserved_at.plus(Millis(1));
    publish(&house, &forged, 1);
    forged.quantity = 3;
    publish(&house, &forged, 2);
    house.rest();
    assert_eq!(house.figures(), before);
    let tally = block_on(house.store.tally()).unwrap();
    assert_eq!(tally.quarantined, 2, "two different payloads, each kept once");
    house.assert_invariants();
}

#[test]
fn fs_08_unreadable_and_foreign_messages_are_set_aside() {
    let house = House::new(5);
    assert!(is_queued(&house.reserve("u1", "r1", 1)));
    let mut foreign = message_of(&house, house.id("u1", "r1"));
    foreign.user = UserId::trusted("u2");
    let mut garbage = wire::encode_message(&foreign);
    garbage.payload = b"{\"schema_version\":1".to_vec();
    block_on(house.engine.bus().publish(Topic::OrderCreate, vec![garbage, wire::encode_message(&foreign)]))
        .unwrap();
    house.rest();
    assert_eq!(block_on(house.store.tally()).unwrap().quarantined, 2);
    assert_eq!(house.figures(), ([4, 1, 0], [4, 0, 1]), "the good one went through");
}

#[test]
fn fs_09_c_10_a_short_final_stock_refuses_the_order_and_gives_the_unit_back() {
    let house = House::new(1);
    assert!(is_queued(&house.reserve("u1", "r1", 1)));
    let direct = order::DirectOrder {
        user: UserId::trusted("u2"),
        request: RequestId::trusted("d1"),
        lines: vec![(key("cup"), 1)],
    };
    block_on(order::place(&house.engine, direct)).unwrap();
    house.rest();
    let purchase = house.purchase(house.id("u1", "r1")).unwrap();
    assert_eq!(purchase.reservation, Some(Reservation::Compensated));
    assert_eq!(purchase.reason, Some(Reason::StockShort));
    assert_eq!(house.figures(), ([0, 1, 0], [0, 0, 1]));
    house.assert_invariants();
}

#[test]
fn fs_09_pr_02_three_hundred_requests_of_one_user_are_one_order() {
    let house = House::new(50);
    let requests: Vec<String> = (0..300).map(|n| format!("r{n}")).collect();
    let buyers: Vec<(&str, &str, u32)> = requests.iter().map(|request| ("u1", request.as_str(), 1)).collect();
    let answers = house.reserve_all(&buyers);
    assert_eq!(answers.iter().filter(|answer| is_queued(answer)).count(), 1);
    house.rest();
    assert_eq!(house.figures(), ([49, 1, 0], [49, 0, 1]));
    house.assert_invariants();
}

#[test]
fn fs_09_a_second_order_of_the_user_is_refused_by_the_store_itself() {
    let house = House::new(5);
    assert!(is_queued(&house.reserve("u1", "r1", 1)));
    let direct = order::DirectOrder {
        user: UserId::trusted("u1"),
        request: RequestId::trusted("d1"),
        lines: vec![(key("cup"), 1)],
    };
    block_on(order::place(&house.engine, direct)).unwrap();
    house.rest();
    let purchase = house.purchase(house.id("u1", "r1")).unwrap();
    assert_eq!(purchase.reason, Some(Reason::UserLimit));
    assert_eq!(house.figures(), ([4, 1, 0], [4, 0, 1]));
    house.assert_invariants();
}

#[test]
fn fs_12_pr_02_one_compensation_ten_thousand_times_gives_one_unit_back() {
    let house = House::new(1);
    assert!(is_queued(&house.reserve("u1", "r1", 1)));
    let id = house.id("u1", "r1");
    house.clock.advance(usual_activity().reservation_deadline);
    house.step(Worker::Deadline).unwrap();
    let command = Compensate { purchase: id, key: key("cup"), compensation: id.compensation() };
    let codes = block_on(house.engine.admission().compensate(vec![command.clone(); 10_000])).unwrap();
    let count = |wanted| codes.iter().flatten().filter(|code| **code == wanted).count();
    assert_eq!(count(CompensateCode::Applied), 1);
    assert_eq!(count(CompensateCode::AlreadyApplied), 9_999);
    assert_eq!(house.figures().1, [1, 0, 0]);
    house.rest();
    assert_eq!(house.purchase(id).unwrap().reservation, Some(Reservation::Compensated));
    assert_eq!(house.figures().1, [1, 0, 0], "the worker's own release finds it done");
    house.assert_invariants();
}

#[test]
fn fs_12_every_return_code_of_a_compensation() {
    let house = House::with(9, 9, usual_activity());
    for request in ["open", "ordered", "cancelled"] {
        assert!(is_queued(&house.reserve("u1", request, 1)));
    }
    let (open, ordered, cancelled) =
        (house.id("u1", "open"), house.id("u1", "ordered"), house.id("u1", "cancelled"));
    for id in [ordered, cancelled] {
        publish(&house, &message_of(&house, id), 1);
    }
    for worker in [Worker::Consumer, Worker::Relay, Worker::Projector] {
        house.step(worker).unwrap();
    }
    block_on(order::cancel(&house.engine, cancelled.order(), Arc::from("mind"), Arc::from("u1"))).unwrap();
    for worker in [Worker::Relay, Worker::Projector] {
        house.step(worker).unwrap();
    }
    // Only what the store has refused is ever given back (DR-03).
    house.clock.advance(usual_activity().reservation_deadline);
    house.step(Worker::Deadline).unwrap();
    let command = |purchase: PurchaseId, compensation| Compensate { purchase, key: key("cup"), compensation };
    let absent = PurchaseId::from_digest([9; 16], 1);
    let table = [
        (command(absent, absent.compensation()), CompensateCode::Missing),
        (Compensate { key: key("mug"), ..command(open, open.compensation()) }, CompensateCode::IdMismatch),
        (command(ordered, ordered.compensation()), CompensateCode::OrderExists),
        (command(cancelled, cancelled.compensation()), CompensateCode::WrongState),
        (command(open, open.compensation()), CompensateCode::Applied),
        (command(open, open.compensation()), CompensateCode::AlreadyApplied),
        (command(open, ordered.compensation()), CompensateCode::MarkerConflict),
    ];
    house.put_sku("mug", 1, 1);
    let before = house.figures().1[0];
    for (command, expected) in table {
        let code = block_on(house.engine.admission().compensate(vec![command])).unwrap().remove(0);
        assert_eq!(code.unwrap(), expected);
    }
    assert_eq!(house.figures().1[0], before + 1, "exactly one of the seven added a unit");
}

#[test]
fn fs_12_a_crash_between_any_two_steps_of_a_compensation_converges() {
    for stop_after in 0..3 {
        let house = House::new(1);
        assert!(is_queued(&house.reserve("u1", "r1", 1)));
        let id = house.id("u1", "r1");
        house.clock.advance(usual_activity().reservation_deadline);
        house.step(Worker::Deadline).unwrap();
        if stop_after > 0 {
            let need = Need { purchases: vec![id], compensations: vec![id], ..Need::default() };
            let authorize = move |facts: &mut _| onceward_domain::decide::compensate::authorize(facts, &[id]);
            block_on(onceward::execute::execute(&house.engine, "authorize", need, authorize)).unwrap();
        }
        if stop_after > 1 {
            let command = Compensate { purchase: id, key: key("cup"), compensation: id.compensation() };
            block_on(house.engine.admission().compensate(vec![command])).unwrap();
        }
        house.rest();
        assert_eq!(house.purchase(id).unwrap().reservation, Some(Reservation::Compensated), "{stop_after}");
        assert_eq!(house.figures(), ([1, 0, 0], [1, 0, 0]), "{stop_after}");
        house.assert_invariants();
    }
}

#[test]
fn fs_13_c_86_c_96_projections_replayed_have_no_new_effect() {
    let house = House::with(9, 9, usual_activity());
    for n in 0..5 {
        assert!(is_queued(&house.reserve("u1", &format!("r{n}"), 1)));
    }
    house.step(Worker::Sender).unwrap();
    house.step(Worker::Consumer).unwrap();
    let outbox = block_on(house.store.list_due(Lane::new(Lane::OUTBOX), 10, None)).unwrap();
    let events = wire::split_events(&outbox[0].body).unwrap();
    assert_eq!(events.len(), 5, "the events of one batch are one outbox entry");
    for _ in 0..3 {
        block_on(house.engine.bus().publish(Topic::Events, events.clone())).unwrap();
    }
    house.rest();
    assert_eq!(house.figures(), ([4, 5, 0], [4, 0, 5]));
    house.assert_invariants();
}

#[test]
fn fs_15_dr_03_the_rejection_is_durable_before_any_unit_goes_back() {
    let house = House::new(1);
    assert!(is_queued(&house.reserve("u1", "r1", 1)));
    house.clock.advance(usual_activity().reservation_deadline);
    house.step(Worker::Deadline).unwrap();
    let purchase = house.purchase(house.id("u1", "r1")).unwrap();
    assert_eq!(purchase.reservation, Some(Reservation::OrderRejected));
    assert_eq!(purchase.admission, Admission::Reserved, "the gate has not heard of it yet");
    assert_eq!(house.figures().1, [0, 1, 0]);
    house.rest();
    assert_eq!(house.figures().1, [1, 0, 0]);
}

#[test]
fn fs_19_quantities_count_against_limit_and_stock() {
    let house = House::with(5, 3, usual_activity());
    assert!(is_queued(&house.reserve("u1", "r1", 2)));
    assert_eq!(house.reserve("u1", "r2", 2), ReserveAnswer::LimitReached { live: None });
    assert!(is_queued(&house.reserve("u1", "r3", 1)));
    assert_eq!(house.reserve("u2", "r1", 3), ReserveAnswer::SoldOut);
    assert!(is_queued(&house.reserve("u2", "r2", 2)));
    house.rest();
    assert_eq!(house.figures(), ([0, 5, 0], [0, 0, 5]));
    house.assert_invariants();
}

#[test]
fn fs_20_a_cancelled_order_frees_the_place_where_the_activity_says_so() {
    for frees in [true, false] {
        let activity =
            onceward_domain::catalogue::Activity { cancelled_frees_limit: frees, ..usual_activity() };
        let house = House::with(5, 1, activity);
        assert!(is_queued(&house.reserve("u1", "r1", 1)));
        house.rest();
        let id = house.id("u1", "r1");
        block_on(order::cancel(&house.engine, id.order(), Arc::from("mind"), Arc::from("u1"))).unwrap();
        house.rest();
        assert_eq!(house.figures(), ([5, 0, 0], [5, 0, 0]));
        assert_eq!(is_queued(&house.reserve("u1", "r2", 1)), frees);
        house.rest();
        house.assert_invariants();
    }
}

#[test]
fn ot_01_ot_06_c_17_c_37_cancelling_twice_and_expiring_too_releases_once() {
    let house = House::new(1);
    assert!(is_queued(&house.reserve("u1", "r1", 1)));
    house.rest();
    let order_id = house.id("u1", "r1").order();
    for _ in 0..3 {
        let after =
            block_on(order::cancel(&house.engine, order_id, Arc::from("mind"), Arc::from("u1"))).unwrap();
        assert_eq!(after.order.unwrap().status, OrderStatus::Cancelled);
    }
    house.clock.advance(Millis(10_000_000));
    house.rest();
    assert_eq!(house.figures(), ([1, 0, 0], [1, 0, 0]));
    house.assert_invariants();
}

#[test]
fn ot_04_an_unpaid_order_is_cancelled_at_its_due_time_and_not_before() {
    let house = House::new(1);
    assert!(is_queued(&house.reserve("u1", "r1", 1)));
    house.rest();
    let id = house.id("u1", "r1");
    let due = house.purchase(id).unwrap().order.unwrap().cancel_due_at;
    house.clock.set(due.minus(Millis(1)));
    house.rest();
    assert_eq!(house.purchase(id).unwrap().order.unwrap().status, OrderStatus::Created);
    house.clock.set(due);
    house.rest();
    let order = house.purchase(id).unwrap().order.unwrap();
    assert_eq!(order.status, OrderStatus::Cancelled);
    assert_eq!(order.cancel_reason.as_deref(), Some("expired"));
    assert_eq!(house.purchase(id).unwrap().reservation, Some(Reservation::Cancelled));
    house.assert_invariants();
}

#[test]
fn ot_02_c_7_a_direct_order_takes_all_lines_or_none() {
    let house = House::new(5);
    house.put_sku("mug", 1, 1);
    let place = |user: &str, lines: Vec<(&str, u32)>| {
        let lines = lines.into_iter().map(|(sku, units)| (key(sku), units)).collect();
        let order =
            order::DirectOrder { user: UserId::trusted(user), request: RequestId::trusted("d"), lines };
        block_on(order::place(&house.engine, order))
    };
    let first = place("u1", vec![("cup", 1), ("mug", 1)]).unwrap();
    assert!(!first.repeated);
    assert!(place("u1", vec![("cup", 1), ("mug", 1)]).unwrap().repeated);
    assert_eq!(place("u1", vec![("cup", 1)]).unwrap_err().code(), Code::RequestConflict);
    assert_eq!(place("u2", vec![("cup", 1), ("mug", 1)]).unwrap_err().code(), Code::InsufficientStock);
    assert_eq!(place("u3", vec![("cup", 1), ("jug", 1)]).unwrap_err().code(), Code::NotFound);
    assert_eq!(place("u4", vec![("cup", 1), ("cup", 1)]).unwrap_err().code(), Code::Invalid);
    house.rest();
    assert_eq!(house.figures(), ([4, 1, 0], [4, 0, 1]));
    house.assert_invariants();
}

#[test]
fn c_5_units_on_their_way_stay_reserved_at_the_gate() {
    let house = House::new(10);
    for n in 0..10 {
        assert!(is_queued(&house.reserve(&format!("u{n}"), "r", 1)));
    }
    assert_eq!(house.figures(), ([10, 0, 0], [0, 10, 0]), "no message was read yet");
    assert_eq!(house.reserve("u10", "r", 1), ReserveAnswer::SoldOut);
}

#[test]
fn fs_06_a_batch_of_five_hundred_is_one_transaction() {
    let house = House::with(600, 1, usual_activity());
    let users: Vec<String> = (0..500).map(|n| format!("u{n}")).collect();
    let buyers: Vec<(&str, &str, u32)> = users.iter().map(|user| (user.as_str(), "r", 1)).collect();
    assert!(house.reserve_all(&buyers).iter().all(is_queued));
    assert_eq!(house.step(Worker::Sender).unwrap(), Next::Again);
    let revision = house.facts().skus[&key("cup")].revision;
    assert_eq!(house.step(Worker::Consumer).unwrap(), Next::Again);
    assert_eq!(house.facts().skus[&key("cup")].revision, revision + 1, "one stock row, written once");
    assert_eq!(house.lane(Lane::OUTBOX), 1, "one outbox entry");
    house.rest();
    assert_eq!(house.figures(), ([100, 500, 0], [100, 0, 500]));
}

#[test]
fn fs_01_a_decision_reads_what_a_buyer_holds_not_what_the_buyer_ever_did() {
    let house = House::new(1);
    for n in 0..40 {
        let request = format!("r{n}");
        assert!(is_queued(&house.reserve("u1", &request, 1)));
        house.rest();
        let id = house.id("u1", &request).order();
        block_on(order::cancel(&house.engine, id, Arc::from("mind"), Arc::from("u1"))).unwrap();
        house.rest();
    }
    let need = Need { buyers: vec![(key("cup"), UserId::trusted("u1"))], ..Need::default() };
    assert!(block_on(house.store.view(need)).unwrap().purchases.is_empty());
    let repeat = house.reserve("u1", "r7", 1);
    assert!(matches!(repeat, ReserveAnswer::Repeat { status: Reservation::Cancelled, .. }), "{repeat:?}");
    house.assert_invariants();
}

#[test]
fn c_111_what_no_order_can_price_is_not_put_on_sale() {
    let house = House::new(1);
    let put = |amount, per_user_limit| {
        let price = onceward_domain::money::Money::parse(amount, "CNY").unwrap();
        let new = onceward::operations::catalogue::NewSku {
            key: key("gem"),
            stock: 5,
            price,
            per_user_limit,
            buckets: 1,
        };
        block_on(onceward::operations::catalogue::put_sku(&house.engine, new))
    };
    assert_eq!(put(1_000_000_000_000_000, 2).unwrap_err().code(), Code::Invalid);
    assert!(put(1_000_000_000_000_000, 1).is_ok());
}

#[test]
fn fs_19_fs_20_a_lower_limit_takes_nothing_from_anybody_and_holds_for_what_follows() {
    let house = House::with(10, 3, usual_activity());
    assert!(is_queued(&house.reserve("u1", "r1", 2)));
    house.rest();
    house.clock.advance(Millis(1_000));
    house.put_sku("cup", 10, 1);
    house.assert_invariants();
    assert!(matches!(house.reserve("u1", "r2", 1), ReserveAnswer::LimitReached { .. }));
    assert!(is_queued(&house.reserve("u2", "r1", 1)));
    house.rest();
    house.assert_invariants();
    assert_eq!(house.figures().0, [7, 3, 0]);
}

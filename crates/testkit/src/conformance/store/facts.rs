//! Facts are what was written: every field, no more rows than asked for, buyers in order of age.

use std::sync::Arc;

use onceward_domain::changes::{ChangeSet, Step};
use onceward_domain::facts::Need;
use onceward_domain::id::{AccountId, IdKind, JobId, NoticeId, PaymentId, RefundId};
use onceward_domain::machine::Machine;
use onceward_domain::machine::admission::Admission;
use onceward_domain::machine::order::Order as OrderStatus;
use onceward_domain::machine::reservation::Reservation as Status;
use onceward_domain::money::{AMOUNT_LIMIT, Money};
use onceward_domain::purchase::{Inbox, InboxResult, Line, Purchase, Reason};
use onceward_domain::time::{Millis, Timestamp};

use super::Case;
use super::ground::{
    Ground, START, activity, cny, create_order, id, inbox, key, lane, order, ordered, reserved, sku, step_of,
    task, user,
};

pub(super) const CASES: &[Case] = &[
    Case::new("dr_06_facts_carry_the_time_of_the_store", time_of_the_store),
    Case::new("fs_06_absent_rows_are_absent", absent_rows),
    Case::new("fs_06_a_sku_comes_with_its_activity", sku_with_activity),
    Case::new("fs_06_catalogue_rows_come_back_whole", catalogue),
    Case::new("fs_04_purchases_come_back_whole_in_every_state", every_state),
    Case::new("c_112_purchases_come_back_whole_at_the_ends_of_their_ranges", extremes),
    Case::new("ot_02_direct_orders_keep_all_lines_in_order", several_lines),
    Case::new("fs_01_fs_20_buyers_are_loaded_with_what_they_hold_oldest_first", buyers),
    Case::new("fs_06_each_step_writes_its_own_fields_only", steps),
    Case::new("fs_12_tasks_come_back_whole", tasks),
];

fn time_of_the_store(ground: &Ground) {
    ground.clock.advance(Millis(1234));
    let now = START.plus(Millis(1234));
    assert_eq!(ground.view(Need::default()).now, now);
    assert_eq!(crate::block_on::block_on(ground.store.now()).expect("now answers"), now);
    let decided = ground.decide(Need::default(), move |facts| {
        assert_eq!(facts.now, now);
        Ok(ChangeSet::default())
    });
    decided.expect("an empty set is fine");
}

fn absent_rows(ground: &Ground) {
    let key = ground.sale(5);
    let nobody = (key.clone(), user("nobody"));
    let other = super::ground::key("nowhere", "other");
    let facts = ground.view(Need {
        activities: vec![activity("other").id],
        skus: vec![other.clone()],
        buckets: vec![other],
        purchases: vec![id(1)],
        buyers: vec![nobody.clone()],
        compensations: vec![id(1)],
        answers: vec![Arc::from("none")],
        payments: vec![PaymentId(id(1).with_kind(IdKind::Payment))],
        refunds: vec![RefundId(id(1).with_kind(IdKind::Refund))],
        attempts: vec![id(1)],
        callbacks: vec![(Arc::from("nobody"), Arc::from("nothing"))],
        notices: vec![NoticeId::from_digest([1; 32])],
        due: vec![(lane("nowhere"), Arc::from("nobody"))],
        accounts: vec![AccountId::trusted("nobody")],
        charges: vec![(AccountId::trusted("nobody"), Arc::from("nothing"))],
        jobs: vec![JobId::trusted("nothing")],
        ..Need::default()
    });
    assert!(facts.notices.is_empty() && facts.due.is_empty());
    assert!(facts.accounts.is_empty() && facts.charges.is_empty() && facts.jobs.is_empty());
    assert!(facts.payments.is_empty() && facts.refunds.is_empty() && facts.callbacks.is_empty());
    assert!(facts.activities.is_empty() && facts.skus.is_empty() && facts.buckets.is_empty());
    assert!(facts.purchases.is_empty() && facts.compensations.is_empty() && facts.answers.is_empty());
    assert_eq!(facts.purchases_of(&nobody.0, &nobody.1).count(), 0);
    assert!(ground.view(Need::default()).skus.is_empty(), "nobody asked");
}

fn sku_with_activity(ground: &Ground) {
    let key = ground.sale(5);
    let facts = ground.view(Need { skus: vec![key.clone()], ..Need::default() });
    assert_eq!(facts.activities.get(&key.activity), Some(&activity("sale")));
    let decided = ground.decide(Need { skus: vec![key.clone()], ..Need::default() }, move |facts| {
        assert!(facts.activities.contains_key(&key.activity));
        Ok(ChangeSet::default())
    });
    decided.expect("an empty set is fine");
}

fn catalogue(ground: &Ground) {
    let mut sale = activity("sale");
    sale.name = Arc::from("闪购 🛒 \"quoted\"");
    sale.ends_at = onceward_domain::time::LATEST;
    let mut first = sku("sale", "sku", 1_000_000_000);
    first.price = Money::parse(AMOUNT_LIMIT, "KWD").expect("within the limit");
    first.per_user_limit = u32::MAX;
    first.buckets = u16::MAX;
    ground.must(ChangeSet {
        activities: vec![sale.clone()],
        new_skus: vec![first.clone()],
        ..ChangeSet::default()
    });
    assert_eq!(ground.sku(&first.key), first);
    let rules = onceward_domain::catalogue::LatePayment::ALL;
    for late_payment in rules {
        sale.late_payment = late_payment;
        sale.cancelled_frees_limit = !sale.cancelled_frees_limit;
        ground.must(ChangeSet { activities: vec![sale.clone()], ..ChangeSet::default() });
        let facts = ground.view(Need { activities: vec![sale.id.clone()], ..Need::default() });
        assert_eq!(facts.activities.get(&sale.id), Some(&sale));
    }
    assert_eq!(ground.sku(&first.key), first, "a replaced activity keeps its SKUs");
}

/// Writes a purchase and reads it back.
fn round_trip(ground: &Ground, purchase: Purchase) {
    ground.must(ChangeSet { new_purchases: vec![purchase.clone()], ..ChangeSet::default() });
    let read = ground.purchase(purchase.id).expect("it was written");
    let expected = Purchase { handle: read.handle, ..purchase };
    assert_eq!(read, expected);
}

fn every_state(ground: &Ground) {
    let key = ground.sale(5);
    let mut number = 0;
    let mut next = || {
        number += 1;
        (number, i64::try_from(number).expect("small"))
    };
    for admission in Admission::STATES {
        let compensated = *admission == Admission::Compensated;
        for status in Status::STATES {
            let (number, _) = next();
            let mut purchase = reserved(number, "u", &key);
            purchase.admission = *admission;
            purchase.compensation = compensated.then(|| purchase.id.compensation());
            purchase.reservation = Some(*status);
            purchase.reason = status.refuses_late_messages().then_some(Reason::StockShort);
            if matches!(status, Status::OrderCreated | Status::Cancelled) {
                purchase.reason = None;
                purchase.inbox = Some(inbox(InboxResult::OrderCreated));
                purchase.lines[0].unit_price = Some(cny(1999));
                let state =
                    if *status == Status::Cancelled { OrderStatus::Cancelled } else { OrderStatus::Created };
                purchase.order = Some(order(state));
            }
            round_trip(ground, purchase);
        }
    }
    for status in OrderStatus::STATES {
        let (number, place) = next();
        let mut purchase = ordered(number, "u", &key, place);
        purchase.order = Some(order(*status));
        round_trip(ground, purchase);
    }
    for reason in Reason::ALL {
        let (number, _) = next();
        let mut purchase = reserved(number, "u", &key);
        purchase.reservation = Some(Status::OrderRejected);
        purchase.reason = Some(reason);
        round_trip(ground, purchase);
    }
}

fn extremes(ground: &Ground) {
    let key = ground.sale(5);
    let ends = [
        (Timestamp(i64::MAX), u32::MAX, i64::MAX, [0xff; 32]),
        (Timestamp(i64::MIN), 1, i64::MIN, [0; 32]),
        (Timestamp(0), 1, 0, [0x80; 32]),
        (Timestamp(-1), u32::MAX - 1, -1, [0x7f; 32]),
    ];
    for (number, (at, quantity, place, payload_hash)) in (1..).zip(ends) {
        let longest = "x".repeat(64);
        let mut purchase = reserved(number, &longest, &key);
        purchase.request = onceward_domain::id::RequestId::trusted(&format!("{}~:.-", "r".repeat(60)));
        purchase.lines[0] = Line { key: key.clone(), quantity, place, unit_price: Some(cny(AMOUNT_LIMIT)) };
        purchase.reservation = Some(Status::OrderCreated);
        purchase.inbox = Some(Inbox { payload_hash, result: InboxResult::OrderCreated });
        (purchase.reserved_at, purchase.business_deadline, purchase.updated_at) = (at, at, at);
        let mut order = order(OrderStatus::Paid);
        order.total = cny(AMOUNT_LIMIT);
        (order.paid, order.refunded) = (AMOUNT_LIMIT, AMOUNT_LIMIT);
        (order.created_at, order.expires_at, order.cancel_due_at) = (at, at, at);
        (order.paid_at, order.cancelled_at) = (Some(at), Some(at));
        order.cancel_reason = Some(Arc::from("超时 \u{1f6d2}"));
        purchase.order = Some(order);
        round_trip(ground, purchase);
    }
    let mut last = reserved(99, "u", &key);
    last.revision = i64::MAX - 1;
    round_trip(ground, last);
}

fn three_skus(ground: &Ground) -> [onceward_domain::id::SkuKey; 3] {
    let names = ["b", "a", "c"];
    ground.must(ChangeSet {
        activities: vec![activity("sale"), activity("other")],
        new_skus: vec![sku("sale", "b", 5), sku("sale", "a", 5), sku("other", "c", 5)],
        ..ChangeSet::default()
    });
    [key("sale", names[0]), key("sale", names[1]), key("other", names[2])]
}

fn line(key: &onceward_domain::id::SkuKey, quantity: u32, place: i64) -> Line {
    Line { key: key.clone(), quantity, place, unit_price: Some(cny(i64::from(quantity))) }
}

fn several_lines(ground: &Ground) {
    let [b, a, c] = three_skus(ground);
    let mut purchase = ordered(1, "u", &b, 0);
    purchase.lines = vec![line(&b, 3, 0), line(&a, 2, 0), line(&c, 1, 7)];
    round_trip(ground, purchase);
    let stored = ground.purchase(id(1)).expect("it was written");
    let step =
        Step::Order { order: order(OrderStatus::CancelPending), reservation: None, places: vec![-1, 4, -9] };
    ground.must(ChangeSet { purchases: vec![step_of(&stored, step)], ..ChangeSet::default() });
    let places: Vec<i64> =
        ground.purchase(id(1)).expect("it is there").lines.iter().map(|line| line.place).collect();
    assert_eq!(places, [-1, 4, -9]);
}

fn buyers(ground: &Ground) {
    let [b, a, c] = three_skus(ground);
    let mut direct = ordered(1, "u", &b, 0);
    direct.lines = vec![line(&b, 1, 0), line(&a, 1, 0)];
    let mut cancelled = ordered(3, "u", &a, -1);
    cancelled.order = Some(order(OrderStatus::Cancelled));
    let held = |number, place| {
        let mut purchase = reserved(number, "u", &a);
        purchase.lines[0].place = place;
        purchase
    };
    // Written newest id first and at one moment: age is the order of writing, not of ids or times.
    let order_of_writing = [held(9, 1), direct, cancelled, reserved(2, "v", &a), held(1_000, 2)];
    for purchase in order_of_writing {
        ground.must(ChangeSet { new_purchases: vec![purchase], ..ChangeSet::default() });
    }
    let buyers = vec![(a.clone(), user("u")), (b.clone(), user("u")), (c.clone(), user("u"))];
    let facts = ground.view(Need { buyers, ..Need::default() });
    let ids = |key| facts.purchases_of(key, &user("u")).map(|row| row.id).collect::<Vec<_>>();
    assert_eq!(ids(&a), [id(9), id(1), id(1_000)], "what was given back is not read");
    assert_eq!(ids(&b), [id(1)]);
    assert!(ids(&c).is_empty());
    assert!(!facts.purchases.contains_key(&id(2)), "another buyer's purchase was not asked for");
    assert_eq!(facts.purchases[&id(1)].lines.len(), 2, "a purchase always comes with all its lines");
}

fn steps(ground: &Ground) {
    let key = ground.sale(5);
    ground.must(ChangeSet {
        new_purchases: vec![reserved(1, "u", &key), reserved(2, "u", &key)],
        ..ChangeSet::default()
    });
    let step = |number, step: Step| {
        let before = ground.purchase(id(number)).expect("it is there");
        ground.must(ChangeSet { purchases: vec![step_of(&before, step)], ..ChangeSet::default() });
        let after = ground.purchase(id(number)).expect("it is there");
        assert_eq!(after.revision, before.revision + 1);
        after
    };
    let created = step(1, create_order(&reserved(1, "u", &key), 0).step);
    assert_eq!(created.admission, Admission::Reserved, "the store never writes admission's view");
    assert_eq!((created.reservation, created.lines[0].place), (Some(Status::OrderCreated), 0));
    assert_eq!(created.lines[0].unit_price, Some(cny(1999)));
    let projected = step(1, Step::Admission { to: Admission::OrderCreated, compensation: None, place: 0 });
    assert_eq!((projected.admission, projected.order), (Admission::OrderCreated, created.order));
    let cancel = Step::Order {
        order: order(OrderStatus::Cancelled),
        reservation: Some(Status::Cancelled),
        places: vec![-1],
    };
    let cancelled = step(1, cancel);
    assert_eq!((cancelled.reservation, cancelled.inbox), (Some(Status::Cancelled), created.inbox));
    assert_eq!(cancelled.order, Some(order(OrderStatus::Cancelled)));

    let refusal = Step::Reservation {
        to: Status::OrderRejected,
        reason: Some(Reason::UserLimit),
        inbox: Some(inbox(InboxResult::OrderRejected)),
        place: -1,
    };
    step(2, refusal);
    let late = step(2, Step::Inbox(inbox(InboxResult::LateRejected)));
    assert_eq!(late.inbox, Some(inbox(InboxResult::LateRejected)));
    let on = Step::Reservation { to: Status::Compensating, reason: None, inbox: None, place: -1 };
    let on = step(2, on);
    assert_eq!((on.reason, on.inbox), (Some(Reason::UserLimit), late.inbox), "what is not said is kept");
    let compensation = Some(id(2).compensation());
    let back = step(2, Step::Admission { to: Admission::Compensated, compensation, place: -1 });
    assert_eq!((back.compensation, back.reservation), (compensation, Some(Status::Compensating)));
}

fn tasks(ground: &Ground) {
    let key = ground.sale(5);
    let statuses = onceward_domain::machine::compensation::Compensation::STATES;
    for (number, status) in (1..).zip(statuses) {
        let mut written = task(id(number));
        written.status = *status;
        written.attempts = 1_000_000;
        written.last_result = Some(Arc::from("ALREADY_COMPENSATED"));
        written.updated_at = Timestamp(i64::MAX);
        ground.must(ChangeSet {
            new_purchases: vec![reserved(number, "u", &key)],
            new_compensations: vec![written.clone()],
            ..ChangeSet::default()
        });
        let facts = ground.view(Need { compensations: vec![id(number)], ..Need::default() });
        assert_eq!(facts.compensations.get(&id(number)), Some(&written));
    }
}

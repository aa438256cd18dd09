//! A transaction is all or nothing, and its guards hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use onceward_domain::catalogue::{Bucket, Stock};
use onceward_domain::changes::{Answered, BucketMove, ChangeSet, Quarantined, Step, StockEntry};
use onceward_domain::error::{Class, Code, Error};
use onceward_domain::facts::Need;
use onceward_domain::machine::Machine;
use onceward_domain::machine::admission::Admission;
use onceward_domain::machine::order::{BIRTH, Order as OrderStatus, OrderEvent};
use onceward_domain::money::AMOUNT_LIMIT;
use onceward_domain::time::Timestamp;

use super::Case;
use super::ground::{
    Ground, START, activity, cny, create_order, due, id, lane, ordered, put, reserved, sku, step_of,
    stock_move, task,
};

pub(super) const CASES: &[Case] = &[
    Case::new("fs_06_one_set_is_applied_whole", applied_whole),
    Case::new("fs_06_a_late_failure_takes_everything_back", taken_back),
    Case::new("fs_06_a_refused_decision_writes_nothing", refused_decision),
    Case::new("ot_01_a_stale_stock_revision_loses", stale_stock),
    Case::new("ot_01_a_stale_bucket_revision_loses", stale_bucket),
    Case::new("ot_01_a_stale_purchase_revision_loses", stale_purchase),
    Case::new("ot_01_a_stale_task_revision_loses", stale_task),
    Case::new("ot_01_an_absent_row_loses", absent_row),
    Case::new("ot_01_new_terms_are_guarded_and_leave_stock_alone", new_terms),
    Case::new("fs_06_new_rows_never_replace_old_ones", new_rows),
    Case::new("fs_06_a_place_is_held_once", place_once),
    Case::new("fs_20_a_freed_place_is_taken_again", place_again),
    Case::new("fs_09_stock_never_goes_below_zero", stock_checks),
    Case::new("fs_13_a_bucket_always_adds_up", bucket_checks),
    Case::new("fs_13_an_existing_bucket_is_left_alone", bucket_left_alone),
    Case::new("ot_06_stock_is_released_once", released_once),
    Case::new("fs_08_c_91_a_repeated_quarantine_is_ignored", quarantine),
    Case::new("c_101_a_first_answer_is_kept", first_answer),
    Case::new("c_26_an_old_absolute_value_never_returns", old_value),
    Case::new("c_110_c_112_big_figures_are_kept_or_refused", big_figures),
];

fn applied_whole(ground: &Ground) {
    let key = ground.sale(5);
    let sku = ground.sku(&key);
    let purchase = reserved(1, "u", &key);
    let lane = lane("work");
    ground.must(ChangeSet {
        stock: vec![stock_move(&sku, sku.stock.moved(BIRTH, 1))],
        new_purchases: vec![purchase.clone()],
        new_compensations: vec![task(purchase.id)],
        due: vec![put(&lane, "m", START)],
        ..ChangeSet::default()
    });
    assert_eq!(ground.sku(&key).stock, Stock { initial: 5, available: 4, occupied: 1, sold: 0 });
    assert!(ground.purchase(purchase.id).is_some());
    assert_eq!(ground.claim(&lane, 1).len(), 1);
}

fn taken_back(ground: &Ground) {
    let key = ground.sale(5);
    let sku = ground.sku(&key);
    let purchase = reserved(1, "u", &key);
    let lane = lane("work");
    ground.put(&lane, "held", START);
    let held = ground.claim_one(&lane).held;
    ground.must(due(vec![onceward_domain::due::DueChange::Complete(held.clone())]));
    let mut changes = ChangeSet {
        activities: vec![activity("other")],
        stock: vec![stock_move(&sku, sku.stock.moved(BIRTH, 1))],
        new_purchases: vec![purchase.clone()],
        ..due(vec![put(&lane, "m", START)])
    };
    changes.due.push(onceward_domain::due::DueChange::Complete(held));
    ground.refuses(changes, Code::GuardLost);
    assert_eq!(ground.sku(&key), sku);
    assert!(ground.purchase(purchase.id).is_none());
    let other = activity("other").id;
    assert!(ground.view(Need { activities: vec![other], ..Need::default() }).activities.is_empty());
    assert!(ground.claim(&lane, 10).is_empty());
}

fn refused_decision(ground: &Ground) {
    let key = ground.sale(5);
    let runs = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&runs);
    let need = Need { skus: vec![key.clone()], ..Need::default() };
    let result = ground.decide(need, move |facts| {
        counted.fetch_add(1, Ordering::SeqCst);
        let sku = facts.skus.values_mut().next().expect("it was asked for");
        sku.stock.available = 0;
        Err(Error::new(Code::SoldOut, "refusing"))
    });
    assert_eq!(result.expect_err("the decision refused").code(), Code::SoldOut);
    assert_eq!(ground.sku(&key).stock, Stock::full(5));
    assert!(runs.load(Ordering::SeqCst) >= 1);
}

fn stale_stock(ground: &Ground) {
    let key = ground.sale(5);
    let sku = ground.sku(&key);
    let change =
        || ChangeSet { stock: vec![stock_move(&sku, sku.stock.moved(BIRTH, 1))], ..ChangeSet::default() };
    ground.must(change());
    assert_eq!(ground.sku(&key).revision, sku.revision + 1);
    ground.refuses(change(), Code::GuardLost);
    assert_eq!(ground.sku(&key).stock.available, 4);
}

fn stale_bucket(ground: &Ground) {
    let key = ground.sale(5);
    let mut bucket = ground.bucket(&key);
    bucket.available -= 1;
    bucket.open_reserved += 1;
    let change =
        || ChangeSet { buckets: vec![BucketMove { bucket: bucket.clone() }], ..ChangeSet::default() };
    ground.must(change());
    assert_eq!(ground.bucket(&key).revision, bucket.revision + 1);
    ground.refuses(change(), Code::GuardLost);
    assert_eq!(ground.bucket(&key).open_reserved, 1);
}

fn stale_purchase(ground: &Ground) {
    let key = ground.sale(5);
    ground.must(ChangeSet { new_purchases: vec![reserved(1, "u", &key)], ..ChangeSet::default() });
    let before = ground.purchase(id(1)).expect("it was written");
    let change = || ChangeSet { purchases: vec![create_order(&before, 0)], ..ChangeSet::default() };
    ground.must(change());
    let after = ground.purchase(id(1)).expect("it is there");
    assert_eq!((after.revision, after.handle), (before.revision + 1, before.handle));
    assert_eq!(after.updated_at, START.plus(onceward_domain::time::Millis(77)));
    ground.refuses(change(), Code::GuardLost);
    assert_eq!(ground.purchase(id(1)), Some(after));
}

fn stale_task(ground: &Ground) {
    let key = ground.sale(5);
    ground.must(ChangeSet {
        new_purchases: vec![reserved(1, "u", &key)],
        new_compensations: vec![task(id(1))],
        ..ChangeSet::default()
    });
    let mut changed = task(id(1));
    changed.attempts = 1;
    changed.last_result = Some(Arc::from("COMPENSATED"));
    let change = || ChangeSet { compensations: vec![changed.clone()], ..ChangeSet::default() };
    ground.must(change());
    ground.refuses(change(), Code::GuardLost);
    let facts = ground.view(Need { compensations: vec![id(1)], ..Need::default() });
    let expected = onceward_domain::changes::CompensationTask { revision: 1, ..changed };
    assert_eq!(facts.compensations.get(&id(1)), Some(&expected));
}

fn absent_row(ground: &Ground) {
    let key = ground.sale(5);
    let nowhere = sku("sale", "nowhere", 5);
    let stock = vec![stock_move(&nowhere, nowhere.stock)];
    ground.refuses(ChangeSet { stock, ..ChangeSet::default() }, Code::GuardLost);
    let buckets = vec![BucketMove { bucket: Bucket::full(nowhere.key.clone(), 5) }];
    ground.refuses(ChangeSet { buckets, ..ChangeSet::default() }, Code::GuardLost);
    let purchases = vec![create_order(&reserved(9, "u", &key), 0)];
    ground.refuses(ChangeSet { purchases, ..ChangeSet::default() }, Code::GuardLost);
    ground.refuses(ChangeSet { compensations: vec![task(id(9))], ..ChangeSet::default() }, Code::GuardLost);
}

fn new_terms(ground: &Ground) {
    let key = ground.sale(5);
    let mut terms = ground.sku(&key);
    ground.must(ChangeSet {
        stock: vec![stock_move(&terms, terms.stock.moved(BIRTH, 1))],
        ..ChangeSet::default()
    });
    terms.price = cny(5);
    terms.per_user_limit = 9;
    ground.refuses(ChangeSet { changed_skus: vec![terms.clone()], ..ChangeSet::default() }, Code::GuardLost);
    terms.revision = ground.sku(&key).revision;
    ground.must(ChangeSet { changed_skus: vec![terms.clone()], ..ChangeSet::default() });
    let after = ground.sku(&key);
    assert_eq!((after.price, after.per_user_limit), (cny(5), 9));
    assert_eq!(after.stock.available, 4, "terms never write stock back");
    assert!(after.revision > terms.revision);
}

fn new_rows(ground: &Ground) {
    let key = ground.sale(5);
    let first = reserved(1, "u", &key);
    ground.must(ChangeSet {
        new_purchases: vec![first.clone()],
        new_compensations: vec![task(first.id)],
        ..ChangeSet::default()
    });
    let mut second = first.clone();
    second.user = super::ground::user("somebody-else");
    let sets = [
        ChangeSet { new_skus: vec![sku("sale", "sku", 9)], ..ChangeSet::default() },
        ChangeSet { new_purchases: vec![second], ..ChangeSet::default() },
        ChangeSet { new_compensations: vec![task(first.id)], ..ChangeSet::default() },
    ];
    for changes in sets {
        let error = ground.write(changes).expect_err("the key exists");
        assert!(matches!(error.class(), Class::Manual | Class::Conflict), "{error}");
    }
    assert_eq!(ground.sku(&key).stock, Stock::full(5));
    assert_eq!(ground.purchase(first.id).map(|row| row.user), Some(first.user));
}

fn place_once(ground: &Ground) {
    let key = ground.sale(5);
    ground.must(ChangeSet { new_purchases: vec![ordered(1, "u", &key, 0)], ..ChangeSet::default() });
    let again = ChangeSet { new_purchases: vec![ordered(2, "u", &key, 0)], ..ChangeSet::default() };
    ground.refuses(again, Code::ConstraintViolated);
    assert!(ground.purchase(id(2)).is_none());
    let others = vec![
        ordered(3, "u", &key, 1),
        ordered(4, "v", &key, 0),
        reserved(5, "u", &key),
        reserved(6, "u", &key),
    ];
    ground.must(ChangeSet { new_purchases: others, ..ChangeSet::default() });
    let late = ground.purchase(id(5)).expect("it was written");
    let taken = ChangeSet { purchases: vec![create_order(&late, 1)], ..ChangeSet::default() };
    ground.refuses(taken, Code::ConstraintViolated);
    assert_eq!(ground.purchase(id(5)), Some(late));
}

fn place_again(ground: &Ground) {
    let key = ground.sale(5);
    ground.must(ChangeSet { new_purchases: vec![ordered(1, "u", &key, 0)], ..ChangeSet::default() });
    let first = ground.purchase(id(1)).expect("it was written");
    let step = Step::Order {
        order: super::ground::order(OrderStatus::Cancelled),
        reservation: None,
        places: vec![-1],
    };
    ground.must(ChangeSet { purchases: vec![step_of(&first, step)], ..ChangeSet::default() });
    ground.must(ChangeSet { new_purchases: vec![ordered(2, "u", &key, 0)], ..ChangeSet::default() });
    assert_eq!(ground.purchase(id(1)).map(|row| row.lines[0].place), Some(-1));
    assert_eq!(ground.purchase(id(2)).map(|row| row.lines[0].place), Some(0));
}

fn stock_checks(ground: &Ground) {
    let key = ground.sale(5);
    let sku = ground.sku(&key);
    let wrong = [
        Stock { initial: 5, available: -1, occupied: 6, sold: 0 },
        Stock { initial: 5, available: 6, occupied: -1, sold: 0 },
        Stock { initial: 5, available: 6, occupied: 0, sold: -1 },
        Stock { initial: 5, available: 5, occupied: 1, sold: 0 },
        Stock { initial: 6, available: 5, occupied: 0, sold: 0 },
    ];
    for stock in wrong {
        let changes = ChangeSet { stock: vec![stock_move(&sku, stock)], ..ChangeSet::default() };
        ground.refuses(changes, Code::ConstraintViolated);
    }
    assert_eq!(ground.sku(&key), sku);
}

fn bucket_checks(ground: &Ground) {
    let key = ground.sale(5);
    let bucket = ground.bucket(&key);
    let wrong = [
        Bucket { available: 4, ..bucket.clone() },
        Bucket { available: 6, open_reserved: -1, ..bucket.clone() },
        Bucket { available: 6, committed: -1, ..bucket.clone() },
    ];
    for after in wrong {
        let changes = ChangeSet { buckets: vec![BucketMove { bucket: after }], ..ChangeSet::default() };
        ground.refuses(changes, Code::ConstraintViolated);
    }
    let overtaken = Bucket { available: -1, committed: 6, ..bucket };
    ground.must(ChangeSet { buckets: vec![BucketMove { bucket: overtaken }], ..ChangeSet::default() });
    assert_eq!(ground.bucket(&key).available, -1, "a direct order may overtake open reservations");
}

fn bucket_left_alone(ground: &Ground) {
    let key = ground.sale(5);
    let again = Bucket::full(key.clone(), 99);
    ground.must(ChangeSet { new_buckets: vec![again], ..ChangeSet::default() });
    assert_eq!(ground.bucket(&key).initial, 5);
}

fn released_once(ground: &Ground) {
    let key = ground.sale(5);
    ground.must(ChangeSet { new_purchases: vec![ordered(1, "u", &key, 0)], ..ChangeSet::default() });
    let row = OrderStatus::CancelPending.next(OrderEvent::Cancel).expect("the table has the row");
    let entry = StockEntry {
        key,
        purchase: Some(id(1)),
        adjustment: None,
        cause: row.label,
        available: 1,
        occupied: -1,
        sold: 0,
        note: None,
        at: START,
    };
    ground.must(ChangeSet { stock_entries: vec![entry.clone()], ..ChangeSet::default() });
    ground
        .refuses(ChangeSet { stock_entries: vec![entry], ..ChangeSet::default() }, Code::ConstraintViolated);
}

fn quarantine(ground: &Ground) {
    let message = |hash: u8| Quarantined {
        message_id: Arc::from("message"),
        payload_hash: [hash; 32],
        reason: "payload_mismatch",
        payload: vec![0, 255, hash],
        at: START,
    };
    for hash in [1, 1, 2, 1] {
        ground.must(ChangeSet { quarantined: vec![message(hash)], ..ChangeSet::default() });
    }
    let tally = crate::block_on::block_on(ground.store.tally()).expect("tally answers");
    assert_eq!(tally.quarantined, 2);
}

fn first_answer(ground: &Ground) {
    let answer = |status| Answered {
        key: Arc::from("scope/key"),
        fingerprint: [9; 32],
        status,
        body: vec![0, 1, 255],
        at: Timestamp(i64::MAX),
        lasting: status == 201,
    };
    ground.must(ChangeSet { answers: vec![answer(201)], ..ChangeSet::default() });
    let error = ground.write(ChangeSet { answers: vec![answer(409)], ..ChangeSet::default() });
    assert!(matches!(error.expect_err("it is kept already").class(), Class::Manual | Class::Conflict));
    let keys: Vec<Arc<str>> = vec![Arc::from("scope/key"), Arc::from("scope/other")];
    let facts = ground.view(Need { answers: keys.clone(), ..Need::default() });
    assert_eq!(facts.answers.get(&keys[0]), Some(&answer(201)));
    assert_eq!(facts.answers.get(&keys[1]), None);
}

fn old_value(ground: &Ground) {
    let key = ground.sale(120);
    let sku = ground.sku(&key);
    let undo = stock_move(&sku, sku.stock);
    ground.must(ChangeSet {
        stock: vec![stock_move(&sku, sku.stock.moved(BIRTH, 30))],
        ..ChangeSet::default()
    });
    ground.refuses(ChangeSet { stock: vec![undo], ..ChangeSet::default() }, Code::GuardLost);
    assert_eq!(ground.sku(&key).stock.occupied, 30);
}

fn big_figures(ground: &Ground) {
    let key = ground.sale(5);
    for (number, amount) in [(1, 3_616_672_277), (2, AMOUNT_LIMIT)] {
        let mut purchase = ordered(number, "u", &key, i64::try_from(number).expect("small"));
        purchase.lines[0].unit_price = Some(cny(amount));
        let order = purchase.order.as_mut().expect("it has one");
        order.total = cny(amount);
        ground.must(ChangeSet { new_purchases: vec![purchase], ..ChangeSet::default() });
        let read = ground.purchase(id(number)).and_then(|row| row.order).expect("it was written");
        assert_eq!(read.total, cny(amount));
    }
    let sku = ground.sku(&key);
    let wrapped = Stock { initial: i64::MIN, available: i64::MIN, occupied: 0, sold: 0 };
    ground.refuses(
        ChangeSet { stock: vec![stock_move(&sku, wrapped)], ..ChangeSet::default() },
        Code::ConstraintViolated,
    );
    let most = Bucket { initial: i64::MAX, available: i64::MAX, ..ground.bucket(&key) };
    ground.must(ChangeSet { buckets: vec![BucketMove { bucket: most }], ..ChangeSet::default() });
    assert_eq!(ground.bucket(&key).available, i64::MAX);
    let admitted = Step::Admission { to: Admission::OrderCreated, compensation: None, place: i64::MAX };
    let first = ground.purchase(id(1)).expect("other rows stay readable");
    ground.must(ChangeSet { purchases: vec![step_of(&first, admitted)], ..ChangeSet::default() });
    assert_eq!(ground.purchase(id(1)).map(|row| row.lines[0].place), Some(i64::MAX));
}

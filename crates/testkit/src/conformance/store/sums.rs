//! Sums over the whole store.

use onceward_domain::catalogue::Sku;
use onceward_domain::changes::{ChangeSet, StockEntry};
use onceward_domain::machine::Machine;
use onceward_domain::machine::admission::Admission;
use onceward_domain::machine::order::{Order as OrderStatus, OrderEvent};
use onceward_domain::machine::reservation::Reservation as Status;
use onceward_domain::purchase::{InboxResult, Purchase, Reason};
use onceward_domain::tally::{Group, Tally};
use onceward_domain::time::Millis;

use super::Case;
use super::ground::{Ground, START, id, inbox, order, ordered, reserved, task};
use crate::block_on::block_on;

pub(super) const CASES: &[Case] = &[
    Case::new("rc_02_an_empty_store_adds_up_to_nothing", empty),
    Case::new("rc_02_purchases_are_summed_by_state", groups),
    Case::new("rc_02_limits_ledger_and_releases_are_summed", limits_and_ledger),
    Case::new("fs_19_a_lower_limit_judges_only_those_who_have_ordered_since", lower_limit),
    Case::new("rc_02_contradictions_are_counted", contradictions),
];

fn tally(ground: &Ground) -> Tally {
    block_on(ground.store.tally()).expect("tally answers")
}

fn write(ground: &Ground, purchases: Vec<Purchase>) {
    ground.must(ChangeSet { new_purchases: purchases, ..ChangeSet::default() });
}

fn empty(ground: &Ground) {
    let sums = tally(ground);
    assert_eq!(sums.now, START);
    assert!(sums.skus.is_empty());
    let counts = [
        sums.rejections_without_task,
        sums.tasks_without_rejection,
        sums.inbox_contradictions,
        sums.cancels_without_release,
        sums.quarantined,
    ];
    assert_eq!(counts, [0; 5]);
}

fn groups(ground: &Ground) {
    let key = ground.sale(50);
    let mut large = ordered(1, "u", &key, 0);
    large.lines[0].quantity = 3;
    write(ground, vec![large, ordered(2, "v", &key, 0), reserved(3, "w", &key), reserved(4, "x", &key)]);
    let sums = tally(ground);
    assert_eq!(sums.skus.len(), 1);
    let mut found = sums.skus[0].groups.clone();
    found.sort_by_key(|group| group.units);
    let group =
        |admission, order, purchases, units| Group { admission, reservation: None, order, purchases, units };
    let expected =
        [group(Admission::Reserved, None, 2, 2), group(Admission::Absent, Some(OrderStatus::Created), 2, 4)];
    assert_eq!(found, expected);
    assert_eq!(sums.skus[0].sku, ground.sku(&key));
    assert_eq!(sums.skus[0].bucket, Some(ground.bucket(&key)));
}

fn limits_and_ledger(ground: &Ground) {
    let key = ground.sale(50);
    let cancelled = |number, place| {
        let mut purchase = ordered(number, "u", &key, place);
        purchase.order = Some(order(OrderStatus::Cancelled));
        purchase
    };
    // Buyer u holds 2 (the limit) beside a cancelled one; buyer v holds 3.
    let mut large = ordered(4, "v", &key, 0);
    large.lines[0].quantity = 3;
    write(ground, vec![ordered(1, "u", &key, 0), ordered(2, "u", &key, 1), cancelled(3, -1), large]);
    let sums = tally(ground);
    assert_eq!(sums.skus[0].buyers_over_limit, 1);
    assert_eq!(sums.cancels_without_release, 1, "the release is not in the ledger yet");
    let row = OrderStatus::CancelPending.next(OrderEvent::Cancel).expect("the table has the row");
    let release = StockEntry {
        key: key.clone(),
        purchase: Some(id(3)),
        adjustment: None,
        cause: row.label,
        available: 1,
        occupied: -1,
        sold: 0,
        note: None,
        at: START,
    };
    ground.must(ChangeSet { stock_entries: vec![release], ..ChangeSet::default() });
    let sums = tally(ground);
    assert_eq!(sums.cancels_without_release, 0);
    assert_eq!(sums.skus[0].ledger_available, 1);
}

fn lower_limit(ground: &Ground) {
    let key = ground.sale(50);
    let since = START.plus(Millis(10));
    write(ground, vec![ordered(1, "u", &key, 0), ordered(2, "u", &key, 1), ordered(3, "v", &key, 0)]);
    let lowered = Sku { per_user_limit: 1, limit_since: since, ..ground.sku(&key) };
    ground.must(ChangeSet { changed_skus: vec![lowered.clone()], ..ChangeSet::default() });
    assert_eq!(ground.sku(&key).limit_since, since);
    assert_eq!(tally(ground).skus[0].buyers_over_limit, 0, "u keeps what the old limit allowed");
    let mut later = ordered(4, "v", &key, 1);
    later.order.as_mut().expect("it is an order").created_at = since.plus(Millis(1));
    write(ground, vec![later]);
    assert_eq!(tally(ground).skus[0].buyers_over_limit, 1, "v was let in above the new one");
}

fn contradictions(ground: &Ground) {
    let key = ground.sale(50);
    let mut refused = reserved(1, "u", &key);
    refused.reservation = Some(Status::OrderRejected);
    refused.reason = Some(Reason::StockShort);
    refused.inbox = Some(inbox(InboxResult::OrderRejected));
    write(ground, vec![refused, reserved(2, "v", &key)]);
    let sums = tally(ground);
    assert_eq!((sums.rejections_without_task, sums.inbox_contradictions), (1, 0));
    ground.must(ChangeSet { new_compensations: vec![task(id(1)), task(id(2))], ..ChangeSet::default() });
    let sums = tally(ground);
    assert_eq!((sums.rejections_without_task, sums.tasks_without_rejection), (0, 1));
    let mut contradiction = reserved(3, "w", &key);
    contradiction.reservation = Some(Status::OrderRejected);
    contradiction.reason = Some(Reason::StockShort);
    contradiction.inbox = Some(inbox(InboxResult::OrderCreated));
    ground.must(ChangeSet {
        new_compensations: vec![task(id(3))],
        new_purchases: vec![contradiction],
        ..ChangeSet::default()
    });
    assert_eq!(tally(ground).inbox_contradictions, 1);
}

//! Lists of orders and histories.

use std::sync::Arc;

use onceward_domain::changes::{ChangeSet, Step, Transition};
use onceward_domain::id::{ActivityId, PurchaseId, SkuKey};
use onceward_domain::machine::Machine;
use onceward_domain::machine::order::{Order as OrderStatus, OrderEvent};
use onceward_domain::ports::store::{Expiring, OrderFilter, PageRequest};
use onceward_domain::purchase::{Order, Purchase};
use onceward_domain::time::{Millis, Timestamp};

use super::Case;
use super::ground::{
    Ground, START, activity, id, key, order, ordered, reserved, sku, step_of, transition, user,
};
use crate::block_on::block_on;

pub(super) const CASES: &[Case] = &[
    Case::new("se_03_orders_are_listed_newest_first_with_filters", filtered),
    Case::new("se_03_pages_are_stable_under_inserts", stable_pages),
    Case::new("se_03_skus_are_listed_by_their_ids_page_by_page", skus),
    Case::new("ot_10_orders_that_may_expire_are_told_by_their_own_rows_earliest_first", expiring),
    Case::new("d_9_d_13_due_times_are_kept_to_the_millisecond", expiring_exactly),
    Case::new("ob_03_a_history_is_told_oldest_first", history),
];

fn list(ground: &Ground, filter: OrderFilter, limit: u32, before: Option<i64>) -> Vec<Purchase> {
    block_on(ground.store.list_orders(filter, PageRequest { limit, before })).expect("list_orders answers")
}

fn ids(purchases: &[Purchase]) -> Vec<PurchaseId> {
    purchases.iter().map(|purchase| purchase.id).collect()
}

fn filtered(ground: &Ground) {
    ground.must(ChangeSet {
        activities: vec![activity("sale"), activity("other")],
        new_skus: vec![sku("sale", "sku", 9), sku("other", "sku", 9)],
        ..ChangeSet::default()
    });
    let (sale, other) = (key("sale", "sku"), key("other", "sku"));
    let mut paid = ordered(2, "v", &sale, 0);
    paid.order = Some(order(OrderStatus::Paid));
    let mut both = ordered(4, "v", &sale, 1);
    let mut line = both.lines[0].clone();
    line.key = other.clone();
    both.lines.push(line);
    for purchase in
        [ordered(1, "u", &sale, 0), paid, reserved(3, "u", &sale), both, ordered(5, "u", &other, 0)]
    {
        ground.must(ChangeSet { new_purchases: vec![purchase], ..ChangeSet::default() });
    }
    let shown = |filter| ids(&list(ground, filter, 200, None));
    let all = OrderFilter::default();
    assert_eq!(
        shown(all.clone()),
        [id(5), id(4), id(2), id(1)],
        "a reservation without an order is no order"
    );
    assert_eq!(shown(OrderFilter { user: Some(user("u")), ..all.clone() }), [id(5), id(1)]);
    assert_eq!(shown(OrderFilter { status: Some(OrderStatus::Paid), ..all.clone() }), [id(2)]);
    let in_other = OrderFilter { activity: Some(ActivityId::trusted("other")), ..all.clone() };
    assert_eq!(shown(in_other.clone()), [id(5), id(4)]);
    assert_eq!(shown(OrderFilter { user: Some(user("v")), ..in_other }), [id(4)]);
    assert!(shown(OrderFilter { user: Some(user("w")), ..all }).is_empty());
    let whole = list(ground, OrderFilter { user: Some(user("v")), ..OrderFilter::default() }, 1, None);
    assert_eq!(whole[0].lines.len(), 2, "a listed order comes with all its lines");
}

fn stable_pages(ground: &Ground) {
    let key = ground.sale(50);
    let add = |number: u64| {
        let place = i64::try_from(number).expect("small");
        let new_purchases = vec![ordered(number, "u", &key, place)];
        ground.must(ChangeSet { new_purchases, ..ChangeSet::default() });
    };
    (1..=5).for_each(add);
    let mut seen = Vec::new();
    let mut before = None;
    let mut newcomer = 100;
    loop {
        let page = list(ground, OrderFilter::default(), 2, before);
        let Some(last) = page.last() else { break };
        before = Some(last.handle);
        seen.extend(ids(&page));
        newcomer += 1;
        add(newcomer);
    }
    assert_eq!(seen, [5, 4, 3, 2, 1].map(id), "none twice, none left out, newcomers not seen");
}

fn skus(ground: &Ground) {
    let page = |limit, after: Option<&SkuKey>| -> Vec<SkuKey> {
        let found = block_on(ground.store.list_skus(limit, after.cloned())).expect("list_skus answers");
        found.into_iter().map(|sku| sku.key).collect()
    };
    assert_eq!(page(200, None), []);
    // By bytes, whatever the language of the database: capitals first, and a longer id after its beginning.
    let keys = [("B", "a"), ("a", "Z"), ("a", "a"), ("a", "a-1"), ("a-", "a"), ("b", "_")];
    let keys = keys.map(|(activity, sku)| key(activity, sku));
    let mut activities: Vec<_> = keys.iter().map(|key| activity(key.activity.as_str())).collect();
    activities.dedup();
    let new_skus = keys.iter().rev().map(|key| sku(key.activity.as_str(), key.sku.as_str(), 9)).collect();
    ground.must(ChangeSet { activities, new_skus, ..ChangeSet::default() });
    assert_eq!(page(200, None), keys);
    assert_eq!(page(2, None), keys[..2]);
    assert_eq!(page(3, Some(&keys[1])), keys[2..5]);
    assert_eq!(page(200, Some(&key("a", "b"))), keys[4..], "after one that is not there");
    assert_eq!(page(200, Some(&keys[5])), []);
    let whole = block_on(ground.store.list_skus(1, None)).expect("list_skus answers");
    assert_eq!(whole, [ground.sku(&keys[0])]);
}

fn expiries(ground: &Ground, limit: u32, after: Option<Expiring>) -> Vec<Expiring> {
    block_on(ground.store.expiries(limit, after)).expect("expiries answers")
}

/// An order in this state that is to be cancelled at this time.
fn due(number: u64, key: &SkuKey, status: OrderStatus, due_at: Timestamp) -> Purchase {
    let mut purchase = ordered(number, &format!("buyer-{number}"), key, 0);
    purchase.order = Some(Order { cancel_due_at: due_at, ..order(status) });
    purchase
}

fn expiring(ground: &Ground) {
    let key = ground.sale(50);
    let mut expected = Vec::new();
    for (number, status) in (1_u64..).zip(OrderStatus::STATES.iter().cycle().take(24)) {
        let due_at = START.plus(Millis(100 - i64::try_from(number).expect("small")));
        let new_purchases = vec![due(number, &key, *status, due_at)];
        ground.must(ChangeSet { new_purchases, ..ChangeSet::default() });
        if status.next(OrderEvent::Expire).is_some() {
            expected.insert(0, (due_at, id(number)));
        }
    }
    ground.must(ChangeSet { new_purchases: vec![reserved(99, "u", &key)], ..ChangeSet::default() });
    let told = |found: &[Expiring]| found.iter().map(|one| (one.due_at, one.purchase)).collect::<Vec<_>>();
    let all = expiries(ground, 200, None);
    assert_eq!(told(&all), expected, "exactly the states from which an order may expire, earliest first");
    let mut paged = expiries(ground, 2, None);
    while let Some(last) = paged.last().copied() {
        let page = expiries(ground, 2, Some(last));
        if page.is_empty() {
            break;
        }
        paged.extend(page);
    }
    assert_eq!(paged, all);
    // One of them is paid: it is gone from here at once.
    let mut paid = ground.purchase(all[0].purchase).expect("it is there");
    let order = Order { status: OrderStatus::Paid, ..paid.order.take().expect("it has an order") };
    let step = Step::Order { order, reservation: None, places: vec![0] };
    ground.must(ChangeSet { purchases: vec![step_of(&paid, step)], ..ChangeSet::default() });
    assert_eq!(told(&expiries(ground, 200, None)), expected[1..]);
}

fn expiring_exactly(ground: &Ground) {
    /// 2040-01-01T00:00:00Z.
    const FAR: Timestamp = Timestamp(2_208_988_800_000);
    let key = ground.sale(50);
    let times = [2, 0, 1, 900, 200].map(|millis| FAR.plus(Millis(millis)));
    for (number, due_at) in (1_u64..).zip(times) {
        let new_purchases = vec![due(number, &key, OrderStatus::Created, due_at)];
        ground.must(ChangeSet { new_purchases, ..ChangeSet::default() });
    }
    let told: Vec<i64> = expiries(ground, 200, None).iter().map(|one| one.due_at.since(FAR).0).collect();
    assert_eq!(told, [0, 1, 2, 200, 900]);
}

fn history(ground: &Ground) {
    let key = ground.sale(5);
    ground.must(ChangeSet {
        new_purchases: vec![ordered(1, "u", &key, 0), ordered(2, "v", &key, 0)],
        ..ChangeSet::default()
    });
    let full = Transition {
        at: START,
        from: None,
        actor: Arc::from("key:运营"),
        reference: Some(Arc::from("incident-7")),
        ..transition(id(1), "reinstated", "PAID")
    };
    let written = [
        transition(id(1), "expired", "CANCEL_PENDING"),
        transition(id(2), "expired", "CANCEL_PENDING"),
        transition(id(1), "cancelled", "CANCELLED"),
    ];
    ground.must(ChangeSet { transitions: written.to_vec(), ..ChangeSet::default() });
    ground.must(ChangeSet { transitions: vec![full.clone()], ..ChangeSet::default() });
    let told = block_on(ground.store.transitions(id(1))).expect("transitions answers");
    assert_eq!(told, [written[0].clone(), written[2].clone(), full]);
    assert!(block_on(ground.store.transitions(id(9))).expect("transitions answers").is_empty());
}

//! Judges the invariants over a store's sums (reference 003 §11.6, §13.4). Pure: the store adds, this compares.
//!
//! Invariant: a check that holds says what it compared, a check that does not says by how much and where.
//! Deliberately absent: repair; that goes through the ordinary machines.

use crate::catalogue::Bucket;
use crate::machine::admission::Admission;
use crate::machine::order::Order as OrderStatus;
use crate::tally::{Group, SkuTally, Tally};

/// One invariant, judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Stable name.
    pub name: &'static str,
    /// Whether it holds.
    pub holds: bool,
    /// What was compared, or what is wrong and where.
    pub detail: String,
}

/// Whether a gate in the store has heard of everything that the store decided, and holds nothing that the store has not decided
/// on. Then nothing that is on its way outside of the store would be missed where another gate goes on: no reservation is open,
/// every order is known as it is, and no adjustment is on its way.
#[must_use]
pub fn gate_is_at_rest(tally: &Tally) -> bool {
    tally.skus.iter().all(|one| {
        let has_adjusted = one.bucket.as_ref().is_none_or(|bucket| bucket.adjustments == one.sku.adjustments);
        one.journaled == 0 && has_adjusted && one.groups.iter().all(is_heard)
    })
}

/// Whether the gate in the store knows of these purchases what the store knows.
fn is_heard(group: &Group) -> bool {
    match (group.admission, group.order) {
        (Admission::Reserved, _) => false,
        // An order that never went through the gate is told to it like any other.
        (Admission::Absent, order) => order.is_none(),
        (Admission::OrderCreated | Admission::Reinstated, order) => order != Some(OrderStatus::Cancelled),
        // One that lives was brought back.
        (Admission::Cancelled, order) => order.is_none_or(|order| order == OrderStatus::Cancelled),
        (Admission::Compensated, _) => true,
    }
}

/// Whether a gate outside of the store, with these counters, has heard of everything that the store decided about a SKU. What it
/// says of single orders cannot be asked, so this compares units: those that live orders hold, and the adjustments.
#[must_use]
pub fn gate_elsewhere_has_heard(one: &SkuTally, gate: &Bucket) -> bool {
    gate.committed == live_units(one) && gate.adjustments == one.sku.adjustments
}

type Rule = (&'static str, fn(&SkuTally) -> Option<String>);

const SKU_RULES: [Rule; 6] = [
    ("stock_conserved", stock_conserved),
    ("stock_matches_orders", stock_matches_orders),
    ("admission_conserved", admission_conserved),
    ("admission_matches_reservations", admission_matches_reservations),
    ("never_oversold", never_oversold),
    ("per_user_limit_kept", per_user_limit_kept),
];

/// Judges everything.
#[must_use]
pub fn judge(tally: &Tally) -> Vec<Check> {
    let mut checks: Vec<Check> = SKU_RULES.iter().map(|rule| over_skus(tally, rule)).collect();
    let counts: [(&'static str, u64, &str); 11] = [
        ("rejections_have_tasks", tally.rejections_without_task, "rejections without a compensation task"),
        ("tasks_have_rejections", tally.tasks_without_rejection, "compensation tasks without a rejection"),
        ("inbox_matches_orders", tally.inbox_contradictions, "inbox entries that contradict their purchase"),
        (
            "money_adds_up",
            tally.money_contradictions,
            "orders whose money is not the sum of its attempts and refunds",
        ),
        (
            "groups_match_charges",
            tally.group_orders.state_contradictions,
            "group orders whose state or count contradicts their participants' charges",
        ),
        (
            "wallets_match_charges",
            tally.group_orders.wallet_contradictions,
            "wallet charges of group orders that are not what the ledger says",
        ),
        ("groups_are_scheduled", tally.group_orders.unscheduled, "open or closed group orders in no queue"),
        (
            "balances_are_their_entries",
            tally.credit.balance_contradictions,
            "credit accounts whose balance is not the sum of their entries",
        ),
        (
            "jobs_are_paid_once",
            tally.credit.job_contradictions,
            "jobs whose entries do not add up to their cost, or to 0 without delivery",
        ),
        ("jobs_wait_somewhere", tally.credit.jobs_nowhere, "waiting or given up jobs in no lane"),
        (
            "cancels_release_once",
            tally.cancels_without_release,
            "cancelled orders without exactly one release",
        ),
    ];
    checks.extend(counts.into_iter().map(|(name, found, what)| Check {
        name,
        holds: found == 0,
        detail: format!("{found} {what}"),
    }));
    checks
}

fn over_skus(tally: &Tally, (name, rule): &Rule) -> Check {
    let broken: Vec<String> = tally
        .skus
        .iter()
        .filter_map(|one| rule(one).map(|what| format!("{}: {what}", one.sku.key)))
        .collect();
    let detail = if broken.is_empty() {
        format!("{} SKUs compared", tally.skus.len())
    } else {
        broken.into_iter().take(10).collect::<Vec<_>>().join("; ")
    };
    Check { name, holds: tally.skus.iter().all(|one| rule(one).is_none()), detail }
}

fn units(tally: &SkuTally, belongs: impl Fn(&Group) -> bool) -> i64 {
    tally.groups.iter().filter(|group| belongs(group)).map(|group| group.units).sum()
}

fn live_units(tally: &SkuTally) -> i64 {
    units(tally, |group| group.order.is_some_and(|order| order != OrderStatus::Cancelled))
}

fn stock_conserved(tally: &SkuTally) -> Option<String> {
    let stock = tally.sku.stock;
    (!stock.holds()).then(|| format!("{stock:?} does not add up"))
}

fn stock_matches_orders(tally: &SkuTally) -> Option<String> {
    let stock = tally.sku.stock;
    let live = live_units(tally);
    let sold = units(tally, |group| {
        matches!(group.order, Some(OrderStatus::Paid | OrderStatus::Refunding | OrderStatus::Refunded))
    });
    let frozen = units(tally, |group| group.order == Some(OrderStatus::ManualReview));
    let agrees = stock.occupied + stock.sold == live && (sold..=sold + frozen).contains(&stock.sold);
    (!agrees).then(|| {
        format!("occupied {} + sold {} against {live} live units, {sold} paid", stock.occupied, stock.sold)
    })
}

fn admission_conserved(tally: &SkuTally) -> Option<String> {
    let bucket = tally.bucket.as_ref()?;
    (!bucket.holds()).then(|| {
        format!(
            "initial {} against available {} + open_reserved {} + committed {}",
            bucket.initial, bucket.available, bucket.open_reserved, bucket.committed
        )
    })
}

fn admission_matches_reservations(tally: &SkuTally) -> Option<String> {
    let bucket = tally.bucket.as_ref()?;
    let open = tally.journaled + units(tally, |group| group.admission == Admission::Reserved);
    let committed =
        units(tally, |group| matches!(group.admission, Admission::OrderCreated | Admission::Reinstated));
    let agrees = bucket.open_reserved == open && bucket.committed == committed;
    (!agrees).then(|| {
        format!(
            "open_reserved {} against {open} reserved, committed {} against {committed} with orders",
            bucket.open_reserved, bucket.committed
        )
    })
}

fn never_oversold(tally: &SkuTally) -> Option<String> {
    let live = live_units(tally);
    (live > tally.sku.stock.initial)
        .then(|| format!("{live} units in live orders of {}", tally.sku.stock.initial))
}

fn per_user_limit_kept(tally: &SkuTally) -> Option<String> {
    (tally.buyers_over_limit > 0)
        .then(|| format!("{} buyers ordered above the limit", tally.buyers_over_limit))
}

#[cfg(test)]
mod tests {
    //! What must have come to a gate before its store is moved without what lies outside of it.

    use super::*;
    use crate::catalogue::{Sku, Stock};
    use crate::id::{ActivityId, SkuId, SkuKey};
    use crate::machine::Machine as _;
    use crate::money::{Currency, Money};
    use crate::tally::{CreditTally, GroupTally};
    use crate::time::Timestamp;

    fn tally(adjustments: (u32, u32), states: (Admission, Option<OrderStatus>)) -> Tally {
        let key = SkuKey { activity: ActivityId::trusted("sale"), sku: SkuId::trusted("cup") };
        let sku = Sku {
            key: key.clone(),
            price: Money::new(1999, Currency::CNY).unwrap(),
            per_user_limit: 1,
            limit_since: Timestamp(0),
            buckets: 1,
            opening: 10,
            stock: Stock::full(10),
            adjustments: adjustments.0,
            revision: 0,
        };
        let bucket = Bucket { adjustments: adjustments.1, ..Bucket::full(key, 10) };
        let (admission, order) = states;
        let group = Group { admission, reservation: None, order, purchases: 2, units: 3 };
        let one = SkuTally {
            sku,
            bucket: Some(bucket),
            groups: vec![group],
            journaled: 0,
            buyers_over_limit: 0,
            ledger_available: 0,
        };
        Tally {
            now: Timestamp(0),
            skus: vec![one],
            rejections_without_task: 0,
            tasks_without_rejection: 0,
            inbox_contradictions: 0,
            cancels_without_release: 0,
            money_contradictions: 0,
            group_orders: GroupTally::default(),
            credit: CreditTally::default(),
            cases: 0,
            quarantined: 0,
            bytes: 0,
            about: "".into(),
        }
    }

    #[test]
    fn fs_13_a_gate_is_at_rest_when_it_knows_every_order_and_adjustment() {
        let live = OrderStatus::STATES.iter().copied().filter(|one| *one != OrderStatus::Cancelled);
        let orders = live.map(|order| (order, true)).chain([(OrderStatus::Cancelled, false)]);
        for (order, is_live) in orders {
            for (admission, is_at_rest) in [
                (Admission::Absent, false),
                (Admission::Reserved, false),
                (Admission::OrderCreated, is_live),
                (Admission::Reinstated, is_live),
                (Admission::Cancelled, !is_live),
            ] {
                let tally = tally((0, 0), (admission, Some(order)));
                assert_eq!(gate_is_at_rest(&tally), is_at_rest, "{admission:?} {order:?}");
            }
        }
        for (admission, is_at_rest) in
            [(Admission::Absent, true), (Admission::Reserved, false), (Admission::Compensated, true)]
        {
            assert_eq!(gate_is_at_rest(&tally((0, 0), (admission, None))), is_at_rest, "{admission:?}");
        }
        let known = (Admission::OrderCreated, Some(OrderStatus::Paid));
        assert!(gate_is_at_rest(&tally((2, 2), known)));
        assert!(!gate_is_at_rest(&tally((2, 1), known)), "an adjustment is on its way");
        let mut journaled = tally((0, 0), known);
        journaled.skus[0].journaled = 1;
        assert!(!gate_is_at_rest(&journaled));
    }

    #[test]
    fn fs_13_a_gate_elsewhere_has_heard_of_what_its_counters_say() {
        let heard = |order: OrderStatus, adjustments: u32, (committed, known): (i64, u32)| {
            let tally = tally((adjustments, 0), (Admission::Absent, Some(order)));
            let one = &tally.skus[0];
            let gate = Bucket { committed, adjustments: known, ..Bucket::full(one.sku.key.clone(), 10) };
            gate_elsewhere_has_heard(one, &gate)
        };
        assert!(heard(OrderStatus::Paid, 1, (3, 1)));
        assert!(!heard(OrderStatus::Paid, 1, (0, 1)), "orders are on their way, or were brought back");
        assert!(!heard(OrderStatus::Paid, 1, (3, 0)), "an adjustment is on its way");
        assert!(heard(OrderStatus::Cancelled, 0, (0, 0)));
        assert!(!heard(OrderStatus::Cancelled, 0, (3, 0)), "a cancellation is on its way");
    }
}

//! Judges the invariants over a store's sums (reference 003 §11.6, §13.4). Pure: the store adds, this compares.
//!
//! Invariant: a check that holds says what it compared, a check that does not says by how much and where.
//! Deliberately absent: repair; that goes through the ordinary machines.

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

/// Whether everything that the gate was told of has come to it: no reservation is open, and it knows of every order's end.
/// Then nothing that is on its way outside of the store would be missed where another gate goes on.
#[must_use]
pub fn gate_is_at_rest(tally: &Tally) -> bool {
    let is_done = |group: &Group| {
        let ended_unheard = group.order == Some(OrderStatus::Cancelled)
            && matches!(group.admission, Admission::OrderCreated | Admission::Reinstated);
        group.admission != Admission::Reserved && !ended_unheard
    };
    tally.skus.iter().all(|one| one.journaled == 0 && one.groups.iter().all(is_done))
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

fn stock_conserved(tally: &SkuTally) -> Option<String> {
    let stock = tally.sku.stock;
    (!stock.holds()).then(|| format!("{stock:?} does not add up"))
}

fn stock_matches_orders(tally: &SkuTally) -> Option<String> {
    let stock = tally.sku.stock;
    let live = units(tally, |group| group.order.is_some_and(|order| order != OrderStatus::Cancelled));
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
    let live = units(tally, |group| group.order.is_some_and(|order| order != OrderStatus::Cancelled));
    (live > tally.sku.stock.initial)
        .then(|| format!("{live} units in live orders of {}", tally.sku.stock.initial))
}

fn per_user_limit_kept(tally: &SkuTally) -> Option<String> {
    (tally.buyers_over_limit > 0)
        .then(|| format!("{} buyers ordered above the limit", tally.buyers_over_limit))
}

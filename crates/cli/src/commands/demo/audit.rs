//! The reckoning: what the buyers were told against what the server says now.
//!
//! Invariants: everything is asked over HTTP, as anybody could; every receipt is looked up, and every order must have a
//! receipt; the server's own checks stand beside ours and replace none of them. Deliberately absent: mending anything.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::buyer::{DIRECT, HOT, PAID, PAID_SALE, SALE, UNPAID, UNPAID_SALE};
use super::group_order::{self, Gathered};
use super::sale::Sale;
use super::studio::{self, Produced};
use super::tally::{Receipt, Seen};
use crate::client::{Answer, Client};
use crate::failure::Failure;
use crate::outside::check::{Check, of_the_server};
use crate::outside::list::orders_of;
use crate::outside::statement::{self, Account, disagreement};

/// What the reckoning found.
pub(crate) struct Findings {
    /// All checks: ours, then the server's.
    pub(crate) checks: Vec<Check>,
    /// Orders in all.
    pub(crate) orders: usize,
    /// Live orders of the hot SKU.
    pub(crate) winners: usize,
    /// Orders that buyers cancelled.
    pub(crate) cancelled: usize,
    /// Orders that expired unpaid.
    pub(crate) expired: usize,
    /// What became of the payments.
    pub(crate) money: Money,
    /// What became of the group orders.
    pub(crate) gathered: Gathered,
    /// What became of the jobs.
    pub(crate) produced: Produced,
    /// Bytes of the store on disk.
    pub(crate) store_bytes: u64,
}

/// What became of the payments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Money {
    /// Orders that were paid, and keep their money.
    pub(crate) paid: usize,
    /// Orders that were cancelled, and whose money went back.
    pub(crate) given_back: usize,
}

/// Holds everything against everything.
///
/// # Errors
/// When the server does not answer.
pub(crate) async fn reckon(sale: &Sale<'_>, seen: &Seen) -> Result<Findings, Failure> {
    let mut client = sale.client();
    let mut orders = orders_of(&mut client, SALE).await?;
    orders.extend(orders_of(&mut client, UNPAID_SALE).await?);
    let paying = orders_of(&mut client, PAID_SALE).await?;
    let live = |order: &&Value| order["status"] != "CANCELLED";
    let winners = orders.iter().filter(|order| sku_of(order) == HOT).filter(live).count();
    let (expired, cancelled): (Vec<&Value>, Vec<&Value>) = orders
        .iter()
        .filter(|order| order["status"] == "CANCELLED")
        .partition(|order| sku_of(order) == UNPAID);

    let (cancelled, expired) = (cancelled.len(), expired.len());
    let (agreement, money) = agrees_with_the_bank(&mut client, sale, seen, &paying).await?;
    orders.extend(paying);
    let mut checks = vec![
        winners_are_the_stock(winners, sale.plan.stock),
        receipts_are_kept(&mut client, seen).await?,
        orders_have_receipts(&orders, seen),
        limit_is_kept(&orders),
        cancels_are_kept(&orders, seen),
        unpaid_orders_expired(&orders, sale.plan.unpaid_stock),
        agreement,
        Check::of("answers_keep_their_promise", &format!("{} requests", seen.requests), &seen.contradictions),
    ];
    checks.push(stock_is_conserved(sale, &mut client).await?);
    let (settled, gathered) = group_order::reckon(&mut client, seen).await?;
    let (paid, produced) = studio::reckon(&mut client).await?;
    checks.extend([settled, paid]);
    let overview = client.get("/v1/ops/overview").await?;
    let store_bytes = overview.body["store"]["bytes"].as_u64().unwrap_or(0);
    checks.extend(of_the_server(&mut client).await?);
    let orders = orders.len();
    Ok(Findings { checks, orders, winners, cancelled, expired, money, gathered, produced, store_bytes })
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn sku_of(order: &Value) -> &str {
    text(&order["lines"][0], "sku_id")
}

fn winners_are_the_stock(winners: usize, stock: usize) -> Check {
    let compared = format!("{winners} live orders of {stock} units");
    let wrong = if winners == stock { Vec::new() } else { vec![compared.clone()] };
    Check::of("winners_are_the_stock", &compared, &wrong)
}

/// None lost, none stuck: every receipt is found under its id, with its buyer and request, and has its decision.
async fn receipts_are_kept(client: &mut Client<'_>, seen: &Seen) -> Result<Check, Failure> {
    let mut wrong = Vec::new();
    for receipt in &seen.reservations {
        let answer = client.get(&format!("/v1/reservations/{}", receipt.id)).await?;
        if let Some(fault) = fault_of_reservation(receipt, &answer) {
            wrong.push(fault);
        }
    }
    for receipt in &seen.direct_orders {
        let answer = client.get(&format!("/v1/orders/{}", receipt.id)).await?;
        if answer.status != 200
            || answer.text("order_id") != receipt.id
            || answer.text("user_id") != receipt.user
        {
            wrong.push(format!("order {} of {} is {}", receipt.id, receipt.user, answer.short()));
        }
    }
    let compared =
        format!("{} acknowledged, all found and decided", seen.reservations.len() + seen.direct_orders.len());
    Ok(Check::of("acknowledged_is_kept", &compared, &wrong))
}

fn fault_of_reservation(receipt: &Receipt, answer: &Answer) -> Option<String> {
    let Receipt { id, user, request, .. } = receipt;
    if answer.status != 200 || answer.text("reservation_id") != id {
        return Some(format!("{id} of {user} is {}", answer.short()));
    }
    if answer.text("user_id") != user || answer.text("request_id") != request {
        return Some(format!("{id} of {user} is somebody else's"));
    }
    let has_outcome = !answer.body["order_id"].is_null() || !answer.body["reason_code"].is_null();
    let is_settled = matches!(answer.text("status"), "ORDER_CREATED" | "COMPENSATED" | "CANCELLED");
    (!has_outcome || !is_settled).then(|| format!("{id} of {user} is stuck in {}", answer.text("status")))
}

/// No order comes from nowhere, and none twice from one receipt.
fn orders_have_receipts(orders: &[Value], seen: &Seen) -> Check {
    let asked: BTreeSet<(&str, &str)> =
        seen.reservations.iter().chain(&seen.direct_orders).map(|one| (&*one.user, &*one.request)).collect();
    let mut served = BTreeSet::new();
    let mut wrong = Vec::new();
    for order in orders {
        let whose = (text(order, "user_id"), text(order, "request_id"));
        if !asked.contains(&whose) {
            wrong.push(format!("order {} was acknowledged to nobody", text(order, "order_id")));
        } else if !served.insert(whose) {
            wrong.push(format!("{} has two orders for request {}", whose.0, whose.1));
        }
    }
    Check::of("orders_have_receipts", &format!("{} orders, each with one receipt", orders.len()), &wrong)
}

fn limit_is_kept(orders: &[Value]) -> Check {
    let mut units: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for order in orders.iter().filter(|order| order["status"] != "CANCELLED") {
        for line in order["lines"].as_array().map_or(&[][..], Vec::as_slice) {
            let quantity = line["quantity"].as_u64().unwrap_or(0);
            *units.entry((text(order, "user_id"), text(line, "sku_id"))).or_default() += quantity;
        }
    }
    let above = units.iter().filter(|(_, count)| **count > 1);
    let wrong: Vec<String> =
        above.map(|((user, sku), count)| format!("{user} has {count} of {sku}")).collect();
    Check::of("buyer_limit_is_kept", &format!("{} buyers, each with one unit at most", units.len()), &wrong)
}

fn cancels_are_kept(orders: &[Value], seen: &Seen) -> Check {
    let cancelled: BTreeSet<&str> =
        seen.reservations.iter().filter(|one| one.is_cancelled).map(|one| &*one.user).collect();
    let of_the_hot = orders.iter().filter(|order| sku_of(order) == HOT && order["status"] == "CANCELLED");
    let found: BTreeSet<&str> = of_the_hot.map(|order| text(order, "user_id")).collect();
    let wrong: Vec<String> =
        cancelled.symmetric_difference(&found).map(|user| format!("{user} differs")).collect();
    Check::of("cancels_are_kept", &format!("{} cancelled, their units sold again", found.len()), &wrong)
}

fn unpaid_orders_expired(orders: &[Value], expected: usize) -> Check {
    let unpaid: Vec<&Value> = orders.iter().filter(|order| sku_of(order) == UNPAID).collect();
    let mut wrong: Vec<String> = unpaid
        .iter()
        .filter(|order| order["status"] != "CANCELLED")
        .map(|order| format!("order {} is {}", text(order, "order_id"), text(order, "status")))
        .collect();
    if unpaid.len() != expected {
        wrong.push(format!("{} orders of {expected} units", unpaid.len()));
    }
    Check::of("unpaid_orders_expired", &format!("{} expired, their units free again", unpaid.len()), &wrong)
}

/// Every order that somebody wanted to pay, against the bank's own statement.
async fn agrees_with_the_bank(
    client: &mut Client<'_>,
    sale: &Sale<'_>,
    seen: &Seen,
    orders: &[Value],
) -> Result<(Check, Money), Failure> {
    let mut accounts = statement::read(client, sale.began).await?;
    let (mut wrong, mut money) = (Vec::new(), Money::default());
    for order in orders {
        let id = text(order, "order_id");
        let payments = seen.payments.iter().filter(|payment| payment.order == id);
        let accounts: Vec<Account> =
            payments.map(|payment| accounts.remove(&payment.id).unwrap_or_default()).collect();
        wrong.extend(disagreement(order, &accounts, 0));
        let is_taken = accounts.iter().any(|account| !account.taken.is_empty());
        money.paid += usize::from(text(order, "status") == "PAID");
        money.given_back += usize::from(text(order, "status") == "CANCELLED" && is_taken);
    }
    wrong.extend(accounts.keys().map(|payment| format!("payment {payment} is nobody's")));
    let compared = format!("{} paid and kept, {} given back once", money.paid, money.given_back);
    Ok((Check::of("order_and_bank_agree", &compared, &wrong), money))
}

/// Seen from outside: both conservation laws, and that gate and store say the same.
async fn stock_is_conserved(sale: &Sale<'_>, client: &mut Client<'_>) -> Result<Check, Failure> {
    let mut wrong = Vec::new();
    let skus = [(SALE, HOT), (UNPAID_SALE, UNPAID), (SALE, DIRECT), (PAID_SALE, PAID)];
    for (activity, sku) in skus {
        let answer = sale.sku(client, activity, sku).await?;
        let count = |part: &str, name: &str| answer.body[part][name].as_i64().unwrap_or(i64::MIN / 8);
        let stock = |name: &str| count("stock", name);
        let gate = |name: &str| count("admission", name);
        if stock("initial") != stock("available") + stock("occupied") + stock("sold") {
            wrong.push(format!("{sku}: stock {} does not add up", answer.body["stock"]));
        }
        if stock("initial") != gate("available") + gate("open_reserved") + gate("committed") {
            wrong.push(format!("{sku}: admission {} does not add up", answer.body["admission"]));
        }
        if gate("available") != stock("available") || gate("committed") != stock("occupied") + stock("sold") {
            wrong.push(format!(
                "{sku}: stock {} against admission {}",
                answer.body["stock"], answer.body["admission"]
            ));
        }
    }
    let compared = format!("{} SKUs: stock and admission add up and agree", skus.len());
    Ok(Check::of("stock_and_admission_agree", &compared, &wrong))
}
